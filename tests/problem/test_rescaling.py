"""Margin, slack and no rescaling, linear and quadratic slack: hinges, their slopes, certificates, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from data import graphs
from oracles import training
from oracles.enumeration import vertices
from oracles.slack import best_mix, best_output, pairs
from problems import DEDUCTIONS, REGIONS, RELAXED, STRUCTURES, make, rebuilt
from scipy.optimize import minimize_scalar

import maxmargin as mm
from maxmargin.losses import Hamming
from maxmargin.problem import Problem
from maxmargin.regions import L1, L2, Region
from maxmargin.solvers import Status, Stop, solve
from maxmargin.structures.base import FloatArray

EXACT = (*DEDUCTIONS, "chain", "chain-edges", "cliques", "junction", "lattice", "tree")
HULLS = tuple(kind for kind in STRUCTURES if kind not in RELAXED)
"""Structures whose polytope is no larger than the hull of the outputs (where it counts)."""


def rescaled(kind: str, rescaling: str, slack: str = "linear", **settings: object) -> Problem:
    return replace(make(kind, **settings), rescaling=rescaling, slack=slack)  # type: ignore[arg-type]


def some_weights(problem: Problem, seed: int = 0, size: float = 1.0) -> FloatArray:
    """In the cone of the problem's signs, but not in its ball."""
    w = size * np.random.default_rng(seed).normal(size=problem.n_weights)
    mask = problem.region.nonnegative
    return w if mask is None else np.where(mask, np.abs(w), w)


def hinges_by_enumeration(problem: Problem, w: FloatArray) -> FloatArray:
    scores, gold = problem.features.scores(w), problem.gold
    found = []
    for i, outputs in enumerate(vertices(problem.structure)):
        at = problem.structure.parts_of([i])
        margin = 1.0 - float(scores[at] @ gold[at])
        loss, score = pairs(outputs, scores[at], margin, problem.costs[at], float(problem.constants[i]))
        if problem.rescaling == "margin":
            found.append(float((score - 1.0 + loss).max()))
        elif problem.rescaling == "slack":
            found.append((best_mix if problem.structure.slack_relaxed else best_output)(loss, score))
        else:
            wrong = np.abs(outputs - gold[at]).sum(axis=1) > 0
            found.append(float(score[wrong].max(initial=0.0)))
    return np.array(found)


def two_labels(seed: int, slack: str = "linear") -> Problem:
    """An associative network of two labels, which is exact, with a margin of 1 to every wrong labeling."""
    rng = np.random.default_rng(seed)
    X, _ = graphs(4, seed=seed, labels=("x", "y"))
    y = [["x" if flip else "y" for flip in rng.random(len(x.node_features)) < 0.5] for x in X]
    encoder, batch, gold = mm.encoders.AssociativeEncoder().fit(X, y)
    region = L2(C=0.5, nonnegative=encoder.nonnegative())
    return Problem.build(batch.structure, batch.features, gold, Hamming(), region, rescaling="none", slack=slack)


@pytest.mark.parametrize("seed", range(3))
def test_networks_of_two_labels_have_a_margin_of_one(seed: int) -> None:
    for slack in ("linear", "quadratic"):
        problem = two_labels(seed, slack)
        for size in (0.0, 0.3, 3.0):
            w = some_weights(problem, seed, size)
            value = problem.most_violated(w).value
            np.testing.assert_allclose(value, hinges_by_enumeration(problem, w), rtol=1e-9, atol=1e-9)
        optimum = training.optimum(problem)
        solvers = [mm.SimplicialDecomposition(), mm.CuttingPlane()]
        for solver in [*solvers, mm.BlockFrankWolfe()] if slack == "linear" else solvers:
            found = solve(problem, solver, stop=Stop(tol=1e-4, max_iter=2000))
            assert found.status is Status.CONVERGED
            assert found.certificate.dual - 1e-6 <= optimum <= found.certificate.primal + 1e-6
    sparse = replace(two_labels(seed), region=L1(nonnegative=problem.region.nonnegative, C=2.0))
    bounds = [
        solve(sparse, solver, stop=Stop(tol=1e-6)).certificate
        for solver in (mm.ColumnGeneration(), mm.ColumnGeneration(k_best=3), mm.ColumnGeneration.plain(master="highs"))
    ]
    assert max(found.dual for found in bounds) <= min(found.primal for found in bounds) * (1 + 1e-9)


