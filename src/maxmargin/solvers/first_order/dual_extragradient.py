"""Dual extragradient (Nesterov 2003; Taskar, Lacoste-Julien and Jordan 2005), stored and memory-efficient.

Per iteration, with the gradient operator ``G`` of the saddle point and projections ``P`` onto ``W x Z``:

    v = P(center + eta s),   u = P(v - eta G(v)),   s <- s - G(u),   result: the average of u

(eq. 18). In ball form the gap of the average after ``t`` iterations is at most ``(D_w + D_z) L / t`` with ``eta = 1/L``
(eq. 19), or ``2 sqrt(D_w D_z) L / t`` with balanced steps. In entropic geometry the steps may differ: then ``s`` and
the average are weighted by them, and they follow the condition from which the bound is derived. Cost per iteration:
two projections of every example, one pass over the features each way for two vectors.

``store_duals=False`` keeps no packed vector between iterations (section 5): ``s_z = t (F' wbar + c)`` is linear in the
average weights, so each shard of examples is rebuilt, used and forgotten; only the projections' duals stay, to start
the next ones warm. Same iterates as the stored form. Restarts need a stored center, so only the stored form has
them; the other one may start over twice, early on, to correct the balance of the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from maxmargin import _checks
from maxmargin._vectors import dot
from maxmargin.optimization.base import NonFiniteError, Run, Start
from maxmargin.optimization.certificate import Certificate, Proposal
from maxmargin.problem import Problem
from maxmargin.solvers.first_order.geometry import Euclidean
from maxmargin.solvers.first_order.players import StructuresPoint, WeightsPlayer, WeightsPoint
from maxmargin.solvers.first_order.saddle_point import Average, BregmanSolver, adapted_balance
from maxmargin.structures.base import FloatArray

USE = 0.8
"""An adaptive step aims at using this share of the proof's allowance."""

GROWTH = 1.25
"""The largest factor between adaptive steps."""


@dataclass(frozen=True, eq=False)
class Epoch:
    """The time since the last restart: where it began, the gap there, and the balance it uses.

    Attributes:
        weights: where the weights player began.
        structures: where the structures player began; None for the center of every shard (memory-efficient form).
        proposal: that beginning as a candidate for certification.
        balance: ratio of the players' steps.
        gap: the certified gap of the beginning.
    """

    weights: WeightsPoint
    structures: StructuresPoint | None
    proposal: Proposal
    balance: float
    gap: float = np.inf


@dataclass(frozen=True, eq=False)
class Last:
    """The results of the last step that later steps need.

    Attributes:
        weights: ``u_w``.
        structures: ``u_z``; None in the memory-efficient form.
        proposal: ``u`` as a candidate for certification.
        eta: its step.
        turn: ``G_w(u) - G_w(v)`` and ``u_w - v_w``.
        log_partition: of ``u_z``, summed.
        divergence: ``d(v, u)``, balanced; for adaptive steps, 0 otherwise.
    """

    weights: WeightsPoint
    structures: StructuresPoint | None
    proposal: Proposal
    eta: float
    turn: tuple[FloatArray, FloatArray]
    log_partition: float
    divergence: float


@dataclass(frozen=True, eq=False)
class Pass:
    """The structures player's part of one iteration: sums over all shards.

    Attributes:
        g_v: ``g(v_z)``; ``g_u``: ``g(u_z)``.
        loss: that of ``u_z``.
        log_partition_v: summed; ``log_partition_u`` likewise; 0 in Euclidean geometry.
        structures: ``u_z`` of the last shard.
        warm: where the projections of the next pass start from.
        traveled: the divergence of ``u_z`` from the center where it was asked for, else None.
    """

    g_v: FloatArray
    g_u: FloatArray
    loss: float
    log_partition_v: float
    log_partition_u: float
    structures: StructuresPoint
    warm: tuple[tuple[Any, Any], ...]
    traveled: float | None


def _divergence(problem: Problem, v_w: WeightsPoint, done: Pass, step: float) -> float:
    """``KL(u || v)`` of distributions whose potentials differ by ``step (F'v_w + c)``."""
    along = dot(v_w.weights, done.g_u + problem.gold_features) + done.loss - problem.constant
    return max(0.0, step * along - done.log_partition_u + done.log_partition_v)


