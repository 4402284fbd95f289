"""Training: from data and settings to a model.

A *round* trains on one set of examples, once per value of C, and keeps the weights with the best dev score, or the
smallest objective without dev data. Where gold outputs are partly unknown, further rounds train on examples that the
model has completed (the concave-convex procedure; Yu and Joachims 2009).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin._callers import callers_level
from maxmargin._messages import shown
from maxmargin.datasets import Examples, ShardedDataset
from maxmargin.encoders.base import Encoder
from maxmargin.losses import Hamming
from maxmargin.models.base import Model, Training
from maxmargin.optimization.callbacks import Validation
from maxmargin.optimization.checkpoints.files import Checkpoint
from maxmargin.optimization.loop import shards_unsupported, solve
from maxmargin.optimization.solution import Solution
from maxmargin.optimization.solver import Solver, Start
from maxmargin.optimization.stopping import Status
from maxmargin.problem import BaseProblem
from maxmargin.structures.base import FloatArray
from maxmargin.training import selection
from maxmargin.training.hooks import Hooks
from maxmargin.training.settings import Settings

Score = Callable[[Model], float]
"""The dev score of a model, larger is better."""


def train(
    encoder: Encoder,
    X: Sequence[Any],
    y: Sequence[Any],
    settings: Settings | None = None,
    *,
    dev: tuple[Sequence[Any], Sequence[Any]] | None = None,
    sample_weight: npt.ArrayLike | None = None,
    loss_weight: Sequence[npt.ArrayLike] | None = None,
    costs: Sequence[npt.ArrayLike] | None = None,
) -> Model:
    """Fit an encoder to the data and train a model.

    Args:
        encoder: an encoder that has not been fitted, for example ``ChainEncoder()``.
        X: inputs, one per example.
        y: gold outputs, one per example.
        settings: how to train.
        dev: inputs and outputs on which C and the stopping point are chosen.
        sample_weight: weight of each example, shape ``(n_examples,)``.
        loss_weight: for each example, how much each of its variables counts in the loss.
        costs: for each example, what each part of its variables costs, in place of a loss.

    Returns:
        The model; ``model.training`` says how training went.
    """
    settings = settings or Settings()
    with _threads.threads(settings.n_jobs):
        examples = Examples.fit(encoder, X, y, sample_weight, loss_weight, costs)
        return train_examples(examples, settings, score=dev_score(examples.encoder, dev, settings))


def dev_score(encoder: Encoder, dev: Any, settings: Settings) -> Score | None:
    """The function that scores a model on dev data ``(X, y)``, which are encoded once; None without dev data."""
    metric: Any = settings.metric
    if isinstance(metric, str) and metric not in encoder.metrics:
        named = f"one of {', '.join(map(repr, encoder.metrics))}, or " if encoder.metrics else ""
        raise ValueError(f"metric must be {named}a function of gold and predicted outputs, got {shown(metric)}")
    if dev is None:
        return None
    if not isinstance(dev, (tuple, list)) or len(dev) != 2:
        raise ValueError("dev must be a pair (X, y) of inputs and outputs")
    try:
        return Model.of(encoder, settings.n_jobs).scorer(dev[0], dev[1], metric=metric)
    except ValueError as error:
        raise ValueError(f"dev data: {error}") from None


def train_examples(
    examples: Examples | ShardedDataset,
    settings: Settings,
    *,
    score: Score | None = None,
    start: Start | None = None,
    hooks: Hooks | None = None,
) -> Model:
    """Train on encoded examples.

    Args:
        examples: the examples of the first round, in memory or on disk.
        settings: how to train.
        score: the dev score of a model; None without dev data.
        start: where the first round starts, unless a hook says otherwise.
        hooks: additions of a task.
    """
    hooks = hooks or Hooks()
    if score is None and len(settings.grid) > 1:
        raise ValueError("several values of C are compared on dev data; give dev data, or one C")
    if score is None and settings.patience is not None:
        raise ValueError("patience counts dev scores: give dev data as well")
    with _threads.threads(settings.n_jobs):
        waiting = [examples]
        del examples  # a hook may replace them, and they are large
        model = best = _round(waiting.pop(), settings, score, start or Start(), hooks, None, "")
        turn = 0
        compared = {name: value for name, value in best.metadata.items() if name in ("tried", "chosen_on")}
        tried = _record(best).tried
        try:
            while not _record(model).interrupted and (more := hooks.complete(model, turn)) is not None:
                chosen = replace(settings, C=_record(model).C)
                model = _round(more, chosen, score, Start(), hooks, model, f"-{turn}")
                checkpoints = (*_record(best).checkpoints, *_record(model).checkpoints)
                if hooks.lowers(model) if score is None else _scored(model) >= _scored(best):
                    best = replace(model, metadata={**model.metadata, **compared})
                state = replace(
                    _record(best), tried=tried, checkpoints=checkpoints, interrupted=_record(model).interrupted
                )
                best = replace(best, training=state)
                turn += 1
            best = replace(best, calibration=hooks.calibrate(best))
        except KeyboardInterrupt:  # between two runs, whose best weights are kept
            best = replace(best, training=replace(_record(best), interrupted=True))
        if _record(best).interrupted:
            best = replace(best, metadata={**best.metadata, "status": str(Status.INTERRUPTED)})
        elif at_edge := selection.edge(tried):
            warnings.warn(at_edge, UserWarning, stacklevel=callers_level())
        if _nothing_learned(best.weights) and not _record(best).interrupted:
            warnings.warn(_record(best).solution.message, UserWarning, stacklevel=callers_level())
        if not _record(best).interrupted and _record(best).solution.status is not Status.BUDGET:
            for checkpoint in _record(best).checkpoints:
                if not checkpoint.keep:
                    checkpoint.remove()
        return best


def _record(model: Model) -> Training:
    assert model.training is not None
    return model.training


def _scored(model: Model) -> float:
    return _record(model).best_dev_score


def _round(
    examples: Examples | ShardedDataset,
    settings: Settings,
    score: Score | None,
    start: Start,
    hooks: Hooks,
    previous: Model | None,
    stage: str,
) -> Model:
    """The best model over all values of C, each trained as if it were the only one."""
    several, stopped = len(settings.grid) > 1, False
    waiting = [examples]
    del examples  # a hook may replace them, and they are large
    best: Model | None = None
    tried: list[tuple[float, float]] = []
    checkpoints: list[Checkpoint] = []
    for number, C in enumerate(settings.grid):
        own = waiting[-1] if number + 1 < len(settings.grid) else waiting.pop()
        checkpoint = settings.checkpoint_of(f"{stage}-{number}" if several or stage else "")
        checkpoints += [checkpoint] if checkpoint is not None else []
        # Every C has the same start: started from the solution for another C, its first dev score would be of that one.
        try:
            own, problem, given = _begun(own, settings, C, hooks, previous)
            model = _run(own, problem, C, settings, score, start if given is None else given, checkpoint, hooks)
        except KeyboardInterrupt:  # before its first weights
            if best is None:
                raise
            stopped = True
            break
        del own, problem, given
        tried.append((C, _record(model).best_dev_score))
        best = model if best is None or selection.best(tried) == C else best
        if stopped := _record(model).interrupted:
            break
    assert best is not None
    compared = tuple(tried) if several else ()
    record = replace(_record(best), tried=compared, checkpoints=tuple(checkpoints), interrupted=stopped)
    choice = {"tried": [list(pair) for pair in tried], "chosen_on": "dev data"} if several else {}
    return replace(best, training=record, metadata={**best.metadata, **choice})


def _begun(
    examples: Examples | ShardedDataset, settings: Settings, C: float, hooks: Hooks, previous: Model | None
) -> tuple[Examples | ShardedDataset, BaseProblem, Start | None]:
    """Examples and problem of a run as hooks leave them, and where it starts."""
    if isinstance(examples, ShardedDataset):
        return hooks.begin_sharded(examples, examples.problem(settings, C), previous)
    return hooks.begin(examples, examples.problem(settings, C), previous)


def _run(
    examples: Examples | ShardedDataset,
    problem: BaseProblem,
    C: float,
    settings: Settings,
    score: Score | None,
    start: Start,
    checkpoint: Checkpoint | None,
    hooks: Hooks,
) -> Model:
    """One run of the solver."""
    shell = Model.of(examples.encoder, settings.n_jobs)
    chooser = None
    if score is not None:
        chooser = Validation(
            lambda weights: score(replace(shell, weights=examples.weights_of(weights))), settings.patience
        )
    own = None if isinstance(settings.solver, Solver) else hooks.solver(problem)
    if own is not None and shards_unsupported(problem, own[0], settings.executor):
        own = None
    solver, why = own or settings.solver_for(problem)
    solution = solve(
        problem,
        solver,
        settings.executor,
        stop=settings.stop,
        callbacks=settings.watchers(C, chooser),
        start=start,
        random_state=settings.random_state,
        why=why,
        checkpoint=checkpoint,
    )
    weights, metadata = solution.weights, _metadata(examples, settings, problem, solution)
    dev_scores: tuple[tuple[int, float], ...] = ()
    if chooser is not None and chooser.best_weights is not None:
        weights, dev_scores = chooser.best_weights, tuple(chooser.history)
        metadata |= _dev_metadata(chooser, solution)
    learned = examples.weights_of(weights)
    if _nothing_learned(learned):
        solution = replace(solution, message=f"{_remedy_of_zeros(examples, problem)}; the run {solution.message}")
    encoder, weights = examples.encoder.to_model(learned)
    interrupted = solution.status is Status.INTERRUPTED
    record = Training(solution, C, dev_scores, interrupted=interrupted)
    return replace(shell, weights=weights, encoder=encoder, metadata=metadata, training=record)


def _nothing_learned(weights: FloatArray) -> bool:
    return len(weights) > 0 and not weights.any()


def _remedy_of_zeros(examples: Examples | ShardedDataset, problem: BaseProblem) -> str:
    """The sentence that announces a model without any weight, whatever the status of its run."""
    labels = examples.encoder.classes
    if labels is not None and len(labels) == 1:
        return (
            f"all weights of the model are zero, as all labels are {shown(labels[0])}; check that these are the "
            "labels; in a file of columns, they are in the last column unless another is named"
        )
    said = "all weights of the model are zero, so that all outputs of an example have the same score"
    if not problem.region.certifies:
        return f"{said}; raise max_iter, or check that the features tell outputs apart"
    return f"{said}; raise C or the radius (less regularization), or check that the features tell outputs apart"


def _metadata(
    examples: Examples | ShardedDataset, settings: Settings, problem: BaseProblem, solution: Solution
) -> dict[str, Any]:
    """How a model was trained, as plain JSON values."""
    loss, certificate = settings.loss_used(), solution.certificate
    named = repr(loss) if isinstance(loss, Hamming) else type(loss).__name__
    return {
        **{name: _number(value) for name, value in problem.region.metadata().items()},
        "loss": "given costs" if examples.has_costs else named,
        **({"rescaling": problem.rescaling} if problem.rescaling != "margin" else {}),
        **({"slack": problem.slack} if problem.slack != "linear" else {}),
        **({"formulation": problem.good.formulation} if problem.good is not None else {}),
        "solver": type(solution.solver).__name__,
        "status": str(solution.status),
        "primal": _number(certificate.primal),
        "dual": _number(certificate.dual),
        "relative_gap": _number(certificate.relative_gap),
        **_restricted(solution, certificate.hinge, certificate.radius),
        **({"relaxed": True} if certificate.relaxed else {}),
        "iterations": solution.counters.iterations,
        "seconds": solution.seconds,
    }


def _dev_metadata(chooser: Validation, solution: Solution) -> dict[str, Any]:
    """The certificate of the weights with the best dev score: their own objective, and the run's best bound."""
    chosen = next(one for one in solution.history if one.iteration == chooser.best_iteration)
    primal, dual = chosen.primal, solution.certificate.dual
    return {
        "primal": _number(primal),
        "relative_gap": _number(max(primal - dual, 0.0) / abs(primal) if primal else 0.0),
        **_restricted(solution, primal, None if solution.certificate.radius is None else chosen.norm),
        "run_relative_gap": _number(solution.certificate.relative_gap),
        "dev_iteration": chooser.best_iteration,
        "dev_score": chooser.best_score,
    }


def _restricted(solution: Solution, hinge: float, radius: float | None) -> dict[str, Any]:
    """Without regularization, the gap to weights no longer than these."""
    return {} if radius is None else {"restricted_gap": _number(max(0.0, hinge - solution.responses.dual(radius)))}


def _number(value: float | str) -> float | str:
    """JSON has no infinity."""
    if isinstance(value, str):
        return value
    return float(value) if np.isfinite(value) else str(float(value))
