"""Inner products of long vectors, by NumPy's own loops.

Not by BLAS, which would start threads of its own: they fight with those of the kernels, and their number changes the
last bits of a sum.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def dot(first: npt.NDArray[np.float64 | np.uint8], second: npt.NDArray[np.float64]) -> float:
    """``first'second``."""
    return float(np.einsum("i,i->", first, second))


def squared(vector: npt.NDArray[np.float64]) -> float:
    """``||vector||^2``."""
    return dot(vector, vector)


def norm(vector: npt.NDArray[np.float64]) -> float:
    """``||vector||``."""
    return float(np.sqrt(dot(vector, vector)))
