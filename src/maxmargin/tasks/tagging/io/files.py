"""Files of labeled tokens: reading them, and writing them back with predicted labels.

Every path may be ``-`` for standard input or output, and every file may be compressed. Files that cannot be
read raise :class:`FileError`: ``FILE, line N: what is wrong; what to do``. The formats are described in
:mod:`~maxmargin.tasks.common.tokens.line_formats` and :mod:`~maxmargin.tasks.tagging.io.json_lines`.

CoNLL-U is not read with the package ``conllu``, which is about seventy times slower and does not write back exactly
what it has read (comments without a value and repeated keys are lost, blank lines and line ends change).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common.files.text import AnyPath, name_of, open_output, problem, read_text
from maxmargin.tasks.common.files.text import FileError as FileError
from maxmargin.tasks.common.tokens import line_formats
from maxmargin.tasks.common.tokens.conllu_objects import of_conllu as of_conllu
from maxmargin.tasks.common.tokens.line_formats import CONLLU, Layout
from maxmargin.tasks.common.tokens.splice import Insertions, spliced, spliced_k_best
from maxmargin.tasks.common.tokens.table import WORD, Codes, codes_at, texts
from maxmargin.tasks.common.tokens.table import AttributeText as AttributeText
from maxmargin.tasks.common.tokens.table import TokenTable as TokenTable
from maxmargin.tasks.tagging.io import json_lines
from maxmargin.tasks.tagging.io.named_columns import place_of

FORMATS = ("columns", "conllu", "slash", "crfsuite", "json")

Labels = Sequence[str] | Sequence[Sequence[str]] | tuple[npt.NDArray[np.integer[Any]], Sequence[str]]
"""Labels of all tokens: a flat list, a list per sentence, or codes and the names of the labels."""

_OLD_NAMES = {"upostag": "upos", "xpostag": "xpos"}
"""Columns of CoNLL-U as they were called in CoNLL-U's first version."""
_SCORE = "Score="
"""Key of scores in the last column of CoNLL-U."""


