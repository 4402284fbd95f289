from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import certificate, grid, random_graphs
from oracles import reference
from oracles.enumeration import vertices
from oracles.structures import cut as twin
from scipy.sparse.csgraph import maximum_flow
from scipy.spatial import Delaunay

from maxmargin import _kernels
from maxmargin.structures.base import PointStatus
from maxmargin.structures.cuts.cut import Cut

SETTINGS = settings(deadline=None, derandomize=True, max_examples=40)


def random_batch(rng: np.random.Generator, examples: int, most: int = 7) -> Cut:
    return Cut(*random_graphs(rng, examples, most))


def random_values(rng: np.random.Generator, structure: Cut, kind: int) -> np.ndarray:
    nodes = structure.starts[1]
    values = np.concatenate([rng.normal(0.5, 1.0, nodes), rng.normal(-0.1, 0.4, structure.n_parts - nodes)])
    if kind == 1:
        values = np.round(2 * values) / 2
    elif kind == 2:
        values[nodes:] = -0.2
    elif kind == 3:
        values[nodes:] = -np.abs(values[nodes:])
    elif kind == 4:
        values[nodes:] = 0.0
    elif kind == 5:
        values[nodes:] *= 5.0
    return values


def mesh(rng: np.random.Generator, nodes: int) -> np.ndarray:
    triangles = Delaunay(rng.random((nodes, 2))).simplices
    edges = np.unique(
        np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [0, 2]]])), axis=0
    )
    return edges[np.sort(rng.permutation(len(edges))[: int(2.4 * nodes)])].astype(np.int64)


def one(nodes: int, edges: np.ndarray) -> Cut:
    return Cut([nodes], edges, [0, len(edges)])


def assert_feasible(structure: Cut, z: np.ndarray) -> None:
    nodes = structure.starts[1]
    x, y = z[:nodes], z[nodes:]
    first = np.repeat(structure.blocks[0].offsets[:-1], np.diff(structure.blocks[1].offsets))
    difference = np.abs(x[structure.edges[:, 0] + first] - x[structure.edges[:, 1] + first])
    assert np.all((x >= 0) & (x <= 1))
    assert np.all((y >= difference) & (y <= 1))


# --- argmax ------------------------------------------------------------------------------------------------------


@SETTINGS
@given(seed=st.integers(0, 10**6), kind=st.integers(0, 5))
def test_argmax_equals_enumeration_for_attractive_edges(seed: int, kind: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, 4)
    nodes = structure.starts[1]
    scores = random_values(rng, structure, kind)
    scores[:nodes] -= 0.5
    scores[nodes:] = np.minimum(scores[nodes:], 0.0)
    points = structure.argmax(scores)
    node_scores = np.split(scores[:nodes], structure.blocks[0].offsets[1:-1])
    edge_scores = np.split(scores[nodes:], structure.blocks[1].offsets[1:-1])
    for example, table in enumerate(vertices(structure)):
        best = (table @ np.concatenate([node_scores[example], edge_scores[example]])).max()
        assert points.value[example] == pytest.approx(best, abs=1e-12)
    np.testing.assert_allclose(points.value, structure.by_example(scores * points.z), atol=1e-12)
    np.testing.assert_array_equal(structure.encode(structure.decode(points.z)), points.z)
    assert not points.status.any()


@SETTINGS
@given(seed=st.integers(0, 10**6), kind=st.integers(0, 5))
def test_argmax_equals_linear_program_for_any_scores(seed: int, kind: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, 3)
    scores = random_values(rng, structure, kind) - 0.2
    warm = rng.normal(size=len(structure.edges))
    for points in (structure.argmax(scores), structure.argmax(scores, warm=warm)):
        assert_feasible(structure, points.z)
        assert points.value.sum() == pytest.approx(reference.maximum(structure, scores), abs=1e-8)


def test_argmax_by_blocking_flows_has_the_same_value() -> None:
    rng = np.random.default_rng(3)
    structure = one(600, mesh(rng, 600))
    scores = np.concatenate([rng.normal(size=600), -0.7 * rng.random(len(structure.edges))])
    points = structure.argmax(scores)
    for limit in (0, 1):
        z, value, status = np.empty(structure.n_parts), np.empty(1), np.empty(1, dtype=np.int8)
        flow = np.zeros(len(structure.edges))
        _kernels.cut_argmax(structure._batch, scores, limit, flow, z, value, status, 1)
        assert value[0] == pytest.approx(points.value[0], rel=1e-13)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e8])
