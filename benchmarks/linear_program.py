"""Linear programs: projection and argmax of three-way matchings, beside general solvers in the same run.

Per example, in microseconds of processor time: Newton's method on the multipliers from scratch and from the multipliers
of a nearby point, one call of Clarabel for the whole batch, the active set over vertices, and the simplex method of
HiGHS from scratch and from the basis of a nearby point.

    OPENBLAS_NUM_THREADS=1 python benchmarks/linear_program.py
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.structures import LinearProgram, generic

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracles import reference

EXAMPLES = 60


def constraints(size: int) -> np.ndarray:
    triples = np.array(list(product(range(size), repeat=3)))
    A = np.zeros((3 * size, len(triples)))
    for side in range(3):
        A[side * size + triples[:, side], np.arange(len(triples))] = 1.0
    return A


def timed(call: Callable[[], Any], rounds: int = 3) -> tuple[Any, float]:
    best, found = np.inf, None
    for _ in range(rounds):
        start = time.process_time()
        found = call()
        best = min(best, time.process_time() - start)
    return found, best / EXAMPLES * 1e6


def main() -> None:
    rng = np.random.default_rng(0)
    rows: dict[str, dict[str, float]] = {}
    for size in (3, 4, 6):
        A = constraints(size)
        structure = LinearProgram([A] * EXAMPLES, [np.ones(3 * size)] * EXAMPLES, relaxed=True)
        point = rng.normal(size=structure.n_parts)
        near = point + 0.02 * rng.normal(size=structure.n_parts)
        structure.project(point)
        found, cold = timed(lambda s=structure, a=point: s.project(a))
        _, warm = timed(lambda s=structure, a=near, w=found.warm: s.project(a, warm=w))
        _, interior = timed(lambda s=structure, a=point: reference.project(s, a), 1)
        slow, vertices = timed(lambda s=structure, a=point: generic.project(s, a), 1)
        best, simplex = timed(lambda s=structure, a=point: s.argmax(a))
        _, again = timed(lambda s=structure, a=near, w=best.warm: s.argmax(a, warm=w))
        rows[f"{size}^3 triples"] = {
            "newton_us": round(cold),
            "newton_warm_us": round(warm),
            "clarabel_us": round(interior),
            "vertices_us": round(vertices),
            "simplex_us": round(simplex),
            "simplex_warm_us": round(again),
            "newton_and_vertices_differ_by": float(f"{np.abs(found.z - slow.z).max():.1e}"),
        }
    print(json.dumps({"benchmark": "linear_program", "examples": EXAMPLES, "per_example": rows}))


if __name__ == "__main__":
    main()
