"""Extragradient (Korpelevich 1976; Taskar, Lacoste-Julien and Jordan 2006) with an Armijo rule on the step.

Problem: ``min_{w in W} max_{z in Z} penalty(w) + w'g(z) + sum_i c_i'z_i + d_i``. One iteration predicts
``u_p = P(u - beta G(u))`` and corrects ``u_c = P(u - beta G(u_p))`` with the gradient operator
``G(w, z) = (curvature w + g(z), -(F'w + c))`` (eqs. 5 and 6); the step is accepted when
``beta ||G(u) - G(u_p)|| <= nu ||u - u_p||``. Cost per iteration: two projections of every example, two passes over the
features each way; memory: a few packed vectors. Stopping test: the certified gap, of the last point or of the average.

Two things go beyond the paper; both keep its guarantee and can be switched off. *Balance*: steps ``beta b`` for the
weights and ``beta / b`` for the structures are extragradient in rescaled coordinates. *Restarts*: when the certified
gap has halved, the run starts anew from the better of the average and the last point, with the balance moved towards
the ratio of the distances the two players travelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin.solvers.base import NonFiniteError, Run, Solver, Start
from maxmargin.solvers.certificate import Certificate, Proposal
from maxmargin.solvers.players import (
    Average,
    BalanceSetting,
    Epoch,
    check_balance,
    projection_tolerance,
    start_balance,
)
from maxmargin.structures.base import FloatArray


@dataclass(frozen=True, eq=False)
class ExtragradientState:
    """Current point, its ``g(z)``, the average since the last restart and the step size."""

    weights: FloatArray
    z: FloatArray
    g: FloatArray
    beta: float
    epoch: Epoch
    average: Average
    iteration: int = 0
    warm: Any = None


@dataclass(frozen=True, kw_only=True)
class Extragradient(Solver):
    """Settings of the extragradient method. ``Extragradient.plain()`` is the paper's own version.

    Attributes:
        beta: the first step size.
        nu: threshold of the Armijo rule, in (0, 1).
        growth: factor by which the step grows after an easy iteration; 1 never lets it grow.
        balance: ratio of the two players' steps; "auto" starts from their radii and adapts at restarts.
        restart: whether to restart when the certified gap has halved.
        inexact: projections of iteration ``t`` are exact to ``inexact / (t + 1)^1.5``, a summable error; 0 means 1e-8.
        max_iter: iteration limit when the caller gives none.
    """

    beta: float = 1.0
    nu: float = 0.9
    growth: float = 1.5
    balance: BalanceSetting = "auto"
    restart: bool = True
    inexact: float = 1e-2
    max_iter: int = 5000

    def __post_init__(self) -> None:
        if not 0 < self.nu < 1:
            raise ValueError(f"nu must be in (0, 1), got {self.nu!r}")
        if self.beta <= 0 or self.growth < 1 or self.inexact < 0:
            raise ValueError("Extragradient needs beta > 0, growth >= 1 and inexact >= 0")
        check_balance(self.balance)

    @classmethod
    def plain(cls, **settings: Any) -> Extragradient:
        """The 2006 paper's version: one step size for both players, never growing, no restarts, exact projections."""
        paper: dict[str, Any] = {"growth": 1.0, "balance": 1.0, "restart": False, "inexact": 0.0}
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
            epoch=Epoch(w, z, start_balance(problem, self.balance, z)),
            average=Average.empty(problem, keep_z=self.restart),
        )

    def step(self, run: Run, state: ExtragradientState) -> ExtragradientState:
        """Predict with an accepted step size, then correct."""
        problem, region, b = run.problem, run.problem.region, state.epoch.balance
        tol = projection_tolerance(self.inexact, state.iteration)
        w, z, beta = state.weights, state.z, state.beta
        grad_w = region.curvature * w + state.g
        grad_z = problem.augmented(w)
        while True:
            w_p = region.project(w - beta * b * grad_w)
            points = run.project(problem, z + (beta / b) * grad_z, tol=tol, warm=state.warm)
            z_p = points.z
            g_p = problem.gradient(z_p)
            grad_w_p = region.curvature * w_p + g_p
            grad_z_p = problem.augmented(w_p)
            moved = np.sum((w - w_p) ** 2) / b + b * np.sum((z - z_p) ** 2)
            if moved == 0.0:  # u_p = u: a solution
                return replace(state, average=self._averaged(run, state, beta, w_p, g_p, z_p))
            turned = b * np.sum((grad_w - grad_w_p) ** 2) + np.sum((grad_z - grad_z_p) ** 2) / b
            ratio = beta * float(np.sqrt(turned / moved))
            if not np.isfinite(ratio):
                raise NonFiniteError("the step ratio is not finite")
            if ratio <= self.nu:
                break
            beta *= 2.0 / 3.0 * min(1.0, 1.0 / ratio)
        w_c = region.project(w - beta * b * grad_w_p)
        corrected = run.project(problem, z + (beta / b) * grad_z_p, tol=tol, warm=points.warm)
        easy = ratio <= 0.5 * self.nu
        return ExtragradientState(
            weights=w_c,
            z=corrected.z,
            g=problem.gradient(corrected.z),
            beta=beta * self.growth if easy else beta,
            epoch=state.epoch,
            average=self._averaged(run, state, beta, w_p, g_p, z_p),
            iteration=state.iteration + 1,
            warm=corrected.warm,
        )

    def _averaged(
        self, run: Run, state: ExtragradientState, beta: float, w: FloatArray, g: FloatArray, z: FloatArray
    ) -> Average:
        return state.average.add(beta, w, g, run.problem.loss(z), z)

    def propose(self, run: Run, state: ExtragradientState) -> Sequence[Proposal]:
        """The last point, and the average since the last restart."""
        last = Proposal(state.weights, state.g, run.problem.loss(state.z))
        return [last] if state.average.total == 0.0 else [last, state.average.proposal()]

    def observe(self, run: Run, state: ExtragradientState, certificates: Sequence[Certificate]) -> ExtragradientState:
        """Restart from the better candidate once its own gap has halved."""
        if not self.restart or len(certificates) < 2:
            return state
        last, average = certificates
        use_average = average.gap < last.gap and state.average.z is not None
        if not state.epoch.is_over(average if use_average else last):
            return state
        w, z, g = state.weights, state.z, state.g
        if use_average and state.average.z is not None:
            w, z, g = state.average.weights, state.average.z, state.average.g
        gap = min(last.gap, average.gap)
        return replace(
            state,
            weights=w,
            z=z,
            g=g,
            epoch=state.epoch.next(w, z, gap, adapt=self.balance == "auto"),
            average=Average.empty(run.problem, keep_z=True),
        )

    def duals(self, state: ExtragradientState) -> FloatArray:
        """The current z."""
        return state.z
