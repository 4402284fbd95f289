"""Warm starts from active sets: outputs and their dual variables."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import problems
import pytest
from data import chains, matchings, trees

import maxmargin as mm
from maxmargin.features.tied import ChainFeatures
from maxmargin.losses import Hamming
from maxmargin.optimization.run import Run
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.solvers import ActiveSet, Solution, Start, Status, Stop, solve
from maxmargin.structures.chains.chain import Chain
from maxmargin.structures.matchings.matching import Matching

BLOCK = mm.BlockFrankWolfe()
WHOLE = tuple(kind for kind in problems.STRUCTURES if kind not in problems.RELAXED)


def run(problem: Problem, start: Start | None = None, tol: float = 1e-4, **settings: Any) -> Solution:
    stop = Stop(tol=tol, **settings)
    return solve(problem, BLOCK, stop=stop, start=start, random_state=0)


def true(problem: Problem, solution: Solution) -> None:
    """A certificate that holds, against the referee's."""
    exact = solve(problem, mm.Exact(), stop=Stop(tol=1e-6)).certificate
    room = 1e-6 * (1.0 + abs(exact.primal))
    assert solution.status is Status.CONVERGED
    assert max(record.certificate.dual for record in solution.history) <= exact.primal + room
    assert solution.certificate.primal >= exact.dual - room


def outputs(active_set: ActiveSet, structure: Any) -> np.ndarray:
    """Every output as a row of a dense matrix, for batches whose examples have equally many parts."""
    rows = np.zeros((len(active_set.alpha), int(structure.sizes.max())))
    rows[np.repeat(np.arange(len(rows)), np.diff(active_set.part_starts)), active_set.part] = active_set.value
    return rows


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("kind", problems.STRUCTURES)
def test_the_active_set_is_the_dual_point(kind: str, rescaling: str) -> None:
    """A run of no step that starts from it has the same bound, and the weights of an example sum to 1."""
    problem = replace(problems.make(kind, n=5), rescaling=rescaling)
    if mm.problem.hinges.unsupported(problem):
        return
    first = run(problem, tol=1e-3)
    active_set = first.active_set
    assert active_set is not None
    np.testing.assert_allclose(np.add.reduceat(active_set.alpha, active_set.starts[:-1]), 1.0, atol=1e-12)
    feasible = active_set.feasible(problem.structure)
    assert feasible is not None
    if kind in WHOLE and not problem.relaxed:
        assert feasible is active_set
    state = BLOCK.init(runner(problem), Start(active_set=active_set))
    point = BLOCK.propose(runner(problem), state)[0]
    again = BLOCK.active_set(state)
    assert again.starts.tolist()[0] == 0
    np.testing.assert_allclose(np.add.reduceat(again.alpha, again.starts[:-1]), 1.0, atol=1e-12)
    if feasible is active_set:
        assert problem.region.dual(point.g, point.loss) >= first.certificate.dual - 2e-3 * first.certificate.primal


def runner(problem: Problem) -> Any:
    return Run.of(problem, np.random.default_rng(0))


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("kind", ["chain", "chain-edges", "cliques", "cut", "junction", "matching", "tree"])
def test_a_second_run_has_little_to_do(kind: str, rescaling: str) -> None:
    problem = replace(problems.make(kind, n=12, region={"C": 0.5}), rescaling=rescaling)
    if problem.relaxed or mm.problem.hinges.unsupported(problem):
        return
    first = run(problem)
    again = run(problem, Start(first.weights, active_set=first.active_set))
    assert again.status is Status.CONVERGED
    assert again.counters.iterations <= 2


def path_problem() -> Problem:
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 9, size=40)
    structure, features = Chain(lengths, 4), ChainFeatures(rng.normal(size=(int(lengths.sum()), 10)), lengths, 4)
    noise = np.zeros(structure.n_parts)
    noise[structure.variable_parts] = 3.0 * rng.normal(size=structure.starts[1])
    gold = structure.argmax(features.scores(rng.normal(size=features.n_weights)) + noise).z
    return Problem.build(structure, features, gold, Hamming(), L2(C=0.1))


def test_a_path_needs_fewer_passes() -> None:
    problem = path_problem()
    cold, warm, start = 0.0, 0.0, Start()
    for c in (0.1, 0.3, 1.0, 3.0):
        here = replace(problem, region=L2(C=c))
        cold += run(here, tol=1e-2).counters.argmax
        solution = run(here, start, tol=1e-2)
        warm += solution.counters.argmax
        start = Start(solution.weights, active_set=solution.active_set)
    assert warm < 0.9 * cold


