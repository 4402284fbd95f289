"""The active set that a run ends with: for every example a few outputs (atoms) and their weights in the dual point.

It does not depend on the penalty, the example weights or the loss, so that a later run with other settings can start
from it: that run computes factors, losses and inner products from its own problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.structures._arrays import offsets_of, pieces, ranges
from maxmargin.structures.base import FloatArray, IntArray, Structure

PIECE = 1 << 18
"""Parts of the batches in which outputs are checked: packed vectors that stay in the cache."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ActiveSet:
    """Outputs with positive dual variables, by their non-zero parts.

    Attributes:
        starts: example ``i`` has the outputs from ``starts[i]`` up to ``starts[i + 1]``, shape ``(n_examples + 1,)``.
        alpha: the dual variables, shape ``(n_outputs,)``, > 0; if those of an example sum to less than 1, the gold
            output has the rest.
        part_starts: output ``r`` has the entries from ``part_starts[r]`` up to ``part_starts[r + 1]`` of ``part`` and
            ``value``, shape ``(n_outputs + 1,)``.
        part: parts of the example, counted from 0 block after block, in increasing order, int32.
        value: the output's entries there; uint8 if all are such small integers.
    """

    starts: IntArray
    alpha: FloatArray
    part_starts: IntArray
    part: npt.NDArray[np.int32]
    value: npt.NDArray[np.uint8] | FloatArray

    def __post_init__(self) -> None:
        fits = len(self.part_starts) == len(self.alpha) + 1 and len(self.part) == len(self.value)
        if not fits or self.starts[-1] != len(self.alpha) or self.part_starts[-1] != len(self.part):
            raise ValueError("active set: starts must end at the number of outputs, part_starts at the number of parts")

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The arrays in the order in which kernels take them."""
        return self.starts, self.alpha, self.part_starts, self.part, self.value

    def feasible(self, structure: Structure) -> ActiveSet | None:
        """The outputs that are feasible in a batch; None if the batch has another number of examples.

        Decoding and encoding an output must give that output: any other point might lie outside the polytope, and a
        certificate that uses it would be wrong.
        """
        if len(self.starts) != structure.n_examples + 1:
            return None
        owner = np.repeat(np.arange(structure.n_examples), np.diff(self.starts))
        fine = np.zeros(len(owner), dtype=bool)
        for piece in pieces(structure.sizes[owner], PIECE):
            outputs = piece[self._well_formed(piece, structure.sizes[owner[piece]])]
            batch = structure.select(owner[outputs])
            fine[outputs] = _round_trip(batch, self._dense(batch, outputs))
        return self._only(fine, owner)

    def _well_formed(self, outputs: IntArray, sizes: IntArray) -> Flags:
        """Per consecutive output: whether alpha is positive, parts rise and lie in the example, values are finite."""
        alpha, bounds = self.alpha[outputs], self.part_starts[outputs[0] : outputs[-1] + 2]
        part, value = self.part[bounds[0] : bounds[-1]], self.value[bounds[0] : bounds[-1]]
        fine = np.isfinite(alpha) & (alpha > 0.0)
        output = np.repeat(np.arange(len(outputs)), np.diff(bounds))
        wrong = (part < 0) | (part >= sizes[output]) | ~np.isfinite(value) | (value == 0.0)
        wrong[1:] |= (np.diff(part) <= 0) & (np.diff(output) == 0)
        fine[output[wrong]] = False
        return fine

    def _dense(self, batch: Structure, outputs: IntArray) -> FloatArray:
        """The packed vector of some outputs in a batch that has one example for each."""
        entries = ranges(self.part_starts[outputs], self.part_starts[outputs + 1])
        example = np.repeat(np.arange(len(outputs)), np.diff(self.part_starts)[outputs])
        left = self.part[entries].astype(np.int64)
        at = np.full(len(entries), -1, dtype=np.int64)
        for block, start in zip(batch.blocks, batch.starts, strict=False):
            own = np.diff(block.offsets)[example]
            at = np.where((at < 0) & (left < own), start + block.offsets[example] + left, at)
            left = left - own
        z = np.zeros(batch.n_parts)
        z[at] = self.value[entries]
        return z

    def _only(self, kept: Flags, owner: IntArray) -> ActiveSet:
        if kept.all():
            return self
        outputs = np.flatnonzero(kept)
        entries = ranges(self.part_starts[outputs], self.part_starts[outputs + 1])
        return ActiveSet(
            offsets_of(np.bincount(owner[outputs], minlength=len(self.starts) - 1)),
            self.alpha[outputs],
            offsets_of(np.diff(self.part_starts)[outputs]),
            self.part[entries],
            self.value[entries],
        )


def _round_trip(batch: Structure, z: FloatArray) -> Flags:
    """The examples of a packed vector that decoding and encoding leave unchanged."""
    try:
        again = batch.encode(batch.decode(z))
    except (ValueError, TypeError, LookupError):  # an infeasible one: look for it in halves
        n = batch.n_examples
        if n <= 1:
            return np.zeros(n, dtype=bool)
        halves = np.arange(n // 2), np.arange(n // 2, n)
        return np.concatenate([_round_trip(batch.select(half), z[batch.parts_of(half)]) for half in halves])
    fine = np.ones(batch.n_examples, dtype=bool)
    wrong = np.flatnonzero(again != z)
    for block, start in zip(batch.blocks, batch.starts, strict=False):
        own = wrong[(wrong >= start) & (wrong < start + block.offsets[-1])] - start
        fine[np.searchsorted(block.offsets, own, side="right") - 1] = False
    return fine
