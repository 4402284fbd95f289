"""Features of hypotheses: their names, files with a line per hypothesis, and which of them are sparse.

A name that has several values in a file stands for as many features: ``ffvals,1``, ``ffvals,2``, ...

A sparse feature has an underscore in its name and one value, as Moses writes them, and is missing in some lines, where
it counts 0. Any other feature must be in every line.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._messages import quoted
from maxmargin._sparse import sp
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.common.files.compression import plain_name
from maxmargin.tasks.common.files.text import STANDARD_INPUT, AnyPath, FileError, count_of, problem, read_text

_BLANKS = 1
"""The layout of cells that runs of white space separate, as the kernel numbers them."""

_RAGGED = 2
"""The kernel's number for a line with another number of cells."""


def feature_name(path: AnyPath) -> str:
    """Return what the feature of a file is called: like the file, without the end of compressed ones."""
    return os.path.basename(plain_name(path))


def column_names(name: str, width: int) -> list[str]:
    """Return the names of the features that ``width`` values of one name are."""
    return [name] if width == 1 else [f"{name},{column}" for column in range(1, width + 1)]


def floats(values: Sequence[float]) -> FloatArray:
    """Return numbers as an array; integers that no float holds are infinite."""
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:
        return np.array([float(one) if abs(one) < 1e300 else np.inf for one in values])


def text_numbers(path: AnyPath, data: bytes, begin: IntArray, end: IntArray, lines: IntArray) -> FloatArray:
    """Return the numbers at places of a text, in the shape of ``begin``, whose rows stand on ``lines``."""
    out = np.empty(begin.shape)
    bad = _kernels.text_numbers(np.frombuffer(data, dtype=np.uint8), begin.ravel(), end.ravel(), out.reshape(-1))
    if bad >= 0:
        row = bad // (begin.size // len(begin))
        piece = data[begin.flat[bad] : end.flat[bad]]
        raise problem(path, int(lines[row]), f"{quoted(piece)} is not a finite number; give one, such as -1.25")
    return out


@dataclass(frozen=True, eq=False)
class Columns:
    """The content of a file of features.

    Attributes:
        path: the file.
        names: names of the columns.
        data: its content.
        begin: where the cells of each line that has any begin, shape ``(n_rows, len(names))``.
        end: where they end.
        lines: these lines, from 1, shape ``(n_rows,)``.
        n_lines: lines of the file.
    """

    path: AnyPath
    names: list[str]
    data: bytes
    begin: IntArray
    end: IntArray
    lines: IntArray
    n_lines: int

    def rows(self, n_lines: int, kept: IntArray | None, where: str) -> FloatArray:
        """Return the features of the hypotheses.

        Args:
            n_lines: lines of the file of lists, with those that pad lists.
            kept: the hypotheses among them, from 0; None for all.
            where: the name of that file.
        """
        count = n_lines if kept is None else len(kept)
        if self.n_lines not in (n_lines, count):
            there = f"{count} hypotheses" + ("" if count == n_lines else f" on {n_lines} lines")
            message = f"{count_of(self.n_lines, 'line')}, and {where} has {there}; give one line per hypothesis"
            raise problem(self.path, None, message)
        # The lines that pad lists may be empty or say nan.
        wanted = np.arange(count) if kept is None or self.n_lines != n_lines else kept
        at = np.searchsorted(self.lines, wanted + 1)
        found = self.lines[np.minimum(at, len(self.lines) - 1)] == wanted + 1
        if not found.all():
            line = int(wanted[np.argmin(found)]) + 1
            raise problem(self.path, line, "an empty line; give the features of each hypothesis on its line")
        return text_numbers(self.path, self.data, self.begin[at], self.end[at], self.lines[at])


def read_columns(path: AnyPath, name: str | None = None) -> Columns:
    """Read a file with the values of one or more features on each line, separated by white space.

    Features are called like the file, without the end of compressed ones, or as given.
    """
    if name is None:
        if str(path) == STANDARD_INPUT:
            raise FileError("features on standard input have no name; give one, or a file")
        name = feature_name(path)
    return columns_of(path, name, read_text(path))


def columns_of(path: AnyPath, name: str, data: bytes) -> Columns:
    """Return the features of a file, or of consecutive lines of one, whose content has been read."""
    text = np.frombuffer(data, dtype=np.uint8)
    n_lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    rows, groups = _kernels.token_count(text, _BLANKS)
    if not rows:
        raise problem(path, None, "no numbers; give the values of features, a line per hypothesis")
    width = len(data.lstrip().partition(b"\n")[0].split())
    begin, end = (np.empty((rows, width), dtype=np.int64) for _ in range(2))
    lines, starts = np.empty(rows, dtype=np.int64), np.empty(groups + 1, dtype=np.int64)
    fault, line, found, _, _ = _kernels.token_scan(text, _BLANKS, begin, end, lines, starts)
    if fault == _RAGGED:
        raise problem(
            path, line, f"{count_of(found, 'number')}, and line {lines[0]} has {width}; give each line the same columns"
        )
    return Columns(path, column_names(name, width), data, begin, end, lines, n_lines)


