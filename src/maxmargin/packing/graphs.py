"""Lists of :class:`Graph` to node features, edges and edge features: what all packers of graphs check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.packing import checks
from maxmargin.packing.inputs import Graph
from maxmargin.structures.base import IntArray


def split(X: Sequence[Any], *, labels: str = "") -> tuple[list[Any], list[IntArray], list[Any]]:
    """Node features, edges, and edge features or None, of every example.

    ``labels``: why labels per node are refused; empty where they are not.
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


def nonnegative(features: list[Any], stacked: Any, meaning: str, remedy: str) -> None:
    """Refuse negative edge features, naming the example; ``stacked`` holds them all."""
    values = stacked.data if sp.issparse(stacked) else stacked
    if values.size and values.min() < 0:
        index = next(i for i, found in enumerate(features) if found.shape[0] and found.min() < 0)
        raise ValueError(f"example {index}: edge features must be >= 0 ({meaning}); {remedy}")
