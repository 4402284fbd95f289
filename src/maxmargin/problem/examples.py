"""A problem seen one example at a time, by compiled code: what online solvers pass over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin import _kernels
from maxmargin.problem.hinges import worst_of_scores
from maxmargin.structures.base import FloatArray, IntArray

if TYPE_CHECKING:
    from maxmargin.problem.problem import Problem


def examples_of(problem: Problem, ranks: int = 1) -> Any:
    """The compiled view of a problem; ``ranks`` outputs of an example at most are asked for at a time."""
    structure, gold = problem.structure, problem.gold_point
    blocks = [block.offsets for block in structure.blocks]
    return _kernels.OnlineExamples(
        structure.oracle(ranks),
        problem.features.per_example(blocks),
        None if problem.rescaling == "margin" else _worst(problem),
        blocks,
        problem.leading_costs,
        np.ascontiguousarray(gold.starts, dtype=np.int64).ravel(),
        gold.index,
        gold.value,
        problem.scale,
    )


def _worst(problem: Problem) -> Callable[[int, FloatArray], tuple[IntArray, FloatArray, float, float]]:
    """The worst output of one example, for hinges that the compiled passes do not know."""
    single: dict[int, Problem] = {}

    def find(example: int, scores: FloatArray) -> tuple[IntArray, FloatArray, float, float]:
        own = single.get(example)
        if own is None:
            own = single[example] = problem.select([example])
        worst = worst_of_scores(own, scores, None, example)
        at = np.flatnonzero(worst.z)
        return at, worst.z[at], float(worst.factor[0]), float(worst.loss[0])

    return find
