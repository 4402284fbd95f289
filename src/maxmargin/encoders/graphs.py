"""Lists of :class:`Graph` to node features, edges and edge features: what all packers of graphs check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxmargin._sparse import sp
from maxmargin.encoders import checks
from maxmargin.encoders.inputs import Graph
from maxmargin.structures.base import IntArray
from maxmargin.structures.cliques import read_cliques


def split(X: Sequence[Any], *, labels: str = "") -> tuple[list[Any], list[IntArray], list[Any]]:
    """Node features, edges, and edge features or None, of every example.

    ``labels``: why labels per node are refused, and cliques with them; empty where they are not.
    """
    nodes: list[Any] = []
    edges: list[IntArray] = []
    features: list[Any] = []
    for index, graph in enumerate(checks.examples(X)):
        if not isinstance(graph, Graph):
            raise ValueError(
                f"example {index}: X must be a list of mm.Graph(node_features, edges, edge_features), "
                f"got {type(graph).__name__}"
            )
        if labels and graph.labels is not None:
            raise ValueError(f"example {index}: labels per node are for TreeSVM; {labels}")
        if labels and (graph.cliques is not None or graph.clique_features is not None):
            raise ValueError(f"example {index}: cliques are for TreeSVM; leave them out")
        nodes.append(checks.matrix(graph.node_features, index, "node features"))
        if nodes[-1].shape[0] == 0:
            raise ValueError(f"example {index}: a graph needs at least one node; remove it")
        found = checks.pairs(graph.edges, index, "edges", "(n_edges, 2)")
        features.append(None)
        if graph.edge_features is not None:
            features[-1] = checks.matrix(graph.edge_features, index, "edge features")
            checks.one_per_edge(found, index, features[-1].shape[0], "edge features")
        edges.append(found)
    return nodes, edges, features


def with_ones(edges: list[IntArray], features: list[Any]) -> list[Any]:
    """Edge features of every example: the one feature 1 where none were given."""
    return [np.ones((len(own), 1)) if f is None else f for own, f in zip(edges, features, strict=True)]


def all_or_none(features: list[Any], what: str) -> list[Any] | None:
    """Edge features of every example, or None where there are none; ValueError where only some examples have them."""
    given = [found for found in features if found is not None]
    if given and len(given) != len(features):
        without = next(index for index, found in enumerate(features) if found is None)
        raise ValueError(
            f"example {without}: no edge features, but {len(given)} of {len(features)} {what} have them; "
            "give them for all or for none"
        )
    return given or None


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


def stacked(
    nodes: list[Any], features: list[Any], widths: tuple[int | None, int | None], meaning: str, remedy: str
) -> tuple[Any, IntArray, Any, IntArray]:
    """Rows and offsets of nodes and of edges that attract, whose features must be >= 0; ValueError naming the example.

    ``meaning`` says what edge features stand for, ``remedy`` what to do about negative ones.
    """
    checks.width(nodes, widths[0], "node features")
    checks.width(features, widths[1], "edge features")
    node_rows, node_offsets = checks.stack(nodes, "node features")
    edge_rows, edge_offsets = checks.stack(features, "edge features")
    values = edge_rows.data if sp.issparse(edge_rows) else edge_rows
    if values.size and values.min() < 0:
        index = next(i for i, found in enumerate(features) if found.shape[0] and found.min() < 0)
        raise ValueError(f"example {index}: edge features must be >= 0 ({meaning}); {remedy}")
    return node_rows, node_offsets, edge_rows, edge_offsets
