"""Averaged projected gradient on the saddle point: eq. (16) of Taskar, Lacoste-Julien and Jordan (2005).

Problem: ``min_{w in W} max_{z in Z} L(w, z) = penalty(w) + w'g(z) + sum_i c_i'z_i + d_i``. Both players move at once,
each by a projected gradient step that takes the other's last choice as given:

    w_{t+1} = P_W(w_t - eta_t g(z_t)),      z_{t+1} = P_Z(z_t + eta_t (F'w_t + c))

from zero weights and the gold outputs. The points themselves circle around a saddle point, and constant steps may lead
away from it (the report's remark); the averages of all points so far are the result. A penalty enters by its proximal
step. With ``G_t`` the gradient of both players at ``(w_t, z_t)`` and ``S_t = sum_{s <= t} ||G_s||^2``, the gap of the
averages in a ball is at most the mean regret of two online gradient methods:

    step_size="auto"       eta_t = min(1 / ||F||_2, D / sqrt(S_t)):  gap <= (A^2 / (2 eta_t) + D sqrt(S_t)) / (t + 1)
    step_size=eta          constant steps:                           gap <= (B^2 / (2 eta) + eta S_t / 2) / (t + 1)
    step_size="constant"   constant steps 1 / ||F||_2, those of the report's dual extragradient method

where ``A`` is the diameter of ``W x Z`` and ``B`` its largest distance from the start. The gap falls like ``1/sqrt(t)``
with the first ones, while constant steps may stop at a gap of the size of ``eta``; extragradient methods have ``1/t``.
``D`` is the distance to go: the weights player's is the radius, or what a penalty allows, or without regularization the
distance traveled so far; the structures player's is that of the outputs most violated at zero weights. With a balance
``b`` all distances are measured in the coordinates ``(w / sqrt(b), sqrt(b) z)``.

Cost per iteration: one projection of every example, one pass over the features each way, half of an extragradient
iteration; memory: a few packed vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from maxmargin import _checks
from maxmargin._vectors import norm, squared
from maxmargin.execution import Piece
from maxmargin.optimization.certificate import Proposal
from maxmargin.optimization.checkpoints.saved import StateDict, count, number, require, vector
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.optimization.solver import Start
from maxmargin.solvers.first_order.players import StructuresPlayer, WeightsPoint
from maxmargin.solvers.first_order.saddle_point import Average, SaddlePointSolver, begin, mixed, ratio_of
from maxmargin.solvers.first_order.saved_points import (
    average_dict,
    check_feasible,
    check_sums,
    load_average,
    load_structures,
    load_weights,
    projections,
    settled,
    structures_dict,
    weights_dict,
)
from maxmargin.structures.base import FloatArray


@dataclass(frozen=True, eq=False)
class ProjectedGradientState:
    """Where the players stand, ``g(z)`` and the loss there, the averages of all points, and what sets the step size.

    With the data are the structures player's point, its average and its next gradient.
    """

    weights: WeightsPoint
    g: FloatArray
    loss: float
    average: Average
    balance: float
    gradient: float
    """The squared length of the structures player's gradient."""
    first: FloatArray
    """The first weights."""
    reach: tuple[float, float]
    """How far each player may have to go; infinity where unknown."""
    distance: float = 0.0
    """How far the weights have come from the first ones at most."""
    squares: float = 0.0
    """Sum of the squared lengths of all gradients, in balanced coordinates."""
    iteration: int = 0


