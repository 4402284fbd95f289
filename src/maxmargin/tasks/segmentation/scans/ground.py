"""The height of points over the ground."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from maxmargin.structures.base import FloatArray

MOST_CELLS = 4_000_000
"""Cells of the ground's grid; a wider scan gets larger cells."""


def height_over_ground(points: FloatArray, *, cell: float, window: float) -> FloatArray:
    """The height of every point over a ground estimated from the lowest points.

    The lowest point of every cell of a horizontal grid, with empty cells filled from the nearest occupied one, is
    opened by a square window: an opening removes what is narrower than the window and higher than its surroundings
    (trees, cars, facades), and leaves slopes as they are. Between the centers of cells the ground is interpolated.
    """
    place = points[:, :2] - points[:, :2].min(axis=0)
    extent = np.maximum(np.ptp(points[:, :2], axis=0), cell)
    cell = max(cell, float(np.sqrt(extent[0] / MOST_CELLS * extent[1])), float(extent.max()) / MOST_CELLS)
    column, row = np.floor(place / cell).astype(np.int64).T
    shape = (int(column.max()) + 1, int(row.max()) + 1)
    lowest = np.full(shape, np.inf)
    np.minimum.at(lowest, (column, row), points[:, 2])
    nearest = ndimage.distance_transform_edt(np.isinf(lowest), return_distances=False, return_indices=True)
    lowest = _without_pits(lowest[tuple(nearest)])
    width = 2 * int(window / cell / 2) + 1
    slope = _slope(lowest)
    opened = ndimage.grey_opening(lowest - slope, size=(width, width), mode="nearest")
    ground = ndimage.uniform_filter(opened, size=5, mode="nearest") + slope
    under = ndimage.map_coordinates(ground, place.T / cell - 0.5, order=1, mode="nearest")
    return np.asarray(points[:, 2] - under, dtype=np.float64)


def _slope(lowest: FloatArray) -> FloatArray:
    # An opening cuts off the upper border of a slope: the plane under most cells is taken off before it. Cells above
    # the plane weigh less, as they may be houses.
    column, row = np.indices(lowest.shape).reshape(2, -1)
    design = np.column_stack([column, row, np.ones(lowest.size)]).astype(np.float64)
    values, weights = lowest.ravel(), np.ones(lowest.size)
    plane = np.zeros(lowest.size)
    for _ in range(10):
        moments = design.T * weights
        plane = design @ np.linalg.lstsq(moments @ design, moments @ values, rcond=None)[0]
        weights = np.where(values > plane, 0.1, 0.9)
    return plane.reshape(lowest.shape)


def _without_pits(lowest: FloatArray) -> FloatArray:
    # Echoes under the ground would pull the opening down over a whole window: a cell far below the median of its
    # surroundings takes that median.
    median = ndimage.median_filter(lowest, size=5, mode="nearest")
    spread = ndimage.median_filter(np.abs(lowest - median), size=5, mode="nearest")
    return np.where(lowest < median - 4 * spread - 0.5, median, lowest)
