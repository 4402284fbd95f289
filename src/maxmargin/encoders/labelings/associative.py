"""Labelings of graphs whose edges reward equal labels: X is a list of :class:`Graph`, y a list of label sequences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin.encoders.base import Batch, State
from maxmargin.encoders.data import checks, graphs
from maxmargin.encoders.data.names import (
    ColumnNames,
    Namer,
    WeightTable,
    clique_namer,
    edge_states,
    node_states,
    table,
)
from maxmargin.encoders.labelings.labeled import LabeledEncoder
from maxmargin.features.parts import Stacked
from maxmargin.features.tied import TiedRows
from maxmargin.structures.networks.associative import Associative
from maxmargin.structures.networks.clique_network import CliqueNetwork


@dataclass(frozen=True, eq=False)
class AssociativeEncoder(LabeledEncoder):
    """Graphs: score of labels ``y`` ``sum_i W[:, y_i]'x_i + sum_ij [y_i = y_j] V[:, y_i]'x_ij`` with ``V >= 0``.

    Where graphs have cliques, ``sum_c [all of c have label l] U[:, l]'x_c`` with ``U >= 0`` comes on top.

    Attributes:
        per_label: whether edge and clique weights differ between labels; else all columns of ``V``, and of ``U``, are
            one.
        n_clique_features: columns of the clique features; 0 without cliques.
    """

    per_label: bool = True
    n_clique_features: int = 0

    kind = "associative"

    def parse(self, X: list[Any]) -> graphs.Graphs:
        """The graphs; an edge without features has the one feature 1."""
        return graphs.parse(X, labels="all nodes of a network have all labels").with_ones()

    def learn(self, parsed: graphs.Graphs, y: Sequence[Any]) -> Self:
        """Labels (sorted where they can be) and widths."""
        return replace(self._learned(parsed.nodes, parsed.edge_rows, y), n_clique_features=parsed.clique_width())

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """Widths are those of the first block, or of cliques the first that has some; labels are those of all."""
        learned = super().learn_blocks(blocks)
        if not learned.n_clique_features:
            widths = (self.parse(checks.examples(X)).clique_width() for X, _ in blocks)
            learned = replace(learned, n_clique_features=next(filter(None, widths), 0))
        return learned

    def batch(self, parsed: graphs.Graphs) -> Batch:
        """The nodes and edges of all graphs."""
        parsed.nodes.require(self.n_features)
        parsed.edge_rows.require(self.n_edge_features)
        parsed.require_attraction(
            "they say how strongly equal labels are rewarded",
            "shift them, split a signed feature into its positive and negative part, or use GraphSVM",
        )
        node_offsets, edge_offsets = parsed.nodes.offsets, parsed.edge_offsets
        k, alike = self.n_labels, not self.per_label
        shape = np.diff(node_offsets), parsed.edges, edge_offsets, k
        maps = [
            TiedRows(self._row_matrix(parsed.nodes), node_offsets, k),
            TiedRows(parsed.edge_rows.matrix, edge_offsets, k, alike=alike),
        ]
        cliques, clique_rows = parsed.attracting_cliques(self.n_clique_features)
        if not self.n_clique_features:
            return Batch(Associative(*shape), Stacked(*maps))
        maps.append(TiedRows(clique_rows.matrix, clique_rows.offsets, k, alike=alike))
        return Batch(CliqueNetwork(*shape, cliques), Stacked(*maps))

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Nodes with their labels, and edges and cliques that have one label throughout."""
        structure, k = batch.structure, self.n_labels
        assert isinstance(structure, Associative)
        names = [node_states(k, self.label_text), edge_states(structure.edges, k, self._alike)]
        if isinstance(structure, CliqueNetwork):
            names.append(clique_namer(structure.cliques, k, self._alike))
        return names

    def _alike(self, number: int) -> str:
        return f"all {self.label_text(number)}"

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """Those of nodes, of edges and of cliques."""
        names = [self._row_names(columns, self.n_features, self.row_words[0], self.label_text)]
        k, state = (self.n_labels, self._alike) if self.per_label else (1, lambda at: "all alike")
        widths = {"edge_features": self.n_edge_features or 0, "clique_features": self.n_clique_features}
        for matrix, width in widths.items():
            if width:
                names.append(table(width, columns.of(matrix, width), k, state))
        return names

    @property
    def _n_node_weights(self) -> int:
        return self._n_row_weights(self.n_features)

    @property
    def n_weights(self) -> int:
        """Node weights, then edge weights, then clique weights."""
        rewards = (self.n_edge_features or 0) + self.n_clique_features
        return self._n_node_weights + rewards * (self.n_labels if self.per_label else 1)

    @property
    def layout(self) -> tuple[Any, ...]:
        """All widths, the labels in order, and whether edge weights differ between them."""
        return *super().layout, self.per_label, self.n_clique_features

    def nonnegative(self) -> npt.NDArray[np.bool_]:
        """The edge and clique weights."""
        return np.arange(self.n_weights) >= self._n_node_weights

    def state(self) -> State:
        """Labels, widths, and whether edge weights differ between labels."""
        return {**super().state(), "per_label": self.per_label, "n_clique_features": self.n_clique_features}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        if not isinstance(state["per_label"], bool):
            raise ValueError("its per_label is neither true nor false")
        cliques = _checks.integer("n_clique_features", state["n_clique_features"], least=0)
        return replace(super().from_state(state), per_label=state["per_label"], n_clique_features=cliques)
