"""What packers of labeled positions and nodes share: a vocabulary of labels, and two widths of features."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from maxmargin.encoders import checks
from maxmargin.encoders.base import Batch, Encoder
from maxmargin.encoders.labels import distinct, label_from_json, label_to_json, sequence, vocabulary
from maxmargin.structures.base import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LabeledEncoder(Encoder):
    """Packs examples whose positions or nodes have one label each.

    Attributes:
        classes: all labels, in the order of the weights' columns; None: those of the training data.
        n_features: columns of the features of positions or nodes.
        n_edge_features: columns of the edge features; 0 if pairs of labels do not see the input.
    """

    classes: tuple[Hashable, ...] | None = None
    n_features: int | None = None
    n_edge_features: int | None = None

    node_words: ClassVar[str] = "node features"
    """What errors call the features of nodes."""

    edge_words: ClassVar[tuple[str, str]] = "graphs", "mm.Graph(node_features, edges, edge_features)"
    """What errors call examples, and how they hold edge features."""

    width_key: ClassVar[str] = "n_features"
    """What model files call :attr:`n_features`."""

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {label: k for k, label in enumerate(self.classes or ())}

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return len(self.classes or ())

    def _learned(self, nodes: list[Any], edge_features: list[Any] | None, y: Sequence[Any]) -> Self:
        """A copy with the labels (sorted where they can be) and widths of the training data."""
        return replace(
            self,
            classes=vocabulary(y) if self.classes is None else distinct(self.classes),
            n_features=checks.width(nodes, None, self.node_words),
            n_edge_features=0 if edge_features is None else checks.width(edge_features, None, "edge features"),
        )

    def _stacked(self, nodes: list[Any], edge_features: list[Any] | None) -> tuple[Any, IntArray, Any]:
        """All rows of nodes, their offsets, and all rows of edges (None where pairs do not see the input), checked."""
        checks.width(nodes, self.n_features, self.node_words)
        if edge_features is not None and self.n_edge_features:
            checks.width(edge_features, self.n_edge_features, "edge features")
        elif bool(self.n_edge_features) or any(found.shape[1] for found in edge_features or ()):
            examples, how = self.edge_words
            raise ValueError(
                f"example 0: edge features must be given for all {examples}, in training and in prediction, or for "
                f"none ({how})"
            )
        rows, offsets = checks.stack(nodes, self.node_words)
        edges = None if not self.n_edge_features else checks.stack(edge_features or (), "edge features")[0]
        return rows, offsets, edges

    def label_numbers(self, y: Sequence[Any]) -> list[IntArray]:
        """Positions of labels in ``classes``, one vector per example; ValueError for a label that is not there."""
        numbers = []
        for index, labels in enumerate(checks.examples(y, "y")):
            try:
                numbers.append(np.array([self._index[label] for label in sequence(labels, index)], dtype=np.int64))
            except KeyError as error:
                raise ValueError(
                    f"example {index}: label {error.args[0]!r} was not seen in training; "
                    "give all labels with classes=[...] or remove the example"
                ) from None
        return numbers

    def encode(self, packed: Batch, y: Sequence[Any]) -> FloatArray:
        """Labels to numbers, then to vertices."""
        return packed.structure.encode(self.label_numbers(y))

    def decode(self, packed: Batch, z: FloatArray) -> list[list[Hashable]]:
        """Lists of labels."""
        classes = self.classes or ()
        return [[classes[k] for k in numbers.tolist()] for numbers in packed.structure.decode(z)]

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Right labels out of positions or nodes."""
        return float(sum(a == b for a, b in zip(sequence(gold, 0), predicted, strict=True))), float(len(predicted))

    @property
    def n_weights(self) -> int:
        """Node weights, one table of pair weights, and one table per edge feature."""
        k = self.n_labels
        return (self.n_features or 0) * k + (1 + (self.n_edge_features or 0)) * k**2

    @property
    def layout(self) -> tuple[Any, ...]:
        """Both widths, and the labels in order."""
        return self.kind, self.n_features, self.n_edge_features, self.classes

    def header(self) -> dict[str, Any]:
        """Labels and widths."""
        return {
            "classes": [label_to_json(label) for label in self.classes or ()],
            self.width_key: self.n_features,
            "n_edge_features": self.n_edge_features,
        }

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """See :meth:`Encoder.from_header`."""
        if not isinstance(header["classes"], list):
            raise ValueError("its labels are not a list")
        return cls(
            classes=distinct([label_from_json(label) for label in header["classes"]]),
            n_features=checks.integer(header[cls.width_key], cls.width_key),
            n_edge_features=checks.integer(header["n_edge_features"], "n_edge_features"),
        )
