"""Base classes of online solvers, and helpers that translate regions and errors for compiled passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.optimization.base import NonFiniteError, Solver
from maxmargin.problem import InexactError, Problem
from maxmargin.regions import Ridge
from maxmargin.structures.base import FloatArray

ONLINE_SHARD_PARTS = 1 << 18
"""Parts of the pieces in which certificates are taken: a few packed vectors of so many stay in the cache."""


class OnlineSolver(Solver):
    """A solver that passes over single examples."""

    @property
    def shard_size(self) -> int:
        """Certificates are taken piece by piece: no packed vector of the whole batch is made."""
        return ONLINE_SHARD_PARTS


class RidgeSolver(OnlineSolver):
    """One that minimizes the penalty form: it needs a ridge, and an objective that is linear in the hinges."""

    needs = ("ridge",)
    takes_slack = ("linear",)

    def ridge(self, problem: Problem) -> Ridge:
        """The penalty of a problem that is supported."""
        assert problem.region.ridge is not None
        return problem.region.ridge


def saved_memory(examples: Any) -> FloatArray:
    """The memory of a compiled view's oracle between calls, for a checkpoint."""
    return np.asarray(examples.memory())


def with_memory(examples: Any, memory: FloatArray) -> Any:
    """The view with the memory of :func:`saved_memory`."""
    if not np.isfinite(memory).all():
        raise ValueError("the oracle's memory is not finite")
    examples.remember(memory)
    return examples


def signs_of(problem: Problem) -> Any:
    """The sign constraints as the compiled passes take them: empty for none."""
    mask = problem.region.nonnegative
    return np.zeros(0, dtype=np.uint8) if mask is None else mask.astype(np.uint8)


def finite_pass(run_pass: Any, *arguments: Any) -> Any:
    """Call a compiled pass; NonFiniteError for NaN or infinite numbers, InexactError if an argmax finds no output."""
    try:
        return run_pass(*arguments)
    except LookupError as error:
        raise InexactError(f"{error}, so that no certificate would hold") from None
    except ArithmeticError as error:
        if type(error) is ArithmeticError:
            raise NonFiniteError(str(error)) from None
        raise
