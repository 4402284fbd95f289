"""Word classes learned from labeled text: the labels a word occurs with, as one more column for templates.

The class of a word lists the labels of at least a tenth of its occurrences, ignoring case: ``NOUN VERB``. An unknown
word gets the most frequent label of the rare words with the same ending, ``?NOUN``. Templates can use the class of a
word two tokens away, whose label a first-order chain does not see.

A class learned from a sentence leaks its labels, and a model trained on such classes relies on them too much: on UD
English EWT they reduce accuracy, while classes learned from other sentences increase it. Classes of training sentences
are therefore cross-fitted (:meth:`WordClasses.crossed`): those of a fold are learned from all other folds. Folds are
runs of sentences, because words recur within a document.

Cost: sorting ``n_tokens`` pairs of word and label per fold, and Python string functions per distinct word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin._sparse import sp
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.tokens.table import WORD, Codes, TokenTable
from maxmargin.tasks.tagging.encoder.attributes import AttributeVocabulary, decoded, numbers_of
from maxmargin.tasks.tagging.encoder.templates.plan import numbered

Coded = tuple[npt.NDArray[np.integer[Any]], Sequence[str]]
"""The label of each token as a number, -1 if unknown, and the names of the labels."""

SHARE = 0.1
"""Labels of a smaller share of a word's occurrences are not in its class."""
RARE = 5
"""Endings are learned from words with at most this many occurrences, and used if seen at least as often."""
ENDINGS = 4
"""Length of the longest ending, in characters."""
NO_CLASS = "?"
"""The class of a word about which nothing is known, and the prefix of the classes of endings."""


