"""Projected subgradient steps with averaging: the baseline of Taskar, Lacoste-Julien and Jordan (2006), any hinge.

Problem: ``min_{w in W} f(w) = penalty(w) + H(w)``, over every region, rescaling and slack. With the most violated
outputs ``z_i`` at ``w_t``, their slacks ``zeta_i`` and factors ``m_i``, a subgradient of ``H`` is

    g_t = sum_i zeta_i m_i (F_i z_i - F_i y_i),      w_{t+1} = P(w_t - eta_t (w_t / C + g_t))

``P`` projects onto ``W``, in an L2 region also onto the ball that must hold a solution (``norm_bound``), which keeps
the steps bounded whatever ``C`` and the slack. Steps, with ``D`` that bound:

    step_size="auto", C infinite   eta_t = D / sqrt(sum_{s <= t} ||w_s / C + g_s||^2), plain averages
    step_size="auto", finite C     eta_t = 2 C / (t + 1) or the above if that is smaller, averages with weights t
    step_size=a number             eta_t = step_size / sqrt(t), plain averages: the paper's

The gap falls like ``D G / sqrt(t)``, with finite C also like ``C G^2 / t``, for subgradients of lengths up to ``G``.
Without any regularization D is the distance traveled so far. With quadratic slack ``H`` is smooth and steps above
``1/L`` only overshoot: there ``2 C / (t + 1)`` starts ``2 C L`` iterations late, ``L = ||g||^2 / (2 H)`` at the start.

The certificate's other player is the average, with the weights of the averaged ``w``, of ``(g_t, loss_t)``: a convex
combination of outputs, hence feasible, for which bounds on the regret against weights no longer than ``D`` bound the
gap. With quadratic slack ``zeta`` is averaged example by example, as its squares count.

Cost per iteration: one argmax pass, one pass over the features each way; memory: a few weight vectors, and packed
vectors of one shard.

References: Taskar, Lacoste-Julien and Jordan (2006), section 5; Ratliff, Bagnell and Zinkevich (2007); the steps and
averages for finite C: Lacoste-Julien, Schmidt and Bach (2012); for infinite C: Streeter and McMahan (2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from maxmargin import _checks
from maxmargin._vectors import norm, squared
from maxmargin.execution import Piece
from maxmargin.optimization.certificate import Proposal
from maxmargin.optimization.checkpoints.saved import StateDict, count, number, require, vector
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.optimization.solver import Solver, Start
from maxmargin.problem import BaseProblem, MostViolated, Problem
from maxmargin.structures.base import SHARD_PARTS, FloatArray


@dataclass(frozen=True, eq=False)
class Outputs:
    """Outputs of all examples as certificates see them; convex combinations are those of feasible points.

    Attributes:
        g: ``sum_i zeta_i m_i df_i``, shape ``(n_weights,)``.
        loss: ``sum_i zeta_i l_i``, with the example weights.
        zeta: ``zeta_i`` with quadratic slack, shape ``(n_examples,)``; else empty.
    """

    g: FloatArray
    loss: float
    zeta: FloatArray

    @classmethod
    def gold(cls, problem: BaseProblem) -> Outputs:
        """The gold outputs: nothing is wrong."""
        size = problem.n_examples if problem.slack == "quadratic" else 0
        return cls(np.zeros(problem.n_weights), 0.0, np.zeros(size))

    def mix(self, other: Outputs, share: float) -> Outputs:
        """``(1 - share) self + share other``."""
        return Outputs(
            self.g + share * (other.g - self.g),
            self.loss + share * (other.loss - self.loss),
            self.zeta + share * (other.zeta - self.zeta),
        )

    def proposal(self, problem: BaseProblem, weights: FloatArray) -> Proposal:
        """With these weights, as a candidate for certification."""
        squares = float((problem.scale * self.zeta**2).sum()) if problem.slack == "quadratic" else 0.0
        return Proposal(weights, self.g, self.loss, squares)


def most_violated_outputs(run: Run, weights: FloatArray) -> tuple[float, Outputs]:
    """``H(w)`` and the outputs that attain it: one argmax pass; NonFiniteError if something is not finite."""
    loss, g, zetas = run.violated_sums(_outputs, weights)
    hinge = run.found.value
    if not (np.isfinite(hinge) and np.isfinite(g).all()):
        raise NonFiniteError("a subgradient is not finite")
    return hinge, Outputs(g, loss, np.concatenate(zetas) if zetas else np.zeros(0))


def _outputs(piece: Piece, memory: Any, violated: MostViolated) -> tuple[float, FloatArray, list[FloatArray]]:
    """Loss and features of a piece's most violated outputs, and with quadratic slack their slacks."""
    problem = piece.problem
    zeta = problem.slack_slope(violated.value)
    loss = float((zeta * violated.loss).sum())
    return loss, _difference(problem, violated, zeta), [zeta] if problem.slack == "quadratic" else []


def _difference(shard: Problem, violated: MostViolated, zeta: FloatArray) -> FloatArray:
    """``sum_i zeta_i m_i (F_i z_i - F_i y_i)`` of a piece."""
    if shard.rescaling == "margin" and shard.slack == "linear":
        return shard.gradient(violated.z)
    delta = violated.z.copy()
    delta[shard.gold_point.index] -= shard.gold_point.value
    return shard.features.adjoint(shard.structure.to_parts(zeta * violated.factor) * delta)


