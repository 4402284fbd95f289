"""Compiled blocks of block-coordinate Frank-Wolfe: how they are made, saved and checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import _kernels
from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.checkpoints.saved import StateDict, array, number, require, value_of
from maxmargin.problem import Problem
from maxmargin.solvers.online.base import ridge_of, signs_of, with_memory
from maxmargin.structures._arrays import as_bytes
from maxmargin.structures.base import IntArray

DIRECTIONS = ("frank-wolfe", "away", "pairwise")
REFRESH = 20
"""Passes after which ``g`` is recomputed, as sums of changes drift by rounding."""
SWEEP = 10
"""With sampling by gap, one pass in this many visits all examples: gaps not seen for long are out of date."""

ARRAYS = {
    **{"starts": np.int64, "alpha": np.float64, "idle": np.int32, "part_starts": np.int64, "part": np.int32},
    **dict.fromkeys(("change", "g", "late", "w", "gap"), np.float64),
    **{"asked": np.uint8, "older": np.float64, "newer": np.float64, "numbers": np.float64},
}
"""The arrays of the compiled blocks and their types, in the order of their ``state`` and ``restore``."""

_MEAN_GAP = 4
"""Its place in ``numbers``."""

PACKED = "starts", "alpha", "idle", "part_starts", "part", "change", "gram", "gap", "asked", "mean_gap"
"""The first values of ``packed``, blocks as a piece of a problem."""

PIECE = (*(name for name in PACKED if name not in ("gram", "mean_gap")), "memory")
"""Those of their arrays that a file holds, and the oracle's memory."""

_ROOM = 1 << 24
"""Bytes of inner products that any file may ask for."""

_SUMS = 1e-6
"""Relative error of sums of changes: they drift by rounding between two refreshes."""


def is_mark(passes: int) -> bool:
    """Whether an average may begin after this number of passes: after each at first, then at growing distances."""
    at = 1
    while at < passes:
        at += max(1, at // 8)
    return at == passes


def made(solver: Any, problem: Problem, examples: Any = None) -> Any:
    """Blocks with all weight on the gold outputs; ``examples`` is a view of them, by default a new one."""
    return _kernels.BlockFrankWolfe(
        problem.examples() if examples is None else examples,
        *ridge_of(problem),
        signs_of(problem),
        DIRECTIONS.index(solver.direction),
        solver.steps,
        solver.outputs,
        float(solver.cache),
        0.01 if solver.cache else 0.0,
        solver.group,
    )


def order(solver: Any, blocks: Any, passes: int, n: int, random: np.random.Generator) -> IntArray:
    """The examples of the next pass."""
    if solver.sampling == "gap" and passes % SWEEP:
        gaps = np.array(blocks.gap)
        if gaps.sum() > 0.0:
            share = 0.9 * gaps / gaps.sum() + 0.1 / n
            return random.choice(n, size=n, p=share / share.sum()).astype(np.int64)
    return random.permutation(n)


def active_set(blocks: Any) -> ActiveSet:
    """The active outputs of every example."""
    starts, alpha, part_starts, part, value = blocks.active_set()
    # Small numbers as bytes: a fitted estimator keeps the active set, also when it is pickled.
    return ActiveSet(starts, alpha, part_starts, part, as_bytes(value))


def saved(blocks: Any) -> StateDict:
    """The kept outputs by the parts in which they differ from the gold ones, the sums, and the oracle's memory."""
    return {
        **dict(zip(ARRAYS, blocks.state(), strict=True)),
        "memory": np.asarray(blocks.examples.memory()),
    }


def saved_piece(blocks: Any) -> StateDict:
    """What a file holds of blocks that are a piece of a problem."""
    found = dict(zip(PACKED, blocks.packed()[: len(PACKED)], strict=True))
    del found["gram"]  # a file may be made to deceive: inner products are computed anew
    if found["change"].dtype == np.int8:
        found["change"] = found["change"].astype(np.float32)
    return {**found, "memory": np.array(blocks.examples.memory())}


def restored_piece(solver: Any, problem: Problem, given: StateDict) -> Any:
    """The blocks of :func:`saved_piece`, once their outputs are found legal; else ValueError. Sums are not known."""
    whole = dict(zip(ARRAYS, map(np.array, made(solver, problem).state()), strict=True))
    whole["numbers"][_MEAN_GAP] = number(given, "mean_gap")  # below 0 by rounding only
    return restored(solver, problem, {**whole, **{name: value_of(given, name) for name in PIECE}}, whole=False)


def restored(solver: Any, problem: Problem, given: StateDict, *, whole: bool = True) -> Any:
    """The same blocks over a new view, once their outputs are found legal and their sums true; else ValueError.

    ``whole``: whether the sums are those of these examples alone.
    """
    arrays = _checked(problem.n_examples, solver.outputs, given)
    blocks = made(solver, problem, with_memory(problem.examples(), array(given, "memory", np.float64, (None,))))
    try:
        blocks.restore(*arrays.values())
        _check(problem, blocks, whole)
        blocks.restore(*arrays.values())  # the check has moved them by rounding
    except (ArithmeticError, LookupError, TypeError) as error:
        raise ValueError(str(error)) from None
    return blocks


def _checked(n: int, outputs: int, given: StateDict) -> StateDict:
    """The arrays of the blocks, finite, and no more outputs than are ever kept."""
    values = {**given, "change": np.asarray(value_of(given, "change"), dtype=np.float64)}
    arrays = {
        name: array(values, name, kind, ((n + 1 if name == "starts" else None),)) for name, kind in ARRAYS.items()
    }
    starts, alpha = arrays["starts"], arrays["alpha"]
    kept = np.diff(starts)
    require(starts[0] == 0 and starts[-1] == len(alpha) and (kept > 0).all(), "an example has no output")
    # Beyond the limit only outputs with mass are kept: their inner products must not take more than the file would.
    many = kept[kept > outputs].astype(np.float64)
    room = 10 * sum(one.nbytes for one in arrays.values()) + _ROOM
    require(4.0 * (many**2).sum() <= room, f"an example has {int(many.max(initial=0))} outputs")
    total = np.add.reduceat(alpha, starts[:-1]) if n else np.ones(0)
    require((np.abs(total - 1.0) <= _SUMS).all(), "the dual variables of an example do not sum to 1")
    require((arrays["change"] != 0.0).all(), "an output has a part without a change")
    require((arrays["gap"] >= 0.0).all(), "a gap is negative")
    return arrays


def _check(problem: Problem, blocks: Any, whole: bool) -> None:
    """ValueError unless the outputs are legal, so that bounds hold, and the sums over them are theirs."""
    # Of several good outputs the set holds pairs, and points of a relaxation are not outputs.
    if problem.good is None and not problem.relaxed and problem.rescaling != "slack":
        held = active_set(blocks)
        legal = held.feasible(problem.structure)
        require(legal is not None and len(legal.alpha) == len(held.alpha), "an output that it keeps is not legal")
    if not whole:
        return
    g, loss = np.array(blocks.g), blocks.loss
    blocks.refresh()
    check_sums(g, loss, np.asarray(blocks.g), blocks.loss)


def check_sums(g: Any, loss: float, own_g: Any, own_loss: float) -> None:
    """ValueError unless sums are, up to rounding, those of the outputs."""
    scale = 1.0 + np.abs(own_g).max(initial=0.0)
    require((np.abs(g - own_g) <= _SUMS * scale).all(), "its feature sums are not those of its outputs")
    require(abs(loss - own_loss) <= _SUMS * (1.0 + abs(loss)), "its loss is not that of its outputs")
