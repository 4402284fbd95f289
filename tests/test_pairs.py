"""All solvers against the reference: every solver on every structure, region, rescaling and slack, judged by Exact.

A new solver is one line in SOLVERS. The product is thinned: every solver runs on every pair structure x region with the
margin rescaled and linear slack, and on most of these pairs once more with one of the five other hinges, chosen so that
each structure and each region meets all of them (:func:`cases`). Unsupported pairs must be refused with a sentence.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from problems import REGIONS, STRUCTURES, make
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.features.parts import PartFeatures
from maxmargin.features.tied import ChainFeatures
from maxmargin.problem import Problem, hinges
from maxmargin.regions import L1, L2
from maxmargin.solvers import Record, Solution, Solver, Status, Stop, solve
from maxmargin.structures import Points, Structure
from maxmargin.structures.base import FloatArray, Polytope

SOLVERS: dict[str, tuple[Callable[[], Solver], bool]] = {
    # name: (factory, whether it minimizes the objective)
    "averaged perceptron": (mm.AveragedPerceptron, False),
    "averaged perceptron, batch": (lambda: mm.AveragedPerceptron(batch=True), False),
    "block Frank-Wolfe": (mm.BlockFrankWolfe, True),
    "block Frank-Wolfe, gap sampling": (lambda: mm.BlockFrankWolfe(sampling="gap", cache=0.25), True),
    "column generation": (mm.ColumnGeneration, True),
    "column generation, extragradient": (lambda: mm.ColumnGeneration(master="extragradient"), True),
    "cutting planes, n-slack": (lambda: mm.CuttingPlane(slacks="n"), True),
    "cutting planes, 1-slack": (lambda: mm.CuttingPlane(slacks="one"), True),
    "dual extragradient": (mm.DualExtragradient, True),
    "dual extragradient, memory-efficient": (lambda: mm.DualExtragradient(store_duals=False, shard_parts=30), True),
    "dual extragradient, plain": (mm.DualExtragradient.plain, True),
    "exact": (mm.Exact, True),
    "exponentiated gradient": (lambda: mm.ExponentiatedGradient(block_size=2), True),
    "exponentiated gradient, batch": (lambda: mm.ExponentiatedGradient(online=False), True),
    "extragradient": (mm.Extragradient, True),
    "extragradient, plain": (mm.Extragradient.plain, True),
    "MIRA": (mm.Mira, False),
    "MIRA, 3-best": (lambda: mm.Mira(k=3), False),
    "projected gradient": (mm.ProjectedGradient, True),
    "projected gradient, last weights": (lambda: mm.ProjectedGradient(average=False), True),
    "simplicial decomposition, product": (mm.SimplicialDecomposition, True),
    "simplicial decomposition, one": (lambda: mm.SimplicialDecomposition(master="one"), True),
    "simplicial decomposition, working set": (lambda: mm.SimplicialDecomposition(working_set="cyclic"), True),
    "subgradient": (mm.Subgradient, True),
}
GIBBS = mm.Entropic()
VARIANTS: dict[str, Solver] = {
    # other settings of the solvers, which run on the plain hinge only
    "block Frank-Wolfe, away": mm.BlockFrankWolfe(direction="away"),
    "block Frank-Wolfe, gap sampling, no kept passes": mm.BlockFrankWolfe(sampling="gap", cache=0.25, kept_passes=0),
    "block Frank-Wolfe, plain": mm.BlockFrankWolfe(direction="frank-wolfe", steps=1, kept_passes=0),
    "column generation, aging at once": mm.ColumnGeneration(master="highs", age=1),
    "column generation, plain": mm.ColumnGeneration(master="highs", stabilize=False, age=None),
    "column generation, plain extragradient": mm.ColumnGeneration(master="extragradient", stabilize=False, age=None),
    "cutting planes, once a pass": mm.CuttingPlane(solves_per_pass=1),
    "dual extragradient, Euclidean": mm.DualExtragradient(geometry=mm.Euclidean()),
    "dual extragradient, plain, entropic": mm.DualExtragradient.plain(geometry=GIBBS),
    "extragradient, Euclidean": mm.Extragradient(geometry=mm.Euclidean()),
    "extragradient, leaning to the gold": mm.Extragradient(geometry=mm.Entropic(gold_potential=2.0)),
    "extragradient, plain, entropic": mm.Extragradient.plain(geometry=GIBBS),
    "simplicial decomposition, example by example": mm.SimplicialDecomposition(joint=1),
    "simplicial decomposition, one, cyclic": mm.SimplicialDecomposition(
        master="one", working_set="cyclic", working_set_size=2
    ),
    "simplicial decomposition, one, violation": mm.SimplicialDecomposition(
        master="one", working_set="violation", working_set_size=2
    ),
    "simplicial decomposition, plain": mm.SimplicialDecomposition(stabilize=0.0),
    "simplicial decomposition, violation": mm.SimplicialDecomposition(working_set="violation", working_set_size=2),
}
REACHES = {
    "block Frank-Wolfe": (1e-4, 3000),
    "block Frank-Wolfe, gap sampling": (1e-4, 3000),
    "block Frank-Wolfe, away": (1e-4, 3000),
    "block Frank-Wolfe, gap sampling, no kept passes": (1e-4, 3000),
    "block Frank-Wolfe, plain": (0.03, 3000),
    "column generation": (1e-7, 200),
    "column generation, extragradient": (1e-7, 200),
    "column generation, aging at once": (1e-7, 200),
    "column generation, plain": (1e-7, 200),
    "column generation, plain extragradient": (1e-7, 200),
    "cutting planes, n-slack": (1e-5, 400),
    "cutting planes, 1-slack": (1e-5, 400),
    "cutting planes, once a pass": (1e-5, 400),
    "dual extragradient": (0.02, 300),
    "dual extragradient, Euclidean": (0.05, 400),
    "exact": (1e-7, 1),
    "exponentiated gradient": (1e-3, 300),
    "extragradient": (0.02, 1000),
    "extragradient, Euclidean": (0.05, 1000),
    "extragradient, leaning to the gold": (0.05, 1000),
    "simplicial decomposition, product": (1e-5, 400),
    "simplicial decomposition, one": (1e-5, 400),
    "simplicial decomposition, example by example": (1e-5, 400),
    "simplicial decomposition, one, cyclic": (1e-5, 400),
    "simplicial decomposition, one, violation": (1e-5, 400),
    "simplicial decomposition, plain": (1e-5, 400),
    "simplicial decomposition, violation": (1e-5, 400),
    "simplicial decomposition, working set": (1e-5, 400),
    "subgradient": (0.03, 3000),
}
"""The relative gap that a solver must reach with the plain hinge, and in how many iterations."""
SLOW = {
    "dual extragradient, plain": 0.8,
    "dual extragradient, plain, entropic": 0.8,
    "extragradient, plain": 0.8,
    "extragradient, plain, entropic": 0.8,
    "projected gradient": 0.35,
    "projected gradient, last weights": 0.35,
    "simplicial decomposition, working set": 0.3,
}
"""The share of the hinge loss at zero weights that a slow solver's gap may be after ITERATIONS; 0.05 for others."""
WEIGHTS = {
    **{name: (settings, False) for name, settings in REGIONS.items()},
    "signs": ({"C": 0.5}, True),
    "L1 penalty": ({"l1": np.inf, "C": 0.5}, False),
    "L1 penalty and signs": ({"l1": np.inf, "C": 0.5}, True),
}
MORE_WEIGHTS = {
    "small ridge and signs": ({"C": 0.01}, True),
    "ball and signs": ({"radius": 0.7}, True),
    "ball, ridge and signs": ({"C": 1.0, "radius": 0.5}, True),
    "L1 ball and signs": ({"l1": 0.8}, True),
    "L1 ball, penalty and signs": ({"l1": 0.7, "C": 1.0}, True),
    "light L1 penalty and signs": ({"l1": np.inf, "C": 5.0}, True),
}
"""Regions that meet the plain hinge only."""
HINGES = [(rescaling, slack) for slack in ("linear", "quadratic") for rescaling in ("margin", "slack", "none")]
PLAIN = ("margin", "linear")
TOL, ITERATIONS = 0.02, 200
ALTERNATIVE = re.compile(r"\b(use|give|raise)\b .*\w")


