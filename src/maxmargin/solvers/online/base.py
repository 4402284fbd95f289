"""Base classes of online solvers, and helpers that translate regions and errors for compiled passes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin.optimization.base import NonFiniteError, Run, Solver, StateDict, weight_sized
from maxmargin.problem import InexactError, Problem
from maxmargin.regions import Ridge
from maxmargin.structures.base import FloatArray

ONLINE_SHARD_PARTS = 1 << 18
"""Certificates are taken in shards of this many parts, of which a few packed vectors stay in the cache."""


class OnlineSolver(Solver):
    """A solver that passes over single examples."""

    checkpoint_unsupported = ""
    shard_size = ONLINE_SHARD_PARTS


@dataclass(frozen=True, eq=False)
class PassesState:
    """Sums over the visits of examples.

    Attributes:
        examples: the compiled view; None in batch form.
        total: the sum of all changes.
        late: the sum in which the change at visit t counts t - 1 times.
        visits: how many.
        tally: a number of the method's own: the losses met (subgradient), or changes in the last pass (the others).
    """

    examples: Any
    total: FloatArray
    late: FloatArray
    visits: float = 0.0
    tally: float = 0.0


class OnlinePasses(OnlineSolver):
    """An online solver whose state is sums over all visits, which a compiled pass updates."""

    shuffle: bool

    def view(self, run: Run) -> Any:
        """The compiled view of the examples."""
        return run.problem.examples()

    def passed(self, run: Run, state: PassesState, kernel: Any, *arguments: Any) -> tuple[PassesState, float]:
        """The sums after ``kernel(examples, order, *arguments, total, late, visits)``, and what the kernel returns."""
        n = run.problem.structure.n_examples
        order = run.random.permutation(n) if self.shuffle else np.arange(n)
        total, late = state.total.copy(), state.late.copy()  # an interruption leaves the old ones whole
        figure = finite_pass(kernel, state.examples, order, *arguments, total, late, state.visits)
        run.counters.argmax += 1
        return replace(state, total=total, late=late, visits=state.visits + n), figure

    def state_dict(self, state: PassesState) -> StateDict:
        """The sums, and the oracle's memory."""
        memory = np.zeros(0) if state.examples is None else np.asarray(state.examples.memory())
        sums = {name: getattr(state, name) for name in ("total", "late", "visits", "tally")}
        return {**sums, "memory": memory}

    def load_state_dict(self, run: Run, saved: StateDict) -> PassesState:
        """The same sums over a new view."""
        view = self.view(run)
        if view is not None:
            with_memory(view, saved["memory"])
        total, late = weight_sized(run, saved["total"]), weight_sized(run, saved["late"])
        return PassesState(view, total, late, float(saved["visits"]), float(saved["tally"]))


def ridge_of(problem: Problem) -> Ridge:
    """The ridge penalty of a problem that has one."""
    assert problem.region.ridge is not None
    return problem.region.ridge


def with_memory(examples: Any, memory: FloatArray) -> Any:
    """The compiled view with the memory that its oracle had between two calls."""
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
