"""What the dual extragradient method keeps between iterations: without duals nothing that grows with the examples,
without weights nothing that grows with the weights, and the same iterates."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from problems import ENTROPIC, STRUCTURES, make, run

import maxmargin as mm
from maxmargin.features import ChainFeatures, PartFeatures
from maxmargin.losses import Hamming
from maxmargin.optimization.certificate import certify
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import Problem
from maxmargin.regions import L1, L2
from maxmargin.solvers.first_order.players import WeightsPlayer
from maxmargin.structures import Candidates, Chain, Cut, Matching, Structure
from maxmargin.structures.base import warm_bytes

UNSIGNED = [kind for kind in STRUCTURES if kind not in ("associative", "cut", "clique-cut", "clique-network")]


def kept(value: Any, seen: set[int] | None = None) -> int:
    """Bytes of all arrays that a value holds, each counted once, but for the problem."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, (Problem, Structure, WeightsPlayer)):
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return value.nbytes
    members = value if isinstance(value, (tuple, list)) else vars(value).values() if hasattr(value, "__dict__") else ()
    return sum(kept(member, seen) for member in members)


def steps(problem: Problem, solver: mm.DualExtragradient, n: int, weights: Any = None):
    """States and proposals of a run that certifies each of its steps, as the loop does, until it is solved."""
    runner = Run.of(problem, np.random.default_rng(0), solver.shard_size)
    runner.warm_starts = solver.keeps_warm_starts
    state = solver.init(runner, Start(weights))
    for _ in range(n):
        state = solver.step(runner, state)
        proposals = solver.propose(runner, state)
        yield state, proposals, runner
        certificates = [certify(problem, one, runner.hinge(one.weights)) for one in proposals]
        if min(certificate.gap for certificate in certificates) <= 1e-10:
            return  # what follows depends on rounding
        state = solver.observe(runner, state, certificates)


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("geometry", [mm.Euclidean(), mm.Entropic()])
def test_the_state_does_not_grow_with_the_examples(kind, geometry):
    if isinstance(geometry, mm.Entropic) and kind not in ENTROPIC:
        return
    sizes = []
    for n in (10, 100):
        problem = make(kind, n=n)
        solver = mm.DualExtragradient(store_duals=False, warm_starts=False, geometry=geometry, shard_parts=200)
        found = list(steps(problem, solver, 4))
        for _, _, runner in found:
            assert runner.session.memories() == [None] * runner.session.n_pieces
        state = found[-1][0]
        sizes.append((kept(state), kept(list(solver.state_dict(state).values()))))
    assert sizes[0] == sizes[1]
    assert max(sizes[0]) < 8 * 40 * problem.n_weights


@pytest.mark.parametrize("kind", STRUCTURES)
def test_warm_starts_are_kept_where_they_are_small(kind):
    problem = make(kind, n=12, seed=3)
    bound = 8 * problem.structure.n_parts
    common = {"store_duals": False, "geometry": mm.Euclidean(), "inexact": 0.0}
    runs = [
        steps(problem, mm.DualExtragradient(warm_starts=keep, **common), 6, np.full(problem.n_weights, 0.01))
        for keep in (True, False, "auto")
    ]
    for always, never, auto in zip(*runs, strict=True):
        sizes = [warm_bytes(*(found[2].memories()[0] or ())) for found in (always, never, auto)]
        assert sizes[1] == 0
        assert sizes[2] in ((0,) if "chain" in kind or kind == "second-order" else (0, sizes[0]))
        assert sizes[2] <= bound
        for other in (never, auto):
            np.testing.assert_allclose(other[0].average.weights, always[0].average.weights, atol=1e-7)
    stored = mm.DualExtragradient(geometry=mm.Euclidean())
    assert stored.keeps_warm_starts is True
    assert mm.DualExtragradient(warm_starts=False).keeps_warm_starts is False


def test_the_choice_by_memory():
    """20 by 20 nodes have 80 multipliers for 400 links; a grid's flows and a chain's vertices outweigh a packed z."""
    rng = np.random.default_rng(0)
    edges = [[j, j + 1] for j in range(29)] + [[j, j + 5] for j in range(25)]
    dense, grid = Matching.dense([[20, 20]] * 3), Cut([30], np.array(edges), [0, len(edges)])
    problems = [
        (dense, PartFeatures(rng.normal(size=(1200, 3)), dense.blocks[0].offsets), True),
        (grid, PartFeatures(-rng.random(size=(84, 3)), [0, 84]), False),
        (Chain([15, 15], 4), ChainFeatures(rng.normal(size=(30, 3)), [15, 15], 4), False),
    ]
    for structure, features, small in problems:
        gold = structure.argmax(-rng.random(structure.n_parts)).z
        signs = np.ones(features.n_weights, dtype=bool)
        problem = Problem.build(structure, features, gold, Hamming(), L2(1.0, nonnegative=signs))
        for store, keeps in ((False, small), (True, True)):
            solver = mm.DualExtragradient(store_duals=store, geometry=mm.Euclidean(), inexact=0.0)
            *_, (_, _, runner) = steps(problem, solver, 5)
            memory = runner.memories()[0]
            warm = memory["warm"] if store else memory or ()
            assert (warm_bytes(*warm) > 0) is keeps


