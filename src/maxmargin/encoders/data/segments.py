"""Segments as users write them: ``(begin, end, label)``, all of them or only some that are known."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from maxmargin._messages import shown
from maxmargin.encoders.data.labels import known, plain
from maxmargin.encoders.data.partial import PartialSegments, labeled_spans
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray

Row = tuple[int, int, Hashable]


@dataclass(frozen=True, eq=False)
class SegmentOutputs(Sequence[list[Row]]):
    """The segments of all examples as they were given.

    Attributes:
        rows: begin, end and label of each, example after example.
        offsets: where each example begins in ``rows``, and the end.
    """

    rows: list[Row]
    offsets: IntArray

    @classmethod
    def parse(cls, y: Sequence[Any]) -> SegmentOutputs:
        """Check the outputs of a user: for each example a list of ``(begin, end, label)``."""
        if isinstance(y, SegmentOutputs):
            return y
        found = [segments_of(given, index) for index, given in enumerate(y)]
        return cls([row for rows in found for row in rows], offsets_of([len(rows) for rows in found]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        return self.rows[self.offsets[index] : self.offsets[index + 1]]


def segments_of(given: Any, index: int) -> list[Row]:
    """The segments of one example; ValueError naming it if they are not ``(begin, end, label)``."""
    what = f"example {index}: y"
    rows = labeled_spans(given, what, "segments (begin, end, label)")
    return [(begin, end, known(label, f"{what}: segment ({begin}, {end})")) for begin, end, label in rows]


def most_of(outputs: SegmentOutputs, most: dict[Hashable, int]) -> dict[Hashable, int]:
    """The longest segment of each label, added to those of earlier outputs."""
    for begin, end, label in outputs.rows:
        most[label] = max(most.get(label, 1), end - begin)
    return most


def filled(rows: list[tuple[int, int, int]], length: int, outside: int) -> list[tuple[int, int, int]]:
    """Segments in order, with one of a token for every token that is in none of them."""
    found: list[tuple[int, int, int]] = []
    at = 0
    for begin, end, label in sorted(row for row in rows if row[2] != outside):
        found += [(t, t + 1, outside) for t in range(at, min(begin, length))]
        found.append((begin, end, label))
        at = end
    return found + [(t, t + 1, outside) for t in range(at, length)]


def known_segments(given: PartialSegments, index: int) -> list[tuple[int, int, frozenset[Hashable] | None]]:
    """Known segments of an example in order, each with the labels of which one is right, None for any."""
    what = f"example {index}: the known segments of PartialSegments"
    found: list[tuple[int, int, frozenset[Hashable] | None]] = []
    rows = labeled_spans(given.known, what, "segments (begin, end, label)")
    for begin, end, label in sorted(rows, key=lambda row: row[:2]):
        where = f"{what}: {shown((begin, end, label))}"
        if begin >= end:
            raise ValueError(f"{where} is empty; end must be greater than begin")
        if found and begin < found[-1][1]:
            raise ValueError(f"{where} overlaps {shown(found[-1][:2])}; give segments that are apart")
        if label is None:
            found.append((begin, end, None))
            continue
        several = isinstance(label, (set, frozenset))
        if several and not label:
            raise ValueError(f"{where} has an empty set of labels; use None for unknown")
        found.append((begin, end, frozenset(plain(one, where) for one in (label if several else (label,)))))
    return found


def written(labels: frozenset[Hashable] | None) -> Any:
    """Labels as they were given: one, several, or None."""
    return next(iter(labels)) if labels is not None and len(labels) == 1 else labels and set(labels)
