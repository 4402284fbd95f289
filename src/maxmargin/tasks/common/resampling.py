"""Intervals and comparisons of rates of a corpus, by resampling its sentences (Efron's bootstrap).

A rate here depends on a sentence only by two integers, ``total`` and ``hits``, whose sums over the corpus give it: such
are error rates, accuracies and F1. A resample is then one multinomial draw over the distinct pairs of them: a million
sentences cost little more than a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from maxmargin.structures.base import FloatArray, IntArray

Rate = Callable[[FloatArray, FloatArray], FloatArray]
"""Sums of totals and of hits, any shape, to rates of the same shape."""


@dataclass(frozen=True)
class Interval:
    """A bootstrap interval of a rate.

    Attributes:
        low: lower end.
        high: upper end.
        level: the share of resamples that lie inside.
    """

    low: float
    high: float
    level: float


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same sentences.

    Attributes:
        difference: rate of the second less rate of the first; below 0 the second has the lower one, which is better of
            error rates and worse of accuracies.
        low: lower end of the bootstrap interval of the difference.
        high: upper end.
        level: the share of resamples that lie inside.
        p_value: twice the smaller of the shares of resamples in which the second is at least as good, or as bad, as the
            first; at most 1.
    """

    difference: float
    low: float
    high: float
    level: float
    p_value: float


def interval(counts: IntArray, rate: Rate, *, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> Interval:
    """Where a rate would lie with other sentences of the same kind: percentiles of resampled corpora.

    Args:
        counts: total and hits of each sentence, shape ``(sentences, 2)``.
        rate: the rate of their sums.
        level: the share of resamples that lie inside.
        resamples: how many corpora are drawn.
        seed: of the draws.
    """
    _check(level)
    rates = _resampled([counts], rate, resamples, seed)[:, 0]
    low, high = np.quantile(rates, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(low), float(high), level)


def compare(
    first: IntArray, second: IntArray, rate: Rate, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Comparison:
    """The paired bootstrap: both systems are scored on the same resampled sentences.

    Args:
        first: total and hits of each sentence, shape ``(sentences, 2)``.
        second: the same of the other system.
        rate: the rate of their sums.
        level: the share of resamples that lie inside the interval.
        resamples: how many corpora are drawn.
        seed: of the draws.
    """
    if len(first) != len(second):
        raise ValueError(f"the first has {len(first)} sentences and the second {len(second)}; they must be the same")
    _check(level)
    rates = _resampled([first, second], rate, resamples, seed)
    differences = rates[:, 1] - rates[:, 0]
    low, high = np.quantile(differences, [0.5 - level / 2, 0.5 + level / 2])
    # The corpus itself counts as one resample: no p value is zero.
    lower, higher = ((differences <= 0).sum() + 1, (differences >= 0).sum() + 1)
    p_value = min(1.0, 2.0 * float(min(lower, higher)) / (resamples + 1))
    whole = [float(rate(*counts.sum(axis=0, dtype=np.float64))) for counts in (first, second)]
    return Comparison(whole[1] - whole[0], float(low), float(high), level, p_value)


def _check(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level}; 0.95 is usual")


def _resampled(systems: Sequence[IntArray], rate: Rate, resamples: int, seed: int) -> FloatArray:
    """The rate of each system on resampled sentences, shape ``(resamples, systems)``."""
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, got {resamples}; 2000 is usual")
    n = len(systems[0])
    rates = np.empty((resamples, len(systems)))
    if not n:
        rates[:] = rate(np.zeros(1), np.zeros(1))
        return rates
    kinds, times = np.unique(np.concatenate(systems, axis=1), axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    share = times / n
    block = max(1, (1 << 22) // len(kinds))
    for begin in range(0, resamples, block):
        drawn = rng.multinomial(n, share, size=min(block, resamples - begin))
        totals = (drawn @ kinds).astype(np.float64)
        for system in range(len(systems)):
            rates[begin : begin + len(drawn), system] = rate(totals[:, 2 * system], totals[:, 2 * system + 1])
    return rates
