"""Extragradient (Korpelevich 1976; Taskar, Lacoste-Julien and Jordan 2006) with an Armijo rule on the step.

Problem: ``min_{w in W} max_{z in Z} penalty(w) + w'g(z) + sum_i c_i'z_i + d_i``, the paper's (3) with its own ``C``:
neither divides by the number of examples. One iteration predicts
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
from maxmargin.execution import Piece
from maxmargin.optimization.certificate import Proposal
from maxmargin.optimization.checkpoints.saved import StateDict, count, number, require, vector
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import BaseProblem, Problem
from maxmargin.solvers.first_order.geometry import Euclidean
from maxmargin.solvers.first_order.players import StructuresPlayer, StructuresPoint, WeightsPoint
from maxmargin.solvers.first_order.saddle_point import Average, BregmanSolver, adapted_balance, at, begin
from maxmargin.solvers.first_order.saved_points import (
    average_dict,
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

LAST_ADAPTATION = 2048
"""After this many iterations the balance stays as it is, and the method is plain extragradient in fixed coordinates."""


@dataclass(frozen=True, eq=False)
class ExtragradientState:
    """Where the players stand, ``g(z)`` and the loss there, the average of the predictions, step size and balance.

    The structures player's points are with the data, by the number of the step that found them: ``now`` is that of the
    current one.
    """

    weights: WeightsPoint
    g: FloatArray
    loss: float
    beta: float
    balance: float
    average: Average
    origin: WeightsPoint
    now: int = 0
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

    def unsupported(self, problem: BaseProblem) -> str | None:
        """The penalty must have a gradient unless it is implicit."""
        return (None if self.implicit_penalty else self.missing(problem, "smooth")) or super().unsupported(problem)

    def init(self, run: Run, start: Start) -> ExtragradientState:
        """The given start, by default zero weights and the gold outputs or the uniform distribution."""
        problem = run.problem
        weights, structures = self.players(problem)
        w = weights.at(start.weights_for(problem))
        features, loss = begin(run, structures, start)
        balance = self.start_balance(run, w)
        run.sums(_first)
        return ExtragradientState(
            weights=w,
            g=features - problem.gold_features,
            loss=loss,
            beta=self.beta,
            balance=balance,
            average=Average.empty(np.zeros(problem.n_weights)),
            origin=w,
        )

    def step(self, run: Run, state: ExtragradientState) -> ExtragradientState:
        """Predict with an accepted step size, then correct: a pass over the data for each step size, one to correct.

        Where a distance is not Euclidean the rule looks at the corrected point, which is made in the same pass.
        """
        problem, b = run.problem, state.balance
        weights, structures = self.players(problem)
        tol = self.projection_tolerance(state.iteration)
        explicit = 0.0 if self.implicit_penalty else problem.region.curvature
        w, beta, gold = state.weights, state.beta, problem.gold_features
        euclidean = weights.euclidean and structures.euclidean
        done, new = state.iteration + 1, state.now + 1
        adapts = self.balance == "auto" and 4 <= done <= LAST_ADAPTATION and done.bit_count() == 1

        def move(gradient: FloatArray) -> WeightsPoint:
            return weights.move(w, gradient, beta * b, penalized=self.implicit_penalty)

        grad_w = explicit * w.weights + state.g
        while True:
            w_p = move(grad_w)
            run.counters.projections += problem.n_examples * (1 if euclidean else 2)
            trial = Trial(structures, state.now, w.weights, w_p.weights, beta / b, tol, new, adapts)
            features, loss, far_z, turn_z, *more = run.sums(_predict if euclidean else _predict_and_correct, trial)
            g_p = features - gold
            grad_w_p = explicit * w_p.weights + g_p
            predicted = weights.divergence(w, w_p) / b + b * far_z
            average = state.average.add(beta, w_p.weights, g_p, loss)
            if predicted == 0.0:  # u_p = u: a solution
                return replace(state, average=average, iteration=done)
            if euclidean:
                turn = b * squared(grad_w - grad_w_p) + turn_z / b
                if self.distance == "joint":
                    ratio = beta * float(np.sqrt(0.5 * turn / predicted))
                else:
                    far_w, far = norm(w.weights - w_p.weights), float(np.sqrt(2.0 * far_z))
                    ratio = beta * float(np.sqrt(turn) / (far_w / np.sqrt(b) + np.sqrt(b) * far))
            else:
                # The Bregman form of the rule looks at the corrected point as well.
                w_c = move(grad_w_p)
                log_partition, corrected_z = more[:2]
                turned = dot(grad_w_p - grad_w, w_p.weights - w_c.weights) - turn_z
                corrected = weights.divergence(w_p, w_c) / b + b * corrected_z
                room = predicted + corrected + b * structures.rounding(log_partition)
                ratio = max(0.0, beta * turned / room)
            if not np.isfinite(ratio):
                raise NonFiniteError("the step ratio is not finite")
            if ratio <= self.nu:
                break
            beta *= 2.0 / 3.0 * min(1.0, 1.0 / ratio)
        if euclidean:
            w_c = move(grad_w_p)
            run.counters.projections += problem.n_examples
            features, loss, traveled = run.sums(_correct, trial)
        else:
            features, loss, traveled = more[2:]
        if adapts:
            b = adapted_balance(b, weights.divergence(state.origin, w_c), traveled)
        return replace(
            state,
            weights=w_c,
            g=features - gold,
            loss=loss,
            beta=beta * self.growth if ratio <= 0.5 * self.nu else beta,
            balance=b,
            average=average,
            now=new,
            iteration=done,
        )

    def propose(self, run: Run, state: ExtragradientState) -> Sequence[Proposal]:
        """The last point, and the average of the predictions."""
        last = Proposal(state.weights.weights, state.g, state.loss)
        averaged = self.average and state.average.total > 0.0
        return [last, state.average.proposal()] if averaged else [last]

    def settled_memory(self, memory: Any) -> Any:
        """Points whose warm starts can be saved."""
        points = {number: settled(point) for number, point in memory["points"].items()}
        same = all(points[number] is point for number, point in memory["points"].items())
        return memory if same else {**memory, "points": points}

    def memory_dict(self, state: ExtragradientState, memory: Any) -> StateDict:
        """The point of the structures player, and the first one."""
        return {**structures_dict("now", memory["points"][state.now]), "origin": memory["origin"].coordinates}

    def state_dict(self, state: ExtragradientState) -> StateDict:
        """The weights player's points, the sums and the step."""
        found = {name: getattr(state, name) for name in ("g", "loss", "beta", "balance", "now", "iteration")}
        points = weights_dict("now", state.weights) | weights_dict("origin", state.origin)
        return found | points | average_dict(state.average)

    def load_state_dict(self, run: Run, saved: StateDict) -> ExtragradientState:
        """The same state, once its sums are found to be those of the points with the data."""
        problem = run.problem
        (weights, structures), shape = self.players(problem), (problem.n_weights,)
        iteration = count(saved, "iteration")
        require(iteration == run.counters.iterations, "its state is of another iteration than its counters")
        beta, balance = (number(saved, name, least=0.0) for name in ("beta", "balance"))
        require(beta > 0.0 and balance > 0.0, "its steps are not positive")
        state = ExtragradientState(
            weights=load_weights(saved, "now", weights, shape),
            g=vector(saved, "g", problem.n_weights),
            loss=number(saved, "loss"),
            beta=beta,
            balance=balance,
            average=load_average(saved, shape),
            origin=load_weights(saved, "origin", weights, shape),
            now=count(saved, "now", most=iteration),
            iteration=iteration,
        )
        features, loss = run.sums(_loaded, structures, state.now)
        check_sums(state.g, state.loss, features - problem.gold_features, loss)
        return state

    def duals(self, run: Run, state: ExtragradientState) -> FloatArray | None:
        """The current z."""
        return run.gather(_z, state.now)

    def potentials(self, run: Run, state: ExtragradientState) -> FloatArray | None:
        """Those of the current z, in entropic geometry."""
        return run.gather(_potentials, state.now)