def pose(kind: str, region: str = "ridge", rescaling: str = "margin", slack: str = "linear", n: int = 3) -> Problem:
    settings, signs = (WEIGHTS | MORE_WEIGHTS)[region]
    return replace(make(kind, n=n, region=settings, signs=signs), rescaling=rescaling, slack=slack)


def cases(kind: str) -> Iterator[tuple[str, str, str]]:
    """Regions and hinges for a structure: all regions with the plain hinge, and a Latin square of the others."""
    others = [hinge for hinge in HINGES if hinge != PLAIN]
    yield from ((region, *PLAIN) for region in WEIGHTS | MORE_WEIGHTS)
    for i, region in enumerate(WEIGHTS):
        yield (region, *others[(i + STRUCTURES.index(kind)) % len(others)])


def run(problem: Problem, solver: Solver, *, tol: float = TOL, max_iter: int = ITERATIONS, **options: Any) -> Solution:
    """Solve without the warning that a small budget brings; the status must be true."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = solve(problem, solver, stop=Stop(tol=tol, max_iter=max_iter), **options)
    honest(solution, tol)
    return solution


def honest(solution: Solution, tol: float) -> None:
    """Never "converged" with a gap above the tolerance (or, where that is 0, above rounding)."""
    if solution.status is Status.CONVERGED:
        certificate = solution.certificate
        near = 1.02 * tol  # making weights sparse may add a hundredth of the gap
        assert certificate.relative_gap <= near or certificate.gap <= 1e-12 * abs(solution.history[0].primal)
    assert np.isfinite(solution.weights).all()
    assert np.isfinite(solution.certificate.primal)


@cache
def bounds(kind: str, region: str, rescaling: str, slack: str) -> tuple[float, float]:
    """An interval that holds the optimum: Exact's, or where it refuses a long run of projected subgradient steps."""
    problem = pose(kind, region, rescaling, slack)
    solver: Solver = mm.Exact() if mm.Exact().unsupported(problem) is None else mm.ProjectedGradient()
    certificate = run(problem, solver, tol=1e-6, max_iter=400).certificate
    return certificate.dual, certificate.primal