def test_argmax_is_certified_by_its_flow(scale: float) -> None:
    """Weak duality: a flow within the capacities bounds the maximum by the sum of the positive node excesses."""
    rng = np.random.default_rng(11)
    edges = grid(60, 50)
    structure = one(3000, edges)
    image = np.zeros((60, 50))
    image[15:40, 10:35] = 1.0
    scores = scale * np.concatenate([(image - 0.5 + rng.normal(size=image.shape)).ravel(), -rng.random(len(edges))])
    warm = None
    for _ in range(3):
        points = structure.argmax(scores, warm=warm)
        assert np.all(np.abs(points.warm) <= -scores[3000:] * (1 + 1e-12))
        excess = (
            scores[:3000] - np.bincount(edges[:, 0], points.warm, 3000) + np.bincount(edges[:, 1], points.warm, 3000)
        )
        bound = np.maximum(excess, 0).sum()
        assert points.value[0] <= bound + 1e-13 * np.abs(scores).sum()
        assert points.value[0] == pytest.approx(bound, abs=1e-13 * np.abs(scores).sum())
        warm = points.warm
        scores = scores + 0.1 * scale * np.concatenate([rng.normal(size=3000), -rng.random(len(edges))])


def test_argmax_with_ties_and_equal_scores() -> None:
    structure = one(9, grid(3, 3))
    for node, edge in ((0.0, 0.0), (1.0, -1.0), (-1.0, -1.0), (0.0, -1.0), (1.0, 1.0)):
        scores = np.concatenate([np.full(9, node), np.full(12, edge)])
        points = structure.argmax(scores)
        assert points.value[0] == max(0.0, 9 * node) + max(0.0, 12 * edge)
        np.testing.assert_array_equal(points.z, structure.argmax(scores).z)


def image_scores(rng: np.random.Generator, height: int, width: int, noise: int, price: int) -> np.ndarray:
    """Integer scores of a noisy disc on a 4-connected grid."""
    rows, columns = np.mgrid[:height, :width]
    disc = np.hypot(rows - height / 2, columns - width / 3) < height / 3
    nodes = np.where(disc, 20, -20) + rng.integers(-noise, noise + 1, size=disc.shape)
    edges = rng.integers(0, price + 1, size=len(grid(height, width)))
    return np.concatenate([nodes.ravel(), -edges]).astype(np.float64)


def maximum_by_scipy(structure: Cut, scores: np.ndarray) -> float:
    """The maximum of integer scores, by another implementation of maximum flows."""
    nodes = structure.starts[1]
    j, k = structure.edges.T
    inner, source, sink = np.arange(nodes), np.full(nodes, nodes), np.full(nodes, nodes + 1)
    ends = np.concatenate([j, k, source, inner]), np.concatenate([k, j, inner, sink])
    node, edge = scores[:nodes], -scores[nodes:]
    capacity = np.concatenate([edge, edge, np.maximum(node, 0), np.maximum(-node, 0)]).astype(np.int32)
    flow = maximum_flow(sp.csr_array((capacity, ends), shape=(nodes + 2, nodes + 2)), nodes, nodes + 1)
    return float(np.maximum(node, 0).sum() - flow.flow_value)


@pytest.mark.parametrize(("noise", "price"), [(10, 5), (60, 15), (200, 60)])
def test_argmax_of_a_large_grid_equals_scipy_cold_and_warm(noise: int, price: int) -> None:
    rng = np.random.default_rng(noise)
    structure = one(9000, grid(90, 100))
    scores = image_scores(rng, 90, 100, noise, price)
    cold = structure.argmax(scores)
    assert cold.value[0] == maximum_by_scipy(structure, scores)
    changed = scores + np.concatenate([rng.integers(-3, 4, size=9000), np.zeros(len(structure.edges))])
    other = image_scores(rng, 90, 100, noise, price)
    seeded = scores.copy()
    seeded[3030:3090], seeded[6000:6020] = -1e4, 1e4
    for values in (scores, changed, other, seeded):
        again = structure.argmax(values, warm=cold.warm)
        assert again.value[0] == maximum_by_scipy(structure, values)
        np.testing.assert_array_equal(again.z, structure.argmax(values).z)  # the least of the best labelings
    assert not again.z[3030:3090].any()
    assert again.z[6000:6020].all()


def test_argmax_from_any_flow_gives_the_same_labels() -> None:
    rng = np.random.default_rng(5)
    structure = one(5000, grid(50, 100))
    scores = np.concatenate([rng.normal(size=5000), -rng.random(len(structure.edges))])
    cold = structure.argmax(scores)
    for size in (1e-3, 0.1, 10.0):
        warm = structure.argmax(scores, warm=size * rng.normal(size=len(structure.edges)))
        np.testing.assert_array_equal(warm.z, cold.z)