@dataclass(frozen=True, eq=False)
class Trial:
    """One step size, tried on every piece.

    Attributes:
        structures: the structures player.
        now: the number of the point where the step begins.
        weights: those of the weights player there, and ``predicted``: after its prediction.
        step: the structures player's step size.
        tol: the accuracy of projections.
        new: the number of the corrected point.
        measures: whether the divergence of the corrected point from the first one is asked for.
    """

    structures: StructuresPlayer
    now: int
    weights: FloatArray
    predicted: FloatArray
    step: float
    tol: float
    new: int
    measures: bool

    def move(self, problem: Problem, origin: StructuresPoint, gradient: FloatArray, warm: Any) -> StructuresPoint:
        """A step from a point."""
        return self.structures.at(problem, origin.coordinates + self.step * gradient, tol=self.tol, warm=warm)

    def corrected(self, problem: Problem, memory: Any, z: StructuresPoint) -> tuple[FloatArray, float, float]:
        """The features and the loss of a corrected point, and how far it is from the first one."""
        far = self.structures.divergence(memory["origin"], z) if self.measures else 0.0
        return problem.feature_sum(z.z), problem.loss(z.z), far


def _first(piece: Piece, memory: Any) -> tuple[tuple[()], Any]:
    return (), {"points": {0: memory["now"]}, "origin": memory["now"]}


