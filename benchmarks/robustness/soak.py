"""Memory, open files and threads over many fits.

    python -m benchmarks.robustness.soak [--fits 2000] [--first 100]

Small fits of every estimator and solver in turn, and around them what programs do that run for days: predictions,
model files, checkpoints, fits that are interrupted and fits that fail. Prints one JSON object with the memory of the
process (RSS), its open files, its threads and the Python objects that are alive, after the first fits and at the end.
Every kind of round has had its turn after the first 100, so that nothing should grow from there on.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from maxmargin.solvers import Checkpoint, CheckpointError

Data = tuple[list[Any], list[Any]]


def chains(rng: np.random.Generator) -> Data:
    y = [rng.integers(0, 3, size=rng.integers(2, 6)) for _ in range(6)]
    return [np.eye(3)[one] + 0.4 * rng.standard_normal((len(one), 3)) for one in y], y


def graphs(rng: np.random.Generator) -> Data:
    X, y = [], []
    for size in rng.integers(4, 8, size=5):
        labels = (np.arange(size) < size // 2).astype(np.int64)
        edges = np.stack([np.arange(size), (np.arange(size) + 1) % size], axis=1)
        nodes = np.stack([2.0 * labels - 1.0 + 0.5 * rng.standard_normal(size), np.ones(size)], axis=1)
        X.append(mm.Graph(nodes, edges, np.abs(rng.standard_normal((size, 2)))))
        y.append(labels)
    return X, y


def trees(rng: np.random.Generator) -> Data:
    X, y = [], []
    for size in rng.integers(3, 7, size=5):
        labels = rng.integers(0, 3, size=size)
        edges = [(int(rng.integers(0, v)), v) for v in range(1, size)]
        X.append(mm.Graph(np.eye(3)[labels] + 0.4 * rng.standard_normal((size, 3)), np.array(edges)))
        y.append(labels)
    return X, y


def matchings(rng: np.random.Generator) -> Data:
    X, y = [], []
    for size in rng.integers(2, 5, size=6):
        links = np.stack([np.arange(size), rng.permutation(size)], axis=1)
        x = 0.6 * rng.standard_normal((size, size, 3))
        x[links[:, 0], links[:, 1], 0] += 1.0
        X.append(x)
        y.append(links)
    return X, y


def candidates(rng: np.random.Generator) -> Data:
    sizes = rng.integers(2, 6, size=8)
    return [rng.standard_normal((size, 3)) for size in sizes], [int(rng.integers(size)) for size in sizes]


def lattices(rng: np.random.Generator) -> Data:
    X, y = [], []
    for size in rng.integers(3, 6, size=5):
        pairs = np.repeat(np.stack([np.arange(size), np.arange(size) + 1], axis=1), 2, axis=0)
        X.append(mm.WordLattice(rng.standard_normal((len(pairs), 3)), pairs, list("ab" * int(size))))
        y.append(2 * np.arange(size) + rng.integers(0, 2, size=size))
    return X, y


def spellings(rng: np.random.Generator) -> Data:
    words = ["".join(rng.choice(list("abcde"), size=size).tolist()) for size in rng.integers(2, 7, size=8)]
    X = [(word, word[1:] + "a") for word in words]
    return X, [[(i + 1, i) for i in range(len(word) - 1)] for word in words]


def segments(rng: np.random.Generator) -> Data:
    X = [rng.standard_normal((int(size), 3)) for size in rng.integers(2, 6, size=6)]
    return X, [[(0, 1, "a"), (1, len(x), "b")] for x in X]


def sentences(rng: np.random.Generator) -> Data:
    X, y = [], []
    for size in rng.integers(2, 6, size=5).tolist():
        X.append(rng.standard_normal((size * size, 3)))
        y.append((np.arange(size), list("ab" * size)[:size]))
    return X, y


def pairings(rng: np.random.Generator) -> Data:
    sizes = 2 * rng.integers(1, 4, size=5)
    return [rng.standard_normal((n, n, 3)) for n in sizes], [rng.permutation(n).reshape(-1, 2) for n in sizes]


L2, L1 = {"C": 0.5}, {"C": 0.5, "norm": "l1"}
KINDS: list[tuple[Callable[..., Any], Callable[[np.random.Generator], Data], dict[str, Any], Any]] = [
    (mm.ChainSVM, chains, L2, "auto"),
    (mm.ChainSVM, chains, L2, mm.SimplicialDecomposition()),
    (mm.ChainSVM, chains, {"radius": 1.0}, mm.Extragradient()),
    (mm.ChainSVM, chains, {**L2, "order": 2}, mm.Mira()),
    (mm.ChainSVM, chains, L2, mm.ExponentiatedGradient()),
    (mm.TreeSVM, trees, L2, mm.CuttingPlane()),
    (mm.TreeSVM, trees, L2, mm.Subgradient()),
    (mm.CutSVM, graphs, L2, "auto"),
    (mm.AssociativeSVM, graphs, L2, mm.BlockFrankWolfe()),
    (mm.GraphSVM, graphs, L2, "auto"),
    (mm.MatchingSVM, matchings, L2, mm.AveragedPerceptron()),
    (mm.MatchingSVM, matchings, {"radius": 1.0}, mm.DualExtragradient()),
    (mm.CandidatesSVM, candidates, L1, mm.ColumnGeneration()),
    (mm.CandidatesSVM, candidates, L2, mm.Exact()),
    (mm.LatticeSVM, lattices, L2, "auto"),
    (mm.EditSVM, spellings, L2, "auto"),
    (mm.SegmentSVM, segments, L2, "auto"),
    (mm.DependencySVM, sentences, {**L2, "single_root": False}, "auto"),
    (mm.DependencySVM, sentences, {**L2, "projective": False}, mm.Mira()),
    (mm.PairingSVM, pairings, {**L2, "perfect": True}, mm.Extragradient()),
]

MANNERS = 5
"""Ways of using a kind, see :func:`one_round`."""


def interrupt(record: Any) -> None:
    """Press Ctrl-C at the second certificate."""
    if record.iteration:
        raise KeyboardInterrupt


def one_round(number: int, folder: Path) -> None:
    """One fit of a kind, and one of the things that are done with models."""
    estimator, data, settings, solver = KINDS[number % len(KINDS)]
    X, y = data(np.random.default_rng(number))
    made = estimator(**settings, solver=solver, max_iter=20, tol=1e-2, random_state=0)
    manner = number // len(KINDS) % MANNERS
    if manner == 0:
        made.fit(X, y).predict(X)
    elif manner == 1:
        made.set_params(n_jobs=3).fit(X, y).save(folder / "model")
        mm.load(folder / "model").predict(X)
    elif manner == 2:
        made.set_params(callbacks=[interrupt])
        with contextlib.suppress(KeyboardInterrupt):  # before the first certificate there is nothing to return
            made.fit(X, y)
    elif manner == 3:
        broken = [np.array(y[0])[:-1], *y[1:]] if not isinstance(y[0], int) else [99, *y[1:]]
        try:
            made.fit(X, broken)
        except (ValueError, TypeError):
            return
        if estimator not in (mm.MatchingSVM, mm.EditSVM):  # a node or a letter may lack a link
            raise AssertionError(f"{estimator.__name__} takes labels that do not fit its input")
    else:
        checkpoint = Checkpoint(folder / "run", every=0)
        with contextlib.suppress(CheckpointError):  # some solvers have none
            made.set_params(checkpoint=checkpoint).fit(X, y)
        checkpoint.remove()  # it stays where the budget ends a run


def footprint() -> dict[str, float]:
    """What the process holds now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "rss_mb": round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 2),
        "open_files": len(os.listdir("/proc/self/fd")),
        "threads": int(status["Threads"]),
        "objects": len(gc.get_objects()),
    }


def soak(fits: int, marks: list[int]) -> dict[int, dict[str, float]]:
    """Run so many fits; what the process holds after some of them."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(fits):
            one_round(number, Path(folder))
            if number + 1 in marks:
                found[number + 1] = footprint()
        if left := sorted(set(os.listdir(folder)) - {"model"}):
            raise AssertionError(f"files that nobody asked for: {left}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory, open files and threads over many fits.")
    parser.add_argument("--fits", type=int, default=2000)
    parser.add_argument("--first", type=int, default=100)
    given = parser.parse_args()
    began = time.process_time()
    marks = sorted({given.first, given.fits, *(at for at in (500, 1000) if given.first < at < given.fits)})
    found = soak(given.fits, marks)
    first, last = found[marks[0]], found[marks[-1]]
    grown = {name: round(last[name] - first[name], 2) for name in first}
    print(json.dumps({"after": found, "grown": grown, "cpu_seconds": round(time.process_time() - began, 1)}))


if __name__ == "__main__":
    main()
