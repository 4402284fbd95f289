"""Spin images (Johnson and Hebert 1999) with principal components, the node features of the papers' experiment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.spatial import cKDTree

from maxmargin import _threads
from maxmargin.structures.base import FloatArray

SHAPE = (10, 5)
"""Bins of a spin image: across the normal's axis, and along it."""

_CHUNK = 4096
_MOST_ROWS = 50_000


def spin_images(points: FloatArray, reaches: Sequence[float], shape: tuple[int, int] = SHAPE) -> FloatArray:
    """Where each point's neighbors lie around its surface normal.

    For each reach a histogram of distance from the normal's axis and height along it, as shares of the neighbors. The
    normal is that of the 15 nearest points.
    """
    tree = cKDTree(points)
    _, near = tree.query(points, k=min(15, len(points)), workers=_threads.current())
    near = near.reshape(len(points), -1)
    local = points[near] - points[near].mean(axis=1, keepdims=True)
    normals = np.linalg.eigh(np.einsum("nki,nkj->nij", local, local))[1][:, :, 0]
    normals *= np.where(normals[:, 2:] < 0, -1.0, 1.0)
    chunks = range(0, len(points), _CHUNK)
    return np.concatenate([_images(points, tree, normals, reaches, shape, begin) for begin in chunks])


def _images(
    points: FloatArray, tree: Any, normals: FloatArray, reaches: Sequence[float], shape: tuple[int, int], begin: int
) -> FloatArray:
    some = points[begin : begin + _CHUNK]
    pairs = cKDTree(some).sparse_distance_matrix(tree, max(reaches), output_type="ndarray")
    # In a fixed order, and without each point itself.
    here, other = pairs["i"].astype(np.int64), pairs["j"].astype(np.int64)
    away = here + begin != other
    here, other, distance = here[away], other[away], pairs["v"][away]
    offset, normal = points[other] - some[here], normals[here + begin]
    height = np.einsum("ni,ni->n", offset, normal)
    across = np.sqrt(np.maximum(np.einsum("ni,ni->n", offset, offset) - height**2, 0.0))
    bins = shape[0] * shape[1]
    images = []
    for reach in reaches:
        near = distance <= reach
        column = np.minimum((across[near] / reach * shape[0]).astype(np.int64), shape[0] - 1)
        row = np.minimum(((height[near] / reach + 1) / 2 * shape[1]).astype(np.int64), shape[1] - 1)
        counts = np.bincount(here[near] * bins + column * shape[1] + row, minlength=len(some) * bins)
        table = counts.reshape(-1, bins)
        images.append(table / np.maximum(table.sum(axis=1, keepdims=True), 1))
    return np.concatenate(images, axis=1)


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components of standardized rows.

    Attributes:
        mean: the mean of the training rows.
        spread: their standard deviation, a little more than 0.
        axes: the principal axes, shape ``(n_components, width)``.
    """

    mean: FloatArray
    spread: FloatArray
    axes: FloatArray

    @classmethod
    def fit(cls, tables: Iterable[FloatArray], n_components: int) -> Self:
        """Learn from tables of rows, evenly thinned where they are many."""
        rows = np.concatenate(list(tables))
        rows = rows[:: 1 + len(rows) // _MOST_ROWS]
        mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-3
        standard = (rows - mean) / spread
        _, axes = np.linalg.eigh(standard.T @ standard)
        axes = axes[:, ::-1][:, :n_components].T
        # The sign of an axis is free: its largest entry is positive.
        largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
        return cls(mean, spread, np.ascontiguousarray(axes * np.where(largest < 0, -1.0, 1.0)))

    def __call__(self, rows: FloatArray) -> FloatArray:
        """The components of rows, scaled so that a row has a norm of about 1."""
        return np.asarray((rows - self.mean) / self.spread @ self.axes.T / np.sqrt(len(self.axes)))
