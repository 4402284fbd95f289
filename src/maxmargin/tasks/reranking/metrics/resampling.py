"""Bootstrap intervals and paired comparisons of corpus scores, in the units that users read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.structures.base import FloatArray
from maxmargin.tasks.common import resampling
from maxmargin.tasks.common.resampling import Interval, Rate
from maxmargin.tasks.reranking.metrics.base import Metric


@dataclass(frozen=True)
class ScoreComparison:
    """The scores of two systems on the same sentences.

    Attributes:
        difference: score of the second system minus score of the first, as users read them.
        low: lower end of the bootstrap interval of the difference.
        high: upper end.
        level: share of the resamples inside the interval; one minus it is the significance level.
        p_value: that of approximate randomization, which decides.
        bootstrap_p_value: that of the paired bootstrap, which takes small differences for significant more often
            (Riezler and Maxwell 2005).
        lower_is_better: whether a negative difference is an improvement.
    """

    difference: float
    low: float
    high: float
    level: float
    p_value: float
    bootstrap_p_value: float
    lower_is_better: bool

    @property
    def significant(self) -> bool:
        """Whether the difference is significant."""
        return self.p_value <= 1.0 - self.level

    @property
    def verdict(self) -> str:
        """The result in words, for the second system against the first."""
        if not self.significant:
            return f"no significant difference (p = {self.p_value:.4f})"
        better = (self.difference < 0.0) == self.lower_is_better
        return f"significantly {'better' if better else 'worse'} (p = {self.p_value:.4f})"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "difference": self.difference,
            "interval": [self.low, self.high],
            "p_value": self.p_value,
            "bootstrap_p_value": self.bootstrap_p_value,
            "significant": self.significant,
            "verdict": self.verdict,
        }


def score(metric: Metric, statistics: FloatArray) -> float:
    """Return the corpus score that users read, from the statistics of each sentence."""
    return metric.shown(float(metric.quality(statistics.sum(axis=0))))


def score_interval(
    metric: Metric, statistics: FloatArray, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Return the percentile bootstrap interval of a corpus score.

    Args:
        metric: the metric.
        statistics: those of each sentence, shape ``(sentences, metric.n_statistics)``.
        level: share of the resamples inside the interval.
        resamples: number of resampled corpora.
        seed: random seed.
    """
    return resampling.interval(statistics, _scores(metric), level=level, resamples=resamples, seed=seed)


def compare_scores(
    metric: Metric,
    first: FloatArray,
    second: FloatArray,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    trials: int = 10000,
    seed: int = 0,
) -> ScoreComparison:
    """Compare two systems on the same sentences by paired bootstrap and by approximate randomization.

    Args:
        metric: the metric.
        first: statistics of each sentence of one system, shape ``(sentences, metric.n_statistics)``.
        second: those of the other system.
        level: share of the resamples inside the interval.
        resamples: number of resampled corpora.
        trials: number of trials of the randomization.
        seed: random seed.
    """
    rate = _scores(metric)
    found = resampling.compare(first, second, rate, level=level, resamples=resamples, seed=seed)
    p_value = resampling.randomization_test(first, second, rate, trials=trials, seed=seed)
    ends = found.difference, found.low, found.high
    return ScoreComparison(*ends, level, p_value, found.p_value, metric.lower_is_better)


def _scores(metric: Metric) -> Rate:
    def rate(sums: FloatArray) -> FloatArray:
        quality = np.asarray(metric.quality(sums))
        return np.array([metric.shown(one) for one in quality.ravel().tolist()]).reshape(quality.shape)

    return rate