@dataclass(frozen=True, eq=False)
class TaggedText:
    """The content of a file.

    Attributes:
        format: one of :data:`FORMATS`.
        table: the tokens and their columns; None for CRFsuite files and JSON with features.
        items: the attributes of CRFsuite files and of JSON with features; otherwise None.
        label: the column of labels; None if there is none.
        data: the file, or the block of it that was read, for writing it back.
        source: name of the file for errors.
        separator: separator of columns in the format ``columns``.
        records: the objects of JSON lines.
        newline: end of the first line of the file.
    """

    format: str
    table: TokenTable | None
    items: AttributeText | None
    label: str | None
    data: bytes
    source: str
    separator: bytes = b"\t"
    records: tuple[dict[str, Any], ...] = ()
    newline: bytes = b"\n"

    @property
    def tokens(self) -> TokenTable | AttributeText:
        """The table or the items, whichever is not None."""
        found = self.items if self.table is None else self.table
        assert found is not None
        return found

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return self.tokens.n_tokens

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return self.tokens.n_sentences

    @property
    def sentences(self) -> IntArray:
        """Sentence ``i`` has the tokens ``sentences[i]:sentences[i + 1]``, shape ``(n_sentences + 1,)``."""
        return self.tokens.sentences

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns; empty if tokens have attributes instead."""
        return () if self.table is None else self.table.columns

    @property
    def labeled(self) -> bool:
        """Whether the file has labels."""
        return self.label is not None or (self.items is not None and self.items.label_begin is not None)

    def column(self, name: str) -> int:
        """Return the number of a column; ValueError lists the columns."""
        if self.table is None:
            raise ValueError(f"{self.source}: tokens have attributes and no columns, so there is no column {name!r}")
        wanted = _OLD_NAMES.get(name, name) if self.format == "conllu" and name not in self.columns else name
        place = place_of(wanted, self.columns)
        if place is None:
            raise ValueError(f"{self.source}: no column {name!r}; there are {', '.join(self.columns)}")
        return place

    def label_places(self) -> tuple[IntArray, IntArray]:
        """Return where the labels of all tokens begin and end in ``tokens.buffer``, shapes ``(n_tokens,)``.

        FileError if there are none.
        """
        if self.table is not None and self.label is not None:
            return self.table.places(self.column(self.label))
        if self.items is not None and self.items.label_begin is not None and self.items.label_end is not None:
            return self.items.label_begin, self.items.label_end
        there = f"only the columns {', '.join(self.columns)}" if self.columns else "only attributes"
        raise FileError(f"{self.source}: no labels, {there}; give a file with the label of each token")

    def label_codes(self) -> tuple[Codes, list[str]]:
        """Return the labels of all tokens as codes, shape ``(n_tokens,)``, and their names in order of appearance.

        FileError if there are no labels.
        """
        return codes_at(self.tokens.bytes, *self.label_places())

    def codes_of(self, column: str) -> tuple[Codes, list[str]]:
        """Return the cells of a column as codes and names; ValueError if there is no such column."""
        if self.table is None:
            return self.label_codes()
        return self.table.codes(self.column(column))

    def labels(self) -> list[list[str]]:
        """Return the labels, a list per sentence; FileError if there are none."""
        begin, end = self.label_places()
        flat = texts(self.tokens.buffer, begin, end)
        return [flat[first:last] for first, last in pairwise(self.sentences.tolist())]


def read_tagged(
    path: AnyPath,
    *,
    format: str | None = None,
    columns: str | Sequence[str] | None = None,
    label: str | None = None,
    labeled: bool | None = None,
    join: bool = False,
) -> TaggedText:
    """Read a file of tokens.

    Args:
        path: the file, or ``-``.
        format: one of :data:`FORMATS`; None recognizes it.
        columns: names of the columns, ``"word,pos,label"`` or a list, including the column of labels, which the file
            may lack. By default ``word``, ``pos`` if there are three, otherwise ``column1`` and so on, and ``label``.
        label: the column of labels; by default the one named ``label``, otherwise the last, in CoNLL-U ``upos``.
        labeled: True if there must be labels, False to read none, None to detect them: the label column is present if
            the file has all named columns; lines are ``word/TAG`` if all words of the first line have tags.
        join: in ``word/TAG`` lines, a word without a tag belongs to the next one: ``G + C/NN`` is one token.
    """
    check_format(format)
    names = column_names(columns)
    data = read_text(path)
    form = format or recognized(path, data, named=names is not None)
    if join and format is None and form == "columns":  # words without tags before others look like cells
        form = "slash"
    return Parser(path, form, names, label, labeled, join)(data)


def check_format(format: str | None) -> None:
    """Raise ValueError unless ``format`` is None or one of :data:`FORMATS`."""
    if format is not None and format not in FORMATS:
        raise ValueError(f"no format {format!r}; choose one of {', '.join(FORMATS)}")


def recognized(path: AnyPath, data: bytes, *, named: bool) -> str:
    """Return the format of a file; FileError if it has no tokens or its format is ambiguous."""
    if not data.strip():
        raise line_formats.no_tokens(path)
    return line_formats.recognize(path, data, named=named)


class Parser:
    """Parses a file of a known format, as a whole or block by block.

    The first block decides what all tokens must agree on, such as the number of columns.

    Args:
        path: the file, for errors.
        form: one of :data:`FORMATS`.
        names: names of the columns, as for :func:`read_tagged`; and so on.
        label: the column of labels.
        labeled: whether there must be labels.
        join: whether words without a tag belong to the next one.
    """

    def __init__(
        self,
        path: AnyPath,
        form: str,
        names: tuple[str, ...] | None = None,
        label: str | None = None,
        labeled: bool | None = None,
        join: bool = False,
    ) -> None:
        if form in ("conllu", "crfsuite") and names is not None and names != CONLLU:
            what = f"CoNLL-U has its own ({', '.join(CONLLU)})" if form == "conllu" else "CRFsuite files have none"
            raise problem(path, None, f"columns are named, and {what}; leave the names out, or give the format columns")
        if form == "conllu":
            place = place_of(_OLD_NAMES.get(label, label) if label else "upos", CONLLU)
            if not place:
                raise ValueError(f"no column {label!r} for labels; CoNLL-U has {', '.join(CONLLU[1:])}")
            names, label = CONLLU, CONLLU[place]
        self.path, self.form, self.names, self.label, self.labeled, self.join = path, form, names, label, labeled, join
        self._lines: line_formats.FirstLine | None = None
        self._json: json_lines.Agreed | None = None
        self._newline: bytes | None = None

    @property
    def begun(self) -> bool:
        """Whether tokens have been found."""
        return self._newline is not None

    def __call__(self, data: bytes, before: int = 0) -> TaggedText:
        """Parse a block, or the whole file.

        Args:
            data: lines of the file.
            before: number of lines before these.

        Raises:
            FileError: names the line; only the first block must have tokens.
        """
        first, source = not self.begun, name_of(self.path)
        if first and not data.strip():
            raise line_formats.no_tokens(self.path)
        newline = b"\r\n" if data[: data.find(b"\n") + 1].endswith(b"\r\n") else b"\n"
        newline = newline if self._newline is None else self._newline
        if self.form == "crfsuite":
            items = line_formats.scan_attributes(self.path, data, before)
            text = TaggedText("crfsuite", None, items, None, data, source, newline=newline)
        elif self.form == "json":
            found = json_lines.parse(self.path, data, self.names, self.label, self.labeled, before, self._json)
            self._json = found.agreed
            text = TaggedText(
                "json", found.table, found.items, found.label, data, source, records=found.records, newline=newline
            )
        else:
            text = self._of_lines(data, before, newline)
        if first and not text.n_tokens:
            raise line_formats.no_tokens(self.path)
        self._newline = newline
        return text

    def _of_lines(self, data: bytes, before: int, newline: bytes) -> TaggedText:
        """Parse columns, CoNLL-U, or ``word/TAG``."""
        like = self._lines or line_formats.FirstLine.of(data, self._layout(data), before)
        cells = line_formats.scan(self.path, data, like, before)
        if self._lines is None and len(cells.lines):
            self._lines = like
            if self.form != "conllu":
                must = self.labeled if self.form == "columns" else like.layout is not Layout.WORDS
                width, line = cells.begin.shape[1], int(cells.lines[0])
                self.names, self.label = line_formats.names_of_columns(
                    self.path, line, width, self.names, self.label, must
                )
        source, separator = name_of(self.path), b" " if like.layout is Layout.BLANKS else b"\t"
        table = TokenTable(data, cells.begin, cells.end, cells.sentences, self.names or (), cells.lines, source)
        return TaggedText(self.form, table, None, self.label, data, source, separator, newline=newline)

    def _layout(self, data: bytes) -> Layout:
        """Return how the lines of a file are split, by the first one."""
        if self.form == "conllu":
            return Layout.CONLLU
        if self.form == "columns":
            return line_formats.layout_of_columns(data)
        tagged = self.labeled or self.join or line_formats.first_line_is_tagged(data)
        if self.labeled is False or not tagged:
            return Layout.WORDS
        return Layout.JOINED if self.join else Layout.TAGGED


def column_names(columns: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the names of columns from ``"word,pos,label"`` or a list; ValueError if one is empty or repeated.

    ``form`` means the same as ``word``.
    """
    if columns is None:
        return None
    names = tuple(name.strip() for name in (columns.split(",") if isinstance(columns, str) else columns))
    names = tuple(WORD if name == "form" and WORD not in names else name for name in names)
    if not names or not all(names):
        raise ValueError("a column has no name; give for example word,pos,label")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"the column {twice[0]!r} is named twice; give each column a name of its own")
    return names


