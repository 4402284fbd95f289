"""Counts of word n-grams as sparse features: only n-grams that tell hypotheses of some list apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._sparse import sp
from maxmargin.encoders.base import State
from maxmargin.structures.base import IntArray
from maxmargin.tasks import _kernels

BEGIN, END = "<s>", "</s>"


class NgramFeatures:
    """The n-grams of orders 1 to ``order`` that were learned; a column of counts for each.

    Sentences begin with ``<s>`` and end with ``</s>``. Memory is proportional to the n-grams that occur.
    """

    def __init__(self, order: int, words: Any, prefixes: npt.ArrayLike, last: npt.ArrayLike, column: IntArray) -> None:
        self.order, self._words = order, words
        self._grams = _kernels.NgramTable.from_pairs(
            np.ascontiguousarray(prefixes, dtype=np.int32), np.ascontiguousarray(last, dtype=np.int32)
        )
        self._column = column  # of each n-gram of the table; -1 for those that are only the beginning of others
        self.n_features = int(column.max(initial=-1)) + 1

    @classmethod
    def learn(cls, texts: Sequence[str], offsets: IntArray, order: int, min_lists: int) -> tuple[NgramFeatures, Any]:
        """Return the features of training lists, and their counts, CSR of shape ``(n_hypotheses, n_features)``.

        Args:
            texts: the hypotheses.
            offsets: where each list begins.
            order: the longest n-grams.
            min_lists: the least number of lists in which an n-gram must tell hypotheses apart.
        """
        learner = NgramLearner(order)
        found = learner.add(texts, offsets)
        fitted, number = learner.features(min_lists)
        return fitted, _chosen(*found, number, fitted.n_features)

    def transform(self, texts: Sequence[str]) -> Any:
        """Return the counts of known n-grams, CSR of shape ``(len(texts), n_features)``."""
        starts, numbers = _framed(texts, self._words, grow=False)
        rows, columns, counts = self._grams.count(starts, numbers, self.order, False)
        return _chosen(rows, columns, counts, self._column, self.n_features)

    def names(self) -> list[str]:
        """Return a readable name for every column: the words of its n-gram."""
        prefixes, last = self._grams.pairs()
        texts: list[str] = []
        for prefix, word in zip(prefixes.tolist(), last.tolist(), strict=True):
            text = self._words.text(word).decode("utf-8", "replace")
            texts.append(text if prefix < 0 else f"{texts[prefix]} {text}")
        return [text for text, column in zip(texts, self._column.tolist(), strict=True) if column >= 0]

    def state(self) -> State:
        """Return arrays for a model file."""
        text, ends = self._words.strings()
        prefixes, last = self._grams.pairs()
        chosen = (self._column >= 0).astype(np.uint8)
        arrays = {"words": text, "word_ends": ends, "prefixes": prefixes, "last": last, "chosen": chosen}
        return {"order": self.order, **arrays}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the features of a model file; ValueError, KeyError or TypeError if the arrays make no sense."""
        chosen = np.asarray(state["chosen"], dtype=bool)
        prefixes, last = state["prefixes"], state["last"]
        words = _kernels.StringTable.from_strings(state["words"], state["word_ends"])
        if not len(chosen) == len(prefixes) == len(last) or (len(last) and int(last.max()) >= len(words)):
            raise ValueError("its n-grams do not fit its words")
        return cls(
            _checks.integer("order", state["order"], least=1),
            words,
            prefixes,
            last,
            np.where(chosen, np.cumsum(chosen) - 1, -1),
        )

    def __getstate__(self) -> State:
        return self.state()

    def __setstate__(self, state: State) -> None:
        self.__dict__.update(self.from_state(state).__dict__)


class NgramLearner:
    """Learns n-grams from lists that come in blocks: the same, in the same order, as from all at once.

    Args:
        order: the longest n-grams.
    """

    def __init__(self, order: int) -> None:
        self.order, self._words, self._grams = order, _kernels.StringTable(), _kernels.NgramTable()
        self._lists = np.zeros(0, dtype=np.int64)

    def add(self, texts: Sequence[str], offsets: IntArray) -> tuple[Any, Any, Any]:
        """Add lists; return the n-grams of their hypotheses as rows, columns and counts."""
        starts, numbers = _framed(texts, self._words, grow=True)
        rows, columns, counts = self._grams.count(starts, numbers, self.order, True)
        lists = np.empty(len(self._grams), dtype=np.int32)
        _kernels.varying_lists(offsets, rows, columns, counts, lists)
        total = lists.astype(np.int64)
        total[: len(self._lists)] += self._lists
        self._lists = total
        return rows, columns, counts

    def features(self, min_lists: int) -> tuple[NgramFeatures, IntArray]:
        """The n-grams that tell hypotheses apart in so many lists, and the column of each n-gram that was met."""
        chosen = self._lists >= min_lists
        prefixes, last = self._grams.pairs()
        needed = chosen.copy()
        beginnings = prefixes[chosen]
        while (beginnings := beginnings[beginnings >= 0]).size:  # of chosen n-grams, a word shorter each time
            needed[beginnings] = True
            beginnings = prefixes[beginnings]
        place = np.cumsum(needed) - 1
        kept_words = np.zeros(len(self._words), dtype=bool)
        kept_words[last[needed]] = True
        word_place = np.cumsum(kept_words) - 1
        kept_prefixes = np.where(prefixes[needed] >= 0, place[prefixes[needed]], -1)
        number = np.where(chosen, np.cumsum(chosen) - 1, -1)
        words = self._words.only(kept_words)
        return NgramFeatures(self.order, words, kept_prefixes, word_place[last[needed]], number[needed]), number


def _framed(texts: Sequence[str], words: Any, *, grow: bool) -> tuple[IntArray, npt.NDArray[np.int32]]:
    """The words of each text between the marks of its start and end."""
    (begin, end), _ = _kernels.words_of_texts(words, [f"{BEGIN} {END}"], False, grow)
    numbers, starts = _kernels.words_of_texts(words, texts, False, grow)
    at = starts + 2 * np.arange(len(starts))
    framed = np.empty(len(numbers) + 2 * len(texts), dtype=np.int32)
    framed[at[:-1]], framed[at[1:] - 1] = begin, end
    inside = np.ones(len(framed), dtype=bool)
    inside[at[:-1]] = inside[at[1:] - 1] = False
    framed[inside] = numbers
    return at, framed


def _chosen(rows: IntArray, columns: npt.NDArray[np.int32], counts: Any, number: IntArray, width: int) -> Any:
    """The chosen columns of counts, renumbered, as CSR."""
    found = number[columns]
    kept = found >= 0
    starts = np.concatenate([[0], np.cumsum(kept)])[rows]
    return sp.csr_array((counts[kept], found[kept].astype(np.int32), starts), shape=(len(rows) - 1, width))
