"""Structures of one's own: X is a list of ``(n_parts, d)`` matrices, y whatever the structure's ``encode`` takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from maxmargin.encoders import checks
from maxmargin.encoders.base import Batch, Encoder
from maxmargin.features.parts import PartFeatures
from maxmargin.structures.base import FloatArray, IntArray, Structure


@dataclass(frozen=True, eq=False)
class PartsEncoder(Encoder):
    """Packs examples of a user's structure.

    Attributes:
        build: makes the structure of a batch from the number of parts of each example, shape ``(n_examples,)``; a
            :class:`Structure` subclass whose constructor takes just that will do.
        n_features: columns of the part features.
    """

    build: Callable[[IntArray], Structure]
    n_features: int | None = None

    kind = "parts"

    def learn(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """The number of features."""
        rows = [checks.matrix(x, index, "features") for index, x in enumerate(checks.examples(X))]
        return replace(self, n_features=checks.width(rows, None, "features"))

    def pack(self, X: Sequence[Any]) -> Batch:
        """Stack the parts of all examples."""
        rows = [checks.matrix(x, index, "features") for index, x in enumerate(checks.examples(X))]
        checks.width(rows, self.n_features, "features")
        stacked, offsets = checks.stack(rows, "features")
        if (np.diff(offsets) == 0).any():
            raise ValueError(f"example {int(np.flatnonzero(np.diff(offsets) == 0)[0])}: no parts; remove it")
        structure = self.build(np.diff(offsets))
        if not isinstance(structure, Structure):
            raise ValueError(
                f"structure must make a maxmargin.structures.Structure, got {type(structure).__name__}; "
                "see docs/adding-a-structure.md"
            )
        if structure.n_parts != int(offsets[-1]):
            raise ValueError(
                f"the structure has {structure.n_parts} parts but the features have {int(offsets[-1])} rows; "
                "give one row of features per part"
            )
        return Batch(structure, PartFeatures(stacked, offsets))

    def encode(self, packed: Batch, y: Sequence[Any]) -> FloatArray:
        """The structure's own encoding."""
        z = np.asarray(packed.structure.encode(checks.examples(y, "y")), dtype=np.float64)
        if z.shape != (packed.structure.n_parts,):
            raise ValueError(
                f"{type(packed.structure).__name__}.encode must return a vector of shape "
                f"({packed.structure.n_parts},), one entry per part, got {z.shape}"
            )
        return z

    def decode(self, packed: Batch, z: FloatArray) -> list[Any]:
        """The structure's own decoding."""
        return packed.structure.decode(z)

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Whole outputs that are right."""
        try:
            return float(np.array_equal(np.asarray(gold), np.asarray(predicted))), 1.0
        except ValueError:  # nested lists that make no array
            return float(bool(gold == predicted)), 1.0

    @property
    def n_weights(self) -> int:
        """One per feature."""
        return self.n_features or 0

    def header(self) -> dict[str, Any]:
        """The width; the structure itself is code and is given again when the model is loaded."""
        return {"n_features": self.n_features}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """Needs the structure: see :func:`maxmargin.load`."""
        raise ValueError("this model was trained with a structure of your own; load it with load(path, structure=...)")
