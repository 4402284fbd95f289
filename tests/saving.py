"""Runs that are saved, cut and resumed, shared by the tests of checkpoints."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from maxmargin.optimization.callbacks import Record
from maxmargin.problem import Problem
from maxmargin.solvers import BlockFrankWolfe, Checkpoint, CheckpointError, Solution, Solver, Stop, solve

STOP = Stop(tol=1e-6, max_iter=20)


class Copier:
    """A callback that copies the checkpoint that is there: of the certificate before."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder, self.copies = path, folder, []

    def __call__(self, record: Record) -> None:
        if self.path.exists():
            copy = self.folder / f"copy{len(self.copies)}"
            shutil.copy(self.path, copy)
            self.copies.append(copy)


def figures(solution: Solution) -> dict[str, Any]:
    """All that must be the same, but for times."""
    history = [
        {**one.as_dict(), "hinge": one.certificate.hinge, "limit": one.limit, "seconds": 0.0}
        for one in solution.history
    ]
    active_set = solution.active_set
    return {
        "weights": solution.weights.tobytes(),
        "certificate": solution.certificate,
        "status": solution.status,
        "history": history,
        "counters": solution.counters,
        "active_set": None if active_set is None else [one.tobytes() for one in active_set.arrays()],
    }


def run(problem: Problem, solver: Solver, path: Path | None = None, *, every: float = 0.0, **options: Any) -> Solution:
    options = {"stop": STOP, "random_state": 3, **options}
    return solve(problem, solver, checkpoint=None if path is None else Checkpoint(path, every=every), **options)


def resumed_from_each(
    problem: Problem, solver: Solver, folder: Path, skip: int = 1, same: bool = True, **options: Any
) -> int:
    """Cut a run at each of its saves, or at one in ``skip``; how many there were.

    Unless ``same``, a run without a checkpoint differs: it has warm starts, or does not repeat the last argmax pass.
    """
    whole = run(problem, solver, callbacks=[lambda record: None], **options)
    copier = Copier(folder / "run", folder)
    saved = run(problem, solver, folder / "run", callbacks=[copier], **options)
    assert not same or figures(saved) == figures(whole)
    for copy in [*copier.copies[::skip], folder / "run"]:
        again = run(problem, solver, copy, every=1e9, callbacks=[lambda record: None], **options)
        assert figures(again) == figures(saved)
    return len(copier.copies)


def refused(problem: Problem, path: Path, message: str, solver: Solver | None = None, **options: Any) -> None:
    with pytest.raises(CheckpointError, match=message) as caught:
        run(problem, solver or BlockFrankWolfe(), path, **options)
    assert "\n" not in str(caught.value)
