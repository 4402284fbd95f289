"""Single-example views, and the solvers that pass over them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import problems
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin import _kernels
from maxmargin.optimization.run import Run
from maxmargin.problem import Problem
from maxmargin.solvers import Status, Stop, solve
from maxmargin.structures.fallbacks import generic

KINDS = problems.STRUCTURES


def weights_of(problem: Problem, seed: int = 0) -> np.ndarray:
    w = np.random.default_rng(seed).normal(size=problem.n_weights)
    return problem.region.project(w)


@pytest.mark.parametrize("kind", KINDS)
def test_differences_are_the_features_of_outputs_less_those_of_gold(kind: str) -> None:
    problem = problems.make(kind, n=5)
    worst = problem.most_violated(weights_of(problem))
    rows = problem.differences(worst.z)
    matrix = problem.features.to_sparse()
    owners = problem.structure.to_parts(np.arange(5.0)).astype(int)
    pick = sp.csr_array((worst.z - problem.gold, (owners, np.arange(len(owners)))), shape=(5, len(owners)))
    np.testing.assert_allclose(rows.toarray(), (pick @ matrix).toarray(), atol=1e-12)
    with mm.threads(2):
        again = problem.differences(worst.z)
    assert (rows != again).nnz == 0


@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_kernel_features_share_rows() -> None:
    rng = np.random.default_rng(0)
    distinct = rng.normal(size=(5, 3))
    X = [distinct[rng.integers(0, 5, size=12)].reshape(3, 4, 3) for _ in range(6)]
    y = [[(0, 1)], [(1, 1), (2, 3)], [], [(0, 0)], [(2, 2)], [(1, 3)]]
    settings = {"C": 1.0, "tol": 1e-6, "random_state": 0}
    linear = mm.MatchingSVM(features=mm.features.Kernel("linear"), solver=mm.BlockFrankWolfe(), **settings).fit(X, y)
    plain = mm.MatchingSVM(solver=mm.BlockFrankWolfe(), **settings).fit(X, y)
    assert linear.solution_.certificate.primal == pytest.approx(plain.solution_.certificate.primal, rel=1e-5)
    np.testing.assert_allclose(linear.decision_function(X), plain.decision_function(X), atol=1e-2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_without_change_sees_what_the_batch_sees(kind: str) -> None:
    """The first visit of a subgradient pass is at zero weights: its loss is the batch's."""
    problem = problems.make(kind, n=5, region={"C": 0.5})
    zero = np.zeros(problem.n_weights)
    worst = problem.most_violated(zero)
    for i in range(5):
        assert problems.visit(problem, i, zero)[1] == pytest.approx(worst.loss[i], abs=1e-9)


@pytest.mark.parametrize("kind", ["chain", "matching", "tree"])
def test_other_hinges_go_through_the_same_passes(kind: str) -> None:
    problem = replace(problems.make(kind, region={"C": 0.5}), rescaling="none")
    block = solve(problem, mm.BlockFrankWolfe(), stop=Stop(tol=1e-5), random_state=0)
    slow = solve(problem, mm.Subgradient(), stop=Stop(tol=2e-2, max_iter=5000), random_state=0)
    assert block.status is slow.status is Status.CONVERGED
    assert slow.certificate.dual <= block.certificate.primal + 1e-9
    assert block.certificate.dual <= slow.certificate.primal + 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize(
    "solver",
    [mm.AveragedPerceptron(), mm.AveragedPerceptron(batch=True), mm.AveragedPerceptron(average=False), mm.Mira()],
    ids=["perceptron", "batch", "last", "mira"],
)
def test_perceptron_and_mira_learn(kind: str, signs: bool, solver: mm.solvers.Solver) -> None:
    problem = problems.make(kind, n=6, region={"C": 10.0}, signs=signs)
    solution = solve(problem, solver, stop=Stop(max_iter=30), random_state=0)
    assert solution.status is Status.FINISHED
    assert problem.region.nonnegative is None or (solution.weights[problem.region.nonnegative] >= 0.0).all()
    assert solution.certificate.dual == 0.0
    assert errors(problem, solution.weights) <= errors(problem, np.zeros(problem.n_weights))
    again = solve(problem, solver, stop=Stop(max_iter=30), random_state=0)
    np.testing.assert_array_equal(solution.weights, again.weights)


def errors(problem: Problem, weights: np.ndarray) -> float:
    """Loss of the predictions."""
    z = problem.structure.predict(problem.features.scores(weights)).z
    return problem.loss(z)


