"""Compiled passes over single examples: seeds of block descent, slack rescaled and k-best oracles of one example."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import visit

from maxmargin import _kernels
from maxmargin.features.base import Features
from maxmargin.features.parts import Stacked
from maxmargin.features.supported import Support, SupportedRows
from maxmargin.features.tied import ChainFeatures, TiedRows
from maxmargin.features.tree import TreeFeatures
from maxmargin.losses import Hamming
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.structures import Structure
from maxmargin.structures.chains.chain import Chain
from maxmargin.structures.trees.junction import JunctionTree
from maxmargin.structures.trees.tree import Tree

FREE = np.zeros(0, dtype=np.uint8)
RULES = settings(deadline=None, derandomize=True, max_examples=25)


def made(kind: str, seed: int, rescaling: str = "margin", units: bool = True) -> Problem:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 6, size=4)
    rows = rng.normal(size=(int(sizes.sum()), 3))
    structure: Structure
    features: Features
    if kind in ("shared", "each"):
        edges = rng.normal(size=(int(np.maximum(sizes - 1, 0).sum()), 2)) if kind == "each" else None
        structure = Chain(sizes, 3, transitions="shared" if edges is None else "each")
        features = ChainFeatures(rows, sizes, 3, edge_features=edges)
    else:
        links = [[(v, int(rng.integers(0, v))) for v in range(1, size)] for size in sizes.tolist()]
        if kind == "junction":
            links = [own + ([(0, len(own))] if len(own) > 2 and (len(own), 0) not in own else []) for own in links]
        ends = np.array([edge for own in links for edge in own], dtype=np.int64).reshape(-1, 2)
        starts = np.cumsum([0, *map(len, links)])
        structure = (JunctionTree if kind == "junction" else Tree)(sizes, 3, ends, starts)
        features = TreeFeatures(rows, structure, 3)
    gold = structure.argmax(rng.normal(size=structure.n_parts)).z
    weight = None if units else rng.random(structure.starts[1]) + 0.1
    return Problem.build(structure, features, gold, Hamming(), L2(C=0.7), loss_weight=weight, rescaling=rescaling)


def blocks_of(problem: Problem, most: int = 30) -> Any:
    return _kernels.BlockFrankWolfe(problem.examples(), 0.7, np.inf, FREE, 2, 10, most, 0.0, 0.0, 1)


@pytest.mark.parametrize("kind", ["shared", "each", "tree", "junction"])
@given(seed=st.integers(0, 10**6), rescaling=st.sampled_from(["margin", "slack", "none"]), units=st.booleans())
@RULES
def test_one_example_sees_what_the_batch_sees(kind: str, seed: int, rescaling: str, units: bool) -> None:
    problem = made(kind, seed, rescaling, units)
    weights = np.random.default_rng(seed).normal(size=problem.n_weights)
    worst = problem.most_violated(weights)
    rows = problem.differences(worst.z).toarray()
    view = problem.examples()
    for i in range(problem.structure.n_examples):
        change, loss = visit(problem, i, weights, view)
        value = change @ weights + loss
        assert value == pytest.approx(worst.value[i], abs=1e-9)
        if worst.value[i] > 1e-9:
            assert loss == pytest.approx(worst.loss[i], abs=1e-9)
            np.testing.assert_allclose(change, worst.factor[i] * rows[i], atol=1e-9)


@pytest.mark.parametrize("rescaling", ["slack", "none"])
@pytest.mark.parametrize("kind", ["shared", "tree"])
def test_every_vector_length_finds_the_same(kind: str, rescaling: str, every_vector_length: int) -> None:
    for seed in range(5):
        problem = made(kind, seed, rescaling)
        weights = np.random.default_rng(seed).normal(size=problem.n_weights)
        worst = problem.most_violated(weights)
        for i in range(problem.structure.n_examples):
            change, loss = visit(problem, i, weights)
            assert change @ weights + loss == pytest.approx(worst.value[i], abs=1e-9)


@pytest.mark.parametrize("scale", [0.0, 1e-12, 1e8])
@pytest.mark.parametrize("rescaling", ["slack", "none"])
@pytest.mark.parametrize("kind", ["shared", "tree"])
def test_ties_and_sizes_of_scores(kind: str, rescaling: str, scale: float) -> None:
    problem = made(kind, 3, rescaling)
    weights = scale * np.random.default_rng(0).normal(size=problem.n_weights)
    worst = problem.most_violated(weights)
    for i in range(problem.structure.n_examples):
        change, loss = visit(problem, i, weights)
        assert change @ weights + loss == pytest.approx(worst.value[i], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("kind", ["shared", "tree"])
def test_what_is_not_finite_ends_a_pass(kind: str, rescaling: str, bad: float) -> None:
    problem = made(kind, 1, rescaling)
    total, late = np.full(problem.n_weights, bad), np.zeros(problem.n_weights)
    order = np.flatnonzero(problem.structure.sizes > 9)
    with pytest.raises((ArithmeticError, RuntimeError), match=r"NaN|no feasible output"):
        _kernels.subgradient_pass(problem.examples(), order, 1.0, np.inf, FREE, total, late, 1.0)


@pytest.mark.parametrize("kind", ["tree", "junction"])
@given(seed=st.integers(0, 10**6), k=st.integers(2, 40))
@RULES
def test_k_best_of_one_tree(kind: str, seed: int, k: int) -> None:
    """MIRA's step stays in the span of the differences of the k best, and its first visit finds all of them."""
    problem = made(kind, seed)
    start = np.random.default_rng(seed).normal(size=problem.n_weights)
    ranks = problem.structure.k_best(problem.augmented(start), k)
    differences = [problem.differences(rank.z).toarray() for rank in ranks]
    for i in range(problem.structure.n_examples):
        own = np.stack([rows[i] for rows, rank in zip(differences, ranks, strict=True) if rank.status[i] == 0])
        w, late = start.copy(), np.zeros(len(start))
        _kernels.mira_pass(problem.examples(k), np.array([i]), 0.5, k, FREE, w, late, 0.0)
        step = w - start
        left = step - own.T @ np.linalg.lstsq(own.T, step, rcond=None)[0]
        assert np.abs(left).max(initial=0.0) < 1e-8


