"""Alignments of two sequences: pairs, deletions and insertions, with affine gaps.

Example ``i`` has a sequence of ``n`` symbols and one of ``m``. An alignment pairs symbols of the first with symbols of
the second, in order and without crossing; symbols of the first without a partner are *deleted*, those of the second
*inserted*. A *gap* is a run of deletions or of insertions between two pairs. With affine gaps (Gotoh 1982) its first
symbol also pays for opening it.

Between two pairs deletions come before insertions, so an alignment is its set of pairs and has one derivation: with all
scores zero there are ``binomial(n + m, n)`` alignments. Cost of the argmax: 8 additions and maxima for each of the
``(n + 1) (m + 1)`` cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _memory
from maxmargin.structures._arrays import (
    counts_of,
    example_numbers,
    integers,
    offsets_of,
    one_per_example,
    vector,
)
from maxmargin.structures.base import Block, FloatArray, IntArray
from maxmargin.structures.deductions.base import Deduction
from maxmargin.structures.sparse import SparsePoint

MOST_ITEMS = (1 << 31) - 1
"""The kernel counts three items for each cell of an example up to this."""


class Edits(Deduction):
    """A packed batch of pairs of sequences with the blocks ``pairs``, ``gaps`` and, for affine gaps, ``openings``.

    Args:
        first: lengths ``n`` of the first sequences, shape ``(n_examples,)``; a sequence may be empty.
        second: lengths ``m`` of the second ones.
        affine: whether the first symbol of a gap has a part of its own, its opening.
        nonmatch: whether an output may also say that the two sequences do not match; its one part is then the first
            block, ``nonmatch``.

    An output is an int64 array ``(k, 2)`` of pairs ``(i, j)``, rising in both columns; or None if the sequences do not
    match. Of an example, pair ``(i, j)`` is part ``i m + j`` of its pairs; gaps and openings have one part for each
    symbol of the first sequence, then one for each of the second. A Hamming loss counts wrong pairs, or where there may
    be no match, whether the verdict is wrong.
    """

    name = "edit alignment"
    kernel = "Edits"
    categorical = False

    def __init__(
        self, first: npt.ArrayLike, second: npt.ArrayLike, *, affine: bool = True, nonmatch: bool = False
    ) -> None:
        self.first, self.second = counts_of(first, "first"), counts_of(second, "second")
        if self.first.shape != self.second.shape:
            raise ValueError(
                f"{len(self.first)} lengths of first and {len(self.second)} of second sequences; give one each"
            )
        self.affine, self.nonmatch = _checks.flag("affine", affine), _checks.flag("nonmatch", nonmatch)
        cells = (self.first + 1.0) * (self.second + 1.0)
        if cells.size:
            most = int(np.argmax(cells))
            if 3.0 * cells[most] > MOST_ITEMS:
                raise ValueError(
                    f"example {most}: sequences of {int(self.first[most])} and {int(self.second[most])} symbols are "
                    "too long to align; split them"
                )
            _memory.require(8.0 * float(cells[most]), f"example {most}: its pairs", "split the sequences")
        self._set_blocks()

    def _set_blocks(self) -> None:
        gaps = offsets_of(self.first + self.second)
        blocks = [Block("pairs", offsets_of(self.first * self.second)), Block("gaps", gaps)]
        if self.affine:
            blocks.append(Block("openings", gaps))
        if self.nonmatch:
            blocks.insert(0, Block("nonmatch", np.arange(len(self.first) + 1, dtype=np.int64)))
        self.blocks = tuple(blocks)

    def __repr__(self) -> str:
        return (
            f"Edits({self.n_examples} pairs of sequences, {int(self.first.sum())} and {int(self.second.sum())} symbols"
            f"{', affine gaps' if self.affine else ''}{', may not match' if self.nonmatch else ''})"
        )

    @cached_property
    def _batch(self) -> Any:
        return _kernels.EditsBatch(self.first, self.second, self.affine, self.nonmatch)

    @property
    def _pairs_start(self) -> int:
        """Where the pairs begin in a packed vector."""
        return self.starts[int(self.nonmatch)]

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """The parts of one alignment per example: pairs ``(k, 2)``, or None for no match."""
        given = one_per_example(labels, self.n_examples, "alignments")
        matched = np.array([label is not None for label in given], dtype=np.bool_)
        if not self.nonmatch and not matched.all():
            i = int(np.argmin(matched))
            raise ValueError(f"example {i}: None says that the sequences do not match; build Edits with nonmatch=True")
        empty = np.zeros((0, 2), dtype=np.int64)
        rows = [empty if label is None else _pairs(label, i) for i, label in enumerate(given)]
        flat = np.concatenate([empty, *rows])
        counts = np.array([len(own) for own in rows], dtype=np.int64)
        example = np.repeat(np.arange(self.n_examples), counts)
        self._check(flat, example)
        pairs = self._pairs_start + self.blocks[int(self.nonmatch)].offsets[example]
        pairs += flat[:, 0] * self.second[example] + flat[:, 1]
        gap, opening = self._gaps(flat, example, matched)
        start = int(self.nonmatch) + 1
        parts = [np.flatnonzero(~matched), pairs, self.starts[start] + gap]
        if self.affine:
            parts.append(self.starts[start + 1] + opening)
        return SparsePoint.from_index(self, np.concatenate(parts))

    def _check(self, flat: IntArray, example: IntArray) -> None:
        """ValueError naming the first example whose pairs are not an alignment."""
        lengths = np.stack([self.first[example], self.second[example]], axis=1)
        outside = ((flat < 0) | (flat >= lengths)).any(axis=1)
        falls = np.zeros(len(flat), dtype=np.bool_)
        if len(flat):
            falls[1:] = (example[1:] == example[:-1]) & (flat[1:] <= flat[:-1]).any(axis=1)
        for wrong, what in (
            (outside, "is out of range for sequences of {} and {} symbols"),
            (falls, "does not lie after the pair before it; pairs must rise in both columns"),
        ):
            if wrong.any():
                at = int(np.argmax(wrong))
                said = what.format(*lengths[at].tolist())
                raise ValueError(f"example {int(example[at])}: pair {tuple(flat[at].tolist())} {said}")

    def _gaps(self, flat: IntArray, example: IntArray, matched: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
        """The symbols in gaps, numbered over the batch, and those that open one."""
        offsets = self.blocks[-1].offsets
        free = np.repeat(matched, self.first + self.second)
        free[offsets[example] + flat[:, 0]] = False
        free[offsets[example] + self.first[example] + flat[:, 1]] = False
        opens = free.copy()
        opens[1:] &= ~free[:-1]
        for begin, length in ((offsets[:-1], self.first), (offsets[:-1] + self.first, self.second)):
            heads = begin[length > 0]
            opens[heads] = free[heads]
        return np.flatnonzero(free), np.flatnonzero(opens)

    def decode(self, z: FloatArray) -> list[IntArray | None]:
        """The alignments of a packed vertex: per example an int64 array ``(k, 2)``, or None for no match."""
        z = vector(z, self.n_parts, "z")
        offsets, start = self.blocks[int(self.nonmatch)].offsets, self._pairs_start
        taken = np.flatnonzero(z[start : start + int(offsets[-1])] > 0.5)
        example = np.searchsorted(offsets, taken, side="right") - 1
        rows = np.stack(np.divmod(taken - offsets[example], np.maximum(self.second[example], 1)), axis=1)
        found: list[IntArray | None] = []
        if self.n_examples:
            found += np.split(rows, np.searchsorted(example, np.arange(1, self.n_examples)))
        if self.nonmatch:
            for i in np.flatnonzero(z[: self.n_examples] > 0.5).tolist():
                found[i] = None
        return found

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order; an example may come several times."""
        chosen = example_numbers(indices, self.n_examples)
        other = type(self).__new__(type(self))
        other.first, other.second = self.first[chosen], self.second[chosen]
        other.affine, other.nonmatch = self.affine, self.nonmatch
        other._set_blocks()
        return other


def _pairs(given: Any, index: int) -> IntArray:
    found = integers(given, f"example {index}: an alignment")
    if found.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if found.ndim != 2 or found.shape[1] != 2:
        raise ValueError(
            f"example {index}: an alignment must be pairs of positions, shape (k, 2), got shape {found.shape}"
        )
    return found
