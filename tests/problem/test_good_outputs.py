"""Several good outputs: hinges by enumeration, every solver, rounds of the best good one, compiled views, refusals."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin import _kernels
from maxmargin.features.parts import PartFeatures
from maxmargin.problem import CandidateSets, Problem, hinges
from maxmargin.regions import L1, L2
from maxmargin.solvers import Status, Stop, solve
from maxmargin.structures.base import FloatArray
from maxmargin.structures.candidates import Candidates
from maxmargin.structures.fallbacks import generic
from maxmargin.training import BestGood, train_examples

FORMULATIONS = ("nearest", "all", "best")
seeds = st.integers(0, 10_000)


def lists(
    seed: int, formulation: str, rescaling: str, region: Any = None, n: int = 8, slack: str = "linear"
) -> Problem:
    """Lists of up to six candidates, of which some are good and cheaper on the whole, with example weights."""
    rng = np.random.default_rng(seed)
    structure = Candidates(rng.integers(1, 7, size=n))
    features = PartFeatures(rng.normal(size=(structure.n_parts, 4)), structure.blocks[0].offsets)
    mask = rng.random(structure.n_parts) < 0.4
    mask[structure.blocks[0].offsets[:-1]] = True
    weight = rng.random(n) + 0.5
    weight[0] = 0.0
    return Problem.build(
        structure,
        features,
        structure.encode([0] * n),
        np.where(mask, 0.5, 1.5) * rng.random(structure.n_parts) if rescaling == "margin" else mm.losses.Hamming(),
        L2(C=1.0) if region is None else region,
        example_weight=weight,
        rescaling=rescaling,
        slack=slack,
        good=CandidateSets.build(structure, features, mask, formulation),
    )


def pairs_of(problem: Problem) -> list[list[tuple[int, int]]]:
    """For each example the pairs of a bad and a good candidate that are compared, by loops."""
    good, found = problem.good, []
    assert isinstance(good, CandidateSets)
    for first, last in itertools.pairwise(problem.structure.blocks[0].offsets.tolist()):
        right = [p for p in range(first, last) if good.mask[p]]
        bad = [p for p in range(first, last) if not good.mask[p]]
        if good.nearest is None:
            found.append([(b, g) for b in bad for g in right])
        else:
            found.append([(b, first + int(good.nearest[b])) for b in bad])
    return found


def hinges_by_loops(problem: Problem, w: FloatArray) -> FloatArray:
    v, s, costs = problem.features.scores(w), problem.scale, problem.costs
    return np.array(
        [
            max(
                [0.0]
                + [
                    s[i] * (v[b] - v[g]) + (s[i] if problem.rescaling == "none" else costs[b] - costs[g])
                    for b, g in own
                ]
            )
            for i, own in enumerate(pairs_of(problem))
        ]
    )


@pytest.mark.parametrize("rescaling", ["none", "margin"])
@pytest.mark.parametrize("formulation", FORMULATIONS)
@given(seed=seeds)
def test_hinges_by_enumeration(formulation: str, rescaling: str, seed: int) -> None:
    problem = lists(seed, formulation, rescaling)
    for size in (0.0, 0.3, 3.0):
        w = size * np.random.default_rng(seed).normal(size=4)
        worst = problem.most_violated(w)
        np.testing.assert_allclose(worst.value, hinges_by_loops(problem, w), atol=1e-12)
        np.testing.assert_allclose(
            worst.value, worst.factor * (problem.differences(worst.z) @ w) + worst.loss, atol=1e-12
        )
        shards = [problem.select([i]).hinge(w) for i in range(problem.structure.n_examples)]
        assert problem.hinge(w) == pytest.approx(sum(shards))
    assert np.isnan(problem.hinge(np.full(4, np.nan)))


SOLVERS = {
    "simplicial decomposition": mm.SimplicialDecomposition(),
    "cutting plane": mm.CuttingPlane(),
    "block Frank-Wolfe": mm.BlockFrankWolfe(),
}
LINEAR = {
    "highs": mm.ColumnGeneration(master="highs"),
    "proximal": mm.ColumnGeneration(master="proximal"),
    "published": mm.ColumnGeneration.plain(master="highs"),
}


@pytest.mark.parametrize("rescaling", ["none", "margin"])
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_every_solver_finds_the_optimum(formulation: str, rescaling: str) -> None:
    for seed in range(3):
        problem = lists(seed, formulation, rescaling)
        exact = solve(problem, mm.Exact()).certificate
        assert exact.gap <= 1e-7 * (1.0 + exact.primal)
        for name, solver in SOLVERS.items():
            found = solve(problem, solver, stop=Stop(tol=1e-5, max_iter=3000))
            assert found.status is Status.CONVERGED, name
            assert found.certificate.dual - 1e-7 <= exact.primal <= found.certificate.primal + 1e-7, name
        rough = solve(problem, mm.ProjectedSubgradient(), stop=Stop(tol=0.05, max_iter=3000))
        assert rough.certificate.dual <= exact.primal + 1e-7
        assert rough.certificate.primal <= 1.1 * exact.primal
        sparse = replace(problem, region=L1(C=2.0, nonnegative=np.array([True, False, False, True])))
        optimum = solve(sparse, mm.Exact()).certificate.primal
        for name, solver in LINEAR.items():
            found = solve(sparse, solver, stop=Stop(tol=1e-6))
            assert found.status is Status.CONVERGED, name
            assert found.certificate.primal == pytest.approx(optimum, rel=1e-5), name


@pytest.mark.parametrize("rescaling", ["none", "margin"])
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_quadratic_slack(formulation: str, rescaling: str) -> None:
    problem = lists(1, formulation, rescaling, slack="quadratic")
    exact = solve(problem, mm.Exact()).certificate
    found = solve(problem, mm.SimplicialDecomposition(), stop=Stop(tol=1e-5))
    assert found.certificate.primal == pytest.approx(exact.primal, rel=1e-4)


@pytest.mark.filterwarnings("ignore:stopped at the budget")
@pytest.mark.parametrize("rescaling", ["none", "margin"])
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_the_compiled_pairs_are_those_of_the_batch(formulation: str, rescaling: str, monkeypatch: Any) -> None:
    """Online passes over pairs that C++ finds, and over those that calls of Python find, give the same bits."""
    problem = lists(4, formulation, rescaling, n=20)
    solvers = (mm.BlockFrankWolfe(), mm.Mira(), mm.Subgradient())
    stop = Stop(tol=1e-9, max_iter=8)
    compiled = [solve(problem, solver, stop=stop, random_state=3).weights for solver in solvers]
    monkeypatch.setattr(CandidateSets, "online_hinge", lambda *arguments: None)
    for solver, weights in zip(solvers, compiled, strict=True):
        np.testing.assert_array_equal(solve(problem, solver, stop=stop, random_state=3).weights, weights)


@pytest.mark.filterwarnings("ignore:stopped at the budget")
@pytest.mark.parametrize("rescaling", ["none", "margin", "slack"])
def test_the_compiled_view_of_a_list_is_that_of_the_batch(rescaling: str, monkeypatch: Any) -> None:
    problem = replace(lists(5, "all", "none", n=20), rescaling=rescaling, good=None)
    solvers = [mm.BlockFrankWolfe(), mm.Mira(), mm.AveragedPerceptron()]
    solvers += [mm.Mira(k=3)] if rescaling == "margin" else []
    stop = Stop(tol=1e-9, max_iter=8)
    compiled = [solve(problem, solver, stop=stop, random_state=3).weights for solver in solvers]
    monkeypatch.setattr(Candidates, "oracle", lambda self, ranks=1: generic.oracle(self))
    for solver, weights in zip(solvers, compiled, strict=True):
        np.testing.assert_array_equal(solve(problem, solver, stop=stop, random_state=3).weights, weights)


# --- rounds of the best good output ---------------------------------------------------------------------------------


def best_objective(problem: Problem, w: FloatArray) -> float:
    """The objective of formulation="best", by loops."""
    good, v, s = problem.good, problem.features.scores(w), problem.scale
    assert isinstance(good, CandidateSets)
    augmented = np.repeat(s, problem.structure.sizes) * v + (problem.costs if problem.rescaling == "margin" else 0.0)
    total = problem.region.penalty(w)
    for i, (first, last) in enumerate(itertools.pairwise(problem.structure.blocks[0].offsets.tolist())):
        mask, own = good.mask[first:last], augmented[first:last]
        if not mask.all():
            total += max(0.0, own[~mask].max() - own[mask].max() + (s[i] if problem.rescaling == "none" else 0.0))
    return float(total)


def some_lists(seed: int, n: int = 14) -> tuple[list[FloatArray], list[Any], list[FloatArray]]:
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(size, 4)) for size in rng.integers(2, 7, size=n)]
    worth = [x @ [1.0, -1.0, 0.5, 0.0] + 0.5 * rng.normal(size=len(x)) for x in X]
    y = [q >= np.sort(q)[-2] for q in worth]
    return X, y, [np.where(good, 0.0, q.max() - q) for q, good in zip(worth, y, strict=True)]


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("rescaling", ["none", "margin"])
def test_rounds_lower_the_objective_of_the_best_good_output(rescaling: str, norm: str) -> None:
    X, y, costs = some_lists(2)
    given_costs = {"costs": costs} if rescaling == "margin" else {}
    objectives = []
    for rounds in range(1, 12):
        model = mm.CandidatesSVM(C=3.0, norm=norm, rescaling=rescaling, formulation="best", rounds=rounds, tol=1e-6)
        examples = model._examples(X, y, None, None, **given_costs)
        problem = examples.problem(model._settings(), 3.0)
        hooks = BestGood(rounds)
        trained = train_examples(examples, model._settings(), hooks=hooks)
        objectives.append(best_objective(problem, trained.weights))
        assert trained.training.solution.certificate.primal >= objectives[-1] - 1e-9
        np.testing.assert_array_equal(model.fit(X, y, **given_costs).coef_, trained.weights)
        if hooks.settled:
            break
    assert hooks.settled
    assert hooks.done == rounds > 1
    assert (np.diff(objectives) <= 1e-5 * objectives[0]).all()
    assert objectives[-1] < objectives[0]
    # Nothing changes any more: the objective is that of the last round's convex problem.
    assert trained.training.solution.certificate.primal == pytest.approx(objectives[-1], rel=1e-6)
    assert trained.metadata["formulation"] == "best"


def test_the_best_of_every_choice_of_good_outputs() -> None:
    """On tiny lists: some choice of good outputs has the smallest optimum, and no weights do better."""
    X, y, _ = some_lists(1, n=5)
    model = mm.CandidatesSVM(C=1.0, rescaling="none", formulation="best", tol=1e-7).fit(X, y)
    problem = model._examples(X, y, None, None).problem(model._settings(), 1.0)
    base, offsets = problem.good, problem.structure.blocks[0].offsets
    assert isinstance(base, CandidateSets)
    optima = []
    for choice in itertools.product(*(np.flatnonzero(good).tolist() for good in y)):
        fixed = replace(base, nearest=np.repeat(choice, problem.structure.sizes))
        gold = problem.structure.encode(choice)
        found = solve(replace(problem, gold_point=gold, good=fixed), mm.Exact())
        optima.append(found.certificate.primal)
        assert best_objective(problem, found.weights) <= optima[-1] + 1e-7
    reached = model.solution_.certificate.primal
    assert min(abs(reached - one) for one in optima) < 1e-5
    assert reached <= optima[0] + 1e-6  # the first round's
    assert len(offsets) == 6


# --- nearest candidates of the caller's -------------------------------------------------------------------------------


def test_nearest_candidates_as_given() -> None:
    X, y, costs = some_lists(3)
    euclidean = mm.CandidatesSVM(C=2.0, rescaling="none", formulation="nearest", tol=1e-6)
    sets = euclidean._examples(X, y, None, None).good
    assert isinstance(sets, CandidateSets)
    bounds = np.cumsum([0, *map(len, X)])
    nearest = [sets.nearest[a:b] for a, b in itertools.pairwise(bounds)]
    np.testing.assert_array_equal(euclidean.fit(X, y, nearest=nearest).coef_, euclidean.fit(X, y).coef_)
    # All compared with the first good one: the first round of "best", with costs too.
    first = [np.full(len(x), np.flatnonzero(good)[0]) for x, good in zip(X, y, strict=True)]
    one = mm.CandidatesSVM(C=2.0, formulation="nearest", tol=1e-6).fit(X, y, nearest=first, costs=costs)
    other = mm.CandidatesSVM(C=2.0, formulation="best", rounds=1, tol=1e-6).fit(X, y, costs=costs)
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_a_start_from_another_problem_is_safe() -> None:
    """Outputs of a run with one gold candidate are no pairs: they would raise the lower bound."""
    X, y, _ = some_lists(4)
    model = mm.CandidatesSVM(C=50.0, rescaling="none", solver=mm.BlockFrankWolfe(), warm_start=True)
    model.fit(X, [int(np.flatnonzero(good)[0]) for good in y])
    for formulation in FORMULATIONS:
        model.set_params(formulation=formulation).fit(X, y)
        assert model.solution_.certificate.dual <= model.solution_.certificate.primal


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "data", "message"),
    [
        ({"formulation": "worst"}, {}, "formulation must be one of"),
        ({"formulation": "all"}, {}, r"Hamming compares outputs with one gold output.* rescaling=\"none\""),
        ({"formulation": "all", "rescaling": "slack"}, {"costs": True}, 'not with rescaling="slack"'),
        ({"formulation": "best", "rescaling": "none", "rounds": 0}, {}, "rounds must be an integer >= 1"),
        ({"formulation": "gold"}, {}, 'several candidates are good; use formulation="nearest", "all" or "best"'),
        ({"formulation": "all", "rescaling": "none"}, {"nearest": True}, 'are for formulation="nearest", not "all"'),
        (
            {"formulation": "nearest", "rescaling": "none", "distance": lambda a, b: 0.0},
            {"nearest": True},
            "give a distance or the nearest candidates, not both",
        ),
        (
            {"formulation": "all", "rescaling": "none", "solver": mm.Mira(k=2)},
            {},
            'k-best lists need rescaling="margin"',
        ),
        ({"formulation": "all", "solver": mm.Mira(k=2)}, {"costs": True}, "only the most violated pair"),
        ({"formulation": "all", "solver": mm.Extragradient()}, {"costs": True}, "one gold output per example"),
        (
            {"formulation": "all", "rescaling": "none", "solver": mm.AveragedPerceptron()},
            {},
            "one gold output per example, not several good ones",
        ),
        (
            {"formulation": "all", "rescaling": "none", "norm": "l1", "solver": mm.ColumnGeneration(k_best=2)},
            {},
            "with several good outputs only one pair",
        ),
    ],
)
def test_refusals(settings: dict[str, Any], data: dict[str, Any], message: str) -> None:
    X, y, costs = some_lists(0)
    first = [np.full(len(x), np.flatnonzero(good)[0]) for x, good in zip(X, y, strict=True)]
    known = {"costs": costs, "nearest": first}
    with pytest.raises(ValueError, match=message):
        mm.CandidatesSVM(**settings).fit(X, y, **{name: known[name] for name in data})


@pytest.mark.parametrize(
    ("nearest", "message"),
    [
        ([[0, 0]], "nearest must have 2 entries"),
        ([[0, 0], [0, 0]], r"example 1: nearest must be 3 whole numbers, got shape \(2,\)"),
        ([[0, 0], [0.5, 0, 0]], "example 1: nearest, 3 whole numbers, must be integers"),
        ([[0, 0], [0, 1, 0]], "example 1: the nearest candidate of number 1 is 1, which is not the number of a good"),
        ([[0, 0], [0, 0, 7]], "example 1: the nearest candidate of number 2 is 7"),
    ],
)
def test_nearest_candidates_that_do_not_fit(nearest: Any, message: str) -> None:
    X = [np.eye(2), np.ones((3, 2))]
    model = mm.CandidatesSVM(rescaling="none", formulation="nearest")
    with pytest.raises(ValueError, match=message):
        model.fit(X, [0, 0], nearest=nearest)
    with pytest.raises(ValueError, match='nearest is for formulation="nearest"'):
        mm.CandidatesSVM().fit(X, [0, 0], nearest=nearest)


def test_sets_of_another_batch() -> None:
    problem, other = lists(0, "all", "none"), lists(1, "all", "none")
    assert "another batch" in (hinges.unsupported(replace(problem, good=other.good)) or "")
    with pytest.raises(ValueError, match="one mark per candidate"):
        _kernels.PairsHinge(
            np.array([0, 2]),
            np.ones(3, np.uint8),
            np.zeros(0, np.int64),
            np.zeros(1, np.int64),
            np.zeros(0),
            np.ones(1),
        )
