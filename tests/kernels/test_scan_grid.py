"""Neighborhoods of points in cells against sums over all points, and their shapes against numpy.linalg."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import _threads
from maxmargin.tasks import _kernels
from maxmargin.tasks.segmentation.scans.grids import SHAPE_NAMES, Grid


def cloud(n: int, seed: int, spread: float = 3.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=spread, size=(n, 3))


def cells_of(points: np.ndarray, size: float) -> list[np.ndarray]:
    """The points' numbers, cell by cell."""
    keys = np.floor((points - points.min(axis=0)) / size).astype(int)
    _, cell_of = np.unique(keys, axis=0, return_inverse=True)
    return [np.flatnonzero(cell_of.reshape(-1) == cell) for cell in range(cell_of.max() + 1)]


def members(points: np.ndarray, cells: list, query: np.ndarray, radius: float, across: bool) -> np.ndarray:
    """The points of the cells whose centroid is in a ball, or in a vertical cylinder."""
    axes = 2 if across else 3
    near = [own for own in cells if np.linalg.norm((points[own].mean(axis=0) - query)[:axes]) <= radius + 1e-12]
    return np.concatenate([*near, np.zeros(0, dtype=int)]).astype(int)


def shape_of(points: np.ndarray, radius: float) -> dict[str, float]:
    """Features of a set of points by numpy.linalg.eigh."""
    values, vectors = np.linalg.eigh(np.cov(points.T, bias=True))
    (l3, l2, l1), normal, main = np.maximum(values, 0), vectors[:, 0], vectors[:, 2]
    l1 = max(l1, 1e-12 * radius**2)
    share = np.array([l1, l2, l3]) / (l1 + l2 + l3)
    return {
        "linearity": (l1 - l2) / l1,
        "planarity": (l2 - l3) / l1,
        "scattering": l3 / l1,
        "omnivariance": np.cbrt(l1 * l2 * l3) / radius**2,
        "anisotropy": (l1 - l3) / l1,
        "eigenentropy": -sum(s * np.log(s) for s in share if s > 0),
        "change of curvature": share[2],
        "verticality": 1 - abs(normal[2]),
        "main direction upwards": abs(main[2]),
        "spread": np.sqrt(l1) / radius,
        "vertical spread": points[:, 2].std() / radius,
        "points": np.log1p(len(points)),
    }


@given(st.integers(5, 40), st.integers(0, 1000), st.sampled_from([1e-4, 0.5, 1.3]))
def test_shapes_of_balls(n, seed, size):
    points, radius = cloud(n, seed), 4.0
    table, normals = Grid.of(points, radius, cell=size).shapes(points)
    cells = cells_of(points, size)
    for i, query in enumerate(points):
        ball = points[members(points, cells, query, radius, across=False)]
        if len(ball) < 5:  # the directions of less are not well defined
            continue
        found = dict(zip(SHAPE_NAMES, table[i].tolist(), strict=True))
        for name, value in shape_of(ball, radius).items():
            assert found[name] == pytest.approx(value, abs=2e-4), name
        offset = ball.mean(axis=0) - query
        assert found["centroid offset"] == pytest.approx(np.hypot(*offset[:2]) / radius, abs=1e-5)
        assert found["centroid rise"] == pytest.approx(offset[2] / radius, abs=1e-5)
        assert found["height range"] == pytest.approx(max(np.append(ball[:, 2], query[2])) - ball[:, 2].min(), abs=1e-4)
        direction = np.linalg.eigh(np.cov(ball.T))[1][:, 0]
        assert abs(direction @ normals[i]) == pytest.approx(1.0, abs=1e-3)
        assert normals[i, 2] >= 0


