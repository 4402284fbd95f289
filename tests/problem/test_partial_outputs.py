"""Gold outputs that are known in part: completions, means, losses and hinges of every structure, by enumeration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles.enumeration import good_rows
from problems import ENTROPIC, RELAXED, STRUCTURES, make

import maxmargin as mm
from maxmargin.losses import Hamming, LabelCost, Loss
from maxmargin.problem import PartialOutputs, Problem
from maxmargin.solvers import BlockFrankWolfe, Stop, solve
from maxmargin.structures.base import FloatArray, Structure
from maxmargin.structures.chains.chain import Chain
from maxmargin.structures.chains.transitions import TransitionConstraints
from maxmargin.structures.cuts.cut import Cut
from maxmargin.structures.fallbacks.given import Given, argmax_given, mean_given
from maxmargin.structures.matchings.matching import Matching


def some_given(structure: Structure, gold: FloatArray, seed: int = 0, sets: bool = True) -> Given:
    """Some of the variables of gold outputs: known, free or, if they are categorical, one of several states."""
    rng = np.random.default_rng(seed)
    known = np.where(gold[structure.variable_parts] > 0.5, 1, -1).astype(np.int8)
    if not structure.categorical:
        known[rng.random(len(known)) < 0.5] = 0
        return known
    owner = np.repeat(np.arange(len(structure.n_states)), structure.n_states)
    kind = rng.random(len(structure.n_states))[owner]
    also = rng.random(len(known)) < 0.5
    several = np.where(known > 0, 0, np.where(also, 0, -1)) if sets else known
    return np.where(kind < 0.4, 0, np.where(kind < 0.7, several, known)).astype(np.int8)


def partial(kind: str, formulation: str = "best", seed: int = 0) -> tuple[Problem, PartialOutputs, Loss]:
    """A problem whose gold outputs are known in part, with a mean of the good outputs as gold point."""
    problem = make(kind, seed=seed, n=3)
    structure = problem.structure
    good = PartialOutputs.build(structure, some_given(structure, problem.gold, seed), formulation)
    loss = Hamming() if structure.categorical else Hamming(1.0, 2.0)
    return built(problem, good, loss), good, loss


def built(problem: Problem, good: PartialOutputs, loss: Loss, weights: FloatArray | None = None) -> Problem:
    """With the mean of the good outputs as gold point, or the best one under some weights."""
    structure, features = problem.structure, problem.features
    gold = good.mean(structure) if weights is None else good.best(structure, features.scores(weights))[0]
    return Problem.build(structure, features, gold, good.costs(structure, loss), problem.region)


def distance(structure: Structure, given: Given, rows: FloatArray, i: int) -> FloatArray:
    """Hamming loss of outputs by what is given, counted one by one."""
    first, last = structure.blocks[0].offsets[i : i + 2]
    own, lead = given[first:last], rows[:, : last - first] > 0.5
    if not structure.categorical:
        return 2.0 * ((own > 0) & ~lead).sum(axis=1) + 1.0 * ((own < 0) & lead).sum(axis=1)
    return (lead & (own < 0)).sum(axis=1).astype(np.float64)


def latent_hinges(problem: Problem, good: PartialOutputs, weights: FloatArray) -> FloatArray:
    """``max_y [loss + score] - max_good score`` of each example, over all outputs."""
    structure, scores = problem.structure, problem.features.scores(weights)
    found = []
    for i, (rows, agree) in enumerate(good_rows(structure, good.given)):
        own = rows @ scores[structure.parts_of([i])]
        found.append((distance(structure, good.given, rows, i) + own).max() - own[agree].max())
    return np.array(found)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_completions_and_means_by_enumeration(kind: str) -> None:
    problem, good, _ = partial(kind)
    structure, rng = problem.structure, np.random.default_rng(1)
    weights = rng.normal(size=problem.n_weights)
    if problem.region.nonnegative is not None:
        weights = problem.region.project(weights)
    scores = problem.features.scores(weights)
    best, mean = argmax_given(structure, scores, good.given), good.mean(structure).dense()
    assert (best.status <= 1).all()
    lead = mean[structure.variable_parts]
    assert (lead[good.given > 0] > 1.0 - 1e-9).all()
    assert (lead[good.given < 0] < 1e-9).all()
    for i, (rows, agree) in enumerate(good_rows(structure, good.given)):
        own = structure.parts_of([i])
        most = (rows[agree] @ scores[own]).max()
        assert best.value[i] == pytest.approx(scores[own] @ best.z[own], abs=1e-9)
        if kind in RELAXED:
            assert best.value[i] >= most - 1e-6
            continue
        assert best.value[i] == pytest.approx(most, abs=1e-9)
        assert (rows[agree] == best.z[own]).all(axis=1).any()
        assert mean[own] @ scores[own] <= most + 1e-9
        if kind in ENTROPIC and (structure.categorical or not (good.given > 0).any()):
            np.testing.assert_allclose(mean[own], rows[agree].mean(axis=0), atol=1e-9)


@pytest.mark.parametrize("kind", [kind for kind in STRUCTURES if kind not in RELAXED])
def test_hinges_touch_and_bound_the_latent_one(kind: str) -> None:
    relaxed, good, loss = partial(kind, seed=3)
    structure, rng = relaxed.structure, np.random.default_rng(2)
    project = relaxed.region.project
    start = project(rng.normal(size=relaxed.n_weights))
    round_problem = built(relaxed, good, loss, start)
    for step in range(4):
        weights = project(start + step * rng.normal(size=len(start)))
        latent = latent_hinges(relaxed, good, weights)
        surrogate, mean = round_problem.most_violated(weights).value, relaxed.most_violated(weights).value
        assert (latent >= -1e-9).all()
        assert (surrogate >= latent - 1e-9).all()
        assert (mean >= latent - 1e-9).all()
        if step == 0:
            np.testing.assert_allclose(surrogate, latent, atol=1e-8)
    # The loss is 0 on all good outputs, and counts what is wrong in the others.
    for i, (rows, agree) in enumerate(good_rows(structure, good.given)):
        one = round_problem.select([i])
        losses = np.array([float(one.losses(row)[0]) for row in rows])
        np.testing.assert_allclose(losses, distance(structure, good.given, rows, i), atol=1e-12)
        assert (losses[agree] == 0.0).all()


@pytest.mark.parametrize("kind", ["chain", "matching", "cut", "lattice", "tree"])
def test_rounds_never_raise_the_latent_objective(kind: str) -> None:
    problem, good, loss = partial(kind, seed=5)
    objectives, weights = [], None
    for _ in range(6):
        convex = built(problem, good, loss, weights)
        start = mm.optimization.solver.Start(weights)
        found = solve(convex, BlockFrankWolfe(), stop=Stop(tol=1e-8, max_iter=500), start=start, random_state=0)
        weights = found.weights
        latent = problem.region.penalty(weights) + latent_hinges(problem, good, weights).sum()
        assert latent <= found.certificate.primal + 1e-9
        objectives.append(latent)
    assert (np.diff(objectives) <= 1e-7 * objectives[0]).all()
    assert objectives[-1] == pytest.approx(found.certificate.primal, rel=1e-6)


def test_everything_given_is_the_plain_problem() -> None:
    for kind in STRUCTURES:
        problem = make(kind, n=3)
        structure = problem.structure
        loss = Hamming() if structure.categorical else Hamming(1.0, 2.0)
        given = np.where(problem.gold[structure.variable_parts] > 0.5, 1, -1)
        again = built(problem, PartialOutputs.build(structure, given), loss)
        if kind not in RELAXED:  # the completion of a relaxed structure may leave edges between two labelings
            np.testing.assert_array_equal(again.gold, problem.gold)
        np.testing.assert_array_equal(again.leading_costs, problem.leading_costs)
        assert again.constant == problem.constant


def test_selected_examples_and_threads() -> None:
    for kind in ("chain", "matching", "cut", "tree"):
        problem, good, _ = partial(kind)
        structure, scores = problem.structure, np.random.default_rng(0).normal(size=problem.n_parts)
        whole = good.best(structure, scores)[0].dense() if kind != "cut" else good.mean(structure).dense()
        chosen = np.array([2, 0])
        some, own = structure.select(chosen), good.select(structure, chosen)
        part = own.best(some, scores[structure.parts_of(chosen)])[0] if kind != "cut" else own.mean(some)
        np.testing.assert_array_equal(part.dense(), whole[structure.parts_of(chosen)])
        with mm.threads(3):
            np.testing.assert_array_equal(good.mean(structure).dense(), mean_given(structure, good.given))


def test_costs_of_labels_by_the_nearest_right_one() -> None:
    structure = Chain([3], 3)
    matrix = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [4.0, 3.0, 0.0]])
    good = PartialOutputs.build(structure, [1, -1, -1, 0, 0, -1, 0, 0, 0])
    costs = good.costs(structure, LabelCost(matrix)).reshape(3, 3)
    np.testing.assert_array_equal(costs, [[0, 1, 5], [0, 0, 1], [0, 0, 0]])


class Odd(Loss):
    """Costs that are no Hamming loss, of variables or also of edges."""

    def __init__(self, edges: float) -> None:
        self.edges = edges

    def costs(self, structure: Structure, gold: FloatArray) -> tuple[FloatArray, FloatArray]:
        costs = np.full(structure.n_parts, self.edges)
        costs[structure.variable_parts] = 3.0 * (1.0 - gold[structure.variable_parts])
        return costs, np.zeros(structure.n_parts)


def test_losses_that_depend_on_what_is_hidden_are_refused() -> None:
    structure = Chain([2], 3)
    known, several = [0, 0, 0, 1, -1, -1], [0, 0, -1, 0, 0, 0]
    costs = PartialOutputs.build(structure, known).costs(structure, Odd(0.0))
    np.testing.assert_array_equal(costs, [0, 0, 0, 0, 3, 3])
    with pytest.raises(ValueError, match="several are right"):
        PartialOutputs.build(structure, several).costs(structure, Odd(0.0))
    with pytest.raises(ValueError, match="outside of the variable parts"):
        PartialOutputs.build(structure, known).costs(structure, Odd(1.0))


def test_bad_input() -> None:
    chain = Chain([1, 2], 2, constraints=TransitionConstraints.forbid(["a", "b"], [("a", "b")]))
    with pytest.raises(ValueError, match="example 1: no output agrees"):
        PartialOutputs.build(chain, [0, 0, 1, 0, 0, 1])
    with pytest.raises(ValueError, match="example 1: a variable is given 2 states"):
        PartialOutputs.build(chain, [0, 0, 1, 1, 0, 0])
    with pytest.raises(ValueError, match="example 0: no output agrees"):
        PartialOutputs.build(Matching.dense([(2, 2)]), [1, 1, 0, 0])
    with pytest.raises(ValueError, match="6 numbers 1, -1 or 0"):
        PartialOutputs.build(chain, [0, 0, 1])
    with pytest.raises(ValueError, match="6 numbers 1, -1 or 0"):
        PartialOutputs.build(chain, [0, 0, 2, 0, 0, 0])
    with pytest.raises(ValueError, match="formulation"):
        PartialOutputs.build(chain, [0] * 6, "all")
    cut = Cut([2], [(0, 1)], [0, 1])
    good = PartialOutputs.build(cut, [1, 0])
    assert "another batch" in str(good.unsupported(chain))
    with pytest.raises(ValueError, match="not finite"):
        good.best(cut, np.array([np.nan, 0.0, -1.0]))
    assert replace(good, formulation="mean").select(cut, np.array([0])).formulation == "mean"
