"""The averaged perceptron (Freund and Schapire 1999; Collins 2002).

Online: for one example after the other, ``w += s_i (F_i y_i - F_i z_i)`` where the best output ``z_i`` is wrong. In
batch form the sum over all examples at once. The average of the weights over all visits is kept, as the last ones
depend on the last examples. It uses neither the loss nor the region, except for signs, where weights stop at zero,
and balls, into which the average is scaled at the end.

On several shards it is another method, *iterative parameter mixing* (McDonald, Hall and Mann 2010): in every iteration
each shard passes over its own examples from the same weights, and the weights after that are averaged, each with the
number of its examples. More shards learn less in a pass; the message of the solution says that weights were mixed. In
batch form shards add up to the same change.

It does not minimize the objective and has no point of the other player, so the lower bound of its certificate is 0.
Cost of a pass: scores and one argmax of every example, the features of wrong outputs; online, all in one compiled loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin import _kernels
from maxmargin.execution import Piece
from maxmargin.optimization.certificate import Proposal
from maxmargin.optimization.run import Run, checked_points
from maxmargin.optimization.solver import Start
from maxmargin.solvers.online.base import OnlinePasses, PassesState, in_one_place, signs_of
from maxmargin.structures.base import FloatArray


@dataclass(frozen=True, kw_only=True)
class AveragedPasses(OnlinePasses):
    """Settings that the perceptron and MIRA share, whose weights are sums of changes.

    The state's tally counts the examples of the last pass that changed something.

    Attributes:
        average: whether the average of the weights is the result, or the last weights.
        shuffle: whether each pass goes in a new random order.
        max_iter: passes, where ``Stop`` names none.
    """

    average: bool = True
    shuffle: bool = True
    max_iter: int = 10
    minimizes = False
    shards_unsupported = ""
    whole_shards = True

    def init(self, run: Run, start: Start) -> PassesState:
        """The start weights."""
        weights = start.weights_for(run.problem)
        view = self.view(run) if in_one_place(run) else None
        return PassesState(view, weights, np.zeros(len(weights)), tally=-1)

    def remark(self, run: Run) -> str:
        """That weights were mixed, if they were."""
        if in_one_place(run):
            return ""
        return f"; weights of {run.session.n_pieces} shards were mixed after every pass (iterative parameter mixing)"

    def done(self, state: PassesState) -> bool:
        """Whether a pass changed nothing."""
        return state.tally == 0

    def propose(self, run: Run, state: PassesState) -> Sequence[Proposal]:
        """The average, or the last weights, scaled into the ball if there is one: predictions stay the same."""
        weights = state.total - state.late / max(state.visits, 1.0) if self.average else state.total
        return [Proposal(run.problem.region.rescale(weights), np.zeros(len(weights)), 0.0)]


@dataclass(frozen=True, kw_only=True)
class AveragedPerceptron(AveragedPasses):
    """Settings of the perceptron.

    Attributes:
        batch: add up the changes of all examples before the weights change.
        average, shuffle, max_iter: see :class:`AveragedPasses`.
    """

    batch: bool = False
    takes_good = False

    def view(self, run: Run) -> Any:
        """None in batch form."""
        return None if self.batch else super().view(run)

    def step(self, run: Run, state: PassesState) -> PassesState:
        """One pass."""
        if self.batch:
            return self._batch_step(run, state)
        passed, wrong = self.passed(run, state, _kernels.perceptron_pass, signs_of(run.problem))
        return replace(passed, tally=wrong)

    def _batch_step(self, run: Run, state: PassesState) -> PassesState:
        run.counters.argmax += 1
        change, wrong = run.sums(_changes, state.total, self.shard_size)
        region = run.problem.region
        weights = state.total + change
        if region.nonnegative is not None:
            weights = np.where(region.nonnegative, np.maximum(weights, 0.0), weights)
        late = state.late + state.visits * (weights - state.total)
        return PassesState(None, weights, late, state.visits + 1.0, wrong)

    def remark(self, run: Run) -> str:
        """In batch form nothing is mixed."""
        return "" if self.batch else super().remark(run)


def _changes(piece: Piece, memory: Any, weights: FloatArray, size: int) -> tuple[tuple[FloatArray, int], Any]:
    """The change that the wrong outputs of a piece ask for, and how many there are."""
    change, wrong = np.zeros(len(weights)), 0
    for part in piece.problem.shards(size):
        points = checked_points(part.structure.argmax(part.features.scores(weights)))
        delta = part.gold - points.z
        wrong += int((part.structure.by_example(np.abs(delta)) > 0.0).sum())
        change += part.feature_sum(delta)
    return (change, wrong), memory
