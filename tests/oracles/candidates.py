"""For tests of lists of candidates: enumeration."""

from __future__ import annotations

import numpy as np

from maxmargin.structures.base import FloatArray
from maxmargin.structures.candidates import Candidates


def vertices(structure: Candidates) -> list[FloatArray]:
    """For each example the unit vectors, shape ``(n_candidates, n_candidates)``."""
    return [np.eye(size) for size in structure.sizes.tolist()]
