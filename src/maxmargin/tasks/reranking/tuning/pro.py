"""Tuning as ranking of pairs: a logistic regression that tells the better of two hypotheses of a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import optimize, special

from maxmargin import _checks
from maxmargin._sparse import sp
from maxmargin.features.rows import Rows
from maxmargin.structures._arrays import pieces, vector
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.reranking.tuning.base import Method, Tuned, TuningLists
from maxmargin.tasks.reranking.tuning.occurring import Occurring

_DRAWS_AT_ONCE = 1 << 21
"""Pairs drawn at a time: some hundred megabytes."""

STRENGTHS = (0.001, 0.01, 0.1, 1.0)
"""Values of C that held-out lists choose from."""


@dataclass(frozen=True)
class Pro(Method):
    """Pairwise ranking optimization (Hopkins and May, "Tuning as ranking", 2011).

    From each list pairs of hypotheses are drawn; of those that differ enough in sentence quality the ``keep`` that
    differ most are kept, each with the difference ``delta`` of features, better minus worse, and the weights minimize::

        1/(2C) ||w||^2 + 1/keep sum_pairs v log(1 + exp(-w'delta)),      v = 1, or their difference in quality

    by L-BFGS, within the signs of the weights: a list counts as one example.

    Attributes:
        C: strength of the losses beside the penalty; None for 0.1, or what held-out lists choose among
            :data:`STRENGTHS`.
        samples: pairs drawn from each list, with replacement.
        keep: most pairs kept of each list.
        min_difference: pairs that differ less in sentence quality are dropped.
        weighted: whether the loss of a pair counts in proportion to its difference in quality.
        max_iter: iterations of L-BFGS.
    """

    C: float | None = None
    samples: int = 5000
    keep: int = 50
    min_difference: float = 0.05
    weighted: bool = False
    max_iter: int = 500

    name = "pro"

    def __post_init__(self) -> None:
        if self.C is not None:
            _checks.positive("C", self.C)
        _checks.integer("samples", self.samples, least=1)
        _checks.integer("keep", self.keep, least=1)
        _checks.number("min_difference", self.min_difference, least=0)
        _checks.flag("weighted", self.weighted)
        _checks.integer("max_iter", self.max_iter, least=1)

    def candidates(self) -> Sequence[Method]:
        """The strengths that held-out lists choose from."""
        return (self,) if self.C is not None else tuple(replace(self, C=C) for C in STRENGTHS)

    def describe(self) -> dict[str, Any]:
        """The strength."""
        return {"C": self._strength}

    @property
    def _strength(self) -> float:
        return 0.1 if self.C is None else self.C

    def tune(self, lists: TuningLists, *, start: FloatArray | None = None, seed: int = 0) -> Tuned:
        """Return the weights that rank the drawn pairs best; they do not depend on the start, but for rounding."""
        better, worse = self.pairs(lists, seed)
        difference = lists.rows[better] - lists.rows[worse]
        if not isinstance(difference, np.ndarray):
            difference = sp.csr_array(difference)
            difference.eliminate_zeros()
        some = Occurring.of(difference)
        rows, signs = Rows(some.rows, "features"), some.taken(lists.signs)
        scale = (lists.quality[better] - lists.quality[worse] if self.weighted else np.ones(len(better))) / self.keep
        C = self._strength

        def objective(weights: FloatArray) -> tuple[float, FloatArray]:
            margins, gradient = np.empty(rows.n), np.empty(rows.d)
            rows.times(weights, 1, margins)
            rows.transpose_times(-scale * special.expit(-margins), 1, gradient)
            value = 0.5 / C * float(weights @ weights) + float((scale * np.logaddexp(0.0, -margins)).sum())
            return value, gradient + weights / C

        begin = some.taken(np.zeros(lists.n_features) if start is None else vector(start, lists.n_features, "start"))
        low, high = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
        found = optimize.minimize(
            objective,
            np.clip(begin, low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=optimize.Bounds(low, high) if signs.any() else None,
            options={"maxiter": self.max_iter, "ftol": 1e-12, "gtol": 1e-8},
        )
        if not np.isfinite(found.x).all() or not np.isfinite(found.fun):
            raise ValueError("the weights have become NaN or infinite; check the features, or scale them")
        weights = some.spread(np.asarray(found.x, dtype=np.float64))
        details = {
            "quality": lists.corpus_quality(lists.choose(weights)),
            "pairs": len(better),
            "objective": float(found.fun),
            "iterations": int(found.get("nit", 0)),  # absent where no weight is free
        }
        return Tuned(weights, details=details)

    def pairs(self, lists: TuningLists, seed: int) -> tuple[IntArray, IntArray]:
        """Rows of the better and of the worse hypothesis of all pairs kept."""
        key = "pairs", self.samples, self.keep, self.min_difference, seed
        return lists.once(key, lambda: self._draw(lists, seed))

    def _draw(self, lists: TuningLists, seed: int) -> tuple[IntArray, IntArray]:
        random, sizes = np.random.default_rng(seed), np.diff(lists.offsets)
        better, worse = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for some in pieces(np.full(len(lists), self.samples), _DRAWS_AT_ONCE):
            draws, size = random.random((len(some), 2, self.samples)), sizes[some, None, None]
            # Products of draws below 1 may round up to the size.
            drawn = lists.offsets[some, None, None] + np.minimum((draws * size).astype(np.int64), size - 1)
            one, two = drawn[:, 0], drawn[:, 1]
            difference = lists.quality[one] - lists.quality[two]
            if self.samples > self.keep:
                most = np.argpartition(-np.abs(difference), self.keep - 1, axis=1)[:, : self.keep]
                one, two, difference = (np.take_along_axis(each, most, axis=1) for each in (one, two, difference))
            kept = (np.abs(difference) >= self.min_difference) & (difference != 0)
            first, second, forward = one[kept], two[kept], difference[kept] > 0
            better.append(np.where(forward, first, second))
            worse.append(np.where(forward, second, first))
        return np.concatenate(better), np.concatenate(worse)