@dataclass(frozen=True, eq=False)
class WordClasses:
    """Words and endings with their classes.

    Attributes:
        words: words in lower case.
        endings: ``X`` for capitalized words or ``x``, then the last letters in lower case.
        word_classes: class of each word, shape ``(n_words,)``, int32.
        ending_classes: class of each ending, shape ``(n_endings,)``, int32.
        names: names of the classes.
        source: the column of the words.
    """

    words: AttributeVocabulary
    endings: AttributeVocabulary
    word_classes: Codes
    ending_classes: Codes
    names: tuple[str, ...]
    source: str = WORD

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.words)} words, {len(self.names)} classes)"

    @classmethod
    def learn(cls, table: TokenTable, labels: Coded, *, source: str = WORD) -> WordClasses:
        """Learn the classes of a text.

        Args:
            table: the tokens.
            labels: label of each token, shape ``(n_tokens,)``, and names of the labels.
            source: the column of the words.

        Raises:
            ValueError: there is no such column, or the labels do not match the tokens.
        """
        codes, texts = _checked(table, labels)
        cells, numbers = _Cells.of(table, source)
        return cells.classes(*cells.learned(*_pairs(numbers, codes, len(texts)), texts), source)

    @classmethod
    def crossed(
        cls, table: TokenTable, labels: Coded, *, name: str = "class", source: str = WORD, folds: int = 10
    ) -> TokenTable:
        """Return the table with cross-fitted classes, for training.

        Args:
            table: the tokens.
            labels: label of each token, and names of the labels.
            name: name of the new column.
            source: the column of the words.
            folds: number of runs of sentences, of about equal size; fewer for shorter texts.
        """
        if folds < 2:
            raise ValueError(f"folds is {folds}; give 2 or more")
        codes, texts = _checked(table, labels)
        cells, numbers = _Cells.of(table, source)
        n, found = table.n_sentences, np.zeros(table.n_tokens, dtype=np.int32)
        names: dict[str, int] = {}
        bounds = table.sentences[np.arange(folds + 1) * n // folds]
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            if first == last:
                continue
            others = np.r_[0:first, last : table.n_tokens]
            word_classes, ending_classes, known = cells.learned(
                *_pairs(numbers[others], codes[others], len(texts)), texts
            )
            renumbered = np.array([names.setdefault(text, len(names)) for text in known], dtype=np.int32)
            here, inverse = np.unique(numbers[first:last], return_inverse=True)
            classes = _looked_up(cells.word[here], cells.ending[here], word_classes, ending_classes)
            found[first:last] = renumbered[classes][inverse]
        return table.with_column(name, found, tuple(names))

    def columns(self, table: TokenTable, *, name: str = "class") -> TokenTable:
        """Return the table with one more column, the class of each word."""
        numbers, (text, ends) = numbered(table, self.source)
        word, ending = _numbers_of(decoded(text, ends), self.words, self.endings, grow=False)
        classes = _looked_up(word, ending, self.word_classes, self.ending_classes)
        return table.with_column(name, classes[numbers], self.names)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of a model file, which also stores :attr:`names` and :attr:`source`."""
        return {
            **{f"words.{key}": array for key, array in self.words.to_arrays().items()},
            **{f"endings.{key}": array for key, array in self.endings.to_arrays().items()},
            "word_classes": self.word_classes,
            "ending_classes": self.ending_classes,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], names: Sequence[str], source: str = WORD) -> Self:
        """The inverse of :meth:`to_arrays`; ValueError if they are damaged."""
        if not names or not all(isinstance(name, str) for name in names):
            raise ValueError("the word classes have no names; save the model again")
        words, endings = (
            AttributeVocabulary.from_arrays(
                {key: arrays[f"{part}.{key}"] for key in ("text", "ends") if f"{part}.{key}" in arrays}
            )
            for part in ("words", "endings")
        )
        for key, vocabulary in (("word_classes", words), ("ending_classes", endings)):
            array = arrays.get(key)
            if array is None or array.dtype != np.int32 or array.shape != (len(vocabulary),):
                raise ValueError(f"{key} must be int32, one for each string; save the model again")
            if len(array) and not 0 <= array.min() <= array.max() < len(names):
                raise ValueError(f"{key} has a class without a name; save the model again")
        return cls(words, endings, arrays["word_classes"], arrays["ending_classes"], tuple(names), source)


@dataclass(frozen=True, eq=False)
class CrossedClasses:
    """Word classes of training sentences that are read in blocks: those of a fold are learned from all other folds.

    Attributes:
        bounds: where the folds begin among the sentences, and the end, shape ``(n_folds + 1,)``.
        classes: the classes for each fold.
    """

    bounds: IntArray
    classes: tuple[WordClasses, ...]

    def columns(self, table: TokenTable, first: int, *, name: str) -> TokenTable:
        """Return the table, whose first sentence has the number ``first``, with the class of each word."""
        numbers, (text, ends) = numbered(table, self.classes[0].source)
        words, found = decoded(text, ends), np.zeros(table.n_tokens, dtype=np.int32)
        names: dict[str, int] = {}
        fold = np.searchsorted(self.bounds, first + np.arange(table.n_sentences), side="right") - 1
        of_token = np.repeat(fold, table.lengths)
        for number in np.unique(fold).tolist():
            own = self.classes[number]
            word, ending = _numbers_of(words, own.words, own.endings, grow=False)
            classes = _looked_up(word, ending, own.word_classes, own.ending_classes)
            renumbered = np.array([names.setdefault(one, len(names)) for one in own.names], dtype=np.int32)
            here = of_token == number
            found[here] = renumbered[classes][numbers[here]]
        return table.with_column(name, found, tuple(names))


class ClassCounts:
    """How often each word occurs with each label in each fold of a text that is read in blocks.

    Args:
        texts: names of the labels.
        n_sentences: sentences of the whole text.
        source: the column of the words.
        folds: runs of sentences.
    """

    def __init__(self, texts: Sequence[str], n_sentences: int, source: str = WORD, folds: int = 10) -> None:
        self.texts, self.source = texts, source
        self.bounds = np.arange(folds + 1) * n_sentences // folds
        self._cells, self._sentences = AttributeVocabulary(), 0
        self._keys, self._counts = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    def add(self, table: TokenTable, codes: Codes) -> None:
        """Count the next sentences."""
        codes, _ = _checked(table, (codes, self.texts))
        numbers, (text, ends) = numbered(table, self.source)
        cell = numbers_of(self._cells, decoded(text, ends), grow=True)[numbers].astype(np.int64)
        sentence = self._sentences + np.repeat(np.arange(table.n_sentences), table.lengths)
        fold = np.searchsorted(self.bounds, sentence, side="right") - 1
        known, m = codes >= 0, len(self.texts)
        keys, counts = np.unique(((cell * len(self.bounds) + fold) * m + codes)[known], return_counts=True)
        keys, counts = np.concatenate([self._keys, keys]), np.concatenate([self._counts, counts])
        self._keys, place = np.unique(keys, return_inverse=True)
        self._counts = np.bincount(place, counts, len(self._keys)).astype(np.int64)
        self._sentences += table.n_sentences

    def classes(self) -> tuple[WordClasses, CrossedClasses]:
        """Return the classes of the whole text, and those of its folds for training."""
        m, cells = len(self.texts), _Cells(self._cells.names)
        label, of_fold = self._keys % m, self._keys // m
        cell, fold = of_fold // len(self.bounds), of_fold % len(self.bounds)

        def learned(chosen: npt.NDArray[np.bool_]) -> WordClasses:
            pairs, place = np.unique((cell * m + label)[chosen], return_inverse=True)
            count = np.bincount(place, self._counts[chosen], len(pairs)).astype(np.int64)
            return cells.classes(*cells.learned(pairs // m, pairs % m, count, self.texts), self.source)

        folds = tuple(learned(fold != number) for number in range(len(self.bounds) - 1))
        return learned(np.ones(len(self._keys), dtype=bool)), CrossedClasses(self.bounds, folds)


def _pairs(numbers: Codes, codes: Codes, m: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the pairs of words and labels that occur, and how often."""
    known = codes >= 0
    pairs, count = np.unique(numbers[known].astype(np.int64) * max(m, 1) + codes[known], return_counts=True)
    return pairs // max(m, 1), pairs % max(m, 1), count


class _Cells:
    """Distinct words, in lower case, and their endings."""

    def __init__(self, cells: list[str]) -> None:
        self.words, self.endings = AttributeVocabulary(), AttributeVocabulary()
        self.word, self.ending = _numbers_of(cells, self.words, self.endings, grow=True)

    @classmethod
    def of(cls, table: TokenTable, source: str) -> tuple[Self, Codes]:
        """Return those of a text, and the number of each token's word."""
        numbers, (text, ends) = numbered(table, source)
        return cls(decoded(text, ends)), numbers

    def classes(self, word_classes: Codes, ending_classes: Codes, names: tuple[str, ...], source: str) -> WordClasses:
        """Return what :meth:`learned` has found, without words and endings that have no class."""
        has_word, has_ending = word_classes >= 0, ending_classes >= 0
        words, endings = self.words.only(has_word), self.endings.only(has_ending)
        return WordClasses(words, endings, word_classes[has_word], ending_classes[has_ending], names, source)

    def learned(
        self, cell: IntArray, label: IntArray, count: IntArray, texts: Sequence[str]
    ) -> tuple[Codes, Codes, tuple[str, ...]]:
        """Return the classes of words and endings, -1 for none, and the names of classes; the first is NO_CLASS."""
        m = max(len(texts), 1)
        by_word = _counts(self.word[cell], label, count, (len(self.words), m))
        total = by_word.sum(axis=1)
        rare = total[self.word[cell]] <= RARE
        at = self.ending[cell[rare]]
        there = at >= 0
        width = np.broadcast_to(label[rare, None], at.shape), np.broadcast_to(count[rare, None], at.shape)
        by_ending = _counts(at[there], width[0][there], width[1][there], (len(self.endings), m))

        names: dict[str, int] = {NO_CLASS: 0}
        sets: dict[bytes, int] = {}
        often = by_word.data >= SHARE * np.repeat(total, np.diff(by_word.indptr))
        labels = by_word.indices[often].astype(np.int32)
        bounds = np.concatenate([[0], np.cumsum(often)])[by_word.indptr].tolist()
        word_classes = np.full(len(self.words), -1, dtype=np.int32)
        for i in np.flatnonzero(total).tolist():
            members = labels[bounds[i] : bounds[i + 1]]
            key = members.tobytes()
            if key not in sets:
                sets[key] = names.setdefault(" ".join(texts[k] for k in members), len(names))
            word_classes[i] = sets[key]

        ending_classes = np.full(len(self.endings), -1, dtype=np.int32)
        seen = np.flatnonzero(by_ending.sum(axis=1) >= RARE)
        # Sort each row by count, ties by descending label: the last of a row is its most frequent label.
        row = np.repeat(np.arange(len(self.endings)), np.diff(by_ending.indptr))
        order = np.lexsort((-by_ending.indices, by_ending.data, row))
        most_frequent = by_ending.indices[order][by_ending.indptr[seen + 1] - 1]
        number_of = {k: names.setdefault(NO_CLASS + texts[k], len(names)) for k in np.unique(most_frequent).tolist()}
        ending_classes[seen] = [number_of[k] for k in most_frequent.tolist()]
        return word_classes, ending_classes, tuple(names)


def _counts(row: IntArray | Codes, column: IntArray, count: IntArray, shape: tuple[int, int]) -> Any:
    found = sp.csr_array(sp.coo_array((count, (row, column)), shape=shape))
    found.sum_duplicates()
    return found


def _numbers_of(
    cells: list[str], words: AttributeVocabulary, endings: AttributeVocabulary, *, grow: bool
) -> tuple[Codes, Codes]:
    """Return numbers or -1: of words in lower case, shape ``(n,)``; of endings, longest first, ``(n, ENDINGS + 1)``."""
    lower = [cell.lower() for cell in cells]
    kinds = ["X" if cell[:1].isupper() else "x" for cell in cells]
    ends = np.full((len(cells), ENDINGS + 1), -1, dtype=np.int32)
    for place, size in enumerate(range(ENDINGS, -1, -1)):
        chosen = [i for i, cell in enumerate(lower) if len(cell) > size]
        ends[chosen, place] = numbers_of(
            endings, [kinds[i] + lower[i][len(lower[i]) - size :] for i in chosen], grow=grow
        )
    return numbers_of(words, lower, grow=grow), ends


def _looked_up(word: Codes, ending: Codes, word_classes: Codes, ending_classes: Codes) -> Codes:
    """Return the class of each word: its own, else that of its longest ending with a class, else NO_CLASS."""
    found = np.zeros(len(word), dtype=np.int32)
    # Index -1 selects the appended entry.
    by_ending, by_word = np.append(ending_classes, np.int32(-1)), np.append(word_classes, np.int32(-1))
    for classes in (*by_ending[ending].T[::-1], by_word[word]):
        found = np.where(classes >= 0, classes, found)
    return found.astype(np.int32, copy=False)


def _checked(table: TokenTable, labels: Coded) -> tuple[Codes, Sequence[str]]:
    codes, texts = np.asarray(labels[0]), labels[1]
    if codes.shape != (table.n_tokens,) or codes.dtype.kind not in "iu":
        raise ValueError(f"labels must be whole numbers of shape ({table.n_tokens},), got {codes.dtype} {codes.shape}")
    wrong = np.flatnonzero((codes < -1) | (codes >= len(texts)))
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(f"{table.where(at)}: label {codes[at]} of {len(texts)}; give -1 if it is unknown")
    return codes.astype(np.int32), texts