def test_fewer_ranks_than_asked_are_refused() -> None:
    for kind in ("shared", "tree"):
        problem = made(kind, 0)
        w, late = np.zeros(problem.n_weights), np.zeros(problem.n_weights)
        with pytest.raises(ValueError, match="fewer ranks"):
            _kernels.mira_pass(problem.examples(2), np.array([0]), 0.5, 3, FREE, w, late, 0.0)
    with pytest.raises(ValueError, match="k must be"):
        _kernels.TreeOracle(made("tree", 0).structure._batch, 0)  # type: ignore[attr-defined]


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("kind", ["shared", "each", "tree"])
def test_seeds_are_given_back(kind: str, rescaling: str) -> None:
    """ActiveSet, and with them ``g`` and the loss; then kept passes go on from there."""
    for seed in range(4):
        problem = made(kind, seed, rescaling)
        n = problem.structure.n_examples
        first = blocks_of(problem)
        for _ in range(3):
            first.pass_over(np.arange(n), False, 1)
        first.refresh()
        second = blocks_of(problem)
        second.seed(*first.active_set())
        for one, other in zip(first.active_set(), second.active_set(), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)
        np.testing.assert_allclose(second.g, first.g, atol=1e-10)
        assert second.loss == pytest.approx(first.loss, abs=1e-10)
        dual = [problem.region.dual(np.array(second.g), second.loss)]
        for _ in range(5):
            second.pass_over(np.arange(n), True, 1)
            second.refresh()
            dual.append(problem.region.dual(np.array(second.g), second.loss))
        assert (np.diff(dual) >= -1e-9).all()
        assert dual[-1] <= problem.objective(problem.region.best_response(np.array(second.g))) + 1e-9


