"""Formats of links: recognized and parsed.

- ``pharaoh``: a line per pair of ``0-0 1p2``, from 0; ``-`` is sure, ``p`` possible; ``0-0:0.93`` has a confidence.
- ``talp``: the same from 1. Its files look like Pharaoh files, so it must be asked for.
- ``naacl``: a line per link of ``sentence source target [S|P] [confidence]``, all from 1; word 0 is the empty word.
- ``json``: a line per pair, or one document that is a list of pairs; a pair is a list of ``[0, 0]`` or ``[0, 0, "P"]``,
  or an object with ``links``, or ``sure`` and ``possible``, and optionally ``confidence``, one number per link.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._messages import quoted
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common.text import AnyPath, FileError, lines_of, problem


class Format(StrEnum):
    """The formats by name."""

    pharaoh = "pharaoh"
    naacl = "naacl"
    talp = "talp"
    json = "json"


FORMATS = tuple(form.value for form in Format)

_LINK = re.compile(rb"([0-9]{1,9})([-p])([0-9]{1,9})(?::([-+.0-9eE]{1,40}))?")
_NUMBER = re.compile(rb"[0-9]{1,9}")
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
        count: number of pairs in the file; for NAACL files the largest number that occurs.
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


def recognize(path: AnyPath, data: bytes) -> str:
    """The format of the first nonempty line; Pharaoh if there is none."""
    stripped = data.lstrip()
    if not stripped:
        return "pharaoh"
    if stripped[:1] in (b"[", b"{"):
        return "json"
    first = stripped.split(b"\n", 1)[0].split()
    if _LINK.fullmatch(first[0]):
        return "pharaoh"
    if 3 <= len(first) <= 5 and all(_NUMBER.fullmatch(part) for part in first[:3]):
        return "naacl"
    line = data.count(b"\n", 0, len(data) - len(stripped)) + 1
    raise problem(
        path,
        line,
        f"{quoted(b' '.join(first))} is neither Pharaoh (0-0 1p2), NAACL (1 1 1 S) nor JSON ([[0, 0]]); check that "
        "this is a file of links",
    )


def parse(path: AnyPath, data: bytes, form: str) -> Table:
    """Parse the links of a file in the given format, one of :data:`FORMATS`."""
    if form == "pharaoh":
        return _pharaoh(path, data)
    if form == "talp":
        table = _pharaoh(path, data)
        return _without_null(replace(table, links=table.links - 1))
    return _naacl(path, data) if form == "naacl" else _json(path, data)


class _Rows:
    """Links collected one by one."""

    def __init__(self, path: AnyPath) -> None:
        self.path = path
        self.numbers = array("q")
        self.confidences = array("d")

    def add(self, sentence: int, source: int, target: int, sure: bool, confidence: float | None, line: int) -> None:
        if (confidence is None) != (not self.confidences) and self.numbers:
            where = line or None
            missing = f"sentence {sentence + 1}: " if where is None else ""
            raise problem(self.path, where, missing + _MIXED)
        self.numbers.extend((sentence, source, target, sure, line))
        if confidence is not None:
            self.confidences.append(confidence)

    def table(self, count: int) -> Table:
        numbers = np.array(self.numbers, dtype=np.int64).reshape(-1, 5)
        return Table(
            numbers[:, 0].copy(),
            numbers[:, 1:3].copy(),
            numbers[:, 3].astype(bool),
            np.array(self.confidences) if self.confidences else None,
            numbers[:, 4].copy(),
            count,
        )


def _finite(text: Any) -> float | None:
    """A finite number, or None."""
    try:
        value = math.nan if isinstance(text, bool) else float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def _confidence(path: AnyPath, line: int | None, text: Any) -> float:
    value = _finite(text)
    if value is None:
        raise problem(path, line, f"{quoted(str(text))} is not a confidence; give a finite number such as 0.93")
    return value


# ---- Pharaoh and TALP, and helpers of NAACL


def _chunks(data: bytes) -> Iterator[bytes]:
    """Consecutive pieces of whole lines."""
    begin = 0
    while begin < len(data):
        end = data.find(b"\n", min(begin + _CHUNK, len(data)))
        end = len(data) if end < 0 else end + 1
        yield data[begin:end]
        begin = end


def _by_chunks(
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
        return _Rows(path).table(count), lines
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


def _pharaoh(path: AnyPath, data: bytes) -> Table:
    table, lines = _by_chunks(path, data, _pharaoh_vectorized, _pharaoh_by_lines)
    return replace(table, count=lines)


def _pharaoh_vectorized(chunk: bytes, before: int) -> Table | None:
    """The links of lines of ``number-number`` and ``numberpnumber``; None if there is anything else.

    About 20 ns per byte, against some 100 ns for a loop over words.
    """
    text = np.frombuffer(chunk, dtype=np.uint8)
    digit = (text >= ord("0")) & (text <= ord("9"))
    joint = (text == ord("-")) | (text == ord("p"))
    newline = text == ord("\n")
    blank = newline | (text == ord(" ")) | (text == ord("\t")) | (text == ord("\r"))
    if not (digit | joint | blank).all():
        return None
    after_blank = np.concatenate([[True], blank[:-1]])
    first = np.flatnonzero(after_blank & ~blank)
    joints = np.flatnonzero(joint)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], digit, [False]]).astype(np.int8)))
    begin, end = edges[::2], edges[1::2]
    # A word is a number, a joint and a number: as many joints as words, each between the two numbers of its word.
    if len(first) != len(joints) or len(begin) != 2 * len(first) or ((end - begin) > 9).any():
        return None
    if (begin[::2] != first).any() or (end[::2] != joints).any() or (begin[1::2] != joints + 1).any():
        return None
    numbers = _numbers(text, begin, end)
    line = before + np.cumsum(newline, dtype=np.int64)[first] if len(first) else np.zeros(0, dtype=np.int64)
    return Table(line, numbers.reshape(-1, 2), text[joints] == ord("-"), None, line + 1, 0)


def _numbers(text: npt.NDArray[np.uint8], begin: IntArray, end: IntArray) -> IntArray:
    """The numbers that are written between the given positions, with at most nine digits each."""
    numbers = np.zeros(len(begin), dtype=np.int64)
    for place in range(int((end - begin).max(initial=0))):
        here = np.flatnonzero(begin + place < end)
        numbers[here] = 10 * numbers[here] + (text[begin[here] + place] - ord("0"))
    return numbers


def _pharaoh_by_lines(path: AnyPath, chunk: bytes, before: int) -> Table:
    rows = _Rows(path)
    for number, line in enumerate(lines_of(chunk), start=before):
        for word in line.split():
            match = _LINK.fullmatch(word)
            if match is None:
                raise problem(
                    path,
                    number + 1,
                    f"{quoted(word)} is not a link; write source-target such as 0-0, or 0p0 for a possible link",
                )
            source, joint, target, confidence = match.groups()
            certain = None if confidence is None else _confidence(path, number + 1, confidence.decode())
            rows.add(number, int(source), int(target), joint == b"-", certain, number + 1)
    return rows.table(0)


def _without_null(table: Table) -> Table:
    kept = np.flatnonzero((table.links >= 0).all(axis=1))
    return table if len(kept) == len(table.links) else table.select(kept)


# ---- NAACL


def _naacl(path: AnyPath, data: bytes) -> Table:
    return _without_null(_by_chunks(path, data, _naacl_vectorized, _naacl_by_lines)[0])


def _naacl_vectorized(chunk: bytes, before: int) -> Table | None:
    """The links of lines of three numbers with or without S or P; None if there is anything else."""
    text = np.frombuffer(chunk, dtype=np.uint8)
    letter = (text == ord("S")) | (text == ord("P"))
    newline = text == ord("\n")
    blank = newline | (text == ord(" ")) | (text == ord("\t")) | (text == ord("\r"))
    if not (letter | blank | ((text >= ord("0")) & (text <= ord("9")))).all():
        return None
    edges = np.flatnonzero(np.diff(np.concatenate([[True], blank, [True]]).astype(np.int8)))
    begin, end = edges[::2], edges[1::2]
    if not len(begin):
        return None
    line = np.cumsum(newline, dtype=np.int64)[begin]
    first = np.flatnonzero(np.concatenate([[True], line[1:] != line[:-1]]))
    words = np.diff(np.concatenate([first, [len(line)]]))
    marked = letter[begin]
    # Three numbers, or three numbers and one word of one letter; no letter anywhere else.
    if not ((words == 3) | (words == 4)).all() or not np.array_equal(np.flatnonzero(marked), first[words == 4] + 3):
        return None
    if np.count_nonzero(letter) != np.count_nonzero(marked) or ((end - begin) > np.where(marked, 1, 9)).any():
        return None
    numbers = _numbers(text, begin[~marked], end[~marked]).reshape(-1, 3)
    if not numbers[:, 0].all():
        return None
    sure = np.ones(len(numbers), dtype=bool)
    sure[words == 4] = text[begin[marked]] == ord("S")
    return Table(numbers[:, 0] - 1, numbers[:, 1:] - 1, sure, None, before + line[first] + 1, int(numbers[:, 0].max()))


def _naacl_by_lines(path: AnyPath, chunk: bytes, before: int) -> Table:
    rows, count = _Rows(path), 0
    for number, line in enumerate(lines_of(chunk), start=before + 1):
        words = line.split()
        if not words:
            continue
        if not 3 <= len(words) <= 5 or not all(_NUMBER.fullmatch(word) for word in words[:3]):
            raise problem(
                path,
                number,
                f"{quoted(b' '.join(words))} is not a link; write sentence, source and target word, each from 1, "
                "then S or P, then a confidence",
            )
        rest = words[3:]
        mark = rest.pop(0) if rest and rest[0] in (b"S", b"P") else b"S"
        if len(rest) > 1:
            raise problem(path, number, f"{quoted(words[3])} is neither S nor P; use one of them")
        if rest and len(words) == 4 and _finite(rest[0].decode("utf-8")) is None:
            raise problem(
                path,
                number,
                f"{quoted(rest[0])} is neither S, P nor a confidence; use S or P, or a finite number such as 0.93",
            )
        sentence = int(words[0])
        if sentence == 0:
            raise problem(path, number, "sentence 0; number sentences from 1")
        count = max(count, sentence)
        certain = _confidence(path, number, rest[0].decode("utf-8")) if rest else None
        rows.add(sentence - 1, int(words[1]) - 1, int(words[2]) - 1, mark == b"S", certain, number)
    return rows.table(count)


# ---- JSON

_KEYS = {"links", "sure", "possible", "confidence"}


def _json(path: AnyPath, data: bytes) -> Table:
    lines = lines_of(data)
    filled = [number for number, line in enumerate(lines) if line.strip()]
    if filled:
        first = lines[filled[0]]
        try:
            value = _loads(path, filled[0] + 1, first)
        except FileError:
            # The value continues on the next line: the file is one document.
            return _json_document(path, _loads(path, 1, data))
        if len(filled) == 1 and _is_document(value):
            return _json_document(path, value)
    rows = _Rows(path)
    # Values are not kept, as millions of small lists would slow the garbage collector.
    for number in filled:
        _json_pair(rows, number, _loads(path, number + 1, lines[number]), number + 1)
    return rows.table(len(lines))


def _loads(path: AnyPath, line: int, data: bytes) -> Any:
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        at = line if error.lineno == 1 else error.lineno
        message = f"not JSON ({error.msg}); write one value per line, such as [[0, 0], [1, 2]]"
        raise problem(path, at, message) from None
    except RecursionError:
        raise problem(path, line, "JSON that is nested too deeply; write [[0, 0], [1, 2]]") from None
    except ValueError:  # an integer with thousands of digits
        raise problem(path, line, "a number with too many digits; give positions of words") from None


def _is_document(value: Any) -> bool:
    """Whether a value is a list of pairs, not a list of links."""

    def pair(one: Any) -> bool:
        return isinstance(one, dict) or (isinstance(one, list) and all(isinstance(link, list) for link in one))

    return isinstance(value, list) and bool(value) and all(pair(one) for one in value)


def _json_document(path: AnyPath, document: Any) -> Table:
    if not isinstance(document, list):
        raise problem(path, None, "a JSON document must be a list with one entry per sentence pair")
    rows = _Rows(path)
    for number, value in enumerate(document):
        _json_pair(rows, number, value, 0)
    return rows.table(len(document))


def _json_pair(rows: _Rows, sentence: int, value: Any, line: int) -> None:
    where = "" if line else f"sentence {sentence + 1}: "

    def wrong(message: str) -> FileError:
        return problem(rows.path, line or None, where + message)

    if _is_plain(value) and not rows.confidences:
        for source, target in value:
            rows.numbers.extend((sentence, source, target, True, line))
        return
    given = {"links": value} if isinstance(value, list) else value
    if not isinstance(given, dict) or not given or not set(given) <= _KEYS or set(given) == {"confidence"}:
        raise wrong(
            f"{quoted(json.dumps(value))} is not a list of links; write [[0, 0], [1, 2]] or an object with links, or "
            "with sure and possible"
        )
    confidence = given.get("confidence")
    links = given.get("links", [])
    if confidence is not None and (
        not isinstance(confidence, list) or not isinstance(links, list) or len(confidence) != len(links)
    ):
        raise wrong("confidence must be a list with one number for each of links")
    for key, mark in (("links", True), ("sure", True), ("possible", False)):
        listed = given.get(key, [])
        if not isinstance(listed, list):
            raise wrong(f"{key} must be a list of links such as [0, 0]")
        for place, link in enumerate(listed):
            good = isinstance(link, list) and 2 <= len(link) <= 3 and all(_is_position(word) for word in link[:2])
            if not good or (len(link) == 3 and (key != "links" or link[2] not in ("S", "P"))):
                raise wrong(f'{quoted(json.dumps(link))} is not a link; write [0, 0] or [0, 0, "P"], positions from 0')
            sure = mark and (len(link) == 2 or link[2] == "S")
            certain = None
            if key == "links" and confidence is not None:
                certain = _confidence(rows.path, line or None, confidence[place])
            rows.add(sentence, link[0], link[1], sure, certain, line)


def _is_plain(value: Any) -> bool:
    """Whether a value is a list of pairs of positions, tested without a loop in Python."""
    if type(value) is not list or set(map(type, value)) != {list} or set(map(len, value)) != {2}:
        return False
    words = list(chain.from_iterable(value))
    return set(map(type, words)) == {int} and min(words) >= 0 and max(words) < 10**9


def _is_position(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9