# --- projection --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.02, 0.5])
def test_projection_of_a_large_grid_keeps_its_tolerance(scale: float) -> None:
    """Graphs of more than 2^15 nodes begin with accelerated steps; a tight tolerance ends with Newton steps."""
    rng = np.random.default_rng(7)
    structure = one(33600, grid(168, 200))
    scores = image_scores(rng, 168, 200, 40, 15) / 20
    point = np.concatenate([(scores[:33600] > 0).astype(np.float64), np.zeros(len(structure.edges))]) + scale * scores
    exact = structure.project(point, tol=1e-7)
    warm = None
    for tol in (0.3, 0.01, 1e-4):
        points = structure.project(point, tol=tol, warm=warm)
        assert not points.status.any()
        assert_feasible(structure, points.z)
        assert np.linalg.norm(points.z - exact.z) <= tol + 1e-7
        warm = points.warm
    residual = point - exact.z
    assert structure.argmax(residual).value[0] - residual @ exact.z <= 1e-6


@SETTINGS
@given(seed=st.integers(0, 10**6), kind=st.integers(0, 5))
def test_projection_equals_interior_point_and_slow_twin(seed: int, kind: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, 3)
    point = random_values(rng, structure, kind)
    points = structure.project(point, tol=1e-10)
    assert not points.status.any()
    assert_feasible(structure, points.z)
    np.testing.assert_allclose(points.value, 0.5 * structure.by_example((points.z - point) ** 2), atol=1e-12)
    if structure.n_parts:
        # An interior point stops at a gap of 1e-12, which is a distance of 1e-6.
        np.testing.assert_allclose(points.z, reference.project(structure, point), atol=5e-6)
    np.testing.assert_allclose(points.z, twin.project(structure, point), atol=2e-8)
    assert np.all(certificate(structure, point, points.z) <= 1e-8)
    warm = structure.project(point, tol=1e-10, warm=rng.normal(size=len(structure.edges)))
    np.testing.assert_allclose(points.z, warm.z, atol=1e-9)


@pytest.mark.parametrize("name", ["mesh", "grid", "complete", "star", "path"])
@pytest.mark.parametrize("kind", range(6))
def test_large_projection_is_certified_by_its_argmax(name: str, kind: int) -> None:
    rng = np.random.default_rng(kind)
    nodes, edges = {
        "mesh": (1200, mesh(rng, 1200)),
        "grid": (900, grid(30, 30)),
        "complete": (12, np.array(list(itertools.combinations(range(12), 2)))),
        "star": (300, np.stack([np.zeros(299, dtype=np.int64), np.arange(1, 300)], axis=1)),
        "path": (800, np.stack([np.arange(799), np.arange(1, 800)], axis=1)),
    }[name]
    structure = one(nodes, edges)
    point = random_values(rng, structure, kind)
    points = structure.project(point, tol=1e-10)
    assert points.status[0] == PointStatus.OK
    assert_feasible(structure, points.z)
    # The certificate is linear in the distance: at most |a - z| tol and rounding.
    assert certificate(structure, point, points.z)[0] <= 1e-10 * (10 + np.abs(point - points.z).sum())


def test_projection_stops_at_the_given_gap_cold_and_warm() -> None:
    rng = np.random.default_rng(5)
    structure = one(800, mesh(rng, 800))
    point = random_values(rng, structure, 3) * 0.3
    exact = structure.project(point, tol=1e-11)
    for tol in (1e-2, 1e-4, 1e-6, 1e-8):
        cold = structure.project(point, tol=tol)
        warm = structure.project(point, tol=tol, warm=exact.warm)
        assert np.linalg.norm(cold.z - exact.z) <= tol + 1e-10
        assert np.linalg.norm(warm.z - exact.z) <= tol + 1e-10


def test_accelerated_gradient_fallback_agrees() -> None:
    rng = np.random.default_rng(6)
    structure = one(300, mesh(rng, 300))
    point = random_values(rng, structure, 3) * 0.3
    z, value, gap, status = np.empty(structure.n_parts), np.empty(1), np.empty(1), np.empty(1, dtype=np.int8)
    flow = np.zeros(len(structure.edges))
    _kernels.cut_project(structure._plan, point, 1e-7, False, 100_000, flow, z, value, gap, status, 1)
    assert status[0] == PointStatus.OK
    assert gap[0] <= 1e-13
    np.testing.assert_allclose(z, structure.project(point, tol=1e-7).z, atol=2e-7)
    _kernels.cut_project(structure._plan, point, 1e-7, False, 10, np.zeros_like(flow), z, value, gap, status, 1)
    assert status[0] == PointStatus.INEXACT
    assert_feasible(structure, z)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e4, 1e8])