def test_seeds_of_the_gold_output_twice_and_of_more_than_are_kept() -> None:
    problem = made("tree", 7, "slack")
    n = problem.structure.n_examples
    blocks = blocks_of(problem)
    for _ in range(6):
        blocks.pass_over(np.arange(n), False, 1)
    starts, mass, part_starts, part, value = blocks.active_set()
    twice = np.repeat(np.arange(len(mass)), 2)
    counts = np.diff(part_starts)[twice]
    entries = np.concatenate([np.zeros(0, dtype=np.int64), *(np.arange(*part_starts[r : r + 2]) for r in twice)])
    again = blocks_of(problem, most=2)
    again.seed(2 * starts, 0.5 * mass[twice], np.concatenate([[0], np.cumsum(counts)]), part[entries], value[entries])
    np.testing.assert_allclose(again.active_set()[1], mass, atol=1e-12)
    again.pass_over(np.arange(n), False, 1)
    assert np.add.reduceat(again.active_set()[1], again.active_set()[0][:-1]) == pytest.approx(1.0)


def test_an_empty_seed_is_the_gold_output() -> None:
    problem = made("shared", 2)
    n = problem.structure.n_examples
    nothing = np.zeros(0)
    blocks = blocks_of(problem)
    blocks.seed(
        np.zeros(n + 1, dtype=np.int64), nothing, np.zeros(1, dtype=np.int64), nothing.astype(np.int32), nothing
    )
    assert blocks.loss == 0.0
    np.testing.assert_array_equal(blocks.active_set()[1], np.ones(n))
    empty = replace(problem).select([])
    blocks = blocks_of(empty)
    blocks.seed(np.zeros(1, dtype=np.int64), nothing, np.zeros(1, dtype=np.int64), nothing.astype(np.int32), nothing)
    assert [len(array) for array in blocks.active_set()] == [1, 0, 1, 0, 0]


def test_bad_seeds_are_refused() -> None:
    problem = made("shared", 5)
    n = problem.structure.n_examples
    blocks = blocks_of(problem)
    blocks.pass_over(np.arange(n), False, 1)
    good = blocks.active_set()
    starts, mass, part_starts, part, value = good
    longer = int(np.argmax(np.diff(part_starts)))
    swapped = part.copy()
    swapped[part_starts[longer]] = 10**6
    backwards = part.copy()
    backwards[part_starts[longer]] = backwards[part_starts[longer] + 1]
    for wrong in (
        (starts[:-1], *good[1:]),
        (starts + 1, *good[1:]),
        (starts[::-1].copy(), *good[1:]),
        (starts, mass[:-1], *good[2:]),
        (starts, -mass, *good[2:]),
        (starts, np.full(len(mass), np.nan), *good[2:]),
        (starts, mass, part_starts[:-1], part, value),
        (starts, mass, part_starts + 1, part, value),
        (starts, mass, part_starts, part[:-1], value),
        (starts, mass, part_starts, part, value[:-1]),
        (starts, mass, part_starts, swapped, value),
        (starts, mass, part_starts, -part - 1, value),
        (starts, mass, part_starts, backwards, value),
    ):
        with pytest.raises(ValueError):
            blocks.seed(*wrong)
    with pytest.raises(TypeError):
        blocks.seed(starts, mass, part_starts, part.astype(np.int64), value)
    offsets, gold = [block.offsets for block in problem.structure.blocks], problem.gold_point
    views = problem.structure.oracle(), problem.features.per_example(offsets)
    gold_starts = np.ascontiguousarray(gold.starts, dtype=np.int64).ravel()
    arrays = problem.leading_costs, gold_starts, gold.index, gold.value, problem.scale
    with pytest.raises(ValueError, match="rescaling must be"):
        _kernels.OnlineExamples(*views, 1, None, False, offsets, *arrays)


