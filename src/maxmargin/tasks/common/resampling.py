"""Bootstrap intervals and paired comparisons of rates, by resampling the sentences of a corpus (Efron).

A rate must depend on each sentence only through a few statistics, by their sums over the corpus, as error rates,
accuracies, F1 and BLEU do. A resample is then one multinomial draw over the distinct rows of statistics, so a million
sentences with few distinct rows cost little more than a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _memory
from maxmargin._messages import shown
from maxmargin.structures.base import FloatArray

Statistics = npt.NDArray[Any]
"""Statistics of each sentence, integers or floats, shape ``(sentences, k)``."""

Rate = Callable[[FloatArray], FloatArray]
"""Maps sums of statistics, shape ``(..., k)``, to rates, shape ``(...)``."""

_BLOCK = 1 << 22  # entries of the draws that are in memory at once


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


def interval(
    statistics: Statistics, rate: Rate, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Return the percentile bootstrap interval of a rate.

    Args:
        statistics: those of each sentence, shape ``(sentences, k)``.
        rate: computes the rate from the sums.
        level: share of the resamples inside the interval.
        resamples: number of resampled corpora.
        seed: random seed.
    """
    _check(level)
    rates = _resampled([statistics], rate, resamples, seed)[:, 0]
    low, high = np.quantile(rates, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(low), float(high), level)


def mean_interval(
    statistics: Sequence[Statistics], rate: Rate, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Return the percentile bootstrap interval of the mean of several rates over the same sentences.

    Args:
        statistics: for each rate the statistics of each sentence, shape ``(sentences, k)``.
        rate: computes a rate from the sums; rates that are not numbers (NaN) are left out of the mean.
        level: share of the resamples inside the interval.
        resamples: number of resampled corpora.
        seed: random seed.
    """
    _check(level)
    rates = _resampled(statistics, rate, resamples, seed)
    defined = np.isfinite(rates)
    means = np.where(defined, rates, 0.0).sum(axis=1) / np.maximum(defined.sum(axis=1), 1)
    means = means[defined.any(axis=1)]
    if not len(means):
        return Interval(float("nan"), float("nan"), level)
    low, high = np.quantile(means, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(low), float(high), level)


def compare(
    first: Statistics, second: Statistics, rate: Rate, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Comparison:
    """Return the paired bootstrap comparison: both systems are scored on the same resampled sentences.

    Args:
        first: statistics of each sentence, shape ``(sentences, k)``.
        second: the same for the other system.
        rate: computes the rate from the sums.
        level: share of the resamples inside the interval.
        resamples: number of resampled corpora.
        seed: random seed.
    """
    _check_pair(first, second)
    _check(level)
    rates = _resampled([first, second], rate, resamples, seed)
    differences = rates[:, 1] - rates[:, 0]
    low, high = np.quantile(differences, [0.5 - level / 2, 0.5 + level / 2])
    # The corpus itself counts as one resample, so no p value is zero.
    lower, higher = ((differences <= 0).sum() + 1, (differences >= 0).sum() + 1)
    p_value = min(1.0, 2.0 * float(min(lower, higher)) / (resamples + 1))
    return Comparison(_difference(first, second, rate), float(low), float(high), level, p_value)


def randomization_test(
    first: Statistics, second: Statistics, rate: Rate, *, trials: int = 10000, seed: int = 0
) -> float:
    """Return the p value of approximate randomization, for the hypothesis that the two systems are alike.

    In each trial the two systems' outputs of each sentence are swapped or not, by the toss of a coin; the p value is
    the share of trials, the corpus itself among them, in which the rates differ by at least as much as they do (Riezler
    and Maxwell, *On some pitfalls in automatic evaluation and significance testing for MT*, 2005).

    Args:
        first: statistics of each sentence, shape ``(sentences, k)``.
        second: the same for the other system.
        rate: computes the rate from the sums.
        trials: number of trials.
        seed: random seed.
    """
    _check_pair(first, second)
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}")
    observed = abs(_difference(first, second, rate))
    totals = [one.sum(axis=0, dtype=np.float64) for one in (first, second)]
    moved = np.asarray(second, dtype=np.float64) - first
    kinds, times = np.unique(moved[moved.any(axis=1)], axis=0, return_counts=True)
    if not len(kinds):
        return 1.0
    rng = np.random.default_rng(seed)
    as_far = 0
    for size in _blocks(trials, len(kinds)):
        swapped = rng.binomial(times, 0.5, size=(size, len(kinds))).astype(np.float64) @ kinds
        differences = rate(totals[1] - swapped) - rate(totals[0] + swapped)
        # Sums of floats depend on the order of the sentences, by their rounding alone.
        as_far += int((np.abs(differences) >= observed * (1.0 - 1e-12)).sum())
    return (as_far + 1) / (trials + 1)


def _check(level: float) -> None:
    if not isinstance(level, (int, float, np.floating)) or not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {shown(level)}")


def _check_pair(first: Statistics, second: Statistics) -> None:
    if len(first) != len(second):
        raise ValueError(f"the first system has {len(first)} sentences and the second {len(second)}; give the same")


def _difference(first: Statistics, second: Statistics, rate: Rate) -> float:
    """Return the rate of the second system minus that of the first, on the corpus itself."""
    whole = [float(rate(one.sum(axis=0, dtype=np.float64))) for one in (first, second)]
    return whole[1] - whole[0]


def _blocks(draws: int, kinds: int) -> Iterator[int]:
    """Yield numbers of draws that are in memory at once."""
    size = max(1, _BLOCK // kinds)
    for begin in range(0, draws, size):
        yield min(size, draws - begin)


def _resampled(systems: Sequence[Statistics], rate: Rate, resamples: int, seed: int) -> FloatArray:
    """Return the rate of each system on each resample, shape ``(resamples, systems)``."""
    resamples, seed = _checks.integer("resamples", resamples, least=1), _checks.integer("seed", seed, least=0)
    _memory.require(8.0 * resamples * len(systems), f"{resamples} resamples", "take fewer")
    if not all(isinstance(one, np.ndarray) and one.ndim == 2 and one.dtype.kind in "iuf" for one in systems):
        raise ValueError("statistics must be arrays of numbers, a row per sentence")
    n, k = systems[0].shape
    rates = np.empty((resamples, len(systems)))
    if not n:
        rates[:] = rate(np.zeros((1, k)))
        return rates
    kinds, times = np.unique(np.concatenate(systems, axis=1), axis=0, return_counts=True)
    values = kinds.astype(np.float64)
    rng = np.random.default_rng(seed)
    share = times / n
    begin = 0
    for size in _blocks(resamples, len(kinds)):
        drawn = rng.multinomial(n, share, size=size).astype(np.float64)
        sums = (drawn @ values).reshape(size, len(systems), k)
        rates[begin : begin + size] = rate(sums)
        begin += size
    return rates
