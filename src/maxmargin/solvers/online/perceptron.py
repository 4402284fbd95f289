"""The averaged perceptron (Freund and Schapire 1999; Collins 2002).

Online: for one example after the other, ``w += s_i (F_i y_i - F_i z_i)`` where the best output ``z_i`` is wrong. In
batch form the sum over all examples at once. The average of the weights over all visits is kept, as the last ones
depend on the last examples. It uses neither the loss nor the region, except for signs, where weights stop at zero,
and balls, into which the average is scaled at the end.

It does not minimize the objective: the certificate of the result says how far it is from that. Cost of a pass: scores
and one argmax of every example, the features of wrong outputs; online, all in one compiled loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin import _kernels
from maxmargin.optimization.base import Run, Start, checked_points
from maxmargin.optimization.certificate import Proposal
from maxmargin.solvers.online.base import OnlinePasses, PassesState, signs_of


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

    def init(self, run: Run, start: Start) -> PassesState:
        """The start weights."""
        weights = start.weights_for(run.whole)
        return PassesState(self.view(run), weights, np.zeros(len(weights)), tally=-1)

    def done(self, state: PassesState) -> bool:
        """Whether a pass changed nothing."""
        return state.tally == 0

    def propose(self, run: Run, state: PassesState) -> Sequence[Proposal]:
        """The average, or the last weights, scaled into the ball if there is one: predictions stay the same."""
        weights = state.total - state.late / max(state.visits, 1.0) if self.average else state.total
        return [Proposal(run.whole.region.rescale(weights), np.zeros(len(weights)), 0.0)]


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
        passed, wrong = self.passed(run, state, _kernels.perceptron_pass, signs_of(run.whole))
        return replace(passed, tally=wrong)

    def _batch_step(self, run: Run, state: PassesState) -> PassesState:
        change, wrong = np.zeros(len(state.total)), 0
        run.counters.argmax += 1
        for shard in run.whole.shards(self.shard_size):
            points = checked_points(shard.structure.argmax(shard.features.scores(state.total)))
            delta = shard.gold - points.z
            wrong += int((shard.structure.by_example(np.abs(delta)) > 0.0).sum())
            change += shard.feature_sum(delta)
        region = run.whole.region
        weights = state.total + change
        if region.nonnegative is not None:
            weights = np.where(region.nonnegative, np.maximum(weights, 0.0), weights)
        late = state.late + state.visits * (weights - state.total)
        return PassesState(None, weights, late, state.visits + 1.0, wrong)
