"""Rivals on the features and folds of the Hansards: LightGBM, a linear SVM on pairs, random search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reranking.hansards import FEATURES, table
from benchmarks.reranking.held_out import SYSTEMS, Chooser, Part, read, settings_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.reranking.tuning.base import Method, Tuned, TuningLists
from maxmargin.tasks.reranking.tuning.pro import Pro

DRAWS = 1000
LEVELS = 31
"""Grades of relevance, as many as LightGBM allows."""

TREES = {"n_estimators": (30, 100), "num_leaves": (4, 15)}
"""Settings of LightGBM that held-out lists choose from, beside features as they are or normalized within each list."""


def measure(folder: Path, seeds: int, n_folds: int, draws: int, jobs: int) -> dict[str, Any]:
    rivals = {
        "LightGBM lambdarank": boosted(),
        "linear SVM on pairs": settings_of(PairwiseSvm()),
        "random search": settings_of(RandomSearch(draws)),
    }
    return {system: table(read(folder, system), FEATURES["dense"], rivals, seeds, n_folds, jobs) for system in SYSTEMS}


@dataclass(frozen=True)
class RandomSearch(Method):
    """The best weights among the start and random ones in ``[-1, 1]``, as fairseq tunes its rerankers."""

    draws: int = DRAWS

    name = "random search"

    def tune(self, lists: TuningLists, *, start: FloatArray | None = None, seed: int = 0) -> Tuned:
        """Return the weights of best corpus quality."""
        drawn = np.random.default_rng(seed).uniform(-1.0, 1.0, size=(self.draws, lists.n_features))
        pool = drawn if start is None else np.concatenate([start[None], drawn])
        return Tuned(max(pool, key=lambda weights: lists.corpus_quality(lists.choose(weights))))


@dataclass(frozen=True)
class PairwiseSvm(Method):
    """scikit-learn's linear SVM on the pairs of PRO (Herbrich et al. 2000; Joachims 2002)."""

    C: float | None = None

    name = "linear SVM on pairs"

    def candidates(self) -> Sequence[Method]:
        """The strengths that held-out lists choose from."""
        return [replace(self, C=C) for C in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)]

    def tune(self, lists: TuningLists, *, start: FloatArray | None = None, seed: int = 0) -> Tuned:
        """Return the weights of the hyperplane."""
        from sklearn.svm import LinearSVC

        better, worse = Pro().pairs(lists, seed)
        sign = np.where(np.arange(len(better)) % 2, -1, 1)  # it wants both classes
        differences = (lists.rows[better] - lists.rows[worse]) * sign[:, None]
        machine = LinearSVC(C=self.C, dual=False, fit_intercept=False, random_state=seed).fit(differences, sign)
        return Tuned(np.ascontiguousarray(machine.coef_[0], dtype=np.float64))


def boosted() -> list[Chooser]:
    """LightGBM's lambdarank with each of its settings."""

    def chooser(within: bool, settings: dict[str, int]) -> Chooser:
        return lambda part: _boosted(part, within, settings)

    grid = [dict(zip(TREES, values, strict=True)) for values in product(*TREES.values())]
    return [chooser(within, settings) for within in (False, True) for settings in grid]


def _boosted(part: Part, within: bool, settings: dict[str, int]) -> IntArray:
    import lightgbm

    train, test = part.train, part.test
    ranker = lightgbm.LGBMRanker(
        **settings,
        learning_rate=0.05,
        min_child_samples=100,
        label_gain=list(range(LEVELS)),
        random_state=part.seed,
        n_jobs=1,  # threads do not pay for trees this small
        verbosity=-1,
        force_row_wise=True,
    )
    ranker.fit(_columns(train, part, within), _grades(train), group=np.diff(train.offsets))
    scores = np.asarray(ranker.booster_.predict(_columns(test, part, within)), dtype=np.float64)
    return test.structure.first_largest(scores)[0]


def _columns(lists: TuningLists, part: Part, within: bool) -> FloatArray:
    """The features and the decoder's score, which trees would have to put together from steps."""
    columns = lists.rows if part.start is None else np.column_stack([lists.rows, lists.scores(part.start)])
    if not within:
        return columns
    pieces = np.split(columns, lists.offsets[1:-1])
    return np.concatenate([(own - own.mean(axis=0)) / np.maximum(own.std(axis=0), 1e-9) for own in pieces])


def _grades(lists: TuningLists) -> IntArray:
    """Sentence quality as grades, 0 for the worst of a list to 30 for its best: LightGBM takes small integers alone."""
    quality, sizes = lists.quality, np.diff(lists.offsets)
    low, high = (np.repeat(of.reduceat(quality, lists.offsets[:-1]), sizes) for of in (np.minimum, np.maximum))
    return np.rint((LEVELS - 1) * (quality - low) / np.where(high > low, high - low, 1.0)).astype(np.int64)
