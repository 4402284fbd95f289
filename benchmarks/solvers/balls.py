"""Balls and L1 norms: seconds of simplicial decomposition and of extragradient to a certified gap.

    python -m benchmarks.solvers.balls [--seconds 15] [--tol 1e-3] [--only cuts]

The data is that of ``auto.py``: noisy chains and cuts. Extragradient takes margin rescaling with linear
slack alone. One thread, seconds of CPU time; a run ends after ``--seconds`` of them. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.solvers.auto import chains, cuts
from benchmarks.timing import Budget, significant
from maxmargin.training import Examples

TASKS = {
    "chains": (mm.ChainSVM, chains, 2_000, 300),
    "cuts": (mm.CutSVM, cuts, 100, 15),
}
"""Estimators, and makers of so many examples with so many weights."""
REGIONS: dict[str, dict[str, Any]] = {
    "ball of radius 3": {"radius": 3.0},
    "ball of radius 1e8": {"radius": 1e8},
    "L1 ball of radius 8": {"norm": "l1", "radius": 8.0},
    "L1 penalty, C = 0.02": {"norm": "l1", "C": 0.02},
}
SOLVERS = {"simplicial decomposition": mm.SimplicialDecomposition(), "extragradient": mm.Extragradient()}
HINGES = (("margin", "linear"), ("margin", "quadratic"), ("slack", "linear"))


def solve(problem: mm.Problem, solver: Any, tol: float, limit: float) -> dict[str, Any]:
    """How one run ended."""
    budget = Budget(limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stop = mm.Stop(tol=tol, max_iter=10**7)
        solution = mm.solve(problem, solver, stop=stop, callbacks=[budget], n_jobs=1, random_state=0)
    return {
        "cpu_seconds": significant(budget.used()),
        "relative_gap": significant(solution.certificate.relative_gap),
        "status": str(solution.status),
        "passes": solution.counters.argmax,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--only", choices=list(TASKS), help="one structure")
    options = parser.parse_args()
    rows: dict[str, Any] = {}
    for name, (estimator, make, examples, weights) in TASKS.items():
        if options.only and name != options.only:
            continue
        X, y = make(examples, weights, np.random.default_rng(0))
        for region, settings in REGIONS.items():
            for rescaling, slack in HINGES:
                if "penalty" in region and slack == "linear":
                    continue  # a linear program: column_generation.py
                chosen = estimator(rescaling=rescaling, slack=slack, **settings)
                given = chosen._settings()
                problem = Examples.fit(chosen._encoder(), X, y).problem(given, given.grid[0])
                row = rows.setdefault(f"{region}, {rescaling}, {slack}", {}).setdefault(name, {})
                for label, solver in SOLVERS.items():
                    if not solver.unsupported(problem):
                        row[label] = solve(problem, solver, options.tol, options.seconds)
                print(json.dumps({f"{name}, {region}, {rescaling}, {slack}": row}), file=sys.stderr, flush=True)
    sizes = {name: {"examples": examples, "weights": weights} for name, (_, _, examples, weights) in TASKS.items()}
    print(json.dumps({"tol": options.tol, "tasks": sizes, "runs": rows}, indent=1))


if __name__ == "__main__":
    main()
