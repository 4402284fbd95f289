"""What the dual extragradient method keeps between iterations, in all of its forms.

    python -m benchmarks.solvers.dual_extragradient_memory [--iterations 20] [--data ../shared/data]

First, the memory-efficient form in Euclidean geometry: the memory of the warm starts against one packed z, and the
CPU seconds of an iteration with and without them. Tasks: 200 words of the OCR letters (chains), 10 horses of
``workloads.py`` (cuts), and 100 made-up pairs of sentences of 5 to 30 words (matchings). Then lists of candidates
whose features outnumber the candidates: the memory of the state and the CPU seconds of an iteration with weights
stored and with sums of features in their place. One thread; prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import maxmargin as mm
from benchmarks.timing import significant
from benchmarks.workloads import DATA, horses, letters
from maxmargin.losses import Hamming
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.solvers.first_order.players import WeightsPlayer
from maxmargin.structures.base import warm_bytes


def kept(value: Any, seen: set[int] | None = None) -> int:
    """Bytes of all arrays that a state holds, each counted once, but for the problem."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, (Problem, WeightsPlayer)):
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        value = list(value.values())
    members = value if isinstance(value, (tuple, list)) else vars(value).values() if hasattr(value, "__dict__") else ()
    return sum(kept(member, seen) for member in members)


def iterate(problem: Problem, solver: mm.DualExtragradient, n: int) -> tuple[Any, float]:
    """The state after some iterations with what is kept with the data, and the seconds of one of the second half."""
    run = Run.of(problem, np.random.default_rng(0), solver.shard_size)
    run.warm_starts = solver.keeps_warm_starts
    state = solver.init(run, Start())
    for number in range(n):
        if number == n // 2:
            began = time.process_time()
        state = solver.step(run, state)
    return (state, run.memories()), (time.process_time() - began) / (n - n // 2)


def pairs(n: int) -> tuple[list[Any], list[Any]]:
    """Sentence pairs whose links have ten features; the first is larger for gold links."""
    rng, X, y = np.random.default_rng(0), [], []
    for left, right in rng.integers(5, 31, size=(n, 2)):
        common = min(left, right)
        links = np.stack([rng.permutation(left)[:common], rng.permutation(right)[:common]], axis=1)
        x = rng.normal(size=(left, right, 10))
        x[links[:, 0], links[:, 1], 0] += 1.5
        X.append(x)
        y.append(links)
    return X, y


def warm_starts(name: str, folder: Path, n: int) -> dict[str, Any]:
    """Memory and seconds of the memory-efficient form on one task."""
    if name == "letters":
        estimator: Any = mm.ChainSVM()
        X, y = (found[:200] for found in letters(folder, [0]))
    elif name == "horses":
        estimator, (X, y) = mm.CutSVM(), horses(folder, count=10)
    else:
        estimator, (X, y) = mm.MatchingSVM(), pairs(100)
    encoder, batch, gold = estimator._encoder().fit(X, y)
    problem = Problem.build(
        batch.structure, batch.features, gold, Hamming(), L2(C=0.01, nonnegative=encoder.nonnegative())
    )
    row: dict[str, Any] = {"parts": problem.structure.n_parts}
    for keep in (True, False, "auto"):
        solver = mm.DualExtragradient(store_duals=False, warm_starts=keep, geometry=mm.Euclidean())
        (_, memories), seconds = iterate(problem, solver, n)
        size = sum(warm_bytes(*pair) for pair in memories if pair is not None)
        row[f"warm_starts={keep!r}"] = {
            "of a packed z": significant(size / (8 * problem.structure.n_parts)),
            "seconds": significant(seconds),
        }
    return row


def many_weights(features: int, n: int) -> dict[str, Any]:
    """Memory and seconds of both forms of weights on 200 lists of 10 candidates, 20 features of each not zero."""
    rng = np.random.default_rng(0)
    rows = sp.csr_array(
        (rng.normal(size=40_000), rng.integers(features, size=40_000), np.arange(2001) * 20), shape=(2000, features)
    )
    X = [rows[10 * i : 10 * i + 10] for i in range(200)]
    _, batch, gold = mm.CandidatesSVM()._encoder().fit(X, rng.integers(10, size=200).tolist())
    problem = Problem.build(batch.structure, batch.features, gold, Hamming(), L2(C=1.0))
    row: dict[str, Any] = {"weights": problem.n_weights, "parts": problem.structure.n_parts}
    for store in (True, False):
        held, seconds = iterate(problem, mm.DualExtragradient(store_weights=store), n)
        row[f"store_weights={store}"] = {"MB": significant(kept(held) / 1e6), "ms": significant(1000 * seconds)}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    with mm.threads(1):
        results = {name: warm_starts(name, options.data, options.iterations) for name in ("letters", "horses", "pairs")}
        results |= {
            f"{features} features": many_weights(features, options.iterations)
            for features in (2_000, 8_000, 100_000, 2_000_000)
        }
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
