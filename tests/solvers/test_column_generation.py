"""Column generation for L1 norms, judged by Exact, by whole linear programs over listed outputs, and by itself."""

from __future__ import annotations

import itertools
import time
import tracemalloc
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import problems
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import training
from problems import RELAXED, STRUCTURES, make
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.features.parts import PartFeatures
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import CandidateSets, Problem
from maxmargin.problem import hinges as problem_hinges
from maxmargin.regions import L1, L2
from maxmargin.solvers import Status, Stop, choose, solve
from maxmargin.solvers.column_generation.highs_master import HighsMaster
from maxmargin.solvers.column_generation.linear_masters import Answer, Box, MasterProblem, OutputRows
from maxmargin.solvers.column_generation.newton_master import NewtonMaster
from maxmargin.solvers.column_generation.proximal_master import ProximalMaster
from maxmargin.structures.candidates import Candidates

run = partial(problems.run, tol=1e-7, max_iter=200)


def within(problem: Problem, *, C: float = np.inf, radius: float = np.inf) -> Problem:
    return replace(problem, region=L1(radius, problem.region.nonnegative, C))


def whole_program(n: int, region: L1, rows: list[tuple[int, Any, float]], n_examples: int) -> float:
    """``min 1/C ||w||_1 + sum xi`` under all rows ``(example, a, b)``: xi >= a'w + b."""
    matrix = np.array([np.concatenate([a, -a, -np.eye(n_examples)[i]]) for i, a, _ in rows])
    rhs = np.array([-b for _, _, b in rows])
    if np.isfinite(region.radius):
        matrix = np.vstack([matrix, np.concatenate([np.ones(2 * n), np.zeros(n_examples)])])
        rhs = np.append(rhs, region.radius)
    cost = np.concatenate([np.full(2 * n, region.price), np.ones(n_examples)])
    upper = np.full(2 * n + n_examples, np.inf)
    if region.nonnegative is not None:
        upper[n : 2 * n][region.nonnegative] = 0.0
    answer = linprog(cost, A_ub=matrix, b_ub=rhs, bounds=np.stack([np.zeros(len(upper)), upper], axis=1))
    assert answer.status == 0
    return float(answer.fun)


def by_listing(problem: Problem) -> float:
    """The optimum from the program of all outputs."""
    assert isinstance(problem.region, L1)
    rows = [(i, problem.scale[i] * a, problem.scale[i] * b) for i, a, b in training.rows(problem)]
    return whole_program(problem.n_weights, problem.region, rows, problem.structure.n_examples)


@pytest.mark.parametrize("kind", [kind for kind in STRUCTURES if kind not in (*RELAXED, "cliques", "junction")])
def test_a_margin_of_one_to_every_wrong_output(kind: str) -> None:
    problem = replace(within(make(kind, n=4), C=3.0), rescaling="none")
    optimum = by_listing(problem)
    for master in ("highs", "newton", "proximal"):
        for k_best in (1, 2, 3):
            found = run(problem, mm.ColumnGeneration(master=master, k_best=k_best))
            assert found.status is Status.CONVERGED
            assert found.certificate.primal == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("kind", ["candidates", "chain", "matching"])
def test_margin_with_several_rows_a_round(kind: str) -> None:
    problem = within(make(kind, n=5), C=3.0)
    problem = replace(problem, region=replace(problem.region, nonnegative=None))
    optimum = by_listing(problem)
    assert run(problem, mm.Exact()).certificate.primal == pytest.approx(optimum, rel=1e-6)
    for k_best in (1, 2, 3):
        assert run(problem, mm.ColumnGeneration(k_best=k_best)).certificate.primal == pytest.approx(optimum, rel=1e-6)


def test_slack_rescaled_lists() -> None:
    problem = replace(within(make("candidates", n=8), C=3.0), rescaling="slack")
    optimum = by_listing(problem)
    for master in ("highs", "newton", "proximal"):
        found = run(problem, mm.ColumnGeneration(master=master))
        assert found.certificate.primal == pytest.approx(optimum, rel=1e-6)


