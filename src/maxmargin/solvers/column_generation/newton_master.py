"""Master problems by Newton's method on a smoothed objective, for many rows and few weights.

The master problem of :mod:`~maxmargin.solvers.column_generation.linear_masters` in the weights alone, with a proximal
term, and each example's largest row smoothed around the multipliers of the last master,

    min_w  1/C ||w||_1 + mu/2 ||w - best||^2 + sum_i max_{l_i} [l_i'(A_i w + b_i) - nu/2 ||l_i - last_i||^2]

is piecewise quadratic but for the norm, and has as many variables as there are weights: compiled Newton steps, whose
quadratic models are minimized by coordinate descent, solve it closely (``newton_master.hpp``). The multipliers then
exceed the constraints ``|A'l| <= 1/C`` of the linear program by ``mu (w - best)`` and next to nothing else. That is
what the other masters lack on many examples: ``A'l`` is a sum over all of them, and must be right to a share of 1/C as
small as the gap.

Both terms vanish as masters follow each other. ``mu`` falls where the objective falls by what a master promised, and
rises where it rises by more; ``nu``, around multipliers that move along (the method of multipliers for the other
player), falls while the smoothing is a large part of the gap.
"""

from __future__ import annotations

import numpy as np

from maxmargin import _kernels
from maxmargin.optimization.checkpoints.saved import StateDict, count, number
from maxmargin.optimization.run import NonFiniteError
from maxmargin.regions import Region
from maxmargin.solvers.column_generation import linear_masters
from maxmargin.solvers.column_generation.highs_master import InexactMaster
from maxmargin.solvers.column_generation.linear_masters import Answer, MasterProblem, OutputRows
from maxmargin.solvers.column_generation.proximal_master import RowProgram
from maxmargin.structures.base import FloatArray

STEPS = 40
"""The most Newton steps in one master."""

LEFT = 0.015
"""The largest derivative at a master's solution, as a share of the price and of the relative gap so far."""

FIRST_WEIGHT, FIRST_SMOOTHING = 10.0, 0.05
"""The first weight of the proximal term, in units of what prices the weights of a margin as the penalty does, and the
first smoothing, as a share of the rows' mean loss."""

KEPT, MOST_KEPT = 0.2, 0.7
"""The shares of what a master promised that the objective must fall for the proximal term to fall a little, or much."""

ROUGH = 0.1
"""The smoothing falls where it costs more than this share of the gap."""

TIGHT = 1e-6
"""Masters are exact where the relative gap is smaller."""

_NUMBERS = {"proximal_weight": False, "smoothing": False, "primal": True, "model": True, "bound": False}
"""What a master remembers, and whether it may be infinite."""

IDLE = 15
"""Masters without a fresh row after which they are exact."""


class NewtonMaster(InexactMaster):
    """Masters by Newton steps; exact ones for tiny gaps, and where no fresh rows are found and the gap stays open.

    What it remembers from one master to the next are the weights of both terms, and what the last one promised.
    """

    def __init__(self, region: Region, n_examples: int) -> None:
        super().__init__(region, n_examples)
        assert region.lasso is not None
        self.price = region.lasso.price
        self.proximal_weight = self.smoothing = 0.0
        self.primal = self.model = np.inf
        self.bound = 0.0
        self.idle = 0

    def state(self) -> StateDict:
        """The numbers, and the exact master if there is one."""
        return {name: getattr(self, name) for name in (*_NUMBERS, "idle")} | super().state()

    def restore(self, saved: StateDict, rows: OutputRows) -> None:
        """See :meth:`Master.restore`."""
        for name, infinite in _NUMBERS.items():
            setattr(self, name, number(saved, name, least=-np.inf if name == "bound" else 0.0, infinite=infinite))
        self.idle = count(saved, "idle")
        super().restore(saved, rows)

    def solve(self, problem: MasterProblem) -> Answer:
        """The solution of one smoothed master near the best weights so far."""
        rows, begin, best = problem.rows, problem.begin, problem.box.center
        self.idle = self.idle + 1 if problem.kept.all() and len(rows) == len(problem.kept) else 0
        gap = 1.0 - self.bound / problem.primal if problem.primal > 0.0 else 0.0
        if self.exact is None and (gap < TIGHT or self.idle > IDLE):
            self.hand_over()
        if self.exact is not None:
            return self.exact.solve(problem)
        if problem.over:
            return begin
        if not len(rows):
            return Answer(np.zeros(len(best)), begin.multipliers)
        program = RowProgram(rows, self.region, self.n_examples, best)
        self._weigh(problem, program)
        around = rows.feasible(begin.multipliers, self.n_examples)[program.order]
        weights, multipliers = best[program.columns], np.empty(len(rows))
        left, steps = _kernels.newton_master_minimize(
            *program.compressed, program.loss, program.first, weights.copy(),
            np.full(len(weights), self.proximal_weight), program.lower, around, weights, multipliers,
            self.price, self.smoothing, LEFT * min(gap, 0.3) * self.price, STEPS,
        )  # fmt: skip
        if not (np.isfinite(left) and np.isfinite(weights).all()):
            raise NonFiniteError("a master problem met numbers that are not finite")
        self._refine(problem, program, weights, multipliers, steps)
        return program.answer(weights, multipliers, steps)

    def _weigh(self, problem: MasterProblem, program: RowProgram) -> None:
        """The weight of the proximal term, by what became of the last master's promise."""
        if not self.proximal_weight:
            self.proximal_weight = FIRST_WEIGHT * program.proximal_weight()
            self.smoothing = max(FIRST_SMOOTHING * float(program.loss.mean()), 1e-300)
        elif (promised := self.primal - self.model) > 0.0:
            fell = self.primal - problem.value
            if fell < -promised:
                self.proximal_weight *= 3.0
            elif fell > KEPT * promised:
                self.proximal_weight /= 10.0 if fell > MOST_KEPT * promised else 3.0
        self.primal = problem.primal

    def _refine(
        self, problem: MasterProblem, program: RowProgram, weights: FloatArray, multipliers: FloatArray, steps: int
    ) -> None:
        """The smoothing of the next master, by what it cost this one."""
        values = np.asarray(program.matrix @ weights) + program.loss
        hinge = float(linear_masters.slacks(values, program.owner, self.n_examples).sum())
        self.model = self.price * float(np.abs(weights).sum()) + hinge
        cost = hinge - float(multipliers @ values)
        self.bound = max(self.bound, program.bound(multipliers)[0])
        if self.model > problem.primal or (cost > ROUGH * (problem.primal - self.bound) and steps < STEPS // 2):
            self.smoothing *= 0.3
        elif steps >= STEPS:  # hard to minimize
            self.smoothing *= 2.0
