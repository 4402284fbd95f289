"""Sets and penalties for the weights: the weights player's choices and their costs.

A region knows its Euclidean projection, its penalty and the smallest value ``min_{w in W} w'g + penalty(w)``: enough
for certificates and for general solvers. Faster solvers use more, and ask for it by name: see :data:`CAPABILITIES`. A
region of your own is a subclass of :class:`Region` and works with every solver whose needs it offers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._sparse import sp
from maxmargin._vectors import norm, squared
from maxmargin.structures._arrays import array_of
from maxmargin.structures.base import FloatArray

_LARGER = "a larger C or radius means less regularization"

CAPABILITIES = {
    "smooth": "a penalty with the gradient curvature * w (1/C ||w||_1 has none at zero)",
    "strongly_convex": "a strongly convex penalty, such as a ridge penalty (an L2 region with a finite C)",
    "ridge": "a ridge penalty, an L2 region with a finite C",
    "lasso": 'sums of absolute weights, norm="l1" (regions.L1)',
    "l1_ball": "an L1 ball without a penalty",
    "norms": "an L2 or L1 norm with a finite C or radius",
    "conic": "a conic form of the penalty",
    "rotation_invariant": "a set and a penalty that depend on ||w||_2 alone (an L2 region without sign constraints)",
}
"""The attributes of a region that a solver may need (None or False where a region lacks one), and words for errors."""


class Ridge(NamedTuple):
    """``1/(2C) ||w||^2`` in the ball ``||w|| <= radius``, with the region's sign constraints; C is finite."""

    C: float
    radius: float


class Lasso(NamedTuple):
    """``price ||w||_1`` in the ball ``||w||_1 <= radius``, with the region's sign constraints."""

    price: float
    radius: float


class Norms(NamedTuple):
    """``1/(2C) ||w||^2 + price ||w||_1`` in the balls ``||w|| <= radius``, ``||w||_1 <= l1_radius``, with signs.

    The region's penalty and set; ``C`` and both radii may be infinite, and only one of the norms is in use.
    """

    C: float = np.inf
    radius: float = np.inf
    price: float = 0.0
    l1_radius: float = np.inf


@dataclass(frozen=True, eq=False)
class ConicForm:
    """The penalty and the set as a convex program over the weights and auxiliary variables ``t``.

    ``penalty(w) = min_t 1/2 curvature ||w||^2 + cost't`` subject to ``rows (w, t) <= rhs`` and ``||w|| <= radius``.

    Attributes:
        curvature: a number.
        cost: shape ``(n_t,)``.
        rows: sparse, shape ``(n_rows, n_weights + n_t)``.
        rhs: shape ``(n_rows,)``.
        radius: a number or infinity.
    """

    curvature: float
    cost: FloatArray
    rows: sp.csr_array
    rhs: FloatArray
    radius: float = np.inf


