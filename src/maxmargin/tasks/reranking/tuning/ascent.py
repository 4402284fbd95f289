"""Ascent of corpus quality along lines of weights, for metrics and outputs that kernels do not know.

The loop of :class:`~maxmargin.tasks.reranking.tuning.mert.Mert` over any source of lines: lists with a metric of the
user's own, lattices. Between two changes of the best outputs the corpus has constant statistics.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.reranking.metrics.base import Metric
from maxmargin.tasks.reranking.tuning.base import TuningLists


class Runs(NamedTuple):
    """The best outputs along a line, example after example, each from some gamma on to the next one of its example.

    Attributes:
        offsets: example ``i`` has the runs ``offsets[i]:offsets[i + 1]``, at least one.
        begin: where each run begins, rising within an example; the first at -inf.
        statistics: those of its output, shape ``(n_runs, k)``.
    """

    offsets: IntArray
    begin: FloatArray
    statistics: FloatArray


class Lines(Protocol):
    """A source of the best outputs along lines of weights."""

    metric: Metric

    def runs(self, weights: FloatArray, direction: FloatArray) -> Runs:
        """The best outputs of all examples along ``weights + gamma direction``."""

    def quality(self, weights: FloatArray) -> float:
        """The quality of the corpus that the weights choose."""


class ListLines:
    """Lists as a source of lines."""

    def __init__(self, lists: TuningLists) -> None:
        self.lists, self.metric = lists, lists.metric

    def runs(self, weights: FloatArray, direction: FloatArray) -> Runs:
        """The best hypotheses of all lists along a line."""
        scores, slopes = self.lists.scores(weights), self.lists.scores(direction)
        offsets, begin, rows = _kernels.line_envelopes(self.lists.offsets, scores, slopes, _threads.current())
        return Runs(offsets, begin, self.lists.statistics[rows])

    def quality(self, weights: FloatArray) -> float:
        """The quality of the corpus that the weights choose."""
        return self.lists.corpus_quality(self.lists.choose(weights))


def cut(runs: Runs, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Where statistics of the corpus change between two gammas, rising, and their sums before and after each change.

    Shapes ``(n,)`` and ``(n + 1, k)``.
    """
    last = np.ones(len(runs.begin), dtype=bool)
    last[:-1] = runs.begin[1:] > low
    last[runs.offsets[1:] - 1] = True
    first = (runs.begin <= low) & last
    sums = runs.statistics[first].sum(axis=0)
    at = np.flatnonzero((runs.begin > low) & (runs.begin < high))
    changes = runs.statistics[at] - runs.statistics[at - 1]
    real = changes.any(axis=1)
    at, changes = at[real], changes[real]
    order = np.argsort(runs.begin[at], kind="stable")
    return runs.begin[at[order]], np.cumsum(np.concatenate([sums[None], changes[order]]), axis=0)


def search(
    lines: Lines, weights: FloatArray, direction: FloatArray, signs: npt.NDArray[np.int8]
) -> tuple[float, float, float]:
    """The best gamma along a line that keeps all signs, the quality there, and the quality at ``gamma = 0``."""
    low, high, reach = _kernels.gamma_range(weights, direction, signs)
    changes, sums = cut(lines.runs(weights, direction), low, high)
    values = np.ascontiguousarray(lines.metric.quality(sums), dtype=np.float64)
    gamma, value, here = _kernels.best_interval(changes, values, low, high, reach)
    return float(gamma), float(value), float(here)


def ascend(
    lines: Lines,
    start: FloatArray,
    directions: FloatArray,
    signs: npt.NDArray[np.int8],
    *,
    max_sweeps: int,
    min_gain: float,
) -> tuple[FloatArray, float, int]:
    """Weights at which no direction gains, or those after ``max_sweeps``, their quality, and the searches it took."""
    weights, searches, idle = start.copy(), 0, 0
    for _ in range(max_sweeps):
        for direction in directions:
            if idle == len(directions):
                break
            gamma, value, here = search(lines, weights, direction, signs)
            searches += 1
            idle += 1
            if value > here + min_gain and gamma != 0.0:
                weights = weights + gamma * direction
                weights[signs * weights < 0] = 0.0
                idle = 0
    before, after = lines.quality(start), lines.quality(weights)
    return (weights, after, searches) if after >= before else (start, before, searches)
