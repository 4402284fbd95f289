"""The restricted gap of runs without regularization: section 4.1 of the 2005 report, eq. (8) of the 2019 notes."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data import matchings
from games import game
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import STRUCTURES, make, run
from scipy.optimize import minimize

import maxmargin as mm
from maxmargin.optimization.run import Run
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.solvers import Checkpoint, Start, Stop, certify, solve

SOLVERS = {
    "extragradient": mm.Extragradient(),
    "plain extragradient": mm.Extragradient.plain(),
    "dual extragradient": mm.DualExtragradient(),
    "memory-efficient": mm.DualExtragradient(store_duals=False, shard_parts=30),
    "projected gradient": mm.ProjectedGradient(),
    "projected subgradient": mm.ProjectedSubgradient(),
}


def in_ball(problem: Problem, radius: float) -> Problem:
    return replace(problem, region=L2(radius=radius, nonnegative=problem.region.nonnegative))


@pytest.mark.parametrize("kind", ["chain", "cut", "matching"])
@pytest.mark.parametrize("radius", [0.2, 1.5])
def test_definition_by_enumeration(kind: str, radius: float) -> None:
    """``max_z L(w, z)`` over all vertices less ``min L(w', z)`` over the ball by a general solver."""
    problem, examples = game(kind, seed=1, C=np.inf)
    runner, solver = Run.of(problem, np.random.default_rng(0)), mm.Extragradient(geometry=mm.Euclidean())
    state = solver.init(runner, Start())
    for _ in range(5):
        state = solver.step(runner, state)
    proposal = solver.propose(runner, state)[1]
    w, signs = proposal.weights, problem.region.nonnegative
    largest = problem.constant + sum(
        ((corners - gold) @ F.T @ w + corners @ c).max() for F, c, gold, corners in examples
    )
    least = minimize(
        lambda v: proposal.g @ v,
        np.zeros(len(w)),
        jac=lambda v: proposal.g,
        method="SLSQP",
        bounds=None if signs is None else [(0 if one else None, None) for one in signs],
        constraints={"type": "ineq", "fun": lambda v: radius**2 - v @ v, "jac": lambda v: -2 * v},
        options={"ftol": 1e-12},
    )
    defined = largest - (proposal.loss + least.fun)
    assert proposal.loss + least.fun > 0.0  # otherwise mixing z with the gold output gives a better bound, 0
    certificate = certify(in_ball(problem, radius), proposal)
    assert certificate.gap == pytest.approx(defined, rel=1e-6)
    reported = certify(problem, replace(proposal, weights=w * radius / np.linalg.norm(w)))
    assert reported.radius == pytest.approx(radius)
    assert reported.restricted_dual == pytest.approx(certificate.dual, rel=1e-9)


@settings(max_examples=40)
@given(
    kind=st.sampled_from(STRUCTURES),
    solver=st.sampled_from(sorted(SOLVERS)),
    radii=st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0, 10.0, 1e3]), min_size=2, max_size=2),
    seed=st.integers(0, 10_000),
)
def test_bounds_hold_and_grow_with_the_radius(kind: str, solver: str, radii: list[float], seed: int) -> None:
    problem = make(kind, seed=seed, n=3, region={"C": np.inf})
    solution = run(problem, SOLVERS[solver], max_iter=25)
    certificate = solution.certificate
    if certificate.radius is None:
        assert certificate.restricted_gap is None
        return
    assert certificate.radius == pytest.approx(np.linalg.norm(solution.weights))
    assert certificate.restricted_gap == pytest.approx(max(0.0, solution.restricted_gap(certificate.radius)))
    assert -1e-9 <= certificate.restricted_gap <= certificate.hinge
    short, long = sorted(radii)
    assert solution.restricted_gap(short) <= solution.restricted_gap(long) + 1e-12
    assert solution.restricted_gap(long) <= certificate.hinge + 1e-12
    if short > 0.0:
        best = run(in_ball(problem, short), mm.Exact(), tol=1e-7).certificate
        assert certificate.hinge - best.primal <= solution.restricted_gap(short) + 1e-6 * (1 + best.primal)


