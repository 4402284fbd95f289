"""Linear programs: argmax and projection against enumeration and independent solvers, degenerate and bad input."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import reference
from oracles.structures.linear_program import vertices, whole_points

from maxmargin.structures import LinearProgram, Matching, PointStatus
from maxmargin.structures.fallbacks import generic
from maxmargin.structures.programs import linear_program, linear_projection, simplex
from maxmargin.testing import check_structure


def random_programs(seed, n=4, *, whole=False, parts=6, degenerate=False, **settings):
    """Programs that are never empty; ``degenerate`` ones have small whole coefficients and repeated rows."""
    rng = np.random.default_rng(seed)
    A, b, E, e = [], [], [], []
    for _ in range(n):
        size, rows, equations = rng.integers(1, parts + 1), rng.integers(0, 5), rng.integers(0, 3)
        inside = rng.integers(0, 2, size=size).astype(float) if whole else rng.random(size)
        draw = (lambda shape: rng.integers(-1, 2, size=shape).astype(float)) if degenerate else rng.standard_normal
        matrix, equal = draw((rows, size)), draw((equations, size))
        if degenerate and rows > 1:
            matrix[-1] = matrix[0]
        A.append(matrix)
        b.append(matrix @ inside + rng.random(rows) * (rng.random(rows) < 0.5))
        if degenerate and rows > 1:
            b[-1][-1] = b[-1][0]
        E.append(equal)
        e.append(equal @ inside)
    return LinearProgram(A, b, A_eq=E, b_eq=e, **settings)


def triples(size):
    A = np.zeros((3 * size, size**3))
    for column, triple in enumerate(product(range(size), repeat=3)):
        for side, item in enumerate(triple):
            A[side * size + item, column] = 1.0
    return A


def pieces(structure, z):
    return np.split(z, structure.blocks[0].offsets[1:-1])


def violation(structure, z):
    return max(p.violation(v) for p, v in zip(structure.programs, pieces(structure, z), strict=True))


@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([1e-12, 1.0, 1e8]))
@settings(max_examples=40)
def test_argmax_by_enumeration(seed, degenerate, size):
    structure = random_programs(seed, parts=4, degenerate=degenerate)
    scores = size * np.random.default_rng(seed + 1).standard_normal(structure.n_parts)
    found = structure.argmax(scores)
    assert (found.status == PointStatus.OK).all()
    assert violation(structure, found.z) <= 1e-9
    for i, (listed, own, z) in enumerate(
        zip(vertices(structure), pieces(structure, scores), pieces(structure, found.z), strict=True)
    ):
        best = (listed @ own).max()
        assert found.value[i] == pytest.approx(best, rel=1e-8, abs=1e-8 * size)
        assert np.abs(listed - z).max(axis=1, initial=0.0).min() <= 1e-6  # a vertex


@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([0.1, 1.0, 30.0]))
@settings(max_examples=60)
def test_projection_by_an_independent_solver(seed, degenerate, size):
    structure = random_programs(seed, degenerate=degenerate, whole=degenerate)
    point = size * np.random.default_rng(seed + 1).standard_normal(structure.n_parts)
    found = structure.project(point)
    assert (found.status == PointStatus.OK).all()
    assert violation(structure, found.z) <= 1e-12
    np.testing.assert_allclose(found.z, reference.project(structure, point), atol=3e-6)
    np.testing.assert_allclose(found.value, 0.5 * structure.by_example((found.z - point) ** 2))
    slow = generic.project(structure, point)
    np.testing.assert_allclose(found.z, slow.z, atol=1e-7)


@pytest.mark.parametrize("size", [1e-12, 1e-3, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("seed", [0, 1])
def test_projections_are_certified_by_the_argmax(size, seed):
    A = triples(4)
    structure = LinearProgram([A] * 6, [np.ones(12)] * 6, relaxed=True)
    point = size * np.random.default_rng(seed).standard_normal(structure.n_parts)
    found = structure.project(point)
    residual = point - found.z
    gap = structure.argmax(residual).value - structure.by_example(residual * found.z)
    assert (found.status == PointStatus.OK).all()
    assert (gap <= 1e-9 * (1.0 + size)).all()
    assert violation(structure, found.z) <= 1e-12


def test_a_large_projection_and_warm_multipliers():
    rng = np.random.default_rng(0)
    rows, parts = 150, 600
    A = sp.random_array((rows, parts), density=0.05, rng=rng, format="csr")
    A.data[:] = 1.0
    structure = LinearProgram([A, A[:50]], [np.full(rows, 2.0), np.full(50, 3.0)])
    point = rng.normal(size=structure.n_parts)
    found = structure.project(point)
    residual = point - found.z
    assert (found.status == PointStatus.OK).all()
    assert (structure.argmax(residual).value - structure.by_example(residual * found.z) <= 1e-9).all()
    again = structure.project(point, warm=found.warm)
    np.testing.assert_allclose(again.z, found.z, atol=1e-9)
    moved = structure.project(point + 1e-3 * rng.normal(size=len(point)), warm=found.warm)
    assert (moved.status == PointStatus.OK).all()
    for warm in (np.zeros(3), "warm", np.full_like(found.warm, np.nan), -1e9 * np.ones_like(found.warm)):
        np.testing.assert_allclose(structure.project(point, warm=warm).z, found.z, atol=1e-9)


@pytest.mark.parametrize("limit", ["MOST_ENTRIES", "STEPS"])
def test_what_newton_does_not_finish(monkeypatch, limit):
    monkeypatch.setattr(linear_projection, limit, 0)
    structure = random_programs(3)
    point = 2 * np.random.default_rng(0).standard_normal(structure.n_parts)
    point[0] = np.nan
    found = structure.project(point)
    assert found.status[0] == PointStatus.NONFINITE
    assert (found.status[1:] == PointStatus.OK).all()
    clean = np.nan_to_num(point)
    rest = slice(int(structure.blocks[0].offsets[1]), None)
    np.testing.assert_allclose(found.z[rest], reference.project(structure, clean)[rest], atol=3e-6)
    assert not found.z[: rest.start].any()


def test_a_matching_is_a_linear_program():
    rng = np.random.default_rng(0)
    matching = Matching.dense([[3, 4], [2, 2], [1, 5]])
    polytope, offsets = matching.polytope(), matching.blocks[0].offsets
    A, b = [], []
    for first, last in pairwise(offsets):
        rows = polytope.ub[:, first:last].toarray()
        used = rows.any(axis=1)
        A.append(rows[used])
        b.append(polytope.ub_rhs[used])
    program = LinearProgram(A, b)
    for _ in range(5):
        scores = rng.normal(size=matching.n_parts)
        np.testing.assert_allclose(program.argmax(scores).value, matching.argmax(scores).value, atol=1e-9)
        np.testing.assert_allclose(program.project(scores).z, matching.project(scores).z, atol=1e-9)
        for mine, theirs in zip(program.k_best(scores, 4), matching.k_best(scores, 4), strict=True):
            np.testing.assert_allclose(mine.value, theirs.value, atol=1e-9)
    check_structure(program, rng)
    assert program.predict(scores).status.tolist() == [0, 0, 0]


def test_promises():
    choice = [np.array([[1.0, 1.0, 1.0]]), np.array([[1.0, 1.0]]), np.array([[1.0]])]
    check_structure(LinearProgram(choice, [np.ones(1)] * 3), np.random.default_rng(1))
    exactly = LinearProgram([None] * 3, [None] * 3, A_eq=choice, b_eq=[[2.0], [1.0], [1.0]])
    check_structure(exactly, np.random.default_rng(1))
    counts = LinearProgram(choice, [np.full(1, 3.0)] * 3, upper=[2.0, np.array([1.0, 2.0]), 3])
    np.testing.assert_array_equal(counts.part_bound, [2, 2, 2, 1, 2, 3])
    np.testing.assert_allclose(counts.argmax(np.ones(6)).value, [3, 3, 3])


def test_an_argmax_does_not_depend_on_earlier_calls():
    A = triples(3)
    structure = LinearProgram([A] * 3, [np.ones(9)] * 3, relaxed=True)
    rng = np.random.default_rng(0)
    ties = np.ones(structure.n_parts)
    first = structure.argmax(ties).z
    other = structure.argmax(rng.normal(size=structure.n_parts))
    np.testing.assert_array_equal(structure.argmax(ties).z, first)
    warm = structure.argmax(ties, warm=other.warm)
    np.testing.assert_allclose(warm.value, [3.0, 3.0, 3.0])
    np.testing.assert_array_equal(structure.select([0, 1, 2]).argmax(ties, warm=other.warm).z, first)
    assert structure.argmax(ties, warm="odd").value.tolist() == [3.0, 3.0, 3.0]


def test_groups(monkeypatch):
    whole = random_programs(9, n=6)
    scores = np.random.default_rng(0).normal(size=whole.n_parts)
    monkeypatch.setattr(linear_program, "GROUP", 3)
    parts = random_programs(9, n=6)
    assert len(parts._groups) > 2
    first = parts.argmax(scores)
    np.testing.assert_allclose(first.value, whole.argmax(scores).value, atol=1e-9)
    np.testing.assert_allclose(parts.argmax(-scores, warm=first.warm).value, whole.argmax(-scores).value, atol=1e-9)


def test_a_solver_that_fails(monkeypatch):
    structure = LinearProgram([triples(2)] * 2, [np.ones(6)] * 2)
    monkeypatch.setitem(simplex.OPTIONS, "simplex_iteration_limit", 0)
    monkeypatch.setitem(simplex.OPTIONS, "presolve", "off")
    other = structure.select([0, 1])
    scores = np.ones(structure.n_parts)
    with pytest.raises(ValueError, match="HiGHS found no vertex"):
        LinearProgram([-np.ones((1, 2))], [-np.ones(1)])
    found = other.argmax(scores)
    assert found.status.tolist() == [PointStatus.INEXACT] * 2
    assert violation(other, found.z) <= 1e-9
    best = structure.argmax(scores)
    assert best.status.tolist() == [PointStatus.OK] * 2
    assert (found.value >= best.value).all()  # a bound


def test_degenerate_batches():
    assert LinearProgram([], []).n_examples == 0
    none = LinearProgram([np.zeros((2, 0)), np.zeros((0, 3)), np.ones((1, 1))], [np.ones(2), np.zeros(0), np.ones(1)])
    scores = np.array([1.0, -1.0, 0.0, 2.0])
    np.testing.assert_allclose(none.argmax(scores).value, [0.0, 1.0, 2.0])
    np.testing.assert_allclose(none.project(scores).z, [1.0, 0.0, 0.0, 1.0], atol=1e-12)
    alone = LinearProgram([np.zeros((2, 0))], [np.ones(2)])
    assert alone.argmax(np.zeros(0)).value.tolist() == [0.0]
    zero = LinearProgram([np.array([[0.0, 0.0], [1.0, 1.0]])], [np.array([0.0, 1.0])], upper=0.0)
    assert not zero.project(np.ones(2)).z.any()
    for value in (0.0, 1.0, 1e8, 1e-12):  # ties
        points = none.argmax(np.full(4, value))
        np.testing.assert_allclose(points.value, np.array([0.0, 3.0, 1.0]) * value)
    assert none.relaxed is False
    with pytest.raises(ValueError, match="#P-hard"):
        none.marginals(scores)


@pytest.mark.parametrize("seed", range(5))
def test_whole_outputs_of_a_relaxed_program(seed):
    rng = np.random.default_rng(seed)
    odd = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])  # the vertex (1/2, 1/2, 1/2)
    structure = LinearProgram([odd, np.ones((1, 4)), triples(2)], [np.ones(3), np.ones(1), np.ones(6)], relaxed=True)
    scores = rng.random(structure.n_parts)
    scores[:3] = 1.0
    best = structure.argmax(scores)
    np.testing.assert_allclose(best.z[:3], 0.5)
    assert best.status.tolist() == [0, 0, 0]
    found = structure.predict(scores)
    assert found.status.tolist() == [0, 0, 0]
    listed = whole_points(structure)
    for i, (points, own, z) in enumerate(
        zip(listed, pieces(structure, scores), pieces(structure, found.z), strict=True)
    ):
        assert found.value[i] == pytest.approx((points @ own).max(), abs=1e-9)
        assert (z == np.rint(z)).all()
    ranks = structure.k_best(scores, 6)
    for i, (points, own) in enumerate(zip(listed, pieces(structure, scores), strict=True)):
        wanted = np.sort(points @ own)[::-1][:6]
        got = [r.value[i] for r in ranks if r.status[i] == PointStatus.OK]
        np.testing.assert_allclose(got, wanted[: len(got)], atol=1e-9)
        assert len(got) == min(6, len(points))
    promised = LinearProgram([odd], [np.ones(3)])
    assert promised.predict(np.ones(3)).status.tolist() == [PointStatus.INEXACT]
    np.testing.assert_allclose(promised.predict(np.ones(3)).z, 0.5)


def test_programs_without_a_whole_point():
    structure = LinearProgram([None], [None], A_eq=[np.array([[2.0, 2.0]])], b_eq=[np.ones(1)], relaxed=True)
    found = structure.predict(np.array([1.0, 0.0]))
    assert found.status.tolist() == [PointStatus.INEXACT]
    assert violation(structure, found.z) <= 1e-9
    assert structure.k_best(np.ones(2), 3)[0].status.tolist() == [PointStatus.ABSENT]
    counts = LinearProgram([np.ones((1, 2))], [np.ones(1)], upper=2.0, relaxed=True)
    with pytest.raises(ValueError, match="0/1 parts"):
        counts.k_best(np.ones(2), 2)


def test_encode_and_decode():
    structure = LinearProgram([np.ones((1, 3)), sp.csr_array(np.ones((1, 2)))], [np.ones(1), np.ones(1)])
    labels = [np.array([0, 1, 0]), [True, False]]
    z = structure.encode(labels).dense()
    np.testing.assert_array_equal(z, [0, 1, 0, 1, 0])
    for label, again in zip(labels, structure.decode(z), strict=True):
        np.testing.assert_array_equal(again, label)
    for wrong, message in (
        ([1, 1, 0], r"example 0: the output breaks a constraint of its linear program by .*give a point"),
        ([0, 0, 2], "example 0: the output breaks a constraint"),
        ([0, 0, -1], "example 0: the output breaks a constraint"),
        ([0, 1], "example 0: the output must be 3 finite numbers, one per part"),
        ([0, np.nan, 0], "example 0: the output must be 3 finite numbers.*NaN"),
        ("abc", "example 0: the output must be 3 finite numbers"),
        (None, "example 0: the output must be 3 finite numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            structure.encode([wrong, labels[1]])
    with pytest.raises(ValueError, match="1 outputs for 2 examples"):
        structure.encode(labels[:1])


@pytest.mark.parametrize(
    ("A", "b", "settings", "message"),
    [
        ([np.ones((1, 2)), np.ones(2)], [[1], [1]], {}, r"example 1: A must be a 2-D array .*got shape \(2,\)"),
        ([np.ones((1, 2)), "A"], [[1], [1]], {}, "example 1: A must be a 2-D array"),
        ([np.ones((1, 2)), [[1, None]]], [[1], [1]], {}, "example 1: A must be a 2-D array"),
        ([np.ones((1, 2)), [[1, np.nan]]], [[1], [1]], {}, "example 1: A must be .*NaN"),
        ([np.ones((1, 2))] * 2, [[1], [1, 2]], {}, "example 1: b must be 1 finite numbers, one per row of A"),
        ([np.ones((1, 2))] * 2, [[1], [np.inf]], {}, "example 1: b must be .*infinity"),
        ([np.ones((1, 2))] * 2, [[1], None], {}, "example 1: b must be"),
        ([np.ones((1, 2))] * 2, [[1], [-1]], {}, "example 1: no z satisfies .*leave at least one output"),
        ([np.ones((1, 2)), np.zeros((1, 0))], [[1], [-1]], {}, "example 1: no z satisfies"),
        ([np.zeros((1, 0))], [[-1]], {}, "example 0: no z satisfies"),
        ([np.ones((1, 2))] * 2, [[1]], {}, "b has 1 entries for 2 examples"),
        ([np.ones((1, 2))], [[1]], {"A_eq": [np.ones((1, 2))]}, "b_eq with A_eq"),
        ([np.ones((1, 2))], [[1]], {"A_eq": [np.ones((1, 3))], "b_eq": [[1]]}, "A has 2 columns and A_eq has 3"),
        ([np.ones((1, 2))], [[1]], {"A_eq": [np.ones((1, 2))], "b_eq": [[3]]}, "example 0: no z satisfies"),
        ([np.ones((1, 2))], [[1]], {"upper": -1.0}, "example 0: upper must be a finite number >= 0"),
        ([np.ones((1, 2))], [[1]], {"upper": np.inf}, "example 0: upper must be a finite number >= 0"),
        ([np.ones((1, 2))], [[1]], {"upper": [1.0, 1.0]}, "upper has 2 entries for 1 examples"),
        ([np.ones((1, 2))], [[1]], {"relaxed": "yes"}, "relaxed must be True or False"),
        (np.float64(3), [[1]], {}, "A must be a list with one entry per example"),
        (sp.csr_array(np.ones((1, 2))), [[1]], {}, "A must be a list"),
        ([None], [None], {}, "example 0: give A or A_eq"),
    ],
)
def test_bad_programs(A, b, settings, message):
    with pytest.raises(ValueError, match=message):
        LinearProgram(A, b, **settings)


def test_damaged_sparse_matrices():
    matrix = sp.csr_array(np.ones((2, 2)))
    matrix.indices = np.array([0, 7, 0, 1], dtype=np.int32)
    with pytest.raises(ValueError, match="example 0: A must be"):
        LinearProgram([matrix], [np.ones(2)])


def test_polytope():
    structure = random_programs(11)
    scores = np.random.default_rng(0).normal(size=structure.n_parts)
    assert structure.argmax(scores).value.sum() == pytest.approx(reference.maximum(structure, scores), abs=1e-7)


def test_small_costs_decide_between_outputs_of_large_scores():
    """Scores of a size that many outputs share: as in training with large features, where the losses decide."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        A, b = rng.integers(0, 3, size=(4, 3, 5)).astype(float), rng.integers(1, 4, size=(4, 3)).astype(float)
        structure = LinearProgram(list(A), list(b), relaxed=True)
        shared = np.concatenate([rows.T @ rng.integers(0, 3, size=3) for rows in A])
        costs, listed = rng.integers(-3, 4, size=20) / 8.0, vertices(structure)
        for size in (1.0, 1e4, 1e8, 1e12):
            scores = size * shared + costs
            points = structure.argmax(scores)
            assert (points.status == PointStatus.OK).all()
            for i, outputs in enumerate(listed):
                own = scores[5 * i : 5 * i + 5]
                terms = np.abs(outputs * own).sum(axis=1).max()
                assert points.value[i] == pytest.approx((outputs @ own).max(), abs=1e-14 * terms)
                assert points.value[i] == pytest.approx(points.z[5 * i : 5 * i + 5] @ own, abs=1e-14 * terms)