def write_tagged(
    text: TaggedText,
    labels: Labels,
    *,
    out: AnyPath | BinaryIO,
    scores: FloatArray | None = None,
    column: str | None = None,
    digits: int = 6,
) -> None:
    """Write a file that was read, with labels.

    ``columns``: each line unchanged, then the label as one more column, then the score. ``conllu``: the label in its
    column, the score as ``Score=`` in the last one, everything else byte for byte. ``slash``: ``word/LABEL``, with
    scores ``word/LABEL/SCORE``. ``crfsuite``: one label per line, then TAB and the score, and a blank line after each
    sentence. ``json``: the keys ``predicted`` and ``scores``.

    Args:
        text: the file.
        labels: label of each token.
        out: a binary stream or a file name, compressed if it ends in ``.gz``; ``-`` is standard output.
        scores: a number for each token, shape ``(n_tokens,)``.
        column: the column of CoNLL-U for the labels; by default the one they were read from.
        digits: significant digits of scores, at most 9.
    """
    codes, names = coded(text, labels)
    if scores is not None:
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        if scores.shape != (text.n_tokens,) or np.isnan(scores).any():
            raise ValueError(f"scores must be numbers, not NaN, of shape ({text.n_tokens},), got {scores.shape}")
    if text.format == "json":
        flat = [names[code] for code in codes.tolist()]
        bounds = pairwise(text.sentences.tolist())
        content: bytes | memoryview = b"".join(
            json_lines.with_labels(record, flat[first:last], None if scores is None else scores[first:last])
            for record, (first, last) in zip(text.records, bounds, strict=True)
        )
    else:
        insertions = _insertions(text, names, codes, column)
        content = spliced(insertions, codes, scores, digits=digits)
    with open_output(out) as stream:
        stream.write(content)


