"""Tokens and their columns or attributes as places in one buffer of bytes: what readers make and templates take.

A file of a million tokens has no Python object per token here: a cell is where it begins and ends in the buffer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks import _kernels

Codes = npt.NDArray[np.int32]
"""Numbers of labels or words, one per token."""

_PLACE = re.compile(r"sentence (\d+), token (\d+): (.*)", re.DOTALL)

WORD = "word"
"""The name of the only column where tokens are plain text."""


class _InSentences:
    """What tokens have in common, whatever is known of them: sentences, and where they are from."""

    buffer: bytes
    sentences: IntArray
    lines: IntArray | None
    source: str

    @property
    def n_sentences(self) -> int:
        """How many sentences there are."""
        return len(self.sentences) - 1

    @property
    def lengths(self) -> IntArray:
        """Tokens per sentence, shape ``(n_sentences,)``."""
        return np.diff(self.sentences)

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        """The buffer as kernels take it."""
        return np.frombuffer(self.buffer, dtype=np.uint8)

    def where(self, token: int) -> str:
        """Where a token stands, as errors begin: ``FILE, line N``, or ``sentence I, token J`` without a file."""
        if self.lines is not None:
            return f"{self.source}, line {self.lines[token]}"
        sentence = int(np.searchsorted(self.sentences, token, side="right")) - 1
        return f"sentence {sentence}, token {token - self.sentences[sentence]}"


@dataclass(frozen=True, eq=False)
class TokenTable(_InSentences):
    """Sentences of tokens, each with the same columns.

    Attributes:
        buffer: UTF-8 text.
        begin: where each cell begins in the buffer, shape ``(n_tokens, n_columns)``, int64, C-contiguous.
        end: where it ends, likewise.
        sentences: sentence ``i`` has the tokens ``sentences[i]:sentences[i + 1]``, shape ``(n_sentences + 1,)``, int64.
        columns: the names of the columns, all different.
        lines: the line of each token counted from 1, shape ``(n_tokens,)``, int64; None where there is no file.
        source: the file as errors name it; empty where there is none.
    """

    buffer: bytes
    begin: IntArray
    end: IntArray
    sentences: IntArray
    columns: tuple[str, ...]
    lines: IntArray | None = None
    source: str = ""

    @property
    def n_tokens(self) -> int:
        """Tokens of all sentences."""
        return len(self.begin)

    def cells(self, column: int) -> list[str]:
        """The text of one column, token after token."""
        return texts(self.buffer, self.begin[:, column], self.end[:, column])

    def by_sentence(self, column: int) -> list[list[str]]:
        """The text of one column, a list per sentence."""
        cells = self.cells(column)
        return [cells[first:last] for first, last in pairwise(self.sentences.tolist())]

    @classmethod
    def of_lists(cls, sentences: Sequence[Sequence[Any]], columns: Sequence[str] | None = None) -> TokenTable:
        """The table of Python data: per sentence a list of tokens, each a string or one string per column.

        ValueError naming sentence and token where something is no text or has another number of columns.
        """
        width = None if columns is None else len(columns)
        cells: list[bytes] = []
        lengths: list[int] = []
        for i, sentence in enumerate(sentences):
            if isinstance(sentence, (str, bytes)) or not hasattr(sentence, "__iter__"):
                raise ValueError(f"sentence {i}: expected a list of tokens, got {type(sentence).__name__}")
            before = len(cells)
            count = 0
            for j, token in enumerate(sentence):
                row = (token,) if isinstance(token, str) else tuple(token) if isinstance(token, (list, tuple)) else ()
                if not row or not all(isinstance(cell, str) for cell in row):
                    raise ValueError(
                        f"sentence {i}, token {j}: expected text or a tuple of texts, got {token!r:.60}; numbers and "
                        "feature dictionaries cannot stand beside tokens of text"
                    )
                width = len(row) if width is None else width
                if len(row) != width:
                    raise ValueError(f"sentence {i}, token {j}: {len(row)} columns where others have {width}")
                cells.extend(cell.encode("utf-8", "surrogatepass") for cell in row)
                count += 1
            assert len(cells) - before == count * (width or 1)
            lengths.append(count)
        width = width or 1
        ends = np.cumsum([0, *map(len, cells)], dtype=np.int64)
        names = tuple(columns) if columns is not None else _names(width)
        return cls(
            b"".join(cells),
            np.ascontiguousarray(ends[:-1].reshape(-1, width)),
            np.ascontiguousarray(ends[1:].reshape(-1, width)),
            np.cumsum([0, *lengths], dtype=np.int64),
            names,
        )


@dataclass(frozen=True, eq=False)
class AttributeText(_InSentences):
    """Sentences of tokens that have attributes with weights instead of columns.

    Attributes:
        buffer: UTF-8 text.
        begin: where the name of each attribute begins in the buffer, shape ``(n_attributes,)``, int64.
        end: where it ends, likewise.
        weight: the weight of each, finite, shape ``(n_attributes,)``.
        starts: token ``t`` has the attributes ``starts[t]:starts[t + 1]``, in the order given and perhaps repeated,
            shape ``(n_tokens + 1,)``, int64.
        label_begin: where the label of each token begins, shape ``(n_tokens,)``, int64; None where there are no labels.
        label_end: where it ends, likewise.
        sentences: sentence ``i`` has the tokens ``sentences[i]:sentences[i + 1]``, shape ``(n_sentences + 1,)``, int64.
        lines: the line of each token counted from 1, shape ``(n_tokens,)``, int64; None where there is no file.
        source: the file as errors name it; empty where there is none.
    """

    buffer: bytes
    begin: IntArray
    end: IntArray
    weight: FloatArray
    starts: IntArray
    label_begin: IntArray | None
    label_end: IntArray | None
    sentences: IntArray
    lines: IntArray | None = None
    source: str = ""

    @property
    def n_tokens(self) -> int:
        """Tokens of all sentences."""
        return len(self.starts) - 1

    def names(self) -> list[str]:
        """The names of all attributes, token after token."""
        return texts(self.buffer, self.begin, self.end)

    def labels(self) -> list[str] | None:
        """The label of each token; None where there are no labels."""
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
        """The attributes of Python data: per sentence a list of tokens, each a list of names or a dictionary.

        Dictionaries are read as python-crfsuite reads them: ``{"bias": 1.5, "title": True, "word": "the",
        "suffix": ["e", "he"], "window": {"to": 0.5}}`` has the attributes ``bias`` with weight 1.5, ``title`` with
        weight 1, ``word:the``, ``suffix:e``, ``suffix:he`` and, with weight 0.5, ``window:to``.

        Args:
            sentences: the tokens.
            labels: the label of each token.
            where: what errors begin with, given the numbers of sentence and token.
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


def texts(buffer: bytes, begin: IntArray, end: IntArray) -> list[str]:
    """The pieces of a buffer as strings."""
    return [buffer[first:last].decode("utf-8") for first, last in zip(begin.tolist(), end.tolist(), strict=True)]


def _names(width: int) -> tuple[str, ...]:
    return (WORD,) if width == 1 else (WORD, *(f"column{c}" for c in range(1, width)))