def error(problem: Problem, weights: FloatArray) -> float:
    """The training loss of the predictions."""
    return problem.loss(problem.structure.predict(problem.features.scores(weights)).z)


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("name", [*SOLVERS, *VARIANTS])
def test_pairs(name: str, kind: str) -> None:
    factory, minimizes = SOLVERS.get(name, (lambda: VARIANTS[name], True))
    solver = factory()
    for region, rescaling, slack in cases(kind):
        case = f"{name}, {kind}, {region}, {rescaling}, {slack}"
        problem, plain = pose(kind, region, rescaling, slack), (rescaling, slack) == PLAIN
        if hinges.unsupported(problem) or (name in VARIANTS and not plain):
            continue
        if reason := solver.unsupported(problem):
            refused(problem, solver, reason)
            continue
        tol, iterations = REACHES.get(name, (TOL, ITERATIONS)) if plain else (TOL, ITERATIONS)
        solution = run(problem, solver, tol=tol, max_iter=iterations, random_state=0)
        certificate = solution.certificate
        lower, upper = bounds(kind, region, rescaling, slack)
        room = 1e-6 * (1.0 + upper)
        assert certificate.dual <= upper + room, case
        assert certificate.primal >= lower - room, case
        assert certificate.primal == pytest.approx(problem.objective(solution.weights), rel=1e-9), case
        np.testing.assert_allclose(problem.region.project(solution.weights), solution.weights, atol=1e-9, err_msg=case)
        if plain and name in REACHES:
            assert solution.status is Status.CONVERGED, f"{case}: {solution.message}"
        if minimizes:
            assert solution.status in (Status.CONVERGED, Status.BUDGET), f"{case}: {solution.message}"
            assert certificate.gap <= SLOW.get(name, 0.05) * problem.hinge(np.zeros(problem.n_weights)), (
                f"{case}: {solution.message}"
            )
            assert certificate.primal - lower <= certificate.gap + (upper - lower) + room, case
        else:
            assert error(problem, solution.weights) <= error(problem, np.zeros(problem.n_weights)), case


def refused(problem: Problem, solver: Solver, reason: str) -> None:
    """A refusal is one plain sentence that names what to use instead, and ``solve`` says it."""
    assert "None" not in reason
    assert "\n" not in reason
    assert ALTERNATIVE.search(reason), reason
    with pytest.raises(ValueError, match=re.escape(reason)):
        solve(problem, solver)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_hinges_without_an_argmax_are_refused_at_the_build(kind: str) -> None:
    for rescaling, slack in HINGES:
        problem = pose(kind, "ridge", rescaling, slack)
        if reason := hinges.unsupported(problem):
            assert ALTERNATIVE.search(reason)
            with pytest.raises(ValueError, match=re.escape(reason)):
                Problem.build(
                    problem.structure,
                    problem.features,
                    problem.gold,
                    mm.losses.Hamming(),
                    problem.region,
                    rescaling=rescaling,
                    slack=slack,
                )