def write_k_best(
    text: TaggedText,
    best: Sequence[Sequence[tuple[Sequence[str], float]]],
    *,
    out: AnyPath | BinaryIO,
    column: str | None = None,
    digits: int = 6,
) -> None:
    """Write several labelings of each sentence, each as :func:`write_tagged` would, after a line ``# RANK SCORE``.

    Ranks count from 0. In ``columns``, ``conllu`` and ``crfsuite`` a blank line follows each labeling. JSON lines have
    the key ``k_best`` instead, a list of ``{"labels": [...], "score": ...}``.

    Args:
        text: the file.
        best: labelings of each sentence and their scores, best first.
        out: a binary stream or a file name, as for :func:`write_tagged`.
        column: the column of CoNLL-U for the labels.
        digits: significant digits of scores.
    """
    lengths = text.tokens.lengths.tolist()
    if len(best) != len(lengths):
        raise ValueError(f"labelings of {len(best)} sentences, and there are {len(lengths)}")
    for i, (some, length) in enumerate(zip(best, lengths, strict=True)):
        if any(len(labels) != length for labels, _ in some):
            raise ValueError(f"sentence {i}: give each labeling one label for each of its {length} tokens")
    if text.format == "json":
        content: bytes | memoryview = b"".join(
            json_lines.with_k_best(record, [(list(labels), float(score)) for labels, score in some])
            for record, some in zip(text.records, best, strict=True)
        )
    else:
        codes, names = _numbered([label for some in best for labels, _ in some for label in labels])
        insertions = _insertions(text, names, codes, column)
        content = spliced_k_best(
            insertions,
            text.sentences,
            [[score for _, score in some] for some in best],
            codes,
            newline=b"\n" if text.table is None else text.newline,
            digits=digits,
        )
    with open_output(out) as stream:
        stream.write(content)