@dataclass(frozen=True, eq=False)
class DualExtragradientState:
    """The accumulated gradients ``s = sum eta G(u)``, the average of ``u``, the last ``u`` and the step size.

    ``sum_z`` is None in the memory-efficient form; ``warm`` holds the duals of the two projections of every shard;
    ``before`` is the state before the last step, in case that turns out too long, and ``credit`` what adaptive steps
    have left over of the proof's allowance.
    """

    epoch: Epoch
    average: Average
    sum_w: FloatArray
    sum_z: FloatArray | None
    eta: float
    warm: tuple[tuple[Any, Any], ...]
    last: Last | None = None
    before: DualExtragradientState | None = None
    credit: float = 0.0
    iteration: int = 0


@dataclass(frozen=True, kw_only=True)
class DualExtragradient(BregmanSolver):
    """Settings of the dual extragradient method. ``DualExtragradient.plain()`` is the 2005 report's first version.

    Attributes:
        store_duals: keep the structures player's vectors between iterations; False needs memory for one shard only.
        restart: whether to restart from the average (in entropic geometry, the last point) when its certified gap has
            halved; in the memory-efficient form, whether to start over with a better balance after 16 and 128
            iterations. With ``balance="auto"`` restarts also adapt the balance.
        step_factor: multiple of the safe step ``1/L``.
        adaptive: whether in entropic geometry, where ``1/L`` is too careful by far, the step follows the condition of
            the method's proof instead of its bound.
        shard_parts: size of the shards of the memory-efficient form, in parts.
        geometry, balance, inexact, max_iter: see :class:`BregmanSolver`.
    """

    store_duals: bool = True
    restart: bool = True
    step_factor: float = 1.0
    adaptive: bool = True
    shard_parts: int = 1_000_000
    needs = ("smooth",)
    published: ClassVar[dict[str, Any]] = {"geometry": Euclidean(), "restart": False, "adaptive": False}

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.positive("step_factor", self.step_factor)
        _checks.integer("shard_parts", self.shard_parts, least=1)

    @property
    def shard_size(self) -> int | None:
        """None if duals are stored."""
        return None if self.store_duals else self.shard_parts

    def _eta(self, run: Run, balance: float) -> float:
        """``1/L`` for the operator ``[[b curvature, F], [-F', 0]]``; features that are all zero allow any step."""
        a = balance * run.problem.region.curvature
        norm = 0.5 * (a + float(np.hypot(a, 2.0 * self.geometry_for(run.problem).lipschitz(run))))
        return self.step_factor / (norm or 1.0)

    def init(self, run: Run, start: Start) -> DualExtragradientState:
        """The center: the given start, by default zero weights and the gold outputs or the uniform distribution."""
        problem = run.problem
        weights, structures = self.players(problem)
        w = weights.at(start.weights_for(problem))
        z = structures.start(run, start) if self.store_duals else None
        g, loss = -problem.gold_features, 0.0
        for shard in run.shards:
            at = z or structures.at(run, shard, structures.center(shard), tol=1e-8, warm=None)
            g += shard.feature_sum(at.z)
            loss += shard.loss(at.z)
        balance = self.start_balance(run, w, z)
        return DualExtragradientState(
            epoch=Epoch(w, z, Proposal(w.weights, g, loss), balance),
            average=Average.empty(problem, keep_z=self.store_duals),
            sum_w=np.zeros(problem.n_weights),
            sum_z=np.zeros(problem.structure.n_parts) if self.store_duals else None,
            eta=self._eta(run, balance),
            warm=tuple((None, None) for _ in run.shards),
        )

    def step(self, run: Run, state: DualExtragradientState) -> DualExtragradientState:
        """One pass: both projections of every example, shard by shard; then the weights player's two steps."""
        problem = run.problem
        weights, _ = self.players(problem)
        curvature, b, eta = problem.region.curvature, state.epoch.balance, state.eta
        v_w = weights.move(state.epoch.weights, -state.sum_w, b)
        done = self._pass(run, state, v_w)
        next_eta, credit = eta, state.credit
        if state.last is not None and self._adapts(problem):
            used, allowed = self._account(run, state, v_w, done)
            factor = min(max(USE * allowed / used, 0.5), GROWTH) if used > 0.0 else GROWTH
            credit += allowed - used
            if credit < 0.0 and state.before is not None:
                shorter = factor * state.last.eta
                return replace(state.before, eta=shorter, warm=done.warm, iteration=state.iteration + 1)
            next_eta *= factor
        u_w = weights.move(v_w, curvature * v_w.weights + done.g_v, eta * b)
        if not np.isfinite(u_w.weights).all():
            raise NonFiniteError("the weights are not finite")
        moved = u_w.weights - v_w.weights
        stored = done.structures if self.store_duals else None
        new = replace(
            state,
            average=state.average.add(eta, u_w.weights, done.g_u, done.loss, None if stored is None else stored.z),
            sum_w=state.sum_w - eta * (curvature * u_w.weights + done.g_u),
            sum_z=None if state.sum_z is None else state.sum_z + eta * problem.augmented(u_w.weights),
            eta=next_eta,
            credit=credit,
            before=replace(state, before=None) if self._adapts(problem) else None,
            last=Last(
                weights=u_w,
                structures=stored,
                proposal=Proposal(u_w.weights, done.g_u, done.loss),
                eta=eta,
                turn=(curvature * moved + done.g_u - done.g_v, moved),
                log_partition=done.log_partition_u,
                divergence=0.0
                if not self._adapts(problem)
                else weights.divergence(v_w, u_w) / b + b * _divergence(problem, v_w, done, eta / b),
            ),
            warm=done.warm,
            iteration=state.iteration + 1,
        )
        return self._rebalanced(run, new, weights, done.traveled) if done.traveled is not None else new

    def _pass(self, run: Run, state: DualExtragradientState, v_w: WeightsPoint) -> Pass:
        """The structures player's two steps of every shard, as sums."""
        problem, epoch = run.problem, state.epoch
        _, structures = self.players(problem)
        tol = self.projection_tolerance(state.iteration)
        b = epoch.balance
        measure = not self.store_duals and self._may_rebalance(run, state.iteration + 1)
        g_v, g_u = -problem.gold_features, -problem.gold_features
        loss, log_partition_v, log_partition_u, traveled = 0.0, 0.0, 0.0, 0.0
        warm, u_z = [], None
        for shard, (warm_v, warm_u) in zip(run.shards, state.warm, strict=True):
            if state.sum_z is not None and epoch.structures is not None:
                gradient = shard.augmented(v_w.weights)
                target = epoch.structures.coordinates + state.sum_z / b
            else:
                # s_z = (sum of steps) (F' wbar + c); before the first step it is zero whatever wbar is.
                gradient, step = shard.augmented_pair(v_w.weights, state.average.weights)
                step *= state.average.total / b
                target = structures.from_center(shard, step)
            v_z = structures.at(run, shard, target, tol=tol, warm=warm_v)
            gradient *= state.eta / b
            gradient += v_z.coordinates
            u_z = structures.at(run, shard, gradient, tol=tol, warm=warm_u)
            sum_v, sum_u = shard.feature_sum_pair(v_z.z, u_z.z)
            g_v += sum_v
            g_u += sum_u
            loss += shard.loss(u_z.z)
            log_partition_v += v_z.log_partition
            log_partition_u += u_z.log_partition
            if measure:
                begin = structures.at(run, shard, structures.center(shard), tol=tol, warm=None)
                traveled += structures.divergence(begin, u_z)
            warm.append((v_z.warm, u_z.warm))
        assert u_z is not None
        return Pass(g_v, g_u, loss, log_partition_v, log_partition_u, u_z, tuple(warm), traveled if measure else None)

    def _account(self, run: Run, state: DualExtragradientState, v_w: WeightsPoint, done: Pass) -> tuple[float, float]:
        """The last step's use of the proof's allowance, and the allowance: the bound holds while their sums agree.

        For the step from v over u to v', ``eta (G(u) - G(v))'(u - v')`` is used and ``d(v, u) + d(u, v')`` allowed. All
        terms come from sums of features, as the potentials of v' and u differ by ``eta/b F'(u_w - v_w)``.
        """
        weights, structures = self.players(run.problem)
        last, b = state.last, state.epoch.balance
        assert last is not None
        turn_w, moved = last.turn
        turned = dot(turn_w, last.weights.weights - v_w.weights) - dot(moved, last.proposal.g - done.g_v)
        linear = last.eta / b * dot(moved, done.g_v + run.problem.gold_features)
        far_z = max(0.0, linear - done.log_partition_v + last.log_partition)
        far = weights.divergence(last.weights, v_w) / b + b * far_z
        return max(0.0, last.eta * turned), last.divergence + far + b * structures.rounding(done.log_partition_v)

    def _may_rebalance(self, run: Run, iteration: int) -> bool:
        return self.restart and self.balance == "auto" and iteration in (16, 128) and run.problem.region.certifies

    def _rebalanced(
        self, run: Run, state: DualExtragradientState, weights: WeightsPlayer, traveled: float
    ) -> DualExtragradientState:
        """Memory-efficient form: start over after 16 and 128 iterations if the balance was off by more than twice.

        There is no center to restart from but the first one, so this happens twice at most; ``traveled`` is the
        divergence of the structures player from it.
        """
        reach = weights.divergence(state.epoch.weights, weights.at(state.average.weights))
        if reach == 0.0 or traveled == 0.0:
            return state
        balance = float(np.sqrt(reach / traveled))
        if 0.5 <= balance / state.epoch.balance <= 2.0:
            return state
        return self._restarted(run, state, replace(state.epoch, balance=balance))

    def _restarted(self, run: Run, state: DualExtragradientState, epoch: Epoch) -> DualExtragradientState:
        """The same run with an epoch that has just begun."""
        return replace(
            state,
            epoch=epoch,
            average=Average.empty(run.problem, keep_z=self.store_duals),
            sum_w=np.zeros_like(state.sum_w),
            sum_z=None if state.sum_z is None else np.zeros_like(state.sum_z),
            eta=state.eta if self._adapts(run.problem) else self._eta(run, epoch.balance),
            last=None,
            before=None,
            credit=0.0,
        )

    def propose(self, run: Run, state: DualExtragradientState) -> Sequence[Proposal]:
        """The average since the last restart (before the first step, the center).

        In entropic geometry, with adaptive steps, the last u too: a run restarts from it, as an average of
        distributions has no potentials.
        """
        if state.last is None:
            return [state.epoch.proposal]
        if self._averages(run.problem) or not self.adaptive:
            return [state.average.proposal()]
        return [state.average.proposal(), state.last.proposal]

    def _adapts(self, problem: Problem) -> bool:
        """Whether the step follows the proof's condition."""
        return self.adaptive and not self.players(problem)[1].euclidean

    def _averages(self, problem: Problem) -> bool:
        """Whether averages are points of both players, from which a run can continue."""
        return all(player.euclidean for player in self.players(problem))

    def observe(
        self, run: Run, state: DualExtragradientState, certificates: Sequence[Certificate]
    ) -> DualExtragradientState:
        """Restart from the average, or in entropic geometry from the last point, once its gap has halved."""
        certificate = certificates[-1]
        epoch = state.epoch
        if state.last is None:
            return replace(state, epoch=replace(epoch, gap=certificate.gap))
        stuck = not self.adaptive and not self._averages(run.problem)  # the last u was not certified
        if not self.restart or stuck or epoch.structures is None or certificate.gap > 0.5 * epoch.gap:
            return state
        weights, structures = self.players(run.problem)
        if self._averages(run.problem):
            assert state.average.z is not None
            w, proposal = weights.at(state.average.weights), state.average.proposal()
            z: StructuresPoint | None = StructuresPoint(state.average.z, state.average.z)
        else:
            w, z, proposal = state.last.weights, state.last.structures, state.last.proposal
        assert z is not None
        balance = epoch.balance
        if self.balance == "auto":
            far_z = structures.divergence(epoch.structures, z)
            balance = adapted_balance(balance, weights.divergence(epoch.weights, w), far_z)
        return self._restarted(run, state, Epoch(w, structures.inward(run, z), proposal, balance, certificate.gap))

    def duals(self, state: DualExtragradientState) -> FloatArray | None:
        """The average z, or the center just after a restart; None in the memory-efficient form."""
        if state.epoch.structures is None:
            return None
        return state.epoch.structures.z if state.average.total == 0.0 else state.average.z

    def potentials(self, state: DualExtragradientState) -> FloatArray | None:
        """Those of the last point, in entropic geometry."""
        point = state.epoch.structures if state.last is None else state.last.structures
        return None if point is None else point.potentials