def test_example_weights() -> None:
    problem = within(make("chain", n=5), C=2.0)
    weights = np.array([1.0, 0.0, 2.5, 0.3, 1.0])
    weighted = replace(problem, example_weight=weights)
    costs = problem.leading_costs * problem.structure.to_parts(weights)[: len(problem.leading_costs)]
    weighted = replace(weighted, leading_costs=costs, constant=-float(costs @ problem.gold[: len(costs)]))
    optimum = run(weighted, mm.Exact()).certificate.primal
    for k_best in (1, 2):
        found = run(weighted, mm.ColumnGeneration(k_best=k_best))
        assert found.certificate.primal == pytest.approx(optimum, rel=1e-6)
        assert found.certificate.primal == pytest.approx(by_listing(weighted), rel=1e-6)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000), kind=st.sampled_from(["candidates", "chain", "cut", "matching"]), signs=st.booleans()
)
def test_the_masters_agree(seed: int, kind: str, signs: bool) -> None:
    problem = within(make(kind, seed=seed, n=8, signs=signs), C=10.0 ** (seed % 4 - 1))
    one, *others = (
        run(problem, mm.ColumnGeneration(master=master), tol=1e-8).certificate
        for master in ("highs", "newton", "proximal")
    )
    for other in others:
        assert abs(one.primal - other.primal) <= 1e-6 * one.primal
        assert max(one.dual, other.dual) <= min(one.primal, other.primal) * (1 + 1e-9)


def some_rows(seed: int, n_rows: int = 30, n: int = 12, n_examples: int = 6) -> OutputRows:
    rng = np.random.default_rng(seed)
    matrix = sp.csr_array(sp.random_array((n_rows, n), density=0.4, rng=rng, data_sampler=rng.standard_normal))
    return OutputRows.of(matrix, rng.random(n_rows) + 0.5, rng.integers(0, n_examples, size=n_rows))


