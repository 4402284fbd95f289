"""Inner products of long vectors, by NumPy's own loops; and whether a vector rises.

Not by BLAS, which would start threads of its own: they fight with those of the kernels, and their number changes the
last bits of a sum.
"""

from __future__ import annotations

from typing import Any

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


def rises(values: Any, *, strictly: bool = False) -> bool:
    """Whether no number of a vector is below the one before or, if ``strictly``, equal to it.

    Numbers are compared, as differences of large integers overflow.
    """
    return bool((values[1:] > values[:-1] if strictly else values[1:] >= values[:-1]).all())