def bigger(seed: int, m: int, costs: float = 1.0, full: bool = True) -> tuple[Problem, Problem]:
    """One problem of sparse rows twice: with weights for all pairs, and for some (all of them, or those observed)."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 7, size=12)
    n, d = int(sizes.sum()), 20
    rows = sp.random_array((n, d), density=0.3, rng=rng, format="csr")
    labels = rng.integers(0, m, size=n)
    chain, starts = Chain(sizes, m), np.concatenate([[0], np.cumsum(sizes)])
    support = Support.full(d, m) if full else Support.observed(sp.csr_array(rows), labels, m)
    pairs = TiedRows(np.zeros((len(sizes), 0)), np.arange(len(sizes) + 1), m * m, constant=True)
    gold = chain.encode(np.split(labels, starts[1:-1])).dense()

    def build(features: Features) -> Problem:
        return Problem.build(chain, Stacked(features, pairs), gold, Hamming(costs, costs), L2(C=0.7))

    return build(TiedRows(rows, starts, m)), build(SupportedRows(rows, starts, support))


def passes(problem: Problem, most: int = 30, rounds: int = 3) -> Any:
    rng = np.random.default_rng(0)
    blocks = blocks_of(problem, most)
    for kept in (False, True, True) * rounds:
        blocks.pass_over(rng.permutation(problem.structure.n_examples), kept, 1)
    return blocks


@pytest.mark.parametrize("m", [2, 5, 30, 70])
def test_weights_for_all_pairs_however_stored(m: int) -> None:
    # Rounding breaks ties in other ways, but the optimum has one g.
    found = [passes(problem, rounds=150) for problem in bigger(0, m)]
    duals = [bigger(0, m)[0].region.dual(np.array(blocks.g), blocks.loss) for blocks in found]
    assert duals[0] == pytest.approx(duals[1], rel=1e-5)
    np.testing.assert_allclose(found[0].g, found[1].g, atol=1e-2)


@pytest.mark.parametrize("most", [2, 3, 30])
@pytest.mark.parametrize("full", [True, False])
def test_sums_of_changes_are_those_of_the_masses(most: int, full: bool) -> None:
    problem = bigger(1, 4, full=full)[1]
    blocks = passes(problem, most, 6)
    g, loss = np.array(blocks.g), blocks.loss
    blocks.refresh()
    np.testing.assert_allclose(blocks.g, g, rtol=1e-9, atol=1e-9)
    assert blocks.loss == pytest.approx(loss)
    again = blocks_of(problem, most)
    again.seed(*blocks.active_set())
    np.testing.assert_allclose(again.g, g, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("stored", [0, 1], ids=["all", "some"])
@pytest.mark.parametrize("m", [1, 5, 70])
def test_kept_passes_never_lose(stored: int, m: int) -> None:
    problem = bigger(2, m, full=False)[stored]
    rng = np.random.default_rng(3)
    blocks, dual = blocks_of(problem), 0.0
    for kept in (False, True, True, True) * 4:
        blocks.pass_over(rng.permutation(problem.structure.n_examples), kept, 1)
        now = problem.region.dual(np.array(blocks.g), blocks.loss)
        assert now >= dual - 1e-9 * abs(dual)
        dual = now
    assert dual > 0.0 or m == 1


def test_costs_as_bytes_or_numbers() -> None:
    small = bigger(4, 3)[0]
    assert small.leading_costs.dtype == np.uint8
    large = replace(small, leading_costs=small.leading_costs.astype(np.float64))
    weights = np.random.default_rng(5).normal(size=small.n_weights)
    np.testing.assert_array_equal(small.augmented(weights), large.augmented(weights))
    np.testing.assert_array_equal(passes(small).g, passes(large).g)
    assert small.hinge(weights) == large.hinge(weights)
    for costs in (0.5, 256.0):
        assert bigger(4, 3, costs)[0].leading_costs.dtype == np.float64


def test_masses_as_bytes_or_numbers() -> None:
    problem = bigger(6, 3)[0]
    starts, mass, part_starts, part, value = passes(problem).active_set()
    assert value.dtype == np.uint8
    one, other = blocks_of(problem), blocks_of(problem)
    one.seed(starts, mass, part_starts, part, value)
    other.seed(starts, mass, part_starts, part, value.astype(np.float64))
    np.testing.assert_array_equal(one.g, other.g)
