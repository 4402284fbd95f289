"""Projected subgradient steps and exponentiated gradient: their own rates, identities and settings.

The stage for all solvers is test_pairs.py.
"""

from __future__ import annotations

from dataclasses import replace

import clarabel
import numpy as np
import pytest
from data import chains, matchings
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import training
from oracles.reference import conic
from problems import ENTROPIC, REGIONS, STRUCTURES, make, rebuilt, run

import maxmargin as mm
from maxmargin.optimization.run import Run
from maxmargin.problem import SLACKS, Problem
from maxmargin.regions import L1, L2
from maxmargin.solvers import Solver, Start, Status, Stop, certify, solve
from maxmargin.solvers.first_order import exponentiated_gradient
from maxmargin.structures.base import FloatArray

RIDGES = [name for name, settings in REGIONS.items() if "C" in settings]


@settings(max_examples=20, deadline=None, derandomize=True)
@given(kind=st.sampled_from(STRUCTURES), radius=st.sampled_from([0.1, 0.7, 5.0]), seed=st.integers(0, 10_000))
def test_projected_subgradient_obeys_the_regret_bound_in_a_ball(kind: str, radius: float, seed: int) -> None:
    problem = make(kind, seed=seed, region={"radius": radius})
    runner, solver = Run.of(problem, np.random.default_rng(0)), mm.ProjectedSubgradient()
    state = solver.init(runner, Start())
    for t in range(1, 31):
        state = solver.step(runner, state)
        average = solver.propose(runner, state)[1]
        assert certify(problem, average).gap <= 3.0 * radius * np.sqrt(state.squares) / t * (1 + 1e-9)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(kind=st.sampled_from(STRUCTURES), seed=st.integers(0, 10_000))
def test_projected_subgradient_obeys_the_regret_bound_with_a_ridge(kind: str, seed: int) -> None:
    problem = make(kind, seed=seed, region={"C": 1e-3})
    runner, solver = Run.of(problem, np.random.default_rng(0)), mm.ProjectedSubgradient()
    state, longest = solver.init(runner, Start()), 0.0
    for t in range(1, 31):
        before = state.squares
        state = solver.step(runner, state)
        longest = max(longest, state.squares - before)
        average = solver.propose(runner, state)[1]
        assert certify(problem, average).gap <= 2e-3 * longest / (t + 1) * (1 + 1e-9) + 1e-12


def test_with_a_ridge_the_last_weights_answer_the_average_outputs() -> None:
    problem = make("chain", region={"C": 0.05})
    runner, solver = Run.of(problem, np.random.default_rng(0)), mm.ProjectedSubgradient()
    state = solver.init(runner, Start())
    for _ in range(9):
        state = solver.step(runner, state)
        np.testing.assert_allclose(state.weights, problem.region.best_response(state.outputs.g), atol=1e-12)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_projected_subgradient_in_shards(kind: str) -> None:
    class Shards(mm.ProjectedSubgradient):
        shard_size = 25  # type: ignore[assignment]

    for slack in SLACKS:
        problem = replace(make(kind, n=6), slack=slack)
        whole, pieces = run(problem, mm.ProjectedSubgradient(), max_iter=20), run(problem, Shards(), max_iter=20)
        np.testing.assert_allclose(pieces.weights, whole.weights, rtol=1e-6, atol=1e-9)
        assert pieces.certificate.gap == pytest.approx(whole.certificate.gap, rel=1e-6)
        assert pieces.counters == whole.counters


@pytest.mark.parametrize("kind", STRUCTURES)
def test_projected_subgradient_without_regularization(kind: str) -> None:
    problem = make(kind, region={"C": np.inf})
    solution = solve(problem, mm.ProjectedSubgradient(), stop=Stop(tol=1e-9, max_iter=60))
    assert solution.certificate.hinge < 0.9 * problem.hinge(np.zeros(problem.n_weights))


