"""What associative networks have of their own; test_graph.py holds what they share with general graphs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import grid, one, random_batch
from oracles import reference
from oracles.enumeration import vertices

from maxmargin.structures import Associative, Cut, PairwiseGraph, PointStatus
from maxmargin.structures.networks import associative
from maxmargin.testing import check_structure

SETTINGS = settings(deadline=None, derandomize=True, max_examples=30)


def as_graph(structure: Associative, scores: np.ndarray) -> tuple[PairwiseGraph, np.ndarray]:
    """The same network with a full table for every edge."""
    k, split = structure.n_labels, structure.starts[1]
    tables = scores[split:].reshape(-1, k)[:, :, None] * np.eye(k)
    graph = PairwiseGraph(structure.n_nodes, structure.edges, structure.edge_offsets, k)
    return graph, np.concatenate([scores[:split], tables.ravel()])


@SETTINGS
@given(seed=st.integers(0, 10**6), labels=st.integers(1, 4))
def test_agrees_with_a_general_graph(seed: int, labels: int) -> None:
    """With edge scores >= 0 both relaxations have the same maximum."""
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, Associative, 3, labels)
    scores = rng.normal(size=structure.n_parts)
    scores[structure.starts[1] :] = np.abs(scores[structure.starts[1] :])
    graph, wide = as_graph(structure, scores)  # type: ignore[arg-type]
    np.testing.assert_allclose(structure.argmax(scores).value, graph.argmax(wide).value, atol=1e-8)


@SETTINGS
@given(seed=st.integers(0, 10**6), labels=st.integers(1, 4))
def test_negative_edge_scores_are_not_taken(seed: int, labels: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, Associative, 3, labels, most=5)
    scores = rng.normal(size=structure.n_parts)
    relaxed, points = structure.relax(scores)
    assert not relaxed.z[structure.starts[1] :][scores[structure.starts[1] :] < 0].any()
    if structure.n_parts:
        assert relaxed.value.sum() == pytest.approx(reference.maximum(structure, scores), abs=1e-8)
    np.testing.assert_allclose(points.value, structure.by_example(scores * points.z), atol=1e-9)
    for i, outputs in enumerate(vertices(structure)):
        best = (outputs @ scores[structure.parts_of([i])]).max()
        assert points.value[i] <= best + 1e-9
        assert relaxed.value[i] >= best - 1e-9


@SETTINGS
@given(seed=st.integers(0, 10**6))
def test_two_labels_are_exact_and_equal_a_cut(seed: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, Associative, 4, 2, most=7)
    split = structure.starts[1]
    nodes, edges = rng.normal(size=(split // 2, 2)), np.abs(rng.normal(size=(len(structure.edges), 2)))
    scores = np.concatenate([nodes.ravel(), edges.ravel()])
    # e0 (1-x)(1-y) + e1 x y = e0 + x (e1 - e0) / 2 + y (e1 - e0) / 2 - (e0 + e1) / 2 |x - y|
    node = nodes[:, 1] - nodes[:, 0]
    first = np.repeat(np.cumsum(structure.n_nodes) - structure.n_nodes, np.diff(structure.edge_offsets))
    ends = structure.edges + first[:, None]
    np.add.at(node, ends.ravel(), np.repeat((edges[:, 1] - edges[:, 0]) / 2, 2))
    cut = Cut(structure.n_nodes, structure.edges, structure.edge_offsets)
    best = cut.argmax(np.concatenate([node, -edges.sum(axis=1) / 2]))
    constant = structure.by_example(np.concatenate([(nodes * [1, 0]).ravel(), (edges * [1, 0]).ravel()]))
    relaxed, points = structure.relax(scores)
    np.testing.assert_allclose(relaxed.value, best.value + constant, atol=1e-9)
    np.testing.assert_allclose(points.value, relaxed.value, atol=1e-9)
    assert not points.status.any()
    assert not structure.relaxed
    assert random_batch(rng, Associative, 1, 3).relaxed


@SETTINGS
@given(seed=st.integers(0, 10**6), labels=st.integers(1, 2), k=st.integers(1, 6), digits=st.integers(0, 3))
def test_the_k_best_of_two_labels_are_those_of_all_labelings(seed: int, labels: int, k: int, digits: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, Associative, 4, labels, most=5)
    scores = np.round(rng.normal(size=structure.n_parts), digits)  # with ties now and then
    scores[structure.starts[1] :] = np.abs(scores[structure.starts[1] :])
    ranks = structure.k_best(scores, k)
    np.testing.assert_allclose(ranks[0].value, structure.argmax(scores).value, atol=1e-9)
    for i, outputs in enumerate(vertices(structure)):
        worth = np.sort(outputs @ scores[structure.parts_of([i])])[::-1]
        seen = []
        for r, points in enumerate(ranks):
            if r >= len(worth):
                assert points.status[i] == PointStatus.ABSENT
                assert points.value[i] == -np.inf
                continue
            z = points.z[structure.parts_of([i])]
            assert points.status[i] == PointStatus.OK
            assert points.value[i] == pytest.approx(worth[r], abs=1e-9)
            assert scores[structure.parts_of([i])] @ z == pytest.approx(worth[r], abs=1e-9)
            assert (outputs == z).all(axis=1).any()
            assert not any((z == other).all() for other in seen)
            seen.append(z)


def test_the_k_best_of_two_labels_keep_the_contract() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3):
        check_structure(random_batch(rng, Associative, 3, 2), rng, k=4)
    structure = one(Associative, 2, np.array([[0, 1]]), 2)
    for bad in (np.nan, np.inf, -np.inf):
        for part in range(structure.n_parts):
            scores = np.zeros(structure.n_parts)
            scores[part] = bad
            assert [points.status[0] for points in structure.k_best(scores, 2)] == [PointStatus.NONFINITE]
    negative = structure.k_best(np.array([0.0, 1.0, 0.0, 1.0, 0.0, -5.0]), 2)
    assert [points.value[0] for points in negative] == [2.0, 1.0]  # as argmax has it: negative edges are not taken
    with pytest.raises(ValueError, match="k best labelings of an associative network are not available"):
        one(Associative, 2, np.array([[0, 1]]), 3).k_best(np.zeros(9), 2)
    with pytest.raises(ValueError, match="k must be an integer >= 1"):
        one(Associative, 2, np.array([[0, 1]]), 1).k_best(np.zeros(3), 0)


def test_expansion_moves_beat_changes_of_single_nodes() -> None:
    """A strip that prefers its second label weakly at every node, and strongly to be of one color."""
    nodes = np.zeros((30, 3))
    nodes[:, 1] = 0.1
    nodes[::7, 2] = 0.3
    edges = np.stack([np.arange(29), np.arange(1, 30)], axis=1)
    structure = one(Associative, 30, edges, 3)
    points = structure.predict(np.concatenate([nodes.ravel(), np.full(87, 2.0)]))
    np.testing.assert_array_equal(structure.decode(points.z)[0], 1)
    assert points.status[0] == PointStatus.OK


@pytest.mark.parametrize("labels", [3, 6])
def test_labelings_of_grids_are_near_the_bound_and_never_worse_than_rounding(labels: int) -> None:
    rng = np.random.default_rng(labels)
    structure = one(Associative, 400, grid(20, 20), labels)
    scores = np.concatenate([rng.normal(size=400 * labels), 0.7 * rng.random(len(structure.edges) * labels)])
    relaxed, points = structure.relax(scores)
    rounded = structure.encode(structure.decode(relaxed.z)).dense()
    assert points.value[0] >= scores @ rounded - 1e-9
    assert relaxed.value[0] >= points.value[0] - 1e-9
    assert points.value[0] >= 0.98 * relaxed.value[0]
    # No expansion move improves it: neither do changes of single nodes, which are such moves.
    found = structure.decode(points.z)[0]
    for node in range(0, 400, 37):
        for label in range(labels):
            moved = found.copy()
            moved[node] = label
            assert scores @ structure.encode([moved]).dense() <= points.value[0] + 1e-9


def test_large_networks_are_predicted_from_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without proximal steps the bound is higher, and the labelings are as good to a part in a thousand."""
    rng = np.random.default_rng(4)
    structure = Associative([600, 600], np.concatenate([grid(20, 30)] * 2), [0, 1150, 2300], 4)
    strength = np.repeat([0.3, 1.0], 1150 * 4)
    scores = np.concatenate([rng.normal(size=1200 * 4), strength * rng.random(2300 * 4)])
    relaxed, best = structure.relax(scores)
    monkeypatch.setattr(associative, "PREDICTED_PARTS", 100)
    points = structure.predict(scores)
    np.testing.assert_array_equal(structure.encode(structure.decode(points.z)).dense(), points.z)
    np.testing.assert_allclose(points.value, structure.by_example(scores * points.z), rtol=1e-12)
    assert np.all(points.value <= relaxed.value + 1e-9 * relaxed.value)
    assert np.all(points.value >= 0.999 * best.value)
    bound = structure._maximum(scores, None, np.ones(2, dtype=np.bool_)).value
    assert np.all(bound >= relaxed.value - 1e-9 * relaxed.value)
    np.testing.assert_array_equal(points.status == PointStatus.OK, bound - points.value <= structure._certain(scores))
