"""How far outputs violate the margin: three ways to scale it by the loss, and loss-augmented inference for each.

With ``df_i(y) = F_i y - F_i y_i`` and the loss ``l_i(y)`` of an output ``y``, example ``i`` has the hinge

    rescaling="margin"   h_i(w) = max_y            w'df_i(y) + l_i(y)      the margin grows with the loss
    rescaling="slack"    h_i(w) = max_y  l_i(y) (1 + w'df_i(y))            a margin of 1, violations weighed by the loss
    rescaling="none"     h_i(w) = max(0, max_{y != y_i} 1 + w'df_i(y))     a margin of 1 to every wrong output

which is never negative, as the gold output gives 0. All three are ``m_i w'df_i(z_i) + l_i`` at the maximum, with a
factor ``m_i`` of 1, ``l_i`` or 1: :class:`MostViolated` holds these, and solvers need nothing else.
Where several outputs are good, violations are those of pairs: :mod:`maxmargin.problem.good`.
The sum ``H(w) = sum_i s_i h_i`` is linear in them (``slack="linear"``) or ``sum_i s_i h_i^2 / 2`` (``"quadratic"``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.structures.base import FloatArray, Points, PointStatus

if TYPE_CHECKING:
    from maxmargin.problem.good import GoodOutputs
    from maxmargin.problem.problem import Problem

RESCALINGS = ("margin", "slack", "none")
"""How the loss of an output may enter the hinge: as the margin, as a weight on violations of a margin of 1, or not."""

SLACKS = ("linear", "quadratic")
"""How a violation may count: as it is, or as half its square."""

ROUNDING = 64.0 * float(np.finfo(np.float64).eps)
"""Rounding errors of a sum as a share of the sum of its terms' sizes: those of some thousand terms, which add up like
their root, with some room."""


class InexactError(ArithmeticError):
    """An argmax was not exact, so that no certificate would hold."""


class Hinge(NamedTuple):
    """``H(w)``, and how large its rounding error may be."""

    value: float
    rounding: float


@dataclass(frozen=True, eq=False)
class MostViolated:
    """The outputs of a batch that violate the margin most at some weights, scaled by the example weights ``s_i``.

    ``value = factor * w'df(z) + loss`` for every example, or more where an argmax was inexact and its value a bound.

    Attributes:
        z: packed vector, shape ``(n_parts,)``.
        value: ``s_i h_i(w)``, shape ``(n_examples,)``; NaN where scores are not finite.
        factor: ``s_i m_i``, shape ``(n_examples,)``.
        loss: ``s_i l_i``, shape ``(n_examples,)``.
        size: how large the terms are whose difference the value is, shape ``(n_examples,)``: its rounding errors are
            relative to them.
        warm: where the next call may start from.
    """

    z: FloatArray
    value: FloatArray
    factor: FloatArray
    loss: FloatArray
    size: FloatArray
    warm: Any = None


def most_violated_of_scores(
    problem: Problem, scores: FloatArray, warm: Any, first: int, tol: float = 0.0
) -> MostViolated:
    """See :meth:`Problem.most_violated`; from scores ``F'w`` without the example weights, which may be overwritten."""
    if problem.good is not None:
        return _pairs(problem, problem.good, scores, first)
    if problem.rescaling == "margin":
        return _margin(problem, scores, warm, first, tol if problem.slack == "linear" else 0.0)
    return (_slack if problem.rescaling == "slack" else _none)(problem, scores, warm, first)


def _margin(problem: Problem, scores: FloatArray, warm: Any, first: int, tol: float) -> MostViolated:
    scores = problem.with_costs(scores)
    points = _checked(problem, problem.structure.argmax_within(scores, tol, warm=warm), first, bounds=True)
    # The gold output's loss is zero: its augmented score is its score less the loss's constant.
    # It is one of the outputs, so that only rounding can make the difference negative.
    value = np.maximum(points.value - problem.gold_point.dot(scores), 0.0)
    size = np.abs(points.value) + problem.gold_point.dot_size(scores)
    return MostViolated(points.z, value, problem.scale, problem.losses(points.z), size, points.warm)


def _slack(problem: Problem, scores: FloatArray, warm: Any, first: int) -> MostViolated:
    margin = 1.0 - problem.gold_point.dot(scores)
    points = problem.structure.slack_argmax(scores, margin, problem.costs, problem.constants, warm=warm)
    points = _checked(problem, points, first, bounds=True)
    # Where no product is positive no output violates the margin more than the gold one, which has no loss.
    counts = ~(points.value <= 0.0)
    z = _or_gold(problem, points.z, counts)
    loss = np.where(counts, np.maximum(problem.losses(z), 0.0), 0.0)
    # The score of the output found is its value over its loss, less the margin: as large as those two.
    size = np.where(counts, np.abs(points.value), 0.0) + loss * (1.0 + 2.0 * problem.gold_point.dot_size(scores))
    return MostViolated(z, np.where(counts, points.value, 0.0), loss, loss, size, points.warm)


