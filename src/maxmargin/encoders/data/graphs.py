"""Lists of :class:`Graph` to checked node features, edges and edge features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin._sparse import sp
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.inputs import Graph
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.structures.trees.cliques import read_cliques


@dataclass(frozen=True, eq=False)
class Graphs:
    """Graphs of all examples, checked.

    Attributes:
        inputs: the examples as given.
        nodes: their node features.
        edge_lists: the edges of each example, ``(n_edges, 2)``.
        edge_features: for each example its matrix of edge features, or None.
    """

    inputs: list[Graph]
    nodes: checks.Rows
    edge_lists: list[IntArray]
    edge_features: list[Any]

    @cached_property
    def edges(self) -> IntArray:
        """The edges of all examples, nodes counted within each."""
        return np.concatenate(self.edge_lists)

    @cached_property
    def edge_offsets(self) -> IntArray:
        """Where the edges of each example begin."""
        return offsets_of([len(edges) for edges in self.edge_lists])

    @cached_property
    def edge_rows(self) -> checks.Rows:
        """The edge features of all examples; each must have some."""
        return checks.Rows(self.edge_features, "edge features")

    def with_ones(self) -> Graphs:
        """The same with the one edge feature 1 where none were given."""
        pairs = zip(self.edge_lists, self.edge_features, strict=True)
        return replace(self, edge_features=[np.ones((len(own), 1)) if f is None else f for own, f in pairs])

    def optional_edge_rows(self) -> checks.Rows | None:
        """The edge features of all examples, or None where there are none."""
        return all_or_none(self.edge_features, "graphs")

    def require_attraction(self, meaning: str, remedy: str) -> None:
        """ValueError where an edge feature is negative.

        ``meaning`` says what edge features stand for, ``remedy`` what to do about negative ones.
        """
        stacked = self.edge_rows.matrix
        values = stacked.data if sp.issparse(stacked) else stacked
        if values.size and values.min() < 0:
            index = next(i for i, found in enumerate(self.edge_features) if found.shape[0] and found.min() < 0)
            raise ValueError(f"example {index}: edge features must be >= 0 ({meaning}); {remedy}")


def parse(X: list[Any], *, labels: str = "") -> Graphs:
    """Check a list of :class:`Graph`.

    ``labels``: why labels per node, and cliques, are refused; empty where they are not.
    """
    edges: list[IntArray] = []
    features: list[Any] = []
    for index, graph in enumerate(X):
        if not isinstance(graph, Graph):
            raise ValueError(
                f"example {index}: X must be a list of mm.Graph(node_features, edges, edge_features), "
                f"got {type(graph).__name__}"
            )
        if labels and graph.labels is not None:
            raise ValueError(f"example {index}: labels per node are for TreeSVM; {labels}")
        if labels and (graph.cliques is not None or graph.clique_features is not None):
            raise ValueError(f"example {index}: cliques are for TreeSVM; leave them out")
        found = checks.pairs(graph.edges, index, "edges", "(n_edges, 2)")
        features.append(None)
        if graph.edge_features is not None:
            features[-1] = checks.matrix(graph.edge_features, index, "edge features")
            checks.one_per_edge(found, index, features[-1].shape[0], "edge features")
        edges.append(found)
    nodes = checks.rows([graph.node_features for graph in X], "node features", "a graph needs at least one node")
    return Graphs(X, nodes, edges, features)


def all_or_none(features: list[Any], what: str) -> checks.Rows | None:
    """Edge features of every example, or None where there are none; ValueError where only some examples have them."""
    given = [found for found in features if found is not None]
    if given and len(given) != len(features):
        without = next(index for index, found in enumerate(features) if found is None)
        raise ValueError(
            f"example {without}: no edge features, but {len(given)} of {len(features)} {what} have them; "
            "give them for all or for none"
        )
    return checks.Rows(given, "edge features") if given else None


def cliques(X: Sequence[Graph], columns: int | None = None) -> tuple[list[list[IntArray]], list[Any] | None]:
    """Cliques of every example, and their features or None.

    ValueError where only some examples with cliques have features; those without cliques get no rows of as many
    ``columns`` (None: as the first has). The structure checks node numbers.
    """
    found = [read_cliques(graph.cliques, index) for index, graph in enumerate(X)]
    features: list[Any] = []
    without = []
    for index, (graph, own) in enumerate(zip(X, found, strict=True)):
        if graph.clique_features is None:
            without += [index] * bool(own)
            features.append(None)
            continue
        rows = checks.matrix(graph.clique_features, index, "clique features")
        if rows.shape[0] != len(own):
            raise ValueError(
                f"example {index}: {len(own)} cliques but {rows.shape[0]} rows of clique features; "
                "give one row per clique"
            )
        features.append(rows if own else None)
    given = [rows for rows in features if rows is not None]
    if not given:
        return found, None
    if without:
        raise ValueError(
            f"example {without[0]}: no clique features, but {len(given)} of {len(X)} graphs have them; "
            "give them for all graphs with cliques or for none"
        )
    none = np.zeros((0, given[0].shape[1] if columns is None else columns))
    return found, [none if rows is None else rows for rows in features]
