"""Compiled steps of the masters of column generation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, minimize

from maxmargin import _kernels

N_ROWS, N, M = 30, 12, 6


def rows(seed: int) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """A matrix, losses, and owners in increasing order."""
    rng = np.random.default_rng(seed)
    matrix = sp.csr_array(sp.random_array((N_ROWS, N), density=0.4, rng=rng, data_sampler=rng.standard_normal))
    matrix.sort_indices()
    return matrix, rng.random(N_ROWS) + 0.5, np.sort(rng.integers(0, M, size=N_ROWS))


def compressed(x: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return x.indptr.astype(np.int32), x.indices.astype(np.int32), x.data


def test_steps_of_extragradient_are_those_of_the_paper() -> None:
    """Process (13) of Wang and Shawe-Taylor, written out with NumPy."""
    matrix, b, owner = rows(0)
    A, link = matrix.toarray(), np.eye(M)[owner]
    rng = np.random.default_rng(1)
    price, step, lower = 0.7, 0.05, np.full(N, -0.5)
    w, xi, lam = rng.normal(size=N), rng.random(M), rng.random(N_ROWS)
    at = w.copy(), xi.copy(), lam.copy()
    arrays = [*compressed(matrix), *compressed(sp.csr_array(matrix.T)), b, owner.astype(np.int32)]
    arrays += [np.full(N, price), lower, np.ones(M)]
    _kernels.linear_master_extragradient(*arrays, *at, step, 3)

    def moved(point: Any, grad: Any) -> Any:
        there = point[0] - step * (A.T @ grad[2])
        soft = np.sign(there) * np.maximum(np.abs(there) - step * price, 0.0)
        return (
            np.maximum(soft, lower),
            np.maximum(point[1] - step * (1.0 - link.T @ grad[2]), 0.0),
            np.maximum(point[2] + step * (A @ grad[0] + b - link @ grad[1]), 0.0),
        )

    here = w, xi, lam
    for _ in range(3):
        here = moved(here, moved(here, here))
    for mine, theirs in zip(at, here, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
    for place, broken, message in ((1, arrays[1] + 100, "out of range"), (7, arrays[7] + 6, "owner")):
        bad = [*arrays[:place], broken, *arrays[place + 1 :]]
        with pytest.raises(ValueError, match=message):
            _kernels.linear_master_extragradient(*bad, *at, step, 1)
    with pytest.raises(ValueError, match="step must be finite"):
        _kernels.linear_master_extragradient(*arrays, *at, np.nan, 1)
    with pytest.raises(ValueError, match="one entry per row"):
        _kernels.linear_master_extragradient(*arrays, *at[:2], np.zeros(3), step, 1)


def proximal(seed: int, signs: bool) -> tuple[list[Any], float]:
    matrix, b, owner = rows(seed)
    rng = np.random.default_rng(seed + 100)
    center, mu = rng.normal(size=N), 0.2 + rng.random(N)
    lower = np.where((np.arange(N) % 2 == 0) & signs, 0.0, -np.inf)
    center = np.maximum(center, lower)
    first = np.searchsorted(owner, np.arange(M + 1)).astype(np.int32)
    return [*compressed(matrix), b, first, center, mu, lower], 0.4


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_proximal_steps_are_solved(seed: int, signs: bool) -> None:
    """Against a general solver on the primal, with weights split into parts >= 0 and a slack per example."""
    program, price = proximal(seed, signs)
    matrix, b, owner = rows(seed)
    center, mu, lower = program[5:]
    g, lam = np.zeros(N), np.zeros(N_ROWS)
    pull = mu * center
    w = np.maximum(np.sign(pull) * np.maximum(np.abs(pull) - price, 0.0) / mu, lower)
    left = _kernels.proximal_master_ascend(*program, w, g, lam, price, 0.0, 1e-12, 5000, 1)
    assert left <= 1e-9
    np.testing.assert_allclose(g, matrix.T @ lam, atol=1e-10)
    assert (lam >= 0.0).all()
    assert (np.bincount(owner, lam, minlength=M) <= 1 + 1e-12).all()
    A, link = matrix.toarray(), np.eye(M)[owner]

    def objective(x: np.ndarray) -> float:
        weights = x[:N] - x[N : 2 * N]
        return float(price * x[: 2 * N].sum() + 0.5 * (mu * (weights - center) ** 2).sum() + x[2 * N :].sum())

    def slope(x: np.ndarray) -> np.ndarray:
        near = mu * (x[:N] - x[N : 2 * N] - center)
        return np.concatenate([price + near, price - near, np.ones(M)])

    bounds = [(0, None)] * N + [(0, 0) if low == 0.0 else (0, None) for low in lower] + [(0, None)] * M
    margins = LinearConstraint(np.hstack([-A, A, link]), lb=b)
    slacks = np.zeros(M)
    np.maximum.at(slacks, owner, A @ w + b)
    mine = np.concatenate([np.maximum(w, 0.0), np.maximum(-w, 0.0), slacks])
    start = np.concatenate([np.zeros(2 * N), np.full(M, 10.0)])
    best = minimize(
        objective,
        start,
        jac=slope,
        bounds=bounds,
        constraints=margins,
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert best.success
    assert objective(mine) == pytest.approx(best.fun, rel=1e-6)


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_newton_steps_are_solved(seed: int, signs: bool) -> None:
    """By the conditions of optimality: multipliers that are the projections, derivatives within the price."""
    program, price = proximal(seed, signs)
    matrix, b, owner = rows(seed)
    center, mu, lower = program[5:]
    rng, smoothing = np.random.default_rng(seed), 0.3
    around, w, lam = rng.random(N_ROWS) / 10, center.copy(), np.empty(N_ROWS)
    left, steps = _kernels.newton_master_minimize(*program, around, w, lam, price, smoothing, 1e-6, 100)
    assert left <= 1e-6
    assert 0 < steps < 30
    pull = around + (matrix @ w + b) / smoothing
    for i in range(M):
        mine, there = lam[owner == i], pull[owner == i]
        assert (mine >= 0.0).all()
        assert mine.sum() <= 1 + 1e-12
        if mine.sum() < 1 - 1e-9:
            np.testing.assert_allclose(mine, np.maximum(there, 0.0), atol=1e-9)
        elif len(mine):
            level = (there - mine)[mine > 0.0]
            np.testing.assert_allclose(level, level[0], atol=1e-9)
            assert (there[mine == 0.0] <= level[0] + 1e-9).all()
            assert level[0] >= -1e-9
    g = matrix.T @ lam + mu * (w - center)
    assert (w >= lower).all()
    np.testing.assert_allclose(g[w != 0.0], -price * np.sign(w[w != 0.0]), atol=2e-6)
    zero = w == 0.0
    assert (-g[zero] <= price + 2e-6).all()
    assert (g[zero & (lower < 0.0)] <= price + 2e-6).all()


def test_proximal_steps_refuse_arrays_that_do_not_fit() -> None:
    program, price = proximal(0, False)
    for place, broken, message in (
        (1, program[1] + 100, "out of range"),
        (4, program[4][:-1], "first must rise"),
        (6, program[6][:-1], "one entry per weight"),
    ):
        bad = [*program[:place], broken, *program[place + 1 :]]
        with pytest.raises(ValueError, match=message):
            _kernels.proximal_master_ascend(*bad, np.zeros(N), np.zeros(N), np.zeros(N_ROWS), price, 0.0, 0.0, 1, 1)
        with pytest.raises(ValueError, match=message):
            _kernels.newton_master_minimize(*bad, *(np.zeros(k) for k in (N_ROWS, N, N_ROWS)), price, 0.1, 0.0, 1)
    for around, smoothing, message in ((N, 0.1, "one entry per row"), (N_ROWS, 0.0, "smoothing must be positive")):
        with pytest.raises(ValueError, match=message):
            _kernels.newton_master_minimize(
                *program, np.zeros(around), np.zeros(N), np.zeros(N_ROWS), price, smoothing, 0.0, 1
            )


def test_nothing_to_do() -> None:
    """No rows, no weights, no examples; numbers that are not finite."""
    starts, none, numbers = np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0)
    empty = [numbers.copy() for _ in range(3)]
    shared = (starts, none, numbers, starts, none, numbers, numbers, none, numbers, numbers, numbers)
    _kernels.linear_master_extragradient(*shared, *empty, 0.1, 3)
    _kernels.proximal_master_ascend(
        starts, none, numbers, numbers, starts, *(3 * [numbers]), *empty, 0.1, 0.0, 0.0, 3, 1
    )
    _kernels.newton_master_minimize(
        starts, none, numbers, numbers, starts, *(4 * [numbers]), *empty[:2], 0.1, 1.0, 0.0, 3
    )
    one, at, two = np.ones(1), np.zeros(1, dtype=np.int32), np.array([0, 1], dtype=np.int32)
    for bad in (np.nan, np.inf, 1e308):
        values = np.full(1, bad)
        program = (two, at, values, two, at, values, one, at, one, -one, one)
        _kernels.linear_master_extragradient(*program, *(np.ones(1) for _ in range(3)), 0.1, 3)
        masses = np.ones(1), np.ones(1), np.full(1, 0.5)
        _kernels.proximal_master_ascend(two, at, values, one, two, one, one, -one, *masses, 0.1, 0.0, 0.0, 3, 1)
        _kernels.newton_master_minimize(two, at, values, one, two, one, one, -one, one, *masses[:2], 0.1, 1.0, 0.0, 3)
