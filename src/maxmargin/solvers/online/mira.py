"""MIRA, the margin-infused relaxed algorithm (Crammer and Singer 2003; McDonald, Crammer and Pereira 2005).

For one example after the other, the weights move as little as possible so that the outputs that violate the margin most
(one, or ``k`` of them) keep it:

    min_{w', xi >= 0}  1/2 ||w' - w||^2 + aggressiveness * xi     s.t.  w'd_j + loss_j <= xi,   j = 1 .. k

with ``d_j`` the feature difference of output j to the gold one. It is solved in its dual over the simplex of the gold
output and these, by pairwise steps; with k = 1 in closed form, the passive-aggressive update. The average of the
weights over all visits is kept. Like the perceptron it does not minimize the objective, of whose region it uses only
signs and balls; unlike the perceptron it uses the loss.

Cost of a pass: scores and one argmax (or k-best list) of every example, the features of its outputs twice; all in one
compiled loop. On cuts and structures of your own, k > 1 needs up to k argmax calls for every variable of an
example (:meth:`maxmargin.structures.Structure.k_best`): keep to k = 1 on large ones. On several shards weights are
mixed after every pass, as those of :mod:`the perceptron <maxmargin.solvers.online.perceptron>` are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from maxmargin import _checks, _kernels
from maxmargin.optimization.run import Run
from maxmargin.problem import BaseProblem, Problem
from maxmargin.solvers.online.base import PassesState, signs_of
from maxmargin.solvers.online.perceptron import AveragedPasses


@dataclass(frozen=True, kw_only=True)
class Mira(AveragedPasses):
    """Settings of MIRA.

    Attributes:
        k: how many of the most violated outputs must keep their margin.
        aggressiveness: the cost of a violation relative to a change of the weights.
        average, shuffle, max_iter: see :class:`~maxmargin.solvers.online.perceptron.AveragedPasses`.
    """

    k: int = 1
    aggressiveness: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.integer("k", self.k, least=1)
        _checks.positive("aggressiveness", self.aggressiveness)

    def unsupported(self, problem: BaseProblem) -> str | None:
        """Lists of most violated outputs need the margin rescaled."""
        if self.k > 1 and problem.rescaling != "margin":
            return f'k-best lists need rescaling="margin", not "{problem.rescaling}"; use Mira(k=1)'
        if self.k > 1 and problem.good is not None:
            return "with several good outputs only the most violated pair of each example is known; use Mira(k=1)"
        if self.k > 1 and problem.kind.relaxed:
            return f"the argmax of {problem.kind.called} is relaxed and has no k-best list; use Mira(k=1)"
        return None

    def view_of(self, problem: Problem) -> Any:
        """With lists of k outputs."""
        return problem.examples(self.k)

    def step(self, run: Run, state: PassesState) -> PassesState:
        """One pass."""
        settings = float(self.aggressiveness), self.k, signs_of(run.problem)
        passed, changes = self.passed(run, state, _kernels.mira_pass, *settings)
        return replace(passed, tally=changes)
