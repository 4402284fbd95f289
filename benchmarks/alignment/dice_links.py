"""Features of the links of a sentence pair from word counts alone: Dice coefficients, positions and spelling."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_bipartite_matching

from maxmargin.tasks.alignment import Bitext, Reference


class Links:
    """Features of all links of a sentence pair, from the counts of a bitext."""

    def __init__(self, pairs: Bitext) -> None:
        self.counts = Counts(pairs)
        self.frequent = list(self.counts.english)[:5], list(self.counts.french)[:5]

    def __call__(self, english: list[str], french: list[str]) -> np.ndarray:
        """Shape ``(n_english, n_french, n_features)``."""
        dice = self.counts.dice(english, french)
        around = np.pad(dice, 1)
        n, m = dice.shape
        across = np.abs((np.arange(n)[:, None] + 0.5) / n - (np.arange(m)[None, :] + 0.5) / m)
        columns = [
            dice,
            np.sqrt(dice),
            np.sqrt(around[2:, 2:]),  # the next words
            np.sqrt(around[:-2, :-2]),  # the words before
            (dice >= dice.max(axis=1, keepdims=True)) & (dice > 0),
            (dice >= dice.max(axis=0, keepdims=True)) & (dice > 0),
            across,
            np.sqrt(across),
            across**2,
            _common_prefix(english, french),
            np.array([[a == b for b in french] for a in english]),
            np.ones((n, m)),
        ]
        columns += [np.repeat([[word == known] for word in english], m, axis=1) for known in self.frequent[0]]
        columns += [np.repeat([[word == known for word in french]], n, axis=0) for known in self.frequent[1]]
        return np.stack(columns, axis=2).astype(np.float64)


def _common_prefix(english: list[str], french: list[str]) -> np.ndarray:
    """Length of the common prefix over the length of the longer word."""
    width = max(map(len, [*english, *french]))
    left, right = (
        np.array([list(word.ljust(width, fill)) for word in words]) for words, fill in ((english, "\0"), (french, "\1"))
    )
    same = np.cumprod(left[:, None, :] == right[None, :, :], axis=2).sum(axis=2)
    longer = np.maximum(np.array([len(w) for w in english])[:, None], np.array([len(w) for w in french])[None, :])
    return same / longer


class Counts:
    """Case-sensitive counts of words and of word pairs in a bitext."""

    def __init__(self, pairs: Bitext) -> None:
        self.english, left = _incidence(pairs.source)
        self.french, right = _incidence(pairs.target)
        self.together = sp.csr_matrix(left.T @ right)
        self.left = np.asarray(left.sum(axis=0)).ravel()
        self.right = np.asarray(right.sum(axis=0)).ravel()

    def dice(self, english: list[str], french: list[str]) -> np.ndarray:
        """``2 c(e, f) / (c(e) + c(f))`` for all pairs of words, shape ``(n_english, n_french)``; 0 for unseen words."""
        i, j = (
            np.array([known.get(word, -1) for word in words], dtype=np.int64)
            for known, words in ((self.english, english), (self.french, french))
        )
        both = self.together[np.maximum(i, 0)][:, np.maximum(j, 0)].toarray()
        seen = (i >= 0)[:, None] & (j >= 0)[None, :]
        return np.where(seen, 2 * both / (self.left[np.maximum(i, 0)][:, None] + self.right[np.maximum(j, 0)]), 0.0)


def _incidence(sentences: list[list[str]]) -> tuple[dict[str, int], sp.csr_matrix]:
    """The index of each word, the most frequent first, and the 0/1 matrix of sentences and words."""
    ordered = Counter(chain.from_iterable(sentences)).most_common()
    known = {word: number for number, (word, _) in enumerate(ordered)}
    words = np.array([known[word] for word in chain.from_iterable(sentences)], dtype=np.int64)
    starts = np.cumsum([0, *map(len, sentences)])
    counts = sp.csr_matrix((np.ones(len(words)), words, starts), shape=(len(sentences), len(known)))
    return known, (counts > 0).astype(np.float64)


def matching(reference: Reference, shape: tuple[int, int]) -> np.ndarray:
    """A maximum matching of the sure links of a pair with so many words a side, shape ``(k, 2)``."""
    sure = reference.sure
    graph = sp.csr_matrix((np.ones(len(sure)), (sure[:, 0], sure[:, 1])), shape=shape)
    partner = maximum_bipartite_matching(graph, perm_type="column")
    left = np.flatnonzero(partner >= 0)
    return np.stack([left, partner[left]], axis=1).astype(np.int64)
