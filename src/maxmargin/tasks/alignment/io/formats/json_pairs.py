"""JSON: a pair is a list of ``[0, 0]`` and ``[0, 0, "P"]``, or an object: ``links``, or ``sure`` and ``possible``."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

from maxmargin._messages import quoted
from maxmargin.tasks.alignment.io.formats.table import Rows, Table, confidence_of, from_first
from maxmargin.tasks.common.files.text import AnyPath, FileError, lines_of, problem

_KEYS = {"links", "sure", "possible", "confidence"}


def parse(path: AnyPath, data: bytes, first: int) -> Table:
    """Parse a line per pair, or one document that is a list of pairs; positions count from ``first``."""
    return from_first(_parsed(path, data), first)


def _parsed(path: AnyPath, data: bytes) -> Table:
    lines = lines_of(data)
    filled = [number for number, line in enumerate(lines) if line.strip()]
    if filled:
        first = lines[filled[0]]
        try:
            value = _loads(path, filled[0] + 1, first)
        except FileError:
            # The value continues on the next line: the file is one document.
            return _document(path, _loads(path, 1, data))
        if len(filled) == 1 and _is_document(value):
            return _document(path, value)
    rows = Rows(path)
    # Values are not kept, as millions of small lists would slow the garbage collector.
    for number in filled:
        _pair(rows, number, _loads(path, number + 1, lines[number]), number + 1)
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


def _document(path: AnyPath, document: Any) -> Table:
    if not isinstance(document, list):
        raise problem(path, None, "a JSON document must be a list with one entry per sentence pair")
    rows = Rows(path)
    for number, value in enumerate(document):
        _pair(rows, number, value, 0)
    return rows.table(len(document))


def _pair(rows: Rows, sentence: int, value: Any, line: int) -> None:
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
                certain = confidence_of(rows.path, line or None, confidence[place])
            rows.add(sentence, link[0], link[1], sure, certain, line)


def _is_plain(value: Any) -> bool:
    """Whether a value is a list of pairs of positions, tested without a loop in Python."""
    if type(value) is not list or set(map(type, value)) != {list} or set(map(len, value)) != {2}:
        return False
    words = list(chain.from_iterable(value))
    return set(map(type, words)) == {int} and min(words) >= 0 and max(words) < 10**9


def _is_position(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9