def test_a_warm_start_of_unknown_size_is_dropped():
    class Opaque:
        pass

    assert warm_bytes(None, np.zeros(3)) == 24
    assert warm_bytes(Opaque()) == np.inf
    problem = make("candidates")
    runner = Run.of(problem, np.random.default_rng(0))
    given = Opaque()
    assert runner.kept(problem, given) == (given,)
    runner.warm_starts = "auto"
    assert runner.kept(problem, given, None) == (None, None)
    assert runner.kept(problem, None) == (None,)


REGIONS = ({"C": 0.5}, {"radius": 0.7}, {"C": 1.0, "radius": 0.5}, {"C": np.inf})
SETTINGS = (
    {},
    {"geometry": mm.Euclidean(), "inexact": 0.0},
    {"geometry": mm.Euclidean(), "balance": 1.0, "restart": False},
)


@pytest.mark.parametrize("kind", UNSIGNED)
def test_sums_of_features_give_the_same_iterates(kind):
    """Every other pair of a region and settings, so that each pair meets half of the structures."""
    for number, (region, settings) in enumerate(product(REGIONS, SETTINGS)):
        if (number + UNSIGNED.index(kind)) % 2:
            continue
        problem = make(kind, region=region)
        for start in (None, np.random.default_rng(1).normal(scale=0.1, size=problem.n_weights)):
            stored, implied = (
                steps(problem, mm.DualExtragradient(store_weights=store, **settings), 25, start)
                for store in (True, False)
            )
            for (_, wanted, _), (_, found, _) in zip(stored, implied, strict=True):
                for one, other in zip(wanted, found, strict=True):
                    size = 1.0 + np.abs(one.weights).max()
                    np.testing.assert_allclose(other.weights, one.weights, rtol=0, atol=1e-10 * size)
                    np.testing.assert_allclose(other.g, one.g, rtol=0, atol=1e-9)  # 2e-10 with some BLAS
                    assert other.loss == pytest.approx(one.loss, rel=0, abs=1e-10)


def with_weights(d: int, **region: float) -> Problem:
    """Lists of candidates with ``d`` features, few of them used."""
    rng = np.random.default_rng(0)
    structure = Candidates([4, 5, 3])
    rows = np.zeros((12, d))
    rows[:, :6] = rng.normal(size=(12, 6))
    gold = structure.argmax(rng.random(12)).z
    return Problem.build(structure, PartFeatures(rows, [0, 4, 9, 12]), gold, Hamming(), L2(**region))


@pytest.mark.parametrize("geometry", [mm.Euclidean(), mm.Entropic()])
def test_the_state_does_not_grow_with_the_weights(geometry):
    sizes, found = [], []
    for d in (60, 6000):
        *_, (state, proposals, _) = steps(with_weights(d, radius=2.0), mm.DualExtragradient(geometry=geometry), 6)
        sizes.append(kept(state))
        found.append(proposals[0].weights[:6])
    assert sizes[0] == sizes[1] < 8 * 80 * 12
    np.testing.assert_allclose(*found, atol=1e-2)  # the step's bound is an estimate that depends on d
    *_, (state, _, _) = steps(with_weights(6000, radius=2.0), mm.DualExtragradient(store_weights=True), 6)
    assert kept(state) > 8 * 6000 * 5


def test_weights_that_outnumber_the_parts_are_not_stored():
    auto = mm.DualExtragradient()
    assert not auto.implies_weights(with_weights(47, C=1.0))
    assert auto.implies_weights(with_weights(48, C=1.0))
    assert not mm.DualExtragradient(store_weights=True).implies_weights(with_weights(48, C=1.0))
    assert not mm.DualExtragradient(store_duals=False).implies_weights(with_weights(48, C=1.0))
    signed = with_weights(48, C=1.0)
    signed = Problem.build(
        signed.structure, signed.features, signed.gold, Hamming(), L2(1.0, nonnegative=np.arange(48) == 3)
    )
    assert not auto.implies_weights(signed)
    runs = [
        run(with_weights(200, C=1.0), mm.DualExtragradient(store_weights=store), tol=1e-6) for store in (True, False)
    ]
    assert runs[0].certificate.primal == pytest.approx(runs[1].certificate.primal, rel=1e-5)
    for region in (L2(1.0, nonnegative=np.arange(48) == 3), L1(1.0)):
        problem = Problem.build(signed.structure, signed.features, signed.gold, Hamming(), region)
        with pytest.raises(ValueError, match=r'depends on the norm alone.*store_weights="auto"'):
            run(problem, mm.DualExtragradient(store_weights=False), tol=1e-2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"warm_starts": "yes"}, "warm_starts must be True, False or \"auto\", got 'yes'"),
        ({"warm_starts": None}, "warm_starts must be"),
        ({"store_weights": 1}, "store_weights must be True, False"),
        ({"store_weights": False, "store_duals": False}, "store_weights=False needs store_duals=True"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        mm.DualExtragradient(**settings)
