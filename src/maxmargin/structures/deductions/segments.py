"""Segmentations: a sequence is cut into labeled segments, scored as wholes (semi-Markov models).

Example ``i`` is a sequence of ``n`` positions. Its parts are the candidate segments, by first position, length and
label, and for each pair of labels ``(a, b)`` how often a segment of label ``b`` follows one of label ``a``. Cost of the
argmax: ``n L K + n K^2`` additions and maxima with ``K`` labels and segments of up to ``L`` positions (Sarawagi and
Cohen 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels
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


class Segments(Deduction):
    """A packed batch of sequences with two blocks, ``segments`` and ``transitions``.

    Args:
        lengths: of the sequences, shape ``(n_examples,)``; a sequence may be empty.
        n_labels: ``K``.
        longest: the most positions of a segment, ``L``.
        legal: ``(K, K)``, whether a segment of the second label may follow one of the first; None allows all.

    An output is an int64 array ``(n_segments, 3)``: first position, position after the last, label; in order, without
    gaps. Part ``(b, l, y)``, first position, length and label, stands at ``first[b] + (l - 1) K + y`` of the example's
    segments, where ``first[b]`` counts those that begin before ``b``; transitions are ``K x K`` counts.
    """

    name = "segmentation"
    kernel = "Segments"

    def __init__(
        self, lengths: npt.ArrayLike, n_labels: int, longest: int, *, legal: npt.ArrayLike | None = None
    ) -> None:
        self.lengths = counts_of(lengths, "lengths")
        self.n_labels = _checks.integer("n_labels", n_labels, least=1)
        self.longest = _checks.integer("longest", longest, least=1)
        k = self.n_labels
        self.legal = np.ones((k, k), dtype=np.bool_) if legal is None else np.asarray(legal)
        if self.legal.dtype != np.bool_ or self.legal.shape != (k, k):
            raise ValueError(f"legal must be boolean, of shape ({k}, {k})")
        n = len(self.lengths)
        self.blocks = (
            Block("segments", offsets_of(_before(self.lengths, self.lengths, self.longest) * k)),
            Block("transitions", np.arange(n + 1, dtype=np.int64) * k * k),
        )

    def __repr__(self) -> str:
        return (
            f"Segments({self.n_examples} sequences, {int(self.lengths.sum())} positions, {self.n_labels} labels, "
            f"segments of up to {self.longest})"
        )

    @cached_property
    def _batch(self) -> Any:
        legal = np.ascontiguousarray(self.legal, dtype=np.uint8)
        return _kernels.SegmentsBatch(self.lengths, self.longest, legal.reshape(-1), self.n_labels)

    @cached_property
    def part_bound(self) -> FloatArray:
        """1 for segments; for transitions the most there can be, one fewer than positions."""
        self._require_memory()
        most = np.repeat(np.maximum(self.lengths - 1, 0), self.n_labels**2)
        return np.concatenate([np.ones(self.starts[1]), most])

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """The parts of one segmentation per example."""
        given = enumerate(one_per_example(labels, self.n_examples, "segmentations"))
        rows = [_rows(label, i) for i, label in given]
        flat = np.concatenate([np.zeros((0, 3), dtype=np.int64), *rows])
        counts = np.array([len(own) for own in rows], dtype=np.int64)
        example = np.repeat(np.arange(self.n_examples), counts)
        self._check(flat, example, counts)
        begin, length, label = flat[:, 0], flat[:, 1] - flat[:, 0], flat[:, 2]
        k = self.n_labels
        first = _before(begin, self.lengths[example], self.longest)
        segment = self.blocks[0].offsets[example] + (first + length - 1) * k + label
        joined = np.flatnonzero(example[1:] == example[:-1])
        pair = self.starts[1] + example[joined] * k * k + label[joined] * k + label[joined + 1]
        return SparsePoint.counting(self, np.concatenate([segment, pair]))

    def _check(self, flat: IntArray, example: IntArray, counts: IntArray) -> None:
        """ValueError naming the first example whose rows are not a legal segmentation."""
        k = self.n_labels
        ends = np.cumsum(counts)
        starts = np.concatenate([[0], flat[:-1, 1]]) if len(flat) else np.zeros(0, dtype=np.int64)
        starts[(ends - counts)[counts > 0]] = 0
        illegal = np.zeros(len(flat), dtype=np.bool_)
        inside = (flat[:, 2] >= 0) & (flat[:, 2] < k)
        follows = np.flatnonzero((example[1:] == example[:-1]) & inside[1:] & inside[:-1]) + 1
        illegal[follows] = ~self.legal[flat[follows - 1, 2], flat[follows, 2]]
        faults = (
            (flat[:, 0] != starts, "does not begin where the one before it ends, or at 0"),
            (flat[:, 1] <= flat[:, 0], "is empty; its end must lie after its begin"),
            (flat[:, 1] - flat[:, 0] > self.longest, f"is longer than {self.longest}; cut it or raise longest"),
            (flat[:, 1] > self.lengths[example], "ends after the sequence"),
            (~inside, f"has a label that is not between 0 and {k - 1}"),
            (illegal, "has a label that may not follow the one before it"),
        )
        for wrong, what in faults:
            if wrong.any():
                at = int(np.argmax(wrong))
                raise ValueError(f"example {int(example[at])}: segment {tuple(flat[at].tolist())} {what}")
        last = np.zeros(self.n_examples, dtype=np.int64)
        last[counts > 0] = flat[ends[counts > 0] - 1, 1]
        short = np.flatnonzero(last != self.lengths)
        if short.size:
            i = int(short[0])
            raise ValueError(
                f"example {i}: the segments end at {int(last[i])} and the sequence at {int(self.lengths[i])}; "
                "segments must cover all positions"
            )

    def decode(self, z: FloatArray) -> list[IntArray]:
        """The segmentations of a packed vertex: per example an int64 array ``(n_segments, 3)``."""
        taken = np.flatnonzero(vector(z, self.n_parts, "z")[: self.starts[1]] > 0.5)
        offsets, k = self.blocks[0].offsets, self.n_labels
        example = np.searchsorted(offsets, taken, side="right") - 1
        number, label = np.divmod(taken - offsets[example], k)
        begin = _begin_of(number, self.lengths[example], self.longest)
        length = number - _before(begin, self.lengths[example], self.longest) + 1
        rows = np.stack([begin, begin + length, label], axis=1)
        return np.split(rows, np.searchsorted(example, np.arange(1, self.n_examples))) if self.n_examples else []

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order; an example may come several times."""
        chosen = example_numbers(indices, self.n_examples)
        return type(self)(self.lengths[chosen], self.n_labels, self.longest, legal=self.legal)


