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
        found: list[FloatArray] = []
        for tight in combinations(range(len(rows)), n - rank):
            matrix = np.vstack([equations, rows[list(tight)]])
            if n and np.linalg.matrix_rank(matrix) < n:
                continue
            z = np.linalg.lstsq(matrix, np.concatenate([program.e, rhs[list(tight)]]), rcond=None)[0]
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
