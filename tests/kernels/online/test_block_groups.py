"""Block Frank-Wolfe over groups of examples: same bits for any number of threads, a dual that never falls; shards."""

from __future__ import annotations

from typing import Any

import numpy as np
import problems
import pytest

import maxmargin as mm
from maxmargin import _kernels
from maxmargin.problem import Problem
from maxmargin.solvers import Stop, solve

FREE = np.zeros(0, dtype=np.uint8)
KINDS = problems.STRUCTURES


def blocks_of(problem: Problem, group: int, most: int = 30) -> Any:
    ridge, mask = problem.region.ridge, problem.region.nonnegative
    assert ridge is not None
    signs = FREE if mask is None else mask.astype(np.uint8)
    return _kernels.BlockFrankWolfe(problem.examples(), *ridge, signs, 2, 10, most, 0.0, 0.0, group)


def dual(problem: Problem, blocks: Any) -> float:
    return problem.region.dual(np.array(blocks.g), blocks.loss)


def passes(problem: Problem, threads: int, group: int = 5) -> tuple[Any, list[float]]:
    """After a few passes, in which examples come twice: the blocks, and the dual after each."""
    random = np.random.default_rng(0)
    blocks = blocks_of(problem, group, most=4)
    values = [dual(problem, blocks)]
    for kept in (False, True, False, True, True, False):
        order = random.integers(0, problem.structure.n_examples, size=17)
        blocks.pass_over(order, kept, threads)
        values.append(dual(problem, blocks))
    return blocks, values


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_threads_gives_the_same_bits(kind: str, signs: bool) -> None:
    region = {"C": 0.5, "radius": 0.3} if signs else {"C": 0.5}
    problem = problems.make(kind, n=17, region=region, signs=signs)
    first, values = passes(problem, 1)
    assert (np.diff(values) >= -1e-9 * max(1.0, abs(values[-1]))).all()
    assert values[-1] > values[0]
    for threads in (2, 4):
        other, again = passes(problem, threads)
        assert again == values
        for one, two in zip(first.state(), other.state(), strict=True):
            np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(first.examples.memory(), other.examples.memory())


@pytest.mark.parametrize("rescaling", ["slack", "none"])
@pytest.mark.parametrize("kind", ["chain", "matching", "lattice"])
def test_hinges_of_python_are_called_by_threads(kind: str, rescaling: str) -> None:
    problem = problems.rebuilt(problems.make(kind, n=9, region={"C": 0.5}), rescaling=rescaling)
    first, values = passes(problem, 1, group=4)
    other, again = passes(problem, 3, group=4)
    assert again == values
    np.testing.assert_array_equal(first.g, other.g)


@pytest.mark.parametrize("kind", ["chain", "matching", "cut", "tree"])
def test_groups_reach_the_optimum_of_single_visits(kind: str) -> None:
    problem = problems.make(kind, n=40, seed=1, region={"C": 0.3})
    single = solve(problem, mm.BlockFrankWolfe(), stop=Stop(tol=1e-5), random_state=0)
    for sampling in ("uniform", "gap"):
        solver = mm.BlockFrankWolfe(sampling=sampling, group=10)
        grouped = [solve(problem, solver, stop=Stop(tol=1e-5), random_state=0, n_jobs=jobs) for jobs in (1, 2, 4)]
        for one in grouped:
            np.testing.assert_array_equal(one.weights, grouped[0].weights)
        assert grouped[0].certificate.relative_gap <= 1e-5
        assert grouped[0].certificate.primal == pytest.approx(single.certificate.primal, rel=2e-5)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_group_with_an_example_that_fails_does_not_move(threads: int) -> None:
    problem = problems.make("chain", n=8, region={"C": 0.5})
    blocks = blocks_of(problem, 4)
    blocks.pass_over(np.arange(8), False, 1)
    before, g = dual(problem, blocks), np.array(blocks.g)
    problem.features.features[0].rows.dense[-1, 0] = np.nan  # type: ignore[attr-defined]
    with pytest.raises(ArithmeticError, match="NaN"):
        blocks.pass_over(np.array([7, 0, 1, 2]), False, threads)
    np.testing.assert_array_equal(blocks.g, g)
    assert dual(problem, blocks) == before


# --- shards ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_share_of_a_pass(share: float) -> None:
    """The sums of what is kept of a pass lie between those before and after it."""
    problem = problems.make("chain", n=12, region={"C": 0.5})
    blocks = blocks_of(problem, 1, most=3)
    for _ in range(3):
        blocks.pass_over(np.arange(12), False, 1)
    blocks.refresh()
    g, loss = np.array(blocks.g), blocks.loss
    blocks.begin(g, loss, 1.0)
    for kept in (False, True):
        blocks.pass_over(np.arange(12), kept, 1)
    after, after_loss = np.array(blocks.g), blocks.loss
    blocks.end(share)
    blocks.refresh()
    np.testing.assert_allclose(blocks.g, g + share * (after - g), atol=1e-12)
    assert blocks.loss == pytest.approx(loss + share * (after_loss - loss), abs=1e-12)


@pytest.mark.parametrize("threads", [1, 4])
def test_a_pass_that_was_packed_ends_with_the_same_bits(threads: int) -> None:
    problem = problems.make("chain", n=12, region={"C": 0.5})
    blocks, again = blocks_of(problem, 4, most=3), blocks_of(problem, 4, most=3)
    for _ in range(2):
        blocks.pass_over(np.arange(12), False, threads)
    g, loss = np.array(blocks.g), blocks.loss
    blocks.begin(g, loss, 2.0)
    blocks.pass_over(np.arange(12), False, threads)
    again.unpack(*blocks.packed())
    again.examples.remember(np.array(blocks.examples.memory()))
    for one in (blocks, again):
        one.end(0.3)
        one.begin(g, loss, 2.0)
        one.pass_over(np.arange(12), False, threads)
    np.testing.assert_array_equal(blocks.g, again.g)
    for one, two in zip(blocks.packed(), again.packed(), strict=True):
        np.testing.assert_array_equal(one, two)


def test_two_shards_make_the_changes_of_each_alone() -> None:
    problem = problems.make("chain", n=12, region={"C": 0.5})
    halves = [problem.select(np.arange(6)), problem.select(np.arange(6, 12))]
    shards = [blocks_of(half, 1) for half in halves]
    g, loss, values = np.zeros(problem.n_weights), 0.0, [0.0]
    for _ in range(20):
        found = []
        for blocks in shards:
            blocks.begin(g, loss, 2.0)
            blocks.pass_over(np.arange(6), False, 1)
            found.append(((np.array(blocks.g) - g) / 2.0, blocks.loss - loss))
            blocks.end(1.0)
        g = g + found[0][0] + found[1][0]  # with a spread of 2 the whole of both never decreases the dual
        loss += found[0][1] + found[1][1]
        values.append(problem.region.dual(g, loss))
        for blocks, half in zip(shards, halves, strict=True):
            assert blocks.atoms >= half.structure.n_examples
    assert (np.diff(values) >= -1e-12).all()
    for blocks in shards:
        blocks.refresh()
    np.testing.assert_allclose(np.array(shards[0].g) + np.array(shards[1].g), g, atol=1e-9)
    best = solve(problem, mm.BlockFrankWolfe(), stop=Stop(tol=1e-6), random_state=0)
    assert values[-1] == pytest.approx(best.certificate.dual, rel=0.05)
