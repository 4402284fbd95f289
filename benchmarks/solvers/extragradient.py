"""The papers' saddle-point methods against the improved ones: iterations and seconds to a certified gap.

Synthetic matchings, cuts and chains in penalty form, L2 and L1 balls. Each solver runs to a relative gap of 1e-3, 3,000
iterations or its seconds of CPU time, in its default geometry and, if that is not Euclidean, in Euclidean geometry too.
The exact solver gives the optimum, from which the relative error of each objective is computed.

    python -m benchmarks.solvers.extragradient [--jobs 2] [--seconds 10]
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

import maxmargin as mm
from benchmarks.timing import Budget, significant, timed
from benchmarks.workloads import grid_edges
from maxmargin.encoders import ChainEncoder, CutEncoder, Encoder, MatchingEncoder

SOLVERS: dict[str, mm.solvers.Solver] = {
    "extragradient": mm.Extragradient(),
    "extragradient, plain": mm.Extragradient.plain(),
    "dual extragradient": mm.DualExtragradient(),
    "dual extragradient, plain": mm.DualExtragradient.plain(),
    "dual extragradient, memory-efficient": mm.DualExtragradient(store_duals=False),
    "projected gradient": mm.ProjectedGradient(),
    "projected gradient, plain": mm.ProjectedGradient.plain(),
}
EUCLIDEAN: dict[str, mm.solvers.Solver] = {
    "extragradient, Euclidean": mm.Extragradient(geometry=mm.Euclidean()),
    "dual extragradient, Euclidean": mm.DualExtragradient(geometry=mm.Euclidean()),
    "dual extragradient, memory-efficient, Euclidean": mm.DualExtragradient(geometry=mm.Euclidean(), store_duals=False),
}
REGIONS: dict[str, dict[str, float]] = {
    "C = 1": {"C": 1.0},
    "C = 0.01": {"C": 0.01},
    "radius = 1": {"radius": 1.0},
    "L1 radius = 2": {"l1": 2.0},
}


def matchings(rng: np.random.Generator) -> tuple[Encoder, list[Any], list[Any]]:
    hidden, X, y = rng.normal(size=15), [], []
    for _ in range(60):
        x = 0.5 * rng.normal(size=(*rng.integers(6, 13, size=2), 15))
        scores = x @ hidden + rng.normal(size=x.shape[:2]) - 0.3
        structure = mm.structures.Matching.dense(np.array([x.shape[:2]]))
        X.append(x)
        y.append(structure.decode(structure.argmax(scores.ravel()).z)[0])
    return MatchingEncoder(), X, y


def cuts(rng: np.random.Generator) -> tuple[Encoder, list[Any], list[Any]]:
    side, hidden, X, y = 20, rng.normal(size=8), [], []
    for _ in range(3):
        label = (gaussian_filter(rng.normal(size=(side, side)), 3) > 0).astype(np.int64).ravel()
        features = rng.normal(size=(side * side, 8)) + 0.3 * np.outer(2 * label - 1, hidden)
        X.append(mm.Graph(np.column_stack([features, np.ones(side * side)]), grid_edges(side, side)))
        y.append(label)
    return CutEncoder(), X, y


def chains(rng: np.random.Generator) -> tuple[Encoder, list[Any], list[Any]]:
    nodes, pairs, X, y = rng.normal(size=(10, 6)), rng.normal(size=(6, 6)), [], []
    for _ in range(60):
        x = rng.normal(size=(int(rng.integers(3, 9)), 10))
        structure = mm.structures.Chain([len(x)], 6)
        scores = np.concatenate([(x @ nodes + rng.gumbel(size=(len(x), 6))).ravel(), pairs.ravel()])
        X.append(x)
        y.append(structure.decode(structure.argmax(scores).z)[0].tolist())
    return ChainEncoder(), X, y


def problems() -> Iterator[tuple[str, mm.Problem]]:
    for name, make in {"matchings": matchings, "cuts": cuts, "chains": chains}.items():
        encoder, X, y = make(np.random.default_rng(0))
        encoder = encoder.fit(X, y)[0]
        packed = encoder.transform(X)
        gold = encoder.encode(packed, y)
        for label, settings in REGIONS.items():
            signs = encoder.nonnegative()
            l1 = settings.get("l1")
            region = mm.regions.L1(l1, signs) if l1 else mm.regions.L2(nonnegative=signs, **settings)
            yield (
                f"{name}, {label}",
                mm.Problem.build(packed.structure, packed.features, gold, mm.losses.Hamming(), region),
            )


def measure(problem: mm.Problem, jobs: int, seconds: float) -> dict[str, Any]:
    exact, used = timed(lambda: mm.solve(problem, mm.Exact(), stop=mm.Stop(tol=1e-6)))
    rows: dict[str, Any] = {"exact": {"cpu_seconds": round(used, 2)}}
    also = {} if isinstance(problem.region, mm.regions.L2) and problem.structure.marginals_unsupported else EUCLIDEAN
    for name, solver in (SOLVERS | also).items():
        budget = Budget(seconds)
        solution = mm.solve(problem, solver, stop=mm.Stop(tol=1e-3, max_iter=3000), callbacks=[budget], n_jobs=jobs)
        used = budget.used()
        rows[name] = {
            "status": str(solution.status),
            "iterations": solution.counters.iterations,
            "cpu_seconds": round(used, 2),
            "relative_gap": significant(solution.certificate.relative_gap),
            "relative_error": significant(solution.certificate.primal / exact.certificate.primal - 1),
        }
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0, help="of CPU time, for each solver")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = {name: measure(problem, options.jobs, options.seconds) for name, problem in problems()}
    print(json.dumps({"jobs": options.jobs, "tol": 1e-3, "runs": runs}, indent=1))


if __name__ == "__main__":
    main()
