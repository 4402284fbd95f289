"""Extragradient methods in both geometries, the loop, and the settings and refusals of all solvers."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from problems import REGIONS, STRUCTURES, make, rebuilt, run
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin._vectors import squared
from maxmargin.features.parts import PartFeatures
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import Problem
from maxmargin.regions import L1, L2
from maxmargin.solvers import Certificate, Proposal, Solution, Solver, Status, Stop, certify, choose, solve
from maxmargin.solvers.column_generation.plain import PlainColumnGeneration

SD, GIBBS = mm.SimplicialDecomposition, mm.Entropic()
SOLVERS: dict[str, Solver] = {
    "extragradient": mm.Extragradient(),
    "plain extragradient": mm.Extragradient.plain(),
    "dual": mm.DualExtragradient(),
    "plain dual": mm.DualExtragradient.plain(),
    "projected gradient": mm.ProjectedGradient(),
    "plain projected gradient": mm.ProjectedGradient.plain(),
    "memory-efficient": mm.DualExtragradient(store_duals=False, shard_parts=30),
    "entropic": mm.Extragradient(geometry=GIBBS),
    "entropic, plain": mm.Extragradient.plain(geometry=GIBBS),
    "entropic, leaning to the gold": mm.Extragradient(geometry=mm.Entropic(gold_potential=2.0)),
    "entropic dual": mm.DualExtragradient(geometry=GIBBS),
    "entropic dual, plain": mm.DualExtragradient.plain(geometry=GIBBS),
    "entropic, memory-efficient": mm.DualExtragradient(geometry=GIBBS, store_duals=False, shard_parts=60),
}


def exact(problem: Problem) -> Solution:
    return run(problem, mm.Exact(), tol=1e-7)


@settings(max_examples=65, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(STRUCTURES),
    region=st.sampled_from(sorted(REGIONS)),
    solver=st.sampled_from(sorted(SOLVERS)),
    seed=st.integers(0, 10_000),
    iterations=st.integers(1, 25),
)
def test_the_gap_is_never_below_the_true_error(kind: str, region: str, solver: str, seed: int, iterations: int) -> None:
    problem = make(kind, seed=seed, n=3, region=REGIONS[region])
    assume(SOLVERS[solver].unsupported(problem) is None)
    optimum = exact(problem)
    certificate = run(problem, SOLVERS[solver], max_iter=iterations).certificate
    error = certificate.primal - optimum.certificate.primal
    assert certificate.gap >= error - 1e-6 * (1 + abs(certificate.primal))
    assert certificate.dual >= 0.0


@pytest.mark.parametrize("geometry", [mm.Euclidean(), mm.Entropic()])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(kind=st.sampled_from(STRUCTURES), region=st.sampled_from(sorted(REGIONS)), seed=st.integers(0, 10_000))
def test_memory_efficient_equals_stored(geometry: mm.solvers.Geometry, kind: str, region: str, seed: int) -> None:
    problem = make(kind, seed=seed, n=6, region=REGIONS[region])
    common = {"geometry": geometry, "inexact": 0.0, "restart": False}
    assume(mm.DualExtragradient(**common).unsupported(problem) is None)
    stored, shards, whole = (  # at an optimum to rounding the best of equal weights would be a matter of chance
        run(problem, mm.DualExtragradient(**settings, **common), tol=1e-6, max_iter=20)
        for settings in ({}, {"store_duals": False, "shard_parts": 25}, {"store_duals": False})
    )
    atol = 1e-9 if geometry == mm.Euclidean() else 1e-8
    np.testing.assert_allclose(shards.weights, stored.weights, atol=atol)
    np.testing.assert_allclose(whole.weights, stored.weights, atol=atol)
    assert shards.certificate.gap == pytest.approx(stored.certificate.gap, abs=10 * atol)


def squared_radius(problem: Problem) -> float:
    """An upper bound of ``sum_i max_{z in Z_i} 1/2 ||z - gold_i||^2`` by one argmax; exact for 0/1 vertices."""
    farthest = problem.structure.argmax(0.5 * problem.structure.part_bound - problem.gold)
    return float(farthest.value.sum() + 0.5 * np.sum(problem.gold**2))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(kind=st.sampled_from(STRUCTURES), radius=st.sampled_from([0.1, 0.7, 5.0]), seed=st.integers(0, 10_000))
def test_dual_extragradient_obeys_the_bound_of_2005(kind: str, radius: float, seed: int) -> None:
    problem = make(kind, seed=seed, region={"radius": radius}, n=5)
    d_w, d_z = 0.5 * radius**2, squared_radius(problem)
    balance = float(np.sqrt(d_w / d_z))
    for solver, bound in (
        (mm.DualExtragradient.plain(), (d_w + d_z) * problem.norm),
        (mm.DualExtragradient.plain(balance=balance), 2 * np.sqrt(d_w * d_z) * problem.norm),
    ):
        runner = Run.of(problem, np.random.default_rng(0))
        state = solver.init(runner, Start())
        for t in range(1, 41):
            state = solver.step(runner, state)
            (proposal,) = solver.propose(runner, state)
            assert certify(problem, proposal).gap <= bound / t * (1 + 1e-9)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(kind=st.sampled_from(STRUCTURES), radius=st.sampled_from([0.1, 0.7, 5.0]), seed=st.integers(0, 10_000))
def test_averaged_projected_gradient_obeys_the_regret_bounds(kind: str, radius: float, seed: int) -> None:
    problem = make(kind, seed=seed, region={"radius": radius}, n=5)
    for solver in (mm.ProjectedGradient(), mm.ProjectedGradient.plain(), mm.ProjectedGradient.plain(step_size=0.01)):
        runner = Run.of(problem, np.random.default_rng(0))
        state = solver.init(runner, Start())
        b = state.balance
        reach = np.sqrt(radius**2 / b + b * 2.0 * squared_radius(problem))
        for t in range(1, 41):
            state = solver.step(runner, state)
            after = state.squares + b * squared(state.g) + squared(problem.augmented(state.weights.weights)) / b
            if solver.step_size == "auto":
                far = np.hypot(state.reach[0] / np.sqrt(b), state.reach[1] * np.sqrt(b))
                eta = min(1.0 / problem.norm, far / np.sqrt(after))
                regret = (2.0 * reach) ** 2 / (2.0 * eta) + far * np.sqrt(after)
            else:
                eta = 1.0 / problem.norm if solver.step_size == "constant" else solver.step_size
                regret = 0.5 * (reach**2 / eta + eta * after)
            assert certify(problem, solver.propose(runner, state)[0]).gap <= regret / (t + 1) * (1 + 1e-9) + 1e-6


@pytest.mark.parametrize("kind", STRUCTURES)
def test_radius_is_the_farthest_point_of_the_polytope(kind: str) -> None:
    problem = make(kind)
    rng = np.random.default_rng(1)
    bound = squared_radius(problem)
    for _ in range(50):
        z = problem.structure.argmax(rng.normal(size=problem.structure.n_parts)).z
        assert 0.5 * np.sum((z - problem.gold) ** 2) <= bound + 1e-9


@pytest.mark.parametrize("kind", STRUCTURES)
def test_unregularized_training_lowers_the_hinge_loss(kind: str) -> None:
    problem = make(kind, region={"C": np.inf})
    for solver in (
        mm.Extragradient(),
        mm.DualExtragradient(),
        mm.DualExtragradient(store_duals=False),
        mm.ProjectedGradient(),
    ):
        solution = solve(problem, solver, stop=Stop(tol=1e-9, max_iter=60))
        assert solution.certificate.dual == 0.0
        assert solution.certificate.gap == pytest.approx(solution.certificate.hinge)
        assert solution.certificate.hinge < 0.9 * problem.hinge(np.zeros(problem.n_weights))


def test_example_weights_scale_terms() -> None:
    problem = make("matching", n=3)
    weighted, repeated = rebuilt(problem, example_weight=np.array([2.0, 0.0, 1.0])), problem.select([0, 0, 2])
    w = np.random.default_rng(0).normal(size=problem.n_weights)
    assert weighted.hinge(w) == pytest.approx(repeated.hinge(w))
    assert exact(weighted).certificate.primal == pytest.approx(exact(repeated).certificate.primal, rel=1e-6)
    assert run(weighted, mm.Extragradient(), tol=1e-5, max_iter=2000).status is Status.CONVERGED


def test_problems_refuse_what_would_spoil_certificates() -> None:
    problem = make("matching", n=3)

    def build(gold: np.ndarray, **options: object) -> Problem:
        loss = mm.losses.Hamming()
        return Problem.build(problem.structure, problem.features, gold, loss, problem.region, **options)  # type: ignore[arg-type]

    with pytest.raises(ValueError, match="example 0: gold is not a feasible output"):
        build(np.ones_like(problem.gold))
    with pytest.raises(ValueError, match="packed vector"):
        build(problem.gold[:-1])
    with pytest.raises(ValueError, match="example_weight"):
        build(problem.gold, example_weight=np.array([1.0, -1.0, 1.0]))


def test_an_inexact_argmax_is_never_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make("cut")
    argmax = type(problem.structure).argmax

    def inexact(self: object, *args: object, **kwargs: object) -> object:
        points = argmax(self, *args, **kwargs)  # type: ignore[arg-type]
        return replace(points, status=np.full_like(points.status, 1))

    monkeypatch.setattr(type(problem.structure), "argmax", inexact)
    with pytest.raises(ArithmeticError, match="example 0: the cut's argmax found no exact output"):
        solve(problem, mm.Extragradient())


def test_an_argmax_that_becomes_inexact_keeps_the_best_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make("matching")
    argmax, calls = type(problem.structure).argmax, []

    def later(self: object, *args: object, **kwargs: object) -> object:
        points = argmax(self, *args, **kwargs)  # type: ignore[arg-type]
        calls.append(1)
        return points if len(calls) < 6 else replace(points, status=np.full_like(points.status, 1))

    monkeypatch.setattr(type(problem.structure), "argmax", later)
    with pytest.warns(ConvergenceWarning, match="an argmax was not exact"):
        solution = solve(problem, mm.Extragradient(), stop=Stop(tol=1e-9))
    assert solution.status is Status.INEXACT
    assert np.isfinite(solution.certificate.primal)


def test_a_value_that_bounds_may_be_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make("graph")
    argmax = type(problem.structure).argmax

    def loose(self: object, *args: object, **kwargs: object) -> object:
        points = argmax(self, *args, **kwargs)  # type: ignore[arg-type]
        return replace(points, value=points.value + 1e-3, status=np.full_like(points.status, 1))

    optimum = exact(problem).certificate.primal
    monkeypatch.setattr(type(problem.structure), "argmax", loose)
    certificate = run(problem, mm.Extragradient(), max_iter=20).certificate
    assert certificate.dual <= optimum <= certificate.primal


def test_features_that_are_all_zero() -> None:
    base = make("matching", region={"radius": 1.0})
    features = PartFeatures(np.zeros((base.structure.n_parts, 2)), base.structure.blocks[0].offsets)
    problem = Problem.build(base.structure, features, base.gold, mm.losses.Hamming(), L2(radius=1.0))
    for solver in (mm.Extragradient(), mm.DualExtragradient(), mm.DualExtragradient(store_duals=False), mm.Exact()):
        solution = solve(problem, solver)
        assert solution.status is Status.CONVERGED
        assert not solution.weights.any()


@pytest.mark.parametrize("restart", [True, False])
def test_stored_duals_are_handed_on(restart: bool) -> None:
    problem = make("matching", region={"C": 0.1})
    for iterations in (1, 2, 5, 30):
        solution = run(problem, mm.DualExtragradient(restart=restart), max_iter=iterations)
        assert solution.duals is not None
        assert solution.duals.shape == problem.gold.shape


def test_a_useless_start_point_is_ignored() -> None:
    problem = make("chain")
    started = run(problem, mm.Extragradient(), start=Start(z=np.full(problem.gold.shape, np.nan)), max_iter=5)
    np.testing.assert_array_equal(started.weights, run(problem, mm.Extragradient(), max_iter=5).weights)


def test_shards_add_up() -> None:
    problem = make("cut", n=7)
    w = np.abs(np.random.default_rng(0).normal(size=problem.n_weights))
    shards = list(problem.shards(20))
    assert len(shards) > 1
    assert sum(shard.hinge(w) for shard in shards) == pytest.approx(problem.hinge(w))
    z = problem.structure.argmax(problem.augmented(w)).z
    pieces = [shard.structure.argmax(shard.augmented(w)).z for shard in shards]
    gradient = sum(shard.gradient(piece) for shard, piece in zip(shards, pieces, strict=True))
    np.testing.assert_allclose(gradient, problem.gradient(z), atol=1e-9)


# --- the loop -------------------------------------------------------------------------------------------------------


def test_budget_warns_with_gap_tolerance_and_remedy() -> None:
    with pytest.warns(ConvergenceWarning, match=r"(?s)budget.*gap.*aim 1e-12.*max_iter"):
        solution = solve(make("matching"), mm.DualExtragradient(), stop=Stop(tol=1e-12, max_iter=3))
    assert solution.status is Status.BUDGET
    assert solution.counters.iterations == 3


def test_validation_keeps_the_best_weights() -> None:
    problem = make("matching")
    scores = iter([0.1, 0.5, 0.9, 0.4, 0.3, 0.2])
    chooser = mm.solvers.Validation(lambda weights: next(scores), patience=2)
    solution = run(problem, mm.Extragradient(), callbacks=[chooser])
    assert solution.status is Status.STOPPED
    assert chooser.best_iteration == 2
    assert chooser.best_score == 0.9
    assert [score for _, score in chooser.history] == [0.1, 0.5, 0.9, 0.4, 0.3]


def test_warm_start_continues() -> None:
    problem = make("cut")
    first = run(problem, mm.Extragradient(), tol=1e-6, max_iter=3000)
    again = run(problem, mm.Extragradient(), tol=1e-5, start=Start(first.weights, first.duals))
    assert again.status is Status.CONVERGED
    assert again.counters.iterations == 0
    with pytest.raises(ValueError, match="warm_start"):
        solve(problem, mm.Extragradient(), start=Start(np.zeros(99)))


def test_nonfinite_start_is_an_error() -> None:
    problem = make("matching")
    with pytest.raises(ValueError, match="not finite at the start"):
        solve(problem, mm.Extragradient(), start=Start(np.full(problem.n_weights, np.nan)))


class _Diverges(mm.Extragradient):
    def propose(self, run: Run, state: object) -> list[Proposal]:
        proposals = super().propose(run, state)  # type: ignore[arg-type]
        if run.counters.iterations < 2:
            return list(proposals)
        return [replace(proposals[0], weights=np.full_like(proposals[0].weights, np.inf))]


def test_nonfinite_later_keeps_the_best_weights() -> None:
    with pytest.warns(ConvergenceWarning, match="NaN or infinite"):
        solution = solve(make("matching"), _Diverges(), stop=Stop(tol=0.0))
    assert solution.status is Status.NONFINITE
    assert np.isfinite(solution.weights).all()


def test_stalled_run_says_so() -> None:
    class Lazy(mm.Extragradient):
        def step(self, run: Run, state: object) -> object:  # type: ignore[override]
            return super().step(run, state) if run.counters.iterations < 20 else state  # type: ignore[arg-type]

    with pytest.warns(ConvergenceWarning, match="stopped shrinking"):
        solution = solve(make("matching"), Lazy(), stop=Stop(tol=1e-9))
    assert solution.status is Status.STALLED


BAD_SETTINGS = {
    mm.AveragedPerceptron: {"max_iter": [0], "batch": [1]},
    mm.BlockFrankWolfe: {
        **{"direction": ["sideways"], "steps": [0], "cache": [2.0], "outputs": [1], "sampling": ["often"]},
    },
    mm.ColumnGeneration: {
        **{"master": ["simplex"], "k_best": [0, 1.5], "age": [0, 2.5], "stabilize": [1]},
        "max_iter": [2.5, -1],
    },
    PlainColumnGeneration: {
        **{"master": ["auto"], "start": ["one"], "epsilon_1": [0.0], "epsilon_2": [-1.0], "max_steps": [0]},
    },
    mm.CuttingPlane: {
        **{"slacks": ["two", 1], "sweeps": [2.5], "joint": [2.5], "max_iter": [2.5], "solves_per_pass": [2.5, 0]},
        **{"eps": [0.0], "age": [1.5], "accuracy": [2.0]},
    },
    mm.DualExtragradient: {
        **{"balance": [-1.0], "shard_parts": [0], "step_factor": [np.nan], "store_duals": ["no"], "restart": ["x"]},
        **{"adaptive": [3], "geometry": ["entropic", None, mm.Entropic]},
    },
    mm.Entropic: {"gold_potential": [-1.0, np.inf, "1", True], "structures": [1]},
    mm.Exact: {"accuracy": [-1.0], "max_constraints": [0]},
    mm.ExponentiatedGradient: {
        **{"online": ["yes"], "block_size": [0, 2.5], "growth": [0.5], "eta": [-1.0, "large"], "max_iter": [0]},
        **{"implicit": ["yes", 1]},
    },
    mm.Extragradient: {
        **{"nu": [1.5], "beta": [0.0, "large"], "balance": ["fast"], "inexact": [np.nan], "max_iter": [0]},
        **{"geometry": ["entropic", None, mm.Entropic], "implicit_penalty": [1], "distance": ["sup"], "average": [1]},
    },
    mm.Mira: {"k": [0], "aggressiveness": [-1.0]},
    mm.ProjectedGradient: {"step_size": [0.0, "big"], "last": [1], "balance": [0.0], "max_iter": [0]},
    mm.ProjectedSubgradient: {"step_size": [0.0, "big"], "average": [1], "max_iter": [np.inf]},
    mm.SimplicialDecomposition: {
        **{"master": ["two", ["one"]], "working_set": ["some"], "r": [0, 1.5, True, np.nan, "3"], "joint": [0, 2.5]},
        **{"working_set_size": [0, 2.5], "stabilize": [0.5, "yes"], "accuracy": [1.0, 0.0], "age": [-1, 2.5]},
        **{"sweeps": [np.inf, 2.5], "max_iter": [2.5]},
    },
    mm.Subgradient: {"average": ["yes"]},
    Stop: {"tol": [-1.0, np.nan], "max_iter": [0, 1.5], "max_seconds": [0.0]},
}


@pytest.mark.parametrize("kind", BAD_SETTINGS)
def test_bad_settings_are_refused(kind: type) -> None:
    for name, values in BAD_SETTINGS[kind].items():
        for value in values:
            with pytest.raises(ValueError, match=rf"^{name} must be .*, got {re.escape(repr(value))}"):
                kind(**{name: value})


def test_refusals_name_what_to_use_instead() -> None:
    chain, ball, l1, one = make("chain"), {"radius": 0.7}, {"l1": 1.0}, mm.CuttingPlane(slacks="one")
    eg, both = mm.ExponentiatedGradient(), (mm.Extragradient(), mm.DualExtragradient())
    flat, ridge = [make("chain", region=region) for region in (ball, l1, {"C": np.inf})], "needs a ridge penalty.* use "
    l1_penalty, quadratic = make("chain", region={"l1": np.inf, "C": 1.0}), replace(chain, slack="quadratic")
    cases = [
        *((problem, mm.CuttingPlane(), ridge + "[A-Z]") for problem in flat),
        (make("chain", region={"C": np.inf}), SD(), "needs an L2 or L1 norm with a finite C or radius"),
        (make("chain", region=ball), mm.BlockFrankWolfe(), ridge + "[A-Z]"),
        (make("chain", region=ball), mm.Subgradient(), ridge + "[A-Z]"),
        *((replace(chain, rescaling="none"), solver, 'needs rescaling="margin", not') for solver in both),
        *((replace(chain, rescaling="slack"), solver, 'needs rescaling="margin", not') for solver in both),
        *((quadratic, solver, 'needs slack="linear", not') for solver in both),
        (make("matching"), mm.Exact(max_entries=1), "max_entries"),
        (quadratic, one, r'use CuttingPlane\(slacks="n"\)'),
        (make("matching"), eg, "Extragradient"),
        (make("chain", region=ball), eg, "finite C"),
        (make("chain", region=l1), eg, "finite C"),
        (quadratic, eg, "CuttingPlane"),
        (chain, mm.Extragradient(geometry=mm.Entropic(structures=False)), "only the weights in an L1 ball"),
        (chain, mm.ColumnGeneration(), 'norm="l1"'),
        (replace(l1_penalty, slack="quadratic"), mm.ColumnGeneration(), 'needs slack="linear", not "quadratic"'),
        (replace(chain, region=L1(1.0, C=1.0)), mm.ColumnGeneration(master="proximal"), 'use master="highs"'),
        (replace(chain, region=L1(1.0, C=1.0)), mm.ColumnGeneration.plain(), "give C without a radius"),
        (replace(l1_penalty, rescaling="slack"), mm.ColumnGeneration(k_best=2), "use k_best=1"),
        (make("graph", region={"l1": np.inf, "C": 1.0}), mm.ColumnGeneration(k_best=2), "use k_best=1"),
        (l1_penalty, mm.DualExtragradient(), "use ColumnGeneration"),
        (l1_penalty, mm.Extragradient.plain(), "use ColumnGeneration"),
        (l1_penalty, mm.Extragradient(geometry=mm.Entropic(structures=False)), "geometry=Euclidean"),
    ]
    for problem, solver, message in cases:
        with pytest.raises(ValueError, match=message):
            solve(problem, solver)


def test_auto_weighs_examples_weights_and_memory_under_a_ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    from maxmargin.solvers import auto

    def wider(problem: Problem, n: int) -> Problem:
        ones = np.ones((problem.structure.n_parts, n))
        return replace(problem, features=PartFeatures(ones, problem.features.offsets))

    few, more = wider(make("matching", n=5), 300), wider(make("matching", n=5), 301)
    assert isinstance(choose(few)[0], mm.SimplicialDecomposition)
    assert isinstance(choose(more)[0], mm.BlockFrankWolfe)
    # a call of Python for every visit to an example
    slow = choose(replace(more, rescaling="slack"))
    assert isinstance(slow[0], mm.SimplicialDecomposition)
    assert "no compiled search" in slow[1]
    assert auto.master_bytes(few) == 5 * 300 * auto.POINT_BYTES
    monkeypatch.setattr(auto, "FEW_PRODUCTS", 5 * 300 - 1)
    solver, why = choose(few)
    assert isinstance(solver, mm.BlockFrankWolfe)
    assert "5 examples and 300 weights" in why
    assert "would take about 108 kB" in why
    monkeypatch.setattr(auto, "MASTER_BYTES", auto.master_bytes(few) - 1)
    assert isinstance(choose(replace(few, rescaling="slack"))[0], mm.BlockFrankWolfe)
    solver, why = choose(replace(few, slack="quadratic"))
    assert solver == mm.SimplicialDecomposition(r=2)
    assert "two points an example" in why


def test_auto_gives_a_reason() -> None:
    matching, chain = make("matching"), make("chain")
    wide = replace(
        matching, features=PartFeatures(np.ones((matching.structure.n_parts, 301)), matching.features.offsets)
    )
    ball, l1, penalty = ({"radius": 1.0}, {"l1": 1.0}, {"l1": np.inf, "C": 1.0})
    free = {"C": np.inf}
    slack = {"rescaling": "slack"}
    for problem, solver, reason in (
        (matching, mm.SimplicialDecomposition, "4 weights"),
        (replace(chain, slack="quadratic"), mm.SimplicialDecomposition, "quadratic slack"),
        (wide, mm.BlockFrankWolfe, "301 weights"),
        (make("matching", region=ball), mm.SimplicialDecomposition, "simplicial decomposition"),
        (make("chain", n=9000, region=l1), mm.SimplicialDecomposition, "L1 norm"),
        (replace(make("chain", region=ball), **slack), mm.SimplicialDecomposition, "simplicial decomposition"),
        (make("matching", region=free), mm.Extragradient, "Euclidean"),
        (make("chain", region=free), mm.Extragradient, "sum-product"),
        (make("chain", n=9000, region=free), mm.DualExtragradient, "so many parts"),
        (replace(make("chain", region=free), **slack), mm.ProjectedSubgradient, "finite C or radius"),
        (make("chain", region=penalty), mm.ColumnGeneration, "L1 norm"),
        (replace(make("chain", region=l1), **slack), mm.SimplicialDecomposition, "L1 norm"),
        (replace(make("chain", region=penalty), slack="quadratic"), mm.SimplicialDecomposition, "quadratic"),
    ):
        found, why = choose(problem)
        assert isinstance(found, solver)
        assert reason in why
        assert "parts" in why
        assert found.unsupported(problem) is None


def test_balance_is_one_without_regularization() -> None:
    problem = make("matching", region={"C": np.inf})
    solver = mm.Extragradient(geometry=mm.Euclidean())
    run, start = Run.of(problem, np.random.default_rng(0)), solver.players(problem)[0].at(np.zeros(4))
    assert solver.start_balance(run, start, stored=False) == 1.0


def test_certificate_numbers() -> None:
    certificate = Certificate(primal=2.0, dual=1.5, hinge=1.0)
    assert certificate.gap == 0.5
    assert certificate.relative_gap == 0.25
    assert Certificate(0.0, 0.0, 0.0).relative_gap == 0.0
    assert "gap 0.5" in str(certificate)


def test_zero_weights_problem() -> None:
    problem = make("matching", region={"C": 1.0})
    assert isinstance(problem.region, L2)
    closed = solve(problem, mm.Extragradient(), stop=Stop(tol=1.0))
    assert closed.status is Status.CONVERGED
    assert closed.counters.iterations == 0


def test_bounds_that_contradict_each_other_are_no_convergence() -> None:
    """A structure whose argmax is too small makes objectives too small."""

    class Wrong(mm.structures.Matching):
        def argmax(self, scores: np.ndarray, *, warm: object = None) -> mm.structures.Points:
            points = super().argmax(scores, warm=warm)
            return replace(points, value=0.1 * points.value)

    problem = make("matching")
    spoiled = replace(problem, structure=problem.structure)
    object.__setattr__(spoiled.structure, "__class__", Wrong)
    with pytest.raises(ArithmeticError, match=r"lower bound .* is above the objective.*check_structure"):
        solve(spoiled, mm.Extragradient(), stop=Stop(tol=1e-6))


def test_patience_says_that_it_stopped_the_run() -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 2)) for _ in range(8)]
    y = [(x[:, 0] > 0).astype(int).tolist() for x in X]
    model = mm.ChainSVM(solver=mm.Extragradient(), tol=0.0).set_params(patience=1).fit(X, y, dev=(X, y))
    assert "no better dev score" in model.solution_.message


def test_refusals_name_a_solver_that_takes_the_problem() -> None:
    named = {
        name: getattr(mm, name)
        for name in dir(mm.solvers)
        if isinstance(getattr(mm.solvers, name), type)
        and issubclass(getattr(mm.solvers, name), Solver)
        and name != "Solver"
    }
    for region in ({"C": 0.5}, {"radius": 1.0}, {"l1": 1.0}, {"l1": np.inf, "C": 1.0}):
        for rescaling in ("margin", "slack", "none"):
            for slack in ("linear", "quadratic"):
                problem = replace(make("chain", region=region), rescaling=rescaling, slack=slack)
                for make_one in named.values():
                    reason = make_one().unsupported(problem)
                    if reason is None:
                        continue
                    advised = [
                        other for name, other in named.items() if re.search(rf"\b{name}\b", reason.partition("use ")[2])
                    ]
                    assert any(other().unsupported(problem) is None for other in advised), (
                        region,
                        rescaling,
                        slack,
                        reason,
                    )
