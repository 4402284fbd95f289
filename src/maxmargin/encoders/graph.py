"""Labelings of general graphs: X is a list of :class:`Graph`, y a list of label sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from maxmargin.encoders import graphs
from maxmargin.encoders.base import Batch
from maxmargin.encoders.labeled import LabeledEncoder
from maxmargin.features.tied import PairwiseFeatures
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.structures.graph import PairwiseGraph


@dataclass(frozen=True, eq=False)
class GraphEncoder(LabeledEncoder):
    """Packs graphs with any pair scores; ``n_edge_features`` is 0 where pairs do not see the input.

    Score of labels ``y``: ``sum_i W[:, y_i]'x_i + sum_ij (T[y_i, y_j] + V[:, y_i, y_j]'x_ij)`` over edges ``(i, j)`` in
    the direction as given.
    """

    kind = "graph"
    width_key = "n_node_features"

    def learn(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Labels (sorted where they can be) and widths."""
        nodes, _, features = _split(X)
        return self._learned(nodes, features, y)

    def pack(self, X: Sequence[Any]) -> Batch:
        """Stack nodes and edges of all graphs."""
        nodes, edges, features = _split(X)
        rows, offsets, edge_rows = self._stacked(nodes, features)
        edge_offsets = offsets_of([len(found) for found in edges])
        return Batch(
            PairwiseGraph(np.diff(offsets), np.concatenate(edges), edge_offsets, self.n_labels),
            PairwiseFeatures(rows, offsets, edge_rows, edge_offsets, self.n_labels),
        )


def _split(X: Sequence[Any]) -> tuple[list[Any], list[IntArray], list[Any] | None]:
    nodes, edges, features = graphs.split(X, labels="all nodes of a graph have all labels")
    return nodes, edges, graphs.all_or_none(features, "graphs")
