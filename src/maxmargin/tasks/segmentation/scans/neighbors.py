"""Graphs of nearest neighbors, and how alike the ends of an edge are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from maxmargin import _threads
from maxmargin.structures.base import FloatArray, IntArray

EDGE_NAMES = (
    "constant",
    "closeness",
    "same normal",
    "same height",
    "same linearity",
    "same planarity",
    "same scattering",
)
"""Edge features, each between 0 and 1: 1 where the ends are alike."""


def nearest_edges(points: FloatArray, k: int) -> IntArray:
    """Pairs of points of which one is among the other's ``k`` nearest, each pair once with the smaller number first."""
    k = min(k, len(points) - 1)
    if k < 1:
        return np.zeros((0, 2), dtype=np.int64)
    _, near = cKDTree(points).query(points, k=k + 1, workers=_threads.current())
    first = np.repeat(np.arange(len(points)), k + 1)
    return _pairs(len(points), first, near.reshape(-1))


def radius_edges(points: FloatArray, radius: float) -> IntArray:
    """Pairs of points at most ``radius`` apart, each pair once with the smaller number first."""
    found = cKDTree(points).query_pairs(radius, output_type="ndarray").astype(np.int64)
    return _pairs(len(points), found[:, 0], found[:, 1])


def _pairs(n: int, first: IntArray, second: IntArray) -> IntArray:
    low, high = np.minimum(first, second), np.maximum(first, second)
    keys = np.unique((low * n + high)[low < high])
    return np.stack([keys // n, keys % n], axis=1)


def edge_features(
    points: FloatArray,
    edges: IntArray,
    normals: npt.NDArray[np.float32],
    shapes: npt.NDArray[np.float32],
    scale: float,
) -> FloatArray:
    """Features of edges, named in :data:`EDGE_NAMES`.

    ``shapes``: linearity, planarity and scattering of each point; ``scale``: the distance that counts as far.
    """
    first, second = edges.T
    offset = points[first] - points[second]
    across = np.abs(np.einsum("ij,ij->i", normals[first], normals[second])).astype(np.float64)
    return np.column_stack(
        [
            np.ones(len(edges)),
            np.exp(-np.linalg.norm(offset, axis=1) / scale),
            np.minimum(across, 1.0) ** 4,
            np.exp(-np.abs(offset[:, 2]) / scale),
            np.maximum(1.0 - np.abs(shapes[first] - shapes[second]), 0.0) ** 2,
        ]
    )