def test_averages_are_those_of_the_weights_after_each_visit() -> None:
    problem = problems.make("chain", n=6)
    examples, signs = problem.examples(), np.zeros(0, dtype=np.uint8)
    w, late = np.zeros(problem.n_weights), np.zeros(problem.n_weights)
    seen = []
    for t, i in enumerate([0, 3, 2, 5, 1, 4, 0, 2]):
        _kernels.perceptron_pass(examples, np.array([i]), signs, w, late, float(t))
        seen.append(w.copy())
    np.testing.assert_allclose(w - late / 8, np.mean(seen, axis=0), atol=1e-12)


@pytest.mark.parametrize("kind", ["chain", "matching", "tree"])
def test_mira_moves_as_little_as_the_margins_allow(kind: str) -> None:
    """One visit against the quadratic program over its k outputs."""
    from scipy.optimize import minimize

    problem = problems.make(kind, n=1, seed=3)
    k, c = 3, 0.2
    w, late = weights_of(problem, 1) * 0.1, np.zeros(problem.n_weights)
    start = w.copy()
    _kernels.mira_pass(problem.examples(k), np.array([0]), c, k, np.zeros(0, dtype=np.uint8), w, late, 0.0)
    ranks = problem.structure.k_best(problem.augmented(start), k)
    rows = np.stack([problem.differences(rank.z).toarray()[0] for rank in ranks])
    loss = np.array([problem.losses(rank.z)[0] for rank in ranks])

    def objective(x: np.ndarray) -> float:
        return 0.5 * ((x - start) ** 2).sum() + c * max(0.0, (rows @ x + loss).max())

    best = objective(w)
    for seed in range(20):
        step = np.random.default_rng(seed).normal(size=len(w)) * 1e-3
        assert objective(w + step) >= best - 1e-9
    assert best <= objective(start) + 1e-12
    assert best <= minimize(objective, w, method="Powell").fun + 1e-7


def test_forbidden_scores_and_non_finite_features_end_the_run() -> None:
    problem = problems.make("chain", region={"C": 0.5})
    for solver in (mm.AveragedPerceptron(), mm.Mira(), mm.BlockFrankWolfe(), mm.Subgradient()):
        bad = problems.make("chain", region={"C": 0.5})
        bad.features.features[0].rows.dense[0, 0] = np.nan  # type: ignore[attr-defined]
        with pytest.raises(ValueError, match="not finite"):
            solve(bad, solver)
    assert np.isfinite(problem.hinge(np.zeros(problem.n_weights)))


# --- compiled hinges -------------------------------------------------------------------------------------------------


def by_callback(problem: Problem) -> Problem:
    """The same problem with a structure whose oracle calls Python for everything."""
    kind = type(problem.structure)
    slow = type("Slow", (kind,), {"oracle": lambda self, ranks=1: generic.oracle(self)})
    structure = problem.structure.select(np.arange(problem.structure.n_examples))
    structure.__class__ = slow
    return replace(problem, structure=structure)


def posed(kind: str, rescaling: str, units: bool, seed: int) -> Problem:
    """With Hamming loss, or with costs that are no multiples of one unit."""
    problem = problems.make(kind, n=6, seed=seed, region={"C": 0.5})
    rng = np.random.default_rng(seed)
    weights = None if units else rng.random(problem.structure.starts[1]) + 0.1
    return problems.rebuilt(problem, example_weight=rng.random(6), loss_weight=weights, rescaling=rescaling)


EXACT = (*problems.DEDUCTIONS, "chain", "chain-edges", "cliques", "junction", "lattice", "tree")


@pytest.mark.parametrize("units", [True, False])
@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("kind", EXACT)
def test_compiled_hinges_are_those_of_the_batch(kind: str, rescaling: str, units: bool) -> None:
    """Visits at the same weights, by the oracle, by callbacks and by the batch: the same outputs."""
    for seed in range(3):
        problem = posed(kind, rescaling, units, seed)
        for scale in (0.0, 0.3, 3.0):
            start = scale * weights_of(problem, seed)
            worst = problem.most_violated(start)
            rows = problem.differences(worst.z).toarray()
            for posed_so in (problem, by_callback(problem)):
                for i in range(6):
                    change, loss = problems.visit(posed_so, i, start)
                    assert loss == pytest.approx(worst.loss[i], abs=1e-12)
                    np.testing.assert_allclose(6.0 * change, 6.0 * worst.factor[i] * rows[i], atol=1e-10)


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("kind", EXACT)
def test_compiled_hinges_make_the_same_run(kind: str, rescaling: str) -> None:
    problem = posed(kind, rescaling, True, 4)
    for solver in (mm.BlockFrankWolfe(cache=0.25), mm.Subgradient(), mm.Mira()):
        fast, slow = (
            problems.run(one, solver, tol=1e-6, max_iter=7, random_state=0) for one in (problem, by_callback(problem))
        )
        np.testing.assert_allclose(fast.weights, slow.weights, atol=1e-12)
        assert fast.counters == slow.counters