def test_networks_of_two_labels_learn_with_a_margin_of_one() -> None:
    X, y = graphs(8, labels=("x", "y"))
    model = mm.AssociativeSVM(C=1.0, rescaling="none").fit(X, y)
    assert model.score(X, y) > 0.9
    assert not model.solution_.certificate.relaxed
    (best, top), (second, next_best) = model.k_best(X[:1], 2)[0]
    assert best == model.predict(X[:1])[0]
    assert second != best
    assert top >= next_best
    with pytest.raises(ValueError, match=r'rescaling="none" needs the two best outputs.* use rescaling="margin"'):
        mm.AssociativeSVM(rescaling="none").fit(*graphs(4))


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("kind", HULLS)
def test_hinges_by_enumeration(kind: str, rescaling: str) -> None:
    for seed in range(3):
        problem = rescaled(kind, rescaling, seed=seed)
        for size in (0.0, 0.3, 3.0):
            w = some_weights(problem, seed, size)
            worst = problem.most_violated(w)
            np.testing.assert_allclose(worst.value, hinges_by_enumeration(problem, w), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("slack", ["linear", "quadratic"])
@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_worst_outputs_are_slopes(kind: str, rescaling: str, slack: str) -> None:
    """``value = factor w'df + loss``, and their sums with the masses are a subgradient of H."""
    if rescaling == "none" and kind in RELAXED:
        pytest.skip(f"a {kind} is relaxed and has no list of two best outputs")
    problem = rebuilt(rescaled(kind, rescaling, slack), example_weight=np.array([1.0, 0.0, 2.5, 0.3]))
    w = some_weights(problem, 3, 0.5)
    worst = problem.most_violated(w)
    df = problem.differences(worst.z)
    np.testing.assert_allclose(
        worst.value, worst.factor * (df @ w) + worst.loss, atol=1e-6 if kind == "graph" else 1e-9
    )
    assert (worst.loss >= 0.0).all()
    assert (worst.value >= -1e-12).all()
    assert worst.value[1] == 0.0
    zeta = problem.slack_slope(worst.value)
    g = df.T @ (zeta * worst.factor)
    hinge = problem.total(worst.value)
    for seed in range(5):
        other = some_weights(problem, seed)
        assert problem.hinge(other) >= hinge + g @ (other - w) - 1e-6 * (1 + hinge)
    pieces = problem.shards(max_parts=15)
    np.testing.assert_allclose(sum(shard.total(shard.most_violated(w).value) for shard in pieces), hinge, rtol=1e-6)


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
def test_hinges_of_weights_that_are_not_finite(rescaling: str) -> None:
    for kind in ("chain", "matching", "tree"):
        problem = rescaled(kind, rescaling, n=1, seed=2)
        w = np.full(problem.n_weights, np.nan)
        assert np.isnan(problem.hinge(w))


def test_separated_examples_have_no_slack_hinge() -> None:
    """Where no product is positive the gold output stands in, without factor and loss."""
    problem = rescaled("chain", "slack", region={"C": 1e3})
    w = solve(problem, mm.Exact(), stop=Stop(tol=1e-5)).weights * 4.0
    worst = problem.most_violated(w)
    assert (worst.value == 0.0).any()
    for i in np.flatnonzero(worst.value == 0.0):
        at = problem.structure.parts_of([i])
        assert (worst.z[at] == problem.gold[at]).all()
        assert worst.factor[i] == worst.loss[i] == 0.0


@pytest.mark.parametrize("slack", ["linear", "quadratic"])
@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("kind", EXACT)
def test_exact_closes_the_gap(kind: str, rescaling: str, slack: str) -> None:
    for region in REGIONS.values():
        problem = rescaled(kind, rescaling, slack, region=region, signs=True)
        solution = solve(problem, mm.Exact(), stop=Stop(tol=1e-6))
        assert solution.status is Status.CONVERGED
        certificate = solution.certificate
        assert -1e-9 * (1 + certificate.primal) <= certificate.gap <= 1e-6 * certificate.primal
        assert not certificate.relaxed
        assert certificate.primal == pytest.approx(problem.objective(solution.weights), rel=1e-12)


@pytest.mark.parametrize("slack", ["linear", "quadratic"])
@pytest.mark.parametrize("kind", ["cut", "matching", "matching-capacity"])
def test_exact_without_rescaling_elsewhere(kind: str, slack: str) -> None:
    for rescaling in ("none", "margin"):
        for region in ("ridge", "L1 ball"):
            problem = rescaled(kind, rescaling, slack, region=REGIONS[region])
            assert solve(problem, mm.Exact(), stop=Stop(tol=1e-6)).status is Status.CONVERGED


@pytest.mark.parametrize("slack", ["linear", "quadratic"])
@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
def test_weights_are_repeated_examples(rescaling: str, slack: str) -> None:
    problem = rescaled("chain", rescaling, slack)
    chosen = [0, 2, 2, 3, 3, 3]
    repeated = problem.select(chosen)
    scaled = rebuilt(problem, example_weight=np.array([1.0, 0.0, 2.0, 3.0]))
    w = some_weights(problem)
    assert scaled.hinge(w) == pytest.approx(repeated.hinge(w), rel=1e-12)
    one, two = (solve(p, mm.Exact(), stop=Stop(tol=1e-7)) for p in (scaled, repeated))
    assert one.certificate.primal == pytest.approx(two.certificate.primal, rel=1e-6)
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-3)


