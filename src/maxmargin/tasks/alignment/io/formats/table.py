"""Links of a file in any format, as one table; helpers that several formats share."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._messages import quoted
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common.files.text import AnyPath, problem

NUMBER = re.compile(rb"[0-9]{1,9}")
_MIXED = "some links of this file have a confidence and others have none; give it to all"
_CHUNK = 1 << 22
"""Number of bytes that are parsed at once."""


@dataclass(frozen=True, eq=False)
class Table:
    """The ``k`` links of a file in the order of the file, not yet sorted or checked against sentences.

    Attributes:
        sentence: number of the pair of each link, from 0, shape ``(k,)``.
        links: positions from 0, shape ``(k, 2)``.
        sure: whether a link is sure, shape ``(k,)``.
        confidence: shape ``(k,)``, or None.
        line: the line of each link, from 1; 0 if the file is one JSON document; shape ``(k,)``.
        count: number of pairs in the file; for NAACL and A3 files the largest number that occurs.
    """

    sentence: IntArray
    links: IntArray
    sure: npt.NDArray[np.bool_]
    confidence: FloatArray | None
    line: IntArray
    count: int

    def select(self, kept: IntArray) -> Table:
        """The links of the given numbers."""
        confidence = None if self.confidence is None else self.confidence[kept]
        return Table(self.sentence[kept], self.links[kept], self.sure[kept], confidence, self.line[kept], self.count)


class Rows:
    """Links collected one by one."""

    def __init__(self, path: AnyPath) -> None:
        self.path = path
        self.numbers = array("q")
        self.confidences = array("d")

    def add(self, sentence: int, source: int, target: int, sure: bool, confidence: float | None, line: int) -> None:
        """Add a link."""
        if (confidence is None) != (not self.confidences) and self.numbers:
            where = line or None
            missing = f"sentence {sentence + 1}: " if where is None else ""
            raise problem(self.path, where, missing + _MIXED)
        self.numbers.extend((sentence, source, target, sure, line))
        if confidence is not None:
            self.confidences.append(confidence)

    def table(self, count: int) -> Table:
        """The links so far."""
        numbers = np.array(self.numbers, dtype=np.int64).reshape(-1, 5)
        return Table(
            numbers[:, 0].copy(),
            numbers[:, 1:3].copy(),
            numbers[:, 3].astype(bool),
            np.array(self.confidences) if self.confidences else None,
            numbers[:, 4].copy(),
            count,
        )


def finite(text: Any) -> float | None:
    """A finite number, or None."""
    try:
        value = math.nan if isinstance(text, bool) else float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def confidence_of(path: AnyPath, line: int | None, text: Any) -> float:
    """A confidence, or FileError."""
    value = finite(text)
    if value is None:
        raise problem(path, line, f"{quoted(str(text))} is not a confidence; give a finite number such as 0.93")
    return value


def _chunks(data: bytes) -> Iterator[bytes]:
    """Consecutive pieces of whole lines."""
    begin = 0
    while begin < len(data):
        end = data.find(b"\n", min(begin + _CHUNK, len(data)))
        end = len(data) if end < 0 else end + 1
        yield data[begin:end]
        begin = end


def by_chunks(
    path: AnyPath,
    data: bytes,
    fast: Callable[[bytes, int], Table | None],
    slow: Callable[[AnyPath, bytes, int], Table],
) -> tuple[Table, int]:
    """The links of all chunks, parsed by ``fast`` unless it returns None, and the number of lines."""
    tables, lines = [], 0
    for chunk in _chunks(data):
        table = fast(chunk, lines)
        tables.append(slow(path, chunk, lines) if table is None else table)
        lines += chunk.count(b"\n") + (not chunk.endswith(b"\n"))
    count = max((table.count for table in tables), default=0)
    tables = [table for table in tables if len(table.sentence)]
    if not tables:
        return Rows(path).table(count), lines
    for table in tables:
        if (table.confidence is None) != (tables[0].confidence is None):
            raise problem(path, int(table.line[0]), _MIXED)
    sure = [table.confidence for table in tables if table.confidence is not None]
    return Table(
        np.concatenate([table.sentence for table in tables]),
        np.concatenate([table.links for table in tables]),
        np.concatenate([table.sure for table in tables]),
        np.concatenate(sure) if sure else None,
        np.concatenate([table.line for table in tables]),
        count,
    ), lines


def numbers_at(text: npt.NDArray[np.uint8], begin: IntArray, end: IntArray) -> IntArray:
    """The numbers that are written between the given positions, with at most nine digits each."""
    numbers = np.zeros(len(begin), dtype=np.int64)
    for place in range(int((end - begin).max(initial=0))):
        here = np.flatnonzero(begin + place < end)
        numbers[here] = 10 * numbers[here] + (text[begin[here] + place] - ord("0"))
    return numbers


def from_first(table: Table, first: int) -> Table:
    """The table of a file whose positions count from ``first``; from 1, word 0 is the empty word, which is dropped."""
    if first == 0:
        return table
    kept = np.flatnonzero((table.links > 0).all(axis=1))
    table = table if len(kept) == len(table.links) else table.select(kept)
    return replace(table, links=table.links - 1)
