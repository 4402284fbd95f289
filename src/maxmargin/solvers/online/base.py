"""Base classes of online solvers, and helpers that translate regions and errors for compiled passes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin import _kernels
from maxmargin.execution import Piece
from maxmargin.optimization.checkpoints.saved import StateDict, array, number, require, vector
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.optimization.solver import Solver
from maxmargin.problem import BaseProblem, InexactError, Problem
from maxmargin.regions import Ridge
from maxmargin.structures.base import FloatArray

ONLINE_SHARD_PARTS = 1 << 18
"""Certificates are taken in shards of this many parts, of which a few packed vectors stay in the cache."""


def in_one_place(run: Run) -> bool:
    """Whether all examples are in this process and one shard."""
    return run.data is not None and run.session.n_shards == 1


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
        return self.view_of(run.whole)

    def view_of(self, problem: Problem) -> Any:
        """The compiled view of the examples of a problem."""
        return problem.examples()

    def passed(self, run: Run, state: PassesState, kernel: Any, *arguments: Any) -> tuple[PassesState, float]:
        """The sums after ``kernel(examples, order, *arguments, total, late, visits)``, and what the kernel returns."""
        if not in_one_place(run):
            return self._mixed(run, state, kernel.__name__, arguments)
        n = run.whole.structure.n_examples
        order = run.random.permutation(n) if self.shuffle else np.arange(n)
        total, late = state.total.copy(), state.late.copy()  # an interruption leaves the old ones whole
        figure = finite_pass(kernel, state.examples, order, *arguments, total, late, state.visits)
        run.counters.argmax += 1
        return replace(state, total=total, late=late, visits=state.visits + n), figure

    def _mixed(self, run: Run, state: PassesState, kernel: str, arguments: Any) -> tuple[PassesState, float]:
        """A pass of every shard from the same weights; those after it are averaged, with their numbers of examples."""
        seed = int(run.random.integers(1 << 62)) if self.shuffle else None
        found = run.sums(_passed, self, kernel, arguments, state.total, seed)
        n = run.problem.n_examples
        total, mean, figure = found[0] / max(n, 1), found[1], float(found[2])
        visits, sum_before = state.visits + n, state.visits * state.total - state.late
        run.counters.argmax += 1
        # total - late / visits is the average over all visits.
        return replace(state, total=total, late=visits * total - (sum_before + mean), visits=visits), figure

    def state_dict(self, state: PassesState) -> StateDict:
        """The sums, and the oracle's memory."""
        memory = np.zeros(0) if state.examples is None else np.asarray(state.examples.memory())
        sums = {name: getattr(state, name) for name in ("total", "late", "visits", "tally")}
        return {**sums, "memory": memory}

    def load_state_dict(self, run: Run, saved: StateDict) -> PassesState:
        """The same sums over a new view."""
        view, n = self.view(run) if in_one_place(run) else None, run.problem.n_weights
        if view is not None:
            with_memory(view, array(saved, "memory", np.float64, (None,)))
        total, late, tally = vector(saved, "total", n), vector(saved, "late", n), number(saved, "tally")
        each = 1 if getattr(self, "batch", False) else run.problem.n_examples  # of a step
        visits = number(saved, "visits", least=0)
        require(visits == each * run.counters.iterations, f"{visits:g} visits in {run.counters.iterations} passes")
        return PassesState(view, total, late, visits, tally)


@dataclass(eq=False)
class PieceView:
    """The memory of a piece: its compiled view, made again where it comes to."""

    view: Any

    def __getstate__(self) -> dict[str, Any]:
        """Nothing of it."""
        return {"view": None}


def _passed(
    piece: Piece,
    memory: PieceView | None,
    solver: OnlinePasses,
    kernel: str,
    arguments: Any,
    weights: FloatArray,
    seed: Any,
) -> tuple[tuple[FloatArray, FloatArray, float], PieceView]:
    """A pass over a piece: the weights after it and their average times the examples, and what the kernel returns."""
    view = solver.view_of(piece.problem) if memory is None or memory.view is None else memory.view
    view.remember(np.zeros(len(view.memory())))  # so that a pass depends on nothing but the weights
    n = piece.problem.n_examples
    order = np.arange(n) if seed is None else np.random.default_rng([seed, piece.first]).permutation(n)
    total, late = weights.copy(), np.zeros(len(weights))
    figure = finite_pass(getattr(_kernels, kernel), view, order, *arguments, total, late, 0.0)
    return (n * total, n * total - late, float(figure)), PieceView(view)


def ridge_of(problem: BaseProblem) -> Ridge:
    """The ridge penalty of a problem that has one."""
    assert problem.region.ridge is not None
    return problem.region.ridge


def with_memory(examples: Any, memory: FloatArray) -> Any:
    """The compiled view with the memory that its oracle had between two calls."""
    examples.remember(memory)
    return examples


def signs_of(problem: BaseProblem) -> Any:
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
