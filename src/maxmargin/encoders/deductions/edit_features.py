"""Features of edit operations on the symbols they meet, and the same as tables for fast scores.

Symbols are numbered by *rows*: the ``K`` known ones first; then one row for unknown symbols of each class (the first of
these for symbols without a class); last a row for what lies beyond the ends of a sequence. All features are 0 or 1:

- a pair: equal or different symbols, the same once more if they are the first or the last symbols of both sequences,
  the pair of classes (of different symbols), the pair of known symbols;
- a symbol in a gap: any, first or last of its sequence, the same as the symbol before it, its class, which symbol it
  is, which known symbols stand before and after it;
- the opening of a gap: any, first or last of its sequence, the class, which symbol it is.

Gaps of the two sequences have weights of their own, unless the features are symmetric: then those of ``(a, b)`` are
those of ``(b, a)``, and scores do not depend on the order of the sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin import _kernels
from maxmargin._sparse import sp
from maxmargin.encoders.deductions.symbols import SymbolSequences
from maxmargin.structures.base import FloatArray, IntArray

MOST_SYMBOLS = 1024
"""Known symbols; each pair of them has weights."""

_EQUAL, _DIFFERENT, _FIRST, _LAST, _PAIR_COLUMNS = 0, 1, 2, 4, 6
_GAP, _BEGIN, _END, _REPEAT, _GAP_COLUMNS = 0, 1, 2, 3, 4
_OPEN_COLUMNS = 3
_SIDES = "first", "second"

Columns = list[IntArray]
"""Columns of the features of some parts, one array for each kind of feature; -1 where a part does not have it."""


class Tables(NamedTuple):
    """Scores by rows of symbols, as ``_kernels.edit_scores`` takes them; R rows.

    Attributes:
        pairs: of pairs, shape ``(R, R)``.
        equal: of pairs of equal symbols of a row, shape ``(R,)``.
        gap_before: of a symbol in a gap of each side, by the row before and its own, shape ``(2, R, R)``.
        gap_after: likewise by its own row and the one after; the two add up.
        open_before: of openings.
        open_after: likewise.
        ends: more for a pair of first symbols that are equal, that differ, and of last symbols; shape ``(4,)``.
    """

    pairs: FloatArray
    equal: FloatArray
    gap_before: FloatArray
    gap_after: FloatArray
    open_before: FloatArray
    open_after: FloatArray
    ends: FloatArray


@dataclass(frozen=True, eq=False)
class EditFeatures:
    """The features of symbols.

    Attributes:
        symbols: the known symbols.
        classes: classes of symbols, known or not; empty for none.
        symmetric: whether both sequences share the weights.
        context: whether gaps see their neighbors.
        by_symbol: whether there are any features of symbols; without, only gaps and openings are counted.
    """

    symbols: tuple[Hashable, ...]
    classes: Mapping[Hashable, Hashable]
    symmetric: bool
    context: bool
    by_symbol: bool = True

    @cached_property
    def class_names(self) -> tuple[Hashable, ...]:
        """The classes, in order of their first symbol."""
        return tuple(dict.fromkeys(self.classes.values()))

    @property
    def n_classes(self) -> int:
        """Classes, and one for symbols without."""
        return len(self.class_names) + 1

    @property
    def n_rows(self) -> int:
        """Known symbols, unknown ones of each class, and beyond the ends."""
        return len(self.symbols) + self.n_classes + 1

    @property
    def _edge(self) -> int:
        return self.n_rows - 1

    @cached_property
    def _row(self) -> dict[Hashable, int]:
        return {symbol: row for row, symbol in enumerate(self.symbols)}

    @cached_property
    def _class_number(self) -> dict[Hashable, int]:
        return {name: number for number, name in enumerate(self.class_names, 1)}

    def _class_of(self, symbol: Hashable) -> int:
        return self._class_number[self.classes[symbol]] if symbol in self.classes else 0

    @cached_property
    def _class_of_row(self) -> IntArray:
        own = [self._class_of(symbol) for symbol in self.symbols]
        return np.array([*own, *range(self.n_classes), 0], dtype=np.int64)

    def rows(self, sequences: SymbolSequences) -> IntArray:
        """The row of every symbol."""
        k = len(self.symbols)
        table = [self._row.get(symbol, k + self._class_of(symbol)) for symbol in sequences.symbols]
        return np.array(table, dtype=np.int64)[sequences.numbers]

    # Weights: pairs, then gaps of each side, then openings of each side.

    @property
    def n_pair_weights(self) -> int:
        """Weights of pairs."""
        k, c = len(self.symbols), self.n_classes
        return _PAIR_COLUMNS + (c * c if c > 1 else 0) + k * k if self.by_symbol else 0

    @property
    def _n_gap(self) -> int:
        k = len(self.symbols)
        return _GAP_COLUMNS + self.n_classes + k + 1 + (2 * k * k if self.context else 0) if self.by_symbol else 1

    @property
    def _n_open(self) -> int:
        return _OPEN_COLUMNS + self.n_classes + len(self.symbols) + 1 if self.by_symbol else 1

    @property
    def n_sides(self) -> int:
        """1 if both sequences share the weights of gaps."""
        return 1 if self.symmetric else 2

    @property
    def n_gap_weights(self) -> int:
        """Weights of gaps."""
        return self.n_sides * self._n_gap

    @property
    def n_open_weights(self) -> int:
        """Weights of openings."""
        return self.n_sides * self._n_open

    def pair_columns(self, one: IntArray, two: IntArray, equal: npt.NDArray[np.bool_]) -> Columns:
        """The features of pairs of symbols by their rows, but for those of ends."""
        k, c = len(self.symbols), self.n_classes
        if not self.by_symbol:
            return []
        found = [np.where(equal, _EQUAL, _DIFFERENT)]
        low, high = (np.minimum(one, two), np.maximum(one, two)) if self.symmetric else (one, two)
        start = _PAIR_COLUMNS
        if c > 1:
            first, second = self._class_of_row[one], self._class_of_row[two]
            if self.symmetric:
                first, second = np.minimum(first, second), np.maximum(first, second)
            found.append(np.where(equal, -1, start + first * c + second))
            start += c * c
        found.append(np.where((one < k) & (two < k), start + low * k + high, -1))
        return found

    def end_columns(
        self, equal: npt.NDArray[np.bool_], first: npt.NDArray[np.bool_], last: npt.NDArray[np.bool_]
    ) -> Columns:
        """The features of pairs that are the first or the last symbols of both sequences."""
        if not self.by_symbol:
            return []
        return [np.where(at, start + ~equal, -1) for at, start in ((first, _FIRST), (last, _LAST))]

    def gap_columns(self, side: int, before: IntArray, own: IntArray) -> Columns:
        """The features of symbols in gaps that see their own row and the one before."""
        base, k, c = self._side(side) * self._n_gap, len(self.symbols), self.n_classes
        found = [np.full(own.shape, base + _GAP)]
        if not self.by_symbol:
            return found
        found.append(np.where(before == self._edge, base + _BEGIN, -1))
        found.append(np.where((before == own) & (own < k), base + _REPEAT, -1))
        found.append(base + _GAP_COLUMNS + self._class_of_row[own])
        found.append(base + _GAP_COLUMNS + c + np.minimum(own, k))
        if self.context:
            start = base + _GAP_COLUMNS + c + k + 1
            found.append(np.where((before < k) & (own < k), start + before * k + own, -1))
        return found

    def gap_columns_after(self, side: int, own: IntArray, after: IntArray) -> Columns:
        """The features of symbols in gaps that see their own row and the one after."""
        base, k, c = self._side(side) * self._n_gap, len(self.symbols), self.n_classes
        if not self.by_symbol:
            return []
        found = [np.where(after == self._edge, base + _END, -1)]
        if self.context:
            start = base + _GAP_COLUMNS + c + k + 1 + k * k
            found.append(np.where((own < k) & (after < k), start + own * k + after, -1))
        return found

    def open_columns(self, side: int, before: IntArray, own: IntArray) -> Columns:
        """The features of openings that see their own row and the one before."""
        base, k, c = self._side(side) * self._n_open, len(self.symbols), self.n_classes
        found = [np.full(own.shape, base + _GAP)]
        if not self.by_symbol:
            return found
        found.append(np.where(before == self._edge, base + _BEGIN, -1))
        found.append(base + _OPEN_COLUMNS + self._class_of_row[own])
        found.append(base + _OPEN_COLUMNS + c + np.minimum(own, k))
        return found

    def open_columns_after(self, side: int, own: IntArray, after: IntArray) -> Columns:
        """The features of openings that see their own row and the one after."""
        if not self.by_symbol:
            return []
        return [np.where(after == self._edge, self._side(side) * self._n_open + _END, -1)]

    def _side(self, side: int) -> int:
        return 0 if self.symmetric else side

    def _row_text(self, row: int) -> str:
        """A row of symbols in names."""
        return repr(self.symbols[row]) if row < len(self.symbols) else "unknown symbol"

    def _class_text(self, number: int) -> str:
        return str(self.class_names[number - 1]) if number else "no class"

    def pair_text(self, at: int) -> str:
        """The name of a feature of pairs."""
        k, c = len(self.symbols), self.n_classes
        if at < _PAIR_COLUMNS:
            ends = ("", ", first symbols", ", last symbols")[at // 2]
            return f"{'different' if at % 2 else 'equal'} symbols{ends}"
        at -= _PAIR_COLUMNS
        if c > 1:
            if at < c * c:
                return " and ".join(map(self._class_text, divmod(at, c)))
            at -= c * c
        return " and ".join(map(self._row_text, divmod(at, k)))

    def gap_text(self, at: int) -> str:
        """The name of a feature of symbols in gaps."""
        side, at = divmod(at, self._n_gap)
        k, c = len(self.symbols), self.n_classes
        words = "gap" if self.symmetric else f"{_SIDES[side]} in a gap"
        if at < _GAP_COLUMNS:
            return words + ("", ", first symbol", ", last symbol", ", same symbol as before")[at]
        at -= _GAP_COLUMNS
        if at < c:
            return f"{words}, {self._class_text(at)}"
        at -= c
        if at <= k:
            return f"{words}, {self._row_text(at)}"
        after, at = divmod(at - k - 1, k * k)
        one, two = map(self._row_text, divmod(at, k))
        return f"{words}, {one} before {two}" if after else f"{words}, {two} after {one}"

    def open_text(self, at: int) -> str:
        """The name of a feature of openings."""
        side, at = divmod(at, self._n_open)
        c = self.n_classes
        words = "opening" if self.symmetric else f"{_SIDES[side]} opens a gap"
        if at < _OPEN_COLUMNS:
            return words + ("", ", first symbol", ", last symbol")[at]
        at -= _OPEN_COLUMNS
        return f"{words}, {self._class_text(at) if at < c else self._row_text(at - c)}"

    def neighbors(self, rows: IntArray, offsets: IntArray) -> tuple[IntArray, IntArray]:
        """The rows before and after every symbol of sequences that begin at ``offsets``."""
        before, after = np.roll(rows, 1), np.roll(rows, -1)
        nonempty = np.diff(offsets) > 0
        before[offsets[:-1][nonempty]] = self._edge
        after[offsets[1:][nonempty] - 1] = self._edge
        return before, after

    def tables(self, pairs: FloatArray, gaps: FloatArray, openings: FloatArray | None) -> Tables:
        """The scores of all combinations of rows under weights of pairs, gaps and openings (None: linear gaps)."""
        r, k = self.n_rows, len(self.symbols)
        one, two = (grid.ravel() for grid in np.indices((r, r)))
        every = np.arange(r)
        sides = (0, 1)

        def both(columns: Callable[[int, IntArray, IntArray], Columns], weights: FloatArray | None) -> FloatArray:
            if weights is None:
                return np.zeros((2, r, r))
            return np.stack([_summed(columns(side, one, two), weights, r * r).reshape(r, r) for side in sides])

        alike = (one == two) & (one < k)
        return Tables(
            _summed(self.pair_columns(one, two, alike), pairs, r * r).reshape(r, r),
            _summed(self.pair_columns(every, every, np.ones(r, dtype=np.bool_)), pairs, r),
            both(self.gap_columns, gaps),
            both(self.gap_columns_after, gaps),
            both(self.open_columns, openings),
            both(self.open_columns_after, openings),
            pairs[_FIRST:_PAIR_COLUMNS].copy() if self.by_symbol else np.zeros(4),
        )

    def unit_weights(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights of pairs, gaps and openings under which the best alignments have the fewest edits.

        Among these, those with the fewest gaps.
        """
        pairs, gaps, openings = (np.zeros(n) for n in (self.n_pair_weights, self.n_gap_weights, self.n_open_weights))
        pairs[_DIFFERENT : _DIFFERENT + 1] = -1.0
        gaps[:: self._n_gap] = -1.0
        openings[:: self._n_open] = -1e-3
        return pairs, gaps, openings


def _summed(columns: Columns, weights: FloatArray, n: int) -> FloatArray:
    """The sums of the weights of some parts' features, shape ``(n,)``."""
    total = np.zeros(n)
    for column in columns:
        total += np.where(column >= 0, weights[column], 0.0)
    return total


def matrix(columns: Columns, n: int, width: int) -> sp.csr_array:
    """Features of 0 and 1 as a CSR matrix, shape ``(n, width)``."""
    lists = np.stack([*columns]).astype(np.int64, copy=False) if columns else np.zeros((0, n), dtype=np.int64)
    starts: npt.NDArray[Any] = np.empty(n + 1, dtype=np.int32 if max(lists.size, width) < 1 << 31 else np.int64)
    chosen = _kernels.indicator_rows(lists, width, starts)
    return sp.csr_array((np.ones(len(chosen)), chosen, starts), shape=(n, width))