DUALS: dict[str, Region] = {
    "ridge": L2(C=0.7),
    "ball": L2(radius=0.4),
    "ball and ridge": L2(C=2.0, radius=0.3),
    "signs": L2(C=0.7, nonnegative=np.array([True, False, True])),
    "L1": L1(radius=0.5),
    "signed L1": L1(radius=0.5, nonnegative=np.array([True, True, False])),
    "nothing": L2(),
}


@pytest.mark.parametrize("squares", [0.0, 0.5, 20.0])
@pytest.mark.parametrize("name", DUALS)
def test_dual_of_a_region_is_the_best_mix(name: str, squares: float) -> None:
    """``max_theta theta loss - theta^2/2 squares + min_w theta w'g + penalty(w)``, both by brute force."""
    region = DUALS[name]
    rng = np.random.default_rng(0)
    for _ in range(10):
        g, loss = rng.normal(size=3) * rng.choice([0.0, 0.1, 3.0]), float(rng.normal() + 0.5)

        def value(theta: float, g: FloatArray = g, loss: float = loss) -> float:
            best = 0.0
            w = region.best_response(theta * g)
            if w is not None:
                best = theta * float(w @ g) + region.penalty(w)
            elif name == "nothing" and (theta * g).any():
                return -np.inf
            return theta * loss - 0.5 * theta**2 * squares + best

        most = 1.0 if squares == 0.0 else 100.0
        grid = np.linspace(0.0, most, 2001)
        start = max(grid, key=value)
        step = grid[1]
        near = (max(0.0, start - step), min(most, start + step))
        fine = minimize_scalar(lambda theta: -value(theta), bounds=near, method="bounded", options={"xatol": 1e-10})
        wanted = max(0.0, value(start), -fine.fun)
        assert region.dual(g, loss, squares) == pytest.approx(wanted, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("slack", ["linear", "quadratic"])
@pytest.mark.parametrize("kind", ["cut", "graph", "matching"])
def test_relaxed_hinges_are_said_to_be(kind: str, slack: str) -> None:
    problem = rescaled(kind, "slack", slack)
    assert problem.relaxed
    certificate = mm.solvers.certify(
        problem, mm.solvers.Proposal(np.zeros(problem.n_weights), np.zeros(problem.n_weights), 0.0)
    )
    assert certificate.relaxed
    assert "relaxed" in str(certificate)
    with pytest.raises(ValueError, match="relaxed to a larger set"):
        solve(problem, mm.Exact())


def test_losses_of_many_sums_still_bound() -> None:
    """Real costs on a long chain: fronts are thinned, hinges are bounds, and no certificate is refused for that."""
    rng = np.random.default_rng(0)
    structure = mm.structures.Chain([120], 4)
    features = mm.features.ChainFeatures(rng.normal(size=(120, 3)), [120], 4)
    gold = structure.argmax(rng.normal(size=structure.n_parts)).z
    weight = rng.random(structure.starts[1])
    problem = Problem.build(
        structure, features, gold, Hamming(), L2(C=1.0), loss_weight=np.repeat(weight[::4], 4), rescaling="slack"
    )
    w = 0.1 * rng.normal(size=problem.n_weights)
    worst = problem.most_violated(w)
    product = float(worst.factor[0] * (problem.differences(worst.z) @ w)[0] + worst.loss[0])
    assert product * (1 - 1e-12) <= worst.value[0] <= 1.1 * product
    assert problem.hinge(w) == worst.value[0]


def test_refusals() -> None:
    chain = make("chain")
    parts = chain.structure, chain.features, chain.gold_point, Hamming(), chain.region
    for name in ("rescaling", "slack"):
        for bad in ("both", None, np.array(["margin", "slack"])):
            with pytest.raises(ValueError, match=f"{name} must be one of"):
                Problem.build(*parts, **{name: bad})  # type: ignore[arg-type]
    graph = make("graph")
    with pytest.raises(ValueError, match="needs the two best outputs"):
        Problem.build(graph.structure, graph.features, graph.gold_point, Hamming(), graph.region, rescaling="none")
    with pytest.raises(ValueError, match="more outputs than max_constraints = 10"):
        solve(rescaled("chain", "slack"), mm.Exact(max_constraints=10))


def test_parts_above_one_have_no_second_best() -> None:
    structure = mm.structures.LinearProgram([np.ones((1, 2))], [[2.0]], upper=2.0)
    features = mm.features.PartFeatures(np.eye(2), structure.blocks[0].offsets)

    class Count(mm.losses.Loss):
        def costs(self, structure: object, gold: FloatArray) -> tuple[FloatArray, FloatArray]:
            return np.ones(2), np.zeros(2)

    with pytest.raises(ValueError, match="parts go above 1"):
        Problem.build(structure, features, np.zeros(2), Count(), L2(C=1.0), rescaling="none")


def sequences(n: int = 12) -> tuple[list[FloatArray], list[list[int]]]:
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 3, size=size).tolist() for size in rng.integers(1, 4, size=n)]
    return [np.eye(3)[labels] + 0.5 * rng.normal(size=(len(labels), 3)) for labels in y], y


