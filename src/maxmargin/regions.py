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

    sparse = False
    """Whether solutions have many zeros, which a solver should find."""

    nonnegative: npt.NDArray[np.bool_] | None
    """Boolean mask of the sign-constrained coordinates, shape ``(n_weights,)``, or None."""

    def why_not(self, n_weights: int) -> str | None:
        """The reason why this region does not fit weights of that length, or None."""
        if self.nonnegative is not None and self.nonnegative.shape != (n_weights,):
            return f"nonnegative must be a mask of shape ({n_weights},), got {self.nonnegative.shape}"
        return None

    @abstractmethod
    def facts(self) -> dict[str, float | str]:
        """Its settings by name, for model files."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """The penalty's gradient is ``curvature * w``; 0 without a penalty."""

    @property
    @abstractmethod
    def certifies(self) -> bool:
        """Whether a duality gap can close: False without any regularisation, where the dual bound is just 0."""

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
    def dual(self, g: FloatArray, loss: float, squares: float = 0.0) -> float:
        """A lower bound of the objective: ``max_theta theta loss - theta^2/2 squares + min_w theta w'g + penalty(w)``.

        ``g = g(z)`` and ``loss = sum_i c_i'z_i + d_i`` for a feasible z, and theta in [0, 1] mixes z with the gold
        output. With quadratic slack, ``squares > 0``, the masses of the examples form a cone: theta is any number >= 0.
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
        _check_size("C", self.C)
        _check_size("radius", self.radius)
        object.__setattr__(self, "nonnegative", _mask(self.nonnegative))

    @property
    def curvature(self) -> float:
        """``1/C``."""
        return 0.0 if np.isinf(self.C) else 1.0 / float(self.C)

    @property
    def certifies(self) -> bool:
        """True with a finite ``C`` or ``radius``."""
        return bool(np.isfinite(self.C) or np.isfinite(self.radius))

    def facts(self) -> dict[str, float | str]:
        """``C`` and ``radius``."""
        return {"C": self.C, "radius": self.radius}

    def project(self, weights: FloatArray) -> FloatArray:
        """Signs first, then the ball (the other order is wrong)."""
        w = _signed(weights, self.nonnegative)
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

    def dual(self, g: FloatArray, loss: float, squares: float = 0.0) -> float:
        """``theta loss - theta^2/2 squares + q^2/(2C) - q theta G``, best theta; ``G = ||P_K(-g)||``,
        ``q = min(radius, C theta G)``: the objective is concave, a parabola until the ball is reached and one beyond.
        """
        if loss <= 0.0:
            return 0.0
        steepness = norm(self._reduced(g))
        most = np.inf if squares > 0.0 else 1.0

        def value(theta: float) -> float:
            pull = theta * steepness
            gain = theta * loss - 0.5 * theta * theta * squares
            if pull == 0.0:
                return gain
            q = min(self.radius, self.C * pull)
            if np.isinf(q):
                return -np.inf
            return gain + 0.5 * self.curvature * q * q - q * pull

        candidates = [1.0]
        if np.isfinite(self.C) and (steepness > 0.0 or squares > 0.0):
            candidates.append(loss / (self.C * steepness * steepness + squares))
            if steepness > 0.0:
                candidates.append(self.radius / (self.C * steepness))
        if squares > 0.0 and np.isfinite(self.radius):
            candidates.append(max(0.0, loss - self.radius * steepness) / squares)
        return max(0.0, *(value(min(theta, most)) for theta in candidates if np.isfinite(theta)))

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


@dataclass(frozen=True, eq=False)
class L1(Region):
    """The ball ``||w||_1 <= radius``, with ``w_k >= 0`` on chosen coordinates: few weights end up different from zero.

    Args:
        radius: a positive finite number.
        nonnegative: boolean mask of the sign-constrained coordinates, shape ``(n_weights,)``, or None.
    """

    radius: float
    nonnegative: npt.NDArray[np.bool_] | None = None
    sparse = True

    def __post_init__(self) -> None:
        _check_size("radius", self.radius)
        if np.isinf(self.radius):
            raise ValueError(
                'radius must be finite: an infinite L1 ball is no regularisation; use an L2 region, norm="l2"'
            )
        object.__setattr__(self, "nonnegative", _mask(self.nonnegative))

    def facts(self) -> dict[str, float | str]:
        """``norm`` and ``radius``."""
        return {"norm": "l1", "radius": self.radius}

    @property
    def curvature(self) -> float:
        """No penalty."""
        return 0.0

    @property
    def certifies(self) -> bool:
        """Always."""
        return True

    def project(self, weights: FloatArray) -> FloatArray:
        """Signs first, then all weights towards zero by one amount, which a sort finds: ``O(d log d)``.

        Reference: Held, Wolfe and Crowder (1974), Validation of subgradient optimization.
        """
        w = _signed(weights, self.nonnegative)
        size = np.abs(w)
        if not size.sum() > self.radius or not np.isfinite(size).all():
            return w
        # Less the largest entry, which cancels in the differences that count: w may be large and the ball small.
        most = size.max()
        falling = np.sort(size)[::-1] - most
        excess = np.cumsum(falling) - self.radius
        kept = max(1, int((falling * np.arange(1, len(w) + 1) > excess).sum()))
        shrunk = np.maximum((size - most) - excess[kept - 1] / kept, 0.0)
        total = shrunk.sum()
        if total > self.radius:
            shrunk *= self.radius / total
        return np.asarray(np.copysign(shrunk, w) + 0.0)

    def penalty(self, weights: FloatArray) -> float:
        """0."""
        return 0.0

    def prox(self, weights: FloatArray, step: float) -> FloatArray:
        """The projection."""
        return self.project(weights)

    def _steepest(self, g: FloatArray) -> tuple[int, float]:
        """The coordinate along which ``w'g`` falls fastest, and how fast; 0 where it does not fall."""
        pull = np.abs(g) if self.nonnegative is None else np.where(self.nonnegative, -g, np.abs(g))
        at = int(np.argmax(pull)) if len(g) else 0
        return at, max(0.0, float(pull[at])) if len(g) else 0.0

    def dual(self, g: FloatArray, loss: float, squares: float = 0.0) -> float:
        """``G = max(0, loss - radius * max(0, max_{k free} |g_k|, max_{k signed} -g_k))``, or ``G^2 / (2 squares)``."""
        gain = max(0.0, loss - self.radius * self._steepest(g)[1])
        return gain if squares == 0.0 else 0.5 * gain * gain / squares

    def best_response(self, g: FloatArray) -> FloatArray | None:
        """A corner of the ball; None where every weight costs."""
        at, steepness = self._steepest(g)
        if steepness == 0.0:
            return None
        w = np.zeros(len(g))
        w[at] = -np.sign(g[at]) * self.radius
        return w

    def norm_bound(self, hinge_at_zero: float) -> float:
        """The radius: no weights of the ball are longer."""
        return float(self.radius)


def _check_size(name: str, value: float) -> None:
    number = isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)
    if not number or np.isnan(value) or value <= 0:
        raise ValueError(
            f"{name} must be a positive number or infinity, got {value!r}; "
            "a larger C or radius means less regularisation"
        )


def _mask(nonnegative: npt.ArrayLike | None) -> npt.NDArray[np.bool_] | None:
    if nonnegative is None:
        return None
    mask = np.asarray(nonnegative)
    if mask.dtype != np.bool_ or mask.ndim != 1:
        raise ValueError(
            f"nonnegative must be a boolean mask with one entry per weight, got {mask.dtype} of shape "
            f"{mask.shape}; turn indices into a mask first"
        )
    return mask


def _signed(weights: FloatArray, nonnegative: npt.NDArray[np.bool_] | None) -> FloatArray:
    return weights if nonnegative is None else np.where(nonnegative, np.maximum(weights, 0.0), weights)