def test_regularization_paths_profit() -> None:
    X, y = chains(20)
    Cs = (0.01, 0.03, 0.1, 0.3)
    path = mm.regularization_path(mm.ChainSVM(solver=BLOCK, random_state=0, tol=1e-3), X, y, Cs=Cs, iterations=0)
    alone = [mm.ChainSVM(C=c, solver=BLOCK, random_state=0, tol=1e-3).fit(X, y).solution_ for c in Cs]
    assert sum(point.iteration for point in path.exact) < sum(one.counters.iterations for one in alone)


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("kind", ["chain", "chain-edges", "matching", "tree"])
def test_certificates_hold_on_other_gold_outputs_and_features(kind: str, rescaling: str) -> None:
    first = problems.make(kind, seed=2, n=5)
    active_set = run(first).active_set
    assert active_set is not None
    structure = first.structure
    rng = np.random.default_rng(5)
    gold = structure.argmax(rng.normal(size=structure.n_parts)).z
    loss = Hamming() if structure.categorical else Hamming(2.0, 1.0)
    weights = rng.random(5)
    weights[1] = 0.0
    other = Problem.build(structure, first.features, gold, loss, first.region, example_weight=weights)
    other = replace(other, rescaling=rescaling)
    changed = replace(problems.make(kind, seed=2, n=5), region=L2(C=3.0, radius=1.0), rescaling=rescaling)
    for values in _feature_arrays(changed):
        values[:] = rng.normal(size=values.shape)
    for problem in (other, changed):
        if mm.Exact().unsupported(problem) is None:
            true(problem, run(problem, Start(active_set=active_set)))


def _feature_arrays(problem: Problem) -> list[np.ndarray]:
    members = getattr(problem.features, "features", [problem.features])
    return [member.rows.dense for member in members if member.rows.dense is not None]


@pytest.mark.parametrize("signs", [False, True])
def test_signs_and_balls_take_active_sets(signs: bool) -> None:
    active_set = run(problems.make("chain", n=6)).active_set
    for region in ({"C": 0.1}, {"C": 2.0, "radius": 0.5}):
        problem = problems.make("chain", n=6, region=region, signs=signs)
        true(problem, run(problem, Start(active_set=active_set)))


def test_other_numbers_of_examples_are_ignored() -> None:
    active_set = run(problems.make("chain", n=6)).active_set
    assert active_set is not None
    problem = problems.make("chain", n=5)
    assert active_set.feasible(problem.structure) is None
    cold, warm = run(problem), run(problem, Start(active_set=active_set))
    np.testing.assert_array_equal(cold.weights, warm.weights)
    assert cold.counters == warm.counters


def test_outputs_of_other_structures_are_left_out() -> None:
    """Chains of other lengths, matchings where an edge of an output is gone from the capacity."""
    lengths = np.array([3, 4, 2, 5])
    features = ChainFeatures(np.random.default_rng(0).normal(size=(14, 3)), lengths, 3)
    structure = Chain(lengths, 3)
    gold = structure.encode([np.arange(length) % 3 for length in lengths])
    active_set = run(Problem.build(structure, features, gold, Hamming(), L2(C=1.0))).active_set
    assert active_set is not None
    turned = Chain(lengths[::-1].copy(), 3)
    feasible = active_set.feasible(turned)
    assert feasible is not None
    assert len(feasible.alpha) < len(active_set.alpha)
    gold = turned.encode([np.arange(length) % 3 for length in lengths[::-1]])
    features = ChainFeatures(np.random.default_rng(1).normal(size=(14, 3)), lengths[::-1].copy(), 3)
    problem = Problem.build(turned, features, gold, Hamming(), L2(C=1.0))
    true(problem, run(problem, Start(active_set=active_set)))


