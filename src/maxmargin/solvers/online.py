"""What online solvers share: a problem seen one example at a time by compiled passes, and averages of weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import _kernels
from maxmargin.problem import Problem
from maxmargin.problem.hinges import worst_of_scores
from maxmargin.regions import L2
from maxmargin.solvers.base import NonFiniteError
from maxmargin.structures.base import FloatArray, IntArray


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


def _worst(problem: Problem) -> Any:
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


def needs_ridge(problem: Problem) -> str | None:
    """Why a method for the smooth dual of the penalty form cannot solve the problem, or None."""
    if not isinstance(problem.region, L2) or not np.isfinite(problem.region.C):
        return "it needs a ridge penalty, an L2 region with a finite C; use Extragradient or ProjectedGradient"
    return None


def signs_of(problem: Problem) -> Any:
    """The sign constraints as the compiled passes take them: empty for none."""
    mask = problem.region.nonnegative
    return np.zeros(0, dtype=np.uint8) if mask is None else mask.astype(np.uint8)


def finite_pass(run_pass: Any, *arguments: Any) -> Any:
    """Call a compiled pass; NonFiniteError where it met NaN or infinite numbers."""
    try:
        return run_pass(*arguments)
    except ArithmeticError as error:
        if type(error) is ArithmeticError:
            raise NonFiniteError(str(error)) from None
        raise
