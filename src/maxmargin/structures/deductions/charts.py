"""Charts: structures whose parts belong to the spans ``(begin, end)`` of a sentence, ``0 <= begin < end <= n``.

The rows of a chart are its spans, ordered by begin, then by end: ``(0, 1), (0, 2), ..., (0, n), (1, 2), ...``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _memory
from maxmargin.structures._arrays import counts_of, integers, offsets_of, one_per_example, vector
from maxmargin.structures.base import Block, FloatArray, IntArray
from maxmargin.structures.deductions.base import Deduction
from maxmargin.structures.sparse import SparsePoint

MOST_TOKENS = 1 << 12
"""The longest sentence of a chart."""


def spans_of(n: int) -> IntArray:
    """The spans of a sentence of ``n`` tokens as rows ``(begin, end)``, in the order of a chart's features."""
    begin, last = np.triu_indices(_checks.integer("n", n, least=0, most=MOST_TOKENS))
    return np.stack([begin, last + 1], axis=1).astype(np.int64)


def splits_of(n: int) -> IntArray:
    """The splits of a sentence of ``n`` tokens as rows ``(begin, split, end)``, in the order of a chart's features."""
    spans = spans_of(n)
    _memory.require(8.0 * n**3, f"the splits of {n} tokens", "give shorter sentences")
    size = spans[:, 1] - spans[:, 0] - 1
    owner = np.repeat(np.arange(len(spans)), size)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
    return np.stack([spans[owner, 0], spans[owner, 0] + 1 + place, spans[owner, 1]], axis=1)


def row_of(n: npt.ArrayLike, begin: IntArray, end: IntArray) -> IntArray:
    """The row of a span in the chart of ``n`` tokens."""
    return np.asarray(begin * (2 * np.asarray(n) - begin + 1) // 2 + end - begin - 1, dtype=np.int64)


def span_of(n: IntArray, row: IntArray) -> tuple[IntArray, IntArray]:
    """Begin and end of rows: the inverse of :func:`row_of`."""
    after = n * (n + 1) // 2 - row  # rows from this one on: more than those of one begin less
    left = np.ceil((np.sqrt(8.0 * after + 1.0) - 1.0) / 2.0 - 1e-9).astype(np.int64)
    begin = n - left
    return begin, row - row_of(n, begin, begin + 1) + begin + 1


class Chart(Deduction):
    """A packed batch of charts. The first block has for every span the same parts, or for every token and every longer
    span; an output is an int64 array ``(n_used, 3)`` of ``(begin, end, number)`` in preorder: a node comes before those
    inside it, and left before right.

    Attributes:
        lengths: numbers of tokens, shape ``(n_examples,)``.
    """

    categorical = False
    lengths: IntArray

    def _set_lengths(self, lengths: npt.ArrayLike) -> None:
        self.lengths = counts_of(lengths, "lengths")
        wrong = np.flatnonzero((self.lengths < 1) | (self.lengths > MOST_TOKENS))
        if wrong.size:
            i = int(wrong[0])
            raise ValueError(
                f"example {i}: a sentence of {int(self.lengths[i])} tokens; give 1 to {MOST_TOKENS}, or remove it"
            )

    def _set_blocks(self, name: str, *others: Block) -> None:
        self.blocks = (Block(name, self._part_offsets[self._row_offsets]), *others)

    @cached_property
    def _row_offsets(self) -> IntArray:
        """Where the rows of each example begin."""
        return offsets_of(self.lengths * (self.lengths + 1) // 2)

    @cached_property
    @abstractmethod
    def _part_offsets(self) -> IntArray:
        """Where the parts of each row of the batch begin in the first block."""

    @cached_property
    @abstractmethod
    def _first_number(self) -> IntArray:
        """The number of the first part of each row."""

    @abstractmethod
    def _check(self, rows: IntArray, index: int) -> None:
        """ValueError unless the rows of an example, ``(begin, end, number)``, are an output; spans are in range."""

    def parts_of_spans(self, index: int) -> tuple[IntArray, IntArray]:
        """Where the parts of each span of an example begin in its first block, and the end; the first ones' numbers."""
        first, last = self._row_offsets[index : index + 2].tolist()
        begin = self._part_offsets[first : last + 1]
        return begin - begin[0], self._first_number[first:last]

    @property
    def _tokens(self) -> IntArray:
        """The rows of single tokens."""
        example = np.repeat(np.arange(self.n_sentences), self.lengths)
        begin = np.arange(len(example)) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        return self._row_offsets[example] + row_of(self.lengths[example], begin, begin + 1)

    @property
    def n_sentences(self) -> int:
        """Number of examples, known before the blocks are."""
        return len(self.lengths)

    def _rows(self, labels: Sequence[Any], what: str) -> list[IntArray]:
        """The outputs as checked arrays ``(n_used, 3)``."""
        found = []
        for i, given in enumerate(one_per_example(labels, self.n_examples, what)):
            rows = integers(given, f"example {i}: {what}")
            if rows.size == 0:
                rows = np.zeros((0, 3), dtype=np.int64)
            if rows.ndim != 2 or rows.shape[1] != 3:
                raise ValueError(
                    f"example {i}: {what} must be rows (begin, end, number), shape (n, 3), got {rows.shape}"
                )
            n = int(self.lengths[i])
            outside = (rows[:, 0] < 0) | (rows[:, 1] > n) | (rows[:, 0] >= rows[:, 1])
            if outside.any():
                bad = tuple(rows[int(np.argmax(outside))].tolist())
                raise ValueError(f"example {i}: {bad} is not a span of {n} tokens; it needs 0 <= begin < end <= {n}")
            self._check(rows, i)
            found.append(rows)
        return found

    def _places(self, rows: Sequence[IntArray]) -> IntArray:
        """Where the parts of the rows of all examples stand in a packed vector."""
        example = np.repeat(np.arange(self.n_examples), [len(own) for own in rows])
        begin, end, number = np.concatenate([np.zeros((0, 3), dtype=np.int64), *rows]).T
        row = self._row_offsets[example] + row_of(self.lengths[example], begin, end)
        return np.asarray(self._part_offsets[row] + number - self._first_number[row], dtype=np.int64)

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """The packed 0/1 vector of one output per example."""
        return SparsePoint.from_index(self, self._places(self._rows(labels, "an output")))

    def _taken(self, z: FloatArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Example, begin, end and number of the parts of the first block that a packed vertex has."""
        taken = np.flatnonzero(vector(z, self.n_parts, "z")[: self.starts[1]] > 0.5)
        row = np.searchsorted(self._part_offsets, taken, side="right") - 1
        example = np.searchsorted(self._row_offsets, row, side="right") - 1
        begin, end = span_of(self.lengths[example], row - self._row_offsets[example])
        return example, begin, end, taken - self._part_offsets[row] + self._first_number[row]

    def _order(self, number: IntArray) -> IntArray:
        """Which of several parts of one span comes first: keys that fall from the outermost one."""
        return number

    def decode(self, z: FloatArray) -> list[IntArray]:
        """The outputs of a packed vertex: per example an int64 array ``(n_used, 3)`` in preorder."""
        example, begin, end, number = self._taken(z)
        order = np.lexsort((self._order(number), -end, begin, example))
        rows = np.stack([begin, end, number], axis=1)[order]
        return np.split(rows, np.searchsorted(example[order], np.arange(1, self.n_examples))) if self.n_examples else []
