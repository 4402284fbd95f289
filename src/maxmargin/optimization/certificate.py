"""Primal, dual and gap, computed the same way for every solver.

A solver hands over weights ``w`` and, of the other player, only ``g = g(z)`` and ``loss = sum_i c_i'z_i + d_i`` of
some feasible ``z``; with quadratic slack also the sum of squares of the slacks ``zeta_i >= 0`` by which the examples'
terms are multiplied in both. Then

    primal = penalty(w) + H(w)                      one loss-augmented argmax pass
    dual   = max_theta theta loss - theta^2/2 squares + min_{w in W} (theta w'g + penalty(w))

and ``dual <= optimum <= primal`` as long as z is feasible to rounding. Bounds from different points may be combined:
the smallest primal and the largest dual seen so far bound the optimum too.

Both are sums of terms that cancel, so that each comes with the size of its rounding error: of the primal that of the
scores and losses at these weights, of the dual what it would lose if the errors of ``g``, a difference of feature sums,
and of the loss were all against it. A gap of that size cannot be told from 0, and a larger one can.

Without a finite C or radius the dual is 0, and the gap is the hinge loss. There the *restricted gap* of the 2005 report
(section 4.1) says more: the gap against the weights no longer than some ``R``, its ``D_w = R^2/2`` around zero,

    H(w) - min_{||w'|| <= R} H(w')  <=  H(w) - (loss - R ||P_K(-g)||)

where K holds the weights with the right signs, and its ``D_z`` covers all of Z, so that the maximum over z is ``H(w)``.
It is the gap of the ball of radius R, needs only two numbers of z, and can be told for every R after the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._vectors import norm
from maxmargin.problem import ROUNDING, BaseProblem, Hinge
from maxmargin.regions import Region
from maxmargin.structures.base import FloatArray


@dataclass(frozen=True)
class Proposal:
    """A candidate for certification: weights, and ``g(z)`` and the loss of a feasible z.

    With quadratic slack ``g`` and ``loss`` are sums weighted by ``zeta_i``, and ``squares = sum_i s_i zeta_i^2``.
    ``dual`` is the bound that these give if the solver knows it already; then they only tell how large its rounding
    error may be. ``hinge`` is ``H(w)`` where an argmax pass of the run has found it.
    """

    weights: FloatArray
    g: FloatArray
    loss: float
    squares: float = 0.0
    dual: float | None = None
    hinge: Hinge | None = None


@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimum: ``dual <= optimum <= primal``.

    Attributes:
        primal: objective of the weights, or a bound of it from above where argmax passes were inexact.
        dual: lower bound of the optimum.
        hinge: the hinge loss part of the primal, ``H(w)``.
        relaxed: whether the outputs were relaxed to a larger polytope: then all figures are those of the relaxation,
            whose objective is never below the true one.
        radius: without a finite C or radius, the length of the weights; else None.
        restricted_dual: a lower bound of the hinge loss of all weights no longer than that; else None.
        primal_rounding: how large the rounding error of the primal may be, and ``dual_rounding``: that of the dual.
    """

    primal: float
    dual: float
    hinge: float
    relaxed: bool = False
    radius: float | None = None
    restricted_dual: float | None = None
    primal_rounding: float = 0.0
    dual_rounding: float = 0.0

    @property
    def rounding(self) -> float:
        """A gap no larger than this is only rounding error; 0 where the terms' sizes overflow, which says nothing."""
        total = self.primal_rounding + self.dual_rounding
        return total if np.isfinite(total) else 0.0

    @property
    def gap(self) -> float:
        """``primal - dual``: bounds how far the weights' objective is above the optimum."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """``(primal - dual) / |primal|``; 0 for a closed gap."""
        if self.gap <= 0.0:
            return 0.0
        return self.gap / abs(self.primal) if self.primal else np.inf

    @property
    def restricted_gap(self) -> float | None:
        """``H(w) - restricted_dual``: bounds how much lower the hinge loss of weights of the same length can be."""
        return None if self.restricted_dual is None else max(0.0, self.hinge - self.restricted_dual)

    def __str__(self) -> str:
        of = " of the relaxed objective" if self.relaxed else ""
        gap = f"gap {self.gap:.3g} (relative {self.relative_gap:.2g})"
        short = self.radius is not None
        within = f", {self.restricted_gap:.3g} to weights no longer than {self.radius:.3g}" if short else ""
        return f"primal {self.primal:.6g}, dual {self.dual:.6g}, {gap}{within}{of}"


class Responses:
    """What the structures player's points of a run say about weights of any length: two or three numbers of each.

    Args:
        points: rows ``(||P_K(-g)||, loss, squares)``, shape ``(n, 3)``; by default none.
    """

    def __init__(self, points: FloatArray | None = None) -> None:
        self.points = np.zeros((0, 3)) if points is None else np.array(points, dtype=np.float64).reshape(-1, 3)

    def __len__(self) -> int:
        return len(self.points)

    def with_point(self, steepness: float, loss: float, squares: float) -> Responses:
        """With one more point, without those that it makes superfluous; points without a loss say nothing."""
        new, old = np.array([steepness, -loss, squares]), self.points * [1.0, -1.0, 1.0]
        if loss <= 0.0 or (old <= new).all(axis=1).any():
            return self
        kept = self.points[(new > old).any(axis=1)]
        return Responses(np.vstack([kept, [steepness, loss, squares]]))

    def dual(self, radius: float) -> float:
        """The largest lower bound of the hinge loss of weights no longer than ``radius``; at least 0."""
        steepness, loss, squares = self.points.T
        gain = np.maximum(loss - radius * steepness, 0.0)
        # With quadratic slack z is from a cone, and its best multiple counts.
        scaled = np.where(squares > 0.0, gain * gain / np.where(squares > 0.0, 2.0 * squares, 1.0), gain)
        return float(np.max(scaled, initial=0.0))


_CONTRADICTION = 1e-5
"""Bounds may contradict each other by this share of the terms they are made of: projections end at a tolerance."""


class CertificateError(ArithmeticError):
    """A lower bound above an objective: some argmax, projection or k-best list is wrong."""


def certify(problem: BaseProblem, proposal: Proposal, hinge: Hinge | None = None) -> Certificate:
    """The certificate of one proposal; ``hinge`` is ``H(w)`` of its weights where that is known already."""
    if hinge is None:
        hinge = problem.evaluate(proposal.weights)
    primal = problem.region.penalty(proposal.weights) + hinge.value
    dual = proposal.dual
    if dual is None:
        dual = problem.region.dual(proposal.g, proposal.loss, proposal.squares)
    responses = responses_of(problem.region, proposal, Responses())
    return Certificate(
        primal,
        dual,
        hinge.value,
        problem.relaxed,
        *restricted(proposal.weights, responses),
        primal_rounding(primal, hinge),
        dual_rounding(problem, proposal, dual),
    )


def primal_rounding(primal: float, hinge: Hinge) -> float:
    """How large the rounding error of the primal may be."""
    return hinge.rounding + ROUNDING * abs(primal)


def dual_rounding(problem: BaseProblem, proposal: Proposal, dual: float) -> float:
    """How large the rounding error of a proposal's dual may be; none where that is 0, which always is a bound."""
    region, g, loss, squares = problem.region, proposal.g, proposal.loss, proposal.squares
    if not region.certifies:
        return 0.0
    # Also where they are not needed, as in most first certificates: that is when solvers hold the least memory.
    at, gold = problem.gold_nonzeros
    if dual <= 0.0:
        return 0.0
    # With quadratic slack the sums are weighted by the slacks; their root mean square will do.
    weight = np.sqrt(squares / max(float(problem.scale.sum()), 1e-300)) if squares > 0.0 else 1.0
    noise = np.abs(gold)
    noise *= ROUNDING * weight
    np.copysign(noise, g[at], out=noise)
    noise += g[at]
    if len(noise) < len(g):
        few, noise = noise, g.copy()
        noise[at] = few
    less = loss - ROUNDING * (abs(loss) + weight * abs(problem.constant))
    return max(0.0, region.dual(g, loss, squares) - region.dual(noise, less, squares)) + ROUNDING * dual