@dataclass(frozen=True, kw_only=True)
class ProjectedGradient(SaddlePointSolver):
    """Settings of averaged projected gradient. ``ProjectedGradient.plain()`` is the 2005 report's, with steps 1/||F||.

    Attributes:
        step_size: "auto" for falling steps that need no setting, "constant" for ``1 / ||F||_2``, a number for other
            constant steps, see the module.
        last: propose the last point besides the average, for one more argmax pass per certificate.
        balance: ratio of the two players' steps; "auto" takes it from their distances to go.
        inexact, max_iter: see :class:`SaddlePointSolver`.
    """

    step_size: float | Literal["auto", "constant"] = "auto"
    last: bool = True
    published: ClassVar[dict[str, Any]] = {"step_size": "constant", "last": False}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _checks.is_one_of(self.step_size, "auto", "constant"):
            _checks.positive("step_size", self.step_size)

    def init(self, run: Run, start: Start) -> ProjectedGradientState:
        """The given start, by default zero weights and the gold outputs."""
        problem = run.problem
        weights, structures = self.players(problem)
        w = weights.at(start.weights_for(problem))
        features, loss = begin(run, structures, start)
        known = self.step_size != "auto" and self.balance != "auto"
        reach = (np.inf, np.inf) if known else self.reaches(run)
        g = features - problem.gold_features
        (gradient,) = run.sums(_first, w.weights)
        return ProjectedGradientState(
            weights=w,
            g=g,
            loss=loss,
            average=Average.empty(np.zeros(problem.n_weights)).add(1.0, w.weights, g, loss),
            balance=ratio_of(*reach) if self.balance == "auto" else float(self.balance),
            gradient=gradient,
            first=w.weights,
            reach=reach,
        )

    def step(self, run: Run, state: ProjectedGradientState) -> ProjectedGradientState:
        """One projected gradient step of both players at once; the averages take in where it ends."""
        problem, b = run.problem, state.balance
        weights, structures = self.players(problem)
        squares = state.squares + b * squared(state.g) + state.gradient / b
        if not np.isfinite(squares):
            raise NonFiniteError("a gradient is not finite")
        eta = self._step_size(run, state, squares)
        w = weights.move(state.weights, state.g, eta * b, penalized=True)
        tol, share = self.projection_tolerance(state.iteration), state.average.share(1.0)
        run.counters.projections += problem.n_examples
        features, loss, gradient = run.sums(_step, structures, eta / b, tol, w.weights, share)
        g = features - problem.gold_features
        return replace(
            state,
            weights=w,
            g=g,
            loss=loss,
            gradient=gradient,
            average=state.average.add(1.0, w.weights, g, loss),
            distance=max(state.distance, norm(w.weights - state.first)),
            squares=squares,
            iteration=state.iteration + 1,
        )

    def _step_size(self, run: Run, state: ProjectedGradientState, squares: float) -> float:
        if self.step_size not in ("auto", "constant"):
            return float(self.step_size)
        longest = 1.0 / (run.problem.norm or 1.0)  # features that are all zero allow any step
        if self.step_size == "constant" or squares == 0.0:
            return longest
        b, (reach_w, reach_z) = state.balance, state.reach
        far = np.hypot((reach_w if np.isfinite(reach_w) else state.distance) / np.sqrt(b), reach_z * np.sqrt(b))
        return min(longest, float(far / np.sqrt(squares)))

    def propose(self, run: Run, state: ProjectedGradientState) -> Sequence[Proposal]:
        """The averages, and the last point."""
        average = state.average.proposal()
        if not self.last or state.iteration == 0:
            return [average]
        return [average, Proposal(state.weights.weights, state.g, state.loss)]

    def settled_memory(self, memory: Any) -> Any:
        """A point whose warm start can be saved."""
        now = settled(memory["now"])
        return memory if now is memory["now"] else {**memory, "now": now}

    def memory_dict(self, state: ProjectedGradientState, memory: Any) -> StateDict:
        """The point of the structures player and its average; the gradient is worked out again."""
        return {**structures_dict("now", memory["now"]), "average": memory["average"]}

    def state_dict(self, state: ProjectedGradientState) -> StateDict:
        """The weights player's points, the sums and what sets the step size."""
        found = {name: getattr(state, name) for name in (*_NUMBERS, "g", "first", "iteration")}
        reach = {"reach_w": state.reach[0], "reach_z": state.reach[1]}
        return found | reach | weights_dict("now", state.weights) | average_dict(state.average)

    def load_state_dict(self, run: Run, saved: StateDict) -> ProjectedGradientState:
        """The same state, once its sums are found to be those of the points with the data."""
        problem = run.problem
        (weights, structures), n = self.players(problem), problem.n_weights
        iteration = count(saved, "iteration")
        require(iteration == run.counters.iterations, "its state is of another iteration than its counters")
        reach_w, reach_z = (number(saved, name, least=0.0, infinite=True) for name in ("reach_w", "reach_z"))
        w = load_weights(saved, "now", weights, (n,))
        state = ProjectedGradientState(
            weights=w,
            g=vector(saved, "g", n),
            average=load_average(saved, (n,)),
            first=vector(saved, "first", n),
            reach=(reach_w, reach_z),
            iteration=iteration,
            **{name: number(saved, name, least=least) for name, least in _NUMBERS.items()},
        )
        require(state.balance > 0.0, "its steps are not positive")
        features, loss, mean, mean_loss, gradient = run.sums(_loaded, structures, w.weights)
        gold = problem.gold_features
        check_sums(state.g, state.loss, features - gold, loss)
        check_sums(state.average.g, state.average.loss, mean - gold, mean_loss)
        require(abs(gradient - state.gradient) <= 1e-6 * (1.0 + gradient), "its gradient is not that of its weights")
        return state

    def duals(self, run: Run, state: ProjectedGradientState) -> FloatArray | None:
        """The average z."""
        return run.gather(_average)


_NUMBERS = {"loss": -np.inf, "balance": 0.0, "gradient": 0.0, "distance": 0.0, "squares": 0.0}
"""Numbers of a state, and the least that they may be."""


def _loaded(
    piece: Piece, memory: Any, structures: StructuresPlayer, weights: FloatArray
) -> tuple[tuple[FloatArray, float, FloatArray, float, float], Any]:
    """The point and the average that a file holds, and the gradient; features and losses, its squared length."""
    problem, saved = piece.problem, memory or {}
    now = load_structures(saved, "now", problem, structures, projections(problem, structures))
    average, gradient = vector(saved, "average", problem.n_parts), problem.augmented(weights)
    check_feasible(problem, average, "average")
    point, mean = ((problem.feature_sum(z), problem.loss(z)) for z in (now.z, average))
    return (*point, *mean, squared(gradient)), {"now": now, "average": average, "gradient": gradient}


def _first(piece: Piece, memory: Any, weights: FloatArray) -> tuple[tuple[float], Any]:
    """The first gradient and average."""
    gradient, point = piece.problem.augmented(weights), memory["now"]
    return (squared(gradient),), {"now": point, "average": point.z, "gradient": gradient}


def _step(
    piece: Piece, memory: Any, structures: StructuresPlayer, step: float, tol: float, weights: FloatArray, share: float
) -> tuple[tuple[FloatArray, float, float], Any]:
    """A projected step along the last gradient; ``weights`` are those of the next one."""
    problem, now = piece.problem, memory["now"]
    z = structures.at(problem, now.coordinates + step * memory["gradient"], tol=tol, warm=now.warm)
    gradient = problem.augmented(weights)
    fresh = {"now": z, "average": mixed(memory["average"], z.z, share), "gradient": gradient}
    return (problem.feature_sum(z.z), problem.loss(z.z), squared(gradient)), fresh


def _average(piece: Piece, memory: Any) -> tuple[FloatArray, Any]:
    return memory["average"], memory
