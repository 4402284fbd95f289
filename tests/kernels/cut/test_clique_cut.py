"""Cuts with cliques: the reduction to minimum cuts, by enumeration and linear programs, and projections."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import certificate, grid, random_graphs
from oracles import reference
from oracles.enumeration import vertices
from problems import random_cliques

from maxmargin import _kernels
from maxmargin.structures import CliqueCut, Cut, PointStatus

SETTINGS = settings(deadline=None, derandomize=True, max_examples=40)


def random_batch(rng: np.random.Generator, examples: int, most: int = 7) -> CliqueCut:
    counts, edges, offsets = random_graphs(rng, examples, most)
    return CliqueCut(counts, edges, offsets, random_cliques(rng, counts, most=4))


def random_values(rng: np.random.Generator, structure: CliqueCut, kind: int) -> np.ndarray:
    """Numbers of any sign, with ties, far away, or with all cliques attracting more than edges."""
    values = rng.normal(0.2, 1.0, structure.n_parts)
    if kind == 1:
        values = np.round(2 * values) / 2
    elif kind == 2:
        values *= 20.0
    elif kind == 3:
        values[structure.starts[2] :] = 3.0
    return values


def blocks(height: int, width: int, side: int) -> list[list[int]]:
    """The nodes of a grid in squares, and in squares that lie across these."""
    at = np.arange(height * width).reshape(height, width)
    return [
        at[i : i + side, j : j + side].ravel().tolist()
        for first in (0, side // 2)
        for i in range(first, height, side)
        for j in range(first, width, side)
        if at[i : i + side, j : j + side].size > 1
    ]


def assert_feasible(structure: CliqueCut, z: np.ndarray) -> None:
    polytope = structure.polytope()
    assert np.all(z >= 0)
    assert np.all(polytope.ub @ z <= polytope.ub_rhs + 1e-15)


@SETTINGS
@given(seed=st.integers(0, 10**6), kind=st.integers(0, 3))
def test_argmax_equals_enumeration_where_all_attract(seed: int, kind: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, 4)
    scores = random_values(rng, structure, kind)
    edges, cliques = slice(structure.starts[1], structure.starts[2]), slice(structure.starts[2], None)
    scores[edges], scores[cliques] = -np.abs(scores[edges]), np.abs(scores[cliques])
    points = structure.argmax(scores)
    for i, table in enumerate(vertices(structure)):
        assert points.value[i] == pytest.approx((table @ scores[structure.parts_of([i])]).max(), abs=1e-11)
    np.testing.assert_array_equal(structure.encode(structure.decode(points.z)), points.z)
    assert not points.status.any()


@SETTINGS
@given(seed=st.integers(0, 10**6), kind=st.integers(0, 3))
def test_argmax_equals_linear_program_for_any_scores(seed: int, kind: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, 3)
    scores = random_values(rng, structure, kind)
    warm = rng.normal(size=structure.argmax(scores).warm.shape)
    for points in (structure.argmax(scores), structure.argmax(scores, warm=warm)):
        assert_feasible(structure, points.z)
        np.testing.assert_allclose(points.value, structure.by_example(scores * points.z), atol=1e-11)
        if structure.n_parts:
            assert points.value.sum() == pytest.approx(reference.maximum(structure, scores), abs=1e-7)


def regular_function(rng: np.random.Generator) -> np.ndarray:
    """Scores of three 0/1 labels whose restrictions to two of them are all regular."""
    while True:
        table = rng.normal(size=(2, 2, 2))
        pairs = [np.moveaxis(table, axis, 0) for axis in range(3)]
        if all((t[:, 0, 0] + t[:, 1, 1] >= t[:, 0, 1] + t[:, 1, 0]).all() for t in pairs):
            return table


def test_regular_functions_of_three_labels_are_parts_of_cliques() -> None:
    """Kolmogorov and Zabih: a product of all three labels, or of their complements, and regular pairs."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        triples = [tuple(rng.permutation(6)[:3].tolist()) for _ in range(3)]
        triples = list({frozenset(triple): triple for triple in triples}.values())
        tables = [regular_function(rng) for _ in triples]
        pairs = list(itertools.combinations(range(6), 2))
        node, edge, clique, constant = rng.normal(size=6), np.zeros(len(pairs)), np.zeros((len(triples), 2)), 0.0
        own = node.copy()
        for c, (triple, table) in enumerate(zip(triples, tables, strict=True)):
            product = (table * np.array([-1.0, 1.0])[np.indices((2, 2, 2))].prod(axis=0)).sum()
            ones = int(product >= 0)  # around the labels 0 the product of labels, around 1 that of complements
            t = table if ones else table[::-1, ::-1, ::-1]
            sign = 1.0 if ones else -1.0
            clique[c, ones] = abs(product)
            constant += t[0, 0, 0]
            alone = np.array([t[1, 0, 0], t[0, 1, 0], t[0, 0, 1]]) - t[0, 0, 0]
            shared = alone.copy()
            for a, b in itertools.combinations(range(3), 2):
                both = t[tuple(1 if axis in (a, b) else 0 for axis in range(3))] - alone[a] - alone[b] - t[0, 0, 0]
                assert both >= -1e-12
                # With u, v the labels or their complements u v = (u + v - |u - v|) / 2.
                shared[[a, b]] += 0.5 * both
                edge[pairs.index(tuple(sorted((triple[a], triple[b]))))] -= 0.5 * both
            own[list(triple)] += sign * shared
            constant += 0.0 if ones else shared.sum()
        structure = CliqueCut([6], pairs, [0, len(pairs)], [triples])
        points = structure.argmax(np.concatenate([own, edge, clique.ravel()]))
        best = max(
            node @ labels + sum(t[tuple(labels[list(c)])] for c, t in zip(triples, tables, strict=True))
            for labels in map(np.array, itertools.product((0, 1), repeat=6))
        )
        assert points.value[0] + constant == pytest.approx(best, abs=1e-10)


