"""Confidences of links: probabilities from margins, calibrated on held-out sentence pairs.

The margin of a link is the score of the best alignment with it, minus that of the best one without it. The confidence
is ``sigmoid(intercept + slope * margin + bend * margin * |margin|)``, the probability that the link is possible in the
reference: Platt scaling (1999) with a quadratic term, as errors near the boundary fall off more slowly than linearly.
The three parameters maximize the likelihood of held-out links.

Without annotated pairs there are no such links. What is known then is how often the two directions of the hidden Markov
models agree, which falls with the size of the bitext and with the distance of the languages, and with it the share of
right links at the same margin. :meth:`Calibration.estimated` is that relation, fitted to annotated pairs of eight
languages with bitexts of 500 to 67,000 pairs (its errors on these pairs: benchmarks/alignment/RESULTS.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from maxmargin.structures.base import FloatArray

NEAR = 5.0
"""Links with margins below minus this many standard deviations of positive margins are ignored in the fit."""


ESTIMATE = (0.600, 4.323, 0.864, 1.067)
"""Intercept and slope at an agreement of 0.8, each followed by its change per unit of agreement."""

CALIBRATED, ESTIMATED, UNCALIBRATED = "calibrated", "estimated from other languages", "not calibrated"


@dataclass(frozen=True)
class Calibration:
    """The increasing curve from margins to confidences; ``slope > 0`` and ``bend >= 0``."""

    slope: float = 1.0
    intercept: float = 0.0
    bend: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite([self.slope, self.intercept, self.bend]).all() and self.slope > 0 and self.bend >= 0):
            raise ValueError("its calibration is damaged")

    def __call__(self, margins: FloatArray) -> FloatArray:
        """Confidences in [0, 1] of margins."""
        return np.asarray(expit(self.intercept + margins * (self.slope + self.bend * np.abs(margins))))

    def margin(self, confidence: float) -> float:
        """The margin of a confidence, finite also for 0 and 1."""
        wanted = float(logit(np.clip(confidence, 1e-9, 1 - 1e-9))) - self.intercept
        root = np.sqrt(self.slope**2 + 4 * self.bend * abs(wanted))
        return float(2 * wanted / (self.slope + root))

    @classmethod
    def estimated(cls, agreement: float, scale: float = 1.0) -> Self:
        """The curve for weights that stay close to the packaged ones, or to others.

        Args:
            agreement: number of links of both hidden Markov models, relative to those of at least one.
            scale: the median positive margin of the packaged weights, relative to that of the weights.
        """
        intercept, its_change, slope, change = ESTIMATE
        beyond = float(np.clip(agreement, 0.4, 1.0)) - 0.8
        return cls(scale * (slope + change * beyond), intercept + its_change * beyond)

    @classmethod
    def fit(cls, margins: FloatArray, right: npt.NDArray[np.bool_]) -> Self:
        """Fit the curve to the margins of held-out links and whether these are in the reference.

        If all or none are, the curve is ``sigmoid(margin)``, scaled to the margins.
        """
        from scipy.optimize import minimize  # slow to import, and only training calibrates

        inside = margins[(margins > 0) & np.isfinite(margins)]
        spread = float(inside.std() or max(1.0, inside[0])) if len(inside) else 1.0
        near = np.isfinite(margins) & (margins > -NEAR * spread)
        x, target = margins[near] / spread, right[near]
        if not target.any() or target.all():
            return cls(1.0 / spread, 0.0)
        # Soft targets keep the curve finite if the two classes are separable.
        n_right, n_wrong = float(target.sum()), float((~target).sum())
        wanted = np.where(target, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))

        columns = np.stack([x, np.ones_like(x), x * np.abs(x)], axis=1)

        def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
            score = columns @ parameters
            error = expit(score) - wanted
            return float(np.logaddexp(0, score).sum() - wanted @ score), np.asarray(error @ columns)

        bounds = [(1e-3, None), (None, None), (0.0, None)]
        found = minimize(loss, np.array([1.0, 0.0, 0.0]), jac=True, method="L-BFGS-B", bounds=bounds)
        slope, intercept, bend = found.x.tolist()
        return cls(slope / spread, intercept, bend / spread**2)
