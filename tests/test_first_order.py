"""Projected subgradient steps and exponentiated gradient: their own rates, identities and settings.

The stage for all solvers is test_pairs.py.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from data import chains, matchings
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.enumeration import vertices
from problems import ENTROPIC, REGIONS, STRUCTURES, make
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.optimization.base import Run
from maxmargin.problem import RESCALINGS, SLACKS, Problem
from maxmargin.regions import L1, L2
from maxmargin.solvers import Solution, Solver, Start, Status, Stop, certify, solve
from maxmargin.structures import Points, Structure
from maxmargin.structures.base import FloatArray

all_outputs = cache(vertices)
RIDGES = [name for name, settings in REGIONS.items() if "C" in settings]


def run(problem: Problem, solver: Solver, *, tol: float = 1e-9, max_iter: int = 300, **options: Any) -> Solution:
    """Solve without the warning that a small budget brings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solve(problem, solver, stop=Stop(tol=tol, max_iter=max_iter), **options)


def rows_of(problem: Problem, kind: str) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
    """Per example all outputs, their feature differences and losses, by enumeration and without example weights."""
    features, gold = problem.features.to_sparse().toarray(), problem.gold
    scale = np.where(problem.scale > 0.0, problem.scale, 1.0)
    out = []
    for i, outputs in enumerate(all_outputs(problem.structure)):
        parts = problem.structure.parts_of([i])
        differences = (outputs - gold[parts]) @ features[parts]
        out.append((outputs, differences, (outputs - gold[parts]) @ problem.costs[parts] / scale[i]))
    return out


def enumerated(problem: Problem, kind: str) -> float:
    """The optimum of the penalty form by a quadratic program with one row for every output."""
    n, m = problem.n_weights, problem.structure.n_examples
    rows, rhs = [], []
    for i, (outputs, differences, loss) in enumerate(rows_of(problem, kind)):
        own = np.zeros((len(loss), m))
        own[:, i] = -1.0
        wrong = np.abs(outputs - problem.gold[problem.structure.parts_of([i])]).sum(axis=1) > 0.0
        factor, margin = {
            "margin": (np.ones(len(loss)), loss),
            "slack": (loss, loss),
            "none": (wrong.astype(float), wrong.astype(float)),
        }[problem.rescaling]
        rows.append(np.hstack([factor[:, None] * differences, own]))
        rhs.append(-margin)
    rows.append(np.hstack([np.zeros((m, n)), -np.eye(m)]))
    rhs.append(np.zeros(m))
    quadratic = np.concatenate([np.full(n, problem.region.curvature), np.zeros(m)])
    linear = np.zeros(n + m)
    if problem.slack == "quadratic":
        quadratic[n:] = problem.scale
    else:
        linear[n:] = problem.scale
    options = clarabel.DefaultSettings()
    options.verbose = False
    matrix = np.vstack(rows)
    answer = clarabel.DefaultSolver(
        sp.csc_matrix(sp.diags(quadratic)),
        linear,
        sp.csc_matrix(matrix),
        np.concatenate(rhs),
        [clarabel.NonnegativeConeT(len(matrix))],
        options,
    ).solve()
    return float(answer.obj_val)


