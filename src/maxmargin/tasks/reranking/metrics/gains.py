"""Metrics that users give as numbers, one per hypothesis: human judgments, relevance, any score of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.reranking.metrics.base import Formula, Metric

LARGEST = 1e100
"""The largest gain: squares and sums of larger ones overflow."""


class Gains(Metric):
    """The mean of real-valued gains, one per hypothesis; texts and references do not matter.

    Statistics: the gain and 1. Users read the mean as it is, not in percent.

    Args:
        values: the gain of each hypothesis, list after list, finite; shape ``(n_hypotheses,)``.
    """

    name = "gain"
    n_statistics = 2
    formula = Formula.MEAN
    decimals = 4  # in units of the user's own
    _sign: ClassVar[float] = 1.0

    def __init__(self, values: npt.ArrayLike) -> None:
        given = np.array(values, dtype=np.float64)
        wanted = f"give one finite {self.name} for each hypothesis"
        if given.ndim != 1:
            raise ValueError(f"{wanted}, got an array of shape {given.shape}")
        right = np.abs(given) <= LARGEST  # and not NaN
        if not right.all():
            at = int(np.argmin(right))
            raise ValueError(f"{wanted}, at most {LARGEST:g}; the one of hypothesis {at} is {given[at]:g}")
        self.values = given

    def statistics(self, texts: Sequence[str], references: Sequence[Sequence[str]], owner: IntArray) -> FloatArray:
        """Return gains and ones, shape ``(len(texts), 2)``."""
        if len(texts) != len(self.values):
            raise ValueError(f"{len(self.values)} {self.name}s and {len(texts)} hypotheses; give one for each")
        return np.stack([self._sign * self.values, np.ones(len(self.values))], axis=1)

    def shown(self, quality: float) -> float:
        """Return the mean."""
        return self._sign * quality


class Costs(Gains):
    """The mean of real-valued costs, one per hypothesis: smaller is better, otherwise as :class:`Gains`."""

    name = "cost"
    lower_is_better = True
    _sign = -1.0
