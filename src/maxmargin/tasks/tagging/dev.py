"""Scores and calibration on dev sentences, which are encoded once.

One temperature ``t`` calibrates probabilities: it minimizes the mean negative log-likelihood of the gold labels under
the token marginals of ``p(y) ~ exp(score(y) / t)`` (Guo and others, *On calibration of modern neural networks*, 2017,
for chains). Each evaluation costs one sum-product pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _checks
from maxmargin.models.base import Metric
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common.tokens.table import Codes
from maxmargin.tasks.tagging.encoder.extraction import TokenRows
from maxmargin.tasks.tagging.encoder.tagging import TaggingEncoder
from maxmargin.tasks.tagging.metrics.chunks import look_like_chunks
from maxmargin.tasks.tagging.metrics.scores import evaluate_codes

COLDEST, HOTTEST = 1e-2, 1e2
XTOL = 1e-3
"""Accuracy of the logarithm of the temperature."""
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class DevSentences:
    """Dev sentences: a function of models that is their score.

    Attributes:
        rows: attributes of the sentences.
        codes: gold labels of all tokens, places in ``names``, shape ``(n_tokens,)``.
        names: the labels of the model, then those that it does not know.
        metric: one of ``TaggingEncoder.metrics``, where "auto" is F1 if the labels look like chunks, else accuracy; or
            a function of gold and predicted labels, lists of one list per sentence.
        weight: weight of each sentence; None for 1.
    """

    rows: TokenRows
    codes: IntArray
    names: tuple[Hashable, ...]
    metric: Metric | str = "auto"
    weight: FloatArray | None = None

    def __post_init__(self) -> None:
        if not callable(self.metric):
            _checks.one_of("metric", self.metric, TaggingEncoder.metrics)
        if self.metric == "auto":
            object.__setattr__(self, "metric", "f1" if look_like_chunks(self.names) else "accuracy")

    def __call__(self, model: Any) -> float:
        """Return the score of a :class:`~maxmargin.tasks.tagging.TaggerModel`."""
        return self.score(model.best(self.rows))

    def score(self, predicted: Codes) -> float:
        """Return the score of predicted labels, shape ``(n_tokens,)``; unknown gold labels are left out."""
        best, metric, known = predicted.astype(np.int64), self.metric, self.codes >= 0
        if not known.all():
            return float((best == self.codes)[known].mean()) if known.any() else 0.0
        if callable(metric):
            return float(metric(self._labels(self.codes), self._labels(best)))
        found = evaluate_codes(self.codes, best, self.rows.offsets, self.names, chunks=metric == "f1")
        if self.weight is None:
            return float(getattr(found, metric))
        total, hits = self.weight @ found.counts(metric)  # type: ignore[arg-type]
        return float(hits / total) if total else 0.0

    def _labels(self, codes: IntArray) -> list[list[Hashable]]:
        return [[self.names[code] for code in some] for some in np.split(codes, self.rows.offsets[1:-1])]

    def temperature(self, model: Any) -> float | None:
        """Return the temperature fitted to the labels that the model knows; None if it knows none of them."""
        return fitted_temperature([(model, self.rows, self.codes)])


def fitted_temperature(labeled: Sequence[tuple[Any, TokenRows, IntArray]]) -> float | None:
    """Return the temperature of models, each with sentences and the codes of their labels; None without known labels.

    Unknown labels, and those that a model does not know, are left out.
    """
    from scipy.optimize import minimize_scalar  # slow to import, and only training calibrates

    known = [np.flatnonzero((codes >= 0) & (codes < len(model.labels))) for model, _, codes in labeled]
    if not sum(map(len, known)):
        return None

    def loss(log_t: float) -> float:
        total = 0.0
        for (model, rows, codes), at in zip(labeled, known, strict=True):
            found = model.marginals(rows, temperature=float(np.exp(log_t)))
            total -= float(np.log(np.maximum(found[at, codes[at]], _LEAST)).sum())
        return total / sum(map(len, known))

    bounds = float(np.log(COLDEST)), float(np.log(HOTTEST))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": XTOL}).x))
