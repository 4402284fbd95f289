"""Sequences with a label per position: X is a list of ``(length, d)`` matrices, y a list of label sequences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from maxmargin.features.tied import ChainFeatures
from maxmargin.packing import checks, inputs
from maxmargin.packing.base import Packed, Packer
from maxmargin.packing.labels import distinct, label_from_json, label_to_json, sequence, vocabulary
from maxmargin.structures.base import FloatArray
from maxmargin.structures.chain import Chain


@dataclass(frozen=True, eq=False)
class ChainPacker(Packer):
    """Packs sequences.

    Attributes:
        classes: all labels, in the order of the weights' columns; None: those of the training data.
        n_features: columns of the position features.
        n_edge_features: columns of the edge features; 0 if transitions do not see the input.
    """

    classes: tuple[Hashable, ...] | None = None
    n_features: int | None = None
    n_edge_features: int | None = None

    kind = "chain"

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {label: k for k, label in enumerate(self.classes or ())}

    def learn(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Labels (sorted where they can be) and widths."""
        tokens, edges = _split(X)
        classes = vocabulary(y) if self.classes is None else distinct(self.classes)
        return replace(
            self,
            classes=classes,
            n_features=checks.width(tokens, None, "features"),
            n_edge_features=0 if edges is None else checks.width(edges, None, "edge features"),
        )

    def pack(self, X: Sequence[Any]) -> Packed:
        """Stack positions (and edges) of all sequences."""
        tokens, edges = _split(X)
        checks.width(tokens, self.n_features, "features")
        if (edges is not None) != bool(self.n_edge_features):
            raise ValueError(
                "edge features must be given for all sequences, in training and in prediction, or for none "
                "(mm.Sequence(features, edge_features))"
            )
        rows, offsets = checks.stack(tokens, "features")
        lengths = np.diff(offsets)
        if (lengths == 0).any():
            index = int(np.flatnonzero(lengths == 0)[0])
            raise ValueError(f"example {index}: an empty sequence has nothing to label; remove it")
        edge_rows = None
        if edges is not None:
            checks.width(edges, self.n_edge_features, "edge features")
            for index, (found, length) in enumerate(zip(edges, lengths, strict=True)):
                if found.shape[0] != length - 1:
                    raise ValueError(
                        f"example {index}: {found.shape[0]} rows of edge features for {length} positions; "
                        "give one row per pair of neighbouring positions (length - 1)"
                    )
            edge_rows, _ = checks.stack(edges, "edge features")
        n_labels = len(self.classes or ())
        structure = Chain(lengths, n_labels, transitions="shared" if edge_rows is None else "each")
        return Packed(structure, ChainFeatures(rows, lengths, n_labels, edge_features=edge_rows))

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
        """Right labels out of positions."""
        return float(sum(a == b for a, b in zip(sequence(gold, 0), predicted, strict=True))), float(len(predicted))

    @property
    def n_weights(self) -> int:
        """Node weights, one transition matrix, and one matrix per edge feature."""
        k = len(self.classes or ())
        return (self.n_features or 0) * k + (1 + (self.n_edge_features or 0)) * k**2

    @property
    def layout(self) -> tuple[Any, ...]:
        """Both widths, and the labels in order."""
        return self.kind, self.n_features, self.n_edge_features, self.classes

    def header(self) -> dict[str, Any]:
        """Labels and widths."""
        return {
            "classes": [label_to_json(label) for label in self.classes or ()],
            "n_features": self.n_features,
            "n_edge_features": self.n_edge_features,
        }

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """See :meth:`Packer.from_header`."""
        if not isinstance(header["classes"], list):
            raise ValueError("its labels are not a list")
        return cls(
            classes=distinct([label_from_json(label) for label in header["classes"]]),
            n_features=checks.integer(header["n_features"], "n_features"),
            n_edge_features=checks.integer(header["n_edge_features"], "n_edge_features"),
        )


def _split(X: Sequence[Any]) -> tuple[list[Any], list[Any] | None]:
    tokens, edges = [], []
    for index, x in enumerate(checks.examples(X)):
        if isinstance(x, inputs.Sequence):
            tokens.append(checks.matrix(x.features, index, "features"))
            if x.edge_features is not None:
                edges.append(checks.matrix(x.edge_features, index, "edge features"))
        else:
            tokens.append(checks.matrix(x, index, "features"))
    if edges and len(edges) != len(tokens):
        without = next(i for i, x in enumerate(X) if getattr(x, "edge_features", None) is None)
        raise ValueError(
            f"example {without}: no edge features, but {len(edges)} of {len(tokens)} sequences have them; "
            "give them for all or for none"
        )
    return tokens, edges or None
