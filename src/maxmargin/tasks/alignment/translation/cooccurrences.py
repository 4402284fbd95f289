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
from maxmargin.tasks.alignment.translation.passes import BitextPasses, Numbering
from maxmargin.tasks.alignment.translation.words import DistinctWords, IndexedBitext, Int32Array, WordVocabulary

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

    Pairs with more than :data:`~maxmargin.tasks.alignment.translation.passes.LONGEST_LEARNED` words on a side are left
    out.

    Args:
        bitext: the sentence pairs, or passes over them.
        letters: words are normalized and cut after this many letters; 0 for whole words.

    Attributes:
        passes: passes over the sentence pairs.
        numbering: the numbers of distinct words in the two vocabularies.
        cooccurrences: the words that co-occur; models of large bitexts drop entries as they learn.
        n_different: the number of sentence pairs of which no two in the same text are equal.
        least: entries of a smaller association were dropped, see
            :class:`~maxmargin.tasks.alignment.translation.passes.MergedLexicon`; 0 if none were.
    """

    def __init__(self, bitext: IndexedBitext | BitextPasses, *, letters: int = 0) -> None:
        self.passes = bitext if isinstance(bitext, BitextPasses) else BitextPasses.of(bitext)
        frequencies = self.passes.frequencies
        (source, source_words, n_source), (target, target_words, n_target) = (
            _numbered(self.passes.words, *side, letters) for side in zip(*frequencies, strict=True)
        )
        self.numbering = Numbering(letters, source, target, len(source_words), len(target_words))
        lexicon, counts, self.n_different, self.least = self.passes.lexicon(self.numbering, (n_source, n_target))
        self.cooccurrences = Cooccurrences(
            WordVocabulary(source_words, counts[0]),
            WordVocabulary(target_words, counts[1]),
            self.passes.n_pairs,
            letters,
            *lexicon,
        )

    @property
    def is_large(self) -> bool:
        """Whether there are more than :data:`LARGE` sentence pairs."""
        return self.cooccurrences.n_pairs > LARGE

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        """Drop all entries of the co-occurrences but the marked ones."""
        self.cooccurrences = self.cooccurrences.select(kept)


def _numbered(
    words: DistinctWords, count: IntArray, first: IntArray, letters: int
) -> tuple[Int32Array, list[str], IntArray]:
    """Number the forms of words by falling frequency, then by first occurrence.

    Returns:
        the number of each word's form, the forms, and how often each occurs.
    """
    of_word, forms = words.forms(letters)
    total = np.bincount(of_word, count, minlength=len(forms)).astype(np.int64)
    seen = np.full(len(forms), np.iinfo(np.int64).max)
    np.minimum.at(seen, of_word, first)
    order = np.lexsort((seen, -total))[: np.count_nonzero(total)]
    number = np.zeros(len(forms), dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return number[of_word], [forms[form] for form in order.tolist()], total[order]


def _noticed(word: str, *, whole: bool) -> bool:
    if any(map(str.isdecimal, word)):
        return True
    return whole and len(word) >= 4 and any(map(str.isalpha, word))


def values_at(values: npt.NDArray[Any], at: npt.NDArray[Any], missing: int = 0) -> npt.NDArray[Any]:
    """Values at entries or numbers of words; ``missing`` at -1."""
    if not len(values):
        return np.full(at.shape, missing, dtype=values.dtype)
    return np.asarray(np.where(at >= 0, values[at], values.dtype.type(missing)))
