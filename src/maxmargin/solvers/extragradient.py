"""Extragradient (Korpelevich 1976; Taskar, Lacoste-Julien and Jordan 2006) with an Armijo rule on the step.

Problem: ``min_{w in W} max_{z in Z} penalty(w) + w'g(z) + sum_i c_i'z_i + d_i``. One iteration predicts
``u_p = P(u - beta G(u))`` and corrects ``u_c = P(u - beta G(u_p))`` with the saddle point's gradient operator ``G``
(eqs. 5 and 6); the step is accepted when ``beta ||G(u) - G(u_p)|| <= nu ||u - u_p||``. Cost per iteration: two
projections of every example, two passes over the features each way; memory: a few packed vectors. Stopping test: the
certified gap, of the last point or of the step-weighted average of the predictions.

Three things go beyond the paper; each keeps the guarantee and can be switched off (``Extragradient.plain()``).
*Balance*: steps ``beta b`` for the weights and ``beta / b`` for the structures are extragradient in rescaled
coordinates; ``b`` starts from the radii of the two sets and is adapted to the distances travelled after 4, 8, 16, ...
iterations, ten times at most. *Implicit penalty*: the penalty enters through its proximal step instead of its
gradient (Tseng's form), so that small C does not shrink the step. *Growth*: the step grows again after easy iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin._vectors import squared
from maxmargin.solvers.base import NonFiniteError, Run, Solver, Start, check_positive
from maxmargin.solvers.certificate import Proposal
from maxmargin.solvers.players import (
    Average,
    BalanceSetting,
    adapted_balance,
    check_balance,
    check_inexact,
    projection_tolerance,
    start_balance,
)
from maxmargin.structures.base import FloatArray

LAST_ADAPTATION = 2048
"""After this many iterations the balance stays as it is, and the method is plain extragradient in fixed coordinates."""


@dataclass(frozen=True, eq=False)
class ExtragradientState:
    """Current point, its ``g(z)``, the average of the predictions, the step size and the balance."""

    weights: FloatArray
    z: FloatArray
    g: FloatArray
    beta: float
    balance: float
    average: Average
    origin: tuple[FloatArray, FloatArray]
    iteration: int = 0
    warm: Any = None


@dataclass(frozen=True, kw_only=True)
class Extragradient(Solver):
    """Settings of the extragradient method. ``Extragradient.plain()`` is the paper's own version.

    Attributes:
        beta: the first step size.
        nu: threshold of the Armijo rule, in (0, 1).
        growth: factor by which the step grows after an easy iteration; 1 never lets it grow.
        balance: ratio of the two players' steps; "auto" starts from their radii and adapts to the distances travelled.
        implicit_penalty: treat the penalty by its proximal step rather than by its gradient.
        inexact: projections of iteration ``t`` are exact to ``inexact / (t + 1)^1.5``, a summable error; 0 means 1e-8.
        max_iter: iteration limit when the caller gives none.
    """

    beta: float = 1.0
    nu: float = 0.9
    growth: float = 1.5
    balance: BalanceSetting = "auto"
    implicit_penalty: bool = True
    inexact: float = 1e-2
    max_iter: int = 5000

    def __post_init__(self) -> None:
        check_positive(beta=self.beta, nu=self.nu, growth=self.growth, max_iter=self.max_iter)
        if self.nu >= 1 or self.growth < 1:
            raise ValueError(f"nu must be below 1 and growth at least 1, got {self.nu!r} and {self.growth!r}")
        check_inexact(self.inexact)
        check_balance(self.balance)

    @classmethod
    def plain(cls, **settings: Any) -> Extragradient:
        """The 2006 paper's version: one step size that never grows, the penalty's gradient, exact projections."""
        paper: dict[str, Any] = {"growth": 1.0, "balance": 1.0, "implicit_penalty": False, "inexact": 0.0}
        return cls(**(paper | settings))

    def init(self, run: Run, start: Start) -> ExtragradientState:
        """Start at zero weights and the gold outputs unless told otherwise."""
        problem = run.problem
        w, z = start.weights_for(problem), start.z_for(problem)
        return ExtragradientState(
            weights=w,
            z=z,
            g=problem.gradient(z),
            beta=self.beta,
            balance=start_balance(run, self.balance, z),
            average=Average.empty(problem, keep_z=False),
            origin=(w, z),
        )

    def step(self, run: Run, state: ExtragradientState) -> ExtragradientState:
        """Predict with an accepted step size, then correct."""
        problem, region, b = run.problem, run.problem.region, state.balance
        tol = projection_tolerance(self.inexact, state.iteration)
        explicit = 0.0 if self.implicit_penalty else region.curvature
        w, z, beta = state.weights, state.z, state.beta

        def move(grad: FloatArray, step: float) -> FloatArray:
            moved = w - step * grad
            return region.prox(moved, step) if self.implicit_penalty else region.project(moved)

        grad_w = explicit * w + state.g
        grad_z = problem.augmented(w)
        while True:
            w_p = move(grad_w, beta * b)
            points = run.project(problem, z + (beta / b) * grad_z, tol=tol, warm=state.warm)
            z_p = points.z
            g_p = problem.gradient(z_p)
            grad_w_p = explicit * w_p + g_p
            grad_z_p = problem.augmented(w_p)
            distance = squared(w - w_p) / b + b * squared(z - z_p)
            average = state.average.add(beta, w_p, g_p, problem.loss(z_p), None)
            if distance == 0.0:  # u_p = u: a solution
                return replace(state, average=average, iteration=state.iteration + 1)
            turn = b * squared(grad_w - grad_w_p) + squared(grad_z - grad_z_p) / b
            ratio = beta * float(np.sqrt(turn / distance))
            if not np.isfinite(ratio):
                raise NonFiniteError("the step ratio is not finite")
            if ratio <= self.nu:
                break
            beta *= 2.0 / 3.0 * min(1.0, 1.0 / ratio)
        corrected = run.project(problem, z + (beta / b) * grad_z_p, tol=tol, warm=points.warm)
        w_c, z_c, done = move(grad_w_p, beta * b), corrected.z, state.iteration + 1
        if self.balance == "auto" and 4 <= done <= LAST_ADAPTATION and done.bit_count() == 1:
            b = adapted_balance(b, w_c - state.origin[0], z_c - state.origin[1])
        return replace(
            state,
            weights=w_c,
            z=z_c,
            g=problem.gradient(z_c),
            beta=beta * self.growth if ratio <= 0.5 * self.nu else beta,
            balance=b,
            average=average,
            iteration=done,
            warm=corrected.warm,
        )

    def propose(self, run: Run, state: ExtragradientState) -> Sequence[Proposal]:
        """The last point, and the average of the predictions."""
        last = Proposal(state.weights, state.g, run.problem.loss(state.z))
        return [last] if state.average.total == 0.0 else [last, state.average.proposal()]

    def duals(self, state: ExtragradientState) -> FloatArray:
        """The current z."""
        return state.z