class Region(ABC):
    """The weights player's set ``W`` and penalty."""

    sparse = False
    """Whether solutions have many zeros, which a solver should find."""

    nonnegative: npt.NDArray[np.bool_] | None
    """Boolean mask of the sign-constrained coordinates, shape ``(n_weights,)``, or None."""

    @property
    def smooth(self) -> bool:
        """Whether the penalty's gradient is ``curvature * w``; otherwise solvers use only its :meth:`prox`."""
        return True

    @property
    def strongly_convex(self) -> bool:
        """Whether :meth:`best_response` always exists and is unique."""
        return self.ridge is not None

    @property
    def ridge(self) -> Ridge | None:
        """The settings if this is a ridge penalty, else None."""
        return None

    @property
    def lasso(self) -> Lasso | None:
        """The settings if this is an L1 penalty, an L1 ball or both, else None."""
        return None

    @property
    def l1_ball(self) -> float | None:
        """The radius if this is an L1 ball without a penalty, else None."""
        return None

    @property
    def norms(self) -> Norms | None:
        """The settings if penalty and set are made of the L2 or the L1 norm, and regularize; else None."""
        if self.ridge is not None:
            return Norms(C=self.ridge.C, radius=self.ridge.radius)
        return None if self.lasso is None else Norms(price=self.lasso.price, l1_radius=self.lasso.radius)

    @property
    def rotation_invariant(self) -> bool:
        """Whether the set and the penalty depend on ``||w||_2`` alone, so that projections only scale weights."""
        return False

    @property
    def conic(self) -> bool:
        """Whether there is a :meth:`conic_form`."""
        return type(self).conic_form is not Region.conic_form

    def conic_form(self, n_weights: int) -> ConicForm:
        """The penalty and the set as a conic program, for the reference solver."""
        raise NotImplementedError(f"{type(self).__name__} has no conic form")

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
        """The modulus of strong convexity; for a smooth penalty the gradient is ``curvature * w``."""

    @property
    @abstractmethod
    def certifies(self) -> bool:
        """Whether a duality gap can close: False without any regularization, where the dual bound is just 0."""

    @abstractmethod
    def project(self, weights: FloatArray) -> FloatArray:
        """The nearest point of ``W``."""

    @abstractmethod
    def penalty(self, weights: FloatArray) -> float:
        """The cost of the weights."""

    @abstractmethod
    def prox(self, weights: FloatArray, step: float) -> FloatArray:
        """``argmin_{w in W} penalty(w) + ||w - weights||^2 / (2 step)``."""

    @abstractmethod
    def dual(self, g: FloatArray, loss: float, squares: float = 0.0) -> float:
        """A lower bound of the objective: ``max_theta theta loss - theta^2/2 squares + min_w theta w'g + penalty(w)``.

        ``g = g(z)`` and ``loss = sum_i c_i'z_i + d_i`` for a feasible z, and theta in [0, 1] mixes z with the gold
        output. With quadratic slack, ``squares > 0``, the dual variables form a cone: theta is any number >= 0.
        """

    @abstractmethod
    def best_response(self, g: FloatArray) -> FloatArray | None:
        """``argmin_{w in W} w'g + penalty(w)``, or None where it is not unique or does not exist."""

    @abstractmethod
    def norm_bound(self, hinge_at_zero: float) -> float:
        """A radius that holds a solution, given ``H(0)``, in the region's own norm; infinity if none is known."""

    def steepness(self, g: FloatArray) -> float | None:
        """``max -w'g`` over the region's weights of length 1, ``||P_K(-g)||`` for a cone K; None where none is known.

        Restricted gaps of runs without regularization need it.
        """
        return None

    def clip_norm(self, weights: FloatArray, bound: float) -> FloatArray:
        """The nearest weights of the region within a bound of :meth:`norm_bound`, for solvers to keep steps bounded.

        By default the given ones, which are of the region.
        """
        return weights

    def rescale(self, weights: FloatArray) -> FloatArray:
        """Weights of the region that are a multiple of given ones where that is possible: predictions stay the same."""
        return self.project(weights)

    def _sign_rows(self, n_weights: int) -> tuple[sp.csr_array, FloatArray]:
        """``-w_k <= 0`` for the sign-constrained coordinates."""
        signed = np.zeros(0, dtype=np.int64) if self.nonnegative is None else np.flatnonzero(self.nonnegative)
        return -sp.eye_array(n_weights, format="csr")[signed], np.zeros(len(signed))