@dataclass(frozen=True, eq=False)
class ProjectedSubgradientState:
    """The last weights, the averages of all weights and outputs, and the sums that set the step size."""

    weights: FloatArray
    mean: FloatArray
    outputs: Outputs
    total: float = 0.0
    squares: float = 0.0
    """Sum of the squared lengths of all subgradients."""
    bound: float = np.inf
    """Length of the longest weights that a solution may have."""
    late: float = 0.0
    """How many iterations late the first step is, see the module."""
    distance: float = 0.0
    """How far the weights have come from the first ones at most."""
    first: FloatArray | None = None
    iteration: int = 0


_NUMBERS = {"total": False, "squares": False, "bound": True, "late": False, "distance": False}
"""Numbers of a state, and whether they may be infinite."""


@dataclass(frozen=True, kw_only=True)
class ProjectedSubgradient(Solver):
    """Settings of the projected subgradient method.

    Attributes:
        step_size: the first step size, of steps that fall like ``1/sqrt(t)``; "auto" needs none, see the module.
        average: propose the averaged weights besides the last ones, for one more argmax pass per certificate.
        max_iter: iteration limit when the caller gives none.
    """

    step_size: float | Literal["auto"] = "auto"
    average: bool = True
    max_iter: int = 2000
    shard_size = SHARD_PARTS
    shards_unsupported = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _checks.is_one_of(self.step_size, "auto"):
            _checks.positive("step_size", self.step_size)

    def init(self, run: Run, start: Start) -> ProjectedSubgradientState:
        """Start at the given weights, by default zero."""
        w = start.weights_for(run.problem)
        return ProjectedSubgradientState(weights=w, mean=w, outputs=Outputs.gold(run.problem), first=w)

    def step(self, run: Run, state: ProjectedSubgradientState) -> ProjectedSubgradientState:
        """One subgradient step; the averages take in the point where the subgradient was taken."""
        region, t = run.problem.region, state.iteration + 1
        hinge, outputs = most_violated_outputs(run, state.weights)
        bound, late = state.bound, state.late
        if t == 1:
            # No solution is worse than the first weights.
            bound = region.norm_bound(region.penalty(state.weights) + hinge)
            if run.problem.slack == "quadratic" and hinge > 0.0 and region.curvature > 0.0:
                # H is smooth: 2 L / mu with L >= ||g||^2 / (2 H).
                late = squared(outputs.g) / (region.curvature * hinge)
        # A penalty without a gradient enters by its proximal step.
        gradient = (region.curvature if region.smooth else 0.0) * state.weights + outputs.g
        squares = state.squares + squared(gradient)
        amount = 1.0
        if self.step_size != "auto":
            eta = float(self.step_size) / np.sqrt(t)
        elif region.curvature > 0.0:
            eta, amount = 2.0 / (region.curvature * (t + 1 + late)), t + late
            if squares > 0.0:
                eta = min(eta, bound / np.sqrt(squares))
        else:
            length = norm(gradient)
            # Without regularization: at first as far as the hinge's linear model needs to reach 0.
            far = bound if np.isfinite(bound) else max(state.distance, hinge / length if length > 0.0 else 0.0)
            eta = far / np.sqrt(squares) if squares > 0.0 else 0.0
        moved = state.weights - eta * gradient
        w = region.clip_norm(region.project(moved) if region.smooth else region.prox(moved, eta), bound)
        share = amount / (state.total + amount)
        assert state.first is not None
        return replace(
            state,
            weights=w,
            mean=state.mean + share * (state.weights - state.mean),
            outputs=state.outputs.mix(outputs, share),
            total=state.total + amount,
            squares=squares,
            bound=bound,
            late=late,
            distance=max(state.distance, norm(w - state.first)),
            iteration=t,
        )

    @property
    def checkpoint_unsupported(self) -> str:
        """Empty: all of it can be saved."""
        return ""

    def state_dict(self, state: ProjectedSubgradientState) -> StateDict:
        """The weights, the averages and the sums."""
        outputs = {f"outputs.{name}": getattr(state.outputs, name) for name in ("g", "loss", "zeta")}
        names = ("weights", "mean", "first", *_NUMBERS, "iteration")
        return {name: getattr(state, name) for name in names} | outputs

    def load_state_dict(self, run: Run, saved: StateDict) -> ProjectedSubgradientState:
        """The same state of the same problem."""
        n, gold = run.problem.n_weights, Outputs.gold(run.problem)
        iteration = count(saved, "iteration")
        require(iteration == run.counters.iterations, "its state is of another iteration than its counters")
        zeta = vector(saved, "outputs.zeta", len(gold.zeta))
        require((zeta >= 0.0).all(), "its slacks are negative")
        state = ProjectedSubgradientState(
            weights=vector(saved, "weights", n),
            mean=vector(saved, "mean", n),
            first=vector(saved, "first", n),
            outputs=Outputs(vector(saved, "outputs.g", n), number(saved, "outputs.loss"), zeta),
            iteration=iteration,
        )
        numbers: dict[str, Any] = {
            name: number(saved, name, least=0.0, infinite=infinite) for name, infinite in _NUMBERS.items()
        }
        return replace(state, **numbers)

    def propose(self, run: Run, state: ProjectedSubgradientState) -> Sequence[Proposal]:
        """The last weights and the averaged ones, both with the averaged outputs."""
        last = state.outputs.proposal(run.problem, state.weights)
        return [last, replace(last, weights=state.mean)] if self.average and state.iteration else [last]
