"""Convex programs over the weights and other variables, solved by Clarabel: what the reference solver's programs share.

The region's constraints are added here: signs as rows, an L1 ball by bounds ``t >= |w|``, an L2 ball as a second-order
cone. Cost: a sparse factorization per iteration of the interior-point method.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._sparse import sp
from maxmargin.regions import L1, L2, Region
from maxmargin.structures.base import FloatArray


def minimize(
    region: Region, linear: FloatArray, curvature: FloatArray, rows: Any, rhs: FloatArray, accuracy: float
) -> tuple[FloatArray, FloatArray]:
    """``min penalty(w) + linear'(w, v) + 1/2 sum_j curvature_j v_j^2  s.t.  rows (w, v) <= rhs, w in W``.

    Args:
        region: an L1 or L2 region of the weights.
        linear: shape ``(n_weights + n_others,)``.
        curvature: of the other variables ``v``, shape ``(n_others,)``.
        rows: sparse, shape ``(n_rows, n_weights + n_others)``.
        rhs: shape ``(n_rows,)``.
        accuracy: tolerance of the interior-point method.

    Returns:
        The weights, and the multipliers of the rows; both feasible to the accuracy only.
    """
    import clarabel

    n_others = len(curvature)
    n, n_rows = len(linear) - n_others, len(rhs)
    n_t = n if isinstance(region, L1) else 0  # bounds t >= |w|
    price = region.price if isinstance(region, L1) else 0.0
    quadratic = sp.diags_array(np.concatenate([np.full(n, region.curvature), curvature, np.zeros(n_t)]))
    sizes = (n, n_others, n_t)

    def rows_of(*blocks: Any) -> Any:
        """One block of constraint rows; None stands for zeros."""
        count = next(block.shape[0] for block in blocks if block is not None)
        filled = [sp.csr_array((count, k)) if b is None else b for b, k in zip(blocks, sizes, strict=True)]
        return sp.hstack(filled)

    matrix: list[Any] = [sp.hstack([rows, sp.csr_array((n_rows, n_t))])]
    right = [rhs]
    if region.nonnegative is not None and region.nonnegative.any():
        signed = np.flatnonzero(region.nonnegative)
        matrix.append(rows_of(-sp.eye_array(n, format="csr")[signed], None, None))
        right.append(np.zeros(len(signed)))
    if isinstance(region, L1):
        matrix += [rows_of(sign * sp.eye_array(n), None, -sp.eye_array(n)) for sign in (1.0, -1.0)]
        right.append(np.zeros(2 * n))
        if np.isfinite(region.radius):
            matrix.append(rows_of(None, None, sp.csr_array(np.ones((1, n)))))
            right.append(np.array([region.radius]))
    cones: list[Any] = [clarabel.NonnegativeConeT(sum(block.shape[0] for block in matrix))]
    if isinstance(region, L2) and np.isfinite(region.radius):
        matrix.append(rows_of(sp.vstack([sp.csr_array((1, n)), -sp.eye_array(n)]), None, None))
        right.append(np.concatenate([[region.radius], np.zeros(n)]))
        cones.append(clarabel.SecondOrderConeT(n + 1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy
    program = clarabel.DefaultSolver(
        sp.csc_matrix(quadratic),
        np.concatenate([linear, np.full(n_t, price)]),
        sp.csc_matrix(sp.vstack(matrix)),
        np.concatenate(right),
        cones,
        settings,
    )
    answer = program.solve()
    return np.asarray(answer.x)[:n], np.asarray(answer.z)[:n_rows]
