"""Linear programs of the user's: X is a list of :class:`Program`, y a list of 0/1 (or whole) vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from maxmargin.encoders import checks
from maxmargin.encoders.base import Batch, Encoder
from maxmargin.encoders.inputs import Program
from maxmargin.features.parts import PartFeatures
from maxmargin.structures.base import FloatArray
from maxmargin.structures.linear_program import LinearProgram


@dataclass(frozen=True, eq=False)
class ProgramEncoder(Encoder):
    """Packs parts with the constraints on them.

    Attributes:
        relaxed: whether the programs relax a choice of whole numbers, see :class:`LinearProgram`.
        n_features: columns of the part features.
    """

    relaxed: bool = False
    n_features: int | None = None

    kind = "program"

    def __post_init__(self) -> None:
        if not isinstance(self.relaxed, (bool, np.bool_)):
            raise ValueError(f"relaxed must be True or False, got {self.relaxed!r}")

    def learn(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """The number of features."""
        return replace(self, n_features=checks.width(_rows(X), None, "features"))

    def pack(self, X: Sequence[Any]) -> Batch:
        """Stack the parts of all programs."""
        X = checks.examples(X)
        rows = _rows(X)
        checks.width(rows, self.n_features, "features")
        stacked, offsets = checks.stack(rows, "features")
        for index, x in enumerate(X):
            for name, matrix, bound in (("A", x.A, x.b), ("A_eq", x.A_eq, x.b_eq)):
                if (matrix is None) != (bound is None):
                    raise ValueError(f"example {index}: give {name} and {name.replace('A', 'b')} together, or neither")
        nothing = [x.A is None and x.A_eq is None for x in X]
        structure = LinearProgram(
            [np.zeros((0, found.shape[0])) if free else x.A for x, found, free in zip(X, rows, nothing, strict=True)],
            [np.zeros(0) if free else x.b for x, free in zip(X, nothing, strict=True)],
            A_eq=[x.A_eq for x in X],
            b_eq=[x.b_eq for x in X],
            upper=[x.upper for x in X],
            relaxed=bool(self.relaxed),
        )
        wrong = np.diff(structure.blocks[0].offsets) != np.diff(offsets)
        if wrong.any():
            index = int(np.argmax(wrong))
            raise ValueError(
                f"example {index}: the constraints have {structure.programs[index].n} columns but the features have "
                f"{rows[index].shape[0]} rows; give one column and one row per part"
            )
        return Batch(structure, PartFeatures(stacked, offsets))

    def encode(self, packed: Batch, y: Sequence[Any]) -> FloatArray:
        """Vectors of whole numbers to packed vertices."""
        found = []
        for index, z in enumerate(checks.examples(y, "y")):
            array = checks.array(z, index, "y", "fiub", "a vector of whole numbers, one per part").astype(np.float64)
            if not (np.isfinite(array).all() and (array == np.rint(array)).all()):
                raise ValueError(f"example {index}: y must be whole numbers, one per part; round them")
            found.append(array)
        return packed.structure.encode(found)

    def decode(self, packed: Batch, z: FloatArray) -> list[Any]:
        """One vector per example: integers, or floats where an output is not whole."""
        outputs = packed.structure.decode(z)
        return [v.astype(np.int64) if (v == np.rint(v)).all() else v for v in outputs]

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Twice what both chose out of what each chose: the score is F1 over the chosen parts."""
        y, z = np.asarray(gold, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
        return 2.0 * float(np.minimum(y, z).sum()), float(y.sum() + z.sum())

    @property
    def n_weights(self) -> int:
        """One per feature."""
        return self.n_features or 0

    def header(self) -> dict[str, Any]:
        """Width, and whether the programs are relaxed; constraints come with the inputs."""
        return {"relaxed": bool(self.relaxed), "n_features": self.n_features}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """See :meth:`Encoder.from_header`."""
        return cls(header["relaxed"], checks.integer(header["n_features"], "n_features"))


def _rows(X: Sequence[Any]) -> list[Any]:
    found = []
    for index, x in enumerate(checks.examples(X)):
        if not isinstance(x, Program):
            raise ValueError(
                f"example {index}: X must be a list of mm.Program(features, A, b, A_eq, b_eq), got {type(x).__name__}"
            )
        found.append(checks.matrix(x.features, index, "features"))
        if found[-1].shape[0] == 0:
            raise ValueError(f"example {index}: no parts; remove it")
    return found
