"""Passes over a bitext that models learn from: in memory or in files, in this process or in workers.

A bitext is a list of *texts*, consecutive sentence pairs as numbers of its distinct words. Texts are grouped into as
many pieces as the executor has shards; the work on a piece goes through its texts one after the other, so only one of
them needs to be in memory. Tables of words go to where the work is done, and counts come back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin.execution import Executor, PieceSource, Serial
from maxmargin.execution.pieces import cut
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.alignment.translation.words import DistinctWords, IndexedBitext, Int32Array

Float32Array = npt.NDArray[np.float32]

LONGEST_LEARNED = 200
"""Models do not learn from sentence pairs with more words on a side: such pairs are expensive and often misaligned."""

BLOCK_CELLS = 1 << 22
"""Word pairs of the text that an expectation step holds at a time."""

PAIR_WORK = 16
"""How many word pairs of a sentence pair take as long as what is done once for each sentence pair."""

_SENTENCES, _TOKENS = 1 << 16, 1 << 20
"""Sentences, or tokens, that are counted at a time."""

_NEVER = np.iinfo(np.int64).max


class PairArrays(NamedTuple):
    """Sentence pairs as numbers of words: offsets of the sentences of a side, then its tokens."""

    source_start: IntArray
    source: Int32Array
    target_start: IntArray
    target: Int32Array


class TextSize(NamedTuple):
    """Sizes of the sentence pairs of a text that models learn from.

    Attributes:
        pairs: how many there are.
        cells: word pairs within them.
        source: source tokens.
        target: target tokens.
        longest: words of the longest sentence.
    """

    pairs: int
    cells: int
    source: int
    target: int
    longest: int

    @classmethod
    def of(cls, n_source: IntArray, n_target: IntArray) -> TextSize:
        """The size of pairs with these numbers of words; those that are too long to learn from do not count."""
        kept = np.maximum(n_source, n_target) <= LONGEST_LEARNED
        source, target = n_source[kept], n_target[kept]
        longest = int(max(source.max(initial=0), target.max(initial=0)))
        return cls(len(source), int(source @ target), int(source.sum()), int(target.sum()), longest)

    @property
    def work(self) -> int:
        """What a pass over the text costs, in word pairs."""
        return self.cells + PAIR_WORK * self.pairs

    def plus(self, other: TextSize) -> TextSize:
        """The size of both texts together."""
        pairs, cells, source, target = (one + two for one, two in zip(self[:4], other[:4], strict=True))
        return TextSize(pairs, cells, source, target, max(self.longest, other.longest))


class Numbering(NamedTuple):
    """The numbers of distinct words in the two vocabularies of a model."""

    letters: int
    source: Int32Array
    target: Int32Array
    n_source: int
    n_target: int


class Text(ABC):
    """Consecutive sentence pairs of a bitext; goes to where the work is done."""

    size: TextSize

    @abstractmethod
    def read(self) -> PairArrays:
        """The pairs to learn from, as numbers of distinct words."""

    def numbered(self, numbering: Numbering) -> PairArrays:
        """The pairs to learn from, as numbers of two vocabularies."""
        found = self.read()
        return found._replace(source=numbering.source[found.source], target=numbering.target[found.target])

    def fingerprints(self) -> IntArray:
        """The hashes of its sentence pairs that are stored with it, by default none."""
        return np.zeros(0, dtype=np.int64)

    def pairs(self, numbering: Numbering) -> Any:
        """The same, as the kernels take them; equal ones are one that counts as many times."""
        return _kernels.SentencePairs(*self.numbered(numbering), numbering.n_source, numbering.n_target, merge=True)


class HeldText(Text):
    """Sentence pairs in memory; pairs as the kernels take them are kept until they are asked for by other numbers."""

    def __init__(self, bitext: IndexedBitext) -> None:
        self._bitext = bitext
        sizes = np.diff(bitext.source_start), np.diff(bitext.target_start)
        self.size = TextSize.of(*sizes)
        self._kept = None if self.size.pairs == len(bitext) else np.flatnonzero(np.maximum(*sizes) <= LONGEST_LEARNED)
        self._pairs: tuple[int, Any] | None = None

    def read(self) -> PairArrays:
        """Those that are not too long."""
        some = self._bitext if self._kept is None else self._bitext.select(self._kept)
        return PairArrays(some.source_start, some.source, some.target_start, some.target)

    def pairs(self, numbering: Numbering) -> Any:
        """Made once."""
        if self._pairs is None or self._pairs[0] != numbering.letters:
            self._pairs = None  # freed before others are made
            self._pairs = numbering.letters, super().pairs(numbering)
        return self._pairs[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_bitext": _wordless(self._bitext), "_pairs": None}


def _wordless(bitext: IndexedBitext) -> IndexedBitext:
    """Without the words, which work on numbers does not need."""
    return IndexedBitext(DistinctWords([]), bitext.source_start, bitext.source, bitext.target_start, bitext.target)


@dataclass(frozen=True, eq=False)
class BitextPiece:
    """Consecutive texts.

    Attributes:
        texts: the texts.
        pairs: how many sentence pairs there are before the first one.
        source: how many source tokens there are before it.
        target: how many target tokens.
    """

    texts: Sequence[Text]
    pairs: int
    source: int
    target: int


class BitextPieces(PieceSource):
    """The pieces of a bitext."""

    def __init__(self, pieces: Sequence[BitextPiece]) -> None:
        self._pieces = list(pieces)
        self.examples = [sum(text.size.pairs for text in piece.texts) for piece in self._pieces]
        self.parts = [sum(text.size.work for text in piece.texts) for piece in self._pieces]

    def open(self, number: int) -> Any:
        """A :class:`BitextPiece`."""
        return self._pieces[number]

    def between(self, first: int, last: int) -> BitextPieces:
        """Only these, so that no others go where they go."""
        return BitextPieces(self._pieces[first:last])


class BitextPasses:
    """Passes over a bitext, to learn models from it.

    Args:
        words: the distinct words.
        texts: the sentence pairs.
        executor: where the work is done; None for this process.
        max_entries: the most entries that co-occurrences may have; None for any number.

    Attributes:
        words: the distinct words.
        n_pairs: sentence pairs that models learn from.
        n_tokens: tokens of the longer side.
        longest: the number of words of the longest sentence.
        max_entries: the most entries.
        layout: what the numbers of a model depend on besides the text: its pieces and their texts, and the limit.
    """

    def __init__(
        self,
        words: DistinctWords,
        texts: Sequence[Text],
        executor: Executor | None = None,
        max_entries: int | None = None,
    ) -> None:
        executor = executor or Serial()
        self.words, self.max_entries = words, max_entries
        before = [TextSize(0, 0, 0, 0, 0), *accumulate((text.size for text in texts), TextSize.plus)]
        self.n_pairs, self.n_tokens = before[-1].pairs, max(before[-1].source, before[-1].target)
        self.longest = before[-1].longest
        edges = cut([text.size.work for text in texts], executor.shards).tolist()
        groups = [
            BitextPiece(texts[first:last], before[first].pairs, before[first].source, before[first].target)
            for first, last in pairwise(edges)
        ]
        self._session = executor.open(BitextPieces(groups or [BitextPiece(texts, 0, 0, 0)]))
        self._found: Frequencies | None = None
        self.layout = [[list(text.size) for text in group.texts] for group in groups], max_entries

    @classmethod
    def of(cls, bitext: IndexedBitext, executor: Executor | None = None) -> BitextPasses:
        """Passes over sentence pairs in memory, cut into as many texts as the executor has shards."""
        texts = [bitext]
        if executor is not None and executor.shards > 1:
            edges = cut(np.diff(bitext.grid_start) + PAIR_WORK, executor.shards).tolist()
            texts = [bitext.between(first, last) for first, last in pairwise(edges)]
        return cls(bitext.words, [HeldText(text) for text in texts], executor)

    @property
    def frequencies(self) -> Frequencies:
        """How often each distinct word occurs, and where first; one pass."""
        if self._found is None:
            parts = list(self._session.each(_frequencies, len(self.words.words)))
            first = parts[0].first
            for part in parts[1:]:
                first = np.minimum(first, part.first)
            self._found = Frequencies(np.sum([part.occurrences for part in parts], axis=0), first)
        return self._found

    def fingerprints(self) -> IntArray:
        """The hashes of sentence pairs that are stored with the texts, in order; one pass."""
        return np.concatenate(list(self._session.each(_fingerprints)))

    def lexicon(self, numbering: Numbering, counts: tuple[IntArray, IntArray]) -> FoundLexicon:
        """The words that meet in sentence pairs; words of the vocabularies occur so many times. One pass."""
        merged, different = MergedLexicon(counts, self.max_entries), 0
        pairs_with = [np.zeros(numbering.n_source, dtype=np.int64), np.zeros(numbering.n_target, dtype=np.int64)]
        for part in self._session.each(_lexicon, numbering, counts, self.max_entries):
            merged.add(part.lexicon, part.least)
            different += part.different
            for total, more in zip(pairs_with, part.pairs_with, strict=True):
                total += more
            del part
        lexicon, least = merged.whole()
        return FoundLexicon(lexicon, (pairs_with[0], pairs_with[1]), different, least)

    def expect(self, *args: Any) -> tuple[Any, ...]:
        """The sums of :func:`_expect`, arrays of their own; one pass."""
        found = self._session.sums(_expect, *args)
        # Those that have come from elsewhere may be read-only.
        return tuple(one if one.flags.writeable else one.copy() for one in found)

    def close(self) -> None:
        """Release the texts."""
        self._session.close()


def _fingerprints(piece: BitextPiece, memory: Any) -> tuple[IntArray, Any]:
    return np.concatenate([np.zeros(0, dtype=np.int64), *(text.fingerprints() for text in piece.texts)]), memory


class Frequencies(NamedTuple):
    """How often distinct words occur, and their first positions among the tokens, both of shape ``(2, n)``.

    Words that do not occur on a side have the largest position.
    """

    occurrences: IntArray
    first: IntArray


def _frequencies(piece: BitextPiece, memory: Any, n_words: int) -> tuple[Frequencies, Any]:
    count = np.zeros((2, n_words), dtype=np.int64)
    first = np.full((2, n_words), _NEVER)
    end = [piece.source + sum(text.size.source for text in piece.texts)]
    end.append(piece.target + sum(text.size.target for text in piece.texts))
    for text in reversed(piece.texts):  # of repeated indices the last one is kept
        read = text.read()
        for side, tokens in enumerate((read.source, read.target)):
            end[side] -= len(tokens)
            for last in range(len(tokens), 0, -_TOKENS):
                begin = max(last - _TOKENS, 0)
                some = tokens[begin:last]
                count[side] += np.bincount(some, minlength=n_words)
                first[side][some[::-1]] = np.arange(end[side] + begin, end[side] + last)[::-1]
    return Frequencies(count, first), memory


Lexicon = tuple[IntArray, Int32Array, Int32Array]
"""Offsets of rows, columns, and numbers of sentence pairs with both words."""


class FoundLexicon(NamedTuple):
    """Words that meet in sentence pairs.

    Attributes:
        lexicon: the entries.
        pairs_with: for the words of each side the number of sentence pairs they occur in.
        different: the number of sentence pairs of which no two in the same text are equal.
        least: the association below which entries were dropped, see :class:`MergedLexicon`; 0 if none were.
    """

    lexicon: Lexicon
    pairs_with: tuple[IntArray, IntArray]
    different: int
    least: float


def _lexicon(
    piece: BitextPiece, memory: Any, numbering: Numbering, counts: tuple[IntArray, IntArray], max_entries: int | None
) -> tuple[FoundLexicon, Any]:
    merged, different = MergedLexicon(counts, max_entries), 0
    source, target = (np.zeros(n, dtype=np.int64) for n in (numbering.n_source, numbering.n_target))
    for text in piece.texts:
        read = text.numbered(numbering)
        source += _pairs_with(read.source_start, read.source, numbering.n_source)
        target += _pairs_with(read.target_start, read.target, numbering.n_target)
        del read  # the kernels have copies
        pairs = text.pairs(numbering)
        different += len(pairs)
        merged.add(_kernels.bitext_lexicon(pairs, _threads.current()))
    lexicon, least = merged.whole()
    return FoundLexicon(lexicon, (source, target), different, least), memory


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


class MergedLexicon:
    """The entries of the lexicons of several texts.

    If there are more than ``max_entries``, those of words that are least associated are dropped: with ``c`` the number
    of pairs seen so far with both words, which occur ``m`` and ``n`` times in the bitext, those with
    ``c / sqrt(m n)`` below the smallest power of ``2 ** (1 / 4)`` that leaves at most three quarters of the most
    entries. The best entry of every word stays.

    Args:
        counts: how many times the words of each vocabulary occur.
        max_entries: the most entries; None for any number.
    """

    def __init__(self, counts: tuple[IntArray, IntArray], max_entries: int | None) -> None:
        self._counts, self._most = counts, max_entries
        self._waiting: list[Lexicon] = []
        self._least = 0.0

    def add(self, lexicon: Lexicon, least: float = 0.0) -> None:
        """Entries of more text."""
        self._least = max(self._least, least)
        self._waiting.append(lexicon)
        del lexicon
        # Lexicons of about equal size are merged, so that every entry is in few merges.
        while len(self._waiting) > 1 and len(self._waiting[-2][1]) < 2 * len(self._waiting[-1][1]):
            self._merge()

    def whole(self) -> tuple[Lexicon, float]:
        """All entries, and the association below which some were dropped."""
        if not self._waiting:
            none = np.zeros(0, dtype=np.int32)
            return (np.zeros(len(self._counts[0]) + 1, dtype=np.int64), none, none.copy()), 0.0
        while len(self._waiting) > 1:
            self._merge()
        self._waiting[0] = self._fitting(self._waiting[0])
        return self._waiting.pop(), self._least

    def _merge(self) -> None:
        more, one = self._waiting.pop(), self._waiting.pop()
        merged = _kernels.merged_lexicon(*one, *more, _threads.current())
        del one, more
        self._waiting.append(self._fitting(merged))

    def _fitting(self, lexicon: Lexicon) -> Lexicon:
        row_start, column, together = lexicon
        if self._most is None or len(column) <= self._most:
            return lexicon
        product = np.repeat(np.sqrt(self._counts[0]), np.diff(row_start))
        product *= np.sqrt(self._counts[1])[column]
        association = np.empty((len(column), 2), dtype=np.float32)
        association[:, 0] = association[:, 1] = together / product
        del product
        kept = np.empty(len(column), dtype=np.uint8)

        def fits(quarter: int) -> bool:
            least = 2.0 ** (quarter / 4)
            _kernels.translation_probable(row_start, column, len(self._counts[1]), association, least, kept)
            return int(kept.sum()) <= 0.75 * (self._most or 0)

        chosen = bisect_left(range(-96, 0), True, key=fits) - 96
        fits(chosen)
        self._least = max(self._least, 2.0 ** (chosen / 4))
        marked = kept.view(np.bool_)
        start = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(marked)])[row_start]
        return start, column[marked], together[marked]


class Tables(NamedTuple):
    """What an expectation step takes from the model: entries, probabilities of words, and of the empty word."""

    row_start: IntArray
    column: Int32Array
    word: Float32Array
    null_target: Float32Array
    null_source: Float32Array


class HowToExpect(NamedTuple):
    """Settings of an expectation step.

    Attributes:
        unseen: the probability of a word given one that it never co-occurred with.
        jumps: of the hidden Markov models, shape ``(2, n)``; without any entries for Model 1.
        null: the probability of the empty word.
        agree: whether counts are products of both posteriors.
        longest: the number of words of the longest sentence.
        scale: what a count of one is in fixed point.
        every: jumps are counted in every pair whose number this divides.
    """

    unseen: float
    jumps: FloatArray
    null: float
    agree: bool
    longest: int
    scale: float
    every: int


def _expect(
    piece: BitextPiece, memory: Any, numbering: Numbering, tables: Tables, how: HowToExpect
) -> tuple[tuple[npt.NDArray[Any], ...], Any]:
    """Expected counts of words, of the empty word, and of jumps; log-likelihoods."""
    word = np.zeros(tables.word.shape, dtype=np.float32)
    null_target, null_source = (np.zeros(table.shape, dtype=np.uint64) for table in tables[3:])
    distances = np.zeros(how.jumps.shape, dtype=np.uint64)
    departures = np.zeros((2, how.longest + 1, how.longest + 1), dtype=np.uint64)
    likelihood, first = np.zeros(2), piece.pairs
    forth, back = how.jumps
    for text in piece.texts:
        pairs = text.pairs(numbering)
        of_pair = np.empty((len(pairs), 2))
        _kernels.translation_expect(
            pairs, *tables, how.unseen, forth, back, how.null, how.agree, how.longest, how.scale,
            word, null_target, null_source, distances, departures, of_pair, BLOCK_CELLS, first, how.every,
            _threads.current(),
        )  # fmt: skip
        likelihood += of_pair.sum(axis=0)
        first += len(pairs)
    return (word, null_target, null_source, distances, departures, likelihood), memory
