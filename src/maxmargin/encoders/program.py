"""Linear programs of the user's: X is a list of :class:`Program`, y a list of 0/1 (or whole) vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from maxmargin._checks import flag
from maxmargin.encoders.base import Batch, State
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.inputs import Program
from maxmargin.encoders.rows import RowsEncoder
from maxmargin.features.parts import PartFeatures
from maxmargin.structures.programs.linear_program import LinearProgram
from maxmargin.structures.sparse import SparsePoint


@dataclass(frozen=True, eq=False)
class ProgramEncoder(RowsEncoder):
    """Encodes parts with the constraints on them.

    Attributes:
        relaxed: whether the programs relax a choice of whole numbers, see :class:`LinearProgram`.
        n_features: columns of the part features.
    """

    relaxed: bool = False
    n_features: int | None = None

    kind = "program"

    def __post_init__(self) -> None:
        flag("relaxed", self.relaxed)

    def parse(self, X: list[Any]) -> tuple[list[Program], checks.Rows]:
        """The programs, and the parts of all of them."""
        for index, x in enumerate(X):
            if not isinstance(x, Program):
                raise ValueError(
                    f"example {index}: X must be a list of mm.Program(features, A, b, A_eq, b_eq), "
                    f"got {type(x).__name__}"
                )
        return X, checks.rows([x.features for x in X], "features", self.empty)

    def batch(self, parsed: tuple[list[Program], checks.Rows]) -> Batch:
        """The programs over the parts of all examples."""
        X, rows = parsed
        rows.require(self.n_features)
        sizes = np.diff(rows.offsets).tolist()
        for index, x in enumerate(X):
            for name, matrix, bound in (("A", x.A, x.b), ("A_eq", x.A_eq, x.b_eq)):
                if (matrix is None) != (bound is None):
                    raise ValueError(f"example {index}: give {name} and {name.replace('A', 'b')} together, or neither")
        nothing = [x.A is None and x.A_eq is None for x in X]
        structure = LinearProgram(
            [np.zeros((0, size)) if free else x.A for x, size, free in zip(X, sizes, nothing, strict=True)],
            [np.zeros(0) if free else x.b for x, free in zip(X, nothing, strict=True)],
            A_eq=[x.A_eq for x in X],
            b_eq=[x.b_eq for x in X],
            upper=[x.upper for x in X],
            relaxed=bool(self.relaxed),
        )
        wrong = np.diff(structure.blocks[0].offsets) != sizes
        if wrong.any():
            index = int(np.argmax(wrong))
            raise ValueError(
                f"example {index}: the constraints have {structure.programs[index].n} columns but the features have "
                f"{sizes[index]} rows; give one column and one row per part"
            )
        return Batch(structure, PartFeatures(rows.matrix, rows.offsets))

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Vectors of whole numbers to packed vertices."""
        found = []
        for index, z in enumerate(checks.examples(y, "y")):
            array = checks.array(z, index, "y", "fiub", "a vector of whole numbers, one per part").astype(np.float64)
            if not (np.isfinite(array).all() and (array == np.rint(array)).all()):
                raise ValueError(f"example {index}: y must be whole numbers, one per part; round them")
            found.append(array)
        return batch.structure.encode(found)

    def decode(self, batch: Batch, outputs: Sequence[Any]) -> list[Any]:
        """One vector per example: integers, or floats where an output is not whole."""
        return [v.astype(np.int64) if (v == np.rint(v)).all() else v for v in outputs]

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Twice what both chose out of what each chose: the score is F1 over the chosen parts."""
        y, z = np.asarray(gold, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
        return 2.0 * float(np.minimum(y, z).sum()), float(y.sum() + z.sum())

    def state(self) -> State:
        """Width, and whether the programs are relaxed; constraints come with the inputs."""
        return {**super().state(), "relaxed": bool(self.relaxed)}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        return replace(super().from_state(state), relaxed=state["relaxed"])