def test_compiled_hinges_call_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("Python was called")

    for kind in EXACT:
        for rescaling in ("slack", "none"):
            problem = posed(kind, rescaling, units=True, seed=1)
            with monkeypatch.context() as patch:
                patch.setattr("maxmargin.problem.hinges.most_violated_of_scores", refuse)
                blocks = mm.BlockFrankWolfe()
                run = Run.of(problem, np.random.default_rng(0))
                state = blocks.step(run, blocks.init(run, mm.solvers.Start()))
                assert state.passes == 1
                assert run.counters.argmax == 1.0


@pytest.mark.parametrize("kind", ["tree", "junction", "cliques"])
@pytest.mark.parametrize("k", [2, 3, 50])
def test_k_best_lists_of_trees_are_those_of_the_batch(kind: str, k: int) -> None:
    """One visit of MIRA by the oracle and by callbacks, where lists are longer than some examples have outputs."""
    problem = posed(kind, "margin", units=False, seed=2)
    start = weights_of(problem, 3)
    found = []
    for one in (problem, by_callback(problem)):
        w, late = start.copy(), np.zeros(len(start))
        order = np.array([0, 1, 2, 3, 4, 5, 1])
        _kernels.mira_pass(one.examples(k), order, 0.2, k, np.zeros(0, dtype=np.uint8), w, late, 0.0)
        found.append(w)
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)
    assert not np.array_equal(found[0], start)


@pytest.mark.parametrize("rescaling", ["slack", "none"])
@pytest.mark.parametrize("kind", ["chain", "tree"])
def test_compiled_hinges_refuse_what_is_not_finite(kind: str, rescaling: str) -> None:
    problem = posed(kind, rescaling, units=True, seed=1)
    sums = np.full(problem.n_weights, np.nan), np.zeros(problem.n_weights)
    with pytest.raises(ArithmeticError, match="NaN"):
        _kernels.subgradient_pass(
            problem.examples(), np.arange(6), 1.0, np.inf, np.zeros(0, dtype=np.uint8), *sums, 1.0
        )


# --- settings of block Frank-Wolfe -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "rescaling"), [(kind, "margin") for kind in KINDS] + [(k, r) for k in EXACT for r in ("slack", "none")]
)
def test_all_settings_reach_the_same_optimum(kind: str, rescaling: str) -> None:
    problem = replace(problems.make(kind, n=4, seed=1, region={"C": 0.3}), rescaling=rescaling)
    primals, duals = [], []
    for direction in ("frank-wolfe", "away", "pairwise"):
        for sampling, cache, kept in (("uniform", 0.0, 2), ("gap", 0.0, 0), ("uniform", 0.5, 0), ("gap", 1.0, 2)):
            solver = mm.BlockFrankWolfe(direction=direction, sampling=sampling, cache=cache, kept_passes=kept)
            solution = solve(problem, solver, stop=Stop(tol=1e-3, max_iter=3000), random_state=0)
            assert solution.status is Status.CONVERGED, (solver, solution.message)
            primals.append(solution.certificate.primal)
            duals.append(solution.certificate.dual)
    assert max(duals) <= min(primals) + 1e-9
    assert max(primals) - min(primals) <= 1e-3 * min(primals) + 1e-9


def test_a_cache_saves_calls_and_counts_them() -> None:
    """With a share of 0 a pass is one call for each example; with a cache never more, and on the whole fewer."""
    problem = problems.make("chain", n=30, region={"C": 1.0})
    calls = []
    for cache in (0.0, 0.25, 1.0):
        solver = mm.BlockFrankWolfe(cache=cache, kept_passes=0)
        run = Run.of(problem, np.random.default_rng(0))
        state = solver.init(run, mm.solvers.Start())
        for done in range(20):
            before = run.counters.argmax
            state = solver.step(run, state)
            assert run.counters.argmax - before <= 1.0
            assert cache or run.counters.argmax == pytest.approx(done + 1)
        calls.append(run.counters.argmax)
    assert calls[0] == pytest.approx(20.0)
    assert max(calls[1:]) < 20.0
