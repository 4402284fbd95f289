"""Cutting planes, the methods of SVM-struct (Tsochantaridis et al. 2005; Joachims, Finley and Yu 2009).

The constraints of the primal problem, ``xi_i >= m_i w'df_i(y) + l_i(y)``, are added as argmax finds them violated, and
the problem over those found so far is solved again: by its dual, the master problem of
:mod:`maxmargin.solvers.simplex_masters`, of which simplicial decomposition is another use.

- ``slacks="n"``: one slack per example. A constraint comes in where it is violated by more than ``eps``; weights are
  updated ``solves_per_pass`` times a pass over the data. Quadratic slack is allowed.
- ``slacks="one"``: one slack for the sum, so one constraint a pass, the sum of all examples' worst outputs.

Constraints that had no multiplier in ``age`` masters are removed. Cost of an iteration: an argmax pass, and masters
that grow with the constraints kept. Stopping test: the certified gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from maxmargin.problem import Problem
from maxmargin.solvers.base import Run, Solver, Start, check_count, check_positive
from maxmargin.solvers.certificate import Proposal
from maxmargin.solvers.simplex_masters import SHARDS, Candidates, Iterate, why_not

SLACKS = ("n", "one")


@dataclass(frozen=True, kw_only=True)
class CuttingPlane(Solver):
    """Settings of the cutting-plane methods.

    Attributes:
        slacks: "n", one per example, or "one" for the sum.
        eps: how far a constraint must be violated to come in; None for a quarter of the run's tolerance times the
            mean hinge.
        solves_per_pass: with n slacks, how often weights are updated in a pass over the data.
        accuracy: masters are solved to this fraction of the gap that was found.
        joint: masters of up to so many constraints are solved at once, others example by example.
        sweeps: at most so many sweeps over the examples a master.
        age: constraints without a multiplier in so many masters are removed; 0 keeps them.
        max_iter: limit of passes when the caller gives none.
    """

    slacks: str = "n"
    eps: float | None = None
    solves_per_pass: int = 10
    accuracy: float = 0.1
    joint: int = 300
    sweeps: int = 60
    age: int = 20
    max_iter: int = 1000

    def __post_init__(self) -> None:
        if self.slacks not in SLACKS:
            raise ValueError(f"slacks must be one of {', '.join(map(repr, SLACKS))}, got {self.slacks!r}")
        if self.eps is not None:
            check_positive(eps=self.eps)
        check_count(solves_per_pass=self.solves_per_pass)
        check_count(age=self.age, at_least=0)
        check_positive(accuracy=self.accuracy, joint=self.joint, sweeps=self.sweeps, max_iter=self.max_iter)
        if self.accuracy >= 1.0:
            raise ValueError(f"accuracy must be below 1, got {self.accuracy!r}")

    @property
    def shard_size(self) -> int | None:
        """Constraints outlive the packed vectors, which are made piece by piece."""
        return SHARDS

    def why_not(self, problem: Problem) -> str | None:
        """Needs a ridge penalty; one slack must be linear."""
        if self.slacks == "one" and problem.slack == "quadratic":
            return 'one slack for the sum has no quadratic form; use CuttingPlane(slacks="n")'
        return why_not(problem)

    def init(self, run: Run, start: Start) -> Iterate:
        """No constraints."""
        group = 1 if self.slacks == "n" else max(1, run.problem.structure.n_examples)
        return Iterate.first(run, start, group)

    def step(self, run: Run, state: Iterate) -> Iterate:
        """One pass over the data."""
        n, masters, eps = run.problem.structure.n_examples, state.masters, self._eps(run, state)
        if self.slacks == "one" or self.solves_per_pass == 1 or n <= 1:
            return self._solved(state, masters.find(run, state.weights, eps), 1.0)
        added = 0
        edges = np.linspace(0, n, min(n, self.solves_per_pass) + 1).astype(np.int64).tolist()
        for first, last in pairwise(edges):
            part = run.problem.select(np.arange(first, last))
            worst = run.worst_of(part, state.weights, first)
            found = masters.candidates(part, worst, first, eps)
            state = self._solved(state, found, n / (last - first), slice(first, last))
            added += state.added
        return replace(state, added=added)

    def _eps(self, run: Run, state: Iterate) -> float:
        """All constraints that stay out add up to less than half the tolerance; when none came in, any may."""
        if state.added == 0:
            return 0.0
        if self.eps is not None:
            return self.eps
        return 0.25 * run.tol * float(state.masters.best.mean()) if len(state.masters.best) else 0.0

    def _solved(self, state: Iterate, found: Candidates, share: float, own: slice = slice(None)) -> Iterate:
        """Add constraints and solve the master; the examples looked at are one in ``share``."""
        masters = state.masters
        gap = share * float(masters.gaps(found.hinges)[own].sum())
        added = masters.add(found, np.inf)
        blocks = np.arange(masters.n_blocks)
        masters.solve(blocks, max(self.accuracy * gap, 0.0), joint=self.joint, sweeps=self.sweeps)
        return state.moved(self.age, added=added)

    def propose(self, run: Run, state: Iterate) -> Sequence[Proposal]:
        """The master's solution."""
        return [state.proposal()]
