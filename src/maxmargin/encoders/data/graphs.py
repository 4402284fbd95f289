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
from maxmargin.structures.clique_sets import read_cliques


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
        _require_nonnegative(self.edge_rows, meaning, remedy)

    def clique_width(self) -> int:
        """Columns of the features of cliques: 1 where none were given; 0 where there are no cliques."""
        found, rows = cliques(self.inputs)
        if not any(found):
            return 0
        return 1 if rows is None else checks.Rows(rows, "clique features").width

    def attracting_cliques(self, width: int) -> tuple[list[list[IntArray]], checks.Rows]:
        """Cliques of every example, and their features, which must be >= 0: the one feature 1 where none were given.

        ``width``: their columns in the training data, 0 where there were no cliques.
        """
        found, given = cliques(self.inputs, width)
        if not width:
            index = next((i for i, own in enumerate(found) if own), None)
            if index is not None:
                raise ValueError(
                    f"example {index}: there were no cliques in the training data; leave them out, or train with some"
                )
        rows = [np.ones((len(own), 1 if own else width)) for own in found] if given is None else given
        each = checks.Rows(rows, "clique features")
        each.require(width)
        _require_nonnegative(
            each,
            "they say how strongly the members of a clique attract each other",
            "shift them, or split a signed feature into its positive and negative part",
        )
        return found, each


def _require_nonnegative(rows: checks.Rows, meaning: str, remedy: str) -> None:
    stacked = rows.matrix
    values = stacked.data if sp.issparse(stacked) else stacked
    if values.size and values.min() < 0:
        index = next(i for i, found in enumerate(rows.matrices) if found.shape[0] and found.min() < 0)
        raise ValueError(f"example {index}: {rows.what} must be >= 0 ({meaning}); {remedy}")


def parse(X: list[Any], *, labels: str = "", with_cliques: bool = True) -> Graphs:
    """Check a list of :class:`Graph`.

    ``labels``: why labels per node are refused; empty where they are not. ``with_cliques``: whether cliques are taken.
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
        if not with_cliques and (graph.cliques is not None or graph.clique_features is not None):
            raise ValueError(f"example {index}: cliques are for TreeSVM, CutSVM and AssociativeSVM; leave them out")
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
