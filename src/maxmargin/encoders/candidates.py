"""Lists of candidates: X is a list of ``(n_candidates, d)`` matrices, y the number of the good one, or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.encoders.base import Batch
from maxmargin.encoders.data import checks
from maxmargin.encoders.rows import KernelRowsEncoder
from maxmargin.features.kernel import Kernel, KernelMap
from maxmargin.structures.base import IntArray
from maxmargin.structures.candidates import Candidates
from maxmargin.structures.sparse import SparsePoint


@dataclass(frozen=True, eq=False)
class CandidatesEncoder(KernelRowsEncoder):
    """Encodes lists of candidates.

    Attributes:
        n_features: columns of the candidates' features.
        kernel: a kernel in place of explicit features, or None.
        support: with a kernel, the rows that it compares others with.
    """

    n_features: int | None = None
    kernel: Kernel | None = None
    support: KernelMap | None = None

    kind = "candidates"

    def parse(self, X: list[Any]) -> tuple[list[Any], checks.Rows]:
        """The examples as given, and the features of all candidates."""
        return X, checks.rows(X, "features", "no candidates")

    def learn(self, parsed: tuple[list[Any], checks.Rows], y: Sequence[Any]) -> Self:
        """The number of features, and with a kernel the training candidates."""
        return replace(self, n_features=parsed[1].width, support=self._support(parsed[1]))

    def batch(self, parsed: tuple[list[Any], checks.Rows]) -> Batch:
        """The lists of candidates."""
        rows = parsed[1]
        rows.require(self.n_features)
        return Batch(Candidates(np.diff(rows.offsets)), self._row_features(rows, rows.offsets))

    def good(self, batch: Batch, y: Sequence[Any]) -> npt.NDArray[np.bool_]:
        """Which candidates are good, packed, shape ``(n_parts,)``; ValueError naming the example if none is."""
        offsets = batch.structure.blocks[0].offsets
        mask = np.zeros(batch.structure.n_parts, dtype=bool)
        for index, given in enumerate(checks.examples(y, "y")):
            mask[offsets[index] + good_numbers(given, index, int(batch.structure.sizes[index]))] = True
        return mask

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """The first good candidate of each example."""
        checks.same_length(batch.structure.sizes.tolist(), y)
        first = [
            int(good_numbers(given, index, int(size)).min())
            for index, (given, size) in enumerate(zip(checks.examples(y, "y"), batch.structure.sizes, strict=True))
        ]
        return batch.structure.encode(first)

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Whether a good candidate was chosen."""
        return float(bool((good_numbers(gold, 0, None) == predicted).any())), 1.0


def good_numbers(given: Any, index: int, size: int | None) -> IntArray:
    """The numbers of the good candidates of one example: from a number, several numbers, or a boolean mask."""
    wanted = "the number of the good candidate, several numbers, or a boolean mask over the candidates"
    found = checks.array(given, index, "y", "iub", wanted)
    if found.dtype.kind == "b":
        if found.ndim != 1 or (size is not None and len(found) != size):
            raise ValueError(
                f"example {index}: y is a mask of shape {found.shape} for {size} candidates; give one entry each"
            )
        found = np.flatnonzero(found)
    if found.ndim > 1:
        raise ValueError(f"example {index}: y must be {wanted}, got shape {found.shape}")
    numbers = np.unique(found.reshape(-1).astype(np.int64))
    if not len(numbers):
        raise ValueError(f"example {index}: no candidate is good; mark one or remove the example")
    if numbers[0] < 0 or (size is not None and numbers[-1] >= size):
        raise ValueError(
            f"example {index}: candidate {int(numbers[0] if numbers[0] < 0 else numbers[-1])} is out of range for "
            f"{size} candidates; count them from 0"
        )
    return numbers
