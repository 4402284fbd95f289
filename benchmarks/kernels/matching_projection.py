"""Time matching projections and argmax against SciPy's linear assignment; prints one JSON object.

Workload: an extragradient-like run on random word alignments. Each matrix has a random gold matching; its scores are
noise plus a bonus on the gold edges, and change a little at every iteration. Iteration ``t`` projects
``point_t = z_{t-1} + step * scores_t``. The last of 12 points is timed:

    warm   from the duals of the previous projection (a slightly different point)
    cold   without duals
    again  from the duals of the same point, a lower limit

The peer is ``scipy.optimize.linear_sum_assignment`` in a Python loop over the same matrices, in the same process. All
times are the best of several repeats, in CPU time, and the gain of two threads by the clock.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.timing import best_of, timed
from maxmargin import _kernels, threads
from maxmargin.structures.base import Points
from maxmargin.structures.matchings.matching import Matching


def workload(n: int, size: int, density: float, mean: float, seed: int) -> tuple[Matching, np.ndarray, Any]:
    rng = np.random.default_rng(seed)
    shapes = np.full((n, 2), size)
    gold = np.zeros((n, size, size))
    for i in range(n):
        links = int(0.8 * size)
        gold[i, rng.permutation(size)[:links], rng.permutation(size)[:links]] = 1
    noise = rng.normal(size=(n, size, size))
    drift = rng.normal(size=(n, size, size))
    kept = np.ones((n, size, size), dtype=bool)
    if density < 1:
        kept = (rng.random((n, size, size)) < density) | (gold > 0)
        edges = np.argwhere(kept)
        structure = Matching(shapes, edges[:, 1:], np.concatenate([[0], np.cumsum(kept.sum(axis=(1, 2)))]))
    else:
        structure = Matching.dense(shapes)
    noise, drift, y = noise[kept], drift[kept], gold[kept]
    z, warm, step = y.copy(), None, 0.3
    point = y
    for t in range(12):
        scores = 0.8 * noise + mean + (0.05 * t - 0.3) * y + 0.02 * t * drift
        point = z + step * scores
        if t < 11:
            answer = structure.project(point, warm=warm)
            z, warm = answer.z, answer.warm
    return structure, point, warm


def steps(structure: Matching, point: np.ndarray, warm: Any) -> list[float]:
    n = structure.n_examples
    duals = np.zeros(int(structure.shapes.sum())) if warm is None else warm.copy()
    count = np.zeros((n, 2), dtype=np.int32)
    out = (np.empty(structure.n_parts), np.empty(n), np.empty(n, dtype=np.int8), count, 1)
    _kernels.matching_project(structure._batch, point, 1e-8, warm is not None, duals, *out)
    return [float(count[:, 0].mean()), float(count[:, 1].mean()), int(count[:, 0].max()), int(count[:, 1].max())]


def in_threads(n: str, call: Callable[[], Any]) -> Any:
    with threads(int(n)):
        return call()


def measure(n: int, size: int, density: float, mean: float, repeats: int) -> dict[str, Any]:
    structure, point, warm = workload(n, size, density, mean, seed=size)
    same = structure.project(point).warm
    matrices = np.zeros((n, size, size))
    example = np.repeat(np.arange(n), np.diff(structure.blocks[0].offsets))
    matrices[example, structure.edges[:, 0], structure.edges[:, 1]] = point

    def peer() -> None:
        for matrix in matrices:
            linear_sum_assignment(matrix, maximize=True)

    def project(start: Any) -> Points:
        return structure.project(point, warm=start)

    calls: dict[str, Callable[[], Any]] = {
        "peer": peer,
        "warm": lambda: project(warm),
        "cold": lambda: project(None),
        "again": lambda: project(same),
        "argmax": lambda: structure.argmax(point),
    }
    times = {name: timed(call, repeats)[1] for name, call in calls.items()}
    clock = best_of(repeats, {n: lambda n=n: in_threads(n, lambda: project(warm)) for n in ("1", "2")})
    exact = structure.project(point, tol=1e-14)
    gap = max(float(np.abs(structure.project(point, warm=start).z - exact.z).max()) for start in (None, warm, same))
    return {
        "matrices": n,
        "size": f"{size}x{size}",
        "density": density,
        "mean_score": mean,
        "microseconds": {name: round(1e6 * value / n, 3) for name, value in times.items()},
        "over_peer": {name: round(times[name] / times["peer"], 3) for name in ("warm", "cold", "argmax")},
        "speedup_2_threads": round(clock["1"] / clock["2"], 2),
        "steps_warm": steps(structure, point, warm),
        "steps_cold": steps(structure, point, None),
        "positive_duals": round(float((same > 0).mean()), 3),
        "largest_difference": gap,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="a tenth of the matrices")
    settings = parser.parse_args()
    share = 10 if settings.quick else 1
    cases = [
        (5000, 10, 1.0, 0.0),
        (2000, 20, 1.0, 0.0),
        (500, 40, 1.0, 0.0),
        (2000, 20, 0.25, 0.0),
        (500, 40, 0.1, 0.0),
        (5000, 10, 1.0, 0.7),
        (2000, 20, 1.0, 0.7),
        (5000, 10, 1.0, -0.7),
    ]
    answer = {
        "definitions": {
            "point": "z_prev + 0.3 * loss-augmented scores, 12th iteration of an extragradient-like run",
            "warm": "duals of the previous iteration's projection",
            "cold": "no duals, warm=None",
            "again": "duals of the same point",
            "peer": "scipy linear_sum_assignment in a Python loop over the same matrices (missing edges are 0)",
            "mean_score": "mean loss-augmented score of an edge; above 0 nearly all nodes are at capacity",
            "steps": "Newton steps and fallbacks: mean, mean, max, max",
        },
        "cases": [measure(n // share, size, density, mean, settings.repeats) for n, size, density, mean in cases],
    }
    print(json.dumps(answer, indent=1))


if __name__ == "__main__":
    main()
