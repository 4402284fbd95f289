"""Auto-context: what the previous stage believes around a node, above it and below it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray
from maxmargin.tasks.segmentation.scans.grids import Grid

MISSING = -1.0
"""Stands for the mean of probabilities where there are no points."""


def neighborhood_context(
    points: FloatArray, grids: Sequence[Grid], probabilities: FloatArray, gap: float
) -> npt.NDArray[np.float32]:
    """Own probabilities, and their means around, above and below each node for every grid.

    Of two classes only the second's probability is used, as the other follows from it.
    """
    values = np.asarray(probabilities[:, 1:] if probabilities.shape[1] == 2 else probabilities, dtype=np.float32)
    means = [
        grid.average(points, values, gap=min(gap, grid.radius), missing=MISSING).reshape(len(points), -1)
        for grid in grids
    ]
    return np.concatenate([values, *means], axis=1)
