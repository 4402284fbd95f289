"""Convex programs over the weights and other variables, solved by Clarabel; used by both reference programs.

The region's penalty and constraints are added here, from its :class:`~maxmargin.regions.ConicForm`. Cost: a sparse
factorization per iteration of the interior-point method.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._sparse import sp
from maxmargin.regions import Region
from maxmargin.structures.base import FloatArray


def minimize(
    region: Region, linear: FloatArray, curvature: FloatArray, rows: Any, rhs: FloatArray, accuracy: float
) -> tuple[FloatArray, FloatArray]:
    """``min penalty(w) + linear'(w, v) + 1/2 sum_j curvature_j v_j^2  s.t.  rows (w, v) <= rhs, w in W``.

    Args:
        region: the region of the weights, with a conic form.
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
    form = region.conic_form(n)
    n_t = len(form.cost)
    quadratic = sp.diags_array(np.concatenate([np.full(n, form.curvature), curvature, np.zeros(n_t)]))
    nothing = sp.csr_array((len(form.rhs), n_others))
    matrix = [
        sp.hstack([rows, sp.csr_array((n_rows, n_t))]),
        sp.hstack([form.rows[:, :n], nothing, form.rows[:, n:]]),
    ]
    right = [rhs, form.rhs]
    cones: list[Any] = [clarabel.NonnegativeConeT(n_rows + len(form.rhs))]
    if np.isfinite(form.radius):
        ball = sp.vstack([sp.csr_array((1, n)), -sp.eye_array(n)])
        matrix.append(sp.hstack([ball, sp.csr_array((n + 1, n_others + n_t))]))
        right.append(np.concatenate([[form.radius], np.zeros(n)]))
        cones.append(clarabel.SecondOrderConeT(n + 1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy
    program = clarabel.DefaultSolver(
        sp.csc_matrix(quadratic),
        np.concatenate([linear, form.cost]),
        sp.csc_matrix(sp.vstack(matrix)),
        np.concatenate(right),
        cones,
        settings,
    )
    answer = program.solve()
    return np.asarray(answer.x)[:n], np.asarray(answer.z)[:n_rows]
