"""The 2005 report's word-alignment workload: time, memory and linearity of 500 dual-extragradient iterations.

Synthetic sentence pairs with the report's shape: 5,000 pairs with about 555,000 possible links and 30 features, gold
links from a hidden weight vector plus noise, loss costs (1, 3), no regularization, memory-efficient form. The report
needed about 3 hours for 5,000 pairs on a 3.4 GHz Xeon of its time, 30 minutes for 1,000 and 10 minutes for 500.

The limit in the same run: the CPU time to read and multiply the features, once each way per iteration, with NumPy.

    python -m benchmarks.alignment.scaling [--pairs 500 1000 5000] [--iterations 500] [--jobs 2]
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from typing import Any

import numpy as np

import maxmargin as mm
from maxmargin.features.parts import PartFeatures
from maxmargin.losses import Hamming
from maxmargin.regions import L2
from maxmargin.structures.matchings.matching import Matching

REPORT_SECONDS = {500: 600, 1000: 1800, 5000: 10800}


def workload(pairs: int, n_features: int = 30, seed: int = 0) -> mm.Problem:
    """Sentence pairs of 5 to 15 words a side (111 links a pair on average), most words linked."""
    rng = np.random.default_rng(seed)
    length = rng.integers(5, 16, size=pairs)
    shapes = np.stack([length, np.clip(length + rng.integers(-2, 3, size=pairs), 1, None)], axis=1)
    structure = Matching.dense(shapes)
    n_links = structure.n_parts
    hidden = rng.normal(size=n_features)
    matrix = rng.normal(size=(n_links, n_features)) * 0.5
    matrix[:, -1] = 1.0
    scores = matrix @ hidden + rng.normal(size=n_links)
    gold = structure.argmax(scores - 0.5).z
    features = PartFeatures(matrix, structure.blocks[0].offsets)
    return mm.Problem.build(structure, features, gold, Hamming(false_positive=1, false_negative=3), L2())


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(pairs: int, iterations: int, jobs: int) -> dict[str, Any]:
    problem = workload(pairs)
    solver = mm.DualExtragradient(store_duals=False)
    peaks: list[float] = []
    began, cpu = time.perf_counter(), time.process_time()
    solution = mm.solve(
        problem,
        solver,
        stop=mm.Stop(tol=0.0, max_iter=iterations),
        callbacks=[lambda record: peaks.append(megabytes())],
        n_jobs=jobs,
    )
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu

    assert isinstance(problem.features, PartFeatures)
    matrix, w, z = problem.features.rows.dense, solution.weights, problem.gold
    assert matrix is not None
    began = time.process_time()
    for _ in range(5):
        matrix @ w
        z @ matrix
    floor = (time.process_time() - began) / 5 * iterations
    return {
        "pairs": pairs,
        "links": problem.structure.n_parts,
        "iterations": solution.counters.iterations,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "cpu_microseconds_per_projection": round(1e6 * cpu / solution.counters.projections, 2),
        "cpu_nanoseconds_per_link_and_iteration": round(1e9 * cpu / iterations / problem.structure.n_parts, 2),
        "report_seconds": REPORT_SECONDS.get(pairs),
        "speedup_over_report": round(REPORT_SECONDS[pairs] / seconds, 1) if pairs in REPORT_SECONDS else None,
        "numpy_feature_passes_cpu_seconds": round(floor, 2),
        "ratio_to_feature_passes": round(cpu / floor, 2),
        "hinge_per_link_start": round(solution.history[0].primal / problem.structure.n_parts, 4),
        "hinge_per_link_end": round(solution.certificate.hinge / problem.structure.n_parts, 4),
        "peak_megabytes_after_10_iterations": round(peaks[min(8, len(peaks) - 1)], 1),
        "peak_megabytes_at_end": round(peaks[-1], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[500, 1000, 5000])
    parser.add_argument("--iterations", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    runs = [measure(pairs, options.iterations, options.jobs) for pairs in options.pairs]
    print(json.dumps({"jobs": options.jobs, "runs": runs}, indent=1))


if __name__ == "__main__":
    main()
