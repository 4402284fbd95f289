"""Labelings of graphs whose edges reward equal labels: X is a list of :class:`Graph`, y a list of label sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.encoders import graphs
from maxmargin.encoders.base import Batch
from maxmargin.encoders.labeled import LabeledEncoder
from maxmargin.features.parts import Stacked
from maxmargin.features.tied import TiedRows
from maxmargin.structures.associative import Associative
from maxmargin.structures.base import IntArray


@dataclass(frozen=True, eq=False)
class AssociativeEncoder(LabeledEncoder):
    """Packs graphs: score of labels ``y`` ``sum_i W[:, y_i]'x_i + sum_ij [y_i = y_j] V[:, y_i]'x_ij`` with ``V >= 0``.

    Attributes:
        per_label: whether edge weights differ between labels; else all columns of ``V`` are one.
    """

    per_label: bool = True

    kind = "associative"
    width_key = "n_node_features"

    def learn(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Labels (sorted where they can be) and widths."""
        nodes, _, features = _split(X)
        return self._learned(nodes, features, y)

    def pack(self, X: Sequence[Any]) -> Batch:
        """Stack nodes and edges of all graphs."""
        nodes, edges, features = _split(X)
        node_rows, node_offsets, edge_rows, edge_offsets = graphs.stacked(
            nodes,
            features,
            (self.n_features, self.n_edge_features),
            "they say how strongly equal labels are rewarded",
            "shift them, split a signed feature into its positive and negative part, or use GraphSVM",
        )
        k = self.n_labels
        return Batch(
            Associative(np.diff(node_offsets), np.concatenate(edges), edge_offsets, k),
            Stacked(
                TiedRows(node_rows, node_offsets, k), TiedRows(edge_rows, edge_offsets, k, alike=not self.per_label)
            ),
        )

    @property
    def _n_node_weights(self) -> int:
        return (self.n_features or 0) * self.n_labels

    @property
    def n_weights(self) -> int:
        """Node weights, then edge weights."""
        return self._n_node_weights + (self.n_edge_features or 0) * (self.n_labels if self.per_label else 1)

    @property
    def layout(self) -> tuple[Any, ...]:
        """Both widths, the labels in order, and whether edge weights differ between them."""
        return *super().layout, self.per_label

    def nonnegative(self) -> npt.NDArray[np.bool_]:
        """The edge weights."""
        return np.arange(self.n_weights) >= self._n_node_weights

    def header(self) -> dict[str, Any]:
        """Labels, widths, and whether edge weights differ between labels."""
        return {**super().header(), "per_label": self.per_label}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """See :meth:`Encoder.from_header`."""
        if not isinstance(header["per_label"], bool):
            raise ValueError("its per_label is neither true nor false")
        return replace(super().from_header(header), per_label=header["per_label"])


def _split(X: Sequence[Any]) -> tuple[list[Any], list[IntArray], list[Any]]:
    nodes, edges, features = graphs.split(X, labels="all nodes of a network have all labels")
    return nodes, edges, graphs.with_ones(edges, features)