@pytest.mark.parametrize("kind", ["chain", "matching"])
@pytest.mark.parametrize("name", SOLVERS)
def test_seeds_decide_and_threads_do_not(name: str, kind: str) -> None:
    problem, solver = pose(kind, n=5), SOLVERS[name][0]()
    if solver.unsupported(problem):
        return
    runs = [run(problem, solver, max_iter=12, random_state=3, n_jobs=jobs) for jobs in (1, 1, 2)]
    for other in runs[1:]:
        np.testing.assert_array_equal(other.weights, runs[0].weights)
        assert other.certificate == runs[0].certificate
        assert other.counters == runs[0].counters


# --- counters -------------------------------------------------------------------------------------------------------


@dataclass
class Calls:
    """Examples processed by each oracle, and how many calls are left before Ctrl-C is pressed."""

    examples: dict[str, int] = field(default_factory=dict)
    left: float = np.inf

    def count(self, oracle: str, n_examples: int) -> None:
        self.left -= 1
        if self.left == -1:
            raise KeyboardInterrupt
        self.examples[oracle] = self.examples.get(oracle, 0) + n_examples

    def total(self, *oracles: str) -> int:
        return sum(self.examples.get(oracle, 0) for oracle in oracles)


class Counting(Structure):
    """Another structure, with its calls counted."""

    categorical = False  # replaced by that of the inner structure

    def __init__(self, inner: Structure, calls: Calls) -> None:
        self.inner, self.calls, self.blocks, self.name = inner, calls, inner.blocks, inner.name
        for name in (
            "categorical",
            "relaxed",
            "value_bounds",
            "marginals_unsupported",
            "slack_relaxed",
            "loss_on_variables_only",
            "edge_sign",
        ):
            setattr(self, name, getattr(inner, name))

    @property
    def variable_parts(self) -> slice:
        return self.inner.variable_parts

    @property
    def states_per_variable(self) -> Any:
        return self.inner.states_per_variable

    @property
    def part_bound(self) -> FloatArray:  # type: ignore[override]
        return self.inner.part_bound

    def encode(self, labels: Sequence[Any]) -> FloatArray:
        return self.inner.encode(labels)

    def decode(self, z: FloatArray) -> list[Any]:
        return self.inner.decode(z)

    def select(self, indices: Any) -> Counting:
        return Counting(self.inner.select(indices), self.calls)

    def polytope(self) -> Polytope | None:
        return self.inner.polytope()

    def predict(self, scores: FloatArray) -> Points:
        return self.inner.predict(scores)

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        self.calls.count("argmax", self.n_examples)
        return self.inner.argmax(scores, warm=warm)

    def k_best(self, scores: FloatArray, k: int) -> list[Points]:
        self.calls.count("k_best", self.n_examples)
        return self.inner.k_best(scores, k)

    def slack_argmax(self, *arguments: Any, warm: Any = None) -> Points:
        self.calls.count("slack_argmax", self.n_examples)
        return self.inner.slack_argmax(*arguments, warm=warm)

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        self.calls.count("project", self.n_examples)
        return self.inner.project(point, tol=tol, warm=warm)

    def marginals(self, potentials: FloatArray) -> Points:
        self.calls.count("entropic", self.n_examples)
        return self.inner.marginals(potentials)


def counted(problem: Problem, left: float = np.inf) -> tuple[Problem, Calls]:
    calls = Calls(left=left)
    return replace(problem, structure=Counting(problem.structure, calls)), calls


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("kind", ["chain", "matching"])
@pytest.mark.parametrize("name", SOLVERS)
def test_counters_and_seconds_are_true(name: str, kind: str, rescaling: str) -> None:
    solver = SOLVERS[name][0]()
    for region in ("ridge", "L1 ball", "L1 penalty"):
        problem, calls = counted(pose(kind, region, rescaling, n=5))
        if solver.unsupported(problem):
            continue
        began = time.perf_counter()
        solution = run(problem, solver, tol=1e-6, max_iter=9, random_state=0)
        assert 0.0 < solution.seconds <= time.perf_counter() - began
        assert solution.counters.argmax == pytest.approx(calls.total("argmax", "k_best", "slack_argmax") / 5)
        assert solution.counters.projections == calls.total("project", "entropic")
        start = mm.solvers.Start(solution.weights, solution.duals, solution.potentials, solution.active_set)
        problem, calls = counted(pose(kind, region, rescaling, n=5))
        solution = run(problem, solver, tol=1e-6, max_iter=2, random_state=0, start=start)
        assert solution.counters.argmax == pytest.approx(calls.total("argmax", "k_best", "slack_argmax") / 5)
        assert solution.counters.projections == calls.total("project", "entropic")


# --- statuses -------------------------------------------------------------------------------------------------------


