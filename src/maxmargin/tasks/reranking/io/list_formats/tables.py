"""Lists as tab-separated tables: a line per hypothesis, its text and its scores.

Without a header, lines are ``text TAB score TAB ...``, and blank lines or a fixed number of lines separate lists. A
header names the columns: ``text``, perhaps ``id`` and ``total``, and the features; ids, if given, separate lists.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin._messages import quoted
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common.files.text import AnyPath, count_of, lines_of, problem
from maxmargin.tasks.reranking.io.features import column_names, text_numbers
from maxmargin.tasks.reranking.io.inputs import lists_of_ids, reads_as_number
from maxmargin.tasks.reranking.io.list_formats.plain import size_of_lists
from maxmargin.tasks.reranking.io.lists import NBestLists

ID, TEXT, TOTAL, SCORE = "id", "text", "total", "score"


def is_header(line: bytes) -> bool:
    """Whether a line names columns: one is the text, and the line is not the word "text" with its scores."""
    first, *others = line.rstrip(b"\r").split(b"\t")
    return TEXT.encode() in others or (
        first == TEXT.encode() and bool(others) and not all(map(reads_as_number, others))
    )


def parse(path: AnyPath, data: bytes, list_size: int | None, inputs: int | None) -> NBestLists:
    """Return the lists of a file; FileError names the line of an error.

    Args:
        path: the file, for errors.
        data: its content, UTF-8.
        list_size: lines of each list; None if blank lines or ids separate lists, or all lists have equally many lines.
        inputs: the number of inputs, as references or sources tell; None if there are none.
    """
    rows = [line.rstrip(b"\r") for line in lines_of(data)]
    numbers = [number for number, row in enumerate(rows, start=1) if row.strip(b" ")]
    if not numbers:
        raise problem(path, None, "no hypotheses; write text TAB score, a line per hypothesis")
    names: list[str] | None = None
    if is_header(rows[numbers[0] - 1]):
        header = numbers.pop(0)
        names = rows[header - 1].decode("utf-8").split("\t")
        _check_header(path, header, names)
        if not numbers:
            raise problem(path, None, "no hypotheses below the header; give a line per hypothesis")
    lines = np.array(numbers, dtype=np.int64)
    cells = [rows[number - 1].split(b"\t") for number in numbers]
    width = len(cells[0]) if names is None else len(names)
    if width < 2:
        raise problem(path, numbers[0], "no TAB; write text TAB score")
    for number, row in zip(numbers, cells, strict=True):
        if len(row) != width:
            expected = f"line {numbers[0]} has {width}" if names is None else f"the header has {width}"
            message = f"{count_of(len(row), 'column')}, and {expected}; separate text and each score by one TAB"
            raise problem(path, number, message)
    columns = [TEXT, *column_names(SCORE, width - 1)] if names is None else names
    ids = None
    if ID in columns:
        ids = [row[columns.index(ID)].strip().decode("utf-8") for row in cells]
    offsets, list_ids = _lists(path, ids, lines, list_size, inputs)
    values = _scores(path, cells, [c for c, name in enumerate(columns) if name not in (ID, TEXT)], lines)
    features = [name for name in columns if name not in (ID, TEXT)]
    totals = None
    if TOTAL in features:
        at = features.index(TOTAL)
        totals, values = values[:, at].copy(), np.delete(values, at, axis=1)
        features.pop(at)
    return NBestLists(
        texts=[row[columns.index(TEXT)].strip().decode("utf-8") for row in cells],
        offsets=offsets,
        names=tuple(features),
        values=np.ascontiguousarray(values),
        ids=list_ids,
        totals=totals,
    )


def _check_header(path: AnyPath, line: int, names: list[str]) -> None:
    for at, name in enumerate(names):
        if not name.strip():
            raise problem(path, line, f"column {at + 1} has no name; name all columns")
        if name in names[:at]:
            raise problem(path, line, f"two columns {quoted(name)}; give each column its own name")


def _scores(path: AnyPath, cells: list[list[bytes]], columns: Sequence[int], lines: IntArray) -> FloatArray:
    pieces = [row[column] for row in cells for column in columns]
    ends = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
    shape = (len(cells), len(columns))
    if not columns:
        return np.zeros(shape)
    begin, end = ends[:-1].reshape(shape), ends[1:].reshape(shape)
    return text_numbers(path, b"".join(pieces), begin, end, lines)


def _lists(
    path: AnyPath, ids: list[str] | None, lines: IntArray, list_size: int | None, inputs: int | None
) -> tuple[IntArray, list[str]]:
    if ids is not None:
        return lists_of_ids(path, ids, lines)
    gaps = np.flatnonzero(np.diff(lines) > 1) + 1
    if list_size is not None and len(gaps):
        line = int(lines[gaps[0]]) - 1
        raise problem(path, line, "a blank line, which ends a list; remove blank lines, or do not give the list size")
    if not len(gaps) and (list_size is not None or inputs is not None):
        gaps = np.arange(0, len(lines), size_of_lists(path, len(lines), list_size, inputs))[1:]
    offsets = np.concatenate([[0], gaps, [len(lines)]]).astype(np.int64)
    return offsets, [str(number) for number in range(len(offsets) - 1)]
