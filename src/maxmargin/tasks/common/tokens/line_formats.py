"""Line-based formats of tokens, scanned by compiled code: how to recognize them, and where their cells are.

- ``columns``: one token per line, cells separated by TABs or runs of blanks, a blank line after each sentence.
- ``conllu``: ten cells separated by TABs; comments, ranges of words and empty nodes are not tokens.
- ``slash``: one sentence per line, as ``word/TAG``.
- ``crfsuite``: one token per line, ``label TAB attribute[:weight] TAB ...``, a blank line after each sentence.

Scanning takes two passes over the bytes, about 20 ns per cell with all checks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from maxmargin._terminal import printable
from maxmargin.structures.base import IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.common.files.compression import plain_name
from maxmargin.tasks.common.files.text import AnyPath, FileError, count_of, name_of, problem
from maxmargin.tasks.common.tokens.table import WORD, AttributeText, Places

LABEL = "label"
"""Default name of the column of labels."""

CONLLU = ("id", WORD, "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""Columns of CoNLL-U; the second one, FORM, is named like the words of all formats."""

_SAMPLE = 200
"""Number of lines by which a format is recognized."""

_LONG = 10_000
"""Number of bytes of a line by which a format is recognized."""

_DOCUMENT = b"-DOCSTART-"
"""The first cell of the line that begins a document, in the files of CoNLL-2003."""

_LINE_FEED = ord("\n")
_ASIDE = re.compile(rb"^(?:#|-DOCSTART-(?=\s|\Z))[^\n]*", re.MULTILINE)
_NAME_AND_VALUE = re.compile(rb"# \w+ = ")
_BESIDE = re.compile(rb"#|-DOCSTART-(?=\s|\Z)")
_ID = re.compile(rb"[0-9]+([-.][0-9]+)?")
_ATTRIBUTE = re.compile(rb"[^\t]*[^\\\t][=\[][^\t]*|[^\t]+:[-+.0-9eE]+")
_TAGGED = re.compile(rb".+/[^/]+", re.DOTALL)


class Layout(IntEnum):
    """How lines are split into cells; the numbers are those of the kernel."""

    TABS = 0
    BLANKS = 1
    CONLLU = 2
    TAGGED = 3
    JOINED = 4
    WORDS = 5


class _Fault(IntEnum):
    NONE = 0
    ROOM = 1
    RAGGED = 2
    NUMBER = 3
    UNTAGGED = 4
    WEIGHT = 5


@dataclass(frozen=True, eq=False)
class Cells:
    """Places of the cells of all tokens, as in :class:`~maxmargin.tasks.common.tokens.table.TokenTable`."""

    begin: Places
    end: Places
    sentences: IntArray
    lines: Places


