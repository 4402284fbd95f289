"""Points in cubic cells: neighborhoods of any radius at a bounded cost per point, from compiled code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin.structures.base import FloatArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.segmentation.scans.thinning import require_numbered

CELLS_PER_RADIUS = 4
"""Cells along a radius: a ball on a surface then has some fifty cells, whatever the density of the points."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Neighborhoods of one radius.

    A neighborhood consists of the cells whose centroid lies in it, so its border is as coarse as the cells, while
    sums over the points of those cells are exact.
    """

    kernel: _kernels.ScanGrid
    weights: FloatArray
    radius: float

    @classmethod
    def of(cls, points: FloatArray, radius: float, *, cell: float | None = None) -> Grid:
        """The grid of points that all have weight 1; cells are a quarter of the radius unless given."""
        size = radius / CELLS_PER_RADIUS if cell is None else cell
        require_numbered(points, size)
        weights = np.ones(len(points))
        return cls(_kernels.ScanGrid(np.ascontiguousarray(points, dtype=np.float64), weights, size), weights, radius)

    def shapes(self, queries: FloatArray) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Features of the neighborhood of each query, named in :data:`SHAPE_NAMES`, and its normal, upwards."""
        out = np.empty((len(queries), _kernels.SCAN_SHAPES), dtype=np.float32)
        normals = np.empty((len(queries), 3), dtype=np.float32)
        self.kernel.shapes(np.ascontiguousarray(queries), self.radius, out, normals, _threads.current())
        return out, normals

    def average(
        self, queries: FloatArray, values: npt.NDArray[np.float32], *, gap: float, missing: float
    ) -> npt.NDArray[np.float32]:
        """Means of the points' values around each query, above it and below it, shape ``(n_queries, 3, k)``.

        Around: in the ball; above and below: in the vertical cylinder, more than ``gap`` away. Where there is no
        point, the mean is ``missing``.
        """
        k = values.shape[1]
        out = np.empty((len(queries), 3, k), dtype=np.float32)
        rows = np.ascontiguousarray(values, dtype=np.float32)
        self.kernel.average(
            np.ascontiguousarray(queries), self.radius, gap, rows, self.weights, missing, out, _threads.current()
        )
        return out


SHAPE_NAMES = (
    "linearity",
    "planarity",
    "scattering",
    "omnivariance",
    "anisotropy",
    "eigenentropy",
    "change of curvature",
    "verticality",
    "main direction upwards",
    "spread",
    "vertical spread",
    "centroid offset",
    "centroid rise",
    "points",
    "cells",
    "height range",
    "depth of column",
    "height of column",
    "spread of column",
    "balance of column",
    "points of column",
    "share of column",
)
"""Features of a neighborhood, in the order of the compiled code."""
