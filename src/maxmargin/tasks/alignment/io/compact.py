"""Sentence pairs as numbers of words: a bitext of a million pairs takes 4 bytes per word instead of some 60."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import overload

import numpy as np
import numpy.typing as npt

from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.io.bitext import bitext_blocks
from maxmargin.tasks.alignment.io.sentences import SentencePair
from maxmargin.tasks.common.files.text import AnyPath

_PIECE = 1 << 14
"""Sentences whose numbers become words at a time."""


@dataclass(frozen=True, eq=False)
class CompactSentences(Sequence[list[str]]):
    """Sentences whose tokens are numbers of distinct words; as a sequence, lists of words.

    Attributes:
        words: the distinct words, perhaps with others.
        start: offsets of the sentences in ``tokens``, shape ``(n + 1,)``.
        tokens: numbers of ``words``, int32.
    """

    words: list[str]
    start: IntArray
    tokens: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.start) - 1

    @overload
    def __getitem__(self, at: int) -> list[str]: ...
    @overload
    def __getitem__(self, at: slice) -> list[list[str]]: ...
    def __getitem__(self, at: int | slice) -> list[str] | list[list[str]]:
        """The words of a sentence, or of several."""
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        number = range(len(self))[at]
        return [self.words[token] for token in self.tokens[self.start[number] : self.start[number + 1]].tolist()]

    def __iter__(self) -> Iterator[list[str]]:
        """The words of all sentences, some thousand sentences at a time."""
        for first in range(0, len(self), _PIECE):
            bounds = self.start[first : first + _PIECE + 1]
            words = [self.words[token] for token in self.tokens[bounds[0] : bounds[-1]].tolist()]
            for begin, end in pairwise((bounds - bounds[0]).tolist()):
                yield words[begin:end]


@dataclass(frozen=True, eq=False)
class CompactPairs(Sequence[SentencePair]):
    """Sentence pairs without extra columns; both sides have the same ``words``."""

    source: CompactSentences
    target: CompactSentences

    @classmethod
    def of(cls, blocks: Iterable[Iterable[tuple[Sequence[str], Sequence[str]]]]) -> CompactPairs:
        """Number the words of pairs, which come in blocks."""
        return _Numbering().extended(blocks)

    def extended(self, pairs: Iterable[SentencePair]) -> CompactPairs:
        """These pairs and others, without the extra columns of those."""
        return _Numbering(self).extended([[(pair.source, pair.target) for pair in pairs]])

    def __len__(self) -> int:
        return len(self.source)

    @overload
    def __getitem__(self, at: int) -> SentencePair: ...
    @overload
    def __getitem__(self, at: slice) -> list[SentencePair]: ...
    def __getitem__(self, at: int | slice) -> SentencePair | list[SentencePair]:
        """A pair, or several."""
        if isinstance(at, slice):
            return [SentencePair(*pair) for pair in zip(self.source[at], self.target[at], strict=True)]
        return SentencePair(self.source[at], self.target[at])

    def __iter__(self) -> Iterator[SentencePair]:
        return map(SentencePair, self.source, self.target)

    @property
    def sizes(self) -> IntArray:
        """Numbers of source and target words, shape ``(n, 2)``."""
        return np.stack([np.diff(self.source.start), np.diff(self.target.start)], axis=1)


class WordNumbers:
    """Numbers of words in the order in which they appear."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._index = {word: number for number, word in enumerate(words)}

    @property
    def words(self) -> list[str]:
        """All words, by number."""
        return list(self._index)

    def of(self, sentences: Sequence[Sequence[str]]) -> tuple[IntArray, npt.NDArray[np.int32]]:
        """How many words each sentence has, and the numbers of all of them; new words get the next numbers."""
        for word in dict.fromkeys(chain.from_iterable(sentences)):
            self._index.setdefault(word, len(self._index))
        sizes = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
        numbers = map(self._index.__getitem__, chain.from_iterable(sentences))
        return sizes, np.fromiter(numbers, dtype=np.int32, count=int(sizes.sum()))


class _Numbering:
    """Sentences of both sides as numbers of words."""

    def __init__(self, begun: CompactPairs | None = None) -> None:
        sides = () if begun is None else (begun.source, begun.target)
        self._numbers = WordNumbers(sides[0].words if sides else ())
        self._sizes: list[list[IntArray]] = [[np.diff(side.start)] for side in sides] or [[], []]
        self._tokens: list[list[npt.NDArray[np.int32]]] = [[side.tokens] for side in sides] or [[], []]

    def extended(self, blocks: Iterable[Iterable[tuple[Sequence[str], Sequence[str]]]]) -> CompactPairs:
        """Add pairs, and return all of them."""
        for block in blocks:
            for side, sentences in enumerate(zip(*block, strict=True)):
                sizes, tokens = self._numbers.of(sentences)
                self._sizes[side].append(sizes)
                self._tokens[side].append(tokens)
        words = self._numbers.words
        source, target = (
            CompactSentences(
                words,
                offsets_of(np.concatenate([np.zeros(0, dtype=np.int64), *all_sizes])),
                np.concatenate([np.zeros(0, dtype=np.int32), *all_tokens]),
            )
            for all_sizes, all_tokens in zip(self._sizes, self._tokens, strict=True)
        )
        return CompactPairs(source, target)


def read_compact(source: AnyPath, target: AnyPath | None = None) -> CompactPairs:
    """Read sentence pairs as :func:`~maxmargin.tasks.alignment.io.bitext.read_bitext` does, into little memory."""
    return CompactPairs.of(bitext_blocks(source, target))
