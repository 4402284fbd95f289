"""A compiled view of a problem, one example at a time, for online solvers.

The most violated output comes from the structure's oracle: an argmax where the margin is rescaled, and on chains and
trees also where the slack is (except for costs on pairs of a chain, or costs that are not multiples of a unit) or
nothing is. Elsewhere it comes from the batch methods of one example, by a call of Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin import _kernels
from maxmargin.problem.hinges import RESCALINGS, most_violated_of_scores
from maxmargin.structures.base import FloatArray, IntArray

if TYPE_CHECKING:
    from maxmargin.problem.problem import Problem


def examples_of(problem: Problem, ranks: int = 1) -> Any:
    """The compiled view of a problem; ``ranks`` outputs of an example at most are asked for at a time."""
    structure, gold = problem.structure, problem.gold_point
    blocks = [block.offsets for block in structure.blocks]
    oracle = structure.oracle(ranks)
    if (
        problem.rescaling == "none" and ranks == 1 and problem.good is None
    ):  # the best wrong output is one of the two best
        two = structure.oracle(2)
        oracle = two if two.ranks > 1 else oracle
    return _kernels.OnlineExamples(
        oracle,
        problem.features.per_example(blocks),
        RESCALINGS.index(problem.rescaling),
        None if problem.rescaling == "margin" else _most_violated(problem),
        blocks,
        problem.leading_costs,
        np.ascontiguousarray(gold.starts, dtype=np.int64).ravel(),
        gold.index,
        gold.value,
        problem.scale,
    )


def _most_violated(problem: Problem) -> Callable[[int, FloatArray], tuple[IntArray, FloatArray]]:
    """The most violated output of one example, where the oracle does not find it."""
    single: dict[int, Problem] = {}

    def find(example: int, scores: FloatArray) -> tuple[IntArray, FloatArray]:
        own = single.get(example)
        if own is None:
            own = single[example] = problem.select([example])
        violated = most_violated_of_scores(own, scores, None, example)
        at = np.flatnonzero(violated.z)
        return at, violated.z[at]

    return find
