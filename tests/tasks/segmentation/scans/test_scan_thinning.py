"""Thinning and graphs of neighbors against brute force, and the ground under slopes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.tasks.segmentation.scans import ground
from maxmargin.tasks.segmentation.scans.ground import height_over_ground
from maxmargin.tasks.segmentation.scans.neighbors import edge_features, nearest_edges, radius_edges
from maxmargin.tasks.segmentation.scans.thinning import thin


def cloud(n: int, seed: int, spread: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=spread, size=(n, 3))


@given(st.integers(1, 200), st.integers(0, 100), st.sampled_from([0.1, 0.5, 2.0]))
def test_voxels_by_a_dictionary(n, seed, voxel):
    points = cloud(n, seed)
    points = np.concatenate([points, points[: n // 3]])  # with duplicates
    found = thin(points, voxel)
    voxels: dict[tuple[int, ...], list[int]] = {}
    for i, point in enumerate(points):
        voxels.setdefault(tuple(np.floor((point - points.min(axis=0)) / voxel).astype(int).tolist()), []).append(i)
    assert len(found.points) == len(voxels)
    for own, (_, expected) in zip(range(len(voxels)), sorted(voxels.items()), strict=True):
        assert np.flatnonzero(found.node_of == own).tolist() == expected
        assert found.size[own] == len(expected)
        assert found.points[own] == pytest.approx(points[expected].mean(axis=0))


def test_without_voxels_only_equal_points_are_merged():
    points = np.repeat(cloud(40, 0), 3, axis=0)
    found = thin(points, 0.0)
    assert len(found.points) == 40
    assert found.points[found.node_of] == pytest.approx(points)
    assert set(found.size) == {3.0}


def test_scans_too_wide_for_their_voxels():
    with pytest.raises(ValueError, match="stray points"):
        thin(np.array([[0.0, 0, 0], [1e7, 0, 0]]), 0.2)


def all_distances(points: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points[:, None] - points[None], axis=2)


@given(st.integers(1, 60), st.integers(0, 100), st.integers(1, 8))
def test_nearest_edges(n, seed, k):
    points = cloud(n, seed)
    distance = all_distances(points) + np.diag(np.full(n, np.inf))
    near = [np.argsort(row)[: min(k, n - 1)] for row in distance]
    expected = {(min(i, j), max(i, j)) for i, row in enumerate(near) for j in row.tolist()}
    edges = nearest_edges(points, k)
    assert set(map(tuple, edges.tolist())) == expected
    assert len(edges) == len(expected)
    assert edges.tolist() == sorted(edges.tolist())


@given(st.integers(1, 60), st.integers(0, 100), st.sampled_from([0.1, 0.8, 3.0]))
def test_radius_edges(n, seed, radius):
    points = cloud(n, seed)
    close = np.triu(all_distances(points) <= radius, k=1)
    assert np.array_equal(radius_edges(points, radius), np.argwhere(close))


def test_edge_features_lie_between_0_and_1():
    points = cloud(200, 1)
    edges = nearest_edges(points, 4)
    normals = cloud(200, 2)
    normals = (normals / np.linalg.norm(normals, axis=1, keepdims=True)).astype(np.float32)
    shapes = np.random.default_rng(0).random((200, 3)).astype(np.float32)
    found = edge_features(points, edges, normals, shapes, 0.4)
    assert found.min() >= 0
    assert found.max() <= 1
    assert (found[:, 0] == 1).all()
    same = edge_features(np.zeros((2, 3)), np.array([[0, 1]]), normals[[0, 0]], shapes[[0, 0]], 0.4)
    assert same == pytest.approx(np.ones((1, 7)), abs=1e-5)


@pytest.mark.parametrize("slope", [0.0, 0.2, 0.5])
def test_height_over_sloping_ground(slope):
    rng = np.random.default_rng(0)
    floor = np.column_stack([rng.uniform(0, 30, (20_000, 2)), np.zeros(20_000)])
    box = np.column_stack([rng.uniform(10, 14, (2000, 2)), rng.uniform(0.0, 6.0, 2000)])
    pole = np.column_stack([np.full((100, 2), 20.0), np.linspace(0.0, 8.0, 100)])
    points = np.concatenate([floor, box, pole])
    flat = points[:, 2].copy()
    points[:, 2] += slope * points[:, 0]
    height = height_over_ground(points, cell=0.5, window=10.0)
    assert np.abs(height - flat).max() < 0.1 + slope


def test_an_echo_under_the_ground_does_not_lower_it():
    rng = np.random.default_rng(0)
    floor = np.column_stack([rng.uniform(0, 30, (20_000, 2)), np.zeros(20_000)])
    height = height_over_ground(np.vstack([floor, [15.2, 15.2, -5.0]]), cell=0.5, window=10.0)
    assert np.abs(height[:-1]).max() < 0.1
    assert height[-1] == pytest.approx(-5.0, abs=0.1)


def test_ground_of_very_wide_scans(monkeypatch):
    monkeypatch.setattr(ground, "MOST_CELLS", 10_000)
    points = np.array([[0.0, 0, 0], [1e6, 0, 1], [0, 1e6, 2], [1e6, 1e6, 3]])
    assert np.isfinite(height_over_ground(points, cell=0.5, window=10.0)).all()
