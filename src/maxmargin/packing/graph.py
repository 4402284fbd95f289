"""Labellings of general graphs: X is a list of :class:`Graph`, y a list of label sequences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from maxmargin.features.graph import TiedRows
from maxmargin.features.parts import Stacked
from maxmargin.packing import checks
from maxmargin.packing.base import Packed, Packer
from maxmargin.packing.cut import _split
from maxmargin.packing.labels import distinct, label_from_json, label_to_json, sequence, vocabulary
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.graph import Graph


@dataclass(frozen=True, eq=False)
class NetworkPacker(Packer):
    """What packers of labelled graphs share.

    Attributes:
        classes: all labels, in the order of the weights' columns; None: those of the training data.
        n_node_features: columns of the node features.
        n_edge_features: columns of the edge features.
    """

    classes: tuple[Hashable, ...] | None = None
    n_node_features: int | None = None
    n_edge_features: int | None = None

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {label: k for k, label in enumerate(self.classes or ())}

    def _split(self, X: Sequence[Any]) -> tuple[list[Any], list[IntArray], list[Any]]:
        """Node features, edges and edge features of every example."""
        return _split(X)

    def learn(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Labels (sorted where they can be) and widths."""
        nodes, _, features = self._split(X)
        return replace(
            self,
            classes=vocabulary(y) if self.classes is None else distinct(self.classes),
            n_node_features=checks.width(nodes, None, "node features"),
            n_edge_features=checks.width(features, None, "edge features"),
        )

    def encode(self, packed: Packed, y: Sequence[Any]) -> FloatArray:
        """Labels to numbers, then to vertices."""
        numbers = []
        for index, labels in enumerate(checks.examples(y, "y")):
            try:
                numbers.append(np.array([self._index[label] for label in sequence(labels, index)], dtype=np.int64))
            except KeyError as error:
                raise ValueError(
                    f"example {index}: label {error.args[0]!r} was not seen in training; "
                    "give all labels with classes=[...] or remove the example"
                ) from None
        return packed.structure.encode(numbers)

    def decode(self, packed: Packed, z: FloatArray) -> list[list[Hashable]]:
        """Lists of labels."""
        classes = self.classes or ()
        return [[classes[k] for k in numbers.tolist()] for numbers in packed.structure.decode(z)]

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Right labels out of nodes."""
        return float(sum(a == b for a, b in zip(sequence(gold, 0), predicted, strict=True))), float(len(predicted))

    @property
    def layout(self) -> tuple[Any, ...]:
        """Both widths, and the labels in order."""
        return self.kind, self.n_node_features, self.n_edge_features, self.classes

    def header(self) -> dict[str, Any]:
        """Labels and widths."""
        return {
            "classes": [label_to_json(label) for label in self.classes or ()],
            "n_node_features": self.n_node_features,
            "n_edge_features": self.n_edge_features,
        }

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """See :meth:`Packer.from_header`."""
        if not isinstance(header["classes"], list):
            raise ValueError("its labels are not a list")
        return cls(
            classes=distinct([label_from_json(label) for label in header["classes"]]),
            n_node_features=checks.integer(header["n_node_features"], "n_node_features"),
            n_edge_features=checks.integer(header["n_edge_features"], "n_edge_features"),
        )


@dataclass(frozen=True, eq=False)
class GraphPacker(NetworkPacker):
    """Packs graphs with any pair scores; ``n_edge_features`` is 0 where pairs do not see the input.

    Score of labels ``y``: ``sum_i W[:, y_i]'x_i + sum_ij (T[y_i, y_j] + V[:, y_i, y_j]'x_ij)`` over edges ``(i, j)`` in
    the direction as given.
    """

    kind = "graph"

    def _split(self, X: Sequence[Any]) -> tuple[list[Any], list[IntArray], list[Any]]:
        nodes, edges, features = _split(X)
        without = [index for index, graph in enumerate(X) if graph.edge_features is None]
        if without and len(without) != len(nodes):
            raise ValueError(
                f"example {without[0]}: no edge features, but {len(nodes) - len(without)} of {len(nodes)} graphs have "
                "them; give them for all or for none"
            )
        if without:
            features = [np.zeros((len(found), 0)) for found in edges]
        return nodes, edges, features

    def pack(self, X: Sequence[Any]) -> Packed:
        """Stack nodes and edges of all graphs."""
        nodes, edges, features = self._split(X)
        checks.width(nodes, self.n_node_features, "node features")
        checks.width(features, self.n_edge_features, "edge features")
        node_rows, node_offsets = checks.stack(nodes, "node features")
        edge_rows, edge_offsets = checks.stack(features, "edge features")
        k = len(self.classes or ())
        return Packed(
            Graph(np.diff(node_offsets), np.concatenate(edges), edge_offsets, k),
            Stacked(TiedRows(node_rows, node_offsets, k), TiedRows(edge_rows, edge_offsets, k**2, constant=True)),
        )

    @property
    def n_weights(self) -> int:
        """Node weights, one table of pair weights, and one table per edge feature."""
        k = len(self.classes or ())
        return (self.n_node_features or 0) * k + (1 + (self.n_edge_features or 0)) * k**2
