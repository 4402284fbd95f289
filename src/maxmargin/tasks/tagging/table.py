"""Tokens and their columns as places in one buffer of bytes: what readers make and templates take.

A file of a million tokens has no Python object per token here: a cell is where it begins and ends in the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import IntArray

WORD = "word"
"""The name of the only column where tokens are plain text."""


@dataclass(frozen=True, eq=False)
class TokenTable:
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

    def cells(self, column: int) -> list[str]:
        """The text of one column, token after token."""
        found = zip(self.begin[:, column].tolist(), self.end[:, column].tolist(), strict=True)
        return [self.buffer[first:last].decode("utf-8") for first, last in found]

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


def _names(width: int) -> tuple[str, ...]:
    return (WORD,) if width == 1 else (WORD, *(f"column{c}" for c in range(1, width)))