def test_newton_masters_close_the_gap_without_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rows are many and weights few: the multipliers keep to their bounds closely, by Newton steps alone."""
    monkeypatch.setattr(HighsMaster, "solve", None)
    rng = np.random.default_rng(0)
    X, hidden = rng.normal(size=(400, 4, 6)), rng.normal(size=6)
    y = (X @ hidden + rng.normal(size=(400, 4))).argmax(axis=1)
    for C in (0.01, 1.0, 100.0):
        solver = mm.ColumnGeneration(master="newton", max_iter=40)
        model = mm.CandidatesSVM(norm="l1", C=C, rescaling="none", tol=1e-4, solver=solver).fit(list(X), y.tolist())
        assert model.solution_.status is Status.CONVERGED


@pytest.mark.parametrize("seed", range(8))
def test_masters_one_by_one(seed: int) -> None:
    rows = some_rows(seed)
    n = rows.matrix.shape[1]
    region = L1(C=0.8, nonnegative=np.arange(n) % 3 == 0)
    bounds = Box(np.zeros(n), np.inf)
    nothing = OutputRows.none(n)
    none, start = np.zeros(0, dtype=bool), Answer(np.zeros(n), np.zeros(0))
    exact = HighsMaster(region, 6).solve(MasterProblem(nothing, none, rows, start, bounds, 0.0))
    accuracy = 1e-3
    near = ProximalMaster(region, 6, np.random.default_rng(0)).solve(
        MasterProblem(nothing, none, rows, start, bounds, accuracy)
    )

    def value(answer: Answer) -> float:
        return region.penalty(answer.weights) + float(rows.slacks(answer.weights, 6).sum())

    assert value(exact) <= value(near) * (1 + 1e-9)
    assert value(near) <= value(exact) * (1 + 1.1 * accuracy)
    assert (np.bincount(rows.owner, near.multipliers, minlength=6) <= 1 + 1e-12).all()
    assert (near.multipliers >= 0).all()
    g, loss = rows.aggregate(exact.multipliers)
    assert region.dual(g, loss) == pytest.approx(value(exact), rel=1e-7)
    g, loss = rows.aggregate(near.multipliers)
    assert region.dual(g, loss) == pytest.approx(value(exact), rel=2 * accuracy)


def test_a_master_that_lost_step_is_built_again() -> None:
    rows, more = some_rows(1), some_rows(2)
    n = rows.matrix.shape[1]
    region, free = L1(C=0.8), Box(np.zeros(n), np.inf)
    none, start = np.zeros(0, dtype=bool), Answer(np.zeros(n), np.zeros(0))
    master = HighsMaster(region, 6)
    first = master.solve(MasterProblem(OutputRows.none(n), none, rows, start, free, 0.0))
    kept = first.multipliers > 0.0
    now = rows.take(kept).joined(more)
    warm = master.solve(MasterProblem(rows, kept, now, first, free, 0.0))
    cold = HighsMaster(region, 6).solve(MasterProblem(rows, kept, now, first, free, 0.0))
    assert now.loss @ warm.multipliers == pytest.approx(now.loss @ cold.multipliers)


def test_a_start_that_violates_no_margin() -> None:
    problem = within(make("candidates", n=4), C=50.0)
    found = run(replace(problem, rescaling="none"), mm.ColumnGeneration())
    start = Start(3.0 * found.weights)
    assert replace(problem, rescaling="none").hinge(3.0 * found.weights) == 0.0
    for solver in [mm.ColumnGeneration(master=master) for master in ("highs", "newton", "proximal")]:
        again = solve(replace(problem, rescaling="none"), solver, stop=Stop(tol=1e-6), start=start)
        assert again.status is Status.CONVERGED
        assert again.certificate.primal == pytest.approx(found.certificate.primal, rel=1e-5)


# --- several good outputs -------------------------------------------------------------------------------------------


def lists_with_good_sets(seed: int, formulation: str, metric: Any = None) -> Problem:
    rng = np.random.default_rng(seed)
    structure = Candidates(rng.integers(1, 7, size=8))
    features = PartFeatures(rng.normal(size=(structure.n_parts, 4)), structure.blocks[0].offsets)
    mask = rng.random(structure.n_parts) < 0.4
    mask[structure.blocks[0].offsets[:-1]] = True
    gold = structure.encode([0] * structure.n_examples)
    good = CandidateSets.build(structure, features, mask, formulation, metric)
    weights = rng.random(structure.n_examples) + 0.5
    return Problem.build(
        structure,
        features,
        gold,
        mm.losses.Hamming(),
        L1(C=2.0),
        example_weight=weights,
        rescaling="none",
        good=good,
    )


def pairs_program(problem: Problem, formulation: str, metric: Any = None) -> float:
    """The optimum from the program of all pairs, by loops."""
    rows, F = [], problem.features.to_sparse().toarray()
    assert isinstance(problem.region, L1)
    assert problem.good is not None
    distance = metric or (lambda g, b: float(np.linalg.norm(g - b)))
    for i, (first, last) in enumerate(itertools.pairwise(problem.structure.blocks[0].offsets.tolist())):
        good = [p for p in range(first, last) if problem.good.mask[p]]
        for bad in set(range(first, last)) - set(good):
            chosen = good if formulation == "all" else [min(good, key=lambda g: distance(F[g], F[bad]))]
            rows += [(i, problem.scale[i] * (F[bad] - F[g]), problem.scale[i]) for g in chosen]
    return whole_program(problem.n_weights, problem.region, rows, problem.structure.n_examples)


def first_only(good: Any, bad: Any) -> float:
    return float(abs(good[0] - bad[0]))


PUBLISHED = mm.ColumnGeneration.plain(master="highs")
MASTERS = [*(mm.ColumnGeneration(master=master) for master in ("highs", "newton", "proximal")), PUBLISHED]


@pytest.mark.parametrize("solver", MASTERS, ids=["highs", "newton", "proximal", "published"])
@pytest.mark.parametrize(("formulation", "metric"), [("all", None), ("nearest", None), ("nearest", first_only)])
def test_several_good_outputs(formulation: str, metric: Any, solver: Any) -> None:
    for seed in range(4):
        problem = lists_with_good_sets(seed, formulation, metric)
        found = run(problem, solver)
        assert found.status is Status.CONVERGED
        assert found.certificate.primal == pytest.approx(pairs_program(problem, formulation, metric), rel=1e-6)


def test_one_good_output_is_the_gold_formulation() -> None:
    base = make("candidates", n=8)
    plain = replace(within(base, C=2.0), rescaling="none")
    optimum = run(plain, mm.ColumnGeneration()).certificate.primal
    for formulation in ("nearest", "all"):
        good = CandidateSets.build(base.structure, base.features, base.gold > 0.5, formulation)
        found = run(replace(plain, good=good), mm.ColumnGeneration())
        assert found.certificate.primal == pytest.approx(optimum, rel=1e-6)


def sparse_lists(rng: np.random.Generator, n: int, size: int, width: int, filled: int) -> list[Any]:
    """Lists of candidates that share a few of very many features."""
    lists = []
    for _ in range(n):
        shared = rng.choice(width, size=4 * filled, replace=False)
        columns = np.concatenate([rng.choice(shared, size=filled, replace=False) for _ in range(size)])
        entries = rng.integers(-3, 4, size=len(columns)).astype(np.float64)
        lists.append(sp.csr_array((entries, columns, np.arange(0, len(columns) + 1, filled)), shape=(size, width)))
    return lists


def l1_distance(good: Any, bad: Any) -> float:
    return float(np.abs((good - bad).data).sum())


@pytest.mark.parametrize("distance", [None, l1_distance])
def test_the_nearest_of_sparse_candidates_is_found_without_dense_rows(distance: Any) -> None:
    rng = np.random.default_rng(0)
    n, size, width, filled = 8, 30, 400_000, 12
    X = sparse_lists(rng, n, size, width, filled)
    structure, offsets = Candidates([size] * n), np.arange(n + 1) * size
    mask = rng.random(n * size) < 0.3
    mask[::size] = True
    features = PartFeatures(sp.csr_array(sp.vstack(X, format="csr")), offsets)
    tracemalloc.start()
    found = CandidateSets.build(structure, features, mask, "nearest", distance)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000  # one dense row has 3.2 million bytes
    assert found.nearest is not None
    for i, x in enumerate(X):
        own = x[:, np.unique(x.indices)].toarray()
        good = np.flatnonzero(mask[offsets[i] : offsets[i + 1]])
        order = 1 if distance else 2
        apart = np.linalg.norm(own[:, None, :] - own[None, good, :], ord=order, axis=2)
        np.testing.assert_array_equal(found.nearest[offsets[i] : offsets[i + 1]], good[np.argmin(apart, axis=1)])
    y = [np.flatnonzero(mask[a:b]) for a, b in itertools.pairwise(offsets.tolist())]
    settings = {"norm": "l1", "C": 1.0, "rescaling": "none", "formulation": "nearest", "distance": distance}
    model = mm.CandidatesSVM(**settings).fit(X, y)
    assert model.solution_.status is Status.CONVERGED


def test_shards_of_good_sets_add_up() -> None:
    for formulation in ("nearest", "all"):
        problem = lists_with_good_sets(3, formulation)
        w = np.random.default_rng(0).normal(size=4)
        parts = [problem.select([i]).hinge(w) for i in range(problem.structure.n_examples)]
        assert problem.hinge(w) == pytest.approx(sum(parts))
        assert problem.hinge(np.full(4, np.nan)) != problem.hinge(np.full(4, np.nan))
        worst = problem.most_violated(w)
        products = problem.differences(worst.z) @ w
        np.testing.assert_allclose(worst.value, worst.factor * products + worst.loss, atol=1e-12)


def test_good_sets_are_checked() -> None:
    problem = lists_with_good_sets(0, "all")
    structure, features, mask = problem.structure, problem.features, problem.good.mask  # type: ignore[union-attr]
    chain = make("chain")
    none = mask.copy()
    none[: structure.sizes[0]] = False
    for arguments, message in (
        ((chain.structure, chain.features, mask, "all"), "outputs of a chain are not listed"),
        ((structure, features, mask, "worst"), "formulation with good sets"),
        ((structure, features, mask.astype(float), "all"), "must be boolean"),
        ((structure, features, none, "all"), "example 0: no candidate is good"),
        ((structure, features, mask, "nearest", 3), "distance must be a function"),
        ((structure, features, mask, "nearest", lambda g, b: np.nan), "example 0: the distance must give"),
    ):
        with pytest.raises(ValueError, match=message):
            CandidateSets.build(*arguments)
    assert 'use rescaling="none" or "margin"' in (problem_hinges.unsupported(replace(problem, rescaling="slack")) or "")
    assert "another batch" in (problem_hinges.unsupported(replace(chain, good=problem.good)) or "")


# --- estimators -----------------------------------------------------------------------------------------------------


def ranking_data(seed: int = 0) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(int(rng.integers(2, 6)), 3)) for _ in range(20)]
    return X, [np.flatnonzero(x @ [1.0, -1.0, 0.5] >= np.sort(x @ [1.0, -1.0, 0.5])[-1]) for x in X]


def test_the_estimator(tmp_path: Any) -> None:
    X, y = ranking_data()
    several = [np.arange(len(x)) == own[0] for x, own in zip(X, y, strict=True)]
    for s in several:
        s[0] = True
    sparse = [sp.csr_array(x) for x in X]
    for settings_, labels, inputs in (
        ({}, [int(own[0]) for own in y], X),
        ({"norm": "l1", "C": 5.0}, y, sparse),
        ({"norm": "l1", "C": 5.0, "rescaling": "none"}, y, X),
        ({"norm": "l1", "rescaling": "none", "formulation": "all"}, several, X),
        ({"norm": "l1", "C": 5.0, "rescaling": "none", "formulation": "nearest", "distance": first_only}, several, X),
    ):
        model = mm.CandidatesSVM(**settings_).fit(inputs, labels)
        assert model.solution_.status is Status.CONVERGED
        assert model.score(inputs, labels) >= 0.5
        model.save(tmp_path / "model")
        again = mm.load(tmp_path / "model")
        assert again.predict(inputs) == model.predict(inputs)
        assert again.metadata["estimator"] == "CandidatesSVM"
    assert mm.CandidatesSVM(norm="l1", C=5.0).fit(X, y).score(X, y) >= 0.9


def test_the_estimator_refuses() -> None:
    X, y = ranking_data()
    fit = {"norm": "l1", "C": 1.0}
    for settings_, inputs, labels, message in (
        ({}, X, [[0, 1]] * 20, "example 0: several candidates are good"),
        ({}, X, [*y[:3], 9, *y[4:]], "example 3: candidate 9 is out of range"),
        ({}, X, [*y[:3], -1, *y[4:]], "example 3: candidate -1 is out of range"),
        ({}, X, [*y[:3], [], *y[4:]], "example 3: no candidate is good"),
        ({}, X, [*y[:3], [True] * 9, *y[4:]], "example 3: y is a mask of shape"),
        ({}, X, [*y[:3], "a", *y[4:]], "example 3: y must be the number"),
        ({}, X, [*y[:3], [[0]], *y[4:]], "example 3: y must be the number"),
        ({}, [*X[:2], np.zeros((0, 3)), *X[3:]], y, "example 2: no candidates"),
        ({}, [*X[:2], np.zeros((2, 4)), *X[3:]], y, "example 2: features have 4 columns"),
        ({"formulation": "some"}, X, y, "formulation must be one of"),
        ({"formulation": "all"}, X, y, 'or rescaling="none" for a margin of 1'),
        ({"formulation": "nearest", "distance": 1, "rescaling": "none"}, X, y, "distance must be a function"),
    ):
        with pytest.raises(ValueError, match=message):
            mm.CandidatesSVM(**fit, **settings_).fit(inputs, labels)


def test_l1_penalties_of_other_estimators() -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 3)) for _ in range(6)]
    y = [(x[:, 0] > 0).astype(int).tolist() for x in X]
    model = mm.ChainSVM(norm="l1", C=2.0).fit(X, y)
    assert isinstance(model.solution_.solver, mm.ColumnGeneration)
    assert (model.coef_ == 0).any()
    both = mm.ChainSVM(norm="l1", C=2.0, radius=0.1).fit(X, y)
    assert np.abs(both.coef_).sum() <= 0.1 * (1 + 1e-12)
    assert mm.ChainSVM(norm="l1").fit(X, y).model_.metadata["C"] == 1.0


# --- settings, budgets, interruptions -------------------------------------------------------------------------------


def test_several_rows_a_round_need_a_list_of_the_best() -> None:
    with pytest.raises(ValueError, match="use k_best=1"):
        run(lists_with_good_sets(0, "all"), mm.ColumnGeneration(k_best=2))
    slack = replace(within(make("chain"), C=1.0), rescaling="slack")
    with pytest.raises(ValueError, match="slack rescaling"):
        problem_hinges.ranked(slack, np.zeros(slack.n_weights), 2, 0)


def test_it_is_chosen_for_linear_programs() -> None:
    chain = make("chain")
    assert isinstance(choose(within(chain, C=1.0))[0], mm.ColumnGeneration)
    assert isinstance(choose(replace(within(chain, C=1.0), rescaling="none"))[0], mm.ColumnGeneration)
    assert not isinstance(choose(within(chain, radius=1.0))[0], mm.ColumnGeneration)
    assert not isinstance(choose(replace(chain, region=L2(C=1.0)))[0], mm.ColumnGeneration)


@pytest.mark.parametrize("kind", ["chain", "matching"])
def test_extragradient_takes_the_penalty_by_its_proximal_step(kind: str) -> None:
    problem = within(make(kind, signs=True), C=1.0)
    optimum = run(problem, mm.Exact()).certificate.primal
    found = run(problem, mm.Extragradient(), tol=1e-3, max_iter=2000).certificate
    assert found.dual <= optimum * (1 + 1e-8)
    assert optimum * (1 - 1e-8) <= found.primal <= optimum * 1.01


def test_an_interrupted_step_leaves_the_state_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = within(make("chain", n=12), C=5.0)
    solver = mm.ColumnGeneration(master="highs")
    begun = Run.of(problem, np.random.default_rng(0), solver.shard_size, 1e-7)
    state = solver.init(begun, Start())
    for _ in range(3):
        state = solver.step(begun, state)
    before = state.rows.loss.tobytes(), state.answer.weights.tobytes()
    expected = solver.propose(begun, solver.step(begun, state))[0].loss  # moves the kept model on

    def broken(self: HighsMaster, problem: MasterProblem) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(HighsMaster, "_run", broken)
        with pytest.raises(KeyboardInterrupt):
            solver.step(begun, state)
    assert (state.rows.loss.tobytes(), state.answer.weights.tobytes()) == before
    assert solver.propose(begun, solver.step(begun, state))[0].loss == pytest.approx(expected, rel=1e-9)


def test_a_failed_master_is_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    from maxmargin.solvers.column_generation import highs_master as masters

    monkeypatch.setattr(masters, "MOST_RUNS", 1)
    monkeypatch.setattr(HighsMaster, "PIECE", 1)
    problem = within(make("chain", n=12), C=50.0)
    assert run(problem, mm.ColumnGeneration(stabilize=False)).status is Status.NONFINITE


@pytest.mark.parametrize(
    ("master", "accuracy"),
    [(HighsMaster, 1e-8), (partial(ProximalMaster, random=np.random.default_rng(0)), 1e-3)],
    ids=["highs", "proximal"],
)
def test_a_master_ends_at_its_deadline_with_feasible_points(master: Any, accuracy: float) -> None:
    rows, region, n = some_rows(0, 200, 40), L1(C=2.0), 40
    start, box = Answer(np.zeros(n), np.zeros(0)), Box(np.zeros(n), np.inf)
    kept = np.zeros(0, dtype=bool)
    problem = MasterProblem(OutputRows.none(n), kept, rows, start, box, accuracy)
    optimum = HighsMaster(region, 6).solve(problem)
    best = region.penalty(optimum.weights) + rows.slacks(optimum.weights, 6).sum()
    for seconds in (-1.0, 0.0, 1e-4, 1e-3, 1e-2, 600.0):
        solver = master(region, 6)
        found = solver.solve(replace(problem, deadline=time.perf_counter() + seconds))
        assert found.multipliers.shape == (200,)
        assert (found.multipliers >= 0.0).all()
        assert np.bincount(rows.owner, found.multipliers, minlength=6).max() <= 1 + 1e-12
        assert region.dual(*rows.aggregate(found.multipliers)) <= best * (1 + 1e-8)
        assert region.penalty(found.weights) + rows.slacks(found.weights, 6).sum() >= best * (1 - 1e-8)
        if seconds < 0.0:
            assert found.work == 0
        again = solver.solve(problem)  # what was left undone is done
        assert region.dual(*rows.aggregate(again.multipliers)) == pytest.approx(best, rel=2 * accuracy)


@pytest.mark.parametrize("master", ["highs", "newton", "proximal"])
def test_the_deadline_of_the_run_reaches_the_master(master: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    kind: Any = {"highs": HighsMaster, "newton": NewtonMaster, "proximal": ProximalMaster}[master]
    solved = kind.solve

    def watched(self: Any, problem: MasterProblem) -> Answer:
        seen.append(problem.deadline)
        return solved(self, problem)

    monkeypatch.setattr(kind, "solve", watched)
    problem = replace(within(make("chain", n=6), C=5.0), rescaling="none")
    before = time.perf_counter()
    solve(problem, mm.ColumnGeneration(master=master), stop=Stop(max_seconds=600.0))
    assert seen
    assert all(before + 600.0 <= deadline <= time.perf_counter() + 600.0 for deadline in seen)
    seen.clear()
    solve(problem, mm.ColumnGeneration(master=master))
    assert set(seen) == {None}


@pytest.mark.parametrize("master", ["highs", "newton", "proximal"])
@pytest.mark.parametrize("size", [1e200, 1e30])
@pytest.mark.filterwarnings("ignore:all weights of the model are zero:UserWarning")
def test_features_too_large_for_a_linear_program_are_a_status(master: Any, size: float) -> None:
    X, y = ranking_data()
    with pytest.warns(ConvergenceWarning, match="scale the features down"):
        model = mm.CandidatesSVM(norm="l1", C=1.0, solver=mm.ColumnGeneration(master=master)).fit(
            [x * size for x in X], y
        )
    assert model.solution_.status is Status.NONFINITE


def test_the_master_is_chosen_by_examples_and_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    from maxmargin.solvers.column_generation import column_generation

    problem, solver = within(make("chain", n=12), C=5.0), mm.ColumnGeneration()
    size, few = 12 * problem.n_weights, problem.n_weights
    kinds: Any = ((size, few, HighsMaster), (size - 1, few, NewtonMaster), (size - 1, few - 1, ProximalMaster))
    for least, most, kind in kinds:
        monkeypatch.setattr(column_generation, "SOME", least)
        monkeypatch.setattr(column_generation, "MANY", least)
        monkeypatch.setattr(column_generation, "FEW", most)
        assert type(solver._master(problem, np.random.default_rng(0))) is kind
    assert (
        type(solver._master(within(problem, C=5.0, radius=1.0), np.random.default_rng(0))) is HighsMaster
    )  # it alone knows balls


def test_what_highs_refuses_is_no_answer() -> None:
    rows = some_rows(0)
    broken = replace(rows, loss=np.full(len(rows), np.nan))
    none, start = np.zeros(0, dtype=bool), Answer(np.zeros(12), np.zeros(0))
    problem = MasterProblem(OutputRows.none(12), none, broken, start, Box(np.zeros(12), np.inf), 0.0)
    with pytest.raises(NonFiniteError, match="HiGHS refused"):
        HighsMaster(L1(C=1.0), 6).solve(problem)


@pytest.mark.parametrize("size", [1e-6, 1e-12, 1e-40])
@pytest.mark.parametrize("radius", [None, 3.0])
def test_small_features_are_as_good_as_others(size: float, radius: float | None) -> None:
    X, y = ranking_data()
    plain = mm.CandidatesSVM(norm="l1", C=5.0, radius=radius, tol=1e-6).fit(X, y)
    small = mm.CandidatesSVM(
        norm="l1",
        C=5.0 / size,
        radius=radius and radius / size,
        tol=1e-6,
        solver=mm.ColumnGeneration(master="highs"),
    ).fit([x * size for x in X], y)
    assert small.solution_.status is Status.CONVERGED
    assert small.solution_.certificate.primal == pytest.approx(plain.solution_.certificate.primal, rel=1e-5)


def test_separable_data_and_no_rows() -> None:
    structure = Candidates([2, 2])
    features = PartFeatures(np.array([[1.0], [0.0], [2.0], [0.0]]), structure.blocks[0].offsets)
    gold = structure.encode([0, 0])
    problem = Problem.build(structure, features, gold, mm.losses.Hamming(), L1(radius=5.0))
    found = run(problem, mm.ColumnGeneration())
    assert found.status is Status.CONVERGED
    assert found.certificate.primal == 0.0
    alone = Candidates([1, 1])
    single = Problem.build(
        alone, PartFeatures(np.ones((2, 1)), alone.blocks[0].offsets), np.ones(2), mm.losses.Hamming(), L1(C=1.0)
    )
    for master in ("highs", "newton", "proximal"):
        assert run(single, mm.ColumnGeneration(master=master)).status is Status.CONVERGED


def test_warm_starts_and_shards() -> None:
    problem = within(make("chain", n=12), C=5.0)
    cold = run(problem, mm.ColumnGeneration())
    warm = run(problem, mm.ColumnGeneration(), start=Start(cold.weights))
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=1e-7)
    assert cold.counters.argmax >= 2 * cold.counters.iterations
    assert len(cold.history) >= 2


# --- the region -----------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    C=st.sampled_from([0.1, 1.0, 10.0, np.inf]),
    radius=st.sampled_from([0.5, 3.0, np.inf]),
    squares=st.sampled_from([0.0, 0.5, 4.0]),
)
def test_prox_and_dual_of_l1_regions(seed: int, C: float, radius: float, squares: float) -> None:
    if np.isinf(C) and np.isinf(radius):
        return
    rng = np.random.default_rng(seed)
    n = 5
    region = L1(radius, rng.random(n) < 0.4, C)
    v, step = rng.normal(size=n), 0.7
    w = region.prox(v, step)
    assert np.abs(w).sum() <= radius * (1 + 1e-12)
    least = region.penalty(w) + np.square(w - v).sum() / (2 * step)
    for _ in range(30):
        other = region.project(w + rng.normal(size=n) * 10.0 ** -rng.integers(0, 5))
        assert region.penalty(other) + np.square(other - v).sum() / (2 * step) >= least - 1e-12
    g, loss = rng.normal(size=n), float(rng.normal() + 1.0)
    steepest = max(0.0, float(np.where(region.nonnegative, -g, np.abs(g)).max()))

    def bound(theta: Any) -> Any:
        beyond = np.maximum(0.0, theta * steepest - region.price)
        lost = np.where(beyond > 1e-12, radius * np.where(beyond > 1e-12, beyond, 1.0), 0.0)
        return theta * loss - 0.5 * squares * theta**2 - lost

    grid = np.linspace(0.0, 30.0 if squares else 1.0, 60_001)
    found = region.dual(g, loss, squares)
    assert found >= bound(grid).max() - 1e-9
    assert found <= bound(grid).max() + 2e-3 * (1.0 + abs(loss)) * 30
    response = region.best_response(g)
    if response is not None:
        value = response @ g + region.penalty(response)
        assert value <= 1e-12
        assert value == pytest.approx(-radius * (steepest - region.price) if steepest > region.price else 0.0)
    assert region.norm_bound(2.0) == min(radius, 2.0 * C)


def test_rows_come_back_at_most_twice() -> None:
    problem = within(make("chain-edges", n=12), C=50.0)
    solver = mm.ColumnGeneration(age=1)
    begun = Run.of(problem, np.random.default_rng(0), solver.shard_size, 1e-9)
    state = solver.init(begun, Start())
    seen_back = 0
    for _ in range(100):
        stays = state.rows.key[state.returned >= 2]
        state = solver.step(begun, state)
        assert np.isin(stays, state.rows.key).all()
        assert len(np.unique(state.rows.key)) == len(state.rows)
        assert not np.isin(state.dropped, state.rows.key).any()
        seen_back = max(seen_back, int(state.returned.max(initial=0)))
    assert 0 < seen_back <= 2
    assert state.primal == pytest.approx(state.model, rel=1e-8)


def test_a_damaged_model_of_candidates_is_refused() -> None:
    with pytest.raises(ValueError, match="n_features"):
        mm.encoders.CandidatesEncoder.from_state({"n_features": -1})
    with pytest.raises(KeyError):
        mm.encoders.CandidatesEncoder.from_state({})
