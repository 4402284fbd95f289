"""Block Frank-Wolfe in groups of examples, on threads and on shards, against visits one by one; mixing of perceptrons.

    python -m benchmarks.solvers.block_frank_wolfe [--gap 0.01] [--most 400] [--jobs 2] [--shards 2 4 8] [--data DIR]

Folds 1 to 9 of the OCR letters: 6,251 words, dense features that all examples share, C = 0.1. Every run goes to the
certified relative gap, or to the most passes. Ratios are those to the run with single visits, in the same process.
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import maxmargin as mm
from benchmarks import workloads
from benchmarks.timing import significant
from maxmargin.execution import Serial
from maxmargin.training import Examples


def problem_of(folder: Path) -> tuple[mm.Problem, Any]:
    """The problem and its encoder."""
    estimator = mm.ChainSVM(C=0.1)
    examples, settings = (
        Examples.fit(estimator._encoder(), *workloads.letters(folder, range(1, 10))),
        estimator._settings(),
    )
    return examples.problem(settings, settings.C), examples.encoder


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def timed(problem: mm.Problem, solver: Any, **options: Any) -> tuple[mm.Solution, dict[str, Any]]:
    used, began = cpu(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = mm.solve(problem, solver, random_state=0, **options)
    passes = solution.counters.iterations
    return solution, {
        "passes": passes,
        "relative gap": significant(solution.certificate.relative_gap),
        "CPU s": significant(cpu() - used),
        "wall s": significant(time.perf_counter() - began),
        "CPU s a pass": significant((cpu() - used) / max(passes, 1)),
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    (problem, encoder), test = problem_of(options.data), workloads.letters(options.data, [0])
    stop = mm.Stop(tol=options.gap, max_iter=options.most)
    rows: dict[str, Any] = {}
    for label, size, jobs in (
        ("single visits", 1, 1),
        ("groups of 16, 1 thread", 16, 1),
        (f"groups of 16, {options.jobs} threads", 16, options.jobs),
    ):
        solution, rows[label] = timed(problem, mm.BlockFrankWolfe(group=size), stop=stop, n_jobs=jobs)
        rows[label]["weights"] = f"{hash(solution.weights.tobytes()) & 0xFFFFFFFF:08x}"
    for shards in options.shards:
        _, rows[f"{shards} shards"] = timed(problem, mm.BlockFrankWolfe(), stop=stop, executor=Serial(shards))
    first = rows["single visits"]
    for row in rows.values():
        for what in ("passes", "CPU s", "wall s"):
            row[f"{what}, ratio"] = significant(row[what] / first[what])
    mixed = {}
    for shards in (1, *options.shards):
        solution, row = timed(problem, mm.AveragedPerceptron(), executor=Serial(shards))
        mixed[f"{shards} shards"] = (
            row["passes"],
            round(100 * (1 - mm.Model(solution.weights, encoder).score(*test)), 2),
        )
    return {
        "examples": problem.n_examples,
        "weights": problem.n_weights,
        "block Frank-Wolfe": rows,
        "averaged perceptron, passes and test error in percent": mixed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gap", type=float, default=0.01)
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--shards", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--data", type=Path, default=workloads.DATA)
    options = parser.parse_args()
    print(json.dumps(run(options), indent=1))


if __name__ == "__main__":
    main()
