"""Dual extragradient (Nesterov 2003; Taskar, Lacoste-Julien and Jordan 2005), stored and memory-efficient.

The report's problem (8) is the ball form, its ``gamma`` our ``radius``: the sum of the hinges, not their mean. Per
iteration, with the gradient operator ``G`` of the saddle point and projections ``P`` onto ``W x Z``:

    v = P(center + eta s),   u = P(v - eta G(v)),   s <- s - G(u),   result: the average of u

(eq. 18). In ball form the gap of the average after ``t`` iterations is at most ``(D_w + D_z) L / t`` with ``eta = 1/L``
(eq. 19), or ``2 sqrt(D_w D_z) L / t`` with balanced steps. In entropic geometry the steps may differ: then ``s`` and
the average are weighted by them, and they follow the condition from which the bound is derived. Cost per iteration:
two projections of every example, one pass over the features each way for two vectors.

``store_duals=False`` keeps no packed vector between iterations (section 5): ``s_z = t (F' wbar + c)`` is linear in the
average weights, so each shard of examples is rebuilt, used and forgotten. Same iterates as the stored form. Where an
argmax or a projection can start from the last one's multipliers or vertices, ``warm_starts`` says whether these stay;
without them nothing is kept that grows with the examples. Restarts need a stored center, so only the stored form has
them; the other one may start over twice, early on, to correct the balance of the steps.

``store_weights=False`` is the other half of that section, for weights that outnumber the parts: vectors of the
weights' space are kept as sums of features (:mod:`maxmargin.solvers.first_order.weight_vectors`), again with the same
iterates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.optimization.certificate import Certificate, Proposal
from maxmargin.optimization.checkpoints.saved import StateDict, require, vector
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import BaseProblem, Problem
from maxmargin.solvers.first_order import dual_extragradient_pieces
from maxmargin.solvers.first_order.dual_extragradient_pieces import (
    Steps,
    Stored,
    center_features,
    first,
    light_pass,
    loaded,
    potentials_of,
    restarted,
    stored_pass,
    z_of,
)
from maxmargin.solvers.first_order.dual_extragradient_state import (
    DualExtragradientState,
    Epoch,
    Last,
    load_state_dict,
    state_dict,
)
from maxmargin.solvers.first_order.geometry import Euclidean
from maxmargin.solvers.first_order.players import WeightsPoint
from maxmargin.solvers.first_order.saddle_point import Average, BregmanSolver, adapted_balance, begin
from maxmargin.solvers.first_order.saved_points import check_sums
from maxmargin.solvers.first_order.weight_vectors import ImpliedWeights, StoredWeights, WeightVectors
from maxmargin.structures.base import FloatArray

USE = 0.8
"""An adaptive step aims at using this share of the proof's allowance."""

GROWTH = 1.25
"""The largest factor between adaptive steps."""

MANY_WEIGHTS = 4
"""From this many weights a part on, the weights player's vectors are kept as sums of features: in Euclidean geometry a
state then has 20 vectors over the parts, else four and seven over the weights."""


@dataclass(frozen=True, eq=False)
class Pass:
    """The structures player's part of one iteration: sums over all pieces.

    Attributes:
        g_v: ``g(v_z)``; ``g_u``: ``g(u_z)``.
        loss: that of ``u_z``.
        log_partition_v: summed; ``log_partition_u`` likewise; 0 in Euclidean geometry.
        traveled: the divergence of ``u_z`` from the center where it was asked for, else None.
    """

    g_v: FloatArray
    g_u: FloatArray
    loss: float
    log_partition_v: float
    log_partition_u: float
    traveled: float | None


def _divergence(vectors: WeightVectors, v_w: WeightsPoint, done: Pass, step: float) -> float:
    """``KL(u || v)`` of distributions whose potentials differ by ``step (F'v_w + c)``."""
    along = vectors.dot(v_w.weights, done.g_u + vectors.gold) + done.loss - vectors.problem.constant
    return max(0.0, step * along - done.log_partition_u + done.log_partition_v)