def test_estimators_keep_their_settings(tmp_path: object) -> None:
    X, y = sequences()
    for settings in ({"rescaling": "slack"}, {"rescaling": "none", "slack": "quadratic"}, {}):
        model = mm.ChainSVM(C=0.5, solver=mm.Exact(), tol=1e-6, **settings).fit(X, y)
        path = f"{tmp_path}/model.mm"
        model.save(path)
        again = mm.load(path)
        assert {name: again.metadata[name] for name in ("rescaling", "slack") if name in again.metadata} == settings
        assert again.predict(X) == model.predict(X)


@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_a_linear_kernel_gives_the_same_model() -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(2, 2, 3)) for _ in range(4)]
    y = [[(0, 0), (1, 1)] for _ in X]
    settings = {"rescaling": "none", "slack": "quadratic", "solver": mm.Exact(), "tol": 1e-6}
    explicit = mm.MatchingSVM(**settings).fit(X, y).solution_.certificate
    dual = mm.MatchingSVM(features=mm.features.Kernel("linear"), **settings).fit(X, y).solution_.certificate
    assert dual.primal == pytest.approx(explicit.primal, rel=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rescaling": "slacks"}, "rescaling must be one of 'margin', 'slack', 'none', got 'slacks'"),
        ({"slack": "squared"}, "slack must be one of 'linear', 'quadratic', got 'squared'"),
        ({"rescaling": "slack", "solver": mm.Extragradient()}, "Extragradient cannot solve this problem"),
    ],
)
def test_estimators_refuse(settings: dict[str, object], message: str) -> None:
    X, y = sequences(3)
    with pytest.raises(ValueError, match=message):
        mm.ChainSVM(**settings).fit(X, y)


