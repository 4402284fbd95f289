"""Choice of settings by the AER of held-out pairs, and calibration of confidences on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from maxmargin.structures._arrays import ranges
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.confidence import Calibration
from maxmargin.tasks.alignment.metrics.scores import Scores
from maxmargin.tasks.alignment.training import Choice, GoldBatch

Evaluate = Callable[[Choice], float]
Solve = Callable[[GoldBatch, Choice], FloatArray]


@dataclass(frozen=True, eq=False)
class Selection:
    """The result of :func:`select`.

    Attributes:
        choice: the settings of smallest AER.
        tried: the AER of all settings that were tried.
        calibration: the curve from margins to confidences at those settings.
        held_out: scores of the held-out pairs at those settings.
    """

    choice: Choice
    tried: dict[Choice, float]
    calibration: Calibration
    held_out: Scores


def select(
    gold: GoldBatch,
    held: GoldBatch | None,
    parts: Sequence[IntArray],
    Cs: Sequence[float],
    costs: Sequence[float],
    solve: Solve,
) -> Selection:
    """Choose settings by the AER on ``held``, or if that is None by cross-validation over the parts of ``gold``.

    ``solve`` returns the weights for pairs and settings.
    """
    judge = gold if held is None else held
    margins: dict[Choice, FloatArray] = {}

    def aer(choice: Choice) -> float:
        found = np.empty(len(judge.sure))
        if held is not None:
            found[:] = held.margins(solve(gold, choice))
        else:
            for part in parts:
                weights = solve(gold.select(np.setdiff1d(np.arange(len(gold)), part)), choice)
                cells = ranges(gold.batch.grid_start[part], gold.batch.grid_start[part + 1])
                found[cells] = gold.select(part).margins(weights)
        margins[choice] = found
        return judge.evaluate(found > 0).aer

    best, tried = choose(Cs, costs, aer)
    calibration = Calibration.fit(margins[best], judge.possible)
    return Selection(best, tried, calibration, judge.evaluate(margins[best] > 0))


def folds(n: int, k: int, seed: int) -> list[IntArray]:
    """Split ``n`` pairs into ``k`` random parts."""
    order = np.random.default_rng(seed).permutation(n)
    return [np.sort(order[part::k]) for part in range(min(k, n))]


def choose(Cs: Sequence[float], false_negatives: Sequence[float], aer: Evaluate) -> tuple[Choice, dict[Choice, float]]:
    """The settings of smallest AER, by coordinates: costs at the middle ``C``, then ``C``, then costs next to the best.

    Ties go to the setting that is listed first.
    """
    tried: dict[Choice, float] = {}

    def best(choices: Sequence[Choice]) -> Choice:
        for choice in choices:
            if choice not in tried:
                tried[choice] = aer(choice)
        return min(choices, key=lambda choice: tried[choice])

    cost = best([Choice(Cs[len(Cs) // 2], cost) for cost in false_negatives]).false_negative
    C = best([Choice(C, cost) for C in Cs]).C
    place = false_negatives.index(cost)
    return best([Choice(C, other) for other in false_negatives[max(place - 1, 0) : place + 2]]), tried