@dataclass(frozen=True, eq=False)
class L2(Region):
    """``1/(2C) ||w||^2`` inside the ball ``||w|| <= radius``, with ``w_k >= 0`` on chosen coordinates.

    ``C = inf`` means no penalty, ``radius = inf`` no ball; with neither the gap is the hinge loss.

    Args:
        C: penalty form, ``1/(2C) ||w||^2 + H(w)``; a positive number or infinity.
        radius: ball form; a positive number or infinity.
        nonnegative: boolean mask of the sign-constrained coordinates, shape ``(n_weights,)``, or None.
    """

    C: float = np.inf
    radius: float = np.inf
    nonnegative: npt.NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        for name in ("C", "radius"):
            found = _checks.positive(name, getattr(self, name), infinite=True, hint=_LARGER)
            object.__setattr__(self, name, found)
        object.__setattr__(self, "nonnegative", _mask(self.nonnegative))

    @property
    def curvature(self) -> float:
        """``1/C``."""
        return 0.0 if np.isinf(self.C) else 1.0 / float(self.C)

    @property
    def ridge(self) -> Ridge | None:
        """``C`` and ``radius`` if ``C`` is finite."""
        return Ridge(float(self.C), float(self.radius)) if np.isfinite(self.C) else None

    @property
    def norms(self) -> Norms | None:
        """``C`` and ``radius`` if one is finite."""
        return Norms(C=float(self.C), radius=float(self.radius)) if self.certifies else None

    @property
    def rotation_invariant(self) -> bool:
        """Unless there are sign constraints."""
        return self.nonnegative is None

    def conic_form(self, n_weights: int) -> ConicForm:
        """Without auxiliary variables."""
        return ConicForm(self.curvature, np.zeros(0), *self._sign_rows(n_weights), self.radius)

    def clip_norm(self, weights: FloatArray, bound: float) -> FloatArray:
        """A cone and two balls around its apex: scaling after the region's projection projects onto all three."""
        if np.isinf(bound):
            return weights
        return weights * min(1.0, bound / max(norm(weights), np.finfo(float).tiny))

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

    def steepness(self, g: FloatArray) -> float:
        """``||g||``, with signs that of the entries that can be exploited."""
        return norm(self._reduced(g))

    def dual(self, g: FloatArray, loss: float, squares: float = 0.0) -> float:
        """``theta loss - theta^2/2 squares + q^2/(2C) - q theta G``, best theta; ``G = ||P_K(-g)||``,
        ``q = min(radius, C theta G)``: the objective is concave, a parabola until the ball is reached and one beyond.
        """
        if loss <= 0.0:
            return 0.0
        steepness = self.steepness(g)
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
        """``min(radius, sqrt(2 C H(0)))``: a solution is not worse than w = 0."""
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
    certifies = True
    curvature = 0.0

    def __post_init__(self) -> None:
        for name in ("radius", "C"):
            found = _checks.positive(name, getattr(self, name), infinite=True, hint=_LARGER)
            object.__setattr__(self, name, found)
        if np.isinf(self.radius) and np.isinf(self.C):
            raise ValueError(
                "radius or C must be finite: an infinite L1 ball without a penalty does not regularize; "
                'use an L2 region, norm="l2"'
            )
        object.__setattr__(self, "nonnegative", _mask(self.nonnegative))

    def metadata(self) -> dict[str, float | str]:
        """``norm``, ``C`` and ``radius``."""
        return {"norm": "l1", "C": self.C, "radius": self.radius}

    @property
    def price(self) -> float:
        """``1/C``, the cost of a unit of weight."""
        return 0.0 if np.isinf(self.C) else 1.0 / float(self.C)

    @property
    def lasso(self) -> Lasso | None:
        """``1/C`` and ``radius``."""
        return Lasso(self.price, float(self.radius))

    @property
    def l1_ball(self) -> float | None:
        """``radius`` if ``C`` is infinite."""
        return float(self.radius) if np.isinf(self.C) else None

    def conic_form(self, n_weights: int) -> ConicForm:
        """With bounds ``t >= |w|``."""
        signs, zeros = self._sign_rows(n_weights)
        none, one = sp.csr_array((signs.shape[0], n_weights)), sp.eye_array(n_weights, format="csr")
        rows = [sp.hstack([signs, none]), sp.hstack([one, -one]), sp.hstack([-one, -one])]
        rhs = [zeros, np.zeros(2 * n_weights)]
        if np.isfinite(self.radius):
            ones = sp.csr_array(np.ones((1, n_weights)))
            rows.append(sp.hstack([sp.csr_array((1, n_weights)), ones]))
            rhs.append(np.array([self.radius]))
        cost = np.full(n_weights, self.price)
        return ConicForm(0.0, cost, sp.csr_array(sp.vstack(rows)), np.concatenate(rhs))

    def rescale(self, weights: FloatArray) -> FloatArray:
        """Scaled into the ball."""
        size = np.abs(weights).sum()
        return self.project(weights * (self.radius / size) if size > self.radius else weights)

    @property
    def smooth(self) -> bool:
        """False where ``C`` is finite."""
        return bool(np.isinf(self.C))

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
        """Soft thresholding by ``step / C``, then the projection, which continues toward zero: this is exact."""
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
        """A corner of the ball, or zero where every weight costs; None where neither is unique."""
        at, steepness = self._steepest(g)
        if steepness == self.price or (steepness > self.price and np.isinf(self.radius)):
            return None
        w = np.zeros(len(g))
        if steepness > self.price:
            w[at] = -np.sign(g[at]) * self.radius
        return w

    def norm_bound(self, hinge_at_zero: float) -> float:
        """``min(radius, C H(0))``: no weights of the ball are longer, and a solution is not worse than w = 0."""
        if np.isinf(self.C):
            return float(self.radius)
        return float(min(self.radius, self.C * max(hinge_at_zero, 0.0)))


def _mask(nonnegative: npt.ArrayLike | None) -> npt.NDArray[np.bool_] | None:
    if nonnegative is None:
        return None
    mask = array_of(nonnegative, "nonnegative", "biufcOUSmMV", "a boolean mask with one entry per weight")
    if mask.dtype != np.bool_ or mask.ndim != 1:
        raise ValueError(
            f"nonnegative must be a boolean mask with one entry per weight, got {mask.dtype} of shape "
            f"{mask.shape}; turn indices into a mask first"
        )
    return mask


def _signed(weights: FloatArray, nonnegative: npt.NDArray[np.bool_] | None) -> FloatArray:
    return weights if nonnegative is None else np.where(nonnegative, np.maximum(weights, 0.0), weights)
