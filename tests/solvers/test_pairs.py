"""All solvers against the reference: every solver on every structure, region, rescaling and slack, judged by Exact.

A new solver is one line in SOLVERS. The product is thinned: every solver runs on every pair structure x region with the
margin rescaled and linear slack, and on most of these pairs once more with one of the five other hinges, chosen so that
each structure and each region meets all of them (:func:`cases`). Unsupported pairs must be refused with a sentence.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from oracles import training
from problems import DEDUCTIONS, REGIONS, STRUCTURES, honest, make, rebuilt, run
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.features.parts import PartFeatures
from maxmargin.features.tied import ChainFeatures
from maxmargin.problem import RESCALINGS, SLACKS, Problem, hinges
from maxmargin.regions import L1, L2
from maxmargin.solvers import Record, Solver, Status, Stop, solve
from maxmargin.structures import Points, Structure
from maxmargin.structures.base import FloatArray, Polytope
from maxmargin.structures.chains.chain import Chain
from maxmargin.structures.networks.network import Network

SD = mm.SimplicialDecomposition
Reach = tuple[float, int] | None
SOLVERS: dict[str, tuple[Solver, Reach]] = {
    # the relative gap that a solver must reach with the plain hinge, and in how many iterations
    "averaged perceptron": (mm.AveragedPerceptron(), None),
    "averaged perceptron, batch": (mm.AveragedPerceptron(batch=True), None),
    "block Frank-Wolfe": (mm.BlockFrankWolfe(), (1e-4, 3000)),
    "block Frank-Wolfe, gap sampling": (mm.BlockFrankWolfe(sampling="gap", cache=0.25), (1e-4, 3000)),
    "column generation": (mm.ColumnGeneration(), (1e-7, 200)),
    "column generation, Newton": (mm.ColumnGeneration(master="newton"), (1e-7, 200)),
    "column generation, proximal": (mm.ColumnGeneration(master="proximal"), (1e-7, 200)),
    "cutting planes, n-slack": (mm.CuttingPlane(slacks="n"), (1e-5, 400)),
    "cutting planes, 1-slack": (mm.CuttingPlane(slacks="one"), (1e-5, 400)),
    "dual extragradient": (mm.DualExtragradient(), (0.02, 300)),
    "dual extragradient, memory-efficient": (mm.DualExtragradient(store_duals=False, shard_parts=30), None),
    "dual extragradient, plain": (mm.DualExtragradient.plain(), None),
    "exact": (mm.Exact(), (1e-7, 1)),
    "exponentiated gradient": (mm.ExponentiatedGradient(block_size=2), (1e-3, 300)),
    "exponentiated gradient, batch": (mm.ExponentiatedGradient(online=False), None),
    "extragradient": (mm.Extragradient(), (0.02, 1000)),
    "extragradient, plain": (mm.Extragradient.plain(), None),
    "MIRA": (mm.Mira(), None),
    "MIRA, 3-best": (mm.Mira(k=3), None),
    "projected gradient": (mm.ProjectedGradient(), None),
    "projected gradient, plain": (mm.ProjectedGradient.plain(), None),
    "projected subgradient": (mm.ProjectedSubgradient(), None),
    "simplicial decomposition, product": (SD(), (1e-5, 400)),
    "simplicial decomposition, one": (SD(master="one"), (1e-5, 400)),
    "simplicial decomposition, working set": (SD(working_set="cyclic"), (1e-5, 400)),
    "subgradient": (mm.Subgradient(), (0.03, 3000)),
}
FEW, GIBBS = {"working_set_size": 2}, mm.Entropic()
VARIANTS: dict[str, tuple[Solver, Reach]] = {
    # other settings of the solvers, which run on the plain hinge only
    "block Frank-Wolfe, away": (mm.BlockFrankWolfe(direction="away"), (1e-4, 3000)),
    "block Frank-Wolfe, gap sampling, no kept passes": (
        mm.BlockFrankWolfe(sampling="gap", cache=0.25, kept_passes=0),
        (1e-4, 9000),
    ),
    "block Frank-Wolfe, plain": (mm.BlockFrankWolfe(direction="frank-wolfe", steps=1, kept_passes=0), (0.03, 3000)),
    "column generation, aging at once": (mm.ColumnGeneration(master="highs", age=1), (1e-7, 200)),
    "column generation, plain": (mm.ColumnGeneration(master="highs", stabilize=False, age=None), (1e-7, 200)),
    "column generation, plain extragradient": (
        mm.ColumnGeneration(master="proximal", stabilize=False, age=None),
        (1e-7, 200),
    ),
    "column generation, published": (mm.ColumnGeneration.plain(max_steps=100), None),
    "column generation, published, exact masters": (mm.ColumnGeneration.plain(master="highs"), (1e-7, 200)),
    "cutting planes, once a pass": (mm.CuttingPlane(solves_per_pass=1), (1e-5, 400)),
    "dual extragradient, Euclidean": (mm.DualExtragradient(geometry=mm.Euclidean()), (0.05, 400)),
    "dual extragradient, plain, entropic": (mm.DualExtragradient.plain(geometry=GIBBS), None),
    "exponentiated gradient, implicit": (mm.ExponentiatedGradient(implicit=True), (1e-3, 300)),
    "extragradient, Euclidean": (mm.Extragradient(geometry=mm.Euclidean()), (0.05, 1000)),
    "extragradient, leaning to the gold": (mm.Extragradient(geometry=mm.Entropic(gold_potential=2.0)), (0.05, 1000)),
    "extragradient, plain, entropic": (mm.Extragradient.plain(geometry=GIBBS), None),
    "projected subgradient, last weights": (mm.ProjectedSubgradient(average=False), None),
    "simplicial decomposition, example by example": (SD(joint=1), (1e-5, 400)),
    "simplicial decomposition, cyclic": (SD(working_set="cyclic", **FEW), (1e-5, 400)),
    "simplicial decomposition, one, cyclic": (SD(master="one", working_set="cyclic", **FEW), (1e-5, 400)),
    "simplicial decomposition, one, violation": (SD(master="one", working_set="violation", **FEW), (1e-5, 400)),
    "simplicial decomposition, plain": (SD.plain(), (1e-5, 400)),
    "simplicial decomposition, three points": (SD(r=3), (1e-3, 400)),
    "simplicial decomposition, violation": (SD(working_set="violation", **FEW), (1e-5, 400)),
}
ALL = SOLVERS | VARIANTS
WITH_RIDGE = ("simplicial decomposition, example by example", "simplicial decomposition, three points")
"""Variants that close the gap with a ridge only: proximal masters that are not solved at once, or forget, take long."""
SHARDED = ("dual extragradient", "dual extragradient, memory-efficient", "extragradient")
SLOW = {
    "column generation, published": (0.8, 50),
    "dual extragradient, plain": (0.8, 200),
    "dual extragradient, plain, entropic": (0.8, 200),
    "extragradient, plain": (0.8, 50),
    "extragradient, plain, entropic": (0.8, 50),
    "projected gradient": (0.35, 200),
    "projected gradient, plain": (0.8, 50),
    "projected subgradient": (0.35, 200),
    "projected subgradient, last weights": (0.35, 200),
    "simplicial decomposition, working set": (0.3, 200),
}
"""The share of the hinge loss at zero weights that a slow solver's gap may be, and after how many iterations; for
others 0.05 and ITERATIONS."""
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
HINGES = [(rescaling, slack) for slack in SLACKS for rescaling in RESCALINGS]
PLAIN = ("margin", "linear")
TOL, ITERATIONS = 0.02, 200
PASSES = 30
"""Iterations of solvers that do not minimize, which have nothing to reach."""
ALTERNATIVE = re.compile(r"\b(use|give|raise)\b .*\w")


def pose(kind: str, region: str = "ridge", rescaling: str = "margin", slack: str = "linear", n: int = 3) -> Problem:
    settings, signs = (WEIGHTS | MORE_WEIGHTS)[region]
    return replace(make(kind, n=n, region=settings, signs=signs), rescaling=rescaling, slack=slack)


posed = cache(pose)
"""The same problem for all solvers, where no test changes it."""


def cases(kind: str) -> Iterator[tuple[str, str, str]]:
    """Regions and hinges for a structure: all regions with the plain hinge, and a Latin square of the others."""
    others = [hinge for hinge in HINGES if hinge != PLAIN]
    yield from ((region, *PLAIN) for region in WEIGHTS | MORE_WEIGHTS)
    for i, region in enumerate(WEIGHTS):
        yield (region, *others[(i + STRUCTURES.index(kind)) % len(others)])


@cache
def bounds(kind: str, region: str, rescaling: str, slack: str) -> tuple[float, float]:
    """An interval that holds the optimum: Exact's, or where it refuses that of simplicial decomposition."""
    problem = posed(kind, region, rescaling, slack)
    solver: Solver = mm.Exact() if mm.Exact().unsupported(problem) is None else SD()
    certificate = run(problem, solver, tol=1e-6, max_iter=400).certificate
    return certificate.dual, certificate.primal


