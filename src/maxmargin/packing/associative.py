"""Labellings of graphs whose edges reward equal labels: X is a list of :class:`Graph`, y a list of label sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.features.graph import TiedRows
from maxmargin.features.parts import Stacked
from maxmargin.packing import checks
from maxmargin.packing.base import Packed
from maxmargin.packing.graph import NetworkPacker
from maxmargin.structures.associative import Associative


@dataclass(frozen=True, eq=False)
class AssociativePacker(NetworkPacker):
    """Packs graphs: score of labels ``y`` ``sum_i W[:, y_i]'x_i + sum_ij [y_i = y_j] V[:, y_i]'x_ij`` with ``V >= 0``.

    Attributes:
        per_label: whether edge weights differ between labels; else all columns of ``V`` are one.
    """

    per_label: bool = True

    kind = "associative"

    def pack(self, X: Sequence[Any]) -> Packed:
        """Stack nodes and edges of all graphs."""
        nodes, edges, features = self._split(X)
        checks.width(nodes, self.n_node_features, "node features")
        checks.width(features, self.n_edge_features, "edge features")
        node_rows, node_offsets = checks.stack(nodes, "node features")
        edge_rows, edge_offsets = checks.stack(features, "edge features")
        values = edge_rows.data if sp.issparse(edge_rows) else edge_rows
        if values.size and values.min() < 0:
            index = next(i for i, found in enumerate(features) if found.shape[0] and found.min() < 0)
            raise ValueError(
                f"example {index}: edge features must be >= 0 (they say how strongly equal labels are rewarded); "
                "shift them, split a signed feature into its positive and negative part, or use GraphSVM"
            )
        k = len(self.classes or ())
        return Packed(
            Associative(np.diff(node_offsets), np.concatenate(edges), edge_offsets, k),
            Stacked(
                TiedRows(node_rows, node_offsets, k), TiedRows(edge_rows, edge_offsets, k, alike=not self.per_label)
            ),
        )

    @property
    def _n_node_weights(self) -> int:
        return (self.n_node_features or 0) * len(self.classes or ())

    @property
    def n_weights(self) -> int:
        """Node weights, then edge weights."""
        return self._n_node_weights + (self.n_edge_features or 0) * (len(self.classes or ()) if self.per_label else 1)

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
        """See :meth:`Packer.from_header`."""
        if not isinstance(header["per_label"], bool):
            raise ValueError("its per_label is neither true nor false")
        return replace(super().from_header(header), per_label=header["per_label"])