def lines_with_text(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number (from 1) and text of each line that is not blank, without trailing white space."""
    at, number = 0, 1
    while at < len(data):
        stop = data.find(b"\n", at)
        stop = len(data) if stop < 0 else stop
        if line := data[at:stop].rstrip():
            yield number, line
        at, number = stop + 1, number + 1


def first_lines(data: bytes) -> list[bytes]:
    """Return the lines by which a format is recognized: the first that are not blank."""
    return [line for _, (_, line) in zip(range(_SAMPLE), lines_with_text(data), strict=False)]


def has_first_lines(data: bytes) -> bool:
    """Return whether data has all lines by which a format is recognized."""
    return len(first_lines(data)) == _SAMPLE


def has_first_line(data: bytes) -> bool:
    """Return whether data has a line of tokens."""
    return next(_token_lines(data), None) is not None


def _token_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with text that cannot be comments or begin documents."""
    return ((number, line) for number, line in lines_with_text(data) if not _BESIDE.match(line))


def _first_line(data: bytes) -> tuple[int, bytes]:
    """Return number and text of the first line of tokens, or of the first line if all could be comments."""
    return next(_token_lines(data), None) or next(lines_with_text(data), (1, b""))


def recognize(path: AnyPath, data: bytes, *, named: bool = False) -> str:
    """Return the format by the name of the file or its first lines; FileError if it is ambiguous.

    If columns are named, possible attributes of CRFsuite are taken for columns.
    """
    name = plain_name(path).lower()
    if name.endswith(".conllu"):
        return "conllu"
    if name.endswith((".jsonl", ".json")):
        return "json"
    sample = first_lines(data)
    if not sample:
        raise no_tokens(path)
    if sample[0].lstrip()[:1] == b"{" and _is_object(sample[0]):
        return "json"
    first = next((line for line in sample if not line.startswith(b"#")), sample[0])
    cells = first.split(b"\t")
    if len(cells) == 10 and _ID.fullmatch(cells[0]):
        return "conllu"
    if len(cells) > 1 and (named or not _attributes(sample)):
        return "columns"
    if len(cells) > 1:
        if max(line.count(b"\t") for line in sample) == 1:
            if _words_and_labels(sample):
                return "columns"
            message = "two columns, either label and attribute or word and label; give the format crfsuite or columns"
            raise problem(path, None, message)
        return "crfsuite"
    words = [_first_words(line) for line in sample]
    tagged = sum(_TAGGED.fullmatch(word) is not None for line in words for word in line)
    if tagged > 0.9 * sum(map(len, words)):  # words with blanks have tags in their last piece only
        if max(map(len, words)) == 1:
            message = "one word with a slash per line, either word/TAG or a word; give the format slash or columns"
            raise problem(path, None, message)
        return "slash"
    return "columns"


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return line.lstrip()[1:].lstrip()[:1] == b'"' and b":" in line


def _attributes(lines: list[bytes]) -> bool:
    """Return whether cells after the first look like attributes: ``name=value``, ``name[0]``, ``name:2.5``."""
    fields = [field for line in lines for field in line.split(b"\t")[1:] if field]
    return 2 * sum(_ATTRIBUTE.fullmatch(field) is not None for field in fields) > len(fields)


def _words_and_labels(lines: list[bytes]) -> bool:
    """Return whether two columns must be words and labels like ``Number=Sing``: of labels there are fewer, not one."""
    first, second = (set(cells) for cells in zip(*(line.split(b"\t") for line in lines if b"\t" in line), strict=True))
    return 1 < len(second) < len(first)


class NoTokensError(FileError):
    """A file without tokens."""


def no_tokens(path: AnyPath) -> NoTokensError:
    """Return the error for a file without tokens."""
    return NoTokensError(str(problem(path, None, "no tokens; give a file that has some")))


@dataclass(frozen=True)
class FirstLine:
    """The first line with text, with which all tokens of a file must agree.

    Attributes:
        layout: how lines are split.
        width: cells of a token.
        number: number of the line, from 1.
    """

    layout: Layout
    width: int
    number: int

    @classmethod
    def of(cls, data: bytes, layout: Layout, before: int = 0) -> FirstLine:
        """Return the first line with text after ``before`` others; there must be one."""
        of_columns = layout in (Layout.TABS, Layout.BLANKS)
        number, _ = _first_line(data) if of_columns else next(lines_with_text(data))
        return cls(layout, width_of(data, layout), before + number)


def scan(path: AnyPath, data: bytes, like: FirstLine, before: int = 0) -> Cells:
    """Return the places of the cells; FileError names the line of a token unlike the others.

    Args:
        path: the file, for errors.
        data: lines of it.
        like: what tokens must agree with.
        before: number of lines before these.
    """
    scanned = _without_asides(data, like) if like.layout in (Layout.TABS, Layout.BLANKS) else data
    text, layout = np.frombuffer(scanned, dtype=np.uint8), int(like.layout)
    tokens, sentences = _kernels.token_count(text, layout)
    begin, end = (np.empty((tokens, like.width), dtype=np.int64) for _ in range(2))
    lines, starts = np.empty(tokens, dtype=np.int64), np.empty(sentences + 1, dtype=np.int64)
    fault, line, found, first, last = _kernels.token_scan(text, layout, begin, end, lines, starts)
    if fault != _Fault.NONE:
        line = line if scanned is data else data.count(b"\n", 0, first) + 1
        raise problem(path, before + line, _message(fault, like, found, data[first:last]))
    if scanned is not data:  # which has fewer lines
        lines[:] = np.searchsorted(np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _LINE_FEED), begin[:, 0]) + 1
    lines += before
    if len(data) < 1 << 31:
        begin, end, lines = (places.astype(np.int32) for places in (begin, end, lines))
    return Cells(begin, end, starts, lines)