def test_paths() -> None:
    X, y = sequences(5)
    model = mm.ChainSVM(rescaling="slack", slack="quadratic", solver=mm.Exact())
    with pytest.raises(ValueError, match="dual-extragradient run of the path is not possible"):
        mm.regularization_path(model, X, y, Cs=[0.1, 1.0])
    path = mm.regularization_path(model, X, y, Cs=[0.1, 1.0], iterations=0)
    assert [point.status for point in path.exact] == ["converged"] * 2


@pytest.mark.parametrize("formulation", ["all", "nearest"])
@pytest.mark.parametrize("settings", [{"C": 2.0}, {"C": 2.0, "norm": "l1"}, {"C": 2.0, "slack": "quadratic"}])
def test_several_good_outputs_have_one_optimum(formulation, settings):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(7, 4)) for _ in range(12)]
    y = [x @ [1, -1, 0.5, 0] >= np.sort(x @ [1, -1, 0.5, 0])[-2] for x in X]
    fit = {"rescaling": "none", "formulation": formulation, **settings}
    exact = mm.CandidatesSVM(solver=mm.Exact(), **fit).fit(X, y).solution_.certificate
    found = mm.CandidatesSVM(tol=1e-4, **fit).fit(X, y).solution_.certificate
    assert exact.gap <= 1e-6 * exact.primal
    assert found.dual - 1e-7 <= exact.primal <= found.primal + 1e-7


class Reward(mm.losses.Loss):
    """Some wrong labels cost less than nothing."""

    def costs(self, structure, gold):
        c = np.zeros(structure.n_parts)
        c[structure.variable_parts] = np.where(gold[structure.variable_parts] > 0, 0.0, -0.5)
        return c, np.zeros(structure.n_parts)


def test_losses_below_zero():
    problem = make("chain")
    parts = problem.structure, problem.features, problem.gold, Reward(), problem.region
    with pytest.raises(ValueError, match=r"example \d+: the loss of some output is -.*never negative"):
        mm.Problem.build(*parts, rescaling="slack")
    odd = mm.Problem.build(*parts, slack="quadratic")
    exact, found = (
        mm.solve(odd, solver, stop=mm.Stop(tol=1e-4)) for solver in (mm.Exact(), mm.SimplicialDecomposition())
    )
    assert exact.certificate.primal == pytest.approx(found.certificate.primal, rel=1e-3)


def test_a_problem_is_forgotten_after_its_fit():
    import gc
    import weakref

    for rescaling in ("margin", "slack", "none"):
        problem = replace(make("matching"), rescaling=rescaling)
        mm.solve(problem, mm.SimplicialDecomposition(), stop=mm.Stop(max_iter=3, tol=0.9))
        gone = weakref.ref(problem)
        del problem
        gc.collect()
        assert gone() is None
