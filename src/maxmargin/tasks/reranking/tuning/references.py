"""Pseudo-references: which hypotheses of a list are good, what the others cost, and which good one they resemble.

References are rarely among the hypotheses, so the best hypotheses take their place (Liang et al. 2006; Wang and
Shawe-Taylor 2009). Hypotheses with the same text have the same quality and are good or bad together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin.structures._arrays import pieces
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.reranking.tuning.base import TuningLists

_TEXTS = 1 << 15
"""Hypotheses whose n-grams are counted at a time."""

ORDER = 4
"""The longest n-grams that closeness counts."""


def good_by_rank(lists: TuningLists, quality: FloatArray, levels: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the hypotheses with one of the ``levels`` highest qualities of their list.

    Equal texts have one quality and count once. Where a list has no more levels its lowest one is bad all the same,
    unless there is only one.
    """
    owner = np.repeat(np.arange(len(lists)), np.diff(lists.offsets))
    order = np.lexsort((-quality, owner))
    new = np.ones(len(order), dtype=bool)  # a list, or a level of it, begins
    new[1:] = (np.diff(owner[order]) > 0) | (np.diff(quality[order]) < 0.0)
    level = np.cumsum(new)
    first = level[lists.offsets[:-1]]
    level -= np.repeat(first, np.diff(lists.offsets))
    count = level[lists.offsets[1:] - 1] + 1
    allowed = np.minimum(levels, np.maximum(count - 1, 1))
    good = np.empty(len(order), dtype=bool)
    good[order] = level < np.repeat(allowed, np.diff(lists.offsets))
    return good


def good_by_margin(lists: TuningLists, quality: FloatArray, within: float) -> npt.NDArray[np.bool_]:
    """Return a mask of the hypotheses whose quality is at most ``within`` below the best of their list."""
    return costs_of(lists, quality) <= within


def costs_of(lists: TuningLists, quality: FloatArray) -> FloatArray:
    """Return by how much each hypothesis is worse than the best of its list, shape ``(n_hypotheses,)``."""
    best = np.maximum.reduceat(quality, lists.offsets[:-1])
    return np.repeat(best, np.diff(lists.offsets)) - quality


def corpus_quality(lists: TuningLists, chosen: IntArray) -> FloatArray:
    """Return what each hypothesis does to the corpus, in units of a sentence, shape ``(n_hypotheses,)``.

    That is the number of lists times the quality of the corpus in which the hypothesis takes the place of the chosen
    one of its list; only differences within a list mean something.

    Args:
        lists: the lists.
        chosen: rows of the hypotheses that make up the corpus, shape ``(n_lists,)``.
    """
    own = lists.statistics[chosen]
    swapped = lists.statistics + np.repeat(own.sum(axis=0) - own, np.diff(lists.offsets), axis=0)
    return len(lists) * lists.metric.quality(swapped)


def nearest_by_texts(texts: Sequence[str], offsets: IntArray, good: npt.NDArray[np.bool_]) -> IntArray:
    """Return for each hypothesis the good one of its list with the most n-grams in common, counted from 0 in the list.

    By the Dice coefficient of the n-grams of orders 1 to 4, with their counts; the first of equal ones.
    """
    nearest = np.empty(len(texts), dtype=np.int64)
    for some in pieces(np.diff(offsets), _TEXTS):
        first, last = offsets[some[0]], offsets[some[-1] + 1]
        words, starts = _kernels.words_of_texts(_kernels.StringTable(), texts[first:last], False)
        rows, columns, counts = _kernels.NgramTable().count(starts, words, ORDER, True)
        marks = np.ascontiguousarray(good[first:last]).view(np.uint8)
        bounds = offsets[some[0] : some[-1] + 2] - first
        _kernels.nearest_by_overlap(bounds, rows, columns, counts, marks, nearest[first:last], _threads.current())
    return nearest
