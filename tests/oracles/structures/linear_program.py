"""Enumeration for linear programs: all vertices from all choices of tight constraints, and all whole points."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from maxmargin.structures.base import FloatArray
from maxmargin.structures.programs.linear_program import LinearProgram


def vertices(structure: LinearProgram) -> list[FloatArray]:
    """All vertices of each example, shape ``(number of vertices, n_parts)``; for up to about 5 parts and 10 rows."""
    listed = []
    for program in structure.programs:
        n = program.n
        rows = np.vstack([program.A.toarray(), np.eye(n), -np.eye(n)])
        rhs = np.concatenate([program.b, program.u, np.zeros(n)])
        equations = program.E.toarray()
        rank = int(np.linalg.matrix_rank(equations)) if equations.size else 0
        chosen = np.array(list(combinations(range(len(rows)), n - rank)), dtype=np.int64)
        matrices = np.concatenate([np.broadcast_to(equations, (len(chosen), *equations.shape)), rows[chosen]], axis=1)
        values = np.hstack([np.broadcast_to(program.e, (len(chosen), len(program.e))), rhs[chosen]])
        if n:
            full = np.linalg.matrix_rank(matrices) == n
            matrices, values = matrices[full], values[full]
            rough = (np.linalg.pinv(matrices) @ values[:, :, None])[:, :, 0]
            inside = (rough @ rows.T <= rhs + 1e-6 * (1.0 + np.abs(rough).max(axis=1, initial=0.0))[:, None]).all(
                axis=1
            )
            matrices, values = matrices[inside], values[inside]
        found: list[FloatArray] = []
        for matrix, value in zip(matrices, values, strict=True):
            z = np.linalg.lstsq(matrix, value, rcond=None)[0]
            if program.violation(z) <= 1e-9 and all(np.abs(z - other).max(initial=0.0) > 1e-7 for other in found):
                found.append(z)
        listed.append(np.array(found).reshape(len(found), n))
    return listed


def whole_points(structure: LinearProgram) -> list[FloatArray]:
    """All points of whole numbers of each example, shape ``(number of points, n_parts)``; for up to about 12 parts."""
    listed = []
    for program in structure.programs:
        ranges = [range(int(np.floor(bound + 1e-9)) + 1) for bound in program.u]
        found = [np.array(z, dtype=np.float64) for z in product(*ranges)]
        constraints = [z for z in found if program.violation(z) <= 1e-9]
        listed.append(np.array(constraints).reshape(len(constraints), program.n))
    return listed
