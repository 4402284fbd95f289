"""The proximal term of master problems: where its center is, and how strong it is.

A ball, an L1 norm or a weak ridge leaves the master's best response undetermined or far away where few points are
known. So masters minimize ``model(w) + penalty(w) + 1/(2c) ||w - center||^2`` (a proximal bundle method, Kiwiel 1990;
Lemarechal and Sagastizabal 1997). The center moves to weights whose objective falls by a fair share of what the master
promised. Two things keep the gap open: the objective at the center may be above the model, which fresh points mend, and
the term itself holds ``g`` away from where the region's dual is largest. ``c`` grows where the second is larger, or
where masters keep what they promise; it shrinks where they are far off, or could not be solved.
"""

from __future__ import annotations

import numpy as np

from maxmargin._vectors import squared
from maxmargin.optimization.checkpoints.saved import StateDict, count, number, require, vector
from maxmargin.problem import Hinge
from maxmargin.structures.base import FloatArray

SERIOUS = 0.1
"""The share of what a master promised that the objective must fall for its weights to be the next center."""

GOOD, FAR = 0.5, -1.0
"""The shares above which ``c`` grows, and below which it shrinks."""

NEAR, ARRIVED = 0.05, 1e-4
"""The share of the objective that masters promise near a solution, and that where only the bound is missing."""

GROWTH, EXTREME = 8.0, 1e100
"""The factor by which ``c`` grows and shrinks, and how far from 1 it may go."""

VANISHES = 0.01
"""The share of the first objective from which on it may be about to become zero."""


class ProximalCenter:
    """The center, the objective there, and ``c``. It changes in place.

    Attributes:
        weights: the center.
        value: the objective there; infinite before the first weights were judged.
        hinge: ``H(w)`` there.
        first: the objective at the first weights.
        c: the term is ``1/(2c) ||w - center||^2``; 0 before the first points are known.
        promised: by how much the last master promised to lower the objective.
        unsolved: whether that master was left with a larger gap than aimed at, as it bends too much.
    """

    def __init__(self, weights: FloatArray) -> None:
        self.weights = weights
        self.value, self.c, self.promised, self.unsolved = np.inf, 0.0, np.inf, False
        self.hinge, self.first = Hinge(np.inf, 0.0), 0.0

    def state(self) -> StateDict:
        """All of it, as arrays and numbers."""
        numbers = {name: getattr(self, name) for name in ("value", "first", "c", "promised")}
        return {
            "center": self.weights,
            **{f"center_{name}": value for name, value in numbers.items()},
            "center_hinge": self.hinge.value,
            "center_rounding": self.hinge.rounding,
            "center_unsolved": int(self.unsolved),
        }

    def restore(self, saved: StateDict) -> None:
        """The inverse of :meth:`state`; ValueError if the numbers make no sense."""
        self.weights = vector(saved, "center", len(self.weights))
        for name in ("value", "first", "c", "promised"):
            setattr(self, name, number(saved, f"center_{name}", least=0.0, infinite=name in ("value", "promised")))
        value = number(saved, "center_hinge", infinite=True)
        self.hinge = Hinge(value, number(saved, "center_rounding", least=0.0))
        self.unsolved = bool(count(saved, "center_unsolved", most=1))
        judged = np.isfinite(self.value)
        require(judged == np.isfinite(value) == (self.c > 0.0) and self.c <= EXTREME, "its center was not judged")

    def judge(self, weights: FloatArray, value: float, hinge: Hinge, model: float, dual: float) -> None:
        """Move after the objective at the master's weights is known, of which it promised ``model``."""
        if np.isinf(self.value):
            self.weights, self.value, self.hinge, self.first = weights, value, hinge, value
            return
        promised = max(self.value - model, 0.0)
        share = (self.value - value) / promised if promised > 0.0 else 0.0
        if value < self.value and share >= SERIOUS:
            self.weights, self.value, self.hinge = weights, value, hinge
        left = max(self.value - model, 0.0)
        lacking, near = model - dual > left, self.near(model)
        arrived = left <= ARRIVED * abs(self.value)
        if lacking and arrived:
            self.c *= GROWTH
        elif share < FAR or (self.unsolved and near and share < SERIOUS):
            self.c /= GROWTH
        elif share >= GOOD or (lacking and near and not self.unsolved):
            self.c *= GROWTH
        self.c = min(max(self.c, 1.0 / EXTREME), EXTREME)
        self.promised = promised

    @property
    def vanishes(self) -> bool:
        """Whether the objective has become a small part of the first one, as it does where data is separable."""
        return self.value <= VANISHES * self.first

    def near(self, model: float) -> bool:
        """Whether the center is near a solution of the master, so that its bound is worth mending."""
        return self.value - model <= NEAR * abs(self.value)

    def begin(self, g: FloatArray) -> None:
        """Choose the first ``c``: with the gradient ``g`` at the center, one step would halve a linear objective."""
        if self.c == 0.0:
            self.c = min(max(0.5 * self.value / max(squared(g), 1.0 / EXTREME), 1.0 / EXTREME), EXTREME)