@dataclass(frozen=True, eq=False)
class Entries:
    """Named values of hypotheses, as files give them one by one.

    Attributes:
        starts: the entries of hypothesis ``i`` are ``starts[i]:starts[i + 1]``.
        columns: the column of each entry; columns of a name are consecutive, in the order of names.
        values: the value of each entry.
        names: all names of the file.
        width: number of columns of each name.
        lines: the line of each hypothesis.
    """

    starts: IntArray
    columns: npt.NDArray[Any]
    values: FloatArray
    names: Sequence[str]
    width: IntArray
    lines: IntArray

    def divided(
        self, path: AnyPath, wanted: Sequence[str] | None, *, unit: str = "line"
    ) -> tuple[list[str], FloatArray, list[str], Any]:
        """Return names and values of the dense features, and of the sparse ones (CSR; None if there are none).

        FileError where a dense feature is missing, or where one is that should not be there.

        Args:
            path: the file.
            wanted: the dense features to take; None for all.
            unit: what errors call the place of a hypothesis.
        """
        n = len(self.lines)
        first = np.cumsum(self.width) - self.width
        # A name is at most once in a line, so counting entries counts lines.
        times = np.bincount(self.columns, minlength=int(self.width.sum()))[first] if len(first) else self.width
        columns = [column_names(name, width) for name, width in zip(self.names, self.width.tolist(), strict=True)]
        asked = None if wanted is None else set(wanted)
        dense, sparse = [], []
        for at, (name, width) in enumerate(zip(self.names, self.width.tolist(), strict=True)):
            may_be_sparse = "_" in name and width == 1
            if asked is not None and asked.intersection(columns[at]):
                dense.append(at)
            elif may_be_sparse and (times[at] < n or asked is not None):
                sparse.append(at)
            elif asked is None:
                dense.append(at)
        irregular = [at for at in dense if times[at] < n]
        if irregular:
            raise self._irregular(path, irregular, times, first, unit)
        place = np.full(int(self.width.sum()), -1, dtype=np.int64)
        kept = np.concatenate([np.zeros(0, dtype=np.int64), *(first[a] + np.arange(self.width[a]) for a in dense)])
        place[kept] = np.arange(len(kept))
        values = np.zeros((n, len(kept)))
        owner = np.repeat(np.arange(n), np.diff(self.starts))
        mine = place[self.columns]
        here = mine >= 0
        values[owner[here], mine[here]] = self.values[here]
        names = [name for at in dense for name in columns[at]]
        if not sparse:
            return names, values, [], None
        place[:] = -1
        place[first[sparse]] = np.arange(len(sparse))
        mine = place[self.columns]
        here = mine >= 0
        starts = np.concatenate([[0], np.cumsum(here)])[self.starts]
        rows = sp.csr_array((self.values[here], mine[here], starts), shape=(n, len(sparse)))
        rows.sort_indices()
        return names, values, [self.names[at] for at in sparse], rows

    def _irregular(self, path: AnyPath, which: list[int], times: IntArray, first: IntArray, unit: str) -> FileError:
        """The error for the earliest line that lacks a feature or has one too many."""
        n, entries = len(self.lines), len(self.columns)
        rule = "each hypothesis must have it, unless it is sparse and has an underscore in its name"
        earliest = np.zeros(int(self.width.sum()), dtype=np.int64)
        earliest[self.columns[::-1]] = np.arange(entries)[::-1]
        begin = np.searchsorted(self.starts, earliest[first[which]], side="right") - 1
        extra = {at: row for at, row in zip(which, begin.tolist(), strict=True) if row > 0}
        lacking = {at: self._first_without(int(first[at])) for at in which if at not in extra}  # of the first line
        row = min((*extra.values(), *lacking.values()))
        line = int(self.lines[row])
        missing = next((quoted(self.names[at]) for at, one in lacking.items() if one == row), None)
        at = next((at for at, one in extra.items() if one == row), None)
        if at is None:
            message = f"feature {missing} is missing, and {unit} {self.lines[0]} has it; {rule}"
            return problem(path, line, message, unit=unit)
        where = "this hypothesis alone" if times[at] == 1 else f"{times[at]} of {n} hypotheses"
        beside = "" if missing is None else f", and {missing} is missing here"
        message = f"feature {quoted(self.names[at])} is in {where}{beside}; correct the name: {rule}"
        return problem(path, line, message, unit=unit)

    def _first_without(self, column: int) -> int:
        """The first hypothesis without an entry of a column that the first one has."""
        rows = np.searchsorted(self.starts, np.flatnonzero(self.columns == column), side="right") - 1
        gaps = rows != np.arange(len(rows))
        return int(np.argmax(gaps)) if gaps.any() else len(rows)
