"""Independent answers from general solvers, for small problems: projections by Clarabel, linear maxima by HiGHS."""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from maxmargin.structures.base import FloatArray, Polytope, Structure


def _polytope(structure: Structure) -> Polytope:
    polytope = structure.polytope()
    if polytope is None:
        raise ValueError(f"{structure.name} has no linear description")
    return polytope


def conic(
    quadratic: Any, linear: FloatArray, rows: Any, rhs: FloatArray, cones: list[Any], *, tol: float = 1e-11
) -> tuple[FloatArray, float]:
    """Minimizer and minimum of ``x'Qx/2 + linear'x``, with ``rhs - rows x`` in the cones, by Clarabel."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    upper = sp.triu(sp.csc_matrix(quadratic), format="csc")
    answer = clarabel.DefaultSolver(upper, linear, sp.csc_matrix(rows), np.asarray(rhs), cones, settings).solve()
    return np.asarray(answer.x), float(answer.obj_val)


def project(structure: Structure, point: FloatArray) -> FloatArray:
    """Euclidean projection of a packed point by an interior-point method; shape ``(n_parts,)``."""
    polytope = _polytope(structure)
    n = polytope.lift.shape[1]
    quadratic = sp.csc_matrix(polytope.lift.T @ polytope.lift)
    linear = -(polytope.lift.T @ point)
    eq = polytope.eq if polytope.eq.shape[1] == n else sp.csr_array((0, n))
    rows = sp.csc_matrix(sp.vstack([eq, polytope.ub, -sp.eye_array(n)]))
    rhs = np.concatenate([polytope.eq_rhs, polytope.ub_rhs, np.zeros(n)])
    cones: list[Any] = [clarabel.ZeroConeT(eq.shape[0]), clarabel.NonnegativeConeT(polytope.ub.shape[0] + n)]
    return np.asarray(polytope.lift @ conic(quadratic, linear, rows, rhs, cones, tol=1e-12)[0], dtype=np.float64)


def maximum(structure: Structure, scores: FloatArray) -> float:
    """``max_z scores'z`` over the whole batch by HiGHS."""
    polytope = _polytope(structure)
    n = polytope.lift.shape[1]
    has_eq = polytope.eq.shape[1] == n and polytope.eq.shape[0] > 0
    answer = linprog(
        -(polytope.lift.T @ scores),
        A_ub=polytope.ub if polytope.ub.shape[0] else None,
        b_ub=polytope.ub_rhs if polytope.ub.shape[0] else None,
        A_eq=polytope.eq if has_eq else None,
        b_eq=polytope.eq_rhs if has_eq else None,
        bounds=(0, None),
        method="highs",
    )
    if answer.status != 0:
        raise RuntimeError(f"reference linear program failed: {answer.message}")
    return float(-answer.fun)
