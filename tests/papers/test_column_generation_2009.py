"""``ColumnGeneration.plain()`` beside a twin of Wang and Shawe-Taylor (2009), written from Algorithms 1 and 2 alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import maxmargin as mm
from maxmargin.features.parts import PartFeatures
from maxmargin.losses import Hamming
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import Problem
from maxmargin.regions import L1
from maxmargin.solvers import Status, Stop, solve
from maxmargin.structures.matchings.matching import Matching

C = 0.7


def twin(phi: list[Any], gold: list[int], rounds: int, steps: int | None, eps: Any = (0.0, 0.0)) -> Any:
    """Rounds of Algorithm 1, as (w, xi, lambda, objective); ``steps`` limits Algorithm 2, None solves masters exactly.

    ``phi[i]`` holds the features of all outputs of example ``i``, one per row, and ``gold[i]`` is the correct one.
    """
    m, d = len(phi), phi[0].shape[1]
    w, xi, lam, H, M = np.ones(d), np.zeros(m), np.zeros(0), np.zeros((0, d)), np.zeros((0, m))
    for _ in range(rounds):
        xi_0 = xi.copy()
        for i in range(m):
            wrong = np.delete(np.arange(len(phi[i])), gold[i])
            h = phi[i][gold[i]] - phi[i][wrong[np.argmax(phi[i][wrong] @ w)]]
            if w @ h < 1 - xi[i] - (1e-9 if steps is None else 0):
                H, M, lam, xi_0[i] = np.vstack([H, h]), np.vstack([M, np.eye(m)[i]]), np.append(lam, 0.0), 1 - w @ h
        if steps is None:
            cost = np.concatenate([np.ones(d), np.full(m, C)])
            w, xi = np.split(linprog(cost, A_ub=-np.hstack([H, M]), b_ub=-np.ones(len(H))).x, [d])
        else:
            w, xi, lam = extragradient(w, xi_0, lam, H, M, steps, *eps)
        yield w, xi, lam, w.sum() + C * xi.sum()


def extragradient(w: Any, xi: Any, lam: Any, H: Any, M: Any, steps: int, eps_1: float, eps_2: float) -> Any:
    """Process (13) until the two tests of Algorithm 2 pass."""
    alpha, norm = (2 * (H**2).sum() + 2 * (M**2).sum()) ** -0.5, np.linalg.norm

    def moved(l: Any, v: Any, x: Any) -> Any:
        primal = w - alpha * (1 - H.T @ l), xi - alpha * (C - M.T @ l)
        return *(np.maximum(p, 0) for p in primal), np.maximum(lam + alpha * (1 - M @ x - H @ v), 0)

    for _ in range(steps):
        w_bar, xi_bar, lam_bar = moved(lam, w, xi)
        last, (w, xi, lam) = (w, xi, lam), moved(lam_bar, w_bar, xi_bar)
        change = norm(np.append(w - last[0], xi - last[1])) / norm(np.append(w, xi)), norm(lam - last[2]) / norm(lam)
        if max(change) < eps_1 and w.sum() + C * xi.sum() - lam.sum() < eps_2:
            break
    return w, xi, lam


def matchings(seed: int, n: int = 5) -> tuple[Problem, list[Any], list[int]]:
    """Matchings of 2 x 3: the problem, the features of all outputs of each example, and which of them is correct.

    No two outputs have the same score at w = 1, as all labelings of a chain would.
    """
    rng = np.random.default_rng(seed)
    structure = Matching([(2, 3)] * n)
    rows, hidden = rng.normal(size=(6 * n, 8)), np.abs(rng.normal(size=8))
    features = PartFeatures(rows, structure.blocks[0].offsets)
    gold = structure.argmax(rows @ hidden + 0.7 * rng.normal(size=6 * n)).z
    region = L1(C=C, nonnegative=np.ones(8, dtype=bool))
    problem = Problem.build(structure, features, gold, Hamming(), region, rescaling="none")
    tables = np.array(list(itertools.product([0.0, 1.0], repeat=6))).reshape(-1, 2, 3)
    outputs = tables[(tables.sum(axis=1) <= 1).all(axis=1) & (tables.sum(axis=2) <= 1).all(axis=1)].reshape(-1, 6)
    phi = [outputs @ rows[6 * i : 6 * i + 6] for i in range(n)]
    return problem, phi, [int(np.flatnonzero((outputs == y).all(axis=1))[0]) for y in gold.reshape(n, 6)]


def states(problem: Problem, solver: Any, rounds: int) -> Any:
    run = Run.of(problem, np.random.default_rng(0))
    state = solver.init(run, Start())
    for _ in range(rounds):
        state = solver.step(run, state)
        yield state


@pytest.mark.parametrize("steps", [1, 5, 25])
@pytest.mark.parametrize("seed", range(4))
def test_algorithm_2(seed: int, steps: int) -> None:
    problem, phi, gold = matchings(seed)
    solver = mm.ColumnGeneration.plain(epsilon_1=1e-300, epsilon_2=1e-300, max_steps=steps)
    rounds = max(2, 25 // steps)
    theirs = twin(phi, gold, rounds, steps)
    for state, (w, xi, lam, _) in zip(states(problem, solver, rounds), theirs, strict=True):
        assert len(state.multipliers) == len(lam)
        np.testing.assert_allclose(state.weights, w, atol=1e-10)
        np.testing.assert_allclose(state.slacks, xi, atol=1e-10)
        np.testing.assert_allclose(state.multipliers, lam, atol=1e-10)
    assert state.steps == rounds * steps


def test_both_tolerances_end_a_master() -> None:
    problem, phi, gold = matchings(1)
    solver = mm.ColumnGeneration.plain(epsilon_1=0.02, epsilon_2=0.5)
    rounds = 3
    for state, (w, xi, lam, _) in zip(
        states(problem, solver, rounds), twin(phi, gold, rounds, 100_000, (0.02, 0.5)), strict=True
    ):
        np.testing.assert_allclose(state.weights, w, atol=1e-10)
        np.testing.assert_allclose(state.slacks, xi, atol=1e-10)
        np.testing.assert_allclose(state.multipliers, lam, atol=1e-10)
    assert rounds < state.steps < 10_000


@pytest.mark.parametrize("seed", range(4))
def test_algorithm_1_with_exact_masters(seed: int) -> None:
    problem, phi, gold = matchings(seed)
    rounds = 8
    run = states(problem, mm.ColumnGeneration.plain(master="highs"), rounds)
    for state, (_, _, _, objective) in zip(run, twin(phi, gold, rounds, None), strict=True):
        assert state.weights.sum() + C * state.slacks.sum() == pytest.approx(objective, rel=1e-8)
    found = solve(problem, mm.ColumnGeneration.plain(master="highs"), stop=Stop(tol=1e-8))
    assert found.status is Status.CONVERGED
    assert C * found.certificate.primal == pytest.approx(objective, rel=1e-7)


def test_the_stopping_tests_pass_falsely_and_the_certificate_does_not() -> None:
    problem, _, _ = matchings(0, n=8)
    optimum = solve(problem, mm.ColumnGeneration(master="highs"), stop=Stop(tol=1e-9)).certificate.primal
    solver = mm.ColumnGeneration.plain(epsilon_1=0.1, epsilon_2=0.1)
    state = list(states(problem, solver, 3))[-1]
    claimed = state.weights.sum() + C * state.slacks.sum() - state.multipliers.sum()
    (proposal,) = solver.propose(Run.of(problem, np.random.default_rng(0)), state)
    dual = problem.region.dual(proposal.g, proposal.loss)
    assert claimed < 0.1  # both tests have passed
    assert dual <= optimum <= problem.objective(state.weights)
    assert problem.objective(state.weights) - dual > 0.2 / C
