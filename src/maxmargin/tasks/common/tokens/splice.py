"""Insertion of labels into text, in one pass of compiled code over the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks import _kernels

Number = TypeVar("Number", bound=np.generic)

_NUMBER = 24
"""Maximal number of bytes of a number."""


@dataclass(frozen=True, eq=False)
class Insertions:
    """Places of labels and scores in a text.

    Attributes:
        data: the text.
        begin: start of the bytes that the label of each token replaces, shape ``(n,)``.
        end: end of these bytes.
        names: the labels by code, as written.
        mark: precedes a score.
        first: start of the first cell of each token, shape ``(n,)``.
        last: end of its last cell.
        scores: start of the bytes, up to ``last``, that scores replace, unless scores follow the labels; if there are
            no such bytes, ``|`` precedes the mark.
        paragraphs: whether lines without tokens belong to a sentence, up to the next blank line.
        sentence_a_line: whether a sentence is one line.
    """

    data: bytes
    begin: IntArray
    end: IntArray
    names: list[bytes]
    mark: bytes
    first: IntArray
    last: IntArray
    scores: IntArray | None = None
    paragraphs: bool = False
    sentence_a_line: bool = False

    def at(self, tokens: IntArray, data: bytes | None = None, shift: IntArray | int = 0) -> Insertions:
        """Return the places of some tokens, in another text where each is shifted by ``shift``."""
        return replace(
            self,
            data=self.data if data is None else data,
            begin=self.begin[tokens] + shift,
            end=self.end[tokens] + shift,
            first=self.first[tokens] + shift,
            last=self.last[tokens] + shift,
            scores=None if self.scores is None else self.scores[tokens] + shift,
        )


def spliced(
    insertions: Insertions, codes: npt.NDArray[np.int32], scores: FloatArray | None, *, digits: int = 6
) -> memoryview:
    """Return the text with the label, and perhaps the score, of each token."""
    begin, end, names = insertions.begin, insertions.end, list(insertions.names)
    mark = insertions.mark
    if scores is not None and insertions.scores is not None:
        # Two places per token: the label, without a number, and the score, with one.
        replaced = insertions.scores < insertions.last
        n = len(codes)
        begin, end = _mixed(begin, insertions.scores), _mixed(end, insertions.last)
        codes = _mixed(codes, np.where(replaced, len(names), len(names) + 1).astype(np.int32))
        scores = _mixed(np.full(n, np.nan), scores)
        names += [mark, b"|" + mark]
        mark = b""
    elif scores is not None and insertions.paragraphs:
        mark = b"|" + mark  # both in the last column of CoNLL-U
    return with_names(insertions.data, begin, end, codes, names, scores, mark, digits=digits)


def with_names(
    data: bytes,
    begin: IntArray,
    end: IntArray,
    codes: npt.NDArray[np.int32],
    names: Sequence[bytes],
    numbers: FloatArray | None = None,
    mark: bytes = b"",
    *,
    digits: int = 6,
) -> memoryview:
    """Return the text with the bytes from ``begin[j]`` to ``end[j]`` replaced by ``names[codes[j]]``.

    Places rise. A number, unless it is NaN, follows its name with ``mark`` before it, in ``digits`` digits.
    """
    letters = b"".join(names)
    offsets = offsets_of([len(name) for name in names])
    sizes = np.diff(offsets)
    number = np.zeros(0) if numbers is None else np.ascontiguousarray(numbers)
    room = len(data) + int(sizes[codes].sum()) + len(number) * (_NUMBER + len(mark))
    out = np.empty(room, dtype=np.uint8)
    length = _kernels.text_splice(
        _bytes(data),
        np.ascontiguousarray(begin),
        np.ascontiguousarray(end),
        np.ascontiguousarray(codes, dtype=np.int32),
        offsets,
        _bytes(letters),
        number,
        _bytes(mark),
        digits,
        out,
    )
    return out[:length].data


def spliced_k_best(
    insertions: Insertions,
    sentences: IntArray,
    scores: Sequence[Sequence[float]],
    codes: npt.NDArray[np.int32],
    *,
    newline: bytes,
    digits: int = 6,
) -> memoryview:
    """Return each sentence once per score, after a line ``# RANK SCORE``; codes are those of all labelings."""
    data = insertions.data
    parts: list[bytes] = []
    tokens: list[IntArray] = []
    shifts: list[int] = []
    length = 0
    for i, some in enumerate(scores):
        own = np.arange(sentences[i], sentences[i + 1])
        if not len(own) or not len(some):
            continue
        begin, end = _span(insertions, int(own[0]), int(own[-1]))
        block = data[begin:end] + newline + (b"" if insertions.sentence_a_line else newline)
        for rank, score in enumerate(some):
            head = f"# {rank} {score:.{digits}g}".encode() + newline
            parts += [head, block]
            shifts.append(length + len(head) - begin)
            tokens.append(own)
            length += len(head) + len(block)
    chosen = np.concatenate(tokens) if tokens else np.zeros(0, dtype=np.int64)
    shift = np.repeat(np.array(shifts, dtype=np.int64), [len(own) for own in tokens])
    return spliced(insertions.at(chosen, b"".join(parts), shift), codes, None, digits=digits)


def _span(insertions: Insertions, first: int, last: int) -> tuple[int, int]:
    """Return begin and end of a sentence in the text: whole lines without the last line end."""
    data = insertions.data
    begin = data.rfind(b"\n", 0, int(insertions.first[first])) + 1
    end = data.find(b"\n", int(insertions.last[last]))
    end = len(data) if end < 0 else end
    while insertions.paragraphs and begin and data[(up := data.rfind(b"\n", 0, begin - 1) + 1) : begin].strip():
        begin = up
    while insertions.paragraphs and end < len(data):
        down = data.find(b"\n", end + 1)
        down = len(data) if down < 0 else down
        if not data[end + 1 : down].strip():
            break
        end = down
    return begin, end - data[begin:end].endswith(b"\r")


def _mixed(one: npt.NDArray[Number], two: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Interleave two arrays."""
    return np.stack([one, two], axis=1).reshape(-1)


def _bytes(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8)
