"""Single-example views, and the solvers that pass over them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import problems
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin import _kernels
from maxmargin.problem import Problem
from maxmargin.solvers import Status, Stop, solve

KINDS = problems.STRUCTURES
SOLVERS = {
    "block": mm.BlockFrankWolfe(),
    "block, gap": mm.BlockFrankWolfe(sampling="gap", cache=0.25, kept_passes=0),
    "block, away": mm.BlockFrankWolfe(direction="away"),
    "block, plain": mm.BlockFrankWolfe(direction="frank-wolfe", steps=1, kept_passes=0),
    "subgradient": mm.Subgradient(),
}


def weights_of(problem: Problem, seed: int = 0) -> np.ndarray:
    w = np.random.default_rng(seed).normal(size=problem.n_weights)
    return problem.region.project(w)


@pytest.mark.parametrize("kind", KINDS)
def test_differences_are_the_features_of_outputs_less_those_of_gold(kind: str) -> None:
    problem = problems.make(kind, n=5)
    worst = problem.worst(weights_of(problem))
    rows = problem.differences(worst.z)
    matrix = problem.features.to_sparse()
    owners = problem.structure.to_parts(np.arange(5.0)).astype(int)
    pick = sp.csr_array((worst.z - problem.gold, (owners, np.arange(len(owners)))), shape=(5, len(owners)))
    np.testing.assert_allclose(rows.toarray(), (pick @ matrix).toarray(), atol=1e-12)
    with mm.threads(2):
        again = problem.differences(worst.z)
    assert (rows != again).nnz == 0


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
    sums = np.zeros(problem.n_weights), np.zeros(problem.n_weights)
    worst = problem.worst(np.zeros(problem.n_weights))
    for i in range(5):
        for total in sums:
            total[:] = 0.0
        args = problem.examples(), np.array([i]), 0.5, np.inf, np.zeros(0, dtype=np.uint8), *sums, 0.0
        loss = _kernels.subgradient_pass(*args)
        assert loss == pytest.approx(worst.loss[i], abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("region", [{"C": 0.5}, {"C": 1.0, "radius": 0.5}], ids=["ridge", "ball and ridge"])
def test_they_find_the_optimum(kind: str, solver: str, signs: bool, region: dict[str, float]) -> None:
    problem = problems.make(kind, region=region, signs=signs)
    tol = 1e-4 if solver.startswith("block") and "plain" not in solver else 3e-2
    solution = solve(problem, SOLVERS[solver], stop=Stop(tol=tol, max_iter=3000), random_state=0)
    assert solution.status is Status.CONVERGED
    exact = solve(problem, mm.Exact(), stop=Stop(tol=1e-5)).certificate
    assert exact.dual - 1e-7 <= solution.certificate.primal <= exact.primal + tol * abs(exact.primal) + 1e-7
    assert solution.certificate.dual <= exact.primal + 1e-7


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


@pytest.mark.parametrize(
    "make",
    [
        lambda: mm.BlockFrankWolfe(direction="sideways"),
        lambda: mm.BlockFrankWolfe(steps=0),
        lambda: mm.BlockFrankWolfe(cache=2.0),
        lambda: mm.BlockFrankWolfe(outputs=1),
        lambda: mm.BlockFrankWolfe(sampling="often"),
        lambda: mm.Mira(k=0),
        lambda: mm.Mira(aggressiveness=-1.0),
        lambda: mm.AveragedPerceptron(max_iter=0),
        lambda: mm.AveragedPerceptron(batch=1),
        lambda: mm.Subgradient(average="yes"),
    ],
)
def test_bad_settings_are_refused(make: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("solver", [mm.BlockFrankWolfe(), mm.Subgradient()])
def test_a_ball_alone_is_refused(solver: mm.solvers.Solver) -> None:
    with pytest.raises(ValueError, match="finite C; use Extragradient"):
        solve(problems.make("chain", region={"radius": 1.0}), solver)


def test_forbidden_scores_and_non_finite_features_end_the_run() -> None:
    problem = problems.make("chain", region={"C": 0.5})
    for solver in (mm.AveragedPerceptron(), mm.Mira(), mm.BlockFrankWolfe(), mm.Subgradient()):
        bad = problems.make("chain", region={"C": 0.5})
        bad.features.features[0].rows.dense[0, 0] = np.nan  # type: ignore[attr-defined]
        with pytest.raises(ValueError, match="not finite"):
            solve(bad, solver)
    assert np.isfinite(problem.hinge(np.zeros(problem.n_weights)))
