"""Extragradient (Korpelevich 1976; Taskar, Lacoste-Julien and Jordan 2006) with an Armijo rule on the step.

Problem: ``min_{w in W} max_{z in Z} penalty(w) + w'g(z) + sum_i c_i'z_i + d_i``. One iteration predicts
``u_p = P(u - beta G(u))`` and corrects ``u_c = P(u - beta G(u_p))`` with the saddle point's gradient operator ``G``
(eqs. 5 and 6); the step is accepted when ``beta ||G(u) - G(u_p)|| <= nu ||u - u_p||``, in a geometry with divergence
``d`` when ``beta (G(u_p) - G(u))'(u_p - u_c) <= nu (d(u, u_p) + d(u_p, u_c))``. Cost per iteration: two
projections of every example, two passes over the features each way; memory: a few packed vectors. Stopping test: the
certified gap, of the last point or of the step-weighted average of the predictions.

``Extragradient.plain()`` is the paper's: it divides by ``||w - w_p|| + ||z - z_p||`` in that rule and returns the last
point. Three more things go beyond the paper; each keeps the guarantee and can be switched off.
*Balance*: steps ``beta b`` for the weights and ``beta / b`` for the structures are extragradient in rescaled
coordinates; ``b`` starts from the radii of the two sets and is adapted to the distances traveled after 4, 8, 16, ...
iterations, ten times at most. *Implicit penalty*: the penalty enters through its proximal step instead of its
gradient (Tseng's form), so that small C does not shrink the step. *Growth*: the step grows again after easy iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from maxmargin import _checks
from maxmargin._vectors import dot, norm, squared
from maxmargin.optimization.base import NonFiniteError, Run, Start
from maxmargin.optimization.certificate import Proposal
from maxmargin.problem import Problem
from maxmargin.solvers.first_order.geometry import Euclidean
from maxmargin.solvers.first_order.players import StructuresPoint, WeightsPoint
from maxmargin.solvers.first_order.saddle_point import Average, BregmanSolver, adapted_balance
from maxmargin.structures.base import FloatArray

LAST_ADAPTATION = 2048
"""After this many iterations the balance stays as it is, and the method is plain extragradient in fixed coordinates."""


@dataclass(frozen=True, eq=False)
class ExtragradientState:
    """Where the players stand, ``g(z)`` there, the average of the predictions, the step size and the balance."""

    weights: WeightsPoint
    structures: StructuresPoint
    g: FloatArray
    beta: float
    balance: float
    average: Average
    origin: tuple[WeightsPoint, StructuresPoint]
    iteration: int = 0


@dataclass(frozen=True, kw_only=True)
class Extragradient(BregmanSolver):
    """Settings of the extragradient method. ``Extragradient.plain()`` is the 2006 paper's own version.

    Attributes:
        beta: the first step size.
        nu: threshold of the Armijo rule, in (0, 1).
        growth: factor by which the step grows after an easy iteration; 1 never lets it grow.
        implicit_penalty: treat the penalty by its proximal step rather than by its gradient.
        distance: what the Armijo rule divides by in Euclidean geometry, the "joint" norm ``||u - u_p||`` or the "sum"
            ``||w - w_p|| + ||z - z_p||``, the paper's. The sum is up to sqrt(2) times as long, so steps that it accepts
            are sure to converge only for ``nu`` below 0.7.
        average: propose the average of the predictions besides the last point, for one more argmax pass per
            certificate.
        geometry, balance, inexact, max_iter: see :class:`BregmanSolver`.
    """

    beta: float = 1.0
    nu: float = 0.9
    growth: float = 1.5
    implicit_penalty: bool = True
    distance: Literal["joint", "sum"] = "joint"
    average: bool = True
    published: ClassVar[dict[str, Any]] = {
        **{"geometry": Euclidean(), "growth": 1.0, "implicit_penalty": False},
        **{"distance": "sum", "nu": 0.7, "average": False},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.positive("beta", self.beta)
        _checks.number("nu", self.nu, above=0, below=1)
        _checks.number("growth", self.growth, least=1)
        _checks.one_of("distance", self.distance, ("joint", "sum"))

    def unsupported(self, problem: Problem) -> str | None:
        """The penalty must have a gradient unless it is implicit."""
        return (None if self.implicit_penalty else self.missing(problem, "smooth")) or super().unsupported(problem)

    def init(self, run: Run, start: Start) -> ExtragradientState:
        """The given start, by default zero weights and the gold outputs or the uniform distribution."""
        problem = run.problem
        weights, structures = self.players(problem)
        w, z = weights.at(start.weights_for(problem)), structures.start(run, start)
        return ExtragradientState(
            weights=w,
            structures=z,
            g=problem.gradient(z.z),
            beta=self.beta,
            balance=self.start_balance(run, w, z),
            average=Average.empty(problem, keep_z=False),
            origin=(w, z),
        )

    def step(self, run: Run, state: ExtragradientState) -> ExtragradientState:
        """Predict with an accepted step size, then correct."""
        problem, b = run.problem, state.balance
        weights, structures = self.players(problem)
        tol = self.projection_tolerance(state.iteration)
        explicit = 0.0 if self.implicit_penalty else problem.region.curvature
        w, z, beta = state.weights, state.structures, state.beta

        def move_w(gradient: FloatArray) -> WeightsPoint:
            return weights.move(w, gradient, beta * b, penalized=self.implicit_penalty)

        def move_z(gradient: FloatArray, warm: Any) -> StructuresPoint:
            return structures.at(run, problem, z.coordinates + (beta / b) * gradient, tol=tol, warm=warm)

        def apart(w_1: WeightsPoint, z_1: StructuresPoint, w_2: WeightsPoint, z_2: StructuresPoint) -> float:
            return weights.divergence(w_1, w_2) / b + b * structures.divergence(z_1, z_2)

        grad_w = explicit * w.weights + state.g
        grad_z = problem.augmented(w.weights)
        while True:
            w_p, z_p = move_w(grad_w), move_z(grad_z, z.warm)
            g_p = problem.gradient(z_p.z)
            grad_w_p = explicit * w_p.weights + g_p
            grad_z_p = problem.augmented(w_p.weights)
            predicted = apart(w, z, w_p, z_p)
            average = state.average.add(beta, w_p.weights, g_p, problem.loss(z_p.z), None)
            if predicted == 0.0:  # u_p = u: a solution
                return replace(state, average=average, iteration=state.iteration + 1)
            corrected: tuple[WeightsPoint, StructuresPoint] | None = None
            if weights.euclidean and structures.euclidean:
                turn = b * squared(grad_w - grad_w_p) + squared(grad_z - grad_z_p) / b
                if self.distance == "joint":
                    ratio = beta * float(np.sqrt(0.5 * turn / predicted))
                else:
                    far_w, far_z = norm(w.weights - w_p.weights), norm(z.z - z_p.z)
                    ratio = beta * float(np.sqrt(turn) / (far_w / np.sqrt(b) + np.sqrt(b) * far_z))
            else:
                # The Bregman form of the rule looks at the corrected point as well.
                w_c, z_c = corrected = move_w(grad_w_p), move_z(grad_z_p, z_p.warm)
                turned = dot(grad_w_p - grad_w, w_p.weights - w_c.weights) - dot(grad_z_p - grad_z, z_p.z - z_c.z)
                room = predicted + apart(w_p, z_p, w_c, z_c) + b * structures.rounding(z_p.log_partition)
                ratio = max(0.0, beta * turned / room)
            if not np.isfinite(ratio):
                raise NonFiniteError("the step ratio is not finite")
            if ratio <= self.nu:
                break
            beta *= 2.0 / 3.0 * min(1.0, 1.0 / ratio)
        w_c, z_c = corrected or (move_w(grad_w_p), move_z(grad_z_p, z_p.warm))
        done = state.iteration + 1
        if self.balance == "auto" and 4 <= done <= LAST_ADAPTATION and done.bit_count() == 1:
            far_w = weights.divergence(state.origin[0], w_c)
            b = adapted_balance(b, far_w, structures.divergence(state.origin[1], z_c))
        return replace(
            state,
            weights=w_c,
            structures=z_c,
            g=problem.gradient(z_c.z),
            beta=beta * self.growth if ratio <= 0.5 * self.nu else beta,
            balance=b,
            average=average,
            iteration=done,
        )

    def propose(self, run: Run, state: ExtragradientState) -> Sequence[Proposal]:
        """The last point, and the average of the predictions."""
        last = Proposal(state.weights.weights, state.g, run.problem.loss(state.structures.z))
        averaged = self.average and state.average.total > 0.0
        return [last, state.average.proposal()] if averaged else [last]

    def duals(self, state: ExtragradientState) -> FloatArray:
        """The current z."""
        return state.structures.z

    def potentials(self, state: ExtragradientState) -> FloatArray | None:
        """Those of the current z, in entropic geometry."""
        return state.structures.potentials
