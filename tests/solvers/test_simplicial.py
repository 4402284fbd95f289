"""Simplicial decomposition and cutting planes: against each other, and against Frank-Wolfe by hand.

The stage for all solvers is test_pairs.py.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import problems
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import STRUCTURES, make
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.features.tied import TiedRows
from maxmargin.losses import Hamming
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.solvers import Solution, Solver, Status
from maxmargin.solvers.decomposition.simplex_masters import Masters
from maxmargin.structures.base import IntArray, Points
from maxmargin.structures.candidates import Candidates
from maxmargin.structures.networks.associative import Associative

SD = mm.SimplicialDecomposition
run = partial(problems.run, tol=1e-7, max_iter=400)
SOLVERS: dict[str, Solver] = {
    "product": SD(),
    "product, example by example": SD(joint=1),
    "product, plain": SD.plain(),
    "product, cyclic": SD(working_set="cyclic", working_set_size=2),
    "product, violation": SD(working_set="violation", working_set_size=2),
    "one": SD(master="one"),
    "one, cyclic": SD(master="one", working_set="cyclic", working_set_size=2),
    "one, violation": SD(master="one", working_set="violation", working_set_size=2),
    "n slacks": mm.CuttingPlane(),
    "n slacks, once a pass": mm.CuttingPlane(solves_per_pass=1),
    "one slack": mm.CuttingPlane(slacks="one"),
}
MAIN = ("product", "product, example by example", "one", "n slacks, once a pass", "one slack")
REGIONS = {
    "ridge": {"C": 0.5},
    "small ridge": {"C": 0.01},
    "ball and ridge": {"C": 1.0, "radius": 0.5},
}


def agree(solution: Solution, optimum: float) -> None:
    slack = 1e-7 * (1 + abs(optimum))
    assert solution.certificate.dual <= optimum + slack
    assert solution.certificate.primal >= optimum - slack
    duals = [record.certificate.dual for record in solution.history]
    assert all(after >= before for before, after in pairwise(duals))


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("kind", ["chain", "cut", "matching", "tree"])
def test_without_rescaling_all_agree(kind: str, region: str) -> None:
    for slack in ("linear", "quadratic"):
        problem = replace(make(kind, region=REGIONS[region], signs=True), rescaling="none", slack=slack)
        optimum = run(problem, SD(), tol=1e-9).certificate
        assert optimum.relative_gap <= 1e-9
        for name in MAIN:
            if SOLVERS[name].unsupported(problem) is None:
                solution = run(problem, SOLVERS[name], tol=1e-4)
                assert solution.status is Status.CONVERGED, name
                agree(solution, optimum.primal)


@pytest.mark.parametrize(
    ("kind", "seed", "C"),
    [
        ("associative", 35, 0.5),
        ("candidates", 25, 0.5),
        ("candidates", 25, 5.0),
        ("cut", 14, 5.0),
        ("matching", 1, 0.5),
        ("matching-capacity", 9, 5.0),
    ],
)
def test_quadratic_slack_near_the_best_weights(kind: str, seed: int, C: float) -> None:
    """Where every violated ray has less value than the mass, so that asking for more would bring none in for ever."""
    problem = replace(make(kind, seed=seed, n=8, region={"C": C}), slack="quadratic")
    solution = run(problem, SD(), tol=1e-7)
    assert solution.status is Status.CONVERGED
    assert solution.counters.argmax < 200


@pytest.mark.parametrize("kind", ["candidates", "chain", "cut", "matching", "tree"])
def test_quadratic_slack_converges_on_many_problems(kind: str) -> None:
    for seed in range(21):
        problem = replace(make(kind, seed=seed, n=8, region={"C": (0.05, 0.5, 5.0)[seed % 3]}), slack="quadratic")
        for name in ("product", "product, example by example", "n slacks"):
            solution = run(problem, SOLVERS[name], tol=1e-4)
            assert solution.status is Status.CONVERGED, (name, seed)


@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_stabilized_masters_need_few_rounds_where_the_penalty_is_weak(slack: str) -> None:
    rng = np.random.default_rng(0)
    X, w = [rng.normal(size=(12, 12, 20)) for _ in range(60)], rng.normal(size=20)
    y = [np.stack(linear_sum_assignment(-x @ w + 1.0 * rng.normal(size=(12, 12))), axis=1) for x in X]
    rounds = {}
    for stabilize in (True, False):
        model = mm.MatchingSVM(C=10.0, slack=slack, solver=SD(stabilize=stabilize), tol=1e-3, max_iter=60)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = model.fit(X, y).solution_
        rounds[stabilize] = solution.counters.iterations
        assert solution.status is Status.CONVERGED or not stabilize
    assert rounds[True] < rounds[False]


@pytest.mark.parametrize("solver", [SD(), SD(master="one"), mm.CuttingPlane()], ids=["product", "one", "n slacks"])
@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_shards_do_not_change_the_optimum(solver: Solver, slack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = replace(make("chain", n=8), slack=slack)
    whole = run(problem, solver)
    monkeypatch.setattr(type(solver), "shard_size", problem.structure.n_parts // 3)
    assert len(Run.of(problem, np.random.default_rng(0), solver.shard_size).session.source) > 1
    parts = run(problem, solver)
    assert parts.status is Status.CONVERGED
    assert parts.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-6)


@pytest.mark.parametrize("slack", ["linear", "quadratic"])
def test_masters_are_no_more_accurate_than_asked_for(slack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, tol = replace(make("chain", n=30, region={"C": 0.2}), slack=slack), 1e-3
    optimum, aims, solved = run(problem, SD()).certificate.dual, [], Masters.solve

    def recorded(self: Masters, blocks: IntArray, aim: float, *, joint: int, sweeps: int) -> float:
        aims.append(aim)
        gap = solved(self, blocks, aim, joint=joint, sweeps=sweeps)
        assert gap <= aim
        return gap

    monkeypatch.setattr(Masters, "solve", recorded)
    for name in ("product", "n slacks", "n slacks, once a pass"):
        aims.clear()
        assert run(problem, SOLVERS[name], tol=tol).status is Status.CONVERGED
        assert aims[-1] >= 1e-5 * tol * 0.5 * optimum, name


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(STRUCTURES),
    region=st.sampled_from(sorted(REGIONS)),
    solver=st.sampled_from(sorted(SOLVERS)),
    slack=st.sampled_from(["linear", "quadratic"]),
    seed=st.integers(0, 10_000),
)
def test_the_bounds_hold_after_any_number_of_rounds(kind: str, region: str, solver: str, slack: str, seed: int) -> None:
    problem = replace(make(kind, seed=seed, n=5, region=REGIONS[region]), slack=slack)
    if SOLVERS[solver].unsupported(problem) is None:
        optimum = run(problem, SD(), tol=1e-9).certificate.primal
        for rounds in (1, 2, 5):
            agree(run(problem, SOLVERS[solver], max_iter=rounds), optimum)


@pytest.mark.parametrize("kind", ["chain", "matching"])
def test_one_point_is_frank_wolfe(kind: str) -> None:
    problem = make(kind, n=6, region={"C": 0.05})
    C = problem.region.C  # type: ignore[attr-defined]
    solver = SD.plain(master="one", r=1)
    runner = Run.of(problem, np.random.default_rng(0))
    state = solver.init(runner, Start())
    g, loss = np.zeros(problem.n_weights), 0.0
    for _ in range(30):
        state = solver.step(runner, state)
        worst = problem.most_violated(-C * g)
        to, gain = problem.gradient(worst.z) - g, float(worst.loss.sum()) - loss
        bend = C * to @ to
        t = float(np.clip((gain - C * to @ g) / bend, 0.0, 1.0)) if bend > 0.0 else 0.0
        g, loss = g + t * to, loss + t * gain
        np.testing.assert_allclose(state.g, g, atol=1e-10)
        assert state.loss == pytest.approx(loss, abs=1e-10)


@pytest.mark.parametrize("master", ["one", "product"])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_without_a_limit_it_ends_after_finitely_many_rounds(kind: str, master: str) -> None:
    solution = run(make(kind), SD.plain(master=master), tol=1e-10, max_iter=100)
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize("r", [1, 2, 5])
@pytest.mark.parametrize("master", ["one", "product"])
def test_limits_keep_masters_small(master: str, r: int) -> None:
    problem = make("chain", n=5)
    optimum = run(problem, mm.Exact()).certificate.primal
    solver = SD(master=master, r=r, age=0)
    runner = Run.of(problem, np.random.default_rng(0))
    state = solver.init(runner, Start())
    for _ in range(25):
        state = solver.step(runner, state)
        sizes = np.empty(state.masters.n_blocks, dtype=np.int64)
        state.masters.kernel.sizes(sizes)
        assert (sizes <= r + 1).all()
    agree(run(problem, solver, max_iter=60), optimum)
    assert run(problem, solver, max_iter=300).certificate.relative_gap < 0.1


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("r", [1, 2, 3])
def test_gold_outputs_come_back_after_they_were_dropped(r: int, rescaling: str) -> None:
    """Lists whose solution has weight on the gold outputs, which leave a simplex as soon as it is full."""
    rng = np.random.default_rng(5)
    structure = Candidates(rng.integers(6, 14, size=5))
    features = PartFeatures(rng.normal(size=(structure.n_parts, 40)), structure.blocks[0].offsets)
    gold, loss = structure.encode(rng.integers(0, 6, size=5)), mm.losses.Hamming()
    problem = Problem.build(structure, features, gold, loss, L2(C=0.3), rescaling=rescaling)
    optimum = run(problem, mm.Exact()).certificate.primal
    for solver in (SD(r=r), SD.plain(r=r), SD(r=r, joint=1)):
        solution = run(problem, solver, max_iter=200)
        agree(solution, optimum)
        assert solution.certificate.relative_gap < 0.1 / r, solver


def test_the_product_needs_fewer_rounds_than_one_simplex() -> None:
    problem = make("chain", n=40)
    product, one = (run(problem, SD(master=master), tol=1e-4) for master in ("product", "one"))
    assert product.status is one.status is Status.CONVERGED
    assert product.counters.argmax < one.counters.argmax
    for master in ("product", "one"):  # a step starts from what was just certified
        counters = run(make("matching", n=10), SD(master=master), tol=1e-12, max_iter=7).counters
        assert counters.argmax == counters.iterations + 1


def test_shards_change_nothing_but_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make("chain", n=12)
    for name, solver in SOLVERS.items():
        whole = run(problem, solver, max_iter=6)
        with monkeypatch.context() as patch:
            patch.setattr(type(solver), "shard_size", 60)
            pieces = run(problem, solver, max_iter=6)
        np.testing.assert_allclose(pieces.weights, whole.weights, atol=1e-8, err_msg=name)


def test_examples_without_weight_and_empty_batches() -> None:
    base = make("chain", n=3)
    problem = base.select(np.zeros(0, dtype=np.int64))
    for name, solver in SOLVERS.items():
        assert run(problem, solver).certificate.primal == 0.0, name
        one = run(base.select([0]), solver)
        agree(one, run(base.select([0]), mm.Exact()).certificate.primal)


def test_a_start_from_weights() -> None:
    problem = make("chain", n=10)
    cold = run(problem, SD(), tol=1e-5)
    warm = run(problem, SD(), tol=1e-5, start=Start(weights=cold.weights))
    assert warm.status is Status.CONVERGED
    assert warm.history[0].primal == pytest.approx(cold.certificate.primal)
    assert warm.counters.argmax <= cold.counters.argmax


def test_numbers_that_overflow_are_a_status() -> None:
    problem = make("matching", n=4, region={"C": 1e300})
    for solver in SOLVERS.values():
        assert run(problem, solver, max_iter=20).status in (Status.NONFINITE, Status.BUDGET, Status.CONVERGED)


def test_whole_numbers_may_be_of_numpy() -> None:
    three = np.int64(3)
    problem = make("chain", n=6)
    optimum = run(problem, mm.Exact()).certificate.primal
    for solver in (
        SD(r=three, working_set="cyclic", working_set_size=three, joint=three, sweeps=three, age=three, max_iter=three),
        SD(r=np.float32(np.inf), accuracy=np.float64(0.1)),  # type: ignore[arg-type]
        mm.CuttingPlane(solves_per_pass=three, joint=three, sweeps=three, age=three, max_iter=three),
    ):
        agree(run(problem, solver, max_iter=20), optimum)


# --- inexact maxima ----------------------------------------------------------------------------------------------


def noisy_grids(side: int = 8) -> Problem:
    """Two grids of three labels whose relaxed maxima are often fractional."""
    rng, n = np.random.default_rng(0), side * side
    number = np.arange(n).reshape(side, side)
    right, down = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in (right, down)])
    labels = [np.repeat(rng.integers(0, 3, 4), n // 4) for _ in range(2)]
    nodes = np.concatenate([rng.normal(size=(n, 3)) + np.eye(3)[own] for own in labels])
    structure = Associative([n, n], np.tile(edges, (2, 1)), [0, len(edges), 2 * len(edges)], 3)
    rewards = TiedRows(np.ones((2 * len(edges), 1)), structure.edge_offsets, 3)
    features = Stacked(TiedRows(nodes, [0, n, 2 * n], 3), rewards)
    region = L2(C=1.0, nonnegative=np.arange(12) >= 9)
    return Problem.build(structure, features, structure.encode(labels), Hamming(), region)


@pytest.mark.parametrize("inexact", [0.1, 0.5, 0.9])
def test_inexact_maxima_leave_true_certificates(inexact: float) -> None:
    problem = noisy_grids()
    optimum = run(problem, SD(inexact=0.0), tol=1e-8).certificate
    asked: list[float] = []
    within = problem.structure.argmax_within

    def watched(scores: np.ndarray, tol: float, **rest: Any) -> Points:
        asked.append(tol)
        return within(scores, tol, **rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problem.structure, "argmax_within", watched)
        solution = run(problem, SD(inexact=inexact), tol=1e-3)
    certificate = solution.certificate
    assert solution.status is Status.CONVERGED
    assert certificate.dual <= optimum.primal * (1 + 1e-9)
    assert certificate.primal >= optimum.dual * (1 - 1e-9)
    assert certificate.primal >= problem.objective(solution.weights) * (1 - 1e-9)
    assert sum(tol > 0.0 for tol in asked) >= len(asked) - 2  # exact at the start, where no gap is known
    assert min(tol for tol in asked if tol > 0.0) < 2e-2 * max(asked)  # as near as the gap needs them


def test_a_run_ends_as_soon_as_its_gap_is_closed() -> None:
    problem = noisy_grids()
    solution = run(problem, SD(), tol=1e-3)
    done = solution.counters.iterations
    assert solution.status is Status.CONVERGED
    assert done > 16  # later certificates are two and more iterations apart
    assert run(problem, SD(), tol=1e-3, max_iter=done - 2).certificate.relative_gap > 1e-3
