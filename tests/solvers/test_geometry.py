"""Entropic geometry as a setting of both extragradient methods, and L1 balls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import ENTROPIC, REGIONS, STRUCTURES, make, run
from scipy.optimize import minimize

import maxmargin as mm
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import Problem
from maxmargin.regions import L1, L2
from maxmargin.solvers import Solver, Status, certify, solve
from maxmargin.solvers.first_order.players import GibbsStructures, SplitSimplex

GIBBS = mm.Entropic()


@pytest.mark.parametrize("region", ["ridge", "ball"])
@pytest.mark.parametrize("kind", ENTROPIC)
def test_both_geometries_agree(kind: str, region: str) -> None:
    problem = make(kind, region=REGIONS[region], n=6)
    bounds = [run(problem, mm.Extragradient(geometry=g), tol=1e-4, max_iter=5000) for g in (GIBBS, mm.Euclidean())]
    assert all(solution.status is Status.CONVERGED for solution in bounds)
    assert bounds[0].certificate.dual <= bounds[1].certificate.primal + 1e-9
    assert bounds[1].certificate.dual <= bounds[0].certificate.primal + 1e-9


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(ENTROPIC),
    l1=st.booleans(),
    radius=st.sampled_from([0.1, 0.7, 5.0]),
    seed=st.integers(0, 10_000),
)
def test_the_bound_of_2005_holds_with_the_non_euclidean_constant(kind: str, l1: bool, radius: float, seed: int) -> None:
    problem = make(kind, seed=seed, region={"l1": radius} if l1 else {"radius": radius}, n=5)
    zero = np.zeros(problem.structure.n_parts)
    d_z = float(problem.structure.marginals(zero).value.sum())  # the log of the number of outputs
    d_w = np.log(2 * problem.n_weights + 1) if l1 else 0.5 * radius**2
    runner = Run.of(problem, np.random.default_rng(0))
    constant = GIBBS.lipschitz(runner)
    balance = float(np.sqrt(d_w / d_z))
    for solver, bound in (
        (mm.DualExtragradient.plain(geometry=GIBBS), (d_w + d_z) * constant),
        (mm.DualExtragradient.plain(geometry=GIBBS, balance=balance), 2 * np.sqrt(d_w * d_z) * constant),
    ):
        state = solver.init(runner, Start())
        for t in range(1, 31):
            state = solver.step(runner, state)
            average = solver.propose(runner, state)[0]
            assert certify(problem, average).gap <= bound / t * (1 + 1e-9)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(kind=st.sampled_from(ENTROPIC), seed=st.integers(0, 10_000), l1=st.booleans())
def test_the_constant_bounds_the_operator(kind: str, seed: int, l1: bool) -> None:
    """``w'F(z - z') <= L |w| |p - p'|`` for pairs of outputs, whose distributions are 2 apart in the 1-norm."""
    problem = make(kind, seed=seed, region={"l1": 1.0} if l1 else {"radius": 1.0}, n=4)
    rng = np.random.default_rng(seed)
    constant = GIBBS.lipschitz(Run.of(problem, rng))
    for _ in range(10):
        one, two = (problem.structure.argmax(rng.normal(size=problem.structure.n_parts)).z for _ in range(2))
        image = problem.feature_sum(one - two)
        size = np.abs(image).max() if l1 else np.linalg.norm(image)
        assert size <= constant * 2 * np.sqrt(problem.structure.n_examples) + 1e-12


