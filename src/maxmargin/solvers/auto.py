"""Which solver fits a problem: the choice behind ``solver="auto"``, with the reason."""

from __future__ import annotations

from maxmargin.problem import Problem
from maxmargin.solvers.base import Solver
from maxmargin.solvers.dual_extragradient import DualExtragradient
from maxmargin.solvers.extragradient import Extragradient

STORED_PARTS = 50_000_000
"""Above this many parts the structures player's vectors (8 bytes a part, about ten of them) are not stored."""


def choose(problem: Problem) -> tuple[Solver, str]:
    """A solver for the problem, and the sentence that says why."""
    parts = problem.structure.n_parts
    if parts > STORED_PARTS:
        return (
            DualExtragradient(store_duals=False),
            f"{parts} parts are too many to store the structures player's vectors: memory-efficient dual extragradient",
        )
    return (
        Extragradient(),
        f"{parts} parts fit in memory: extragradient, the fastest here at closing a gap",
    )
