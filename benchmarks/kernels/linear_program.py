"""Linear programs: projection and argmax of three-way matchings, and general solvers in the same run.

Microseconds of CPU time per example: Newton's method on the multipliers, cold and from the multipliers of a nearby
point; Clarabel, one call for the whole batch; the active-set method over vertices; and the simplex method of HiGHS,
cold and from the basis of a nearby point.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.kernels.linear_program
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.timing import significant, timed
from examples.tripartite_matching import constraints
from maxmargin.structures import LinearProgram
from maxmargin.structures.fallbacks import generic
from tests.oracles import reference

EXAMPLES = 60


def microseconds(call: Callable[[], Any], repeats: int = 3) -> tuple[Any, float]:
    result, seconds = timed(call, repeats)
    return result, seconds / EXAMPLES * 1e6


def main() -> None:
    rng = np.random.default_rng(0)
    rows: dict[str, dict[str, float]] = {}
    for size in (3, 4, 6):
        A = constraints(size)
        structure = LinearProgram([A] * EXAMPLES, [np.ones(3 * size)] * EXAMPLES, relaxed=True)
        point = rng.normal(size=structure.n_parts)
        near = point + 0.02 * rng.normal(size=structure.n_parts)
        structure.project(point)
        found, cold = microseconds(lambda s=structure, a=point: s.project(a))
        _, warm = microseconds(lambda s=structure, a=near, w=found.warm: s.project(a, warm=w))
        _, interior = microseconds(lambda s=structure, a=point: reference.project(s, a), 1)
        slow, vertices = microseconds(lambda s=structure, a=point: generic.project(s, a), 1)
        best, simplex = microseconds(lambda s=structure, a=point: s.argmax(a))
        _, again = microseconds(lambda s=structure, a=near, w=best.warm: s.argmax(a, warm=w))
        rows[f"{size}^3 triples"] = {
            "newton_us": round(cold),
            "newton_warm_us": round(warm),
            "clarabel_us": round(interior),
            "vertices_us": round(vertices),
            "simplex_us": round(simplex),
            "simplex_warm_us": round(again),
            "newton_and_vertices_differ_by": significant(np.abs(found.z - slow.z).max()),
        }
    print(json.dumps({"examples": EXAMPLES, "per_example": rows}))


if __name__ == "__main__":
    main()