@pytest.mark.parametrize("region", REGIONS)
def test_steps_of_the_paper(region: str) -> None:
    problem = make("matching", region=REGIONS[region], signs=True)
    solution = run(problem, mm.ProjectedSubgradient(step_size=0.1), max_iter=400)
    optimum = run(problem, mm.Exact()).certificate.primal
    assert solution.certificate.dual <= optimum * (1 + 1e-7)
    assert solution.certificate.gap <= 0.05 * problem.hinge(np.zeros(problem.n_weights))


def test_start_weights() -> None:
    problem = make("matching")
    first = run(problem, mm.ProjectedSubgradient(), tol=1e-3, max_iter=1000)
    again = run(problem, mm.ProjectedSubgradient(), start=Start(first.weights), max_iter=1)
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
    for chosen in ({"block_size": 3}, {"online": False}, {"implicit": True}):
        solution = run(problem, mm.ExponentiatedGradient(**chosen), max_iter=10, random_state=0)
        assert solution.potentials is not None
        np.testing.assert_allclose(problem.structure.marginals(solution.potentials).z, solution.duals, atol=1e-12)


def test_one_block_is_the_batch_form() -> None:
    problem = make("chain", n=6)
    batch = run(problem, mm.ExponentiatedGradient(online=False), max_iter=15)
    block = run(problem, mm.ExponentiatedGradient(block_size=6), max_iter=15, random_state=5)
    np.testing.assert_array_equal(batch.weights, block.weights)


def test_blocks_grow_with_the_number_of_weights(monkeypatch) -> None:
    problem = make("chain", n=40)
    assert mm.ExponentiatedGradient()._block_size(problem) == exponentiated_gradient.SMALL_BLOCK
    monkeypatch.setattr(exponentiated_gradient, "ROOM", 3 * problem.n_weights)
    assert mm.ExponentiatedGradient()._block_size(problem) == 14
    found, same = (
        run(problem, mm.ExponentiatedGradient(block_size=size), max_iter=4, random_state=0) for size in ("auto", 14)
    )
    np.testing.assert_array_equal(found.weights, same.weights)


def test_seeds_order_the_blocks() -> None:
    problem = make("chain", n=9)
    one, two = (run(problem, mm.ExponentiatedGradient(block_size=1), max_iter=5, random_state=s) for s in (0, 1))
    assert (one.weights != two.weights).any()


def test_warm_starts_from_potentials() -> None:
    problem = make("chain", n=6)
    solver = mm.ExponentiatedGradient(block_size=2)
    first = run(problem, solver, tol=1e-3, random_state=0)
    assert first.status is Status.CONVERGED
    again = run(problem, solver, tol=1e-3, start=Start(first.weights, potentials=first.potentials))
    assert again.status is Status.CONVERGED
    assert again.counters.iterations == 0


def test_example_weights() -> None:
    base, solver = make("chain", n=3), mm.ExponentiatedGradient(block_size=1)
    weighted, repeated = rebuilt(base, example_weight=np.array([2.0, 0.0, 1.0])), base.select([0, 0, 2])
    one, two = (run(p, solver, tol=1e-4, random_state=0).certificate for p in (weighted, repeated))
    assert one.primal == pytest.approx(two.primal, rel=2e-4)


@pytest.mark.parametrize("solver", [mm.ProjectedSubgradient(), mm.ExponentiatedGradient()])
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
    model = mm.MatchingSVM(solver=mm.ProjectedSubgradient(), C=0.05, slack="quadratic", tol=0.05).fit(X, y)
    assert model.solution_.status is Status.CONVERGED


