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
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _checks as checks
from maxmargin import _kernels
from maxmargin.optimization.base import Run, Start, StateDict, checked_points, weight_sized
from maxmargin.optimization.certificate import Proposal
from maxmargin.solvers.online.base import OnlineSolver, finite_pass, saved_memory, signs_of, with_memory
from maxmargin.structures.base import FloatArray


@dataclass(frozen=True, eq=False)
class PassesState:
    """Weights as a sum of changes, the sum in which the change at visit t counts t - 1 times, and visits done.

    ``examples`` is the compiled view (None in batch form), ``changes`` how many examples of the last pass were wrong.
    """

    examples: Any
    weights: FloatArray
    late: FloatArray
    visits: float = 0.0
    changes: int = -1

    @property
    def average(self) -> FloatArray:
        """The average over the visits."""
        return self.weights - self.late / max(self.visits, 1.0)

    def copied(self) -> tuple[FloatArray, FloatArray]:
        """Both sums, for a pass to change: an interruption leaves these whole."""
        return self.weights.copy(), self.late.copy()


class OnlinePasses(OnlineSolver):
    """Base of the perceptron and MIRA: passes in random order, the average at the end."""

    average: bool
    shuffle: bool
    minimizes = False
    max_iter = 10

    def init(self, run: Run, start: Start) -> PassesState:
        """The start weights."""
        weights = start.weights_for(run.problem)
        return PassesState(self.view(run), weights, np.zeros(len(weights)))

    checkpoint_unsupported = ""

    def state_dict(self, state: PassesState) -> StateDict:
        """Both sums, and the oracle's memory."""
        memory = np.zeros(0) if state.examples is None else saved_memory(state.examples)
        return {
            "weights": state.weights,
            "late": state.late,
            "visits": state.visits,
            "changes": state.changes,
            "memory": memory,
        }

    def load_state_dict(self, run: Run, saved: StateDict) -> PassesState:
        """The same sums over a new view."""
        view = self.view(run)
        if view is not None:
            with_memory(view, saved["memory"])
        weights, late = weight_sized(run, saved["weights"]), weight_sized(run, saved["late"])
        return PassesState(view, weights, late, float(saved["visits"]), int(saved["changes"]))

    def view(self, run: Run) -> Any:
        """The compiled view of the examples."""
        return run.problem.examples()

    def order(self, run: Run) -> Any:
        """The examples of a pass."""
        n = run.problem.structure.n_examples
        return run.random.permutation(n) if self.shuffle else np.arange(n)

    def done(self, state: PassesState) -> bool:
        """Whether a pass changed nothing."""
        return state.changes == 0

    def propose(self, run: Run, state: PassesState) -> Sequence[Proposal]:
        """The average, or the last weights, scaled into the ball if there is one: predictions stay the same."""
        weights = state.average if self.average else state.weights
        return [Proposal(run.problem.region.rescale(weights), np.zeros(len(weights)), 0.0)]


@dataclass(frozen=True, kw_only=True)
class AveragedPerceptron(OnlinePasses):
    """Settings of the perceptron.

    Attributes:
        average: whether the average of the weights is the result, or the last weights.
        shuffle: whether each pass goes in a new random order.
        batch: add up the changes of all examples before the weights change.
        max_iter: passes, where ``Stop`` names none.
    """

    average: bool = True
    shuffle: bool = True
    batch: bool = False
    max_iter: int = 10

    def __post_init__(self) -> None:
        checks.flag("average", self.average)
        checks.flag("shuffle", self.shuffle)
        checks.flag("batch", self.batch)
        checks.integer("max_iter", self.max_iter, least=1)

    def view(self, run: Run) -> Any:
        """None in batch form."""
        return None if self.batch else super().view(run)

    def step(self, run: Run, state: PassesState) -> PassesState:
        """One pass."""
        if self.batch:
            return self._batch_step(run, state)
        weights, late = state.copied()
        order = self.order(run)
        wrong = finite_pass(
            _kernels.perceptron_pass, state.examples, order, signs_of(run.problem), weights, late, state.visits
        )
        run.counters.argmax += 1
        return PassesState(state.examples, weights, late, state.visits + len(order), wrong)

    def _batch_step(self, run: Run, state: PassesState) -> PassesState:
        change, wrong = np.zeros(len(state.weights)), 0
        run.counters.argmax += 1
        for shard in run.shards:
            points = checked_points(shard.structure.argmax(shard.features.scores(state.weights)))
            delta = shard.gold - points.z
            wrong += int((shard.structure.by_example(np.abs(delta)) > 0.0).sum())
            change += shard.feature_sum(delta)
        region = run.problem.region
        weights = state.weights + change
        if region.nonnegative is not None:
            weights = np.where(region.nonnegative, np.maximum(weights, 0.0), weights)
        late = state.late + state.visits * (weights - state.weights)
        return PassesState(None, weights, late, state.visits + 1.0, wrong)
