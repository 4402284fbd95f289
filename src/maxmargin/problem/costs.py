"""The costs of a loss on a batch of outputs: computed shard by shard, checked, scaled by the example weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maxmargin._messages import shown
from maxmargin.losses import Loss
from maxmargin.structures._arrays import array_of, as_bytes
from maxmargin.structures.base import FloatArray, IntArray, Structure
from maxmargin.structures.sparse import SparsePoint

if TYPE_CHECKING:
    from maxmargin.problem.problem import Problem

_PIECE = 1 << 18
"""Parts of the pieces in which gold outputs and losses are checked: packed vectors that stay in the cache."""


def leading_costs(
    structure: Structure,
    gold: SparsePoint,
    loss: Loss | FloatArray,
    example_weight: FloatArray | None,
    loss_weight: FloatArray | None,
) -> tuple[FloatArray | npt.NDArray[np.uint8], float]:
    """``s_i c_i`` of the leading parts and ``sum_i s_i d_i``; ValueError for a loss that does not suit the outputs.

    Arguments are those of :meth:`Problem.build`, of which all but the loss have been checked. The leading parts are
    the variables' parts, or all parts if others cost something.
    """
    if not isinstance(loss, Loss):
        wanted = "a loss of maxmargin.losses, or a packed vector of costs"
        loss = np.asarray(array_of(loss, "loss", "fiub", wanted), dtype=np.float64)
        if loss.shape not in ((structure.starts[1],), (structure.n_parts,)):
            raise ValueError(
                f"costs must be a packed vector of shape ({structure.starts[1]},), one per part of a variable, or "
                f"({structure.n_parts},), one per part, got {loss.shape}"
            )
        if not np.isfinite(loss).all():
            raise ValueError("costs must be finite numbers, got NaN or infinity")
    shards = list(structure.consecutive(_PIECE))
    leading: npt.NDArray[Any] = np.zeros(structure.starts[1], dtype=np.uint8)
    constant = 0.0
    for examples in shards:
        whole = len(shards) == 1
        batch = structure if whole else structure.select(examples)
        point = gold if whole else gold.select(examples, batch)
        weight = None if example_weight is None else example_weight[examples]
        first, last = structure.blocks[0].offsets[[examples[0], examples[-1] + 1]] if len(examples) else (0, 0)
        own = loss
        if not isinstance(loss, Loss):
            own = loss[first:last] if len(loss) == structure.starts[1] else loss[structure.parts_of(examples)]
        costs, total = _costs(
            batch, point, own, weight, None if loss_weight is None else loss_weight[first:last], examples
        )
        constant += total
        if len(costs) > batch.starts[1] and len(leading) < structure.n_parts:
            leading = np.concatenate([leading, np.zeros(structure.n_parts - len(leading), dtype=leading.dtype)])
        if leading.dtype == np.uint8 and as_bytes(costs).dtype != np.uint8:
            leading = leading.astype(np.float64)
        leading[first:last] = costs[: batch.starts[1]]
        if len(costs) > batch.starts[1]:
            leading[structure.parts_of(examples)] = costs
    return leading, constant


def _costs(
    structure: Structure,
    gold: SparsePoint,
    loss: Loss | FloatArray,
    example_weight: FloatArray | None,
    loss_weight: FloatArray | None,
    examples: IntArray,
) -> tuple[FloatArray, float]:
    """``s_i c_i`` of the variable parts, or of all if others cost something, and ``sum_i s_i d_i``, of one shard.

    ``examples`` are its numbers in the batch, for errors.
    """
    n = structure.starts[1]
    if isinstance(loss, Loss):
        name = f"{type(loss).__name__}.costs"
        found = loss.costs(structure, gold.dense())
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise ValueError(f"{name} must return two vectors, costs and offsets, got {shown(found)}")
        costs, offset = (
            np.asarray(array_of(values, f"what {name} returns", "fiub", "two vectors of numbers"), dtype=np.float64)
            for values in found
        )
        if costs.shape != offset.shape or costs.shape not in ((structure.n_parts,), (n,)):
            raise ValueError(
                f"{type(loss).__name__}.costs must return two vectors of shape ({structure.n_parts},), one entry per "
                f"part, or ({n},), one per part of a variable, got shapes {costs.shape} and {offset.shape}"
            )
    else:
        costs, offset = loss, -loss * gold.dense()[: len(loss)]
    if loss_weight is not None:
        costs, offset = costs.copy(), offset.copy()
        costs[:n] *= loss_weight
        offset[:n] *= loss_weight
    if not (np.isfinite(costs).all() and np.isfinite(offset).all()):
        raise ValueError("the loss gives infinite or NaN costs; give finite ones")
    if not costs[n:].any() and not offset[n:].any():
        costs, offset = costs[:n], offset[:n]
    elif structure.loss_on_variables_only:
        raise ValueError(
            f"on {structure.called} the loss must be linear in the variables' parts alone (its first block): "
            "a loss on edges would make the argmax intractable; put the cost on the nodes"
        )
    there = gold.index < len(costs)
    owner, at_gold = gold.owner[there], costs[gold.index[there]] * gold.value[there]
    sums = structure.by_variables if len(offset) == n else structure.by_example
    excess = np.bincount(owner, at_gold, structure.n_examples) + sums(offset)
    size = np.bincount(owner, np.abs(at_gold), structure.n_examples) + sums(np.abs(offset))
    wrong = np.abs(excess) > 1e-9 * (1.0 + size)
    if wrong.any():
        index = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"example {examples[index]}: the loss of the gold output must be zero, got {excess[index]:g}; "
            "check the loss's offset"
        )
    if example_weight is not None:
        scale = structure.to_parts(example_weight)[: len(costs)]
        with np.errstate(over="ignore"):
            costs, offset = scale * costs, scale * offset
        if not np.isfinite(costs).all():
            raise ValueError("the example weights times the loss are not finite; give smaller weights")
    return costs, float(offset.sum())


def check_losses(problem: Problem) -> None:
    """Slack rescaling weighs violations by the loss, which must not be negative."""
    for examples, shard in problem.pieces():
        least = shard.constants - shard.structure.argmax(-shard.costs).value
        wrong = least < -1e-9 * (1.0 + np.abs(shard.constants))
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"example {examples[index]}: the loss of some output is {least[index]:g}, and slack rescaling weighs "
                'violations by the loss; give a loss that is never negative, or rescaling="margin"'
            )