def test_refusals() -> None:
    solver = mm.ExponentiatedGradient()
    assert "Extragradient" in str(solver.unsupported(make("matching")))
    assert "finite C" in str(solver.unsupported(make("chain", region={"radius": 1.0})))
    assert "finite C" in str(solver.unsupported(make("chain", region={"l1": 1.0})))
    assert "CuttingPlane" in str(solver.unsupported(replace(make("chain"), slack="quadratic")))
    ball, implicit = make("chain", region={"C": 1.0, "radius": 0.5}), mm.ExponentiatedGradient(implicit=True)
    assert solver.unsupported(ball) is None
    assert "without a ball; use implicit=False" in str(implicit.unsupported(ball))


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e2, 1e6, 1e8])
def test_features_of_any_size_reach_the_tolerance(size: float, signs: bool) -> None:
    """With C = 1, too, where the dual's curvature is that of the features' squares; transitions have features of 1."""
    rng, lengths = np.random.default_rng(0), np.full(40, 5)
    rows = rng.normal(size=(200, 3))
    structure = mm.structures.Chain(lengths, 2)
    gold = structure.encode(np.split((rows @ [1.0, -1.0, 0.5] + rng.normal(size=200) > 0).astype(int), 40))
    features = mm.features.ChainFeatures(size * rows, lengths, 2)
    region = L2(C=1.0, nonnegative=np.arange(10) % 2 == 0 if signs else None)
    problem = Problem.build(structure, features, gold, mm.losses.Hamming(), region)
    best = _optimum(
        replace(problem, features=mm.features.ChainFeatures(rows, lengths, 2)), np.repeat([size, 1.0], [6, 4])
    )
    for tol, most in ((1e-3, 250), (1e-6, 400)):
        solver = mm.ExponentiatedGradient(implicit="auto" if tol == 1e-3 else True)
        solution = run(problem, solver, tol=tol, max_iter=most, random_state=0)
        assert solution.status is Status.CONVERGED, solution.message
        assert solution.certificate.relative_gap <= tol
        assert best * (1 - 1e-7) <= solution.certificate.primal <= best * (1 + tol + 1e-7)
        assert solution.certificate.dual <= best * (1 + 1e-7)


def _optimum(problem: Problem, sizes: FloatArray) -> float:
    """The optimum with features ``sizes`` times as large, by a quadratic program in weights as much smaller."""
    n, k, ridge = problem.n_weights, problem.structure.n_examples, 1.0 / sizes**2
    own = list(training.rows(problem))
    signs = [] if problem.region.nonnegative is None else np.flatnonzero(problem.region.nonnegative).tolist()
    matrix = [
        *(np.append(a, -np.eye(k)[i]) for i, a, _ in own),
        *(-np.eye(n + k)[at] for at in (*signs, *range(n, n + k))),
    ]
    rhs = np.append([-b for _, _, b in own], np.zeros(len(signs) + k))
    costs, cone = np.append(np.zeros(n), np.ones(k)), [clarabel.NonnegativeConeT(len(rhs))]
    return conic(np.diag(np.append(ridge, np.zeros(k))), costs, np.array(matrix), rhs, cone)[1]


def test_implicit_steps_end_where_the_weights_answer_the_distributions() -> None:
    problem, solver = make("chain-edges", n=5, signs=True), mm.ExponentiatedGradient(implicit=True)
    solution = run(problem, solver, tol=1e-7, max_iter=500)
    assert solution.status is Status.CONVERGED
    assert solution.duals is not None
    exact = run(problem, mm.Exact(), tol=1e-8)
    np.testing.assert_allclose(solution.weights, exact.weights, atol=1e-3)
    response = problem.region.best_response(problem.gradient(solution.duals))
    np.testing.assert_allclose(response, solution.weights, atol=1e-2)


def test_features_of_any_size_do_not_overflow() -> None:
    base = make("chain", n=5)
    for size in (1e-12, 1e4):
        region = L2(C=0.5 / size**2)
        rows = size * np.random.default_rng(0).normal(size=(base.structure.starts[1] // 3, 4))
        features = mm.features.ChainFeatures(rows, base.structure.n_variables, 3)
        problem = replace(base, features=features, region=region)
        for solver in (mm.ExponentiatedGradient(block_size=2), mm.ProjectedSubgradient()):
            assert run(problem, solver, max_iter=200, random_state=0).status is not Status.NONFINITE
    assert run(replace(base, region=L1(1e-6)), mm.ProjectedSubgradient(), tol=1e-3).status is Status.CONVERGED
