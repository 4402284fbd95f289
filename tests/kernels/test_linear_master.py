"""Compiled steps of the masters of column generation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _kernels


@pytest.mark.parametrize("extragradient", [True, False])
def test_compiled_steps_are_those_of_the_papers(extragradient: bool) -> None:
    """Process (13) of Wang and Shawe-Taylor, and algorithm 1 of Chambolle and Pock, written out with NumPy."""
    rng = np.random.default_rng(0)
    matrix = sp.csr_array(sp.random_array((30, 12), density=0.4, rng=rng, data_sampler=rng.standard_normal))
    matrix.sort_indices()
    A, b, owner = matrix.toarray(), rng.random(30) + 0.5, rng.integers(0, 6, size=30)
    M = np.eye(6)[owner]
    price, tau, sigma = 0.7, 0.05, 0.08
    lower, upper = np.full(12, -0.5), np.full(12, np.inf)
    w, xi, lam = rng.normal(size=12), rng.random(6), rng.random(30)
    at, sums = (w.copy(), xi.copy(), lam.copy()), (np.zeros(12), np.zeros(6), np.zeros(30))
    csr, csc = matrix, sp.csr_array(matrix.T)
    compressed = [part for x in (csr, csc) for part in (x.indptr.astype(np.int32), x.indices.astype(np.int32), x.data)]
    arrays = (*compressed, b, np.ones(30), owner.astype(np.int32), np.full(12, price), lower, upper, np.ones(6))
    _kernels.linear_master_iterate(*arrays, *at, *sums, tau, sigma, 3, extragradient)

    def moved(point: Any, grad: Any) -> Any:
        step = point[0] - tau * (A.T @ grad[2])
        soft = np.sign(step) * np.maximum(np.abs(step) - tau * price, 0.0)
        return (
            np.clip(soft, lower, upper),
            np.maximum(point[1] - tau * (1.0 - M.T @ grad[2]), 0.0),
            np.maximum(point[2] + sigma * (A @ grad[0] + b - M @ grad[1]), 0.0),
        )

    here, total = (w, xi, lam), [np.zeros(12), np.zeros(6), np.zeros(30)]
    for _ in range(3):
        if extragradient:
            ahead = moved(here, here)
            here = moved(here, ahead)
        else:
            next_w, next_xi, _ = moved(here, here)
            beyond = (2.0 * next_w - here[0], 2.0 * next_xi - here[1], here[2])
            here = ahead = (next_w, next_xi, moved(here, beyond)[2])
        total = [t + p for t, p in zip(total, ahead, strict=True)]
    for mine, theirs in zip((*at, *sums), (*here, *total), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
    bad = list(arrays)
    bad[1] = compressed[1] + 100
    with pytest.raises(ValueError, match="out of range"):
        _kernels.linear_master_iterate(*bad, *at, *sums, tau, sigma, 1, extragradient)
    bad = list(arrays)
    bad[8] = owner.astype(np.int32) + 6
    with pytest.raises(ValueError, match="owner"):
        _kernels.linear_master_iterate(*bad, *at, *sums, tau, sigma, 1, extragradient)


def test_nothing_to_do() -> None:
    """No rows, no weights, no examples, no steps; numbers that are not finite."""
    starts, none, numbers = np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0)
    empty = [numbers.copy() for _ in range(6)]
    shared = (starts, none, numbers, starts, none, numbers, numbers, numbers, none, numbers, numbers, numbers, numbers)
    _kernels.linear_master_iterate(*shared, *empty, 0.1, 0.1, 3, True)
    one, at = np.ones(1), np.zeros(1, dtype=np.int32)
    two = np.array([0, 1], dtype=np.int32)
    for bad in (np.nan, np.inf, 1e308):
        values = np.full(1, bad)
        program = (two, at, values, two, at, values, one, one, at, one, -one, one, one)
        _kernels.linear_master_iterate(*program, *(np.ones(1) for _ in range(6)), 0.1, 0.1, 3, True)
    with pytest.raises(ValueError, match="steps must be finite"):
        _kernels.linear_master_iterate(*shared, *empty, np.nan, 0.1, 3, True)
    with pytest.raises(ValueError, match="one entry per row"):
        _kernels.linear_master_iterate(*shared[:7], one, *shared[8:], *empty, 0.1, 0.1, 3, True)
    with pytest.raises(ValueError, match="do not fit together"):
        _kernels.linear_master_iterate(two, *shared[1:], *empty, 0.1, 0.1, 3, True)