def error(problem: Problem, weights: FloatArray) -> float:
    """The training loss of the predictions."""
    return problem.loss(problem.structure.predict(problem.features.scores(weights)).z)


def every_pair(names: Iterable[str]) -> list[tuple[str, str]]:
    """Every solver with every structure; of the deduction systems, which have the same kernels, with one in turn."""
    turns = list(DEDUCTIONS)
    return [
        (name, kind)
        for i, name in enumerate(names)
        for kind in STRUCTURES
        if kind not in DEDUCTIONS or kind == turns[i % len(turns)]
    ]


@pytest.mark.parametrize(("name", "kind"), every_pair(ALL))
def test_pairs(name: str, kind: str) -> None:
    solver, reach = ALL[name]
    for region, rescaling, slack in cases(kind):
        case = f"{name}, {kind}, {region}, {rescaling}, {slack}"
        problem, plain = posed(kind, region, rescaling, slack), (rescaling, slack) == PLAIN
        if hinges.unsupported(problem) or (name in VARIANTS and not plain):
            continue
        if reason := solver.unsupported(problem):
            refused(problem, solver, reason)
            continue
        share, most = SLOW.get(name, (0.05, ITERATIONS)) if solver.minimizes else (1.0, PASSES)
        most *= 2 if kind == "associative" else 1  # whose gaps close slowly with a light penalty
        demanded = reach if plain and (name not in WITH_RIDGE or problem.region.ridge is not None) else None
        tol, iterations = demanded or (max(TOL, share / 4 if solver.minimizes else 0.0), most)
        solution = run(problem, solver, tol=tol, max_iter=iterations, random_state=0)
        certificate = solution.certificate
        lower, upper = bounds(kind, region, rescaling, slack)
        room = 1e-6 * (1.0 + upper)
        assert certificate.dual <= upper + room, case
        assert certificate.primal >= lower - room, case
        objective = problem.objective(solution.weights)
        if isinstance(problem.structure, Network) and getattr(solver, "inexact", 0.0) > 0.0:
            # Maxima are as near as the gap needs them, and their values are bounds.
            assert objective <= certificate.primal + 1e-9 * (1.0 + objective), case
        else:
            assert certificate.primal == pytest.approx(objective, rel=1e-9), case
        np.testing.assert_allclose(problem.region.project(solution.weights), solution.weights, atol=1e-9, err_msg=case)
        if demanded:
            assert solution.status is Status.CONVERGED, f"{case}: {solution.message}"
        if solver.minimizes:
            assert solution.status in (Status.CONVERGED, Status.BUDGET), f"{case}: {solution.message}"
            assert certificate.gap <= share * problem.hinge(np.zeros(problem.n_weights)), f"{case}: {solution.message}"
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
                rebuilt(problem)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("slack", SLACKS)
