"""The regularization path: exact points, and the path that one dual-extragradient run traces (2005 report, section 6).

The weights of least hinge loss among those of a given norm form the regularization path. Its exact points are separate
problems, ``min H(w)`` subject to ``||w|| <= radius`` or ``min 1/(2C) ||w||^2 + H(w)``, each solved to a certified gap
from the solution before it. One unregularized dual-extragradient run starts at zero weights and follows the path from
afar: its averages after each iteration are models too, at the price of one run for all of them.

Cost: the data is packed and the feature norm is taken once; a point costs a warm-started run, a recorded iterate one
loss-augmented argmax pass over the training data and one prediction of each data set.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _threads
from maxmargin._messages import shown
from maxmargin._vectors import norm
from maxmargin.encoders.base import Batch, Encoder
from maxmargin.encoders.data import checks
from maxmargin.estimators import StructuredSVM
from maxmargin.models.base import Model
from maxmargin.path.result import PathPoint, RegularizationPath
from maxmargin.problem import Problem
from maxmargin.regions import L2, Region
from maxmargin.solvers import (
    Certificate,
    DualExtragradient,
    Extragradient,
    ProgressBar,
    Record,
    Solution,
    Solver,
    Start,
    Status,
    Stop,
    solve,
)
from maxmargin.solvers.auto import fits_in_memory
from maxmargin.structures.base import FloatArray
from maxmargin.training import Examples

Data = tuple[Sequence[Any], Sequence[Any]]
Error = Callable[[Sequence[Any], Sequence[Any]], Any]

AUTOMATIC_RADII = 10
"""How many radii are chosen where none are given."""


def regularization_path(
    estimator: StructuredSVM,
    X: Sequence[Any],
    y: Sequence[Any],
    *,
    radii: npt.ArrayLike | None = None,
    Cs: npt.ArrayLike | None = None,
    dev: Data | None = None,
    test: Data | None = None,
    iterations: int = 500,
    sample_weight: npt.ArrayLike | None = None,
    loss_weight: Sequence[npt.ArrayLike] | None = None,
    costs: Sequence[npt.ArrayLike] | None = None,
    error: Error | None = None,
    dual_extragradient: DualExtragradient | None = None,
    ball: float = math.inf,
) -> RegularizationPath:
    """Exact points of the regularization path, and the path of one dual-extragradient run beside them.

    The estimator sets everything else: structure, loss, signs, norm, solver and ``tol`` of the exact points, budgets of
    each run, threads, ``verbose``. It is neither fitted nor changed.

    Args:
        estimator: any estimator of the library, fitted or not. With ``radii`` its C stays as it is (None: no penalty),
            with ``Cs`` its radius.
        X: training inputs.
        y: training outputs.
        radii: radii of the exact points (ball form), positive, in any order; repeats are dropped.
        Cs: instead, values of C (penalty form). Without both, ten radii up to the largest norm of the
            dual-extragradient path are taken, its 1, 4, 9, ..., 100 hundredths.
        dev: inputs and outputs on which :meth:`RegularizationPath.best` chooses.
        test: inputs and outputs that are only reported.
        iterations: length of the dual-extragradient run; 0 skips it.
        sample_weight: as in ``fit``.
        loss_weight: as in ``fit``.
        costs: as in ``fit``.
        error: function of a list of gold outputs and a list of predictions; by default 1 - the estimator's score.
            With it, outputs of dev and test may be anything that it understands.
        dual_extragradient: settings of the run; by default the report's own steps,
            :meth:`maxmargin.DualExtragradient.plain`, in entropic geometry where the structure has one, and
            memory-efficient where the data is large.
        ball: radius of a ball for the run, in the estimator's norm; infinity, as in the report, for none. With a finite
            one every iterate has a certified gap.

    Returns:
        A :class:`RegularizationPath`; Ctrl-C returns the points that are complete. Iterates are recorded after each of
        the first 8 iterations, then ever farther apart, and after the last.
    """
    _check_estimator(estimator)
    if radii is not None and Cs is not None:
        raise ValueError("give radii or Cs, not both: they are two scales of the same path")
    iterations = _checks.integer("iterations", iterations, least=0)
    if radii is None and Cs is None and iterations == 0:
        raise ValueError("with iterations=0 there is nothing to do: give radii or Cs")
    if error is not None and not callable(error):
        raise ValueError(f"error must be a function of gold outputs and predictions, got {shown(error)}")
    _checks.positive("ball", ball, infinite=True)
    parameter = "radius" if Cs is None else "C"
    settings = None if radii is None and Cs is None else _settings(radii if Cs is None else Cs, parameter)
    with _threads.threads(estimator.n_jobs), contextlib.closing(ProgressBar()) as bar:
        first = copy(estimator) if settings is None else copy(estimator).set_params(**{parameter: settings[0]})
        examples, chosen = first._examples(X, y, sample_weight, loss_weight, costs), first._settings()
        encoder, problem = examples.encoder, examples.problem(chosen, chosen.grid[0])
        if iterations and (reason := DualExtragradient().unsupported_hinge(problem)):
            raise ValueError(
                f"the dual-extragradient run of the path is not possible: {reason} for exact points alone, with "
                "iterations=0 and radii or Cs"
            )
        course = _Course(
            estimator=estimator,
            encoder=encoder,
            problem=problem,
            judges=_judges(examples, y, dev, test, error),
            stop=chosen.stop,
            show=bar.show if estimator.verbose else lambda what, done, total: None,
        )
        iterates, finished = course.trace(dual_extragradient, iterations, ball) if iterations else ((), True)
        if settings is None and finished:
            settings = _automatic(iterates, problem.region)
        exact = course.exact(parameter, settings) if settings is not None and finished else ()
    return RegularizationPath(exact, iterates, parameter, encoder, estimator.n_jobs)


@dataclass(frozen=True, eq=False)
class _Course:
    """The packed data of one path, the functions that judge its points, and when a run stops."""

    estimator: StructuredSVM
    encoder: Encoder
    problem: Problem
    judges: dict[str, Callable[[FloatArray], float]]
    stop: Stop
    show: Callable[[str, int, int], None]

    def within(self, **settings: Any) -> Problem:
        """The same data in the region that the estimator makes of other settings."""
        other = copy(self.estimator).set_params(**settings)._settings()
        return replace(self.problem, region=other.region(self.encoder, self.problem.n_weights, other.grid[0]))

    def unregularized(self, ball: float) -> Problem:
        """The same data without a penalty, and without a ball unless one is given."""
        try:
            return self.within(C=math.inf, radius=ball)
        except ValueError:
            if math.isfinite(ball):
                raise
            # The estimator's norm needs a finite radius; without one no norm is left, only the signs of the weights.
            signs = getattr(self.within(C=None, radius=1.0).region, "nonnegative", None)
            return replace(self.problem, region=L2(nonnegative=signs))

    def judged(self, weights: FloatArray, certificate: Certificate, **metadata: Any) -> PathPoint:
        """A point with the errors of its weights."""
        errors: dict[str, Any] = {f"{name}_error": judge(weights) for name, judge in self.judges.items()}
        return PathPoint(
            hinge=certificate.hinge,
            norm=norm(weights),
            l1_norm=float(np.abs(weights).sum()),
            relaxed=certificate.relaxed,
            primal=certificate.primal,
            dual=certificate.dual,
            weights=weights,
            **metadata,
            **errors,
        )

    def exact(self, parameter: str, settings: Sequence[float]) -> tuple[PathPoint, ...]:
        """One run per setting, in increasing order, each from the weights and duals of the one before."""
        points: list[PathPoint] = []
        before: tuple[float, Solution] | None = None
        for place, setting in enumerate(settings):
            self.show(f"{parameter} = {setting:.3g}", place, len(settings))
            problem = self.within(**{parameter: setting})
            solver, why = self.estimator._settings().solver_for(problem)
            start = Start()
            if before is not None:
                growth = setting / before[0] if parameter == "C" else 1.0
                start = _continued(solver, before[1], growth)
            solution = solve(
                problem,
                solver,
                self.estimator.executor,
                stop=self.stop,
                callbacks=list(self.estimator.callbacks),
                start=start,
                random_state=self.estimator.random_state,
                why=why,
            )
            if solution.status is Status.INTERRUPTED:
                break
            before = setting, solution
            points.append(
                self.judged(
                    solution.weights,
                    solution.certificate,
                    setting=setting,
                    iteration=solution.counters.iterations,
                    seconds=solution.seconds,
                    status=str(solution.status),
                )
            )
        return tuple(points)

    def trace(
        self, solver: DualExtragradient | None, iterations: int, ball: float
    ) -> tuple[tuple[PathPoint, ...], bool]:
        """The points of one dual-extragradient run, and whether it was left to finish."""
        if solver is None:
            solver = DualExtragradient.plain(geometry="auto", store_duals=fits_in_memory(self.problem))
        elif not isinstance(solver, DualExtragradient):
            raise ValueError(f"dual_extragradient must be a mm.DualExtragradient(...), got {shown(solver)}")
        problem = self.unregularized(ball)
        recorder = _Recorder(self, problem, iterations)
        solution = solve(
            problem,
            solver,
            self.estimator.executor,
            stop=replace(self.stop, tol=0.0, max_iter=iterations),
            callbacks=[recorder],
            random_state=self.estimator.random_state,
        )
        finished = solution.status is not Status.INTERRUPTED
        return recorder.points(finished), finished


def _continued(solver: Solver, before: Solution, growth: float) -> Start:
    """The start from the solution of a smaller setting; ``growth`` is the ratio of the two Cs, 1 for radii.

    In penalty form extragradient's weights grow with C: they are the best response ``-C g(z)`` to the old duals again.
    """
    if before.duals is None:  # without them zero weights are the better start
        return Start(active_set=before.active_set)
    grown = growth if isinstance(solver, Extragradient) else 1.0
    return Start(grown * before.weights, before.duals, before.potentials)


class _Recorder:
    """A callback that turns certificates into points, keeping the weights of the best and of the last alone."""

    def __init__(self, course: _Course, problem: Problem, iterations: int) -> None:
        self.course, self.problem, self.iterations = course, problem, iterations
        self.bare: list[PathPoint] = []
        self.best: tuple[tuple[float, float], int, FloatArray] | None = None
        self.record: Record | None = None
        self.last = np.zeros(0)

    def __call__(self, record: Record) -> bool:
        self.record = record
        self.course.show("dual extragradient", record.iteration, self.iterations)
        over = record.iteration >= self.iterations
        # Certificates come every 50 iterations in the long run; points only after an eighth more iterations.
        if over or not self.bare or record.iteration >= self.bare[-1].iteration * 9 // 8:
            self._keep(record)
        return over  # a run to its last iteration did what was asked: it must not warn

    def _keep(self, record: Record) -> None:
        self.last = record.weights.copy()
        hinge = record.primal - self.problem.region.penalty(self.last)
        certificate = replace(record.certificate, primal=record.primal, hinge=hinge)
        point = self.course.judged(
            self.last, certificate, setting=None, iteration=record.iteration, seconds=record.seconds
        )
        if point.dev_error is not None:
            rank = (point.dev_error, point.norm)
            if self.best is None or rank < self.best[0]:
                self.best = (rank, len(self.bare), self.last)
        self.bare.append(replace(point, weights=None))

    def points(self, finished: bool) -> tuple[PathPoint, ...]:
        """All points, the best and the last of them with weights."""
        if finished and self.record is not None and self.record.iteration > self.bare[-1].iteration:
            self._keep(self.record)  # the run ended between two points
        if not self.bare:
            return ()
        points = list(self.bare)
        points[-1] = replace(points[-1], weights=self.last)
        if self.best is not None:
            _, place, weights = self.best
            points[place] = replace(points[place], weights=weights)
        return tuple(points)


def _check_estimator(estimator: Any) -> None:
    if not isinstance(estimator, StructuredSVM):
        kind = f"the class {estimator.__name__}" if isinstance(estimator, type) else f"a {type(estimator).__name__}"
        raise ValueError(f"estimator must be an estimator of maxmargin such as mm.ChainSVM(), got {kind}")


def _settings(values: npt.ArrayLike | None, parameter: str) -> list[float]:
    """Radii or Cs in increasing order without repeats."""
    name = "radii" if parameter == "radius" else "Cs"
    try:
        found = np.asarray(values)
    except ValueError:  # rows of unequal lengths
        found = np.zeros((0, 0))
    if found.ndim != 1 or found.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be a list of positive numbers, got {shown(values)}")
    if found.size == 0:
        raise ValueError(f"{name} is empty: give at least one positive number, or None to have them chosen")
    wrong = found[~(np.isfinite(found) & (found > 0))]
    if wrong.size:
        raise ValueError(f"{name} must be positive and finite, got {wrong[0]}; larger ones mean less regularization")
    return [float(value) for value in np.unique(found)]


def _automatic(iterates: Sequence[PathPoint], region: Region) -> list[float]:
    """Radii from a hundredth of the largest norm of the iterates to all of it, closer together where they are small."""
    if region.lasso is not None:
        raise ValueError("radii are chosen for Euclidean balls alone: give radii or Cs")
    norms = [point.norm for point in iterates if point.norm > 0]
    if not norms:
        raise ValueError("no iterate has left zero weights, so no radii can be chosen: give radii or Cs")
    return [max(norms) * ((k + 1) / AUTOMATIC_RADII) ** 2 for k in range(AUTOMATIC_RADII)]


def _judges(
    examples: Examples, y: Sequence[Any], dev: Any, test: Any, error: Error | None
) -> dict[str, Callable[[FloatArray], float]]:
    """Weights to error, by the name of the data; each data set is checked and packed once."""
    encoder = examples.encoder
    judges = {"train": _judge(encoder, examples.batch, list(y), error)}
    for name, data in (("dev", dev), ("test", test)):
        if data is None:
            continue
        if not isinstance(data, (tuple, list)) or len(data) != 2:
            raise ValueError(f"{name} must be a pair (X, y) of inputs and outputs")
        try:
            inputs, outputs = checks.examples(data[0]), checks.examples(data[1], "y")
            checks.same_length(inputs, outputs)
            batch = encoder.transform(inputs)
            if error is None:
                encoder.check(batch, outputs)
        except ValueError as problem_found:
            raise ValueError(f"{name} data: {problem_found}") from None
        judges[name] = _judge(encoder, batch, outputs, error)
    return judges


def _judge(encoder: Encoder, batch: Batch, y: Sequence[Any], error: Error | None) -> Callable[[FloatArray], float]:
    def judge(weights: FloatArray) -> float:
        model = Model(weights, encoder)
        if error is None:
            return 1.0 - model.agreement(batch, y)
        found = error(y, model.outputs(batch))
        if not isinstance(found, (Real, np.number)) or not np.isfinite(float(found)):
            raise ValueError(f"error must return a finite number, got {shown(found)}")
        return float(found)

    return judge
