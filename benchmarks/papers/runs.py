"""Runs without regularization and exact points of the regularization path, judged on dev and test data."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

import maxmargin as mm
from maxmargin.solvers import Record, Start, Stop

Judge = Callable[[np.ndarray], np.ndarray]
"""Weights to two numbers that add up over data sets: how much is right, out of how much."""


@dataclass(frozen=True, eq=False)
class Workload:
    """A training problem without regularization, and the data that judge its weights."""

    problem: mm.Problem
    dev: Judge
    test: Judge

    @property
    def step(self) -> float:
        """``1/||F||_2``, the step of the 2005 report."""
        return 1.0 / self.problem.features.norm()


@dataclass(frozen=True, eq=False)
class Curve:
    """Points of one run, or exact points of the regularization path, each an entry of every array.

    Attributes:
        iteration: after so many iterations; of an exact point, the iterations that it took.
        norm: Euclidean norm of the weights.
        hinge: training hinge loss.
        cpu: seconds of CPU time of the run so far, or of the exact point, without those of the judges.
        dev: what the judge of the dev data found, shape ``(n, 2)``.
        test: the same of the test data.
    """

    iteration: np.ndarray
    norm: np.ndarray
    hinge: np.ndarray
    cpu: np.ndarray
    dev: np.ndarray
    test: np.ndarray

    @classmethod
    def of(cls, points: Sequence[tuple[float, float, float, float, np.ndarray, np.ndarray]]) -> Curve:
        """From points, each a tuple of the attributes."""
        return cls(*(np.array(column, dtype=np.float64) for column in zip(*points, strict=True)))

    @property
    def dev_error(self) -> np.ndarray:
        """In percent."""
        return 100 * (1 - self.dev[:, 0] / self.dev[:, 1])

    @property
    def test_error(self) -> np.ndarray:
        """In percent."""
        return 100 * (1 - self.test[:, 0] / self.test[:, 1])

    @property
    def moved(self) -> np.ndarray:
        """The points away from zero weights: there, ties decide and the errors say nothing."""
        return np.flatnonzero(self.norm > 1e-6 * self.norm.max())

    @property
    def chosen(self) -> int:
        """The point with the smallest dev error; the first of equals."""
        return int(self.moved[np.argmin(self.dev_error[self.moved])])

    @property
    def best(self) -> int:
        """The point with the smallest test error; the first of equals."""
        return int(self.moved[np.argmin(self.test_error[self.moved])])

    def at(self, norms: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Values of the curve where it first reaches these norms, along straight lines; NaN where it never does."""
        found = np.full(len(norms), np.nan)
        for place, norm in enumerate(norms):
            after = np.flatnonzero(self.norm >= norm * (1 - 1e-9))
            if len(after) and after[0] > 0:
                low, high = after[0] - 1, after[0]
                share = (norm - self.norm[low]) / (self.norm[high] - self.norm[low])
                found[place] = values[low] + min(max(share, 0.0), 1.0) * (values[high] - values[low])
        return found

    def padded(self, n: int) -> Curve:
        """With its last point repeated up to ``n`` points: a perceptron that makes no error any more stops."""
        return Curve(
            *(np.concatenate([values, np.repeat(values[-1:], n - len(values), axis=0)]) for values in self._all)
        )

    @property
    def _all(self) -> tuple[np.ndarray, ...]:
        return self.iteration, self.norm, self.hinge, self.cpu, self.dev, self.test


@dataclass(frozen=True, eq=False)
class Rotation:
    """The curves of one method on several divisions of the same data, each of which tests on other examples."""

    curves: tuple[Curve, ...]

    @property
    def pooled(self) -> Curve:
        """Means of norms and losses, sums of seconds, errors over the test data of all divisions together."""
        n = max(len(curve.norm) for curve in self.curves)
        columns = zip(*(curve.padded(n)._all for curve in self.curves), strict=True)
        iteration, norm, hinge, cpu, dev, test = (np.stack(column) for column in columns)
        return Curve(iteration.max(0), norm.mean(0), hinge.mean(0), cpu.sum(0), dev.sum(0), test.sum(0))

    @property
    def chosen_test(self) -> float:
        """Test error over all divisions, each at the point that its own dev data choose, in percent."""
        right, all_ = sum(curve.test[curve.chosen] for curve in self.curves)
        return float(100 * (1 - right / all_))

    @property
    def chosen_dev(self) -> float:
        """Dev error likewise."""
        right, all_ = sum(curve.dev[curve.chosen] for curve in self.curves)
        return float(100 * (1 - right / all_))


def trace(work: Workload, solver: mm.solvers.Solver, iterations: int, *, jobs: int, seed: int = 0) -> Curve:
    """The points of one run, at its certificates."""
    points: list[tuple[float, float, float, float, np.ndarray, np.ndarray]] = []
    began, judging = time.process_time(), 0.0

    def record(now: Record) -> None:
        nonlocal judging
        reached = time.process_time()
        judged = work.dev(now.weights), work.test(now.weights)
        points.append((now.iteration, now.norm, now.primal, reached - began - judging, *judged))
        judging += time.process_time() - reached

    stop = Stop(tol=0.0, max_iter=iterations)
    mm.solve(work.problem, solver, stop=stop, callbacks=[record], n_jobs=jobs, random_state=seed)
    return Curve.of(points)


def perceptron(work: Workload, solver: mm.AveragedPerceptron, passes: int, *, jobs: int, seed: int = 0) -> Curve:
    """The points of a run of the perceptron, at the learning rate that gives its last weights the least hinge loss.

    A perceptron that starts at zero predicts the same at any rate, which only multiplies its weights: norms and hinge
    losses alone need one. It is a power of 2 times ``1/||F||_2``.
    """
    kept: list[np.ndarray] = []

    def judge(weights: np.ndarray) -> np.ndarray:
        kept.append(weights.copy())
        return work.dev(weights)

    run = trace(replace(work, dev=judge), solver, passes, jobs=jobs, seed=seed)
    rates = work.step * 2.0 ** np.arange(-8, 9)
    with mm.threads(jobs):
        rate = min(rates, key=lambda one: work.problem.hinge(one * kept[-1]))
        hinge = np.array([work.problem.hinge(rate * weights) for weights in kept])
    return replace(run, norm=rate * run.norm, hinge=hinge)


def exact(work: Workload, radii: Sequence[float], *, tol: float, jobs: int) -> Curve:
    """The points of least hinge loss in balls, each to a certified relative gap, from the one before."""
    points = []
    start = Start()
    for radius in radii:
        problem = replace(work.problem, region=replace(work.problem.region, radius=float(radius)))
        began = time.process_time()
        done = mm.solve(problem, mm.Extragradient(), stop=Stop(tol=tol), start=start, n_jobs=jobs)
        cpu = time.process_time() - began
        start = Start(done.weights, done.duals, done.potentials)
        norm = float(np.linalg.norm(done.weights))
        judged = work.dev(done.weights), work.test(done.weights)
        points.append((done.counters.iterations, norm, done.certificate.hinge, cpu, *judged))
    return Curve.of(points)


def radii_of(run: Curve, n: int = 10) -> np.ndarray:
    """Radii up to the largest norm of a run, closer together where they are small."""
    return run.norm.max() * ((np.arange(n) + 1) / n) ** 2
