"""Peak memory of memory-efficient chain training: 20,000 sentences, 45 labels, CSR features.

    python -m benchmarks.solvers.chain_memory [--sentences 20000] [--seconds 120] [--threads 1]

The data is synthetic: sentences of 5 to 45 words, 25 on average; every word has 8 of 20,000 attributes. Three runs are
compared, each in its own process: the solver that "auto" picks, the memory-efficient entropic dual extragradient, and,
on a quarter of the sentences, its stored form, whose memory grows with the data. The yardstick is one vector over all
parts of the batch, which the memory-efficient form never makes. Seconds are those of CPU time, of all threads.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import resource
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.timing import Budget, significant

LABELS, ATTRIBUTES, PER_WORD = 45, 20_000, 8


def sentences(n: int, seed: int = 0) -> tuple[list[Any], list[np.ndarray]]:
    """CSR features and labels; each label has its own attributes and preferred successors."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, 46, size=n)
    total = int(lengths.sum())
    follow = rng.dirichlet(np.full(LABELS, 0.1), size=LABELS).cumsum(axis=1)
    labels = np.empty(total, dtype=np.int64)
    draw, first = rng.random(total), np.zeros(total, dtype=bool)
    first[np.cumsum(lengths)[:-1]] = first[0] = True
    for t in range(total):
        labels[t] = rng.integers(LABELS) if first[t] else np.searchsorted(follow[labels[t - 1]], draw[t])
    labels = np.minimum(labels, LABELS - 1)
    own = rng.integers(ATTRIBUTES, size=(LABELS, 400))
    columns = rng.integers(ATTRIBUTES, size=(total, PER_WORD))
    columns[:, :3] = own[labels[:, None], rng.integers(400, size=(total, 3))]
    columns.sort(axis=1)
    rows = sp.csr_array(
        (np.ones(columns.size), columns.ravel().astype(np.int32), np.arange(0, columns.size + 1, PER_WORD)),
        shape=(total, ATTRIBUTES),
    )
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    X = [rows[a:b] for a, b in itertools.pairwise(bounds)]
    return X, np.split(labels, bounds[1:-1])


def train(pipe: Any, n: int, stored: bool | None, seconds: float, threads: int) -> None:
    """Train and send the measurements; ``stored`` is None for the solver that "auto" picks."""
    import maxmargin as mm

    X, y = sentences(n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    dual = None if stored is None else mm.DualExtragradient(geometry=mm.Entropic(), store_duals=stored)
    budget = Budget(seconds)
    estimator = mm.ChainSVM(C=1e-3, solver=dual or "auto", tol=1e-2, callbacks=[budget], n_jobs=threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
    solution = estimator.solution_
    structure = mm.structures.Chain([len(labels) for labels in y], LABELS)
    pipe.send(
        {
            "sentences": n,
            "tokens": int(sum(len(labels) for labels in y)),
            "weights": len(estimator.coef_),
            "parts": structure.n_parts,
            "one_vector_mb": round(structure.n_parts * 8 / 2**20),
            "data_mb": round(before),
            "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            "solver": type(solution.solver).__name__,
            "iterations": solution.counters.iterations,
            "cpu_seconds": round(budget.used(), 1),
            "status": str(solution.status),
            "relative_gap": significant(solution.certificate.relative_gap, 3),
        }
    )


def measured(n: int, stored: bool | None, seconds: float, threads: int) -> dict[str, Any]:
    """One run in a fresh process, so that its peak memory is its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=train, args=(there, n, stored, seconds, threads))
    process.start()
    there.close()
    result: dict[str, Any] = here.recv()
    process.join()
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=120.0, help="of CPU time, after which a run ends")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    auto = measured(options.sentences, None, options.seconds, options.threads)
    efficient = measured(options.sentences, False, options.seconds, options.threads)
    stored = measured(options.sentences // 4, True, options.seconds, options.threads)
    report = {
        "auto": auto,
        "memory_efficient": efficient,
        "stored_on_a_quarter": stored,
        "peak_over_one_vector": round(efficient["peak_rss_mb"] / efficient["one_vector_mb"], 2),
        "under_1_gb": efficient["peak_rss_mb"] < 1000,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
