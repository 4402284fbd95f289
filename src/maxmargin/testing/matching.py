"""For tests of matchings: enumeration of all of them, and the optimality conditions of a projection."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np

from maxmargin.structures.base import FloatArray
from maxmargin.structures.matching import Matching


def vertices(structure: Matching) -> list[FloatArray]:
    """For each example all its matchings, shape ``(number of matchings, n_edges)``; for up to about 12 edges."""
    polytope = structure.polytope()
    offsets = structure.blocks[0].offsets
    answer = []
    for begin, end in pairwise(offsets.tolist()):
        n = end - begin
        subsets = np.array(list(product((0.0, 1.0), repeat=n))).reshape(2**n, n)
        rows = polytope.ub[:, begin:end].toarray()
        answer.append(subsets[(subsets @ rows.T <= polytope.ub_rhs + 1e-9).all(axis=1)])
    return answer


def residual(structure: Matching, point: FloatArray, duals: FloatArray) -> tuple[FloatArray, float]:
    """What node duals say: ``z = clip(point - alpha - beta, 0, 1)`` and how far it is from optimal.

    The second number is the largest ``|min(dual, capacity - sum)|`` over nodes; it is 0 exactly at the projection. It
    judges a projection at any size, as ``z`` is the projection if the duals are optimal.
    """
    capacities = np.concatenate([structure.left_capacity, structure.right_capacity]).astype(np.float64)
    incidence = structure.polytope().ub[: len(capacities)]
    open_edges = incidence.T @ (capacities == 0) == 0
    z = np.clip(point - incidence.T @ duals, 0.0, 1.0) * open_edges
    gap = np.abs(np.minimum(duals, capacities - incidence @ z))
    worst = float(gap[capacities > 0].max(initial=0.0))
    return z, max(worst, float(-duals.min(initial=0.0)))