def supported(name: str, kind: str = "chain") -> tuple[Problem, Solver, str]:
    """A problem that the solver takes, and its region; every solver takes chains with a ridge or an L1 penalty."""
    solver = SOLVERS[name][0]()
    for region in ("ridge", "L1 penalty"):
        for rescaling, slack in HINGES:
            posed = pose(kind, region, rescaling, slack)
            if not (hinges.unsupported(posed) or solver.unsupported(posed)):
                return posed, solver, region
    pytest.skip(f"{name} takes no {kind}, which test_pairs checks it refuses with a sentence")


@pytest.mark.parametrize("kind", ["chain", "matching"])
@pytest.mark.parametrize("name", SOLVERS)
def test_an_interrupting_callback(name: str, kind: str) -> None:
    problem, solver, _ = supported(name, kind)

    def interrupt(record: Record) -> None:
        if record.iteration >= 1:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        solution = solve(problem, solver, stop=Stop(tol=0.0), callbacks=[interrupt])
    assert solution.status is Status.INTERRUPTED
    assert solution.certificate.primal == pytest.approx(problem.objective(solution.weights))


@pytest.mark.parametrize("kind", ["chain", "matching"])
@pytest.mark.parametrize("name", SOLVERS)
def test_an_interrupted_oracle(name: str, kind: str) -> None:
    problem, solver, region = supported(name, kind)
    optimum = bounds(kind, region, problem.rescaling, problem.slack)[1]
    for left in (0, 1, 2, 3, 5, 8, 13, 40):
        watched, calls = counted(problem, left)
        message, solution = "", None
        try:
            solution = run(watched, solver, tol=0.0, max_iter=30, random_state=0)
        except KeyboardInterrupt as interruption:
            message = str(interruption)
        if solution is None:
            assert "nothing to return" in message
            assert left < 40
            continue
        # After the end, while weights are made sparser, an interruption only ends that.
        late = problem.region.sparse and solution.status is Status.CONVERGED
        assert late or (solution.status is Status.INTERRUPTED) == (calls.left < 0)
        assert solution.certificate.primal == pytest.approx(problem.objective(solution.weights))
        assert solution.certificate.dual <= optimum * (1 + 1e-6)


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("name", SOLVERS)
def test_small_budgets(name: str, kind: str) -> None:
    problem, solver, _ = supported(name, kind)
    for stop in (Stop(tol=1e-14, max_seconds=1e-9), Stop(tol=1e-14, max_iter=1)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = solve(problem, solver, stop=stop, random_state=0)
        honest(solution, stop.tol)
        ended = Status.BUDGET if solver.minimizes or stop.max_seconds else Status.FINISHED
        assert solution.status in (ended, Status.CONVERGED)
        assert solution.counters.iterations <= 1
        assert solution.status is Status.CONVERGED or str(ended) in solution.message


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kind", ["chain", "matching"])
@pytest.mark.parametrize("name", SOLVERS)
def test_features_that_are_not_finite(name: str, kind: str, value: float) -> None:
    problem, solver, _ = supported(name, kind)
    rows = np.ones((problem.structure.starts[1] // (3 if kind == "chain" else 1), 2))
    rows[1, 1] = value
    offsets = problem.structure.blocks[0].offsets
    features = ChainFeatures(rows, np.diff(offsets) // 3, 3) if kind == "chain" else PartFeatures(rows, offsets)
    spoiled = replace(problem, features=features, region=type(problem.region)(C=0.5))
    with pytest.raises(ValueError, match=r"not finite.*NaN, infinite"):
        solve(spoiled, solver)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_gold_outside_the_structure_is_refused_at_the_build(kind: str) -> None:
    problem = pose(kind)
    gold = problem.gold
    gold[problem.structure.blocks[0].offsets[1]] = 3.0
    with pytest.raises(ValueError, match=r"example 1: gold is not a feasible output; use structure\.encode"):
        Problem.build(problem.structure, problem.features, gold, mm.losses.Hamming(), problem.region)


@pytest.mark.parametrize(
    "region",
    [
        lambda: L2(radius=0.0),
        lambda: L2(radius=-1.0),
        lambda: L2(C=0.0),
        lambda: L2(C=np.nan),
        lambda: L1(radius=0.0),
        lambda: L1(radius=np.inf),
        lambda: L2(C=1.0, nonnegative=np.ones(99, dtype=bool)),
    ],
)
def test_infeasible_regions_are_refused(region: Callable[[], Any]) -> None:
    """Regions hold zero weights by construction, so none is empty; what would make one so is refused."""
    problem = pose("chain")
    with pytest.raises(ValueError, match="must be"):
        Problem.build(problem.structure, problem.features, problem.gold, mm.losses.Hamming(), region())
