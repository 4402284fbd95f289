"""Sets and penalties for the weights: what the weights player may choose, and what it pays.

A region knows its Euclidean projection, its penalty and the smallest value ``min_{w in W} w'g + penalty(w)``, which
is all that solvers and certificates need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maxmargin import _checks as checks
from maxmargin._vectors import norm, squared
from maxmargin.structures.base import FloatArray

_LARGER = "a larger C or radius means less regularization"


class Region(ABC):
    """The weights player's set ``W`` and penalty."""

    sparse = False
    """Whether solutions have many zeros, which a solver should find."""

    @property
    def smooth(self) -> bool:
        """Whether the penalty's gradient is ``curvature * w``; otherwise only its :meth:`prox` is to be used."""
        return True

    nonnegative: npt.NDArray[np.bool_] | None
    """Boolean mask of the sign-constrained coordinates, shape ``(n_weights,)``, or None."""

    def unsupported(self, n_weights: int) -> str | None:
        """The reason why this region does not fit weights of that length, or None."""
        if self.nonnegative is not None and self.nonnegative.shape != (n_weights,):
            return f"nonnegative must be a mask of shape ({n_weights},), got {self.nonnegative.shape}"
        return None

    @abstractmethod
    def metadata(self) -> dict[str, float | str]:
        """Its settings by name, for model files."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """The penalty's gradient is ``curvature * w``; 0 without a penalty."""

    @property
    @abstractmethod
    def certifies(self) -> bool:
        """Whether a duality gap can close: False without any regularization, where the dual bound is just 0."""

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
        checks.positive("C", self.C, infinite=True, hint=_LARGER)
        checks.positive("radius", self.radius, infinite=True, hint=_LARGER)
        object.__setattr__(self, "nonnegative", _mask(self.nonnegative))

    @property
    def curvature(self) -> float:
        """``1/C``."""
        return 0.0 if np.isinf(self.C) else 1.0 / float(self.C)

    @property
    def certifies(self) -> bool:
        """True with a finite ``C`` or ``radius``."""
        return bool(np.isfinite(self.C) or np.isfinite(self.radius))

    def metadata(self) -> dict[str, float | str]:
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
    """``1/C ||w||_1`` inside the ball ``||w||_1 <= radius``, with ``w_k >= 0`` on chosen coordinates.

    Few weights end up different from zero. At least one of ``C`` and ``radius`` is finite.

    Args:
        radius: ball form; a positive number or infinity.
        nonnegative: boolean mask of the sign-constrained coordinates, shape ``(n_weights,)``, or None.
        C: penalty form, ``1/C ||w||_1 + H(w)``; a positive number or infinity.
    """

    radius: float = np.inf
    nonnegative: npt.NDArray[np.bool_] | None = None
    C: float = np.inf
    sparse = True

    def __post_init__(self) -> None:
        checks.positive("radius", self.radius, infinite=True, hint=_LARGER)
        checks.positive("C", self.C, infinite=True, hint=_LARGER)
        if np.isinf(self.radius) and np.isinf(self.C):
            raise ValueError(
                "radius or C must be finite: an infinite L1 ball without a penalty is no regularization; "
                'use an L2 region, norm="l2"'
            )
        object.__setattr__(self, "nonnegative", _mask(self.nonnegative))

    def metadata(self) -> dict[str, float | str]:
        """``norm``, ``C`` and ``radius``."""
        return {"norm": "l1", "C": self.C, "radius": self.radius}

    @property
    def price(self) -> float:
        """``1/C``, what a unit of weight costs."""
        return 0.0 if np.isinf(self.C) else 1.0 / float(self.C)

    @property
    def curvature(self) -> float:
        """0: the penalty has no curvature, and where ``C`` is finite no gradient either (:attr:`smooth`)."""
        return 0.0

    @property
    def smooth(self) -> bool:
        """False where ``C`` is finite."""
        return bool(np.isinf(self.C))

    @property
    def certifies(self) -> bool:
        """Always."""
        return True

    def project(self, weights: FloatArray) -> FloatArray:
        """Signs first, then all weights toward zero by one amount, which a sort finds: ``O(d log d)``.

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
        """``1/C ||w||_1``."""
        return self.price * float(np.abs(weights).sum()) if self.price else 0.0

    def prox(self, weights: FloatArray, step: float) -> FloatArray:
        """Toward zero by ``step / C``, then the projection, which goes on toward zero: this is exact."""
        if self.price == 0.0:
            return self.project(weights)
        shrunk = np.maximum(np.abs(weights) - step * self.price, 0.0)
        return self.project(np.asarray(np.copysign(shrunk, weights) + 0.0))

    def _steepest(self, g: FloatArray) -> tuple[int, float]:
        """The coordinate along which ``w'g`` falls fastest, and how fast; 0 where it does not fall."""
        pull = np.abs(g) if self.nonnegative is None else np.where(self.nonnegative, -g, np.abs(g))
        at = int(np.argmax(pull)) if len(g) else 0
        return at, max(0.0, float(pull[at])) if len(g) else 0.0

    def dual(self, g: FloatArray, loss: float, squares: float = 0.0) -> float:
        """``theta loss - theta^2/2 squares - radius max(0, theta G - 1/C)`` at the best theta,
        ``G = max(0, max_{k free} |g_k|, max_{k signed} -g_k)``: concave, with one kink at ``theta = 1 / (C G)``.
        """
        if loss <= 0.0:
            return 0.0
        steepness = self._steepest(g)[1]
        most = np.inf if squares > 0.0 else 1.0
        kink = min(most, self.price / steepness) if steepness > 0.0 else most
        value = 0.0

        def at(theta: float, beyond: float) -> float:
            return theta * loss - 0.5 * theta * theta * squares - beyond

        if np.isfinite(kink) or squares > 0.0:
            value = max(value, at(min(kink, loss / squares) if squares > 0.0 else kink, 0.0))
        slope = loss - self.radius * steepness if steepness > 0.0 else 0.0  # past the kink, without the squares
        if slope > 0.0 and kink < most:
            theta = max(kink, slope / squares) if squares > 0.0 else most
            value = max(value, at(theta, self.radius * max(0.0, theta * steepness - self.price)))
        return value

    def best_response(self, g: FloatArray) -> FloatArray | None:
        """A corner of the ball, or zero where every weight costs; None where neither is the only one."""
        at, steepness = self._steepest(g)
        if steepness == self.price or (steepness > self.price and np.isinf(self.radius)):
            return None
        w = np.zeros(len(g))
        if steepness > self.price:
            w[at] = -np.sign(g[at]) * self.radius
        return w

    def norm_bound(self, hinge_at_zero: float) -> float:
        """``min(radius, C H(0))``: no weights of the ball are longer, and a solution is no worse than w = 0."""
        if np.isinf(self.C):
            return float(self.radius)
        return float(min(self.radius, self.C * max(hinge_at_zero, 0.0)))


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
