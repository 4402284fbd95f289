"""Pieces of training graphs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.encoders.data.inputs import Graph
from maxmargin.tasks.segmentation.learning import pieces
from maxmargin.tasks.segmentation.learning.pieces import TrainingGraph, drawn_pieces


def grid(height: int, width: int, seed: int = 0) -> TrainingGraph:
    rng = np.random.default_rng(seed)
    index = np.arange(height * width).reshape(height, width)
    across = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], axis=1)
    edges = np.concatenate([across, np.stack([index[:-1].ravel(), index[1:].ravel()], axis=1)])
    n = height * width
    # The features name nodes and edges, so that pieces can be compared with the whole.
    graph = Graph(np.arange(n)[:, None] + 0.0, edges, edges.astype(float))
    return TrainingGraph(graph, rng.integers(0, 3, n), rng.uniform(0.5, 1.0, n))


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 5), st.integers(0, 100))
def test_parts_have_the_nodes_and_inner_edges_of_the_whole(height, width, parts, seed):
    whole = grid(height, width)
    number = np.random.default_rng(seed).integers(0, parts, len(whole.labels))
    seen, inner = [], set()
    for part in whole.split(number):
        names = np.asarray(part.graph.node_features)[:, 0].astype(int)
        assert len(set(number[names])) == 1
        np.testing.assert_array_equal(part.labels, whole.labels[names])
        np.testing.assert_array_equal(part.cost, whole.cost[names])
        np.testing.assert_array_equal(names[np.asarray(part.graph.edges)], part.graph.edge_features)
        seen += names.tolist()
        inner |= set(map(tuple, np.asarray(part.graph.edge_features).astype(int).tolist()))
    assert sorted(seen) == list(range(len(whole.labels)))
    edges = np.asarray(whole.graph.edges)
    assert inner == set(map(tuple, edges[number[edges[:, 0]] == number[edges[:, 1]]].tolist()))


def test_pieces_are_small_and_keep_most_edges(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 100)
    whole = grid(40, 30)
    found = whole.pieces()
    assert max(len(one.labels) for one in found) == 100
    assert sum(len(one.labels) for one in found) == 1200
    assert sum(len(one.graph.edges) for one in found) > 0.6 * len(whole.graph.edges)


def test_pieces_are_drawn_up_to_a_number_of_nodes():
    drawn = drawn_pieces([grid(40, 40, seed) for seed in range(4)], 1000, 0)
    assert 1000 <= sum(len(one.labels) for one in drawn) <= 1000 + pieces.PIECE
    everything = drawn_pieces([grid(10, 10)], 10**6, 0)
    assert sum(len(one.labels) for one in everything) == 100


def test_parts_without_cost_are_left_out():
    whole = grid(4, 4)
    number = np.arange(16) // 8
    free = TrainingGraph(whole.graph, whole.labels, np.where(number == 0, 0.0, 1.0))
    assert [len(one.labels) for one in free.split(number)] == [8]