@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("kind", ["chain", "matching"])
def test_all_agree_with_the_enumerated_program(
    kind: str, rescaling: str, slack: str, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for signs in (False, True):
        base = make(kind, n=3, seed=4, region={"C": 0.1}, signs=signs)
        if base.structure.slack_relaxed:
            monkeypatch.setattr(type(base.structure), "slack_argmax", training.slack_argmax)
        weight = np.array([0.5, 2.0, 0.0]) if weighted else None
        problem = rebuilt(base, example_weight=weight, rescaling=rescaling, slack=slack)
        optimum = training.optimum(problem)
        for name, (solver, reach) in ALL.items():
            slow = name == "projected subgradient" and not signs
            judged = slow or (kind == "chain" and name.startswith(("cutting", "simplicial")))
            if judged and solver.unsupported(problem) is None:
                tol, iterations = reach or (1e-3, 500)
                certificate = run(problem, solver, tol=tol, max_iter=iterations, random_state=0).certificate
                assert certificate.dual <= optimum * (1 + 1e-6), name
                assert certificate.primal >= optimum * (1 - 1e-6), name
                assert certificate.relative_gap <= (tol if reach else 0.15), name


LIMITS = {1: 0.05, 2: 1e-3, 3: 1e-4, np.inf: 1e-6}
"""Points kept a simplex, and how near to the optimum a product of simplexes must come in 100 iterations."""


@pytest.mark.parametrize("r", LIMITS)
@pytest.mark.parametrize("slack", SLACKS)
@pytest.mark.parametrize("rescaling", RESCALINGS)
def test_every_limit_of_points_reaches_the_enumerated_optimum(rescaling: str, slack: str, r: float) -> None:
    rng, lengths = np.random.default_rng(0), np.full(10, 4)
    structure, rows = Chain(lengths, 3), rng.normal(size=(40, 3))
    gold = structure.encode(np.split((rows + rng.normal(size=(40, 3))).argmax(axis=1), 10))
    features, region = ChainFeatures(rows, lengths, 3), L2(C=0.1)
    problem = Problem.build(structure, features, gold, mm.losses.Hamming(), region, rescaling=rescaling, slack=slack)
    optimum = training.optimum(problem)
    for master in ("product", "one"):
        room = LIMITS[r] if master == "product" or r == np.inf else 0.2  # one simplex of few points zigzags
        for solver in (SD(master=master, r=r), SD(master=master, r=r, stabilize=False), SD.plain(master=master, r=r)):
            certificate = run(problem, solver, tol=room / 2, max_iter=100 if r < np.inf else 300).certificate
            case = f"{solver}, {certificate}, optimum {optimum}"
            assert optimum * (1 - 1e-6) <= certificate.primal <= optimum * (1 + room), case
            assert optimum * (1 - room) <= certificate.dual <= optimum * (1 + 1e-6), case


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *product(ALL, ("chain", "matching", "tree")),
        *(pair for pair in every_pair(SHARDED) if pair[1] not in ("chain", "matching", "tree")),
    ],
)
def test_seeds_decide_and_threads_do_not(name: str, kind: str) -> None:
    problem, solver, _ = supported(name, kind, n=9)
    runs = [run(problem, solver, tol=TOL, max_iter=12, random_state=3, n_jobs=jobs) for jobs in (1, 2, 3)]
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


