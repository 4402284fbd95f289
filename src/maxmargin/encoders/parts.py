"""A user's own structure: X is a list of ``(n_parts, d)`` matrices, y whatever the structure's ``encode`` takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from maxmargin.encoders.base import Batch, State
from maxmargin.encoders.data import checks
from maxmargin.encoders.rows import RowsEncoder
from maxmargin.features.parts import PartFeatures
from maxmargin.structures._arrays import array_of
from maxmargin.structures.base import IntArray, Structure
from maxmargin.structures.sparse import SparsePoint


@dataclass(frozen=True, eq=False)
class PartsEncoder(RowsEncoder):
    """Encodes examples of a user's structure.

    Attributes:
        build: makes the structure of a batch from the number of parts of each example, shape ``(n_examples,)``; a
            :class:`Structure` subclass whose constructor takes just that will do.
        n_features: columns of the part features.
    """

    build: Callable[[IntArray], Structure]
    n_features: int | None = None

    kind = "parts"

    def batch(self, parsed: tuple[list[Any], checks.Rows]) -> Batch:
        """The user's structure over the parts of all examples."""
        rows = parsed[1]
        rows.require(self.n_features)
        offsets = rows.offsets
        structure = self.build(np.diff(offsets))
        if not isinstance(structure, Structure):
            raise ValueError(
                f"structure must make a maxmargin.structures.Structure, got {type(structure).__name__}; "
                "see docs/extending/adding-a-structure.md"
            )
        if structure.n_parts != int(offsets[-1]):
            raise ValueError(
                f"the structure has {structure.n_parts} parts but the features have {int(offsets[-1])} rows; "
                "give one row of features per part"
            )
        return Batch(structure, PartFeatures(rows.matrix, offsets))

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """The structure's own encoding."""
        structure = batch.structure
        found: Any = structure.encode(checks.examples(y, "y"))
        if isinstance(found, SparsePoint):
            return found
        z = np.asarray(array_of(found, "what the structure's encode returns", "fiub", "numbers"), dtype=np.float64)
        if z.shape != (structure.n_parts,):
            raise ValueError(
                f"{type(structure).__name__}.encode must return a vector of shape ({structure.n_parts},), one entry "
                f"per part, got {z.shape}"
            )
        return SparsePoint.feasible(structure, z)

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Whole outputs that are right."""
        try:
            right, found = (array_of(one, "outputs", "biufcOUSmM", "comparable") for one in (gold, predicted))
            return float(np.array_equal(right, found)), 1.0
        except (TypeError, ValueError):  # nested lists that make no array
            return float(bool(gold == predicted)), 1.0

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Needs the structure: see :func:`maxmargin.load`."""
        raise ValueError("this model was trained with a structure of your own; load it with load(path, structure=...)")
