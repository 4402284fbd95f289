"""Implicit steps of exponentiated gradient: the weights of the step's end, in place of those of its beginning.

An explicit step ``theta_i <- theta_i + eta (F_i'w + c_i)`` at the weights of the old point must be shorter than the
curvature ``C ||F_i||^2`` of the dual allows, however little the losses gain by it. The implicit step takes the weights
of the new point: it maximizes ``D(z) - KL(z || p) / eta`` (a proximal point method of relative entropy), and its length
is free. The weights are the solution of the smooth problem

    min_w  phi(w) = 1/(2C) ||w||^2 - w'F y + 1/eta sum_i [A_i(theta_i + eta (F_i'w + c_i)) - A_i(theta_i)] + d

with ``A_i`` the log-partition, under the region's signs. It is solved by limited-memory BFGS (Liu and Nocedal 1989) in
units in which every weight has the same share of the curvature, so that the units of the features do not matter, and
with two-metric projection under signs (Bertsekas 1982). At weights ``w`` whose distributions have the marginals ``z``
the inner problem is off by at most ``penalty(w) + w'g(z) - min_v (penalty(v) + v'g(z))``; the step ends where that is a
tenth of the divergence that it paid for (``ENOUGH``). Steps grow from one to the next.

Cost: a sum-product pass and a pass over the features each way for every trial point. Memory: three packed vectors, and
``PAIRS`` pairs of weight vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maxmargin._vectors import dot, squared
from maxmargin.optimization.checkpoints.saved import StateDict, array, number, require, vector
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.problem import ROUNDING, BaseProblem
from maxmargin.structures.base import FloatArray

PAIRS = 8
"""Steps of the inner problem that its model of the curvature remembers."""

GROWTH = 4.0
"""Factor by which the step grows."""

ENOUGH = 0.1
"""The inner error that ends a step, as a share of the divergence from its beginning."""

TRIALS = 12
"""Attempts at an inner step before the model of the curvature is dropped, or without one the step is ended."""

LONGEST = 1e12
"""The largest potential that a step may add: marginals of larger ones are those of an argmax to rounding."""


@dataclass(frozen=True, eq=False)
class Trial:
    """The inner problem at some weights.

    Attributes:
        weights: the weights ``w``.
        value: ``phi(w)``, and ``rounding``: how large its rounding error may be.
        potentials: ``theta + eta (F'w + c)``, their marginals ``z`` and ``log_partition``.
        g: ``g(z)``, and ``loss``: that of ``z``.
        divergence: ``KL(z || p) / eta``.
        excess: a bound of the inner error.
    """

    weights: FloatArray
    value: float
    rounding: float
    potentials: FloatArray
    z: FloatArray
    log_partition: float
    g: FloatArray
    loss: float
    divergence: float
    excess: float


@dataclass(frozen=True, eq=False)
class ImplicitState:
    """A step under way.

    Attributes:
        center: potentials of the distributions ``p`` where it began, and ``center_log_partition``.
        eta: its length.
        trial: the best weights so far.
        pairs: the last inner steps, each with the change of the gradient.
        bound: the best lower bound of the objective so far, with its ``g`` and loss.
        sizes: ``||F'e_k||^2`` of every weight.
    """

    center: FloatArray
    center_log_partition: float
    eta: float
    trial: Trial
    pairs: tuple[tuple[FloatArray, FloatArray], ...]
    bound: tuple[float, FloatArray, float]
    sizes: FloatArray


def unsupported(problem: BaseProblem) -> str | None:
    """The reason why steps cannot be implicit, or None."""
    ridge = problem.region.ridge
    if ridge is None or np.isfinite(ridge.radius):
        return "implicit steps need a ridge penalty without a ball; use implicit=False, or SimplicialDecomposition"
    return None


def start(run: Run, potentials: FloatArray, weights: FloatArray, eta: float) -> ImplicitState:
    """The beginning of the first step."""
    log_partition = float(run.marginals(run.whole, potentials).value.sum())
    trial = _trial(run, potentials, log_partition, eta, weights)
    sizes = run.whole.weight_norms() ** 2
    state = ImplicitState(potentials, log_partition, eta, trial, (), (-np.inf, trial.g, trial.loss), sizes)
    return _bounded(run, state)


def state_dict(state: ImplicitState) -> StateDict:
    """All that is not worked out from the center and the weights of the trial."""
    return {
        "center": state.center,
        "eta": state.eta,
        "weights": state.trial.weights,
        "pairs": np.array(state.pairs).reshape(len(state.pairs), 2, len(state.sizes)),
        "bound": state.bound[1],
        "bound_loss": state.bound[2],
    }


def load_state_dict(run: Run, saved: StateDict) -> ImplicitState:
    """The trial again, at the same weights."""
    problem, uncounted = run.whole, run.uncounted()
    n = problem.n_weights
    center, eta = vector(saved, "center", problem.structure.n_parts), number(saved, "eta", least=0.0)
    require(eta > 0.0, "its step is not positive")
    log_partition = float(uncounted.marginals(problem, center).value.sum())
    trial = _trial(uncounted, center, log_partition, eta, vector(saved, "weights", n))
    pairs = array(saved, "pairs", np.float64, (None, 2, n))
    require(len(pairs) <= PAIRS and all(dot(*pair) > 0.0 for pair in pairs), "its model of the curvature is not one")
    g, loss = vector(saved, "bound", n), number(saved, "bound_loss")
    bound = problem.region.dual(g, loss), g, loss
    sizes = problem.weight_norms() ** 2
    return ImplicitState(center, log_partition, eta, trial, tuple((one, two) for one, two in pairs), bound, sizes)


def step(run: Run, state: ImplicitState) -> ImplicitState:
    """One inner step; where the last one was good enough, the next implicit step begins with it."""
    if state.trial.excess <= ENOUGH * state.trial.divergence:
        state = _next(run, state)
    direction = _direction(run, state)
    trial, best, gradient = state.trial, None, _gradient(run, state.trial)
    share = 1.0
    for attempt in range(TRIALS):
        weights = run.whole.region.project(trial.weights - share * direction)
        moved = weights - trial.weights
        found = _trial(run, state.center, state.center_log_partition, state.eta, weights)
        if found.value <= trial.value + 1e-4 * dot(moved, gradient) + trial.rounding:
            best = found
            break
        share *= 0.5 if attempt < 2 else 0.1
    if best is None:  # with a fresh model next time; without any the inner problem is solved to rounding
        return replace(state, pairs=()) if state.pairs else _next(run, state)
    change = _gradient(run, best) - gradient
    pairs = state.pairs
    if dot(moved, change) > 0.0:
        pairs = (*pairs, (moved, change))[-PAIRS:]
    return _bounded(run, replace(state, trial=best, pairs=pairs))


def _next(run: Run, state: ImplicitState) -> ImplicitState:
    """The beginning of the next implicit step: the last one ends at the trial point."""
    trial = state.trial
    eta = GROWTH * state.eta
    largest = float(np.abs(run.whole.augmented(trial.weights)).max(initial=0.0))
    if eta * largest > LONGEST:
        eta = state.eta
    begun = _trial(run, trial.potentials, trial.log_partition, eta, trial.weights)
    return replace(
        state, center=trial.potentials, center_log_partition=trial.log_partition, eta=eta, trial=begun, pairs=()
    )


def _trial(run: Run, center: FloatArray, center_log_partition: float, eta: float, weights: FloatArray) -> Trial:
    problem, region = run.whole, run.whole.region
    ascent = problem.augmented(weights)
    potentials = center + eta * ascent
    points = run.marginals(problem, potentials)
    log_partition, at_gold = float(points.value.sum()), dot(weights, problem.gold_features)
    g, loss, penalty = problem.gradient(points.z), problem.loss(points.z), region.penalty(weights)
    risen = log_partition - center_log_partition
    value = risen / eta - at_gold + problem.constant + penalty
    if not np.isfinite(value):
        raise NonFiniteError("the dual is not finite")
    response = region.best_response(g)
    assert response is not None
    excess = penalty + dot(weights, g) - (dot(response, g) + region.penalty(response))
    sizes = (abs(log_partition) + abs(center_log_partition)) / eta + abs(at_gold) + abs(problem.constant) + penalty
    return Trial(
        weights,
        value,
        ROUNDING * sizes,
        potentials,
        points.z,
        log_partition,
        g,
        loss,
        max(0.0, dot(ascent, points.z) - risen / eta),
        max(0.0, excess),
    )


def _gradient(run: Run, trial: Trial) -> FloatArray:
    return trial.g + run.whole.region.curvature * trial.weights


def _direction(run: Run, state: ImplicitState) -> FloatArray:
    """The inner step, downhill, from the model of the curvature; 0 where a sign constraint holds a weight."""
    region, gradient = run.whole.region, _gradient(run, state.trial)
    scale = 1.0 / (region.curvature + 0.25 * state.eta * state.sizes)  # a probability's variance is at most 1/4
    free = np.ones(len(gradient))
    if region.nonnegative is not None:
        free[region.nonnegative & (state.trial.weights <= 0.0) & (gradient > 0.0)] = 0.0
    known = []
    for moved, change in state.pairs:
        moved, change = free * moved, free * change
        product = dot(moved, change)
        if product > 1e-12 * np.sqrt(squared(moved) * squared(change)):
            known.append((moved, change, product))
    direction, shares = free * gradient, []
    for moved, change, product in reversed(known):
        shares.append(dot(moved, direction) / product)
        direction -= shares[-1] * change
    if known:
        _, change, product = known[-1]
        scale *= product / dot(change, scale * change)
    direction *= scale
    for moved, change, product in known:
        direction += (shares.pop() - dot(change, direction) / product) * moved
    return direction


def _bounded(run: Run, state: ImplicitState) -> ImplicitState:
    """With the trial point's lower bound if it is the best."""
    trial = state.trial
    dual = run.whole.region.dual(trial.g, trial.loss)
    return replace(state, bound=(dual, trial.g, trial.loss)) if dual > state.bound[0] else state
