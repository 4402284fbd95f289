"""Stochastic subgradient descent on the penalty form, averaged (Shalev-Shwartz, Singer and Srebro 2007, "Pegasos").

With steps ``C/t`` on the subgradients ``w/C + n d_i`` of single examples the weights are ``w_t = P(a_t / t)``, where
``a_t = -C n sum d_i`` sums the feature differences of the most violated outputs: dual averaging (Xiao 2010), in which
signs and a ball enter through the projection ``P``, and a change costs only its non-zeros. Proposed are the last
weights and the average with weights growing like t, which converges like ``1/t`` (Lacoste-Julien, Schmidt and Bach
2012).

After whole passes every example has been met equally often, so that the mean of all outputs met is a feasible point of
the other player, with ``g = -a_t / (C t)``: the certificate's dual. Cost of a pass: scores and one argmax of every
example, the features of its output; all in one compiled loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _checks as checks
from maxmargin import _kernels
from maxmargin.optimization.base import Run, Start, StateDict, weight_sized
from maxmargin.optimization.certificate import Proposal
from maxmargin.solvers.online.base import RidgeSolver, finite_pass, saved_memory, signs_of, with_memory
from maxmargin.structures.base import FloatArray


@dataclass(frozen=True, eq=False)
class SubgradientState:
    """``a_t``, the sum in which the change at visit t counts t - 1 times, visits done and losses met."""

    examples: Any
    total: FloatArray
    late: FloatArray
    visits: float = 0.0
    loss: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Subgradient(RidgeSolver):
    """Settings of stochastic subgradient descent.

    Attributes:
        average: whether the average is proposed besides the last weights.
        shuffle: whether each pass goes in a new random order.
        max_iter: passes, where ``Stop`` names none.
    """

    average: bool = True
    shuffle: bool = True
    max_iter: int = 1000

    def __post_init__(self) -> None:
        checks.flag("average", self.average)
        checks.flag("shuffle", self.shuffle)
        checks.integer("max_iter", self.max_iter, least=1)

    def init(self, run: Run, start: Start) -> SubgradientState:
        """Zero weights: the first steps are long and would forget any others."""
        start.weights_for(run.problem)
        n = run.problem.n_weights
        return SubgradientState(run.problem.examples(), np.zeros(n), np.zeros(n))

    checkpoint_unsupported = ""

    def state_dict(self, state: SubgradientState) -> StateDict:
        """Both sums, and the oracle's memory."""
        return {
            "total": state.total,
            "late": state.late,
            "visits": state.visits,
            "loss": state.loss,
            "memory": saved_memory(state.examples),
        }

    def load_state_dict(self, run: Run, saved: StateDict) -> SubgradientState:
        """The same sums over a new view."""
        view = with_memory(run.problem.examples(), saved["memory"])
        total, late = weight_sized(run, saved["total"]), weight_sized(run, saved["late"])
        return SubgradientState(view, total, late, float(saved["visits"]), float(saved["loss"]))

    def step(self, run: Run, state: SubgradientState) -> SubgradientState:
        """One pass."""
        n = run.problem.structure.n_examples
        total, late = state.total.copy(), state.late.copy()
        order = run.random.permutation(n) if self.shuffle else np.arange(n)
        sums = total, late, state.visits
        arguments = state.examples, order, *self.ridge(run.problem), signs_of(run.problem), *sums
        loss = finite_pass(_kernels.subgradient_pass, *arguments)
        run.counters.argmax += 1
        return SubgradientState(state.examples, total, late, state.visits + n, state.loss + loss)

    def propose(self, run: Run, state: SubgradientState) -> Sequence[Proposal]:
        """The last weights and the average, both with the mean of the outputs met."""
        problem, t = run.problem, max(state.visits, 1.0)
        region = problem.region
        g = state.total / (-self.ridge(problem).C * t)
        loss = state.loss * problem.structure.n_examples / t
        found = [Proposal(region.project(state.total / t), g, loss)]
        if self.average and state.visits:
            # sum_t a_t = t a_t - sum (s - 1) change_s, and w_t = a_t / t counts t times.
            mean = (t * state.total - state.late) / (0.5 * t * (t + 1.0))
            found.insert(0, Proposal(region.project(mean), g, loss))
        return found