def test_infeasible_outputs_are_found_one_by_one() -> None:
    structure = Matching.dense(np.array([[2, 2], [2, 2], [2, 2]]))
    eye, crossed, both, half = [1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5]
    rows = np.array([eye, crossed, both, eye, half, crossed])
    at = np.nonzero(rows)
    counts = np.bincount(at[0], minlength=len(rows))
    active_set = ActiveSet(
        np.array([0, 3, 5, 6]),
        np.array([0.5, 0.25, 0.25, 0.5, 0.5, 1.0]),
        np.concatenate([[0], np.cumsum(counts)]),
        at[1].astype(np.int32),
        rows[at],
    )
    feasible = active_set.feasible(structure)
    assert feasible is not None
    assert feasible.starts.tolist() == [0, 2, 3, 4]
    np.testing.assert_array_equal(outputs(feasible, structure), [eye, crossed, eye, crossed])
    np.testing.assert_array_equal(feasible.alpha, [0.5, 0.25, 0.5, 1.0])
    bad = (
        replace(active_set, part=active_set.part + np.int32(3)),
        replace(active_set, part=-active_set.part - np.int32(1)),
        replace(active_set, part=active_set.part[::-1].copy()),
        replace(active_set, alpha=np.full(6, np.nan)),
        replace(active_set, value=np.full(len(active_set.part), np.inf)),
    )
    problem = problems.make("matching", n=3)
    wrong = replace(problem, structure=structure)
    assert wrong.structure.n_examples == 3
    for one in bad:
        fitting = one.feasible(structure)
        assert fitting is not None
        assert len(fitting.alpha) < 6
        true(problem, run(problem, Start(active_set=one)))
    with pytest.raises(ValueError, match="must end at"):
        replace(active_set, alpha=np.ones(2))


def test_weights_too_large_or_twice_are_normalized() -> None:
    problem = problems.make("chain", n=5)
    active_set = run(problem).active_set
    assert active_set is not None
    for factor in (0.3, 7.0):
        true(problem, run(problem, Start(active_set=replace(active_set, alpha=factor * active_set.alpha))))


@pytest.mark.parametrize("make", [chains, matchings, trees])
def test_estimators_resume_from_their_active_sets(make: Any) -> None:
    kinds = {chains: mm.ChainSVM, matchings: mm.MatchingSVM, trees: mm.TreeSVM}
    X, y = make(12)
    model = kinds[make](C=0.3, solver=BLOCK, warm_start=True, random_state=0).fit(X, y)
    assert model.solution_.active_set is not None
    again = model.fit(X, y).solution_
    assert again.counters.iterations <= 2
    weighted = np.linspace(0.5, 2.0, len(X))
    model.set_params(C=1.0).fit(X, y, sample_weight=weighted)
    problem = model._examples(X, y, weighted, None).problem(model._settings(), C=1.0)
    true(problem, model.solution_)


def test_fewer_examples_after_a_fit_with_more() -> None:
    X, y = chains(8)
    model = mm.ChainSVM(C=1.0, solver=BLOCK, warm_start=True, random_state=0).fit(X, y)
    model.fit(X[:5], y[:5])
    assert model.solution_.status is Status.CONVERGED


def test_fitted_estimators_are_pickled_with_small_active_sets(tmp_path: Any) -> None:
    X, y = chains(40)
    model = mm.ChainSVM(C=1.0, solver=BLOCK, warm_start=True, random_state=0, tol=1e-4).fit(X, y)
    bytes_of = pickle.dumps(model)
    without = pickle.dumps(replace(model.solution_, active_set=None))
    active_set = model.solution_.active_set
    assert active_set is not None
    assert active_set.value.dtype == np.uint8
    # Fewer bytes than the labels' node scores would take, which the packed point of other solvers does.
    assert len(bytes_of) - len(without) < 8 * sum(3 * len(labels) + 9 for labels in y) + 4000
    loaded = pickle.loads(bytes_of)
    assert loaded.predict(X) == model.predict(X)
    assert loaded.fit(X, y).solution_.counters.iterations <= 2
    model.save(tmp_path / "warm.mm")
    size = (tmp_path / "warm.mm").stat().st_size
    mm.ChainSVM(C=1.0, solver=mm.Extragradient()).fit(X, y).save(tmp_path / "other.mm")
    assert abs(size - (tmp_path / "other.mm").stat().st_size) < 200


def test_threads_do_not_change_a_warm_start() -> None:
    problem = problems.make("tree", n=6)
    active_set = run(problem, tol=1e-2).active_set
    one, two = (
        solve(problem, BLOCK, stop=Stop(tol=1e-5), start=Start(active_set=active_set), random_state=1, n_jobs=n)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.weights, two.weights)
    assert one.counters == two.counters


def test_structures_without_examples() -> None:
    problem = problems.make("chain", n=3).select([])
    solution = run(problem)
    assert solution.active_set is not None
    assert len(solution.active_set.alpha) == 0
    assert run(problem, Start(active_set=solution.active_set)).status is Status.CONVERGED


def test_a_spent_start_is_dropped_and_gives_the_same_run() -> None:
    problem = problems.make("chain", seed=3)
    found = run(problem, tol=0.3).active_set
    kept, spent = Start(active_set=found), Start(active_set=found, spent=True)
    first, second = run(problem, kept), run(problem, spent)
    assert kept.active_set is found
    assert spent.active_set is None
    np.testing.assert_array_equal(first.weights, second.weights)