def slack_by_enumeration(kind: str) -> Any:
    """``Structure.slack_argmax``, exact on every structure that can be enumerated."""

    def slack_argmax(
        self: Structure, scores: FloatArray, margin: FloatArray, costs: FloatArray, constants: FloatArray, **_: Any
    ) -> Points:
        z, value = np.zeros(self.n_parts), np.zeros(self.n_examples)
        for i, outputs in enumerate(all_outputs(self)):  # type: ignore[arg-type]
            parts = self.parts_of([i])
            worth = (outputs @ costs[parts] + constants[i]) * (margin[i] + outputs @ scores[parts])
            z[parts], value[i] = outputs[np.argmax(worth)], worth.max()
        return Points(z, value, np.zeros(self.n_examples, dtype=np.int8))

    return slack_argmax


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("slack", SLACKS)
@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("kind", ["chain", "matching"])
def test_projected_gradient_finds_enumerated_optima(
    kind: str, rescaling: str, slack: str, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = make(kind, n=3, region={"C": 0.1}, seed=4)
    monkeypatch.setattr(type(base.structure), "slack_argmax", slack_by_enumeration(kind))
    problem = Problem.build(
        base.structure,
        base.features,
        base.gold,
        mm.losses.Hamming(),
        base.region,
        example_weight=np.array([0.5, 2.0, 0.0]) if weighted else None,
        rescaling=rescaling,
        slack=slack,
    )
    optimum = enumerated(problem, kind)
    certificate = run(problem, mm.ProjectedGradient(), max_iter=500, tol=1e-3).certificate
    assert certificate.dual <= optimum * (1 + 1e-6)
    assert certificate.primal >= optimum * (1 - 1e-6)
    assert certificate.relative_gap < 0.15


@settings(max_examples=20, deadline=None, derandomize=True)
@given(kind=st.sampled_from(STRUCTURES), radius=st.sampled_from([0.1, 0.7, 5.0]), seed=st.integers(0, 10_000))
def test_projected_gradient_obeys_the_regret_bound_in_a_ball(kind: str, radius: float, seed: int) -> None:
    problem = make(kind, seed=seed, region={"radius": radius})
    runner, solver = Run.of(problem, np.random.default_rng(0)), mm.ProjectedGradient()
    state = solver.init(runner, Start())
    for t in range(1, 31):
        state = solver.step(runner, state)
        average = solver.propose(runner, state)[1]
        assert certify(problem, average).gap <= 3.0 * radius * np.sqrt(state.squares) / t * (1 + 1e-9)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(kind=st.sampled_from(STRUCTURES), seed=st.integers(0, 10_000))
def test_projected_gradient_obeys_the_regret_bound_with_a_ridge(kind: str, seed: int) -> None:
    problem = make(kind, seed=seed, region={"C": 1e-3})
    runner, solver = Run.of(problem, np.random.default_rng(0)), mm.ProjectedGradient()
    state, longest = solver.init(runner, Start()), 0.0
    for t in range(1, 31):
        before = state.squares
        state = solver.step(runner, state)
        longest = max(longest, state.squares - before)
        average = solver.propose(runner, state)[1]
        assert certify(problem, average).gap <= 2e-3 * longest / (t + 1) * (1 + 1e-9) + 1e-12


def test_with_a_ridge_the_last_weights_answer_the_average_outputs() -> None:
    problem = make("chain", region={"C": 0.05})
    runner, solver = Run.of(problem, np.random.default_rng(0)), mm.ProjectedGradient()
    state = solver.init(runner, Start())
    for _ in range(9):
        state = solver.step(runner, state)
        np.testing.assert_allclose(state.weights, problem.region.best_response(state.outputs.g), atol=1e-12)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_projected_gradient_in_shards(kind: str) -> None:
    class Shards(mm.ProjectedGradient):
        shard_size = 25  # type: ignore[assignment]

    for slack in SLACKS:
        problem = replace(make(kind, n=6), slack=slack)
        whole, pieces = run(problem, mm.ProjectedGradient(), max_iter=20), run(problem, Shards(), max_iter=20)
        np.testing.assert_allclose(pieces.weights, whole.weights, rtol=1e-6, atol=1e-9)
        assert pieces.certificate.gap == pytest.approx(whole.certificate.gap, rel=1e-6)
        assert pieces.counters == whole.counters


@pytest.mark.parametrize("kind", STRUCTURES)
def test_projected_gradient_without_regularization(kind: str) -> None:
    problem = make(kind, region={"C": np.inf})
    solution = solve(problem, mm.ProjectedGradient(), stop=Stop(tol=1e-9, max_iter=60))
    assert solution.certificate.hinge < 0.9 * problem.hinge(np.zeros(problem.n_weights))


@pytest.mark.parametrize("region", REGIONS)
def test_steps_of_the_paper(region: str) -> None:
    problem = make("matching", region=REGIONS[region], signs=True)
    solution = run(problem, mm.ProjectedGradient(step_size=0.1), max_iter=400)
    optimum = run(problem, mm.Exact()).certificate.primal
    assert solution.certificate.dual <= optimum * (1 + 1e-7)
    assert solution.certificate.gap <= 0.05 * problem.hinge(np.zeros(problem.n_weights))


def test_start_weights() -> None:
    problem = make("matching")
    first = run(problem, mm.ProjectedGradient(), tol=1e-3, max_iter=1000)
    again = run(problem, mm.ProjectedGradient(), start=Start(first.weights), max_iter=1)
    assert again.certificate.primal <= first.certificate.primal


# --- exponentiated gradient -----------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(ENTROPIC),
    region=st.sampled_from(RIDGES),
    block_size=st.integers(1, 5),
    online=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_no_worse_dual_is_accepted(kind: str, region: str, block_size: int, online: bool, seed: int) -> None:
    problem = make(kind, seed=seed, region=REGIONS[region], signs=True)
    runner = Run.of(problem, np.random.default_rng(seed))
    solver = mm.ExponentiatedGradient(online=online, block_size=block_size, growth=4.0)
    state = solver.init(runner, Start())
    best = -np.inf
    for _ in range(12):
        (proposal,) = solver.propose(runner, state)
        dual = proposal.loss + proposal.weights @ proposal.g + problem.region.penalty(proposal.weights)
        assert dual >= best - 1e-10 * (1.0 + abs(best))
        best = max(best, dual)
        np.testing.assert_allclose(state.g, proposal.g, atol=1e-9)
        assert state.loss == pytest.approx(proposal.loss, abs=1e-9)
        state = solver.step(runner, state)


@pytest.mark.parametrize("kind", ENTROPIC)
def test_potentials_are_those_of_the_marginals(kind: str) -> None:
    problem = make(kind, n=7)
    for solver in (mm.ExponentiatedGradient(block_size=3), mm.ExponentiatedGradient(online=False)):
        solution = run(problem, solver, max_iter=10, random_state=0)
        assert solution.potentials is not None
        np.testing.assert_allclose(problem.structure.marginals(solution.potentials).z, solution.duals, atol=1e-12)


def test_one_block_is_the_batch_form() -> None:
    problem = make("chain", n=6)
    batch = run(problem, mm.ExponentiatedGradient(online=False), max_iter=15)
    block = run(problem, mm.ExponentiatedGradient(block_size=6), max_iter=15, random_state=5)
    np.testing.assert_array_equal(batch.weights, block.weights)


def test_seeds_order_the_blocks() -> None:
    problem = make("chain", n=9)
    one, two = (run(problem, mm.ExponentiatedGradient(block_size=1), max_iter=5, random_state=s) for s in (0, 1))
    assert (one.weights != two.weights).any()


@pytest.mark.parametrize("jobs", [2, 3])
def test_same_bits_for_any_number_of_threads(jobs: int) -> None:
    problem = make("tree", n=30)
    solver = mm.ExponentiatedGradient(block_size=4)
    one, more = (run(problem, solver, max_iter=8, random_state=0, n_jobs=n) for n in (1, jobs))
    np.testing.assert_array_equal(one.weights, more.weights)


def test_warm_starts_from_potentials() -> None:
    problem = make("chain", n=6)
    solver = mm.ExponentiatedGradient(block_size=2)
    first = run(problem, solver, tol=1e-3, random_state=0)
    assert first.status is Status.CONVERGED
    again = run(problem, solver, tol=1e-3, start=Start(first.weights, potentials=first.potentials))
    assert again.status is Status.CONVERGED
    assert again.counters.iterations == 0


def test_example_weights() -> None:
    base = make("chain", n=3)
    problem = replace(base.select([0, 1, 2]), example_weight=None)
    weight = np.array([2.0, 0.0, 1.0])
    weighted = Problem.build(
        base.structure, base.features, base.gold, mm.losses.Hamming(), base.region, example_weight=weight
    )
    repeated = problem.select(np.array([0, 0, 2]))
    solver = mm.ExponentiatedGradient(block_size=1)
    one, two = (run(p, solver, tol=1e-4, random_state=0).certificate for p in (weighted, repeated))
    assert one.primal == pytest.approx(two.primal, rel=2e-4)


@pytest.mark.parametrize("solver", [mm.ProjectedGradient(), mm.ExponentiatedGradient()])
def test_no_examples_and_no_features(solver: Solver) -> None:
    empty = make("chain").select([])
    assert run(empty, solver, max_iter=3).certificate.primal == 0.0
    base = make("chain")
    still = replace(
        base,
        features=mm.features.ChainFeatures(np.zeros((base.structure.starts[1] // 3, 4)), base.structure.n_variables, 3),
    )
    assert np.isfinite(run(still, solver, max_iter=20).certificate.primal)


def test_through_estimators() -> None:
    X, y = chains(6)
    model = mm.ChainSVM(solver=mm.ExponentiatedGradient(), C=0.5, warm_start=True, random_state=0).fit(X, y)
    assert model.solution_.status is Status.CONVERGED
    assert model.fit(X, y).solution_.counters.iterations == 0
    X, y = matchings(6)
    model = mm.MatchingSVM(solver=mm.ProjectedGradient(), C=0.05, slack="quadratic", tol=0.05).fit(X, y)
    assert model.solution_.status is Status.CONVERGED


def test_refusals() -> None:
    solver = mm.ExponentiatedGradient()
    assert "Extragradient" in str(solver.unsupported(make("matching")))
    assert "finite C" in str(solver.unsupported(make("chain", region={"radius": 1.0})))
    assert "finite C" in str(solver.unsupported(make("chain", region={"l1": 1.0})))
    assert "CuttingPlane" in str(solver.unsupported(replace(make("chain"), slack="quadratic")))
    for name, bad in [
        ("online", "yes"),
        ("block_size", 0),
        ("block_size", 2.5),
        ("growth", 0.5),
        ("eta", -1.0),
        ("eta", "large"),
        ("max_iter", 0),
    ]:
        with pytest.raises(ValueError, match=name):
            mm.ExponentiatedGradient(**{name: bad})
    for name, bad in [("step_size", 0.0), ("step_size", "big"), ("average", 1), ("max_iter", np.inf)]:
        with pytest.raises(ValueError, match=name):
            mm.ProjectedGradient(**{name: bad})


def test_features_of_any_size_do_not_overflow() -> None:
    base = make("chain", n=5)
    for size in (1e-12, 1e4):
        region = L2(C=0.5 / size**2)
        rows = size * np.random.default_rng(0).normal(size=(base.structure.starts[1] // 3, 4))
        features = mm.features.ChainFeatures(rows, base.structure.n_variables, 3)
        problem = replace(base, features=features, region=region)
        for solver in (mm.ExponentiatedGradient(block_size=2), mm.ProjectedGradient()):
            assert run(problem, solver, max_iter=200, random_state=0).status is not Status.NONFINITE
    assert run(replace(base, region=L1(1e-6)), mm.ProjectedGradient(), tol=1e-3).status is Status.CONVERGED
