"""Feature products and their adjoints, against NumPy and SciPy in the same run.

``python -m benchmarks.kernels.features [--small] [--repeat 15]`` prints JSON: for each workload the least CPU time of
each product on one thread, and the time of NumPy or SciPy divided by ours (above 1: ours is faster); and how much
faster two threads are than one, by the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

from benchmarks.timing import best_of, timed
from maxmargin import threads
from maxmargin.features import PartFeatures
from maxmargin.features.rows import Rows


def on(count: int, call: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> None:
        with threads(count):
            call()

    return run


def compare(theirs: str, other: Callable[[], Any], ours: Callable[[], Any], repeats: int) -> dict[str, float]:
    alone, both = on(1, ours), on(2, ours)
    clock = best_of(repeats, {"one": alone, "two": both}, warm_up=True)
    other()  # page faults, lazy copies
    taken = {theirs: timed(other, repeats)[1], "one_thread": timed(alone, repeats)[1]}
    return {
        **{f"{name}_ms": round(1e3 * value, 3) for name, value in taken.items()},
        f"{theirs}_over_one_thread": round(taken[theirs] / taken["one_thread"], 2),
        "one_thread_over_two": round(clock["one"] / clock["two"], 2),
    }


def vectors(matrix: Any, name: str, repeat: int, rng: np.random.Generator) -> dict[str, Any]:
    """One weight vector; the fused pair against two separate products."""
    n, d = matrix.shape
    features = PartFeatures(matrix, [0, n])
    w1, w2 = rng.standard_normal((2, d))
    z1, z2 = rng.random((2, n))
    return {
        "scores": compare(name, lambda: matrix @ w1, lambda: features.scores(w1), repeat),
        "adjoint": compare(name, lambda: matrix.T @ z1, lambda: features.adjoint(z1), repeat),
        "scores_pair": compare(
            f"{name}_twice", lambda: (matrix @ w1, matrix @ w2), lambda: features.scores_pair(w1, w2), repeat
        ),
        "adjoint_pair": compare(
            f"{name}_twice", lambda: (matrix.T @ z1, matrix.T @ z2), lambda: features.adjoint_pair(z1, z2), repeat
        ),
    }


def labels(matrix: Any, k: int, name: str, repeat: int, rng: np.random.Generator) -> dict[str, Any]:
    n, d = matrix.shape
    rows = Rows(matrix, "X")
    w, z = rng.standard_normal((d, k)), rng.random((n, k))

    def scores() -> None:
        rows.times(w, k, np.empty((n, k)))

    def adjoint() -> None:
        rows.transpose_times(z, k, np.empty((d, k)))

    return {
        "scores": compare(name, lambda: matrix @ w, scores, repeat),
        "adjoint": compare(name, lambda: matrix.T @ z, adjoint, repeat),
    }


def sparse(n: int, d: int, per_row: int, rng: np.random.Generator, *, skewed: bool) -> sp.csr_array:
    """Rows of ``per_row`` nonzeros, most of them 1; ``skewed``: column frequencies are distributed like words."""
    if skewed:
        columns = np.minimum((d ** rng.random((n, per_row))).astype(np.int32), d - 1)
        columns[:, 0] = 0
        columns = rng.permutation(d).astype(np.int32)[columns]
    else:
        columns = rng.integers(0, d, size=(n, per_row), dtype=np.int32)
    values = np.where(rng.random(n * per_row) < 0.9, 1.0, rng.random(n * per_row))
    starts = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    return sp.csr_array((values, np.sort(columns, axis=1).ravel(), starts), shape=(n, d))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a tenth of the rows, as a smoke test")
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--only", default="", help="run workloads whose name contains this")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    part = 10 if options.small else 1
    repeat = options.repeat
    workloads: dict[str, Callable[[], dict[str, Any]]] = {
        "dense 555000 x 30, one column": lambda: vectors(
            rng.standard_normal((555_000 // part, 30)), "numpy", repeat, rng
        ),
        "dense 200000 x 100, one column": lambda: vectors(
            rng.standard_normal((200_000 // part, 100)), "numpy", repeat, rng
        ),
        "dense 50000 x 128, 26 columns": lambda: labels(
            rng.standard_normal((50_000 // part, 128)), 26, "numpy", repeat, rng
        ),
        "sparse 200000 x 335000, 20 a row, 22 columns": lambda: labels(
            sparse(200_000 // part, 335_000 // part, 20, rng, skewed=False), 22, "scipy", repeat, rng
        ),
        "sparse skewed 200000 x 335000, 20 a row, 22 columns": lambda: labels(
            sparse(200_000 // part, 335_000 // part, 20, rng, skewed=True), 22, "scipy", repeat, rng
        ),
        "sparse 200000 x 2000, 20 a row, 22 columns": lambda: labels(
            sparse(200_000 // part, 2_000, 20, rng, skewed=False), 22, "scipy", repeat, rng
        ),
        "sparse 500000 x 20000, 20 a row, one column": lambda: vectors(
            sparse(500_000 // part, 20_000, 20, rng, skewed=False), "scipy", repeat, rng
        ),
        "sparse skewed 500000 x 300000, 20 a row, one column": lambda: vectors(
            sparse(500_000 // part, 300_000, 20, rng, skewed=True), "scipy", repeat, rng
        ),
    }
    results = {name: run() for name, run in workloads.items() if options.only in name}
    json.dump({"rows_divided_by": part, "repeat": repeat, "results": results}, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