# --- the weights player in an L1 ball -------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None, derandomize=True)
@given(n=st.integers(1, 5), signs=st.booleans(), radius=st.sampled_from([0.3, 2.0]), seed=st.integers(0, 10_000))
def test_multiplicative_steps_are_bregman_projections(n: int, signs: bool, radius: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask = rng.random(n) < 0.5 if signs else None
    player = SplitSimplex(L1(radius, mask))
    start = rng.normal(size=n)
    start = player.region.project(start)
    origin = player.at(start)
    gradient = rng.normal(size=n)
    step = 0.7
    moved = player.move(origin, gradient, step)
    allowed = np.isfinite(origin.coordinates)
    slope = step * radius * np.concatenate([[0.0], gradient, -gradient])[allowed]
    base = origin.coordinates[allowed]

    def objective(free: np.ndarray) -> float:  # over the interior of the simplex, in logits
        logs = free - np.logaddexp.reduce(free)
        return float(np.exp(logs) @ (slope + logs - base))

    found = minimize(objective, base, method="BFGS", options={"gtol": 1e-10})
    logs = found.x - np.logaddexp.reduce(found.x)
    np.testing.assert_allclose(np.exp(moved.coordinates[allowed]), np.exp(logs), atol=1e-5)
    mine = moved.coordinates[allowed]
    assert np.exp(mine) @ (slope + mine - base) <= found.fun + 1e-12
    assert np.abs(moved.weights).sum() <= radius * (1 + 1e-12)
    assert player.divergence(origin, moved) == pytest.approx(np.exp(mine) @ (mine - base), abs=1e-12)
    if mask is not None:
        assert (moved.weights[mask] >= 0).all()


def test_a_step_of_any_size_does_not_overflow() -> None:
    player = SplitSimplex(L1(1.0))
    moved = player.move(player.at(np.zeros(3)), np.array([1e8, -3e8, 0.0]), 1e4)
    np.testing.assert_allclose(moved.weights, [0.0, 1.0, 0.0])
    assert player.divergence(player.at(np.zeros(3)), moved) == pytest.approx(np.log(7))


def test_given_weights_are_nearly_kept() -> None:
    player = SplitSimplex(L1(2.0, np.array([False, True, False])))
    w = np.array([-1.0, 0.5, 0.0])
    np.testing.assert_allclose(player.at(w).weights, w, atol=5e-3)
    np.testing.assert_array_equal(player.at(np.zeros(3)).weights[[0, 2]], [0.0, 0.0])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(n=st.integers(1, 6), signs=st.booleans(), radius=st.sampled_from([0.3, 2.0]), seed=st.integers(0, 10_000))
def test_the_euclidean_projection_onto_an_l1_ball(n: int, signs: bool, radius: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    region = L1(radius, rng.random(n) < 0.5 if signs else None)
    point = rng.normal(size=n) * 2
    w = region.project(point)
    assert np.abs(w).sum() <= radius * (1 + 1e-12)
    # optimality: no vertex of the ball (nor zero) lies further along the residual
    residual = point - w
    corners = [np.zeros(n)]
    for k in range(n):
        for sign in (1.0, -1.0):
            if sign > 0 or region.nonnegative is None or not region.nonnegative[k]:
                corners.append(sign * radius * np.eye(n)[k])
    assert max(float(residual @ (corner - w)) for corner in corners) <= 1e-9
    np.testing.assert_allclose(region.project(w), w, atol=1e-15)


@pytest.mark.parametrize("solver", [mm.Extragradient(), mm.DualExtragradient()])
def test_l1_weights_are_sparse_and_still_certified(solver: Solver) -> None:
    """Forty features of which four matter: most weights must be exactly zero."""
    rng = np.random.default_rng(0)
    structure = mm.structures.Matching.dense(np.full((25, 2), 4))
    rows = rng.normal(size=(structure.n_parts, 40))
    features = mm.features.PartFeatures(rows, structure.blocks[0].offsets)
    gold = structure.argmax(rows[:, :4] @ np.array([1.0, -1.0, 0.7, 0.5]) + 0.3 * rng.normal(size=len(rows))).z
    problem = Problem.build(structure, features, gold, mm.losses.Hamming(), L1(2.0))
    solution = run(problem, solver, tol=1e-2, max_iter=3000)
    assert solution.status is Status.CONVERGED
    assert np.count_nonzero(solution.weights) <= 15
    assert (np.abs(solution.weights[:4]) > 0).all()
    assert solution.certificate.relative_gap <= 1e-2
    assert solution.certificate.primal == pytest.approx(problem.objective(solution.weights))


@pytest.mark.parametrize(
    ("weights", "radius"),
    [([1e20, 0.0], 1.0), ([1e14], 1e-3), ([3.3e10, -3.3e10, 1.0], 1e-3), ([1e300, 1e300], 1.0), ([1e-300, 2.0], 1e-6)],
)
def test_an_l1_projection_of_large_weights_stays_in_the_ball(weights: list[float], radius: float) -> None:
    w = L1(radius).project(np.array(weights))
    assert np.abs(w).sum() == pytest.approx(radius, rel=1e-9)
    assert np.abs(w).sum() <= radius * (1 + 1e-15)
    assert np.isinf(L1(1.0).project(np.array([np.inf, 1.0]))[0])


def test_an_interruption_while_weights_are_made_sparse_keeps_the_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("maxmargin.optimization.loop.sparsify", interrupted)
    solution = run(make("matching", region={"l1": 1.0}), mm.Extragradient(), tol=1e-2, max_iter=3000)
    assert solution.status is Status.INTERRUPTED  # what comes after the run is not wanted, and its weights are good
    assert solution.certificate.relative_gap <= 1e-2


# --- distributions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ENTROPIC)
def test_the_divergence_is_the_relative_entropy(kind: str) -> None:
    problem = make(kind, n=2, seed=5)
    rng = np.random.default_rng(0)
    player = GibbsStructures(0.0)
    first, second = (
        player.at(problem, rng.normal(size=problem.structure.n_parts), tol=0.0, warm=None) for _ in range(2)
    )
    ranked = problem.structure.k_best(second.coordinates, 200)
    total = 0.0
    for points in ranked:
        there = points.status == 0
        log_q = problem.structure.by_example(np.where(points.z != 0, second.coordinates * points.z, 0.0))
        log_p = problem.structure.by_example(np.where(points.z != 0, first.coordinates * points.z, 0.0))
        log_q -= problem.structure.marginals(second.coordinates).value
        log_p -= problem.structure.marginals(first.coordinates).value
        total += float(np.sum((np.exp(log_q) * (log_q - log_p))[there]))
    assert player.divergence(first, second) == pytest.approx(total, rel=1e-8)
    assert player.divergence(first, first) == pytest.approx(0.0, abs=1e-9)


def test_potentials_start_the_next_run() -> None:
    problem = make("chain", n=8, region={"C": 0.5})
    first = run(problem, mm.Extragradient(geometry=GIBBS), tol=1e-4, max_iter=5000)
    assert first.potentials is not None
    start = Start(first.weights, first.duals, first.potentials)
    again = run(problem, mm.Extragradient(geometry=GIBBS), tol=1e-4, max_iter=5000, start=start)
    assert again.counters.iterations < 0.5 * first.counters.iterations
    for useless in (np.zeros(3), np.full_like(first.potentials, np.nan)):
        solution = run(problem, mm.DualExtragradient(geometry=GIBBS), start=Start(potentials=useless), max_iter=3)
        assert np.isfinite(solution.certificate.primal)


def test_large_scores_do_not_overflow() -> None:
    problem = make("chain", region={"radius": 1e4})
    solution = run(problem, mm.Extragradient(geometry=GIBBS, beta=1e4), max_iter=30)
    assert np.isfinite(solution.certificate.primal)


def test_separable_data_do_not_stall_a_restarted_run() -> None:
    """Restarts from distributions that are all but vertices would."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 3)) for _ in range(20)]
    y = [np.argmax(x, axis=1).tolist() for x in X]
    for solver in (mm.DualExtragradient(), mm.DualExtragradient(store_duals=False)):
        solution = mm.ChainSVM(C=100.0, solver=solver).fit(X, y).solution_
        assert solution.status is Status.CONVERGED


def test_a_stalled_run_is_told_of_the_other_geometry() -> None:
    assert "geometry=Euclidean()" in mm.Extragradient().stalled_remedy(make("chain"))
    assert "Euclidean" not in mm.DualExtragradient().stalled_remedy(make("cut"))


def test_exact_weights_lose_nothing_to_sparsity() -> None:
    solution = run(make("chain", region={"l1": 0.7}, n=12), mm.Exact(), tol=1e-3)
    assert solution.certificate.relative_gap <= 1e-7


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [mm.Extragradient(geometry=GIBBS), mm.DualExtragradient(geometry=GIBBS)])
@pytest.mark.parametrize("kind", [kind for kind in STRUCTURES if kind not in ENTROPIC])
def test_structures_without_sum_product_say_why(kind: str, solver: Solver) -> None:
    with pytest.raises(ValueError, match=r"has no entropic geometry: .*; use geometry=Euclidean\(\)"):
        solve(make(kind), solver)
    with pytest.raises(ValueError, match=r"Entropic\(structures=False\)"):
        solve(make(kind, region={"l1": 1.0}), solver)
    with pytest.raises(ValueError, match="has no marginals"):
        make(kind).structure.marginals(np.zeros(make(kind).structure.n_parts))


@pytest.mark.parametrize("kind", ["cut", "matching"])
def test_marginals_of_cuts_and_matchings_are_hard(kind: str) -> None:
    with pytest.raises(ValueError, match="#P-hard"):
        solve(make(kind), mm.Extragradient(geometry=GIBBS))


def test_settings_of_regions_are_checked() -> None:
    with pytest.raises(ValueError, match="radius or C must be finite"):
        L1(np.inf)
    with pytest.raises(ValueError, match="C must be a number > 0"):
        L1(1.0, C=0.0)
    for radius in (0.0, -1.0, np.nan, "1", True):
        with pytest.raises(ValueError, match="radius must be a number > 0"):
            L1(radius)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="boolean mask"):
        L1(1.0, np.array([0, 1]))
    with pytest.raises(ValueError, match=r"mask of shape \(5,\)"):
        raise ValueError(L1(1.0, np.ones(3, dtype=bool)).unsupported(5))
    assert L2().unsupported(3) is None
