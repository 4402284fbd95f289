"""Primal, dual and gap, computed the same way for every solver.

A solver hands over weights ``w`` and, of the other player, only ``g = g(z)`` and ``loss = sum_i c_i'z_i + d_i`` of
some feasible ``z``; with quadratic slack also the sum of squares of the masses ``zeta_i >= 0`` with which the examples'
terms enter both. Then

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
    """What a solver offers for certification: weights, and ``g(z)`` and the loss of a feasible z.

    With quadratic slack ``g`` and ``loss`` are sums with masses ``zeta_i``, and ``squares = sum_i s_i zeta_i^2``.
    ``dual`` is the bound that they give where a solver knows it already: then none of them is looked at.
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


class CertificateError(ArithmeticError):
    """A lower bound above an objective: some argmax, projection or k-best list is not what it says."""


def certify(problem: Problem, proposal: Proposal, hinge: float | None = None) -> Certificate:
    """The certificate of one proposal; ``hinge`` is ``H(w)`` of its weights where that is known already."""
    if hinge is None:
        hinge = problem.hinge(proposal.weights)
    primal = problem.region.penalty(proposal.weights) + hinge
    dual = proposal.dual
    if dual is None:
        dual = problem.region.dual(proposal.g, proposal.loss, proposal.squares)
    return Certificate(primal=primal, dual=dual, hinge=hinge, relaxed=problem.relaxed)
