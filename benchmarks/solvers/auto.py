"""What ``solver="auto"`` picks for a ridge penalty, and what both solvers that it picks from cost there.

    python -m benchmarks.solvers.auto [--small] [--only chains] [--quadratic] [--seconds 60] [--tol 1e-3]

Synthetic chains, matchings, cuts and lists of several sizes and values of C. Every run is a process of its own, one
thread: CPU seconds of the solver alone and by how much it raised the peak of resident memory. One JSON object.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.timing import Budget, significant

Data = tuple[list[Any], list[Any]]


@dataclass(frozen=True)
class Case:
    """Examples of a structure with so many weights, and C."""

    kind: str
    examples: int
    weights: int
    C: float
    quadratic: bool = False

    def __str__(self) -> str:
        slack = ", quadratic slack" if self.quadratic else ""
        return f"{self.examples:,} {self.kind}, {self.weights:,} weights, C = {self.C:g}{slack}"


SMALL = (Case("chains", 100, 108, 1.0), Case("lists", 200, 10, 0.1), Case("matchings", 50, 10, 0.1))
CASES = (
    *(Case("chains", n, 8, C) for n in (1_000, 100_000) for C in (0.01, 1.0)),
    *(Case("chains", n, 300, C) for n in (100, 1_000, 10_000) for C in (0.01, 1.0)),
    *(Case("chains", 100_000, 300, C) for C in (1e-3, 0.01)),
    *(Case("chains", n, 3_000, C) for n in (100, 1_000, 5_000) for C in (0.01, 1.0)),
    *(Case("matchings", n, d, C) for n, d in ((2_000, 10), (100, 300), (1_000, 300)) for C in (0.01, 1.0)),
    *(Case("cuts", n, d, C) for n, d in ((100, 12), (20, 300), (200, 300)) for C in (0.001, 0.1)),
    *(Case("lists", n, 10, C) for n in (1_000, 100_000) for C in (0.01, 1.0)),
    *(Case("lists", n, 300, C) for n in (1_000, 10_000) for C in (0.01, 1.0)),
)


def chains(n: int, weights: int, rng: np.random.Generator) -> Data:
    """About ten positions, two labels for few weights and else ten."""
    labels = 10 if weights >= 110 else 2
    d = (weights - labels**2) // labels
    ends = np.cumsum(np.maximum(1, rng.poisson(10, size=n)))
    x = rng.normal(size=(ends[-1], d))
    scores = x @ rng.normal(size=(d, labels)) + 0.2 * np.sqrt(d) * rng.normal(size=(ends[-1], labels))
    y = scores.argmax(axis=1)
    y[1:] = np.where(rng.random(len(y) - 1) < 0.2, y[:-1], y[1:])  # labels like to repeat
    return np.split(x, ends[:-1]), [part.tolist() for part in np.split(y, ends[:-1])]


def matchings(n: int, weights: int, rng: np.random.Generator) -> Data:
    """Pairs of eight by eight, gold links by hidden weights and noise."""
    from scipy.optimize import linear_sum_assignment

    hidden, X, y = rng.normal(size=weights), [], []
    for _ in range(n):
        x = rng.normal(size=(8, 8, weights))
        scores = x @ hidden + np.sqrt(weights) * rng.normal(size=(8, 8))
        X.append(x)
        y.append(np.column_stack(linear_sum_assignment(scores, maximize=True)))
    return X, y


def cuts(n: int, weights: int, rng: np.random.Generator) -> Data:
    """Grids of 15 by 15, a disk in noise."""
    import maxmargin as mm
    from benchmarks import workloads

    at, edges, X, y = np.indices((15, 15)).reshape(2, -1).T, workloads.grid_edges(15, 15), [], []
    for _ in range(n):
        inside = (np.abs(at - rng.uniform(4, 11, size=2)) ** 2).sum(axis=1) < rng.uniform(6, 30)
        x = rng.normal(size=(225, weights - 2))
        x[:, 0] += 2 * inside - 1
        alike = np.exp(-np.abs(x[edges[:, 0], 0] - x[edges[:, 1], 0]))
        X.append(mm.Graph(x, edges, np.column_stack([np.ones(len(edges)), alike])))
        y.append(inside.astype(np.int64))
    return X, y


def lists(n: int, weights: int, rng: np.random.Generator) -> Data:
    """Ten candidates, the best one by hidden weights and noise."""
    x = rng.normal(size=(n, 10, weights))
    scores = x @ rng.normal(size=weights) + 0.5 * np.sqrt(weights) * rng.normal(size=(n, 10))
    return list(x), scores.argmax(axis=1).tolist()


def problem_of(case: Case) -> Any:
    """The problem of a case."""
    import maxmargin as mm
    from maxmargin.training import Examples

    kinds = {"chains": mm.ChainSVM, "matchings": mm.MatchingSVM, "cuts": mm.CutSVM, "lists": mm.CandidatesSVM}
    slack = "quadratic" if case.quadratic else "linear"
    estimator = kinds[case.kind](C=case.C, slack=slack, rescaling="none" if case.kind == "lists" else "margin")
    X, y = globals()[case.kind](case.examples, case.weights, np.random.default_rng(0))
    settings: Any = estimator._settings()
    return Examples.fit(estimator._encoder(), X, y).problem(settings, settings.C)


def measure(pipe: Any, case: Case, name: str, tol: float, seconds: float) -> None:
    """Solve the case and send the figures."""
    import maxmargin as mm
    from maxmargin.solvers import choose

    problem = problem_of(case)
    picked, why = choose(problem)
    solver = picked if name == "auto" else getattr(mm, name)()
    before, budget = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, Budget(seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = mm.solve(problem, solver, stop=mm.Stop(tol=tol), callbacks=[budget], n_jobs=1, random_state=0)
    used = budget.used()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row = {
        "cpu_seconds": significant(used),
        "MB": round((peak - before) / 1024),
        "iterations": solution.counters.iterations,
        "relative_gap": significant(solution.certificate.relative_gap),
        "status": str(solution.status),
    }
    pipe.send((row, type(picked).__name__, why, problem.structure.n_parts))


def run(case: Case, name: str, tol: float, seconds: float) -> Any:
    """The figures of one run in a process of its own; None if that died."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=measure, args=(theirs, case, name, tol, seconds))
    process.start()
    theirs.close()
    try:
        return mine.recv()
    except EOFError:
        return None
    finally:
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="three small cases")
    parser.add_argument("--only", help="one structure")
    parser.add_argument("--quadratic", action="store_true", help="quadratic slack, which one of the solvers takes")
    parser.add_argument("--case", nargs=4, metavar=("KIND", "EXAMPLES", "WEIGHTS", "C"), help="this case alone")
    parser.add_argument("--solvers", nargs="*", default=["BlockFrankWolfe", "SimplicialDecomposition"])
    parser.add_argument("--seconds", type=float, default=60.0, help="of CPU time, after which a run ends")
    parser.add_argument("--tol", type=float, default=1e-3)
    options = parser.parse_args()
    cases = list(SMALL if options.small else CASES)
    if options.case:
        kind, n, weights, C = options.case
        cases = [Case(kind, int(n), int(weights), float(C))]
    found: dict[str, Any] = {}
    for case in cases:
        if options.only and case.kind != options.only:
            continue
        if options.quadratic:
            case = Case(case.kind, case.examples, case.weights, case.C, quadratic=True)
        row: dict[str, Any] = {}
        for name in options.solvers:
            if options.quadratic and name == "BlockFrankWolfe":
                continue
            if (got := run(case, name, options.tol, options.seconds)) is None:
                row[name] = None
                continue
            row[name], row["picked"], row["why"], row["parts"] = got
        found[str(case)] = row
        print(json.dumps({str(case): row}), file=sys.stderr, flush=True)
    print(json.dumps({"tol": options.tol, "cases": found}, indent=1))


if __name__ == "__main__":
    main()