def _rows(given: Any, index: int) -> IntArray:
    found = integers(given, f"example {index}: segments")
    if found.size == 0:
        return np.zeros((0, 3), dtype=np.int64)
    if found.ndim != 2 or found.shape[1] != 3:
        raise ValueError(
            f"example {index}: segments must be rows (begin, end, label), shape (n_segments, 3), got {found.shape}"
        )
    return found


def _before(position: IntArray, length: IntArray, longest: int) -> IntArray:
    """How many pairs of a first position below ``position`` and a length there are in a sequence."""
    full = np.minimum(position, np.maximum(length - longest + 1, 0))
    rest, left = length - full, length - position
    counts: IntArray = full * longest + (rest * (rest + 1) - left * (left + 1)) // 2
    return counts


def _begin_of(number: IntArray, length: IntArray, longest: int) -> IntArray:
    """The first position of the pair with this number: the inverse of :func:`_before`."""
    full = np.maximum(length - longest + 1, 0)
    rest, over = length - full, number - full * longest
    # Of the last positions, `left` still follow where rest (rest + 1) / 2 - over pairs do.
    left = (np.sqrt(8.0 * np.maximum(rest * (rest + 1) // 2 - over, 0) + 1.0) - 1.0) / 2.0
    begin = np.where(over < 0, number // longest, length - np.ceil(left - 1e-9).astype(np.int64))
    return begin.astype(np.int64)