@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("kind", ["chain", "matching"])
@pytest.mark.parametrize("name", ALL)
def test_counters_and_seconds_are_true(name: str, kind: str, rescaling: str) -> None:
    solver = ALL[name][0]
    for region in ("ridge", "L1 ball", "L1 penalty"):
        problem, calls = counted(pose(kind, region, rescaling, n=5))
        if solver.unsupported(problem) or (name in VARIANTS and rescaling != "margin"):
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


def supported(name: str, kind: str = "chain", n: int = 3) -> tuple[Problem, Solver, str]:
    """A problem that the solver takes, and its region; every solver takes chains with a ridge or an L1 penalty."""
    solver = ALL[name][0]
    for region in ("ridge", "L1 penalty"):
        for rescaling, slack in HINGES:
            problem = pose(kind, region, rescaling, slack, n)
            if not (hinges.unsupported(problem) or solver.unsupported(problem)):
                return problem, solver, region
    pytest.skip(f"{name} takes no {kind}, which test_pairs checks it refuses with a sentence")


@pytest.mark.parametrize("kind", ["chain", "matching"])
@pytest.mark.parametrize("name", ALL)
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
@pytest.mark.parametrize("name", ALL)
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


@pytest.mark.parametrize("name", ALL)
def test_a_step_that_is_interrupted_at_its_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Solvers that change compiled memory in place must still return the best feasible point."""
    problem, solver, _ = supported(name, n=10)
    step, calls = type(solver).step, []

    def broken(self: Solver, *arguments: Any) -> Any:
        after = step(self, *arguments)
        calls.append(after)
        if len(calls) == (1 if name == "exact" else 3):
            raise KeyboardInterrupt
        return after

    monkeypatch.setattr(type(solver), "step", broken)
    with pytest.warns(ConvergenceWarning, match="best weights so far"):
        solution = solve(problem, solver, stop=Stop(tol=0.0), random_state=0)
    assert solution.status is Status.INTERRUPTED
    assert solution.counters.iterations == len(calls) - 1
    assert solution.certificate.primal == pytest.approx(problem.objective(solution.weights))
    assert solution.certificate.dual <= solution.certificate.primal


@pytest.mark.parametrize(("name", "kind"), every_pair(SOLVERS))
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