def _without_asides(data: bytes, like: FirstLine) -> bytes:
    """Return data with blanks for comments and for lines that begin documents; these end a sentence, those do not.

    A line that begins with ``#`` is a comment if it has other cells than a token, or looks like ``# name = value``.
    """
    if not data.startswith(b"#") and b"\n#" not in data and _DOCUMENT not in data:
        return data
    found: bytearray | None = None
    for aside in _ASIDE.finditer(data):
        begin, end, line = aside.start(), aside.end(), aside[0].rstrip()
        if line.startswith(b"#"):
            cells = line.count(b"\t") + 1 if like.layout is Layout.TABS else len(line.split())
            token = cells == like.width or (like.layout is Layout.TABS and cells > 1)
            if token and not _NAME_AND_VALUE.match(line):
                continue
            begin -= begin > 0  # its line joins the one before
        found = bytearray(data) if found is None else found
        found[begin:end] = b" " * (end - begin)
    return data if found is None else bytes(found)


def layout_of_columns(data: bytes) -> Layout:
    """Return the layout of columns: separated by TABs if the first line has one, otherwise by blanks."""
    _, line = _first_line(data)
    return Layout.TABS if b"\t" in line else Layout.BLANKS


def first_line_is_tagged(data: bytes) -> bool:
    """Return whether all words of the first line, or of its beginning if it is very long, have tags."""
    _, line = next(lines_with_text(data), (1, b""))
    return all(_TAGGED.fullmatch(word) for word in _first_words(line))


def lines_end_tagged(data: bytes) -> bool:
    """Return whether the last words of the first lines have tags, as they do where words without tags are joined."""
    lines = first_lines(data)
    whole = lines if data.endswith(b"\n") or len(lines) == 1 else lines[:-1]  # data may end within a line
    return all(_TAGGED.fullmatch(line[-_LONG:].split()[-1]) for line in whole)


def _first_words(line: bytes) -> list[bytes]:
    """Return the words of a line, or of its beginning if it is very long."""
    words = line[:_LONG].split()
    return words[:-1] if len(line) > _LONG and len(words) > 1 else words


def width_of(data: bytes, layout: Layout) -> int:
    """Return the number of cells of the first token."""
    if layout is Layout.CONLLU:
        return len(CONLLU)
    if layout in (Layout.TABS, Layout.BLANKS):
        _, line = _first_line(data)
        return len(line.split(b"\t") if layout is Layout.TABS else line.split())
    return 1 if layout is Layout.WORDS else 2


def _message(fault: int, like: FirstLine, found: int, piece: bytes) -> str:
    shown = printable(piece[:60].decode("utf-8", "ignore"))
    if fault == _Fault.NUMBER:
        return (
            f"'{shown}' is not a token number; CoNLL-U has 1, 2, ..., 3-4 for ranges and 5.1 for empty nodes in its "
            "first column, and comments begin with #"
        )
    if fault == _Fault.UNTAGGED:
        return (
            f"'{shown}' has no tag; write word/TAG, join words without tags to the next one (join) if words may have "
            "blanks, or read plain words as unlabeled"
        )
    if like.layout is Layout.CONLLU:
        return f"{count_of(found, 'column')}, and CoNLL-U has 10; separate them with TAB, and write '_' for empty ones"
    message = f"{count_of(found, 'column')}, and line {like.number} has {like.width}; "
    if like.layout is Layout.TABS and found < like.width and len(piece.split()) == like.width:
        return message + f"separate them with TAB as line {like.number} does"
    if like.layout is Layout.BLANKS:
        return message + "give each token a line and the same columns, or the format slash for one sentence per line"
    return message + "give all tokens the same columns, or the format crfsuite for attributes"


