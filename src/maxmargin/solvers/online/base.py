"""What online solvers share: their bases, regions as compiled passes take them, errors as the loop takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.optimization.base import NonFiniteError, Solver, instead, needs_ridge
from maxmargin.problem import InexactError, Problem
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
    """One that minimizes the penalty form: it needs a ridge, and terms that are linear in the hinges."""

    def unsupported(self, problem: Problem) -> str | None:
        """Needs linear slack and a finite C."""
        if problem.slack != "linear":
            return f"it needs linear slack; use {instead(problem)}"
        return needs_ridge(problem)


def saved_memory(examples: Any) -> FloatArray:
    """What the oracle of a compiled view keeps between calls, for a checkpoint."""
    return np.asarray(examples.memory())


def with_memory(examples: Any, memory: FloatArray) -> Any:
    """The view with such a memory."""
    if not np.isfinite(memory).all():
        raise ValueError("the oracle's memory is not finite")
    examples.remember(memory)
    return examples


def signs_of(problem: Problem) -> Any:
    """The sign constraints as the compiled passes take them: empty for none."""
    mask = problem.region.nonnegative
    return np.zeros(0, dtype=np.uint8) if mask is None else mask.astype(np.uint8)


def finite_pass(run_pass: Any, *arguments: Any) -> Any:
    """Call a compiled pass; NonFiniteError where it met NaN or infinite numbers, InexactError where no output."""
    try:
        return run_pass(*arguments)
    except LookupError as error:
        raise InexactError(f"{error}, so that no certificate would hold") from None
    except ArithmeticError as error:
        if type(error) is ArithmeticError:
            raise NonFiniteError(str(error)) from None
        raise