@SETTINGS
@given(seed=st.integers(0, 10**6))
def test_a_pair_is_an_edge(seed: int) -> None:
    """A clique of two nodes with equal scores for both labels is an edge, up to a constant."""
    rng = np.random.default_rng(seed)
    counts, edges, offsets = random_graphs(rng, 3, 6)
    cut = Cut(counts, edges, offsets)
    pairs = [[tuple(pair) for pair in edges[a:b].tolist()] for a, b in itertools.pairwise(offsets)]
    cliques = CliqueCut(counts, np.zeros((0, 2), dtype=int), [0] * 4, pairs)
    node, price = rng.normal(size=cut.starts[1]), rng.random(len(edges))
    one = cut.argmax(np.concatenate([node, -price]))
    two = cliques.argmax(np.concatenate([node, np.repeat(price, 2)]))
    np.testing.assert_allclose(
        two.value, one.value + np.array([price[a:b].sum() for a, b in itertools.pairwise(offsets)])
    )


def test_a_batch_without_cliques_is_a_cut() -> None:
    rng = np.random.default_rng(1)
    shape = random_graphs(rng, 5, 7)
    cut, cliques = Cut(*shape), CliqueCut(*shape, [[] for _ in range(5)])
    values = rng.normal(size=cut.n_parts)
    for method in ("argmax", "project"):
        one, two = getattr(cut, method)(values), getattr(cliques, method)(values)
        np.testing.assert_array_equal(one.z, two.z)
        np.testing.assert_array_equal(one.value, two.value)


@SETTINGS
@given(seed=st.integers(0, 10**6), kind=st.integers(0, 3))
def test_projection_equals_interior_point(seed: int, kind: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, 3)
    point = random_values(rng, structure, kind)
    points = structure.project(point, tol=1e-10)
    assert not points.status.any()
    assert_feasible(structure, points.z)
    np.testing.assert_allclose(
        points.value, 0.5 * structure.by_example((points.z - point) ** 2), rtol=1e-12, atol=1e-12
    )
    assert np.all(certificate(structure, point, points.z) <= 1e-9 * (1.0 + np.abs(point).max(initial=0.0)))
    if structure.n_parts:
        # An interior point stops at a gap of 1e-12, which is a distance of 1e-6 for points of size 1.
        far = 1.0 + np.abs(point).max()
        np.testing.assert_allclose(points.z, reference.project(structure, point), atol=1e-5 * far)
    warm = structure.project(point, tol=1e-10, warm=rng.normal(size=points.warm.shape))
    np.testing.assert_allclose(warm.z, points.z, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-9, 0.3, 3.0, 1e6])
def test_large_projection_is_certified_by_its_argmax(scale: float) -> None:
    """Squares of a grid, by Newton steps and by the accelerated gradient steps that finish where those fail."""
    rng = np.random.default_rng(3)
    structure = CliqueCut([900], grid(30, 30), [0, 1740], [blocks(30, 30, 6)])
    point = scale * rng.normal(size=structure.n_parts) + 0.3
    points = structure.project(point)
    assert points.status[0] == PointStatus.OK
    assert_feasible(structure, points.z)
    assert certificate(structure, point, points.z)[0] <= 1e-8 * (1.0 + np.abs(point - points.z).sum())
    if scale == 0.3:
        z, value, gap, status = np.empty(structure.n_parts), np.empty(1), np.empty(1), np.empty(1, dtype=np.int8)
        flow = np.zeros_like(points.warm)
        _kernels.cut_project(structure._plan, point, 1e-7, False, 200_000, flow, z, value, gap, status, 1)
        assert status[0] == PointStatus.OK
        np.testing.assert_allclose(z, points.z, atol=2e-7)
    moved = point + 0.1 * scale * rng.normal(size=structure.n_parts)
    cold, warm = structure.project(moved), structure.project(moved, warm=points.warm)
    np.testing.assert_allclose(cold.z, warm.z, atol=1e-7)


