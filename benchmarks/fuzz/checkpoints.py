"""Checkpoints that were damaged or made to deceive, for every solver that can be saved and some structures.

Each input is the checkpoint of a short run with changes inside; the run must resume and end, or be refused with a
:class:`CheckpointError`. Beside it may lie the previous checkpoint, whole: then a damaged one must not matter.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fuzz.harness import Target
from benchmarks.fuzz.mutations import resealed
from maxmargin import Graph
from maxmargin.datasets.examples import Examples
from maxmargin.encoders.cut import CutEncoder
from maxmargin.encoders.labelings.chain import ChainEncoder
from maxmargin.encoders.matchings.matching import MatchingEncoder
from maxmargin.problem import Problem
from maxmargin.solvers import (
    AveragedPerceptron,
    BlockFrankWolfe,
    Checkpoint,
    CheckpointError,
    ColumnGeneration,
    CuttingPlane,
    DualExtragradient,
    ExponentiatedGradient,
    Mira,
    SimplicialDecomposition,
    Solver,
    Stop,
    Subgradient,
    Validation,
    solve,
)
from maxmargin.training import Settings

_SHORT, _LONG = Stop(tol=1e-9, max_iter=6), Stop(tol=1e-9, max_iter=12)


def _chains() -> Problem:
    random = np.random.default_rng(0)
    X = [random.normal(size=(int(random.integers(1, 5)), 3)) for _ in range(5)]
    y = [["a" if row[0] > random.normal() else "b" for row in x] for x in X]
    return Examples.fit(ChainEncoder(), X, y).problem(Settings(), 1.0)


def _matchings() -> Problem:
    random = np.random.default_rng(0)
    X = [random.normal(size=(3, 3, 2)) for _ in range(5)]
    y = [[(i, int(j)) for i, j in enumerate(random.permutation(3))] for _ in X]
    return Examples.fit(MatchingEncoder(), X, y).problem(Settings(), 1.0)


def _sparse() -> Problem:
    random = np.random.default_rng(0)
    X = [random.normal(size=(int(random.integers(1, 5)), 3)) for _ in range(5)]
    y = [["a" if row[0] > random.normal() else "b" for row in x] for x in X]
    return Examples.fit(ChainEncoder(), X, y).problem(Settings(norm="l1"), 1.0)


def _cuts() -> Problem:
    random = np.random.default_rng(0)
    edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    X = [Graph(random.normal(size=(4, 2)), edges, np.abs(random.normal(size=(4, 1)))) for _ in range(4)]
    y = [random.integers(0, 2, 4).tolist() for _ in X]
    return Examples.fit(CutEncoder(), X, y).problem(Settings(), 1.0)


CASES: dict[str, tuple[Callable[[], Problem], Solver, bool]] = {
    "block": (_chains, BlockFrankWolfe(), False),
    "block-gap": (_matchings, BlockFrankWolfe(sampling="gap", cache=0.3, outputs=3, direction="away"), False),
    "block-cuts": (_cuts, BlockFrankWolfe(kept_passes=0, average=False), True),
    "subgradient": (_chains, Subgradient(), True),
    "perceptron": (_matchings, AveragedPerceptron(), False),
    "mira": (_chains, Mira(k=2), True),
    "simplicial": (_matchings, SimplicialDecomposition(), False),
    "cutting-plane": (_cuts, CuttingPlane(), False),
    "columns": (_sparse, ColumnGeneration(master="highs"), False),
    "columns-proximal": (_sparse, ColumnGeneration(master="proximal"), False),
    "exponentiated": (_chains, ExponentiatedGradient(block_size=2), False),
    "implicit": (_chains, ExponentiatedGradient(implicit=True), False),
    "dual-extragradient": (_chains, DualExtragradient(store_duals=False, warm_starts=False, shard_parts=10), False),
}
"""For each target the problem, the solver and whether scores on dev data are part of the run."""


def _run(case: str, path: Path, stop: Stop, every: float = 1e9) -> Any:
    _, solver, scored = CASES[case]
    callbacks = [Validation(_score, patience=9)] if scored else []
    checkpoint = Checkpoint(path, every=every)
    return solve(
        _problem(case), solver, stop=stop, callbacks=callbacks, random_state=3, n_jobs=1, checkpoint=checkpoint
    )


def _score(weights: Any) -> float:
    return -abs(float(np.abs(weights).sum()) - 1.5)


@cache
def _problem(case: str) -> Problem:
    return CASES[case][0]()


@cache
def _folder() -> Path:
    kept = tempfile.TemporaryDirectory()
    _folders.append(kept)  # removed with the process
    return Path(kept.name)


_folders: list[Any] = []


@cache
def _good(case: str) -> bytes:
    path = _folder() / f"{case}.good"
    _run(case, path, _SHORT)
    return path.read_bytes()


def _resume(case: str, random: np.random.Generator) -> None:
    """Resume from a file with changes inside; one in four has the previous one beside it, whole."""
    checkpoint = Checkpoint(_folder() / case)
    path, beside = Path(checkpoint.path), random.random() < 0.25
    checkpoint.remove()
    path.write_bytes(resealed(random, _good(case)))
    if beside:
        checkpoint.previous.write_bytes(_good(case))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = _run(case, path, _LONG)
    if any("training resumes from" in str(one.message) for one in caught):
        assert beside
        assert solution.weights.tobytes() == _whole(case)


@cache
def _whole(case: str) -> bytes:
    """The weights of the run that was never cut."""
    checkpoint = Checkpoint(_folder() / f"{case}.whole", every=1e9)
    found = bytes(_run(case, Path(checkpoint.path), _LONG).weights.tobytes())
    checkpoint.remove()
    return found


def targets() -> list[Target]:
    """One target for each solver."""
    return [Target(case, partial(_resume, case), (CheckpointError,), megabytes=100.0) for case in CASES]
