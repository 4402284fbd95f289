"""The state of column generation, and its form in checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from maxmargin.optimization.checkpoints.saved import StateDict, array, count, number, part_of, require, vector
from maxmargin.solvers.column_generation.linear_masters import Answer, Master, OutputRows
from maxmargin.structures.base import FloatArray, IntArray

_WARM = "warm."
"""The beginning of names that belong to the state of the warm-up."""


@dataclass(frozen=True, eq=False)
class ColumnGenerationState:
    """The master's rows and solution, and the box of the next one.

    Attributes:
        rows: the working set.
        idle: rounds since each row had a multiplier; ``returned``: how often it came back.
        answer: the master's weights and multipliers.
        slacks: those the rows demand of the master's weights, and ``model``: the master's objective there.
        g: ``A'lambda`` and ``loss``: ``b'lambda``.
        best: the best weights decoded so far, and ``primal`` their objective.
        box: how far from them the master's may be, weight by weight.
        dropped: keys of rows that left, and ``returns``: how often each had come back then.
        master: the master's working memory; tied to ``rows``, it is built again where it is out of step.
        tightness: how much more closely than usual an inexact master is solved.
        warm: during the warm-up, the state of the problem with the margin rescaled; ``rounds``: of the warm-up.
    """

    rows: OutputRows
    answer: Answer
    slacks: FloatArray
    g: FloatArray
    best: FloatArray
    master: Master
    idle: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    returned: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    model: float = 0.0
    loss: float = 0.0
    primal: float = np.inf
    box: float = np.inf
    dropped: FloatArray = field(default_factory=lambda: np.zeros(0))
    returns: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    tightness: float = 1.0
    warm: ColumnGenerationState | None = None
    rounds: int = 0


def settled(state: ColumnGenerationState) -> ColumnGenerationState:
    """The state with masters that are settled; itself if they are."""
    master, warm = state.master.settled(), None if state.warm is None else settled(state.warm)
    if master is state.master and warm is state.warm:
        return state
    return replace(state, master=master, warm=warm)


def state_dict(state: ColumnGenerationState) -> StateDict:
    """All that is not worked out from the rows and the answer."""
    found: StateDict = {f"rows.{name}": value for name, value in state.rows.state().items()}
    found |= {f"master.{name}": value for name, value in state.master.state().items()}
    found |= {"weights": state.answer.weights, "multipliers": state.answer.multipliers}
    found |= {name: getattr(state, name) for name in ("best", "dropped", *_NUMBERS, "rounds")}
    found |= {name: np.asarray(getattr(state, name), dtype=np.int64) for name in ("idle", "returned", "returns")}
    warm = {} if state.warm is None else state_dict(state.warm)
    return found | {_WARM + name: value for name, value in warm.items()}


_NUMBERS = {"model": False, "primal": True, "box": True, "tightness": False}
"""Numbers of a state, and whether they may be infinite."""


def load_state_dict(
    saved: StateDict, n_weights: int, n_examples: int, make: Callable[[], Master]
) -> ColumnGenerationState:
    """The inverse of :func:`state_dict`; ``make`` returns a new master."""
    rows = OutputRows.from_state(part_of(saved, "rows."), n_weights, n_examples)
    master, n = make(), len(rows)
    master.restore(part_of(saved, "master."), rows)
    answer = Answer(vector(saved, "weights", n_weights), vector(saved, "multipliers", n))
    sums = np.bincount(rows.owner, answer.multipliers, minlength=n_examples)
    require((answer.multipliers >= 0.0).all() and (sums <= 1.0 + 1e-9).all(), "its multipliers are not feasible")
    idle, returned = (array(saved, name, np.int64, (n,)) for name in ("idle", "returned"))
    dropped = array(saved, "dropped", np.float64, (None,))
    returns = array(saved, "returns", np.int64, (len(dropped),))
    counted = all((one >= 0).all() for one in (idle, returned, returns))
    require(counted, "rows were idle or came back a negative number of times")
    warm = part_of(saved, _WARM)
    require(not any(name.startswith(_WARM) for name in warm), "its warm-up has a warm-up")
    g, loss = rows.aggregate(answer.multipliers)
    return ColumnGenerationState(
        rows=rows,
        answer=answer,
        slacks=rows.slacks(answer.weights, n_examples),
        g=g,
        best=vector(saved, "best", n_weights),
        master=master,
        idle=idle,
        returned=returned,
        loss=loss,
        dropped=dropped,
        returns=returns,
        **{name: number(saved, name, least=0.0, infinite=infinite) for name, infinite in _NUMBERS.items()},
        warm=load_state_dict(warm, n_weights, n_examples, make) if warm else None,
        rounds=count(saved, "rounds"),
    )
