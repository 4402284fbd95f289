"""Base classes of online solvers, and helpers that translate regions and errors for compiled passes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin.optimization.base import NonFiniteError, Run, Solver, StateDict
from maxmargin.optimization.saved import array, number, require, vector
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
        return run.whole.examples()

    def passed(self, run: Run, state: PassesState, kernel: Any, *arguments: Any) -> tuple[PassesState, float]:
        """The sums after ``kernel(examples, order, *arguments, total, late, visits)``, and what the kernel returns."""
        n = run.whole.structure.n_examples
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
        view, n = self.view(run), run.whole.n_weights
        if view is not None:
            with_memory(view, array(saved, "memory", np.float64, (None,)))
        total, late, tally = vector(saved, "total", n), vector(saved, "late", n), number(saved, "tally")
        each = 1 if view is None else run.whole.structure.n_examples  # of a step
        visits = number(saved, "visits", least=0)
        require(visits == each * run.counters.iterations, f"{visits:g} visits in {run.counters.iterations} passes")
        return PassesState(view, total, late, visits, tally)


def ridge_of(problem: Problem) -> Ridge:
    """The ridge penalty of a problem that has one."""
    assert problem.region.ridge is not None
    return problem.region.ridge


def with_memory(examples: Any, memory: FloatArray) -> Any:
    """The compiled view with the memory that its oracle had between two calls."""
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