def responses_of(region: Region, proposal: Proposal, before: Responses) -> Responses:
    """With what a proposal adds; the same where the region certifies by itself or knows no length."""
    if region.certifies or proposal.dual is not None:
        return before
    steepness = region.steepness(proposal.g)
    return before if steepness is None else before.with_point(steepness, proposal.loss, proposal.squares)


def restricted(weights: FloatArray, responses: Responses) -> tuple[float | None, float | None]:
    """The length of the weights, and the lower bound for weights of at most that length; None without responses."""
    if not len(responses):
        return None, None
    radius = norm(weights)
    return radius, responses.dual(radius)


class BestBounds:
    """The smallest primal with its weights, the largest dual and all responses, over all proposals of a run."""

    def __init__(self, problem: BaseProblem, minimizes: bool) -> None:
        self.region, self.relaxed, self.minimizes = problem.region, problem.relaxed, minimizes
        self.weights: FloatArray | None = None
        self.responses = Responses()
        self.primal, self.dual, self.hinge, self.primal_rounding, self.dual_rounding = np.inf, -np.inf, np.inf, 0.0, 0.0

    @property
    def bounds(self) -> tuple[float, ...]:
        """All numbers but the weights: primal, dual, hinge, and the rounding errors of the first two."""
        return self.primal, self.dual, self.hinge, self.primal_rounding, self.dual_rounding

    def restore(self, weights: FloatArray | None, bounds: tuple[float, ...], responses: Responses) -> None:
        """Resume from a checkpoint."""
        self.weights, self.responses = weights, responses
        self.primal, self.dual, self.hinge, self.primal_rounding, self.dual_rounding = bounds

    def update(self, proposal: Proposal, certificate: Certificate) -> None:
        """Take a certificate into account; a method that does not minimize keeps its last weights."""
        if certificate.primal < self.primal or not self.minimizes:
            self.weights, self.primal, self.hinge = proposal.weights, certificate.primal, certificate.hinge
            self.primal_rounding = certificate.primal_rounding
        if certificate.dual > self.dual:
            self.dual, self.dual_rounding = certificate.dual, certificate.dual_rounding
        self.responses = responses_of(self.region, proposal, self.responses)
        size = (self.primal_rounding + self.dual_rounding) / ROUNDING  # of the terms of both bounds
        if self.dual > self.primal + _CONTRADICTION * size and self.minimizes:
            raise CertificateError(
                f"the lower bound {self.dual:g} is above the objective {self.primal:g}, so one of them is wrong: "
                "some argmax, projection or loss is incorrect; run maxmargin.testing.check_structure on a structure "
                "of your own, and report it otherwise"
            )

    @property
    def certificate(self) -> Certificate:
        """The best bounds as a certificate."""
        within = (None, None) if self.weights is None else restricted(self.weights, self.responses)
        rounding = self.primal_rounding, self.dual_rounding
        return Certificate(self.primal, self.dual, self.hinge, self.relaxed, *within, *rounding)