def _loaded(piece: Piece, memory: Any, structures: StructuresPlayer, now: int) -> tuple[tuple[FloatArray, float], Any]:
    """The points that a file holds; their features and loss."""
    problem, saved = piece.problem, memory or {}
    z = load_structures(saved, "now", problem, structures, projections(problem, structures))
    origin = load_structures(saved, "origin", problem, structures, None)
    return (problem.feature_sum(z.z), problem.loss(z.z)), {"points": {now: z}, "origin": origin}


def _predict(piece: Piece, memory: Any, trial: Trial) -> tuple[tuple[Any, ...], Any]:
    """The prediction: its features and loss, how far it is, and by how much the gradient turned."""
    problem, z = piece.problem, memory["points"][trial.now]
    gradient, turned = problem.augmented_pair(trial.weights, trial.predicted)
    z_p = trial.move(problem, z, gradient, z.warm)
    far = trial.structures.divergence(z, z_p)
    gradient -= turned
    result = problem.feature_sum(z_p.z), problem.loss(z_p.z), far, squared(gradient)
    return result, {**memory, "predicted": (turned, z_p.warm)}


def _correct(piece: Piece, memory: Any, trial: Trial) -> tuple[tuple[FloatArray, float, float], Any]:
    """The correction after an accepted prediction."""
    problem, z = piece.problem, memory["points"][trial.now]
    turned, warm = memory["predicted"]
    z_c = trial.move(problem, z, turned, warm)
    fresh = {"points": {trial.new: z_c}, "origin": memory["origin"]}
    return trial.corrected(problem, memory, z_c), fresh


def _predict_and_correct(piece: Piece, memory: Any, trial: Trial) -> tuple[tuple[Any, ...], Any]:
    """Both, whether or not the prediction will be accepted."""
    problem, z, structures = piece.problem, memory["points"][trial.now], trial.structures
    gradient, turned = problem.augmented_pair(trial.weights, trial.predicted)
    z_p = trial.move(problem, z, gradient, z.warm)
    z_c = trial.move(problem, z, turned, z_p.warm)
    turn = dot(turned - gradient, z_p.z - z_c.z)
    found = problem.feature_sum(z_p.z), problem.loss(z_p.z), structures.divergence(z, z_p), turn, z_p.log_partition
    fresh = {"points": {trial.now: z, trial.new: z_c}, "origin": memory["origin"]}
    return (*found, structures.divergence(z_p, z_c), *trial.corrected(problem, memory, z_c)), fresh


def _z(piece: Piece, memory: Any, now: int) -> tuple[FloatArray | None, Any]:
    return at(memory["points"], now).z, memory


def _potentials(piece: Piece, memory: Any, now: int) -> tuple[FloatArray | None, Any]:
    return at(memory["points"], now).potentials, memory
