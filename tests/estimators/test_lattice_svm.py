"""LatticeSVM: learning, words, several good paths against enumeration, costs of edges, compiled views."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from data import lattices, same
from oracles.structures.lattice import paths, random_lattice, vertices
from problems import run

import maxmargin as mm
from maxmargin.features.parts import PartFeatures
from maxmargin.problem import PathSets, Problem
from maxmargin.regions import L1, L2
from maxmargin.solvers import Status, Stop, solve
from maxmargin.structures import Chain, Lattice
from maxmargin.structures.base import FloatArray
from maxmargin.training import BestGood, train_examples


def test_use() -> None:
    X, y = lattices(12)
    model = mm.LatticeSVM(C=1.0).fit(X, y)
    assert model.score(X, y) > 0.9
    X_new, y_new = lattices(12, seed=5)
    assert model.score(X_new, y_new) > 0.7
    found = model.predict(X_new)
    right = sum(len(set(p.tolist()) & set(g.tolist())) for p, g in zip(found, y_new, strict=True))
    assert model.score(X_new, y_new) == pytest.approx(2 * right / sum(map(len, [*found, *y_new])))
    for x, path, ranks in zip(X_new, found, model.k_best(X_new, 3), strict=True):
        assert same([rank[0] for rank in ranks[:1]], [path])
        for edges, score in ranks:
            assert score == pytest.approx(float((x.features @ model.coef_)[edges].sum()))


def test_distinct_words() -> None:
    X, y = lattices(10)
    model = mm.LatticeSVM().fit(X, y)
    for x, every, ranks in zip(X, model.k_best(X, 10_000), model.k_best(X, 4, distinct="words"), strict=True):
        best: dict[tuple[Any, ...], float] = {}
        for path, score in every:
            best.setdefault(tuple(mm.words_of(x, path)), score)
        wanted = sorted(best.items(), key=lambda item: -item[1])[:4]
        assert [score for _, score in ranks] == pytest.approx([score for _, score in wanted])
        assert [tuple(mm.words_of(x, path)) for path, _ in ranks] == [words for words, _ in wanted]
    assert model.model_.k_best_words(X, 2)[0][0][1] == pytest.approx(model.k_best(X, 1)[0][0][1])
    mixed = [replace(X[0], words=None), *X[1:]]  # a lattice without words has one sequence, the empty one
    assert len(model.k_best(mixed, 3, distinct="words")[0]) == 1


def test_confusion_networks() -> None:
    rng = np.random.default_rng(0)
    sizes = [2, 3, 1]
    x = mm.WordLattice.confusion_network(rng.normal(size=(6, 2)), sizes, ["a", "b", "c", "a", None, "d"])
    model = mm.LatticeSVM(C=100.0).fit([x], [[1, 4, 5]])
    assert model.predict([x])[0].tolist() == [1, 4, 5]
    assert mm.words_of(x, [1, 4, 5]) == ["b", "d"]
    assert len(model.k_best([x], 100)[0]) == 6


def test_edges_in_any_order_and_nodes_of_any_name() -> None:
    X, y = lattices(6)
    plain = mm.LatticeSVM(solver=mm.Exact()).fit(X, y)
    rng = np.random.default_rng(1)
    shuffled, moved = [], []
    for x, path in zip(X, y, strict=True):
        order, names = rng.permutation(len(x.edges)), rng.permutation(np.max(x.edges) + 1)
        place = np.argsort(order)
        words = [x.words[e] for e in order]
        end = int(names[np.max(x.edges)])
        shuffled.append(mm.WordLattice(x.features[order], names[x.edges[order]], words, int(names[0]), end))
        moved.append(place[path])
    other = mm.LatticeSVM(solver=mm.Exact()).fit(shuffled, moved)
    np.testing.assert_allclose(other.coef_, plain.coef_, atol=1e-6)
    assert other.score(shuffled, moved) == pytest.approx(plain.score(X, y))


def test_losses_and_costs_of_edges() -> None:
    X, y = lattices(8)
    hamming = mm.LatticeSVM(C=1.0, loss=mm.losses.Hamming(2.0, 3.0), solver=mm.Exact()).fit(X, y)
    # The same loss by costs: 2 for a wrong edge, -3 for a right one.
    costs = [np.where(np.isin(np.arange(len(x.edges)), path), -3.0, 2.0) for x, path in zip(X, y, strict=True)]
    given = mm.LatticeSVM(C=1.0, solver=mm.Exact()).fit(X, y, costs=costs)
    np.testing.assert_allclose(given.coef_, hamming.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="example 0: costs must be"):
        mm.LatticeSVM().fit(X, y, costs=[cost[:-1] for cost in costs])


# --- several good paths -----------------------------------------------------------------------------------------------


def good_problem(seed: int, formulation: str, rescaling: str, region: Any = None, slack: str = "linear") -> Problem:
    """Lattices with one to three good paths, and example weights, one of them zero."""
    rng = np.random.default_rng(seed)
    structure = random_lattice(rng, 6, nodes=6)
    features = PartFeatures(rng.normal(size=(structure.n_parts, 4)), structure.blocks[0].offsets)
    sets = [[own[j] for j in rng.permutation(len(own))[: rng.integers(1, 4)]] for own in paths(structure)]
    weight = rng.random(6) + 0.5
    weight[0] = 0.0
    return Problem.build(
        structure,
        features,
        structure.encode([own[0] for own in sets]),
        rng.random(structure.n_parts) if rescaling == "margin" else mm.losses.Hamming(),
        L2(C=1.0) if region is None else region,
        example_weight=weight,
        rescaling=rescaling,
        slack=slack,
        good=PathSets.build(structure, sets, formulation),
    )


def split(problem: Problem) -> list[tuple[FloatArray, FloatArray]]:
    """Bad and good paths of each example as rows, the good ones those that bad ones are compared with."""
    sets, found = problem.good, []
    assert isinstance(sets, PathSets)
    for i, outputs in enumerate(vertices(problem.structure)):
        good = {tuple(np.sort(path).tolist()) for path in sets._paths(i)}
        mask = np.array([tuple(np.flatnonzero(z).tolist()) in good for z in outputs])
        right = outputs[mask]
        if len(sets.chosen):
            chosen = np.sort(sets._paths(i)[int(sets.chosen[i] - sets.starts[i])])
            right = np.array([z for z in right if np.flatnonzero(z).tolist() == chosen.tolist()])
        found.append((outputs[~mask], right))
    return found


def hinges_by_loops(problem: Problem, w: FloatArray) -> FloatArray:
    values = problem.pair_scores(problem.features.scores(w))
    answer = []
    for i, (bad, good) in enumerate(split(problem)):
        own = values[problem.structure.parts_of([i])]
        margin = problem.scale[i] if problem.rescaling == "none" else 0.0
        answer.append(max([0.0, *(margin + (b - g) @ own for b in bad for g in good)]))
    return np.array(answer)


@pytest.mark.parametrize("rescaling", ["none", "margin"])
@pytest.mark.parametrize("formulation", ["all", "best"])
def test_hinges_of_good_paths_by_enumeration(formulation: str, rescaling: str) -> None:
    for seed in range(15):
        problem = good_problem(seed, formulation, rescaling)
        for size in (0.0, 0.3, 3.0):
            w = size * np.random.default_rng(seed).normal(size=4)
            worst = problem.most_violated(w)
            np.testing.assert_allclose(worst.value, hinges_by_loops(problem, w), atol=1e-12)
            np.testing.assert_allclose(
                worst.value, worst.factor * (problem.differences(worst.z) @ w) + worst.loss, atol=1e-12
            )
            shards = [problem.select([i]).hinge(w) for i in range(problem.structure.n_examples)]
            assert problem.hinge(w) == pytest.approx(sum(shards))
        for i, (bad, good) in enumerate(split(problem)):
            listed = problem.good.pairs(problem.structure, i)
            wanted = {(b - g).tobytes() for b, g in itertools.product(bad, good)}
            assert {row.tobytes() for row in listed} == wanted


@pytest.mark.parametrize("rescaling", ["none", "margin"])
@pytest.mark.parametrize("formulation", ["all", "best"])
def test_every_solver_finds_the_optimum(formulation: str, rescaling: str) -> None:
    for slack in ("linear", "quadratic"):
        problem = good_problem(2, formulation, rescaling, slack=slack)
        exact = solve(problem, mm.Exact()).certificate.primal
        solvers = [mm.SimplicialDecomposition(), mm.CuttingPlane()]
        for solver in [*solvers, *([mm.BlockFrankWolfe()] if slack == "linear" else [])]:
            found = run(problem, solver, tol=1e-5, max_iter=3000)
            assert found.status is Status.CONVERGED
            assert found.certificate.dual - 1e-7 <= exact <= found.certificate.primal + 1e-7
    sparse = replace(good_problem(2, formulation, rescaling), region=L1(C=2.0))
    optimum = solve(sparse, mm.Exact()).certificate.primal
    for master in ("highs", "proximal"):
        found = run(sparse, mm.ColumnGeneration(master=master), tol=1e-6, max_iter=1000)
        assert found.certificate.primal == pytest.approx(optimum, rel=1e-5)


@pytest.mark.filterwarnings("ignore:stopped at the budget")
@pytest.mark.parametrize("rescaling", ["none", "margin"])
@pytest.mark.parametrize("formulation", ["all", "best"])
def test_the_compiled_pairs_are_those_of_the_batch(formulation: str, rescaling: str, monkeypatch: Any) -> None:
    problem = good_problem(4, formulation, rescaling)
    solvers = (mm.BlockFrankWolfe(), mm.Mira(), mm.Subgradient())
    stop = Stop(tol=1e-9, max_iter=8)
    compiled = [solve(problem, solver, stop=stop, random_state=3).weights for solver in solvers]
    monkeypatch.setattr(PathSets, "online_hinge", lambda *arguments: None)
    for solver, weights in zip(solvers, compiled, strict=True):
        np.testing.assert_array_equal(solve(problem, solver, stop=stop, random_state=3).weights, weights)


def some_sets(seed: int = 3) -> tuple[list[mm.WordLattice], list[Any]]:
    """Lattices whose two best paths of hidden weights are good."""
    X, y = lattices(10, seed=seed)
    hidden = mm.LatticeSVM(C=1.0).fit(X, y)
    return X, [[path for path, _ in ranks] for ranks in hidden.k_best(X, 2)]


@pytest.mark.parametrize("rescaling", ["none", "margin"])
def test_rounds_lower_the_objective_of_the_best_good_path(rescaling: str) -> None:
    X, y = some_sets()
    rng = np.random.default_rng(0)
    costs = {"costs": [rng.random(len(x.edges)) for x in X]} if rescaling == "margin" else {}
    objectives = []
    for rounds in range(1, 12):
        model = mm.LatticeSVM(C=0.3, rescaling=rescaling, formulation="best", rounds=rounds, tol=1e-6)
        examples = model._examples(X, y, None, None, **costs)
        problem, hooks = examples.problem(model._settings(), 0.3), BestGood(rounds)
        trained = train_examples(examples, model._settings(), hooks=hooks)
        objectives.append(best_objective(problem, trained.weights))
        np.testing.assert_array_equal(model.fit(X, y, **costs).coef_, trained.weights)
        if hooks.settled:
            break
    assert hooks.settled
    assert (np.diff(objectives) <= 1e-5 * objectives[0]).all()
    assert trained.training.solution.certificate.primal == pytest.approx(objectives[-1], rel=1e-5)


def best_objective(problem: Problem, w: FloatArray) -> float:
    """The objective of formulation="best" over all good paths, by loops."""
    everything = replace(problem, good=replace(problem.good, chosen=np.zeros(0, dtype=np.int64)))
    values = problem.pair_scores(problem.features.scores(w))
    total = problem.region.penalty(w)
    for i, (bad, good) in enumerate(split(everything)):
        own = values[problem.structure.parts_of([i])]
        if len(bad):
            margin = problem.scale[i] if problem.rescaling == "none" else 0.0
            total += max(0.0, margin + float((bad @ own).max() - (good @ own).max()))
    return float(total)


def test_sets_and_repeated_paths_are_taken() -> None:
    X, y = some_sets()
    model = mm.LatticeSVM(C=1.0, rescaling="none", formulation="all").fit(X, y)
    for given in (
        [{tuple(path.tolist()) for path in own} for own in y],
        [[*own, own[0]] for own in y],
        [tuple(path.tolist() for path in own) for own in y],
    ):
        again = mm.LatticeSVM(C=1.0, rescaling="none", formulation="all").fit(X, given)
        assert again.solution_.certificate.primal == pytest.approx(model.solution_.certificate.primal, rel=1e-3)
    assert model.model_.metadata["formulation"] == "all"
    one = mm.LatticeSVM(C=1.0, rescaling="none", solver=mm.Exact()).fit(X, [own[0] for own in y])
    single = mm.LatticeSVM(C=1.0, rescaling="none", formulation="all", solver=mm.Exact()).fit(X, [own[0] for own in y])
    np.testing.assert_allclose(single.coef_, one.coef_, atol=1e-5)


def test_refused_sets() -> None:
    structure = Lattice([3, 3], [[0, 1], [1, 2], [0, 2]] * 2, [0, 3, 6])
    for sets, formulation, message in (
        ([[[2]], [[2]]], "nearest", 'must be "all" or "best"'),
        ([[[2]]], "all", "1 sets of good paths for 2 examples"),
        ([[[2]], []], "all", "example 1: no path is good"),
        ([[[2]], [[0, 1], [1]]], "all", "example 1: the edges are not a path"),
    ):
        with pytest.raises(ValueError, match=message):
            PathSets.build(structure, sets, formulation)
    with pytest.raises(ValueError, match="not of a chain"):
        PathSets.build(Chain([2], 2), [[[0]]], "all")
    sets = PathSets.build(structure, [[[2]], [[2]]], "all")
    assert "another batch" in str(sets.unsupported(structure.select([0])))
