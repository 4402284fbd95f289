"""The words of a bitext and which of them co-occur: the entries that translation models have probabilities for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.alignment.translation.words import DistinctWords, IndexedBitext, Int32Array, WordVocabulary

LONGEST_LEARNED = 200
"""Models do not learn from sentence pairs with more words on a side: such pairs are expensive and often misaligned."""

LARGE = 1 << 15
"""Number of sentence pairs beyond which models drop improbable word pairs as they learn."""


@dataclass(frozen=True, eq=False)
class BitextBatch:
    """Sentence pairs as numbers of two vocabularies; -1 for words that they do not have."""

    source_start: IntArray
    source: Int32Array
    target_start: IntArray
    target: Int32Array
    vocabulary_sizes: tuple[int, int]

    @cached_property
    def grid_start(self) -> IntArray:
        """Offsets of the cells of each pair, shape ``(n_pairs + 1,)``."""
        return offsets_of(np.diff(self.source_start) * np.diff(self.target_start))

    @cached_property
    def kernel(self) -> Any:
        """The pairs as the kernels take them."""
        return _kernels.SentencePairs(
            self.source_start, self.source, self.target_start, self.target, *self.vocabulary_sizes
        )

    def __len__(self) -> int:
        return len(self.source_start) - 1


@dataclass(frozen=True, eq=False)
class Cooccurrences:
    """A sparse matrix, source words by target words, with an entry for every two words that share a sentence pair.

    Attributes:
        source: the source vocabulary; its counts are numbers of sentence pairs with a word.
        target: the target vocabulary.
        n_pairs: number of sentence pairs.
        letters: words are normalized and cut after this many letters; 0 for whole words.
        row_start: shape ``(n_source + 1,)``; the entries of source word ``e`` are ``row_start[e]:row_start[e + 1]``.
        column: the target word of each entry, rising within a row.
        counts: the number of sentence pairs with both words of each entry.
    """

    source: WordVocabulary
    target: WordVocabulary
    n_pairs: int
    letters: int
    row_start: IntArray
    column: Int32Array
    counts: Int32Array

    @property
    def n_entries(self) -> int:
        """Number of entries."""
        return len(self.column)

    @cached_property
    def _kernel(self) -> Any:
        """The entries as kernels take them, checked once."""
        return _kernels.WordPairs(self.row_start, self.column, len(self.target))

    def __getstate__(self) -> dict[str, Any]:
        """Without the kernel object, which is made again from the rest."""
        return {name: value for name, value in self.__dict__.items() if name != "_kernel"}

    def batch(self, bitext: IndexedBitext) -> BitextBatch:
        """Sentence pairs as numbers of the two vocabularies."""
        source, target = (bitext.words.numbers_in(side, self.letters) for side in (self.source, self.target))
        return BitextBatch(
            bitext.source_start,
            source[bitext.source],
            bitext.target_start,
            target[bitext.target],
            (len(self.source), len(self.target)),
        )

    def entries(self, batch: BitextBatch) -> IntArray:
        """The entry of every cell, -1 for two words that never co-occurred."""
        entries = np.empty(batch.grid_start[-1], dtype=np.int64)
        self._kernel.find(batch.kernel, entries, _threads.current())
        return entries

    def identical(self) -> IntArray:
        """The entries of two equal words: of those with a digit, and of whole words of at least four letters."""
        shared = [
            (e, f)
            for e, word in enumerate(self.source.words)
            if (f := self.target.index.get(word)) is not None and _noticed(word, whole=not self.letters)
        ]
        rows, columns = np.ascontiguousarray(np.array(shared, dtype=np.int32).reshape(-1, 2).T)
        each = np.arange(len(shared) + 1)  # one sentence pair of two words for each
        batch = BitextBatch(each, rows, each, columns, (len(self.source), len(self.target)))
        found = replace(self).entries(batch)  # this one would keep the kernel's copy of all entries while models learn
        return np.sort(found[found >= 0])

    def names(self, entries: IntArray) -> list[str]:
        """The two words of each of these entries, as text."""
        rows = np.searchsorted(self.row_start, entries, side="right") - 1
        return [
            f"{self.source.words[e]} ~ {self.target.words[f]}"
            for e, f in zip(rows.tolist(), self.column[entries].tolist(), strict=True)
        ]

    def select(self, kept: npt.NDArray[np.bool_]) -> Self:
        """Only the marked entries."""
        start = np.searchsorted(np.flatnonzero(kept), self.row_start)
        return replace(self, row_start=start, column=self.column[kept], counts=self.counts[kept])


class PreparedBitext:
    """A bitext as numbers of its vocabularies, with its co-occurrences, to learn models from.

    Pairs with more than :data:`LONGEST_LEARNED` words on a side are left out.

    Args:
        bitext: the sentence pairs.
        letters: words are normalized and cut after this many letters; 0 for whole words.

    Attributes:
        cooccurrences: the words that co-occur; models of large bitexts drop entries as they learn.
        pairs: the sentence pairs as the kernels take them; equal ones are one that counts as many times.
        longest: the number of words of the longest sentence.
        n_tokens: the number of tokens of the longer side.
    """

    def __init__(self, bitext: IndexedBitext, *, letters: int = 0) -> None:
        longest = np.maximum(np.diff(bitext.source_start), np.diff(bitext.target_start))
        if longest.max(initial=0) > LONGEST_LEARNED:
            bitext = bitext.select(np.flatnonzero(longest <= LONGEST_LEARNED))
            longest = longest[longest <= LONGEST_LEARNED]
        source, source_words = _numbered(bitext.words, bitext.source, letters)
        target, target_words = _numbered(bitext.words, bitext.target, letters)
        sizes = len(source_words), len(target_words)
        starts = bitext.source_start, bitext.target_start
        self.pairs = _kernels.SentencePairs(starts[0], source, starts[1], target, *sizes, merge=True)
        self.longest, self.n_tokens = int(longest.max(initial=0)), max(len(source), len(target))
        counts = _pairs_with(bitext.source_start, source, sizes[0]), _pairs_with(bitext.target_start, target, sizes[1])
        del source, target  # the kernels have copies
        self.cooccurrences = Cooccurrences(
            WordVocabulary(source_words, counts[0]),
            WordVocabulary(target_words, counts[1]),
            len(bitext),
            letters,
            *_kernels.bitext_lexicon(self.pairs, _threads.current()),
        )

    @property
    def is_large(self) -> bool:
        """Whether there are more than :data:`LARGE` sentence pairs."""
        return self.cooccurrences.n_pairs > LARGE

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        """Drop all entries of the co-occurrences but the marked ones."""
        self.cooccurrences = self.cooccurrences.select(kept)


def _numbered(words: DistinctWords, tokens: Int32Array, letters: int) -> tuple[Int32Array, list[str]]:
    """Numbers of the forms of tokens, by falling frequency, then by first occurrence, and these forms."""
    of_word, forms = words.forms(letters)
    of_token = of_word[tokens]
    count = np.bincount(of_token, minlength=len(forms))
    seen = np.zeros(len(forms), dtype=np.int64)
    for end in range(len(tokens), 0, -_TOKENS):  # of repeated indices the last one is kept
        first = max(end - _TOKENS, 0)
        seen[of_token[first:end][::-1]] = np.arange(first, end)[::-1]
    order = np.lexsort((seen, -count))[: np.count_nonzero(count)]
    number = np.zeros(len(forms), dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return number[of_token], [forms[form] for form in order.tolist()]


def _noticed(word: str, *, whole: bool) -> bool:
    if any(map(str.isdecimal, word)):
        return True
    return whole and len(word) >= 4 and any(map(str.isalpha, word))


_SENTENCES, _TOKENS = 1 << 16, 1 << 20
"""Sentences, or tokens, that are counted at a time."""


def _pairs_with(start: IntArray, words: Int32Array, n_words: int) -> IntArray:
    """The number of sentences that each word occurs in."""
    found = np.zeros(n_words, dtype=np.int64)
    width = max(n_words, 1)
    for first in range(0, len(start) - 1, _SENTENCES):
        some = start[first : first + _SENTENCES + 1]
        keys = np.repeat(np.arange(len(some) - 1), np.diff(some)) * width + words[some[0] : some[-1]]
        keys.sort()
        found += np.bincount(keys[np.diff(keys, prepend=-1) > 0] % width, minlength=n_words)
    return found


def values_at(values: npt.NDArray[Any], at: npt.NDArray[Any], missing: int = 0) -> npt.NDArray[Any]:
    """Values at entries or numbers of words; ``missing`` at -1."""
    if not len(values):
        return np.full(at.shape, missing, dtype=values.dtype)
    return np.asarray(np.where(at >= 0, values[at], values.dtype.type(missing)))