def test_projection_returns_feasible_points_unchanged() -> None:
    rng = np.random.default_rng(4)
    structure = CliqueCut([16], grid(4, 4), [0, 24], [blocks(4, 4, 2)])
    x, own = rng.random(16), structure.cliques
    y = np.abs(x[structure.edges[:, 0]] - x[structure.edges[:, 1]])
    least, most = (f.reduceat(x[own.ends], own.begin[:-1]) for f in (np.minimum, np.maximum))
    parts = np.stack([1.0 - most, least], axis=1) * rng.random((len(own), 2))
    point = np.concatenate([x, y + (1 - y) * rng.random(len(y)), parts.ravel()])
    for warm in (None, rng.normal(size=structure.project(point).warm.shape)):
        np.testing.assert_array_equal(structure.project(point, warm=warm).z, point)


def test_a_clique_by_hand() -> None:
    structure = CliqueCut([3], [], [0, 0], [[(2, 0, 1)]])
    assert [block.name for block in structure.blocks] == ["nodes", "edges", "cliques"]
    np.testing.assert_array_equal(structure.encode([[1, 1, 1]]), [1, 1, 1, 0, 1])
    np.testing.assert_array_equal(structure.encode([[0, 0, 0]]), [0, 0, 0, 1, 0])
    np.testing.assert_array_equal(structure.encode([[0, 1, 0]]), [0, 1, 0, 0, 0])
    # Two nodes would rather be 1, the third 0; together they follow the clique.
    assert structure.argmax(np.array([1.0, 1.0, -1.5, 0.0, 1.0])).value[0] == 2.0
    np.testing.assert_array_equal(structure.argmax(np.array([1.0, 1.0, -1.5, 0.0, 2.0])).z, [1, 1, 1, 0, 1])
    np.testing.assert_array_equal(structure.argmax(np.array([1.0, 1.0, -1.5, 2.5, 0.0])).z, [0, 0, 0, 1, 0])
    # p <= z_j: the three coordinates 0.2, 0.8 and the part 0.8 meet in their mean.
    np.testing.assert_allclose(structure.project(np.array([0.2, 0.9, 1.0, 0.0, 0.8])).z, [0.5, 0.9, 1.0, 0.0, 0.5])


def test_refused_warm_starts() -> None:
    structure = CliqueCut([3], [[0, 1]], [0, 1], [[(0, 1, 2)]])
    for wrong in (1, 8):
        with pytest.raises(ValueError, match=r"warm has shape .*\(7,\)"):
            structure.argmax(np.zeros(structure.n_parts), warm=np.zeros(wrong))


@pytest.mark.parametrize(
    ("cliques", "message"),
    [
        ([[], [(0, 3, 1)]], r"example 1 has a clique with nodes that it does not have, \(0, 3, 1\); number its nodes"),
        ([[], [(0, -1)]], "example 1 has a clique with nodes that it does not have"),
        ([[(0, 1)], [(0, 1, 0)]], "example 1 has a clique with the same node more than once"),
        ([[(1,)], []], r"example 0 has a clique of fewer than 2 nodes, \(1\); put what it says .* node's features"),
        ([[()], []], "example 0 has a clique without nodes"),
        ([[(0, 1), (1, 0)], []], "example 0 has a clique more than once"),
        ([[]], "cliques has 1 entries for 2 examples"),
        ([[], [3]], "example 1: its cliques must be a list of tuples"),
        (None, "cliques must be a list with, for each example"),
    ],
)
def test_refused_cliques_name_the_example(cliques: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CliqueCut([2, 3], [[0, 1]], [0, 1, 1], cliques)  # type: ignore[arg-type]


def test_kernel_refuses_what_it_could_not_read_safely() -> None:
    structure = CliqueCut([2, 3], [[0, 1], [1, 2]], [0, 1, 2], [[(0, 1)], [(0, 1, 2)]])
    for ordered in (False, True):
        none = np.zeros(0, dtype=np.int32)
        graphs = [*structure._wide._ordered()] if ordered else [*structure._wide._arrays(), none, none]
        own = list(structure._own())
        _kernels.CutBatch(*graphs, *own)
        for position, wrong in (
            (0, [0, 2, 4]),
            (0, [0, 3, 5]),
            (0, [0, 2]),
            (1, [0, 1, 1]),
            (1, [0, 2, 2]),
            (1, [0, 1, 99]),
            (2, [0, 1, 1]),
            (2, [0, 1, 3]),
            (2, [1, 1, 2]),
            (2, []),
        ):
            changed = [*own[:position], np.array(wrong, dtype=np.int64), *own[position + 1 :]]
            with pytest.raises(ValueError):
                _kernels.CutBatch(*graphs, *changed)
    backward = graphs[2].reshape(-1, 2)[:, ::-1].ravel().copy()
    with pytest.raises(ValueError, match="an edge of a clique must join"):
        _kernels.CutBatch(*graphs[:2], backward, *graphs[3:], *own)
    z, value, status = np.empty(11), np.empty(2), np.empty(2, dtype=np.int8)
    flow = np.zeros(structure._n_flows)
    with pytest.raises(ValueError, match="orders"):
        _kernels.cut_project(structure._batch, np.zeros(11), 1e-6, True, 1, flow, z, value, np.empty(2), status, 1)
