"""Methods that change the weights after every list: k-best MIRA and the structured perceptron.

Both keep the average of the weights over all visits, which forgets the accidents of the last lists, and return the
average after the pass whose weights choose the best corpus from the training lists.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin import _checks
from maxmargin.features.rows import Rows
from maxmargin.structures._arrays import vector
from maxmargin.structures.base import FloatArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.reranking.tuning.base import Method, Tuned, TuningLists
from maxmargin.tasks.reranking.tuning.occurring import Occurring

_NO_INDEX = np.zeros(0, dtype=np.int32)


@dataclass(frozen=True)
class _OnlineMethod(Method):
    """Passes over lists in random order."""

    epochs: int = 30

    def __post_init__(self) -> None:
        _checks.integer("epochs", self.epochs, least=1)

    def tune(self, lists: TuningLists, *, start: FloatArray | None = None, seed: int = 0) -> Tuned:
        """Return the average weights after the best pass, or the start where that is given and better.

        Weights stop at 0 where their sign says so. ``details`` has the quality after each pass, and the pass taken.
        """
        d = lists.n_features
        some = Occurring.of(lists.rows)
        rows = Rows(some.rows, "features")
        signs = some.taken(lists.signs)
        begin = np.zeros(d) if start is None else vector(start, d, "start")
        if not np.isfinite(begin).all():
            raise ValueError("start has weights that are NaN or infinite; give finite numbers or None")
        begin = np.where(lists.signs * begin < 0, 0.0, begin)
        total = some.taken(begin).copy()
        late, random = np.zeros(rows.d), np.random.default_rng(seed)
        gains, background = self._gains(lists, begin)
        # Columns that do not occur keep their start.
        best, weights, taken = -np.inf, begin, 0
        if start is not None:
            best = lists.corpus_quality(lists.choose(begin))
        qualities = []
        for epoch in range(1, self.epochs + 1):
            visits = float((epoch - 1) * len(lists))
            changes = self._pass(
                lists, rows, signs, random.permutation(len(lists)), gains, background, total, late, visits
            )
            average = begin + some.spread(total - late / (visits + len(lists)) - some.taken(begin))
            if not np.isfinite(average).all():
                raise ValueError("the weights have become NaN or infinite; check the features, or scale them")
            quality = lists.corpus_quality(lists.choose(average))
            qualities.append(quality)
            if quality > best:
                best, weights, taken = quality, average, epoch
            if changes == 0:
                break
        return Tuned(weights, details={"quality": best, "epoch": taken, "epochs": qualities})

    @abstractmethod
    def _gains(self, lists: TuningLists, begin: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What hypotheses are worth, and the statistics that they add to; one of the two is empty."""

    def _pass(
        self,
        lists: TuningLists,
        rows: Rows,
        signs: Any,
        order: Any,
        gains: FloatArray,
        background: FloatArray,
        total: FloatArray,
        late: FloatArray,
        visits: float,
    ) -> int:
        """Update the sums by one pass; returns the number of changes."""
        metric = lists.metric
        C, decay = self._step()
        arrays: tuple[Any, Any, FloatArray] = (_NO_INDEX, _NO_INDEX, np.zeros(0) if rows.dense is None else rows.dense)
        if rows.dense is None:
            arrays = rows.starts, rows.columns, rows.values
        return int(
            _kernels.online_list_pass(
                *arrays,
                lists.offsets,
                order,
                gains,
                np.ascontiguousarray(lists.statistics, dtype=np.float64),
                -1 if metric.formula is None else int(metric.formula),
                metric.beta,
                decay,
                background,
                C,
                signs,
                total,
                late,
                visits,
            )
        )

    @abstractmethod
    def _step(self) -> tuple[float, float]:
        """The largest step (0 for steps of 1), and the decay of the background."""


@dataclass(frozen=True)
class KBestMira(_OnlineMethod):
    """K-best MIRA (Cherry and Foster, "Batch tuning strategies for statistical machine translation", 2012).

    For each list, *hope* has the largest score plus gain and *fear* the largest score minus gain. The weights move as
    little as makes hope lead fear by their difference of gains, and at most ``C`` times their difference of features.

    The gain of a hypothesis is the quality of a background corpus with it added, times the number of sentences in
    that corpus, so that it counts as it does in the corpus: a short output is no gain if the corpus is short already.
    The background begins with what the start chooses, then takes in every hope and fades by ``decay`` at each list.
    Metrics without a formula that kernels know have the sentence quality as gain.

    Attributes:
        epochs: passes over the lists.
        C: largest step; None for 0.01, or what held-out lists choose among :data:`STEPS`.
        decay: of the background corpus.
    """

    C: float | None = None
    decay: float = 0.999

    name = "mira"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.C is not None:
            _checks.positive("C", self.C)
        _checks.number("decay", self.decay, least=0, below=1)

    def candidates(self) -> Sequence[Method]:
        """The steps that held-out lists choose from."""
        return (self,) if self.C is not None else tuple(replace(self, C=C) for C in STEPS)

    def describe(self) -> dict[str, Any]:
        """The largest step."""
        return {"C": self._step()[0]}

    def _step(self) -> tuple[float, float]:
        return 0.01 if self.C is None else self.C, self.decay

    def _gains(self, lists: TuningLists, begin: FloatArray) -> tuple[FloatArray, FloatArray]:
        if lists.metric.formula is None:
            return np.ascontiguousarray(lists.quality, dtype=np.float64), np.zeros(0)
        sums = lists.statistics[lists.choose(begin)].sum(axis=0)
        sentences = min(float(len(lists)), 1.0 / (1.0 - self.decay))
        return np.zeros(0), np.append(sums * (sentences / max(len(lists), 1)), sentences)


@dataclass(frozen=True)
class Perceptron(_OnlineMethod):
    """The averaged structured perceptron, from the best hypothesis by score toward the one of best sentence quality.

    Attributes:
        epochs: passes over the lists.
    """

    name = "perceptron"

    def _step(self) -> tuple[float, float]:
        return 0.0, 0.0

    def _gains(self, lists: TuningLists, begin: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ascontiguousarray(lists.quality, dtype=np.float64), np.zeros(0)


STEPS = (0.0001, 0.001, 0.01, 0.1)
"""Largest steps of MIRA that held-out lists choose from."""
