"""Minimum error rate training: weights of the best corpus quality, by exact searches along lines.

Along a line ``w + gamma d`` the score of a hypothesis is linear in gamma, so the best hypothesis of a list changes only
at the corners of the upper envelope of its lines. Sorted over all lists, these cut the line into intervals of constant
corpus quality, whatever the metric (Och, "Minimum error rate training in statistical machine translation", 2003).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _threads
from maxmargin.structures._arrays import vector
from maxmargin.structures.base import FloatArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.reranking.tuning.ascent import Lines, ListLines, ascend
from maxmargin.tasks.reranking.tuning.base import Method, Tuned, TuningLists
from maxmargin.tasks.reranking.tuning.lattices import LatticeLines, TuningLattices

MOST_FEATURES = 1000
"""More weights are refused: searches along single coordinates would not get far, and would fit noise."""

MIN_GAIN = 1e-10
"""A step must gain more quality than this, which rounding of sums does not reach."""

_MOST_SLOPES = 1 << 28
"""Slopes of all hypotheses along all directions, which are kept with their order: 12 bytes each."""

_RESTARTS_PER_CALL = 64
"""Between kernel calls of so many restarts an interrupt takes effect."""


@dataclass(frozen=True)
class Mert(Method):
    """Ascent of corpus quality along coordinates and random directions, from several starts.

    From each start every direction is searched in turn, with a step to the middle of the best interval, until no
    direction gains. Of equally good intervals the widest is taken; one without an end is cut as far beyond its last
    change as that is from the present weights, or as the weights are large in units of the direction. The result is
    the best end point, scaled to a largest absolute weight of 1; never worse on the lists than the start.

    Cost of a search: one pass over the hypotheses, and one over the changes of the best ones. Memory: 12 bytes for each
    hypothesis and direction, beside dense rows of features.

    Attributes:
        restarts: starts; the first is the given one, the others are drawn from ``[-1, 1]`` in each weight.
        random_directions: directions beside the coordinates, drawn once for all starts.
        max_sweeps: passes over all directions from each start.
    """

    restarts: int = 20
    random_directions: int = 0
    max_sweeps: int = 50

    name = "mert"

    def __post_init__(self) -> None:
        _checks.integer("restarts", self.restarts, least=1)
        _checks.integer("random_directions", self.random_directions, least=0)
        _checks.integer("max_sweeps", self.max_sweeps, least=1)

    def tune(self, lists: TuningLists, *, start: FloatArray | None = None, seed: int = 0) -> Tuned:
        """Return the best weights found; ``details`` has their quality and that of the start."""
        lines = ListLines(lists)
        starts, directions = self._drawn(lists.n_features, lists.signs, start, seed)
        if lists.metric.formula is None:
            ends, quality, searches = self._ascend(lines, starts, directions, lists.signs)
        else:
            ends, quality, searches = self._ascend_compiled(lists, starts, directions)
        return self._best(lines, starts[0], ends, quality, searches)

    def tune_lattices(self, lattices: TuningLattices, *, start: FloatArray | None = None, seed: int = 0) -> Tuned:
        """Return the best weights found for the paths of lattices (Macherey et al. 2008); as :meth:`tune` otherwise.

        The envelope of all paths is found without enumerating them; statistics are computed for those on it alone.
        """
        lines = LatticeLines(lattices)
        starts, directions = self._drawn(lattices.n_features, lattices.signs, start, seed)
        return self._best(lines, starts[0], *self._ascend(lines, starts, directions, lattices.signs))

    def _drawn(
        self, d: int, signs: npt.NDArray[np.int8], start: FloatArray | None, seed: int
    ) -> tuple[FloatArray, FloatArray]:
        """Starts, and the directions beside the coordinates."""
        if not 0 < d <= MOST_FEATURES:
            raise ValueError(
                f"MERT searches between 1 and {MOST_FEATURES:,} features, got {d:,}; use max-margin, mira or pro"
            )
        random = np.random.default_rng(seed)
        first = np.where(signs < 0, -1.0, 1.0) if start is None else vector(start, d, "start")
        if not np.isfinite(first).all():
            raise ValueError("start has weights that are NaN or infinite; give finite numbers or None")
        starts = np.concatenate([first[None], random.uniform(-1.0, 1.0, size=(self.restarts - 1, d))])
        starts = np.where(signs == 0, starts, signs * np.abs(starts))
        starts[0] = np.where(signs * first < 0, 0.0, first)
        directions = random.standard_normal((self.random_directions, d))
        return starts, directions / np.abs(directions).max(axis=1, keepdims=True, initial=1e-300)

    def _ascend_compiled(
        self, lists: TuningLists, starts: FloatArray, directions: FloatArray
    ) -> tuple[FloatArray, FloatArray, int]:
        """End points, their quality, and the number of searches, for metrics whose formula kernels know."""
        metric, threads = lists.metric, _threads.current()
        assert metric.formula is not None
        slopes = int(lists.offsets[-1]) * (lists.n_features + len(directions))
        if slopes > _MOST_SLOPES:
            raise ValueError(
                f"MERT would keep {12e-9 * slopes:.1f} GB of slopes; tune fewer features or lists, or use max-margin, "
                "mira or pro"
            )
        rows = lists.rows if isinstance(lists.rows, np.ndarray) else lists.rows.toarray()
        statistics = np.ascontiguousarray(lists.statistics, dtype=np.float64)
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        _finite(rows, "features")
        _finite(statistics, "statistics")
        prepared = _kernels.MertLists.prepare(
            lists.offsets, rows, statistics, int(metric.formula), metric.beta, directions, threads
        )
        ends, quality, searches = starts.copy(), np.empty(len(starts)), np.empty(len(starts), dtype=np.int64)
        for first in range(0, len(starts), _RESTARTS_PER_CALL):
            some = slice(first, first + _RESTARTS_PER_CALL)
            prepared.ascend(ends[some], lists.signs, self.max_sweeps, MIN_GAIN, quality[some], searches[some], threads)
        return ends, quality, int(searches.sum())

    def _ascend(
        self, lines: Lines, starts: FloatArray, directions: FloatArray, signs: npt.NDArray[np.int8]
    ) -> tuple[FloatArray, FloatArray, int]:
        """The same for any source of lines."""
        pool = np.concatenate([np.eye(starts.shape[1]), directions])
        found = [ascend(lines, start, pool, signs, max_sweeps=self.max_sweeps, min_gain=MIN_GAIN) for start in starts]
        ends, quality = np.array([one[0] for one in found]), np.array([one[1] for one in found])
        return ends, quality, sum(one[2] for one in found)

    def _best(self, lines: Lines, start: FloatArray, ends: FloatArray, quality: FloatArray, searches: int) -> Tuned:
        """The end point that chooses best, by what its scaled weights do choose; the start if none beats it."""
        weights = _scaled(start)
        before = best = lines.quality(weights)
        taken: int | None = None
        for restart in np.argsort(-quality, kind="stable").tolist():
            if quality[restart] <= best:
                break
            end = _scaled(ends[restart])
            realized = lines.quality(end)
            if realized > best:
                weights, best, taken = end, realized, restart
        details: dict[str, Any] = {
            "quality": best,
            "start_quality": before,
            "restart": taken,
            "restarts": len(ends),
            "line_searches": searches,
        }
        return Tuned(weights, details=details)


def _scaled(weights: FloatArray) -> FloatArray:
    """The weights with a largest absolute value of 1, or all 0."""
    largest = float(np.abs(weights).max(initial=0.0))
    return weights / largest if largest > 0 else weights


def _finite(values: FloatArray, what: str) -> None:
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        raise ValueError(f"the {what} of hypothesis {row} (counted from 0 over all lists) are NaN or infinite")