def _none(problem: Problem, scores: FloatArray, warm: Any, first: int) -> MostViolated:
    gold, structure = problem.gold, problem.structure
    # The k best are found by forcing parts, so that the value of an inexact one bounds nothing.
    ranks = [_checked(problem, rank, first, bounds=False, absent=True) for rank in structure.k_best(scores, 2)]
    z, value, status = ranks[0].z, ranks[0].value, ranks[0].status
    if len(ranks) > 1:
        right = structure.by_example(np.abs(z - gold)) == 0.0
        chosen = structure.to_parts(right.astype(np.float64)) > 0.0
        z = np.where(chosen, ranks[1].z, z)
        value, status = np.where(right, ranks[1].value, value), np.where(right, ranks[1].status, status)
    wrong = structure.by_example(np.abs(z - gold)) > 0.0
    violation = 1.0 + value - problem.gold_point.dot(scores)
    counts = wrong & (status != PointStatus.ABSENT) & ~(violation <= 0.0)
    z = _or_gold(problem, z, counts)
    factor = np.where(counts, problem.scale, 0.0)
    # Where no output is wrong the violation is -inf, which a weight of 0 would turn into NaN.
    size = factor * np.where(counts, 1.0 + np.abs(value) + problem.gold_point.dot_size(scores), 0.0)
    return MostViolated(z, factor * np.where(counts, violation, 0.0), factor, factor, size)


def _or_gold(problem: Problem, z: FloatArray, counts: Any) -> FloatArray:
    """The gold output where an example does not count."""
    if counts.all():
        return z
    return np.where(problem.structure.to_parts(counts.astype(np.float64)) > 0.0, z, problem.gold)


def _pairs(problem: Problem, good: GoodOutputs, scores: FloatArray, first: int) -> MostViolated:
    """Several good outputs: the most violated pair of a bad and a good one, as the point ``gold + bad - good``."""
    structure, zero = problem.structure, np.zeros(problem.structure.n_examples)
    if not np.isfinite(scores).all():
        return MostViolated(problem.gold, np.full(structure.n_examples, np.nan), zero, zero, zero)
    margin = zero if problem.rescaling == "margin" else problem.scale
    scores = problem.pair_scores(scores)
    pairs, violation = good.most_violated(structure, scores, margin, first)
    counts = violation > 0.0
    z = problem.gold + np.where(structure.to_parts(counts.astype(np.float64)) > 0.0, pairs, 0.0)
    factor = np.where(counts, problem.scale, 0.0)
    loss = problem.losses(z) if problem.rescaling == "margin" else factor
    # The gold output is a good one; where no output is bad the violation is -inf.
    size = np.where(counts, margin + violation + 2.0 * problem.gold_point.dot_size(scores), 0.0)
    return MostViolated(z, np.where(counts, violation, 0.0), factor, loss, size)


def ranked(problem: Problem, weights: FloatArray, k: int, first: int) -> list[MostViolated]:
    """The ``k`` outputs of each example that violate the margin most, in decreasing order; margin rescaled or not.

    An example with fewer outputs has its gold output with a value of 0 in the later ranks.
    """
    if problem.rescaling == "slack":
        raise ValueError('slack rescaling has no list of the k most violated outputs; use rescaling="margin" or "none"')
    structure, margin = problem.structure, problem.rescaling == "margin"
    scores = problem.augmented(weights) if margin else problem.features.scores(weights)
    gold, at_gold = problem.gold, problem.gold_point.dot(scores)
    found = []
    for rank in structure.k_best(scores, k if margin else k + 1):
        points = _checked(problem, rank, first, bounds=False, absent=True)
        counts = (structure.by_example(np.abs(points.z - gold)) > 0.0) & (points.status <= PointStatus.INEXACT)
        z = np.where(structure.to_parts(counts.astype(np.float64)) > 0.0, points.z, gold)
        factor = np.where(counts, problem.scale, 0.0)
        loss = problem.losses(z) if margin else factor
        apart = np.where(counts, points.value - at_gold, 0.0)  # with the loss, margin rescaled
        size = np.where(counts, np.abs(points.value) + problem.gold_point.dot_size(scores), 0.0)
        found.append(MostViolated(z, apart if margin else factor * (1.0 + apart), factor, loss, size))
    return found


def _checked(problem: Problem, points: Points, first: int, *, bounds: bool, absent: bool = False) -> Points:
    """InexactError if a value is not a bound; NaN values if scores are not finite.

    ``bounds``: whether values of INEXACT points are bounds if the structure's are; ``absent``: whether an example may
    have no such output.
    """
    structure, status = problem.structure, points.status
    if (status == PointStatus.NONFINITE).any():
        return Points(points.z, np.full(len(points.value), np.nan), status, points.warm)
    fine = status == PointStatus.OK
    if bounds and structure.value_bounds:
        fine |= status == PointStatus.INEXACT
    if absent:
        fine |= status == PointStatus.ABSENT
    if not fine.all():
        index = int(np.flatnonzero(~fine)[0])
        raise InexactError(
            f"example {first + index}: the {structure.name}'s argmax found no exact output "
            f"({PointStatus(int(status[index])).name}), so that no certificate would hold"
        )
    return points


def unsupported(problem: Problem) -> str | None:
    """The reason why the problem's structure has no such hinge, or None."""
    if problem.good is not None:
        if reason := problem.good.unsupported(problem.structure):
            return reason
        if problem.rescaling == "slack":
            return (
                'several good outputs come with a margin of 1 or of their costs, not with rescaling="slack"; '
                'use rescaling="none" or "margin"'
            )
    if problem.rescaling == "none" and problem.structure.relaxed:
        return (
            f'rescaling="none" needs the two best outputs, and the argmax of {problem.structure.called} is relaxed; '
            'use rescaling="margin"'
        )
    if problem.rescaling == "none" and (problem.structure.part_bound[problem.structure.variable_parts] > 1.0).any():
        return (
            f'rescaling="none" needs the two best outputs, and those of {problem.structure.called} whose parts go '
            'above 1 are not known; use rescaling="margin"'
        )
    return None
