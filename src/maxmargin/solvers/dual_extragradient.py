"""Dual extragradient (Nesterov 2003; Taskar, Lacoste-Julien and Jordan 2005), stored and memory-efficient.

Per iteration, with the gradient operator ``G`` of the saddle point and projections ``P`` onto ``W x Z``:

    v = P(center + eta s),   u = P(v - eta G(v)),   s <- s - G(u),   result: the average of u

(eq. 18). In ball form the gap of the average after ``t`` iterations is at most ``(D_w + D_z) L / t`` with ``eta = 1/L``
(eq. 19), or ``2 sqrt(D_w D_z) L / t`` with balanced steps. Cost per iteration: two projections of every example, one
pass over the features each way for two vectors.

``store_duals=False`` keeps no packed vector between iterations (section 5): ``s_z = t (F' wbar + c)`` is linear in the
average weights, so each shard of examples is rebuilt, used and forgotten; only the projections' duals stay, to start
the next ones warm. Same iterates as the stored form. Restarts need a stored center, so only the stored form has
them; the other one may begin anew twice, early on, to correct the balance of the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin._vectors import norm, squared
from maxmargin.problem import Problem
from maxmargin.solvers.base import NonFiniteError, Run, Solver, Start, check_positive
from maxmargin.solvers.certificate import Certificate, Proposal
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


def lipschitz(problem: Problem, balance: float) -> float:
    """Norm of the operator ``[[b curvature, F], [-F', 0]]``: in balanced coordinates, with penalty 1/(2C) ||w||^2."""
    a = balance * problem.region.curvature
    return 0.5 * (a + float(np.hypot(a, 2.0 * problem.norm)))


@dataclass(frozen=True, eq=False)
class Epoch:
    """The time since the last restart: where it began, how large the gap was, and the balance it uses."""

    weights: FloatArray
    z: FloatArray
    balance: float
    gap: float = np.inf

    def is_over(self, certificate: Certificate) -> bool:
        """Restart when the best candidate's own gap is at most half of what it was at the last restart."""
        return certificate.gap <= 0.5 * self.gap

    def next(self, weights: FloatArray, z: FloatArray, gap: float, *, adapt: bool) -> Epoch:
        """A new epoch from here, with the balance adapted to the distances travelled in this one."""
        balance = adapted_balance(self.balance, weights - self.weights, z - self.z) if adapt else self.balance
        return Epoch(weights, z, balance, gap)


@dataclass(frozen=True, eq=False)
class DualExtragradientState:
    """The accumulated gradients ``s``, the average of ``u`` and the step sizes.

    ``sum_z`` is None in the memory-efficient form; ``shards`` and ``warm`` hold the pieces of the data that are
    treated one after the other and the duals of their two projections.
    """

    epoch: Epoch
    average: Average
    sum_w: FloatArray
    sum_z: FloatArray | None
    shards: tuple[Problem, ...]
    warm: tuple[tuple[Any, Any], ...]
    iteration: int = 0
    in_epoch: int = 0


@dataclass(frozen=True, kw_only=True)
class DualExtragradient(Solver):
    """Settings of the dual extragradient method. ``DualExtragradient.plain()`` is the report's own version.

    Attributes:
        store_duals: keep the structures player's vectors between iterations; False needs memory for one shard only.
        balance: ratio of the two players' steps; "auto" starts from their radii and adapts at restarts.
        restart: whether to restart from the average when its certified gap has halved; in the memory-efficient form,
            whether to begin anew with a better balance after 16 and 128 iterations.
        step_factor: multiple of the safe step ``1/L``.
        inexact: projections of iteration ``t`` are exact to ``inexact / (t + 1)^1.5``; 0 means 1e-8 throughout.
        shard_parts: size of the shards of the memory-efficient form, in parts.
        max_iter: iteration limit when the caller gives none.
    """

    store_duals: bool = True
    balance: BalanceSetting = "auto"
    restart: bool = True
    step_factor: float = 1.0
    inexact: float = 1e-2
    shard_parts: int = 1_000_000
    max_iter: int = 5000

    def __post_init__(self) -> None:
        check_positive(step_factor=self.step_factor, shard_parts=self.shard_parts, max_iter=self.max_iter)
        check_inexact(self.inexact)
        check_balance(self.balance)

    @classmethod
    def plain(cls, **settings: Any) -> DualExtragradient:
        """The 2005 report's version: one step size 1/L for both players, no restarts, exact projections."""
        paper: dict[str, Any] = {"balance": 1.0, "restart": False, "inexact": 0.0}
        return cls(**(paper | settings))

    def init(self, run: Run, start: Start) -> DualExtragradientState:
        """The center: zero weights and the gold outputs, unless told otherwise."""
        problem = run.problem
        w = start.weights_for(problem)
        z = start.z_for(problem) if self.store_duals else problem.gold
        shards = (problem,) if self.store_duals else tuple(problem.shards(self.shard_parts))
        return DualExtragradientState(
            epoch=Epoch(w, z, start_balance(run, self.balance, z)),
            average=Average.empty(problem, keep_z=self.store_duals),
            sum_w=np.zeros(problem.n_weights),
            sum_z=np.zeros(problem.structure.n_parts) if self.store_duals else None,
            shards=shards,
            warm=tuple((None, None) for _ in shards),
        )

    def step(self, run: Run, state: DualExtragradientState) -> DualExtragradientState:
        """One pass: both projections of every example, shard by shard."""
        problem, region, b = run.problem, run.problem.region, state.epoch.balance
        tol = projection_tolerance(self.inexact, state.iteration)
        eta = self.step_factor / (lipschitz(problem, b) or 1.0)  # features that are all zero allow any step
        eta_w, eta_z, t = eta * b, eta / b, state.in_epoch

        v_w = region.project(state.epoch.weights + eta_w * state.sum_w)
        g_v, g_u = np.zeros(problem.n_weights), np.zeros(problem.n_weights)
        loss, travelled, warm, u_z = 0.0, 0.0, [], None
        for shard, (warm_v, warm_u) in zip(state.shards, state.warm, strict=True):
            if state.sum_z is not None:
                scores_v = shard.augmented(v_w)
                target, center = state.sum_z, state.epoch.z
            else:
                # s_z = t (F' wbar + c); before the first step it is zero whatever wbar is.
                scores_v, scores_bar = shard.augmented_pair(v_w, state.average.weights)
                target, center = t * scores_bar, shard.gold
            points_v = run.project(shard, center + eta_z * target, tol=tol, warm=warm_v)
            points_u = run.project(shard, points_v.z + eta_z * scores_v, tol=tol, warm=warm_u)
            u_z = points_u.z
            shard_v, shard_u = shard.gradient_pair(points_v.z, u_z)
            g_v += shard_v
            g_u += shard_u
            loss += shard.loss(u_z)
            travelled += squared(u_z - center)
            warm.append((points_v.warm, points_u.warm))
        u_w = region.project(v_w - eta_w * (region.curvature * v_w + g_v))
        if not np.isfinite(u_w).all():
            raise NonFiniteError("the weights are not finite")
        sum_z = None if state.sum_z is None else state.sum_z + problem.augmented(u_w)
        new = replace(
            state,
            average=state.average.add(1.0, u_w, g_u, loss, u_z if self.store_duals else None),
            sum_w=state.sum_w - (region.curvature * u_w + g_u),
            sum_z=sum_z,
            warm=tuple(warm),
            iteration=state.iteration + 1,
            in_epoch=t + 1,
        )
        return new if self.store_duals else self._rebalanced(run, new, travelled)

    def _rebalanced(self, run: Run, state: DualExtragradientState, travelled: float) -> DualExtragradientState:
        """Memory-efficient form: begin anew after 16 and 128 iterations if the balance was off by more than twice.

        There is no center to restart from but the first one, so this happens twice at most; ``travelled`` is the
        squared distance of the structures player from it.
        """
        if not (
            self.restart and self.balance == "auto" and state.iteration in (16, 128) and run.problem.region.certifies
        ):
            return state
        reach = norm(state.average.weights - state.epoch.weights)
        if reach == 0.0 or travelled == 0.0:
            return state
        balance = reach / float(np.sqrt(travelled))
        if 0.5 <= balance / state.epoch.balance <= 2.0:
            return state
        return self._anew(run, state, replace(state.epoch, balance=balance))

    def _anew(self, run: Run, state: DualExtragradientState, epoch: Epoch) -> DualExtragradientState:
        """The same run with an epoch that has just begun."""
        return replace(
            state,
            epoch=epoch,
            average=Average.empty(run.problem, keep_z=self.store_duals),
            sum_w=np.zeros_like(state.sum_w),
            sum_z=None if state.sum_z is None else np.zeros_like(state.sum_z),
            in_epoch=0,
        )

    def propose(self, run: Run, state: DualExtragradientState) -> Sequence[Proposal]:
        """The average since the last restart (before the first step, the center)."""
        if state.in_epoch > 0:
            return [state.average.proposal()]
        z = state.epoch.z
        return [Proposal(state.epoch.weights, run.problem.gradient(z), run.problem.loss(z))]

    def observe(
        self, run: Run, state: DualExtragradientState, certificates: Sequence[Certificate]
    ) -> DualExtragradientState:
        """Restart from the average once its gap has halved."""
        (certificate,) = certificates
        if state.in_epoch == 0:
            return replace(state, epoch=replace(state.epoch, gap=certificate.gap))
        z = state.average.z
        if not self.restart or z is None or not state.epoch.is_over(certificate):
            return state
        w = state.average.weights
        return self._anew(run, state, state.epoch.next(w, z, certificate.gap, adapt=self.balance == "auto"))

    def duals(self, state: DualExtragradientState) -> FloatArray | None:
        """The average z, or the center just after a restart; None in the memory-efficient form."""
        if not self.store_duals:
            return None
        return state.epoch.z if state.average.total == 0.0 else state.average.z
