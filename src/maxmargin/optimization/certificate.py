"""Primal, dual and gap, computed the same way for every solver.

A solver hands over weights ``w`` and, of the other player, only ``g = g(z)`` and ``loss = sum_i c_i'z_i + d_i`` of
some feasible ``z``; with quadratic slack also the sum of squares of the slacks ``zeta_i >= 0`` by which the examples'
terms are multiplied in both. Then

    primal = penalty(w) + H(w)                      one loss-augmented argmax pass
    dual   = max_theta theta loss - theta^2/2 squares + min_{w in W} (theta w'g + penalty(w))

and ``dual <= optimum <= primal`` as long as z is feasible to rounding. Bounds from different points may be combined:
the smallest primal and the largest dual seen so far bound the optimum too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.problem import Problem
from maxmargin.structures.base import FloatArray


@dataclass(frozen=True)
class Proposal:
    """A candidate for certification: weights, and ``g(z)`` and the loss of a feasible z.

    With quadratic slack ``g`` and ``loss`` are sums weighted by ``zeta_i``, and ``squares = sum_i s_i zeta_i^2``.
    ``dual`` is the bound that these give if the solver knows it already; then none of them is used.
    """

    weights: FloatArray
    g: FloatArray
    loss: float
    squares: float = 0.0
    dual: float | None = None


@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimum: ``dual <= optimum <= primal``.

    Attributes:
        primal: objective of the weights.
        dual: lower bound of the optimum.
        hinge: the hinge loss part of the primal, ``H(w)``.
        relaxed: whether the outputs were relaxed to a larger polytope: then all figures are those of the relaxation,
            whose objective is never below the true one.
    """

    primal: float
    dual: float
    hinge: float
    relaxed: bool = False

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

    def __str__(self) -> str:
        of = " of the relaxed objective" if self.relaxed else ""
        gap = f"gap {self.gap:.3g} (relative {self.relative_gap:.2g})"
        return f"primal {self.primal:.6g}, dual {self.dual:.6g}, {gap}{of}"


_CONTRADICTION = 1e-5
"""Bounds may contradict each other by this share of the largest objective: projections end at a tolerance."""


class CertificateError(ArithmeticError):
    """A lower bound above an objective: some argmax, projection or k-best list is wrong."""


def certify(problem: Problem, proposal: Proposal, hinge: float | None = None) -> Certificate:
    """The certificate of one proposal; ``hinge`` is ``H(w)`` of its weights where that is known already."""
    if hinge is None:
        hinge = problem.hinge(proposal.weights)
    primal = problem.region.penalty(proposal.weights) + hinge
    dual = proposal.dual
    if dual is None:
        dual = problem.region.dual(proposal.g, proposal.loss, proposal.squares)
    return Certificate(primal=primal, dual=dual, hinge=hinge, relaxed=problem.relaxed)


class BestBounds:
    """The smallest primal with its weights, and the largest dual, over all proposals of a run."""

    def __init__(self, relaxed: bool, minimizes: bool) -> None:
        self.relaxed, self.minimizes = relaxed, minimizes
        self.weights: FloatArray | None = None
        self.primal, self.dual, self.hinge, self.scale = np.inf, -np.inf, np.inf, 0.0

    @property
    def bounds(self) -> tuple[float, ...]:
        """All numbers but the weights: primal, dual, hinge, and the largest objective seen."""
        return self.primal, self.dual, self.hinge, self.scale

    def restore(self, weights: FloatArray | None, bounds: tuple[float, ...]) -> None:
        """Resume from a checkpoint."""
        self.weights = weights
        self.primal, self.dual, self.hinge, self.scale = bounds

    def update(self, proposal: Proposal, certificate: Certificate) -> None:
        """Take a certificate into account; a method that does not minimize keeps its last weights."""
        if certificate.primal < self.primal or not self.minimizes:
            self.weights, self.primal, self.hinge = proposal.weights, certificate.primal, certificate.hinge
        self.dual = max(self.dual, certificate.dual)
        self.scale = max(self.scale, abs(certificate.primal))
        if self.dual > self.primal + _CONTRADICTION * self.scale and self.minimizes:
            raise CertificateError(
                f"the lower bound {self.dual:g} is above the objective {self.primal:g}, so one of them is wrong: "
                "some argmax, projection or loss is incorrect; run maxmargin.testing.check_structure on a structure "
                "of your own, and report it otherwise"
            )

    @property
    def certificate(self) -> Certificate:
        """The best bounds as a certificate."""
        return Certificate(primal=self.primal, dual=self.dual, hinge=self.hinge, relaxed=self.relaxed)