@dataclass(frozen=True, kw_only=True)
class DualExtragradient(BregmanSolver):
    """Settings of the dual extragradient method. ``DualExtragradient.plain()`` is the 2005 report's first version.

    Attributes:
        store_duals: keep the structures player's vectors between iterations; False needs memory for one shard only.
        warm_starts: whether every argmax and projection starts from the last one's multipliers or vertices, which are
            then kept for every example; False keeps nothing. "auto" keeps them with stored duals, and without where
            those of a shard take no more memory than a packed vector.
        store_weights: keep the weights player's vectors between iterations; False keeps vectors over the parts in their
            place, in a region that depends on the norm alone and with stored duals. "auto" does so where it can and
            there are four weights a part or more.
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
    warm_starts: bool | Literal["auto"] = "auto"
    store_weights: bool | Literal["auto"] = "auto"
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
        for name in ("warm_starts", "store_weights"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not _checks.is_one_of(value, "auto"):
                raise ValueError(f'{name} must be True, False or "auto", got {shown(value)}')
        if not self.store_duals and self.store_weights is False:
            raise ValueError("store_weights=False needs store_duals=True: the weights are sums over the duals")

    def unsupported(self, problem: BaseProblem) -> str | None:
        """Sums of features in place of weights need a region that only scales them."""
        if reason := super().unsupported(problem):
            return reason
        if self.store_weights is False and not problem.region.rotation_invariant:
            return (
                "store_weights=False needs a region that depends on the norm alone, without sign constraints; use "
                'store_weights="auto"'
            )
        return None

    @property
    def shards_unsupported(self) -> str:
        """Sums of features in place of weights are over all parts."""
        return "" if self.store_weights is not False else "with store_weights=False it keeps vectors over all parts"

    @property
    def shard_size(self) -> int | None:
        """None if duals are stored."""
        return None if self.store_duals else self.shard_parts

    @property
    def keeps_warm_starts(self) -> bool | Literal["auto"]:
        """Always, if duals are stored and nothing else is asked for."""
        return True if self.store_duals and self.warm_starts == "auto" else self.warm_starts

    def implies_weights(self, problem: BaseProblem) -> bool:
        """Whether the weights player's vectors are kept as sums of features."""
        if self.store_weights != "auto":
            return not self.store_weights
        many = isinstance(problem, Problem) and problem.n_weights >= MANY_WEIGHTS * problem.n_parts
        return many and self.store_duals and problem.region.rotation_invariant

    def _eta(self, run: Run, balance: float) -> float:
        """``1/L`` for the operator ``[[b curvature, F], [-F', 0]]``; features that are all zero allow any step."""
        a = balance * run.problem.region.curvature
        norm = 0.5 * (a + float(np.hypot(a, 2.0 * self.geometry_for(run.problem).lipschitz(run))))
        return self.step_factor / (norm or 1.0)

    def init(self, run: Run, start: Start) -> DualExtragradientState:
        """The center: the given start, by default zero weights and the gold outputs or the uniform distribution."""
        problem = run.problem
        weights, structures = self.players(problem)
        given = start.weights_for(problem)
        vectors: WeightVectors
        if self.implies_weights(problem):
            vectors = ImpliedWeights(run.whole, given if given.any() else None)
        else:
            vectors = StoredWeights(problem, weights)
        w = vectors.start(given)
        features, loss = begin(run, structures, start, store=self.store_duals)
        balance = self.start_balance(run, weights.at(given), stored=self.store_duals)
        if isinstance(vectors, ImpliedWeights):
            (features,) = run.sums(center_features, vectors.form)
        if self.store_duals:
            run.sums(first)
        return DualExtragradientState(
            vectors=vectors,
            epoch=Epoch(w, Proposal(w.weights, features - vectors.gold, loss), balance),
            average=Average.empty(vectors.zero()),
            sum_w=vectors.zero(),
            eta=self._eta(run, balance),
        )

    def step(self, run: Run, state: DualExtragradientState) -> DualExtragradientState:
        """One pass: both projections of every example, piece by piece; then the weights player's two steps."""
        problem, vectors = run.problem, state.vectors
        weights, adapts = vectors.player, self._adapts(problem)
        curvature, b, eta = problem.region.curvature, state.epoch.balance, state.eta
        v_w = weights.move(state.epoch.weights, -state.sum_w, b)
        done = self._pass(run, state, v_w)
        next_eta, credit = eta, state.credit
        if state.last is not None and adapts:
            used, allowed = self._account(state, v_w, done)
            factor = min(max(USE * allowed / used, 0.5), GROWTH) if used > 0.0 else GROWTH
            credit += allowed - used
            if credit < 0.0 and state.before is not None:
                shorter = factor * state.last.eta
                return replace(state.before, eta=shorter, iteration=state.iteration + 1)
            next_eta *= factor
        u_w = weights.move(v_w, curvature * v_w.weights + done.g_v, eta * b)
        if not np.isfinite(u_w.weights).all():
            raise NonFiniteError("the weights are not finite")
        moved = u_w.weights - v_w.weights
        new = replace(
            state,
            average=state.average.add(eta, u_w.weights, done.g_u, done.loss),
            sum_w=state.sum_w - eta * (curvature * u_w.weights + done.g_u),
            eta=next_eta,
            credit=credit,
            before=replace(state, before=None) if adapts else None,
            last=Last(
                weights=u_w,
                proposal=Proposal(u_w.weights, done.g_u, done.loss),
                eta=eta,
                turn=(curvature * moved + done.g_u - done.g_v, moved) if adapts else None,
                log_partition=done.log_partition_u,
                divergence=weights.divergence(v_w, u_w) / b + b * _divergence(vectors, v_w, done, eta / b)
                if adapts
                else 0.0,
            ),
            now=state.iteration + 1,
            iteration=state.iteration + 1,
        )
        return self._rebalanced(run, new, done.traveled) if done.traveled is not None else new

    def _pass(self, run: Run, state: DualExtragradientState, v_w: WeightsPoint) -> Pass:
        """The structures player's two steps of every piece, as sums."""
        problem, vectors, average, last = run.problem, state.vectors, state.average, state.last
        b, before = state.epoch.balance, state.before
        measures = not self.store_duals and self._may_rebalance(run, state.iteration + 1)
        steps = Steps(
            structures=self.players(problem)[1],
            form=vectors.form,
            weights=v_w.weights,
            average=average.weights,
            total=average.total / b,
            step=state.eta / b,
            tol=self.projection_tolerance(state.iteration),
            warm_starts=run.warm_starts,
            measures=measures,
        )
        run.counters.projections += problem.n_examples * (3 if measures else 2)
        if self.store_duals:
            stored = Stored(
                now=state.now,
                kept=() if not self._adapts(problem) else (state.now,) if before is None else (before.now, state.now),
                new=state.iteration + 1,
                last=None if last is None else (last.weights.weights, last.eta),
                balance=b,
                share=average.share(state.eta),
                averages=self._averages(problem),
            )
            found = run.sums(stored_pass, steps, stored)
        else:
            found = run.sums(light_pass, steps)
        sum_v, sum_u, loss, log_partition_v, log_partition_u, traveled = found
        gold = vectors.gold
        return Pass(sum_v - gold, sum_u - gold, loss, log_partition_v, log_partition_u, traveled if measures else None)

    def _account(self, state: DualExtragradientState, v_w: WeightsPoint, done: Pass) -> tuple[float, float]:
        """The last step's use of the proof's allowance, and the allowance: the bound holds while their sums agree.

        For the step from v over u to v', ``eta (G(u) - G(v))'(u - v')`` is used and ``d(v, u) + d(u, v')`` allowed. All
        terms come from sums of features, as the potentials of v' and u differ by ``eta/b F'(u_w - v_w)``.
        """
        vectors = state.vectors
        structures = self.players(vectors.problem)[1]
        last, b, dot = state.last, state.epoch.balance, vectors.dot
        assert last is not None
        assert last.turn is not None
        turn_w, moved = last.turn
        turned = dot(turn_w, last.weights.weights - v_w.weights) - dot(moved, last.proposal.g - done.g_v)
        linear = last.eta / b * dot(moved, done.g_v + vectors.gold)
        far_z = max(0.0, linear - done.log_partition_v + last.log_partition)
        far = vectors.player.divergence(last.weights, v_w) / b + b * far_z
        return max(0.0, last.eta * turned), last.divergence + far + b * structures.rounding(done.log_partition_v)

    def _may_rebalance(self, run: Run, iteration: int) -> bool:
        return self.restart and self.balance == "auto" and iteration in (16, 128) and run.problem.region.certifies

    def _rebalanced(self, run: Run, state: DualExtragradientState, traveled: float) -> DualExtragradientState:
        """Memory-efficient form: start over after 16 and 128 iterations if the balance was off by more than twice.

        There is no center to restart from but the first one, so this happens twice at most; ``traveled`` is the
        divergence of the structures player from it.
        """
        weights = state.vectors.player
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
            average=Average.empty(np.zeros_like(state.sum_w)),
            sum_w=np.zeros_like(state.sum_w),
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
            found = [state.epoch.proposal]
        elif self._averages(run.problem) or not self.adaptive:
            found = [state.average.proposal()]
        else:
            found = [state.average.proposal(), state.last.proposal]
        return [state.vectors.explicit(proposal) for proposal in found]

    def _adapts(self, problem: BaseProblem) -> bool:
        """Whether the step follows the proof's condition."""
        return self.adaptive and not self.players(problem)[1].euclidean

    def _averages(self, problem: BaseProblem) -> bool:
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
        if not self.restart or stuck or not self.store_duals or certificate.gap > 0.5 * epoch.gap:
            return state
        weights, structures = state.vectors.player, self.players(run.problem)[1]
        averages = self._averages(run.problem)
        if averages:
            w, proposal = weights.at(state.average.weights), state.average.proposal()
        else:
            w, proposal = state.last.weights, state.last.proposal
            run.counters.projections += 0 if structures.euclidean else 2 * run.problem.n_examples
        tol = self.projection_tolerance(state.iteration)
        (far_z,) = run.sums(restarted, structures, state.now, averages, tol)
        balance = epoch.balance
        if self.balance == "auto":
            balance = adapted_balance(balance, weights.divergence(epoch.weights, w), far_z)
        return self._restarted(run, state, Epoch(w, proposal, balance, certificate.gap))

    def settled_memory(self, memory: Any) -> Any:
        """Vectors whose warm starts can be saved."""
        return dual_extragradient_pieces.settled(memory)

    def memory_dict(self, state: DualExtragradientState, memory: Any) -> StateDict:
        """The vectors of this state and of the one before, and warm starts."""
        return dual_extragradient_pieces.memory_dict(state.numbers, memory)

    def state_dict(self, state: DualExtragradientState) -> StateDict:
        """The vectors and numbers of the state."""
        return state_dict(state)

    def load_state_dict(self, run: Run, saved: StateDict) -> DualExtragradientState:
        """The same state, once its sums are found to be those of the points with the data."""
        problem = run.problem
        weights, structures = self.players(problem)
        vectors: WeightVectors
        if self.implies_weights(problem):
            origin = vector(saved, "origin", problem.n_weights) if "origin" in saved else None
            vectors = ImpliedWeights(run.whole, origin)
        else:
            vectors = StoredWeights(problem, weights)
        state = load_state_dict(run, vectors, saved)
        require(state.iteration == run.counters.iterations, "its state is of another iteration than its counters")
        lasts = [one.last for one in (state, state.before) if one is not None and one.last is not None]
        whole = not self._adapts(problem) or all(last.turn is not None for last in lasts)
        require(whole, "its last step lacks the turn that adaptive steps need")
        found = run.sums(loaded, structures, vectors.form, state.numbers, self.store_duals)
        if found:
            features, loss, *counts = found
            steps = len(lasts) * run.session.n_pieces
            require(counts == [steps, 0 if self._averages(problem) else steps], "vectors of some pieces are missing")
            proposal = state.epoch.proposal if state.last is None else state.average.proposal()
            # In entropic geometry a run restarts near the point that was certified, not from it.
            if state.last is not None or structures.euclidean:
                check_sums(proposal.g, proposal.loss, features - vectors.gold, loss)
        return state

    def duals(self, run: Run, state: DualExtragradientState) -> FloatArray | None:
        """The average z, or the center just after a restart; None in the memory-efficient form."""
        return run.gather(z_of, state.now) if self.store_duals else None

    def potentials(self, run: Run, state: DualExtragradientState) -> FloatArray | None:
        """Those of the last point, in entropic geometry."""
        return run.gather(potentials_of, state.now) if self.store_duals else None
