"""Sets and penalties for the weights: what the weights player may choose, and what it pays.

A region knows its Euclidean projection, its penalty and the smallest value ``min_{w in W} w'g + penalty(w)``, which
is all that solvers and certificates need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maxmargin._vectors import norm, squared
from maxmargin.structures.base import FloatArray


class Region(ABC):
    """The weights player's set ``W`` and penalty."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """The penalty's gradient is ``curvature * w``; 0 without a penalty."""

    @property
    @abstractmethod
    def certifies(self) -> bool:
        """Whether a duality gap can close: False without any regularisation, where the dual bound is just 0."""

    @abstractmethod
    def why_not(self, n_weights: int) -> str | None:
        """The reason why this region does not fit weights of that length, or None."""

    @abstractmethod
    def project(self, weights: FloatArray) -> FloatArray:
        """The nearest point of ``W``."""

    @abstractmethod
    def penalty(self, weights: FloatArray) -> float:
        """What the weights cost."""

    @abstractmethod
    def prox(self, weights: FloatArray, step: float) -> FloatArray:
        """``argmin_{w in W} penalty(w) + ||w - weights||^2 / (2 step)``."""

    @abstractmethod
    def dual(self, g: FloatArray, loss: float) -> float:
        """A lower bound of the objective: ``max_{theta in [0, 1]} theta loss + min_{w in W} theta w'g + penalty(w)``.

        ``g = g(z)`` and ``loss = sum_i c_i'z_i + d_i`` for a feasible z; theta mixes z with the gold output.
        """

    @abstractmethod
    def best_response(self, g: FloatArray) -> FloatArray | None:
        """``argmin_{w in W} w'g + penalty(w)``, or None where it is not unique or does not exist."""

    @abstractmethod
    def norm_bound(self, hinge_at_zero: float) -> float:
        """A radius that holds a solution, given ``H(0)``; infinity where none is known."""


@dataclass(frozen=True, eq=False)
class L2(Region):
    """``1/(2C) ||w||^2`` inside the ball ``||w|| <= radius``, with ``w_k >= 0`` on chosen coordinates.

    ``C = inf`` is no penalty, ``radius = inf`` no ball; every combination has a certificate, except that with neither
    the dual bound is 0 and the gap equals the hinge loss.

    Args:
        C: penalty form, ``1/(2C) ||w||^2 + H(w)``; a positive number or infinity.
        radius: ball form; a positive number or infinity.
        nonnegative: boolean mask of the sign-constrained coordinates, shape ``(n_weights,)``, or None.
    """

    C: float = np.inf
    radius: float = np.inf
    nonnegative: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        for name, value in (("C", self.C), ("radius", self.radius)):
            if not isinstance(value, (int, float, np.floating, np.integer)) or isinstance(value, bool):
                raise ValueError(f"{name} must be a positive number or infinity, got {value!r}")
            if np.isnan(value) or value <= 0:
                raise ValueError(
                    f"{name} must be a positive number or infinity, got {value!r}; "
                    "a larger C or radius means less regularisation"
                )
        if self.nonnegative is not None:
            mask = np.asarray(self.nonnegative)
            if mask.dtype != np.bool_ or mask.ndim != 1:
                raise ValueError(
                    f"nonnegative must be a boolean mask with one entry per weight, got {mask.dtype} of shape "
                    f"{mask.shape}; turn indices into a mask first"
                )
            object.__setattr__(self, "nonnegative", mask)

    @property
    def curvature(self) -> float:
        """``1/C``."""
        return 0.0 if np.isinf(self.C) else 1.0 / float(self.C)

    @property
    def certifies(self) -> bool:
        """True with a finite ``C`` or ``radius``."""
        return bool(np.isfinite(self.C) or np.isfinite(self.radius))

    def why_not(self, n_weights: int) -> str | None:
        """The mask must be as long as the weights."""
        if self.nonnegative is not None and self.nonnegative.shape != (n_weights,):
            return f"nonnegative must be a mask of shape ({n_weights},), got {self.nonnegative.shape}"
        return None

    def project(self, weights: FloatArray) -> FloatArray:
        """Signs first, then the ball (the other order is wrong)."""
        w = weights if self.nonnegative is None else np.where(self.nonnegative, np.maximum(weights, 0.0), weights)
        if np.isfinite(self.radius):
            length = norm(w)
            if length > self.radius:
                return np.asarray(w * (self.radius / length))
        return w

    def penalty(self, weights: FloatArray) -> float:
        """``1/(2C) ||w||^2``."""
        return 0.5 * self.curvature * squared(weights)

    def prox(self, weights: FloatArray, step: float) -> FloatArray:
        """Shrink by ``1 + step / C``, then project: the two commute with scaling, so this is exact."""
        return self.project(weights / (1.0 + step * self.curvature))

    def _reduced(self, g: FloatArray) -> FloatArray:
        """``-P_K(-g)``: under signs only negative entries of g can be exploited."""
        return g if self.nonnegative is None else np.where(self.nonnegative, np.minimum(g, 0.0), g)

    def dual(self, g: FloatArray, loss: float) -> float:
        """``theta loss + q^2/(2C) - q theta G``, best theta; ``G = ||P_K(-g)||``, ``q = min(radius, C theta G)``."""
        if loss <= 0.0:
            return 0.0
        steepness = norm(self._reduced(g))

        def value(theta: float) -> float:
            pull = theta * steepness
            if pull == 0.0:
                return theta * loss
            q = min(self.radius, self.C * pull)
            if np.isinf(q):
                return -np.inf
            return theta * loss + 0.5 * self.curvature * q * q - q * pull

        candidates = [1.0]
        if np.isfinite(self.C) and steepness > 0.0:
            stationary = loss / (self.C * steepness) / steepness
            kink = self.radius / (self.C * steepness)
            candidates += [min(1.0, stationary), min(1.0, kink)]
        return max(0.0, *(value(theta) for theta in candidates))

    def best_response(self, g: FloatArray) -> FloatArray | None:
        """``-C P_K(g)`` scaled into the ball; the ball's far point without a penalty."""
        reduced = self._reduced(g)
        if np.isfinite(self.C):
            return self.project(-self.C * reduced)
        steepness = norm(reduced)
        if np.isinf(self.radius) or steepness == 0.0:
            return None
        return np.asarray(reduced * (-self.radius / steepness))

    def norm_bound(self, hinge_at_zero: float) -> float:
        """``min(radius, sqrt(2 C H(0)))``: a solution is no worse than w = 0."""
        if np.isinf(self.C):
            return float(self.radius)
        return float(min(self.radius, np.sqrt(2.0 * self.C * max(hinge_at_zero, 0.0))))