def coded(text: TaggedText, labels: Labels) -> tuple[Codes, Sequence[str]]:
    """Return labels as codes, one per token, and their names; ValueError unless each token has one."""
    if isinstance(labels, tuple) and len(labels) == 2 and isinstance(labels[0], np.ndarray):
        numbers, names = labels
        if not np.issubdtype(numbers.dtype, np.integer) or not all(0 <= end < len(names) for end in _ends(numbers)):
            raise ValueError(f"numbers of labels must be integers in 0..{len(names) - 1}")
        codes = np.ascontiguousarray(numbers, dtype=np.int32)
    else:
        flat = list(cast(Sequence[Any], labels))
        if flat and not isinstance(flat[0], str):
            sizes = [len(some) for some in flat]
            if sizes != text.tokens.lengths.tolist():
                raise ValueError("labels must be given for each token of each sentence, in the order of the file")
            flat = [label for some in flat for label in some]
        codes, names = _numbered(flat)
    if codes.shape != (text.n_tokens,):
        raise ValueError(f"there are {text.n_tokens} tokens, and {len(codes)} labels; give each token one")
    return codes, names


def _ends(numbers: npt.NDArray[np.integer[Any]]) -> list[int]:
    """Return the smallest and the largest number, if there are any."""
    return [int(numbers.min()), int(numbers.max())] if numbers.size else []


def _numbered(flat: list[str]) -> tuple[Codes, list[str]]:
    known: dict[str, int] = {}
    numbers = [known.setdefault(label, len(known)) for label in flat]
    return np.array(numbers, dtype=np.int32), list(known)


def _insertions(text: TaggedText, names: Sequence[str], codes: Codes, column: str | None) -> Insertions:
    """Return the places of labels and scores in the text."""
    if column is not None and text.format != "conllu":
        raise ValueError(f"the column of labels can be chosen in CoNLL-U only, and {text.source} is {text.format}")
    _check_labels(text, [names[code] for code in np.unique(codes).tolist()])
    written = [name.encode() for name in names]
    table = text.table
    if table is None:  # CRFsuite: a line for each label, and a blank one after each sentence
        ends = np.repeat(np.arange(text.n_sentences), text.tokens.lengths)
        at = np.arange(text.n_tokens, dtype=np.int64) + ends
        lines = b"\n" * (text.n_tokens + text.n_sentences)
        return Insertions(lines, at, at, written, b"\t", first=at, last=at)
    first, last = table.places(0)[0], table.places(len(table.columns) - 1)[1]
    if text.format == "columns":
        written = [text.separator + name for name in written]
        return Insertions(text.data, last, last, written, text.separator, first=first, last=last)
    if text.format == "slash":
        begin, end = text.label_places() if text.label is not None else (last, last)
        written = written if text.label is not None else [b"/" + name for name in written]
        return Insertions(text.data, begin, end, written, b"/", first=first, last=last, sentence_a_line=True)
    at_column = text.column(column or text.label or "upos")
    if not at_column:
        raise ValueError("labels cannot replace the token numbers of CoNLL-U; choose another column")
    begin, end = table.places(at_column)
    scores = None
    if at_column != len(CONLLU) - 1:
        empty = (last - table.begin[:, -1] == 1) & (table.bytes[table.begin[:, -1]] == ord("_"))
        scores = np.where(empty, table.begin[:, -1], last)
    return Insertions(
        text.data, begin, end, written, _SCORE.encode(), first=first, last=last, scores=scores, paragraphs=True
    )


def _check_labels(text: TaggedText, labels: list[str]) -> None:
    """Raise ValueError for labels that would be read back as something else."""
    refused = {"slash": " /", "columns": "" if text.separator == b"\t" else " "}.get(text.format, "") + "\t\n\r\v\f"
    for label in labels:
        if not isinstance(label, str):
            raise ValueError(f"the label {label!r:.60} is not a string; give strings")
        if not label or label != label.strip(" ") or any(character in label for character in refused):
            raise ValueError(
                f"the label {label!r:.60} cannot be written in the format {text.format}; choose labels without blanks"
                + (" and slashes" if text.format == "slash" else "")
            )
