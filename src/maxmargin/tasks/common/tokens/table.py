"""Tables of tokens with columns or attributes, as places in one buffer of bytes.

There is no Python object per token: a cell is where it begins and ends in the buffer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks import _kernels

Codes = npt.NDArray[np.int32]
"""Codes of labels or words, one per token."""

Places = npt.NDArray[np.int32] | npt.NDArray[np.int64]
"""Places in a buffer, or lines of a file: 32 bits are enough for most."""

_PLACE = re.compile(r"sentence (\d+), token (\d+): (.*)", re.DOTALL)

WORD = "word"
"""Name of the column of words."""


class _InSentences:
    """Base class of tables: sentences, and where tokens come from."""

    buffer: bytes
    sentences: IntArray
    lines: Places | None
    source: str

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return len(self.sentences) - 1

    @property
    def lengths(self) -> IntArray:
        """Tokens per sentence, shape ``(n_sentences,)``."""
        return np.diff(self.sentences)

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        """The buffer as an array, for kernels."""
        return np.frombuffer(self.buffer, dtype=np.uint8)

    def where(self, token: int) -> str:
        """Return the place of a token for errors: ``FILE, line N``, or ``sentence I, token J`` without a file."""
        if self.lines is not None:
            return f"{self.source}, line {self.lines[token]}"
        sentence = int(np.searchsorted(self.sentences, token, side="right")) - 1
        return f"sentence {sentence}, token {token - self.sentences[sentence]}"


@dataclass(frozen=True, eq=False)
class TokenTable(_InSentences):
    """Sentences of tokens, each with the same columns.

    Attributes:
        buffer: UTF-8 text.
        begin: where each cell begins in the buffer, shape ``(n_tokens, n_columns)``, int32 or int64, C-contiguous.
        end: where it ends, likewise.
        sentences: sentence ``i`` has the tokens ``sentences[i]:sentences[i + 1]``, shape ``(n_sentences + 1,)``, int64.
        columns: names of the columns, all different.
        lines: line of each token, counted from 1, shape ``(n_tokens,)``, int32 or int64; None without a file.
        source: name of the file for errors; empty without a file.
    """

    buffer: bytes
    begin: Places
    end: Places
    sentences: IntArray
    columns: tuple[str, ...]
    lines: Places | None = None
    source: str = ""

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return len(self.begin)

    def places(self, column: int) -> tuple[IntArray, IntArray]:
        """Return where the cells of a column begin and end, as contiguous arrays."""
        begin, end = (np.ascontiguousarray(one[:, column], dtype=np.int64) for one in (self.begin, self.end))
        return begin, end

    def codes(self, column: int) -> tuple[Codes, list[str]]:
        """Return the cells of a column as codes, shape ``(n_tokens,)``, and their texts in order of appearance."""
        return codes_at(self.bytes, *self.places(column))

    def cells(self, column: int) -> list[str]:
        """Return the cells of a column, a flat list."""
        return texts(self.buffer, self.begin[:, column], self.end[:, column])

    def by_sentence(self, column: int) -> list[list[str]]:
        """Return the cells of a column, a list per sentence."""
        cells = self.cells(column)
        return [cells[first:last] for first, last in pairwise(self.sentences.tolist())]

    def with_column(self, name: str, cells: Codes, names: Sequence[str]) -> TokenTable:
        """Return the table with one more column, whose cells are places in ``names``; ValueError if there is one."""
        self._check_new(name)
        text, ends = packed(names)
        ends += len(self.buffer)
        begin, end = self.begin, self.end
        if begin.dtype == np.int32 and ends[-1] < 1 << 31:
            ends = ends.astype(np.int32)
        more: list[Any] = [np.column_stack([begin, ends[:-1][cells]]), np.column_stack([end, ends[1:][cells]])]
        return replace(self, buffer=self.buffer + text, begin=more[0], end=more[1], columns=(*self.columns, name))

    def with_copied(self, name: str, column: str, tokens: IntArray) -> TokenTable:
        """Return the table with one more column: the cells that a column has at other tokens, empty for token -1."""
        self._check_new(name)
        at, there = self.columns.index(column), tokens >= 0
        places: list[Any] = []
        for own in (self.begin, self.end):
            new = np.zeros(self.n_tokens, dtype=own.dtype)
            new[there] = own[tokens[there], at]
            places.append(np.column_stack([own, new]))
        return replace(self, begin=places[0], end=places[1], columns=(*self.columns, name))

    def _check_new(self, name: str) -> None:
        if name in self.columns:
            where = f"{self.source}: " if self.source else ""
            raise ValueError(f"{where}there is already a column {shown(name)}, the name of a new one; rename it")

    def only(self, columns: Sequence[str]) -> TokenTable:
        """Return the table with only these columns."""
        at = [self.columns.index(name) for name in columns]
        return replace(self, begin=self.begin[:, at], end=self.end[:, at], columns=tuple(columns))

    def part(self, first: int, last: int) -> TokenTable:
        """Return the sentences ``first`` to ``last - 1``, with the same buffer."""
        begin, end = self.sentences[first], self.sentences[last]
        return replace(
            self,
            begin=self.begin[begin:end],
            end=self.end[begin:end],
            sentences=self.sentences[first : last + 1] - begin,
            lines=None if self.lines is None else self.lines[begin:end],
        )

    @classmethod
    def joined(cls, tables: Sequence[TokenTable]) -> TokenTable:
        """Return the sentences of tables with the same columns as one, without their lines in files."""
        before = offsets_of([len(table.buffer) for table in tables])
        begin, end = (
            np.concatenate([places + shift for places, shift in zip(some, before[:-1], strict=True)])
            for some in ([table.begin for table in tables], [table.end for table in tables])
        )
        lengths = np.concatenate([table.lengths for table in tables])
        return cls(b"".join(table.buffer for table in tables), begin, end, offsets_of(lengths), tables[0].columns)

    @classmethod
    def of_lists(cls, sentences: Sequence[Sequence[Any]], columns: Sequence[str] | None = None) -> TokenTable:
        """Return the table of lists of tokens, each a string or one string per column.

        ValueError names sentence and token if a cell is not a string or the number of columns differs.
        """
        width = None if columns is None else len(columns)
        cells: list[str] = []
        lengths: list[int] = []
        for i, sentence in enumerate(sentences):
            if type(sentence) is not list:
                sentence = _checks.listed(f"sentence {i}", sentence, "a list of tokens", sized=False)
            count = 0
            for j, token in enumerate(sentence):
                row = (token,) if isinstance(token, str) else tuple(token) if isinstance(token, (list, tuple)) else ()
                if not row or not all(isinstance(cell, str) for cell in row):
                    raise ValueError(
                        f"sentence {i}, token {j}: expected a string or a tuple of strings, got {shown(token)}; tokens "
                        "of text cannot be mixed with numbers or feature dictionaries"
                    )
                width = len(row) if width is None else width
                if len(row) != width:
                    raise ValueError(f"sentence {i}, token {j}: {len(row)} columns, and others have {width}")
                cells.extend(row)
                count += 1
            lengths.append(count)
        width = width or 1
        names = tuple(columns) if columns is not None else _names(width)
        return cls.of_cells(cells, lengths, names)

    @classmethod
    def of_cells(
        cls,
        cells: list[str],
        lengths: Sequence[int],
        columns: tuple[str, ...],
        lines: Places | None = None,
        source: str = "",
    ) -> TokenTable:
        """Return the table of the cells of all tokens, token by token."""
        text, ends = packed(cells)
        begin, end = (np.ascontiguousarray(places.reshape(-1, len(columns))) for places in (ends[:-1], ends[1:]))
        return cls(text, begin, end, offsets_of(lengths), columns, lines, source)


@dataclass(frozen=True, eq=False)
class AttributeText(_InSentences):
    """Sentences of tokens with weighted attributes instead of columns.

    Attributes:
        buffer: UTF-8 text.
        begin: where the name of each attribute begins in the buffer, shape ``(n_attributes,)``, int64.
        end: where it ends, likewise.
        weight: finite weights, shape ``(n_attributes,)``.
        starts: token ``t`` has the attributes ``starts[t]:starts[t + 1]``, perhaps repeated,
            shape ``(n_tokens + 1,)``, int64.
        label_begin: where the label of each token begins, shape ``(n_tokens,)``, int64; None without labels.
        label_end: where it ends, likewise.
        sentences: sentence ``i`` has the tokens ``sentences[i]:sentences[i + 1]``, shape ``(n_sentences + 1,)``, int64.
        lines: line of each token, counted from 1, shape ``(n_tokens,)``, int64; None without a file.
        source: name of the file for errors; empty without a file.
    """

    buffer: bytes
    begin: IntArray
    end: IntArray
    weight: FloatArray
    starts: IntArray
    label_begin: IntArray | None
    label_end: IntArray | None
    sentences: IntArray
    lines: Places | None = None
    source: str = ""

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return len(self.starts) - 1

    def names(self) -> list[str]:
        """Return the names of all attributes, token by token."""
        return texts(self.buffer, self.begin, self.end)

    def labels(self) -> list[str] | None:
        """Return the label of each token; None without labels."""
        if self.label_begin is None or self.label_end is None:
            return None
        return texts(self.buffer, self.label_begin, self.label_end)

    @classmethod
    def of_lists(
        cls,
        sentences: Sequence[Sequence[Any]],
        labels: Sequence[Sequence[str]] | None = None,
        *,
        where: Callable[[int, int], str] = "sentence {}, token {}".format,
    ) -> AttributeText:
        """Return the attributes of lists of tokens, each a list of names or a dictionary.

        Dictionaries are read as python-crfsuite reads them: ``{"bias": 1.5, "title": True, "word": "the",
        "suffix": ["e", "he"], "window": {"to": 0.5}}`` has the attributes ``bias`` with weight 1.5, ``title`` with
        weight 1, ``word:the``, ``suffix:e``, ``suffix:he`` and, with weight 0.5, ``window:to``.

        Args:
            sentences: the tokens.
            labels: label of each token.
            where: returns the place of a token for errors, given the numbers of sentence and token.
        """
        known = _kernels.StringTable()
        try:
            starts, columns, values, _ = _kernels.attributes_of_items(known, sentences, True)
        except ValueError as error:
            found = _PLACE.match(str(error))
            if found is None:
                raise
            raise ValueError(f"{where(int(found[1]), int(found[2]))}: {found[3]}") from None
        if labels is not None:
            sizes = [(len(sentence), len(some)) for sentence, some in zip(sentences, labels, strict=True)]
            for i, (tokens, given) in enumerate(sizes):
                if tokens != given:
                    raise ValueError(f"sentence {i}: {given} labels for {tokens} tokens; give each token one")
        gold = [] if labels is None else [label.encode() for sentence in labels for label in sentence]
        text, ends = known.strings()
        places = np.cumsum([len(text), *map(len, gold)], dtype=np.int64)
        return cls(
            text.tobytes() + b"".join(gold),
            np.concatenate([[0], ends[:-1]]).astype(np.int64)[columns] if len(ends) else np.zeros(0, dtype=np.int64),
            ends[columns],
            np.ones(len(columns)) if values is None else values,
            starts,
            None if labels is None else places[:-1],
            None if labels is None else places[1:],
            np.cumsum([0, *map(len, sentences)], dtype=np.int64),
        )


def packed(strings: Sequence[str]) -> tuple[bytes, IntArray]:
    """Return strings in one buffer, and where each begins and the last ends, shape ``(n + 1,)``."""
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    return b"".join(encoded), offsets_of([len(string) for string in encoded])


def codes_at(buffer: npt.NDArray[np.uint8], begin: IntArray, end: IntArray) -> tuple[Codes, list[str]]:
    """Return pieces of a buffer as codes, and their texts in order of appearance."""
    strings = _kernels.StringTable()
    numbers = np.empty(len(begin), dtype=np.int32)
    strings.number(buffer, begin, end, True, numbers)
    return numbers, [strings.text(number).decode("utf-8") for number in range(len(strings))]


def texts(buffer: bytes, begin: Places, end: Places) -> list[str]:
    """Return pieces of a buffer as strings."""
    return [buffer[first:last].decode("utf-8") for first, last in zip(begin.tolist(), end.tolist(), strict=True)]


def _names(width: int) -> tuple[str, ...]:
    return (WORD,) if width == 1 else (WORD, *(f"column{c}" for c in range(1, width)))
