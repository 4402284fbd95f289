"""Restricted simplicial decomposition (Yu and Rousu 2007, after Hearn, Lawphongpanich and Ventura 1987).

The dual problem in the sums ``g`` of feature differences and ``l`` of losses,

    max  l + min_{w in W} (w'g + 1/(2C) ||w||^2)    over  (g, l) in sum_i conv{ (m_i s_i df_i(y), s_i l_i(y)) : y },

is solved over convex hulls of points found so far (``W`` may also be a ball without the ridge penalty, or be that of
an L1 norm). A round finds, by one argmax pass at the current ``w``, the point that is farthest along the gradient, and
solves the *master* problem over the hull by a projected Newton method:

- ``master="product"``: every example has a simplex of its own. The strongest: few rounds, larger masters.
- ``master="one"``: one simplex, each point a sum over all examples; a master of at most ``r + 1`` variables.
- a working set takes part of the examples a round, the others fixed. With ``master="one"`` examples are then put
  into groups of ``working_set_size``, each with a simplex on its sums.

At most ``r`` points are kept a simplex, and one iterate, at first the gold outputs; at the limit the point of least
weight is dropped, and the current iterate kept in place of the one before (footnote 1). ``r = 1`` is the Frank-Wolfe
method with exact line search, ``r = inf`` simplicial decomposition, which ends after finitely many rounds. Slack
rescaling changes the points alone; with quadratic slack they are rays of cones.

The paper's objective is ``C`` times ours: its section 3 minimizes ``1/2 ||w||^2 + C sum_i xi_i``, with the same ``C``.
Its variations I and II in section 4.2 have ``C/n`` for ``n`` examples where we have ``C``.

Four things go beyond the paper, and ``SimplicialDecomposition.plain()`` is without the first three. *Stabilization*:
masters have a proximal term, see :mod:`~maxmargin.solvers.decomposition.proximal_center`, for fewer rounds where the
penalty is weak. *Inexact masters*, solved to a tenth of the gap, and points without weight dropped. *Scaled rays*:
with quadratic slack and one simplex, each example's ray enters the sum with its slack, the best response to the current
weights, which saves a tenth of the rounds. *Other regions*: balls, and L1 norms as penalty or ball.

Cost of a round: one argmax pass (working set "cyclic": a fraction of one), feature differences of the new points, and
the master. Stopping test: the certified gap, whose dual never falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from maxmargin import _checks
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import BaseProblem
from maxmargin.solvers.decomposition.master_solver import Iterate, MasterSolver

_EXACT = 1e-4
"""The accuracy of masters without a new point."""
_ROUNDING = 1e-12
"""With a limit, blocks whose gap is below this fraction of the dual get no points."""


@dataclass(frozen=True, kw_only=True)
class SimplicialDecomposition(MasterSolver):
    """Settings of restricted simplicial decomposition. ``SimplicialDecomposition.plain()`` is the paper's own version.

    Attributes:
        master: "product" of simplexes, one per example, or "one" simplex on sums.
        r: points kept a simplex besides an iterate, at least 1; infinity for all.
        working_set: which examples a round is about: "all"; "cyclic", the next ones in turn; "violation", those with
            the largest gaps, which needs a pass over all.
        working_set_size: how many examples that is; None for a tenth.
        stabilize: with working set "all", give masters a proximal term, which keeps their weights near the best ones so
            far; False is the paper's method. Without a ridge penalty they always have one.
        rays: with quadratic slack, "scaled", the rays of all violated outputs, in sums each times its slack; or "unit",
            the paper's (30): rays along which the dual rises from the current point, all of one length.
        inexact: with working set "all", the share of the gap by which argmax passes may miss their maximum, below 1, on
            structures whose maxima are expensive to find exactly; the certificate counts it, and points that it keeps
            from being found come in later rounds.
        accuracy, joint, sweeps, age, max_iter: see :class:`MasterSolver`.
    """

    master: str = "product"
    r: float = np.inf
    working_set: str = "all"
    working_set_size: int | None = None
    stabilize: bool = True
    rays: str = "scaled"
    inexact: float = 0.5
    needs = ("norms",)

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.one_of("master", self.master, ("product", "one"))
        _checks.one_of("working_set", self.working_set, ("all", "cyclic", "violation"))
        if not (isinstance(self.r, float) and np.isposinf(self.r)):
            _checks.integer("r", self.r, least=1, hint="infinity keeps all points")
        if self.working_set_size is not None:
            _checks.integer("working_set_size", self.working_set_size, least=1)
        _checks.number("inexact", self.inexact, least=0, below=1)
        _checks.one_of("rays", self.rays, ("scaled", "unit"))

    @classmethod
    def plain(cls, **settings: Any) -> Self:
        """The method as it was published: points at the master's own weights, exact masters, no point dropped before
        the limit, rays of one length.
        """
        exact: dict[str, Any] = {"accuracy": 1e-15, "joint": 1000, "sweeps": 10_000}
        paper: dict[str, Any] = {"stabilize": False, "age": 0, "rays": "unit", "inexact": 0.0}
        return cls(**(exact | paper | settings))

    def unsupported(self, problem: BaseProblem) -> str | None:
        """Without a ridge penalty a round must be about all examples."""
        if reason := super().unsupported(problem):
            return reason
        if self.working_set != "all" and problem.region.ridge is None:
            return f'without a ridge penalty working_set must be "all", not "{self.working_set}"; use "all", or give C'
        return None

    def _size(self, problem: BaseProblem) -> int:
        n = problem.n_examples
        if self.working_set == "all":
            return max(1, n)
        return min(max(1, n), self.working_set_size or max(1, -(-n // 10)))

    def init(self, run: Run, start: Start) -> Iterate:
        """The gold outputs with weight 1."""
        group = self._size(run.problem) if self.master == "one" else 1
        proximal = self._proximal(run.problem)
        return Iterate.first(run, start, group, unit_rays=self.rays == "unit", proximal=proximal)

    def _proximal(self, problem: BaseProblem) -> bool:
        """Whether masters have a proximal term."""
        return problem.region.ridge is None or (self.working_set == "all" and bool(self.stabilize))

    def step(self, run: Run, state: Iterate) -> Iterate:
        """Find points, solve the master."""
        masters, problem, size = state.masters, run.problem, self._size(run.problem)
        n = problem.n_examples
        if self.working_set == "cyclic" and size < n:
            first, last = state.position, min(state.position + size, n)
            examples = np.arange(first, last)
            found = masters.find_between(run, state.weights, first, last)
            blocks, position = np.unique(examples // masters.group), 0 if last >= n else last
            gaps = masters.gaps(found.hinges)
        else:
            found = masters.find(run, state.weights)
            blocks, position = np.arange(masters.n_blocks), 0
            gaps = masters.gaps(found.hinges)
            if self.working_set == "violation":
                # A group is a working set itself.
                most = 1 if masters.group > 1 else size
                blocks = np.sort(np.argsort(-gaps, kind="stable")[:most])
        chosen = np.zeros(masters.n_blocks, dtype=np.bool_)
        # At the limit a point takes another's place: one that rounding alone brings in would drive out a better one.
        chosen[blocks] = np.isinf(self.r) or gaps[blocks] > _ROUNDING * state.dual
        masters.judge(state, found, run.found)
        added = masters.add(found, self.r, chosen)
        whole = len(blocks) == masters.n_blocks
        gap = state.gap(float(found.hinges.sum())) if whole else float(gaps[blocks].sum())
        # Where nothing was new, better weights can only come from the points there are.
        accuracy = self.accuracy if added else min(self.accuracy, _EXACT)
        masters.solve(blocks, state.aim(run, gap, accuracy), joint=self.joint, sweeps=self.sweeps)
        moved = state.moved(self.age, position=position, added=added)
        if whole:
            run.hinge_tol = self.inexact * self._room(run, state, moved)
        return moved

    def _room(self, run: Run, state: Iterate, moved: Iterate) -> float:
        """By how much an argmax pass at the moved weights may miss its maximum and still be of use."""
        primal, below = run.problem.region.penalty(state.weights) + run.found.value, moved.dual
        center = moved.masters.center
        if center is not None:
            # A master promises to come down to its model: a coarser pass could not tell whether it did.
            primal, below = center.value, max(below, moved.model)
        return primal - below if below < primal < np.inf else 0.0
