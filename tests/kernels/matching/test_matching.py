"""Matching: argmax and projection against enumeration, general solvers and optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import reference
from oracles.enumeration import vertices
from oracles.structures.matching import CAPACITIES, random_matching, residual, scores_of
from scipy.optimize import linear_sum_assignment

from maxmargin import _kernels
from maxmargin.structures import PointStatus
from maxmargin.structures.matchings.matching import Matching


def assert_feasible(structure, z, slack=1e-14):
    polytope = structure.polytope()
    assert (z >= 0).all()
    assert (polytope.ub @ z <= polytope.ub_rhs * (1 + slack)).all()


def assert_projection(structure, point, answer, tol=1e-11):
    """The duals prove the projection."""
    scale = 1 + np.abs(point[point > 0]).max(initial=0.0)
    assert (answer.status == PointStatus.OK).all()
    assert_feasible(structure, answer.z)
    z, worst = residual(structure, point, answer.warm)
    assert worst <= tol * scale
    np.testing.assert_allclose(answer.z, z, rtol=0, atol=tol * scale)
    np.testing.assert_allclose(answer.value, structure.by_example(0.5 * (answer.z - point) ** 2), rtol=1e-10)


def best_by_enumeration(structure, scores):
    offsets = structure.blocks[0].offsets
    return np.array(
        [
            (outputs @ scores[begin:end]).max()
            for outputs, begin, end in zip(vertices(structure), offsets[:-1], offsets[1:], strict=True)
        ]
    )


@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1.0, 0.6, 0.3]),
    st.sampled_from(CAPACITIES),
    st.sampled_from(["normal", "rounded", "positive", "equal", "zero"]),
)
def test_argmax_equals_enumeration(seed, density, capacities, kind):
    rng = np.random.default_rng(seed)
    structure = random_matching(rng, rng.integers(0, 4, (3, 2)), density=density, capacities=capacities)
    scores = scores_of(rng, structure, kind)
    answer = structure.argmax(scores)
    np.testing.assert_allclose(answer.value, best_by_enumeration(structure, scores), atol=1e-12)
    np.testing.assert_allclose(answer.value, structure.by_example(scores * answer.z), atol=1e-12)
    assert set(np.unique(answer.z)) <= {0.0, 1.0}
    assert not answer.z[scores <= 0].any()
    assert_feasible(structure, answer.z)
    np.testing.assert_array_equal(structure.encode(structure.decode(answer.z)), answer.z)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.5, 0.08]), st.sampled_from(CAPACITIES))
def test_argmax_equals_linear_program(seed, density, capacities):
    rng = np.random.default_rng(seed)
    shapes = [(12, 9), (7, 30), (25, 4), (20, 20)]
    structure = random_matching(rng, shapes, density=density, capacities=capacities)
    scores = rng.normal(size=structure.n_parts) + rng.choice([-0.5, 0.0, 1.0])
    answer = structure.argmax(scores)
    assert_feasible(structure, answer.z)
    assert answer.value.sum() == pytest.approx(reference.maximum(structure, scores), abs=1e-8)


@pytest.mark.parametrize("shape", [(60, 60), (150, 120), (1, 200), (200, 1), (40, 150)])
def test_argmax_equals_assignment_at_size(shape):
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(3, *shape))
    answer = Matching.dense([shape] * 3).argmax(scores.ravel())
    for matrix, value in zip(np.maximum(scores, 0), answer.value, strict=True):
        rows, columns = linear_sum_assignment(matrix, maximize=True)
        assert value == pytest.approx(matrix[rows, columns].sum(), abs=1e-9)


def test_argmax_sparse_at_size_equals_dense():
    rng = np.random.default_rng(6)
    structure = random_matching(rng, [(150, 140), (300, 50)], density=0.04)
    scores = rng.normal(size=structure.n_parts)
    answer = structure.argmax(scores)
    offsets = structure.blocks[0].offsets
    for i, (shape, value) in enumerate(zip(structure.shapes, answer.value, strict=True)):
        matrix = np.zeros(tuple(shape))
        part = slice(offsets[i], offsets[i + 1])
        matrix[tuple(structure.edges[part].T)] = np.maximum(scores[part], 0)
        rows, columns = linear_sum_assignment(matrix, maximize=True)
        assert value == pytest.approx(matrix[rows, columns].sum(), abs=1e-9)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1.0, 0.6, 0.2]),
    st.sampled_from(CAPACITIES),
    st.sampled_from([1.0, 5.0, 100.0]),
    st.booleans(),
)
def test_projection_equals_interior_point_method(seed, density, capacities, scale, rounded):
    rng = np.random.default_rng(seed)
    structure = random_matching(rng, rng.integers(0, 8, (4, 2)), density=density, capacities=capacities)
    point = scale * (rng.normal(size=structure.n_parts) + rng.choice([0.0, 1.0]))
    if rounded:
        point = np.round(point)
    answer = structure.project(point)
    assert_projection(structure, point, answer)
    if structure.n_parts:
        np.testing.assert_allclose(answer.z, reference.project(structure, point), atol=2e-5)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1.0, 0.3, 0.05]),
    st.sampled_from(CAPACITIES),
    st.sampled_from([1e-12, 1e-3, 1.0, 30.0, 1e4]),
    st.sampled_from(["normal", "positive", "rounded", "equal", "low rank"]),
)
def test_projection_meets_optimality_conditions(seed, density, capacities, scale, kind):
    rng = np.random.default_rng(seed)
    shapes = [(1, 1), (1, 40), (40, 1), (23, 17), (9, 60), (50, 50)]
    structure = random_matching(rng, shapes, density=density, capacities=capacities)
    point = rng.normal(size=structure.n_parts)
    if kind == "positive":
        point = np.abs(point) + 1
    elif kind == "rounded":
        point = np.round(point)
    elif kind == "equal":
        point[:] = 1
    elif kind == "low rank":
        left, right = rng.normal(size=60), rng.normal(size=60)
        point = left[structure.edges[:, 0]] + right[structure.edges[:, 1]]
    point = point * scale
    cold = structure.project(point)
    assert_projection(structure, point, cold)
    moved = point + 0.01 * scale * rng.normal(size=structure.n_parts)
    warm = structure.project(moved, warm=cold.warm)
    assert_projection(structure, moved, warm)
    # The projection is nonexpansive, and the same from any start.
    assert np.linalg.norm(warm.z - cold.z) <= np.linalg.norm(moved - point) + 1e-9
    np.testing.assert_allclose(structure.project(moved).z, warm.z, rtol=0, atol=1e-12 * (1 + 10 * scale))


@pytest.mark.parametrize("density", [1.0, 0.05])
@pytest.mark.parametrize("capacities", CAPACITIES)
def test_projection_at_size(density, capacities):
    rng = np.random.default_rng(7)
    structure = random_matching(rng, [(150, 150), (140, 90), (2, 200)], density=density, capacities=capacities)
    for scale in (0.3, 3.0, 100.0):
        point = scale * rng.normal(size=structure.n_parts)
        answer = structure.project(point)
        assert_projection(structure, point, answer)
        # Certified by its own argmax: no vertex lies beyond z in the direction of point - z.
        best = structure.argmax(point - answer.z)
        gaps = best.value - structure.by_example((point - answer.z) * answer.z)
        assert gaps.max() <= 1e-9 * scale


@pytest.mark.parametrize("capacities", ["one", "few"])
def test_projection_of_a_large_sparse_graph(capacities):
    # More positive duals than are factorized: conjugate gradients.
    rng = np.random.default_rng(14)
    structure = random_matching(rng, [(900, 800), (3, 3)], density=0.006, capacities=capacities)
    for scale in (1.0, 20.0):
        point = scale * rng.normal(size=structure.n_parts) + scale
        answer = structure.project(point)
        assert_projection(structure, point, answer)
        moved = point + 0.01 * rng.normal(size=structure.n_parts)
        assert_projection(structure, moved, structure.project(moved, warm=answer.warm))


def test_projection_of_feasible_points_is_the_point():
    rng = np.random.default_rng(8)
    structure = random_matching(rng, [(6, 6), (4, 9)], density=1.0)
    inside = 0.1 * rng.random(structure.n_parts)
    np.testing.assert_array_equal(structure.project(inside).z, inside)
    vertex = structure.argmax(rng.normal(size=structure.n_parts)).z
    np.testing.assert_array_equal(structure.project(vertex).z, vertex)
    duals = rng.random(int(structure.shapes.sum()))
    np.testing.assert_allclose(structure.project(inside, warm=duals).z, inside, atol=1e-15)
    face = structure.project(5 * rng.normal(size=structure.n_parts)).z
    np.testing.assert_allclose(structure.project(face).z, face, atol=1e-14)


@pytest.mark.parametrize("scale", [1e8, 1e-12])
@pytest.mark.parametrize("capacities", CAPACITIES)
def test_extreme_scales(scale, capacities):
    rng = np.random.default_rng(9)
    structure = random_matching(rng, [(5, 7), (10, 10), (1, 4), (30, 30)], capacities=capacities)
    point = scale * rng.normal(size=structure.n_parts)
    answer = structure.project(point)
    assert (answer.status == PointStatus.OK).all()
    assert_feasible(structure, answer.z)
    _, worst = residual(structure, point, answer.warm)
    assert worst <= 1e-13 * max(scale, 1)
    best = structure.argmax(point)
    unit = structure.argmax(point / scale)
    np.testing.assert_allclose(best.value, scale * unit.value, rtol=1e-12)


@pytest.mark.parametrize("warm", ["huge", "nan", "negative"])
def test_bad_warm_starts_do_no_harm(warm):
    rng = np.random.default_rng(10)
    structure = random_matching(rng, [(8, 8), (12, 5)])
    point = rng.normal(size=structure.n_parts)
    start = {"huge": 1e12, "nan": np.nan, "negative": -3.0}[warm] * np.ones(int(structure.shapes.sum()))
    answer = structure.project(point, warm=start)
    assert_projection(structure, point, answer, tol=1e-9 if warm == "huge" else 1e-11)


def test_values_near_overflow_return():
    structure = Matching.dense([(3, 3), (2, 5)])
    point = np.full(structure.n_parts, 1e307)
    point[::2] *= -1
    answer = structure.project(point)
    assert_feasible(structure, answer.z)
    assert_feasible(structure, structure.argmax(point).z)


@pytest.mark.parametrize("shapes", [np.zeros((0, 2), dtype=np.int64), [(0, 0)], [(0, 3), (2, 0)], [(1, 1)]])
def test_empty_and_tiny(shapes):
    structure = Matching.dense(shapes)
    n = structure.n_parts
    for answer in (structure.project(np.full(n, 3.0)), structure.argmax(np.full(n, 3.0))):
        assert answer.z.tolist() == [1.0] * n
        assert answer.value.shape == (structure.n_examples,)
        assert (answer.status == PointStatus.OK).all()
    labels = structure.decode(np.ones(n))
    assert len(labels) == structure.n_examples
    np.testing.assert_array_equal(structure.encode(labels), np.ones(n))
    empty = Matching(shapes, np.zeros((0, 2), dtype=np.int64), np.zeros(len(shapes) + 1, dtype=np.int64))
    assert empty.project(np.zeros(0)).z.shape == (0,)
    assert empty.argmax(np.zeros(0)).value.tolist() == [0.0] * len(shapes)
    assert empty.select([]).n_examples == 0


def test_encode_and_decode():
    structure = Matching([(2, 3), (3, 2)], [(1, 2), (0, 1), (1, 0), (2, 1), (0, 0)], [0, 3, 5])
    z = structure.encode([[(1, 0), (0, 1)], np.array([[2, 1]])]).dense()
    assert z.tolist() == [0, 1, 1, 1, 0]
    first, second = structure.decode(z)
    assert first.tolist() == [[0, 1], [1, 0]]
    assert second.tolist() == [[2, 1]]
    assert first.dtype == np.int64
    assert structure.decode(structure.encode([[], []]))[1].shape == (0, 2)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0, 5)], r"example 1: pair \(0, 5\) is not an edge"),
        ([(-1, 0)], r"example 1: pair \(-1, 0\) is not an edge"),
        ([(1, 1)], r"example 1: pair \(1, 1\) is not an edge .* drop it or add the edge"),
        ([(0, 0), (0, 0)], r"example 1: pair \(0, 0\) is given more than once"),
        ([(0, 0), (0, 1)], r"example 1: left node 0 has 2 links, capacity 1; drop links or raise left_capacity"),
        ([(0, 0), (1, 0)], r"example 1: right node 0 has 2 links, capacity 1; drop links or raise right_capacity"),
        ([(0.5, 0.0)], r"example 1: pairs must be integers"),
        ([0, 1, 0], r"example 1: pairs have shape"),
    ],
)
def test_refused_labels(pairs, message):
    structure = Matching([(1, 1), (2, 2)], [(0, 0), (0, 0), (0, 1), (1, 0)], [0, 1, 4])
    with pytest.raises(ValueError, match=message):
        structure.encode([[], pairs])


def test_capacities_let_nodes_have_more_links():
    structure = Matching.dense([(2, 3)], left_capacity=[2, 0], right_capacity=1)
    z = structure.encode([[(0, 0), (0, 2)]]).dense()
    assert z.tolist() == [1, 0, 1, 0, 0, 0]
    np.testing.assert_array_equal(structure.argmax(np.array([3.0, 1.0, 2.0, 9.0, 9.0, 9.0])).z, z)
    with pytest.raises(ValueError, match="example 0: left node 1 has 1 links, capacity 0"):
        structure.encode([[(1, 0)]])
    with pytest.raises(ValueError, match="example 0: left node 0 has 3 links, capacity 2"):
        structure.encode([[(0, 0), (0, 1), (0, 2)]])


def test_refused_graphs():
    with pytest.raises(ValueError, match=r"example 1: edge \(0, 2\) is out of range for 2 left and 2 right nodes"):
        Matching([(2, 2), (2, 2)], [(0, 0), (0, 2)], [0, 1, 2])
    with pytest.raises(ValueError, match=r"example 1: edge \(1, 1\) is given more than once"):
        Matching([(2, 2), (2, 2)], [(0, 0), (1, 1), (0, 0), (1, 1)], [0, 1, 4])
    with pytest.raises(ValueError, match="offsets must be"):
        Matching([(2, 2)], [(0, 0)], [0, 2])
    with pytest.raises(ValueError, match="need offsets"):
        Matching([(2, 2)], [(0, 0)])
    with pytest.raises(ValueError, match="give both, or neither"):
        Matching([(2, 2)], None, [0, 4])
    with pytest.raises(ValueError, match="example 0: shape"):
        Matching.dense([(-1, 2)])
    with pytest.raises(ValueError, match="left_capacity has shape"):
        Matching.dense([(3, 2)], left_capacity=[1, 2])
    with pytest.raises(ValueError, match="0 or more"):
        Matching.dense([(3, 2)], right_capacity=[1, -2])
    with pytest.raises(ValueError, match="must be integers"):
        Matching.dense([(3, 2)], right_capacity=[1.5, 2.0])


def test_refused_vectors():
    structure = Matching.dense([(2, 2)])
    with pytest.raises(ValueError, match="warm has shape"):
        structure.project(np.zeros(4), warm=np.zeros(3))
    with pytest.raises(ValueError, match="one per example"):
        structure.encode([[], []])


def test_kernel_refuses_what_it_could_not_read_safely():
    structure = Matching([(2, 2), (1, 2)], [(0, 0), (1, 1), (0, 1)], [0, 2, 3])
    good = [structure._left_start, structure._right_start, structure.blocks[0].offsets, structure._ends]
    good += [structure.left_capacity, structure.right_capacity]
    for position, wrong in (
        (0, np.array([0, 3, 2])),
        (1, np.array([0, 4])),
        (2, np.array([0, 2, 4])),
        (3, np.array([[0, 0], [1, 2], [0, 1]], dtype=np.int32)),
        (3, np.array([[1, 1], [0, 0], [0, 1]], dtype=np.int32)),
        (4, np.array([1, 1])),
        (5, np.array([1, 1, 1, -1])),
    ):
        with pytest.raises(ValueError):
            _kernels.MatchingBatch(*good[:position], wrong, *good[position + 1 :])

    arrays = [array.copy() for array in good]
    batch = _kernels.MatchingBatch(*arrays)
    for array in arrays:
        array[:] = 1 << 20
    scores = np.array([1.0, 2.0, 3.0])
    z, value, status = np.empty(3), np.empty(2), np.empty(2, dtype=np.int8)
    _kernels.matching_argmax(batch, scores, z, value, status, 1)
    np.testing.assert_array_equal(z, structure.argmax(scores).z)
    for sizes in ((2, 3, 2, 2), (3, 4, 2, 2), (3, 3, 1, 2), (3, 3, 2, 3)):
        scores, z, value, status = (np.zeros(n) for n in sizes)
        with pytest.raises(ValueError, match="one entry per"):
            _kernels.matching_argmax(batch, scores, z, value, status.astype(np.int8), 1)
