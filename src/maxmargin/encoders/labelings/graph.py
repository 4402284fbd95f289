"""Labelings of general graphs: X is a list of :class:`Graph`, y a list of label sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from maxmargin.encoders.base import Batch
from maxmargin.encoders.data import graphs
from maxmargin.encoders.data.names import Namer, edge_states, node_states
from maxmargin.encoders.labelings.labeled import LabeledEncoder
from maxmargin.features.tied import PairwiseFeatures
from maxmargin.structures.networks.graph import PairwiseGraph


@dataclass(frozen=True, eq=False)
class GraphEncoder(LabeledEncoder):
    """Encodes graphs with any pair scores; ``n_edge_features`` is 0 where pairs do not see the input.

    Score of labels ``y``: ``sum_i W[:, y_i]'x_i + sum_ij (T[y_i, y_j] + V[:, y_i, y_j]'x_ij)`` over edges ``(i, j)`` in
    the direction as given.
    """

    kind = "graph"

    def parse(self, X: list[Any]) -> graphs.Graphs:
        """The graphs."""
        return graphs.parse(X, labels="all nodes of a graph have all labels", with_cliques=False)

    def learn(self, parsed: graphs.Graphs, y: Sequence[Any]) -> Self:
        """Labels (sorted where they can be) and widths."""
        return self._learned(parsed.nodes, parsed.optional_edge_rows(), y)

    def batch(self, parsed: graphs.Graphs) -> Batch:
        """The nodes and edges of all graphs."""
        edge_rows = self._edge_matrix(parsed.nodes, parsed.optional_edge_rows())
        offsets, edge_offsets = parsed.nodes.offsets, parsed.edge_offsets
        return Batch(
            PairwiseGraph(np.diff(offsets), parsed.edges, edge_offsets, self.n_labels),
            PairwiseFeatures(self._row_matrix(parsed.nodes), offsets, edge_rows, edge_offsets, self.n_labels),
        )

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Nodes with their labels, and edges with those of their ends."""
        structure, k = batch.structure, self.n_labels
        assert isinstance(structure, PairwiseGraph)
        return [node_states(k, self.label_text), edge_states(structure.edges, k**2, self.pair_text)]