def test_projection_of_tiny_and_huge_points(scale: float) -> None:
    rng = np.random.default_rng(8)
    structure = one(200, mesh(rng, 200))
    for kind in range(6):
        point = scale * (random_values(rng, structure, kind) - 0.3)
        points = structure.project(point)
        assert points.status[0] == PointStatus.OK
        assert_feasible(structure, points.z)
        assert certificate(structure, point, points.z)[0] <= 1e-7 + 1e-13 * np.abs(point).sum()


def test_projection_returns_feasible_points_unchanged() -> None:
    rng = np.random.default_rng(9)
    structure = one(100, mesh(rng, 100))
    x = rng.random(100)
    y = np.abs(x[structure.edges[:, 0]] - x[structure.edges[:, 1]])
    point = np.concatenate([x, y + (1 - y) * rng.random(len(y))])
    for warm in (None, rng.normal(size=len(y))):
        points = structure.project(point, warm=warm)
        np.testing.assert_array_equal(points.z, point)
        assert points.value[0] == 0.0


def test_projection_without_edges_is_clipping() -> None:
    structure = Cut([3, 0, 1], np.zeros((0, 2), dtype=np.int64), [0, 0, 0, 0])
    point = np.array([-1.0, 0.4, 2.0, 7.0])
    np.testing.assert_array_equal(structure.project(point).z, [0.0, 0.4, 1.0, 1.0])
    np.testing.assert_array_equal(structure.argmax(point).z, [0.0, 1.0, 1.0, 1.0])


# --- batches -----------------------------------------------------------------------------------------------------


def test_calls_leave_no_trace_in_later_calls() -> None:
    rng = np.random.default_rng(13)
    small, large = one(50, mesh(rng, 50)), one(700, mesh(rng, 700))
    a, b = random_values(rng, small, 3), random_values(rng, large, 0)
    first = small.project(a), small.argmax(a - 0.4)
    large.project(b)
    large.argmax(b - 0.4)
    again = small.project(a), small.argmax(a - 0.4)
    for left, right in zip(first, again, strict=True):
        np.testing.assert_array_equal(left.z, right.z)
        np.testing.assert_array_equal(left.warm, right.warm)


def test_warm_starts_follow_a_moving_target() -> None:
    rng = np.random.default_rng(14)
    structure = one(500, mesh(rng, 500))
    gold = structure.encode([rng.integers(0, 2, 500)]).dense()
    z, warm = gold, None
    for _ in range(15):
        scores = np.concatenate([rng.normal(size=500), -0.5 * rng.random(len(structure.edges))])
        point = z + 0.05 * scores
        points = structure.project(point, tol=1e-8, warm=warm)
        assert points.status[0] == PointStatus.OK
        np.testing.assert_allclose(points.z, structure.project(point, tol=1e-8).z, atol=2e-8)
        z, warm = points.z, points.warm


def test_nonfinite_warm_start_is_ignored() -> None:
    structure = one(4, grid(2, 2))
    values = np.array([0.9, -0.2, 0.3, 0.8, -0.1, -0.2, -0.1, -0.3])
    warm = np.array([np.nan, np.inf, -np.inf, 1e300])
    np.testing.assert_allclose(structure.project(values, warm=warm).z, structure.project(values).z, atol=1e-8)
    assert structure.argmax(values, warm=warm).value == pytest.approx(structure.argmax(values).value)


# --- labels and refusals -----------------------------------------------------------------------------------------


def test_encode_and_decode_are_inverse() -> None:
    rng = np.random.default_rng(12)
    structure = random_batch(rng, 6)
    labels = [rng.integers(0, 2, count) for count in structure.n_nodes]
    z = structure.encode(labels).dense()
    assert_feasible(structure, z)
    for given_labels, decoded in zip(labels, structure.decode(z), strict=True):
        np.testing.assert_array_equal(given_labels, decoded)
        assert decoded.dtype == np.int64
    assert structure.variable_parts == slice(0, structure.starts[1])
    assert not structure.categorical


