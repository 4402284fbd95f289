"""Max-margin training of a million sparse features: seconds, memory and certified gaps; masters as columns grow.

    python -m benchmarks.reranking.sparse [--lists 5000] [--hypotheses 100] [--features 1000000] [--only MODEL ...]

A made task: every list has 300 features of its own, drawn with a Zipf distribution from all, and each hypothesis 30 to
60 of them; the quality of a hypothesis is the sum of hidden weights of its features, one in ten of which matter, and
noise. Each model is trained in a process of its own, which reports its largest memory. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.solvers import Stop, solve
from maxmargin.structures._arrays import offsets_of
from maxmargin.tasks.reranking.metrics.gains import Gains
from maxmargin.tasks.reranking.tuning.base import TuningLists
from maxmargin.tasks.reranking.tuning.max_margin import LinearProgram7, LinearProgram8, MaxMargin
from maxmargin.tasks.reranking.tuning.online import KBestMira, Perceptron
from maxmargin.training import Settings

POOL = 300
"""Features of a list."""

METHODS = {
    "max-margin, L2": MaxMargin(C=100.0, tol=1e-2),
    "max-margin, L2, gap 0.1%": MaxMargin(C=100.0, tol=1e-3),
    "max-margin, L2, best of five good": MaxMargin(C=100.0, tol=1e-2, formulation="best", levels=5),
    "max-margin, L1": MaxMargin(C=300.0, tol=1e-2, norm="l1"),
    "LP (7), five good": LinearProgram7(C=300.0, tol=1e-2, levels=5),
    "LP (8), five good": LinearProgram8(C=300.0, tol=1e-2, levels=5),
    "LP (8), five good, margin 1": LinearProgram8(C=300.0, tol=1e-2, levels=5, margin="one"),
    "MIRA": KBestMira(),
    "perceptron": Perceptron(),
}


def made(n_lists: int, size: int, n_features: int, seed: int) -> TuningLists:
    """Return lists of the made task; the hidden weights do not depend on the seed."""
    rng = np.random.default_rng(seed)
    hidden = np.random.default_rng(0)
    matters = hidden.random(n_features) < 0.1
    weights = np.where(matters, hidden.normal(size=n_features), 0.0)
    counts = rng.integers(30, 61, size=n_lists * size)
    starts = offsets_of(counts)
    columns = np.empty(starts[-1], dtype=np.int32)
    for i in range(n_lists):
        # A Zipf distribution: the logarithm of a feature's rank is uniform.
        pool = np.unique(np.exp(rng.random(2 * POOL) * np.log(n_features)).astype(np.int64))[:n_features]
        pool = rng.permutation(pool)[:POOL] % n_features
        order = rng.random((size, len(pool))).argsort(axis=1)
        own = counts[i * size : (i + 1) * size]
        chosen = np.arange(len(pool)) < own[:, None]
        columns[starts[i * size] : starts[(i + 1) * size]] = pool[order[chosen]][: own.sum()]
    rows = sp.csr_array((np.ones(starts[-1]), columns, starts), shape=(n_lists * size, n_features))
    rows.sort_indices()
    gains = rows @ weights + 0.5 * rng.normal(size=rows.shape[0])
    metric = Gains(gains)
    statistics = metric.statistics([""] * len(gains), [], np.zeros(0, dtype=np.int64))
    return TuningLists(
        np.arange(n_lists + 1) * size, rows, statistics, metric, np.zeros(n_features, dtype=np.int8), texts=None
    )


def memory() -> float:
    """Gigabytes of memory that this process has used at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(name: str, n_lists: int, size: int, n_features: int) -> dict[str, Any]:
    """Train one model; held-out lists judge it."""
    held_out = made(max(n_lists // 10, 1), size, n_features, seed=2)
    lists = made(n_lists, size, n_features, seed=1)
    rows = lists.rows
    before, began, cpu = memory(), time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tuned = METHODS[name].tune(lists)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    found = {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "data_gigabytes": round((rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes) / 2**30, 2),
        "gigabytes_before": round(before, 2),
        "gigabytes": round(memory(), 2),
        "weights": int(np.count_nonzero(tuned.weights)),
        "first": held_out.corpus_quality(held_out.offsets[:-1]),
        "held_out": held_out.corpus_quality(held_out.choose(tuned.weights)),
        "oracle": held_out.corpus_quality(held_out.structure.first_largest(held_out.quality)[0]),
    }
    if tuned.solution is not None:
        certificate = tuned.solution.certificate
        found |= {
            "solver": type(tuned.solution.solver).__name__,
            "status": str(tuned.solution.status),
            "gap": float(certificate.relative_gap),
            "iterations": tuned.solution.counters.iterations,
        }
    return found


COST = 0.3
"""The C of the paper, which is not divided by the number of lists, of the programs that compare masters."""

MASTERS = {
    "HiGHS": mm.ColumnGeneration(master="highs"),
    "proximal": mm.ColumnGeneration(master="proximal"),
    "extragradient, to the letter": mm.ColumnGeneration.plain(master="extragradient"),
}


def masters(sizes: list[int], size: int, n_features: int, limit: float) -> list[dict[str, Any]]:
    """Seconds of LP (8) with each master as lists, and with them columns of the master, grow."""
    found = []
    for n_lists in sizes:
        lists = made(n_lists, size, n_features, seed=1)
        method = LinearProgram8(levels=5)
        examples, _ = method.examples(lists)
        row: dict[str, Any] = {"lists": n_lists, "features": len(np.unique(lists.rows.indices))}
        for name, solver in MASTERS.items():
            problem = examples.problem(Settings(norm="l1"), COST)
            began, cpu = time.perf_counter(), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run = solve(problem, solver, stop=Stop(tol=1e-2, max_seconds=limit), random_state=0)
            row[name] = {
                "seconds": round(time.perf_counter() - began, 2),
                "cpu_seconds": round(time.process_time() - cpu, 2),
                "status": str(run.status),
                "rounds": run.counters.iterations,
                "gap": float(run.certificate.relative_gap),
            }
        found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lists", type=int, default=5000)
    parser.add_argument("--hypotheses", type=int, default=100)
    parser.add_argument("--features", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--one", choices=list(METHODS), help="train this model alone, in this process")
    parser.add_argument("--masters", type=int, nargs="*", default=[25, 50, 100, 200, 400], help="numbers of lists")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds of a run of the masters")
    options = parser.parse_args()
    shape = options.lists, options.hypotheses, options.features
    if options.one:
        print(json.dumps(measure(options.one, *shape)))
        return
    models = {}
    for name in options.only:
        command = [sys.executable, "-m", "benchmarks.reranking.sparse", "--one", name, "--lists", str(shape[0])]
        command += ["--hypotheses", str(shape[1]), "--features", str(shape[2])]
        models[name] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    grown = masters(options.masters, 100, 100_000, options.limit)
    print(json.dumps({"shape": shape, "models": models, "masters": grown}, indent=1))


if __name__ == "__main__":
    main()