def scan_attributes(path: AnyPath, data: bytes, before: int = 0) -> AttributeText:
    """Return labels and attributes of lines of a CRFsuite file; FileError names the line of an invalid weight."""
    text = np.frombuffer(data, dtype=np.uint8)
    tokens, sentences, attributes = _kernels.attribute_count(text)
    begin, end = (np.empty(attributes, dtype=np.int64) for _ in range(2))
    weight = np.empty(attributes)
    starts, label_begin, label_end, lines, offsets = (
        np.empty(size, dtype=np.int64) for size in (tokens + 1, tokens, tokens, tokens, sentences + 1)
    )
    unescaped = bytearray(data)  # names lose their escapes in place
    fault, line, _, first, last = _kernels.attribute_scan(
        np.frombuffer(unescaped, dtype=np.uint8), begin, end, weight, starts, label_begin, label_end, lines, offsets
    )
    if fault != _Fault.NONE:
        shown = printable(data[first : min(last, first + 60)].decode("utf-8", "ignore"))
        raise problem(
            path,
            before + line,
            rf"'{shown}' is not a finite weight of an attribute; write name:weight, and \: for a colon in a name",
        )
    used = int(starts[-1])
    lines += before
    return AttributeText(
        data if b"\\" not in data else bytes(unescaped),
        np.ascontiguousarray(begin[:used]),
        np.ascontiguousarray(end[:used]),
        np.ascontiguousarray(weight[:used]),
        starts,
        label_begin,
        label_end,
        offsets,
        lines,
        name_of(path),
    )


def names_of_columns(
    path: AnyPath, line: int, width: int, columns: Sequence[str] | None, label: str | None, labeled: bool | None
) -> tuple[tuple[str, ...], str | None]:
    """Return the names of the columns of a file and the column of labels, if there is one.

    Args:
        path: the file, for errors.
        line: the line of its first token.
        width: its number of columns.
        columns: their names, including the column of labels, which the file may lack.
        label: the column of labels; by default the one named ``label``, otherwise the last.
        labeled: whether the file must have labels (True), has none (False), or either (None).
    """
    if columns is None:
        columns = _guessed(width + (labeled is False or (labeled is None and width == 1)), label)
    if label is not None and label not in columns:
        raise ValueError(f"no column {label!r} for labels; there are {', '.join(columns)}")
    if labeled and width == len(columns) == 1:
        raise problem(
            path,
            line,
            f"one column ({columns[0]}), so there are no labels; add a column with the label of each token, after "
            "a TAB or blanks",
        )
    if label is None:
        alone = len(columns) == 1 or labeled is False
        label = LABEL if LABEL in columns else None if alone else columns[-1]
    if width == len(columns):
        return tuple(columns), label
    rest = tuple(name for name in columns if name != label)
    if label is not None and width == len(rest):
        if not labeled:
            return rest, None
        raise problem(
            path,
            line,
            f"{count_of(width, 'column')} ({', '.join(rest)}), and the column {label!r} is missing; add it, or name "
            "the columns that are there",
        )
    raise problem(
        path,
        line,
        f"{count_of(width, 'column')}, and {len(columns)} are named ({', '.join(columns)}); name all of them in order, "
        "including the labels",
    )


def _guessed(width: int, label: str | None) -> tuple[str, ...]:
    last = label or LABEL
    if width <= 3:
        return (WORD, "pos", last) if width == 3 else (WORD, last)[:width]
    return (WORD, *(f"column{c}" for c in range(1, width - 1)), last)