def test_refused_labels_name_the_example() -> None:
    structure = Cut([2, 3], [[0, 1], [1, 2]], [0, 1, 2])
    with pytest.raises(ValueError, match="example 1, node 2 has the label 2; give 0 or 1"):
        structure.encode([[0, 1], [0, 1, 2]])
    with pytest.raises(ValueError, match=r"example 0 have shape \(3,\).*each of its 2 nodes"):
        structure.encode([[0, 1, 1], [0, 1, 1]])
    with pytest.raises(ValueError, match="example 1: labels must be 0 or 1 for each node"):
        structure.encode([[0, 1], ["a", "b", "c"]])
    with pytest.raises(ValueError, match="example 0, node 1 has the label nan"):
        structure.encode([[0, np.nan], [0, 1, 1]])
    with pytest.raises(ValueError, match="give one per example"):
        structure.encode([[0, 1]])


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 1], [0, 3]], r"example 1, which has 3 nodes, has the edge \(0, 3\); number its nodes from 0"),
        ([[0, 1], [-1, 0]], r"example 1.*\(-1, 0\)"),
        ([[0, 1], [2, 2]], r"example 1.*self-loop \(2, 2\); leave it out"),
    ],
)
def test_refused_edges_name_the_example(edges: list[list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Cut([2, 3], edges, [0, 1, 2])


def test_refused_graphs() -> None:
    with pytest.raises(ValueError, match=r"example 1.*more than once the edge \(1, 0\); keep one"):
        Cut([2, 3], [[0, 1], [0, 1], [1, 0]], [0, 1, 3])
    with pytest.raises(ValueError, match="example 0: n_nodes must be at least 0, got -1"):
        Cut([-1], np.zeros((0, 2), dtype=np.int64), [0, 0])
    with pytest.raises(ValueError, match="one more than examples"):
        Cut([2], [[0, 1]], [0])
    with pytest.raises(ValueError, match="rise from 0 to the number of edges, 1"):
        Cut([2], [[0, 1]], [0, 2])
    with pytest.raises(ValueError, match="edges must be integers"):
        Cut([2], [[0.0, 1.0]], [0, 1])
    with pytest.raises(ValueError, match="shape"):
        Cut([2], [0, 1], [0, 1])
    structure = Cut([2], [[0, 1]], [0, 1])
    with pytest.raises(ValueError, match="warm has shape"):
        structure.argmax(np.zeros(3), warm=np.zeros(2))


def test_kernel_refuses_what_it_could_not_read_safely() -> None:
    structure = Cut([2, 3], [[0, 1], [1, 2]], [0, 1, 2])
    plan = list(structure._ordered())
    for position, wrong in (
        (0, np.array([0, 2, 1], dtype=np.int64)),
        (1, np.array([0, 1], dtype=np.int64)),
        (2, np.array([0, 1, 1, 3], dtype=np.int32)),
        (2, np.array([0, 1], dtype=np.int32)),
    ):
        with pytest.raises(ValueError):
            _kernels.CutBatch(*plan[:position], wrong, *plan[position + 1 : 3])
    for position in (3, 4):
        for last in (-1, 9):
            wrong = np.concatenate([plan[position][:-1], np.array([last], dtype=np.int32)])
            with pytest.raises(ValueError, match="permutation"):
                _kernels.CutBatch(*plan[:position], wrong, *plan[position + 1 :])

    z, value, status = np.empty(7), np.empty(2), np.empty(2, dtype=np.int8)
    rest = np.zeros(2), z, value, np.empty(2), status, 1
    with pytest.raises(ValueError, match="orders"):
        _kernels.cut_project(_kernels.CutBatch(*plan[:3]), np.zeros(7), 1e-6, True, 1, *rest)
    for tol in (-1.0, np.nan):
        with pytest.raises(ValueError, match="tol"):
            _kernels.cut_project(structure._plan, np.zeros(7), tol, True, 1, *rest)
    for scores, flow in ((6, 2), (7, 1)):
        with pytest.raises(ValueError, match="one entry per"):
            _kernels.cut_argmax(structure._batch, np.zeros(scores), 1, np.zeros(flow), z, value, status, 1)


def test_kernel_keeps_graphs_of_its_own() -> None:
    structure = Cut([2, 3], [[0, 1], [1, 2]], [0, 1, 2])
    arrays = [array.copy() for array in structure._ordered()]
    batch = _kernels.CutBatch(*arrays)
    for array in arrays:
        array[:] = 1 << 20
    point = np.random.default_rng(0).normal(size=7)
    z, value, gap, status = np.empty(7), np.empty(2), np.empty(2), np.empty(2, dtype=np.int8)
    _kernels.cut_project(batch, point, 1e-8, True, 200_000, np.zeros(2), z, value, gap, status, 1)
    np.testing.assert_array_equal(z, structure.project(point).z)
