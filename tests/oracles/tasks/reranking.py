"""Slow twins of tuning methods, and lists with made-up statistics."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np

from maxmargin.structures._arrays import offsets_of
from maxmargin.tasks.reranking.metrics.base import Formula, Metric
from maxmargin.tasks.reranking.tuning.base import TuningLists


class Given(Metric):
    """A metric for lists whose statistics are given."""

    def __init__(self, formula: Formula | None, n_statistics: int) -> None:
        self.formula, self.n_statistics = formula, n_statistics  # type: ignore[misc]
        self.name = "given"

    def statistics(self, texts: Any, references: Any, owner: Any) -> Any:
        raise AssertionError("the statistics are given")


class Squares(Given):
    """A metric of a user's own, with no formula that kernels know."""

    def __init__(self) -> None:
        super().__init__(None, 2)

    def quality(self, sums: Any) -> Any:
        return sums[..., 0] - 0.01 * np.square(sums[..., 1])


def random_statistics(rng: np.random.Generator, owner: Any, formula: Formula | None) -> Any:
    """Plausible statistics of hypotheses for a formula."""
    n = len(owner)
    if formula is None:
        return np.stack([rng.standard_normal(n), rng.standard_normal(n)], axis=1)
    if formula is Formula.MEAN:
        return np.stack([rng.standard_normal(n), np.ones(n)], axis=1)
    reference = rng.integers(5, 12, size=owner.max(initial=0) + 1)[owner]
    if formula is Formula.ERROR_RATE:
        return np.stack([rng.integers(0, 8, size=n), reference], axis=1).astype(np.float64)
    length = np.maximum(reference + rng.integers(-2, 3, size=n), 4)
    if formula is Formula.BLEU:
        totals = length[:, None] - np.arange(4)
        matches = rng.binomial(totals, 0.8 ** np.arange(1, 5))
        return np.concatenate([matches, totals, length[:, None], reference[:, None]], axis=1).astype(np.float64)
    pieces = [(length - k, reference - k, rng.binomial(np.minimum(length, reference) - k, 0.5)) for k in range(3)]
    return np.stack([column for piece in pieces for column in piece], axis=1).astype(np.float64)


N_STATISTICS = {Formula.BLEU: 10, Formula.CHRF: 9, Formula.ERROR_RATE: 2, Formula.MEAN: 2}


def made_lists(
    seed: int,
    *,
    n: int = 6,
    most: int = 9,
    d: int = 3,
    formula: Formula | None = Formula.BLEU,
    whole: bool = False,
    scale: Any = 1.0,
    signs: Any = None,
    learnable: float = 0.0,
) -> TuningLists:
    """Lists of 1 to ``most`` hypotheses; ``whole``: small integers as features, with ties and duplicates.

    ``learnable``: how much the first statistic follows the features.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most + 1, size=n)
    owner = np.repeat(np.arange(n), sizes)
    rows = (
        rng.integers(-2, 3, size=(len(owner), d)).astype(np.float64) if whole else rng.standard_normal((len(owner), d))
    )
    statistics = random_statistics(rng, owner, formula)
    if learnable:
        statistics[:, 0] += learnable * (rows @ np.linspace(-1, 1, d)) * np.sqrt(len(owner) / n)
    metric = Squares() if formula is None else Given(formula, N_STATISTICS[formula])
    sign = np.zeros(d, dtype=np.int8) if signs is None else np.array(signs, dtype=np.int8)
    return TuningLists(offsets_of(sizes), rows * scale, statistics, metric, sign)


def crossings(scores: Any, slopes: Any, offsets: Any) -> list[float]:
    """All values of gamma at which two lines of one list cross."""
    found = []
    for first, last in pairwise(offsets):
        for i, j in combinations(range(first, last), 2):
            if slopes[i] != slopes[j]:
                found.append((scores[i] - scores[j]) / (slopes[j] - slopes[i]))
    return sorted(found)


def best_on_line(lists: TuningLists, weights: Any, direction: Any) -> float:
    """The best corpus quality along a line within the signs, over the middles of all intervals between crossings."""
    low, high = -np.inf, np.inf
    for weight, slope, sign in zip(weights, direction, lists.signs, strict=True):
        if sign * slope > 0:
            low = max(low, -weight / slope)
        if sign * slope < 0:
            high = min(high, -weight / slope)
    scores, slopes = lists.scores(weights), lists.scores(direction)
    inside = [g for g in crossings(scores, slopes, lists.offsets) if low < g < high]
    ends = [low if np.isfinite(low) else min(inside, default=0.0) - 1.0]
    ends += [*inside, high if np.isfinite(high) else max(inside, default=0.0) + 1.0]
    best = -np.inf
    for left, right in pairwise(ends):
        if right - left <= 1e-9 * max(1.0, abs(left), abs(right)) and len(ends) > 2:
            continue
        gamma = 0.5 * (left + right)
        best = max(best, lists.corpus_quality(lists.structure.first_largest(scores + gamma * slopes)[0]))
    return best


def by_passes(lists: TuningLists, epochs: int, seed: int, *, C: float = 0.0, decay: float = 0.0) -> list[Any]:
    """Average weights after each pass of k-best MIRA, or of the perceptron where C is 0, from zero weights."""
    rng, metric = np.random.default_rng(seed), lists.metric
    rows = lists.rows if isinstance(lists.rows, np.ndarray) else lists.rows.toarray()
    weights, seen, averages = np.zeros(rows.shape[1]), [], []
    sums = lists.statistics[lists.choose(weights)].sum(axis=0)
    sentences = min(len(lists), 1 / (1 - decay))
    background = sums * sentences / len(lists)
    for _ in range(epochs):
        for i in rng.permutation(len(lists)):
            own = slice(lists.offsets[i], lists.offsets[i + 1])
            X, scores, gains = rows[own], rows[own] @ weights, lists.quality[own]
            if C > 0 and metric.formula is not None:
                gains = (sentences + 1) * metric.quality(background + lists.statistics[own])
            hope = np.argmax(scores + gains) if C > 0 else np.argmax(gains)
            fear = np.argmax(scores - gains) if C > 0 else np.argmax(scores)
            change, gain = X[hope] - X[fear], gains[hope] - gains[fear]
            if gain > 0:
                step = 1.0
                if C > 0:
                    lack = gain - change @ weights
                    step = min(C, lack / (change @ change)) if lack > 0 and change.any() else 0.0
                weights = weights + step * change
                weights[lists.signs * weights < 0] = 0.0
            background = decay * background + lists.statistics[own][hope]
            sentences = decay * sentences + 1
            seen.append(weights)
        averages.append(np.mean(seen, axis=0))
    return averages
