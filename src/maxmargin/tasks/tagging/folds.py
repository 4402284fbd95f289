"""Folds of the training sentences: they choose C and calibrate probabilities where there are no dev data.

The sentences are cut into runs of neighbors, and every ``k``-th run belongs to the same fold: neighbors are often of
the same document, whose words and names a model must not have seen. Of each run only the first sentences are taken if
there are more than :data:`MOST_TOKENS` tokens, so that the folds of a large corpus cost little. Each fold is labeled by
a model of the others; the score of a C is that of all these labels together, and the temperature of probabilities (see
:mod:`~maxmargin.tasks.tagging.dev`) is fitted to them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin.models.base import Metric
from maxmargin.structures.base import IntArray
from maxmargin.tasks.tagging.dev import DevSentences, fitted_temperature
from maxmargin.tasks.tagging.encoder.labels.gold import LabeledRows
from maxmargin.training.selection import climb

FOLDS = 3
"""Folds if the user does not say how many."""
RUNS = 4
"""Runs of sentences per fold."""
LEAST_SENTENCES = 20
"""Fewer sentences are not cut into folds: too little is left to learn from, and to compare."""
MOST_TOKENS = 15_000
"""Tokens of all folds, at most (or one sentence per run): 25,000 (tolerance 0.03) choose the same C on CoNLL-2000, EWT
parts of speech and EWT names, and take twice as long."""
GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""The values of C that folds choose from, unless others are given."""
TOL = 0.1
"""The relative gap of models of folds, unless a larger one is wanted."""
GROWTH = 0.07
"""The temperature grows with the ``n`` sentences of training like ``n ** GROWTH``: 500 to 8,000 sentences with C of 0.1
and 1 have exponents of 0.03 to 0.10 (CoNLL-2000 chunks, EWT parts of speech, EWT names)."""


class Folds:
    """Models of the sentences outside of each fold.

    Args:
        data: all labeled sentences.
        labels: the labels of the model, in the order of their codes.
        metric: the score of a C, see :class:`DevSentences`.
        fit: returns a model of some sentences, trained with a C.
        k: number of folds.
        seconds: no further C is tried after this time; None for no limit.
        narrow: whether the models of folds may do without columns of attributes that no fold has.

    Attributes:
        scores: the score of each C that was tried.
    """

    def __init__(
        self,
        data: LabeledRows,
        labels: tuple[Hashable, ...],
        metric: Metric | str,
        fit: Callable[[LabeledRows, float], Any],
        k: int = FOLDS,
        seconds: float | None = None,
        narrow: bool = True,
    ) -> None:
        self.seconds = np.inf if seconds is None else seconds
        self.scores: dict[float, float] = {}
        self.labels, self.fit, self.n_sentences = labels, fit, len(data.lengths)
        parts = cut(data.lengths, k)
        sentences = np.sort(np.concatenate(parts))
        self.data = data.select(sentences)  # which is kept during training, the others are not
        if narrow:  # otherwise their weights would take as much memory as those of all sentences
            self.data = replace(self.data, rows=self.data.rows.narrow())
        self.parts = [np.searchsorted(sentences, part) for part in parts]
        held = self.data.select(np.concatenate(self.parts))
        # Of partly unknown labels only the known ones can be compared.
        self.metric = "accuracy" if held.incomplete else metric
        self.held = DevSentences(held.rows, held.codes.astype(np.int64), labels, self.metric, held.sentence_weight)
        self.models: list[Any] = []
        self.C = np.nan

    def models_of(self, C: float) -> list[Any]:
        """Return a model per fold, of the sentences of the others."""
        if self.C != C:
            outside = [np.setdiff1d(np.arange(len(self.data.lengths)), part) for part in self.parts]
            self.models, self.C = [self.fit(self.data.select(part), C) for part in outside], C
        return self.models

    def score(self, C: float) -> float:
        """Return the score of the labels that models of the other folds give each fold."""
        models, parts = self.models_of(C), [self.data.select(part).rows for part in self.parts]
        return self.held.score(np.concatenate([m.best(rows) for m, rows in zip(models, parts, strict=True)]))

    def choose(self, near: float, grid: Sequence[float] = ()) -> tuple[float, list[tuple[float, float]]]:
        """Return the C of the best score, and all that were tried with their scores.

        Args:
            near: where the search in :data:`GRID` starts.
            grid: the values to compare, all of them if there is time; empty for :data:`GRID`.
        """
        kept: list[Any] = []
        scores, began = self.scores, time.perf_counter()

        def measured(C: float) -> float:
            if scores and time.perf_counter() - began > self.seconds:
                return -np.inf
            scores[C] = self.score(C)
            if scores[C] >= max(scores.values()):
                kept[:] = [self.models, C]
            return scores[C]

        chosen, tried = climb(GRID, near, measured) if not grid else climb(grid, None, measured)
        if kept and kept[1] == chosen:
            self.models, self.C = kept
        return chosen, [(C, score) for C, score in tried if C in scores]

    def temperature(self, C: float) -> float | None:
        """Return the temperature for a model of all sentences; None if it cannot be fitted."""
        models, parts = self.models_of(C), [self.data.select(part) for part in self.parts]
        found = fitted_temperature(
            [(model, part.rows, part.codes.astype(np.int64)) for model, part in zip(models, parts, strict=True)]
        )
        if found is None:
            return None
        trained = sum(map(len, self.parts)) * (1.0 - 1.0 / len(self.parts))
        return found * float((self.n_sentences / trained) ** GROWTH)


def cut(lengths: IntArray, k: int) -> list[IntArray]:
    """Return the sentences of each of ``k`` folds, of at most :data:`MOST_TOKENS` together."""
    runs = np.array_split(np.flatnonzero(lengths > 0), k * RUNS)
    runs = [run for run in runs if len(run)]
    budget = max(MOST_TOKENS // len(runs), 1)
    short = [run[: max(1, int(np.searchsorted(np.cumsum(lengths[run]), budget, side="right")))] for run in runs]
    return [np.sort(np.concatenate(short[part::k])) for part in range(min(k, len(short)))]
