"""Cutting planes, the methods of SVM-struct (Tsochantaridis et al. 2005; Joachims, Finley and Yu 2009).

The constraints of the primal problem, ``xi_i >= m_i w'df_i(y) + l_i(y)``, are added as argmax finds them violated, and
the problem over those found so far is solved again: by its dual, the master problem of
:mod:`maxmargin.solvers.decomposition.simplex_masters`, of which simplicial decomposition is another use.

- ``slacks="n"``: one slack per example. A constraint is added if it is violated by more than ``eps``; weights are
  updated ``solves_per_pass`` times a pass over the data. Quadratic slack is allowed.
- ``slacks="one"``: one slack for the sum, so one constraint a pass, the sum of all most violated outputs.

Constraints that had no multiplier in ``age`` masters are removed. Cost of an iteration: an argmax pass, and masters
that grow with the constraints kept. Stopping test: the certified gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maxmargin import _checks
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import BaseProblem
from maxmargin.solvers.decomposition.master_solver import Iterate, MasterSolver
from maxmargin.solvers.decomposition.simplex_masters import Found
from maxmargin.structures.base import IntArray


@dataclass(frozen=True, kw_only=True)
class CuttingPlane(MasterSolver):
    """Settings of the cutting-plane methods.

    Attributes:
        slacks: "n", one per example, or "one" for the sum.
        eps: by how much a constraint must be violated to be added; None for a quarter of the run's tolerance times the
            mean hinge.
        solves_per_pass: with n slacks, how often weights are updated in a pass over the data.
        accuracy, joint, sweeps, age, max_iter: see :class:`MasterSolver`; points are constraints, their weights
            multipliers.
    """

    slacks: str = "n"
    eps: float | None = None
    solves_per_pass: int = 10
    age: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.one_of("slacks", self.slacks, ("n", "one"))
        if self.eps is not None:
            _checks.positive("eps", self.eps)
        _checks.integer("solves_per_pass", self.solves_per_pass, least=1)

    def unsupported(self, problem: BaseProblem) -> str | None:
        """Needs a ridge penalty; one slack must be linear."""
        if self.slacks == "one" and problem.slack == "quadratic":
            return 'one slack for the sum has no quadratic form; use CuttingPlane(slacks="n")'
        return super().unsupported(problem)

    def init(self, run: Run, start: Start) -> Iterate:
        """No constraints."""
        group = 1 if self.slacks == "n" else max(1, run.problem.n_examples)
        return Iterate.first(run, start, group)

    def step(self, run: Run, state: Iterate) -> Iterate:
        """One pass over the data."""
        n, masters, eps = run.problem.n_examples, state.masters, self._eps(run, state)
        if self.slacks == "one" or self.solves_per_pass == 1 or n <= 1:
            return self._solved(run, state, masters.find(run, state.weights, eps), 1.0)
        added, parts = 0, min(n, self.solves_per_pass)
        for part in range(parts):  # the same share of every shard at a time
            found = masters.find(run, state.weights, eps, (part, parts))
            if not len(found.seen):
                continue
            state = self._solved(run, state, found, n / len(found.seen), found.seen)
            added += state.added
        return replace(state, added=added)

    def _eps(self, run: Run, state: Iterate) -> float:
        """The threshold: constraints left out sum to less than half the tolerance; 0 if the last pass added none."""
        if state.added == 0:
            return 0.0
        if self.eps is not None:
            return self.eps
        return 0.25 * run.tol * float(state.masters.best.mean()) if len(state.masters.best) else 0.0

    def _solved(
        self, run: Run, state: Iterate, found: Found, share: float, own: IntArray | slice = slice(None)
    ) -> Iterate:
        """Add constraints and solve the master; the examples looked at are one in ``share``."""
        masters = state.masters
        gap = share * float(masters.gaps(found.hinges)[own].sum())
        added = masters.add(found, np.inf)
        blocks = np.arange(masters.n_blocks)
        masters.solve(blocks, state.aim(run, gap, self.accuracy), joint=self.joint, sweeps=self.sweeps)
        return state.moved(self.age, added=added)
