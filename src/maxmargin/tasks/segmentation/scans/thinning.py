"""Voxel thinning: one node per occupied voxel, and for every point its node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray, IntArray

MOST_CELLS = 2**21
"""Cells along an axis that three of them can be numbered in 63 bits."""


@dataclass(frozen=True, eq=False)
class Thinned:
    """The nodes of a scan, sorted by voxel: along x, then y, then z.

    Attributes:
        points: the centroid of each node's points, shape ``(n_nodes, 3)``.
        node_of: the node of every point, shape ``(n_points,)``.
        size: the number of points of each node, shape ``(n_nodes,)``.
    """

    points: FloatArray
    node_of: npt.NDArray[np.int32]
    size: FloatArray

    def means(self, values: FloatArray) -> FloatArray:
        """The mean over each node's points of values per point, shape ``(n_points, k)``."""
        columns = [np.bincount(self.node_of, column, len(self.size)) for column in values.T]
        return np.stack(columns, axis=1) / self.size[:, None] if columns else np.zeros((len(self.size), 0))


def thin(points: FloatArray, voxel: float) -> Thinned:
    """Merge the points of each voxel; a voxel of size 0 merges only equal points."""
    keys = _ranks(points) if voxel == 0 else voxel_keys(points, voxel)
    _, node_of, size = np.unique(keys, return_inverse=True, return_counts=True)
    thinned = Thinned(points, node_of.reshape(-1).astype(np.int32), size.astype(np.float64))
    return Thinned(np.ascontiguousarray(thinned.means(points)), thinned.node_of, thinned.size)


def voxel_keys(points: FloatArray, voxel: float) -> IntArray:
    """A number per point that tells its voxel and sorts voxels along x, then y, then z."""
    low = points.min(axis=0)
    require_numbered(points, voxel)
    x, y, z = np.floor((points - low) / voxel).astype(np.int64).T
    return np.asarray((x << 42) | (y << 21) | z)


def require_numbered(points: FloatArray, voxel: float) -> None:
    """ValueError where a scan is so wide that its voxels cannot be numbered."""
    extent = float(np.ptp(points, axis=0).max())
    if extent / voxel >= MOST_CELLS:
        raise ValueError(
            f"the points spread over {extent:g} units, more than {MOST_CELLS} voxels of {voxel:g}; "
            "remove stray points, or use larger voxels"
        )


def _ranks(points: FloatArray) -> IntArray:
    return np.unique(points, axis=0, return_inverse=True)[1].reshape(-1)