@pytest.mark.parametrize("kind", ["associative", "chain", "cut", "matching"])
@pytest.mark.parametrize("slack", ["linear", "quadratic"])
@pytest.mark.parametrize("radius", [0.1, 0.7, 4.0])
def test_equals_the_certificate_of_the_ball(kind: str, slack: str, radius: float) -> None:
    problem = replace(make(kind, region={"C": np.inf}, n=6), slack=slack)
    solver = mm.ProjectedSubgradient() if slack == "quadratic" else mm.Extragradient()
    runner = Run.of(problem, np.random.default_rng(0))
    state, proposals = solver.init(runner, Start()), []
    for _ in range(12):
        state = solver.step(runner, state)
        proposals += solver.propose(runner, state)
    for proposal in (one for one in proposals if one.weights.any()):
        scaled = replace(proposal, weights=proposal.weights * radius / np.linalg.norm(proposal.weights))
        ball, free = certify(in_ball(problem, radius), scaled), certify(problem, scaled)
        assert free.dual == 0.0
        assert free.restricted_dual == pytest.approx(ball.dual, rel=1e-9, abs=1e-12)
        assert free.restricted_gap == pytest.approx(ball.gap, rel=1e-9, abs=1e-12)


def test_a_long_run_reaches_the_path_at_its_own_length() -> None:
    problem = make("matching", region={"C": np.inf}, n=8)
    solution = run(problem, mm.Extragradient(), max_iter=1000)
    certificate = solution.certificate
    assert certificate.radius is not None
    assert certificate.restricted_gap is not None
    assert certificate.gap == certificate.hinge > 1.0
    assert certificate.restricted_gap < 1e-3 * certificate.hinge
    assert f"{certificate.restricted_gap:.3g} to weights no longer than {certificate.radius:.3g}" in solution.message


def test_regularized_runs_have_none() -> None:
    solution = run(make("matching"), mm.Extragradient(), max_iter=5)
    assert solution.certificate.radius is None
    assert "no longer" not in str(solution.certificate)
    with pytest.raises(ValueError, match=r"without a finite C or radius.*certificate\.gap"):
        solution.restricted_gap(1.0)
    with pytest.raises(ValueError, match=r"radius must be .*, got -1"):
        run(make("matching", region={"C": np.inf}), mm.Extragradient(), max_iter=5).restricted_gap(-1.0)


def test_is_shown_by_records_models_and_descriptions(tmp_path: Path) -> None:
    X, y = matchings()
    log = mm.solvers.JsonLines(tmp_path / "run.jsonl")
    model = mm.MatchingSVM(C=np.inf, max_iter=30, callbacks=[log]).fit(X, y)
    gap = model.solution_.certificate.restricted_gap
    assert model.model_.describe()["trained_restricted_gap"] == gap
    rows = [json.loads(row) for row in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert rows[-1]["restricted_gap"] == model.solution_.history[-1].certificate.restricted_gap
    chosen = mm.MatchingSVM(C=np.inf, max_iter=30).fit(X[:-3], y[:-3], dev=(X[-3:], y[-3:]))
    metadata, solution = chosen.model_.metadata, chosen.solution_
    length = float(np.linalg.norm(chosen.coef_))
    assert metadata["restricted_gap"] == pytest.approx(metadata["primal"] - solution.responses.dual(length))
    assert "restricted_gap" not in mm.MatchingSVM(C=1.0).fit(X, y).model_.metadata


class Saved(mm.ProjectedSubgradient):
    """Projected subgradient steps that can be saved."""

    checkpoint_unsupported = ""

    def state_dict(self, state: Any) -> dict[str, Any]:
        outputs = {f"outputs.{one.name}": getattr(state.outputs, one.name) for one in fields(state.outputs)}
        return outputs | {one.name: getattr(state, one.name) for one in fields(state) if one.name != "outputs"}

    def load_state_dict(self, run: Run, saved: dict[str, Any]) -> Any:
        state = self.init(run, Start())
        outputs = {name.removeprefix("outputs."): value for name, value in saved.items() if name.startswith("outputs.")}
        rest = {name: value for name, value in saved.items() if not name.startswith("outputs.")}
        return replace(state, outputs=replace(state.outputs, **outputs), **rest)


def test_resumed_runs_report_the_same(tmp_path: Path) -> None:
    problem = make("cut", region={"C": np.inf})
    whole = solve(problem, Saved(), stop=Stop(max_iter=20))
    place = Checkpoint(tmp_path / "run", every=0)
    solve(problem, Saved(), stop=Stop(max_iter=9), checkpoint=place)
    resumed = solve(problem, Saved(), stop=Stop(max_iter=20), checkpoint=place)
    assert resumed.certificate == whole.certificate
    assert resumed.certificate.radius is not None
    np.testing.assert_array_equal(resumed.responses.points, whole.responses.points)
    assert [one.certificate for one in resumed.history] == [one.certificate for one in whole.history]
