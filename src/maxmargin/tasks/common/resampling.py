"""Bootstrap intervals and paired comparisons of rates, by resampling the sentences of a corpus (Efron).

A rate must depend on each sentence only through two integers, ``total`` and ``hits``, by their sums over the corpus, as
error rates, accuracies and F1 do. A resample is then one multinomial draw over the distinct pairs, so a million
sentences cost little more than a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.structures.base import FloatArray, IntArray

Rate = Callable[[FloatArray, FloatArray], FloatArray]
"""Maps sums of totals and of hits, of any shape, to rates of the same shape."""


@dataclass(frozen=True)
class Interval:
    """A bootstrap interval of a rate.

    Attributes:
        low: lower end.
        high: upper end.
        level: share of the resamples inside the interval.
    """

    low: float
    high: float
    level: float


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same sentences.

    Attributes:
        difference: rate of the second system minus rate of the first.
        low: lower end of the bootstrap interval of the difference.
        high: upper end.
        level: share of the resamples inside the interval.
        p_value: twice the smaller of the shares of resamples in which the second is at least as good, or as bad, as the
            first; at most 1.
    """

    difference: float
    low: float
    high: float
    level: float
    p_value: float

    def as_dict(self, difference: str = "difference") -> dict[str, Any]:
        """Return plain values for JSON; ``difference`` names the difference."""
        return {difference: self.difference, "interval": [self.low, self.high], "p_value": self.p_value}


def interval(counts: IntArray, rate: Rate, *, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> Interval:
    """Return the percentile bootstrap interval of a rate.

    Args:
        counts: total and hits of each sentence, shape ``(sentences, 2)``.
        rate: computes the rate from the sums.
        level: share of the resamples inside the interval.
        resamples: number of resampled corpora.
        seed: random seed.
    """
    _check(level)
    rates = _resampled([counts], rate, resamples, seed)[:, 0]
    low, high = np.quantile(rates, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(low), float(high), level)


def mean_interval(
    counts: Sequence[IntArray], rate: Rate, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Return the percentile bootstrap interval of the mean of several rates over the same sentences.

    Args:
        counts: for each rate the total and hits of each sentence, shape ``(sentences, 2)``.
        rate: computes a rate from the sums; rates that are not numbers (NaN) are left out of the mean.
        level: share of the resamples inside the interval.
        resamples: number of resampled corpora.
        seed: random seed.
    """
    _check(level)
    rates = _resampled(counts, rate, resamples, seed)
    defined = np.isfinite(rates)
    means = np.where(defined, rates, 0.0).sum(axis=1) / np.maximum(defined.sum(axis=1), 1)
    means = means[defined.any(axis=1)]
    if not len(means):
        return Interval(float("nan"), float("nan"), level)
    low, high = np.quantile(means, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(low), float(high), level)


def compare(
    first: IntArray, second: IntArray, rate: Rate, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Comparison:
    """Return the paired bootstrap comparison: both systems are scored on the same resampled sentences.

    Args:
        first: total and hits of each sentence, shape ``(sentences, 2)``.
        second: the same for the other system.
        rate: computes the rate from the sums.
        level: share of the resamples inside the interval.
        resamples: number of resampled corpora.
        seed: random seed.
    """
    if len(first) != len(second):
        raise ValueError(f"the first system has {len(first)} sentences and the second {len(second)}; give the same")
    _check(level)
    rates = _resampled([first, second], rate, resamples, seed)
    differences = rates[:, 1] - rates[:, 0]
    low, high = np.quantile(differences, [0.5 - level / 2, 0.5 + level / 2])
    # The corpus itself counts as one resample, so no p value is zero.
    lower, higher = ((differences <= 0).sum() + 1, (differences >= 0).sum() + 1)
    p_value = min(1.0, 2.0 * float(min(lower, higher)) / (resamples + 1))
    whole = [float(rate(*counts.sum(axis=0, dtype=np.float64))) for counts in (first, second)]
    return Comparison(whole[1] - whole[0], float(low), float(high), level, p_value)


def _check(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level}")


def _resampled(systems: Sequence[IntArray], rate: Rate, resamples: int, seed: int) -> FloatArray:
    """Return the rate of each system on each resample, shape ``(resamples, systems)``."""
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, got {resamples}")
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
