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
from dataclasses import dataclass, replace

import numpy as np

from maxmargin import _kernels
from maxmargin.optimization.certificate import Proposal
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.solvers.online.base import OnlinePasses, PassesState, ridge_of, signs_of


@dataclass(frozen=True, kw_only=True)
class Subgradient(OnlinePasses):
    """Settings of stochastic subgradient descent; the state sums up ``a_t``, and its tally is the losses met.

    Attributes:
        average: whether the average is proposed besides the last weights.
        shuffle: whether each pass goes in a new random order.
        max_iter: passes, where ``Stop`` names none.
    """

    average: bool = True
    shuffle: bool = True
    max_iter: int = 1000
    needs = ("ridge",)
    takes_slack = ("linear",)

    def init(self, run: Run, start: Start) -> PassesState:
        """Zero weights: the first steps are long and would forget any others."""
        start.weights_for(run.whole)
        n = run.whole.n_weights
        return PassesState(self.view(run), np.zeros(n), np.zeros(n))

    def step(self, run: Run, state: PassesState) -> PassesState:
        """One pass."""
        settings = *ridge_of(run.whole), signs_of(run.whole)
        passed, loss = self.passed(run, state, _kernels.subgradient_pass, *settings)
        return replace(passed, tally=state.tally + loss)

    def propose(self, run: Run, state: PassesState) -> Sequence[Proposal]:
        """The last weights and the average, both with the mean of the outputs met."""
        problem, t = run.whole, max(state.visits, 1.0)
        region = problem.region
        g = state.total / (-ridge_of(problem).C * t)
        loss = state.tally * problem.structure.n_examples / t
        found = [Proposal(region.project(state.total / t), g, loss)]
        if self.average and state.visits:
            # sum_t a_t = t a_t - sum (s - 1) change_s, and w_t = a_t / t counts t times.
            mean = (t * state.total - state.late) / (0.5 * t * (t + 1.0))
            found.insert(0, Proposal(region.project(mean), g, loss))
        return found
