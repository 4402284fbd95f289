"""Handwritten words (OCR letters, fold 0): seconds to a certified gap in entropic and in Euclidean geometry.

    python benchmarks/letters.py [--data ../shared/data] [--seconds 20] [--tol 1e-3]

26 labels, 26 x 128 node weights and 26 x 26 transitions, no bias, Hamming loss, ``C = 0.1``, one thread. The Euclidean
run is the peer: the same solver, projecting.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np

import maxmargin as mm

SOLVERS: dict[str, mm.solvers.Solver] = {
    "dual extragradient, entropic": mm.DualExtragradient(geometry=mm.Entropic()),
    "dual extragradient, entropic, memory-efficient": mm.DualExtragradient(geometry=mm.Entropic(), store_duals=False),
    "extragradient, entropic": mm.Extragradient(geometry=mm.Entropic()),
    "extragradient, Euclidean": mm.Extragradient(geometry=mm.Euclidean()),
}


def words(path: Path, fold: int) -> tuple[list[np.ndarray], list[list[int]]]:
    data = np.load(path)
    chosen = data["fold"][data["word"]] == fold
    X, y, word = data["X"][chosen].astype(np.float64), data["y"][chosen], data["word"][chosen]
    cuts = np.flatnonzero(np.diff(word)) + 1
    return np.split(X, cuts), [labels.tolist() for labels in np.split(y, cuts)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    folder = os.environ.get("MAXMARGIN_DATA", str(Path(__file__).parents[1] / "../shared/data"))
    parser.add_argument("--data", type=Path, default=Path(folder))
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--tol", type=float, default=1e-3)
    options = parser.parse_args()
    file = options.data / "letters/letters.npz"
    if not file.exists():
        sys.exit(f"{file} is not there: give --data or set MAXMARGIN_DATA")
    X, y = words(file, 0)
    warnings.simplefilter("ignore")
    rows = {}
    for name, solver in SOLVERS.items():
        model = mm.ChainSVM(C=0.1, solver=solver, tol=options.tol, max_iter=10**6, max_seconds=options.seconds)
        solution = model.fit(X, y).solution_
        rows[name] = {
            "status": str(solution.status),
            "seconds": round(solution.seconds, 2),
            "iterations": solution.counters.iterations,
            "relative_gap": float(f"{solution.certificate.relative_gap:.2g}"),
            "primal": round(solution.certificate.primal, 2),
        }
    print(json.dumps({"benchmark": "letters", "words": len(X), "tol": options.tol, "runs": rows}, indent=1))


if __name__ == "__main__":
    main()