@given(st.integers(1, 30), st.integers(0, 1000), st.sampled_from([1e-4, 0.7]))
def test_columns_and_averages(n, seed, size):
    points, radius, gap = cloud(n, seed), 2.0, 0.8
    grid, cells = Grid.of(points, radius, cell=size), cells_of(points, size)
    table, _ = grid.shapes(points)
    values = np.random.default_rng(seed).random((n, 3)).astype(np.float32)
    means = grid.average(points, values, gap=gap, missing=-1.0)
    center = {int(i): points[own].mean(axis=0)[2] for own in cells for i in own}
    for i, query in enumerate(points):
        column = members(points, cells, query, radius, across=True)
        rise = np.array([center[j] for j in column.tolist()]) - query[2]
        found = dict(zip(SHAPE_NAMES, table[i].tolist(), strict=True))
        heights = np.append(points[column, 2], query[2]) - query[2]
        assert found["height of column"] == pytest.approx(heights.max(), abs=1e-4)
        assert found["depth of column"] == pytest.approx(-heights.min(), abs=1e-4)
        expected = ((rise > radius).sum() - (rise < -radius).sum()) / max(len(column), 1)
        assert found["balance of column"] == pytest.approx(expected, abs=1e-5)
        parts = [members(points, cells, query, radius, across=False), column[rise > gap], column[rise < -gap]]
        for mean, part in zip(means[i], parts, strict=True):
            assert mean == pytest.approx(values[part].mean(axis=0) if len(part) else -1.0, abs=1e-5)


def test_numbers_of_cells():
    points = cloud(300, 1)
    grid = _kernels.ScanGrid(points, np.ones(300), 0.9)
    found = np.zeros(300, dtype=np.int32)
    grid.cells(found)
    assert grid.n_cells == len(cells_of(points, 0.9))
    assert sorted(map(tuple, (np.flatnonzero(found == c) for c in range(grid.n_cells)))) == sorted(
        map(tuple, cells_of(points, 0.9))
    )


def test_queries_far_outside_find_nothing():
    grid = Grid.of(cloud(50, 0), 1.0)
    far = np.array([[1e9, 0.0, 0.0], [-1e9, 3.0, -1e9], [0.0, 0.0, 1e12]])
    table, normals = grid.shapes(far)
    assert np.isfinite(table).all()
    assert np.isfinite(normals).all()
    assert (table[:, SHAPE_NAMES.index("points")] == 0).all()
    assert (grid.average(far, np.ones((50, 2), dtype=np.float32), gap=1.0, missing=-1.0)[:2] == -1).all()


def test_the_same_bits_for_any_number_of_threads():
    points = cloud(3000, 4)
    values = np.random.default_rng(0).random((3000, 4)).astype(np.float32)
    grid = Grid.of(points, 1.5)
    alone = [*grid.shapes(points), grid.average(points, values, gap=1.0, missing=0.0)]
    with _threads.threads(3):
        together = [*grid.shapes(points), grid.average(points, values, gap=1.0, missing=0.0)]
    assert all(np.array_equal(one, two) for one, two in zip(alone, together, strict=True))


@pytest.mark.parametrize(
    ("points", "weights", "size", "message"),
    [
        (np.zeros((0, 3)), np.zeros(0), 1.0, "weight per point"),
        (np.zeros((2, 3)), np.zeros(3), 1.0, "weight per point"),
        (np.full((2, 3), np.nan), np.ones(2), 1.0, "finite"),
        (np.array([[0.0, 0, 0], [1e9, 0, 0]]), np.ones(2), 0.1, "cells"),
        (np.zeros((2, 3)), np.ones(2), 0.0, "size"),
        (np.zeros((2, 3)), np.array([1.0, -1.0]), 1.0, "weights"),
    ],
)
def test_bad_grids(points, weights, size, message):
    with pytest.raises(ValueError, match=message):
        _kernels.ScanGrid(points, weights, size)


def test_bad_queries():
    grid = _kernels.ScanGrid(np.zeros((2, 3)), np.ones(2), 1.0)
    row, normal = np.zeros((1, _kernels.SCAN_SHAPES), dtype=np.float32), np.zeros((1, 3), dtype=np.float32)
    with pytest.raises(ValueError, match="finite"):
        grid.shapes(np.full((1, 3), np.nan), 1.0, row, normal, 1)
    with pytest.raises(ValueError, match="radius"):
        grid.shapes(np.zeros((1, 3)), 0.0, row, normal, 1)
    with pytest.raises(ValueError, match="row of features"):
        grid.shapes(np.zeros((2, 3)), 1.0, row, np.zeros((2, 3), dtype=np.float32), 1)
    with pytest.raises(ValueError, match="normals"):
        grid.shapes(np.zeros((1, 3)), 1.0, row, row.copy(), 1)
    with pytest.raises(ValueError, match="row of values"):
        grid.average(np.zeros((1, 3)), 1.0, 1.0, np.zeros(3, dtype=np.float32), np.ones(2), 0.0, row, 1)
