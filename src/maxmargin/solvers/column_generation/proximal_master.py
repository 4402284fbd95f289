"""Master problems by proximal steps and coordinate ascent, for many rows and weights.

A step of the proximal point method on the master problem of :mod:`~maxmargin.solvers.column_generation.linear_masters`,

    min_{w, xi}  1/C ||w||_1 + sum_i xi_i + mu/2 ||w - center||^2      s.t.  xi_i >= a_r'w + b_r

has a smooth dual whose variables are the rows' multipliers, at most 1 per example: compiled visits to example after
example raise it (``proximal_master.hpp``). The term keeps the weights near the center, as the box of exact masters
does, and it is what the multipliers lack to be feasible for the linear program: at the optimum of a step they exceed
its constraints by ``mu (w_k - center_k)``. So while the master promises more than the gap of its own linear program,
one step is enough, from a center that moves where the objective falls; then the center follows the solution, step after
step (the method of multipliers), which closes that gap. The weight of the term is doubled or halved until what the
multipliers lack and what coordinate ascent has left are of one size.

Coordinate ascent is quick at gaps of a percent and slow at 1e-4. Once masters aim below that, or where no fresh rows
are found and the steps do not arrive, masters are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maxmargin import _kernels
from maxmargin._sparse import sp
from maxmargin.optimization.checkpoints.saved import StateDict, number, vector
from maxmargin.optimization.run import NonFiniteError
from maxmargin.regions import Region
from maxmargin.solvers.column_generation import linear_masters
from maxmargin.solvers.column_generation.highs_master import InexactMaster
from maxmargin.solvers.column_generation.linear_masters import Answer, MasterProblem, OutputRows
from maxmargin.structures.base import FloatArray, IntArray

PIECE = 50
"""Sweeps over the examples in one proximal step."""

STEPS = 20
"""The most proximal steps in one master."""

SERIOUS = 0.1
"""The share of what a master promised that the objective must fall for its solution to be the next center."""

LEFT = 0.005
"""What coordinate ascent may leave to gain, as a share of the gap aimed at."""

TIGHT = 1e-4
"""Masters that aim at a smaller gap are exact from the start."""

APART = 2.0
"""The weight of the proximal term changes where what the multipliers lack and what is left to gain differ by more than
this factor, and by this factor."""


@dataclass(frozen=True, eq=False)
class _Step:
    """The end of a proximal step, on the columns of the program.

    Attributes:
        weights: shape ``(n_columns,)``.
        model: the master's objective there.
        bound: that of the multipliers, made feasible; ``lacking``: how much that cost.
        left: what coordinate ascent had to gain in its last sweep.
    """

    weights: FloatArray
    model: float
    bound: float
    lacking: float
    left: float


class RowProgram:
    """A master problem over the weights that can differ from zero, rows of an example adjacent."""

    def __init__(self, rows: OutputRows, region: Region, n_examples: int, start: FloatArray) -> None:
        assert region.lasso is not None
        self.rows, self.region, self.price, self.n_examples = rows, region, region.lasso.price, n_examples
        matrix = rows.matrix
        least = np.zeros(matrix.shape[1])
        np.minimum.at(least, matrix.indices, matrix.data)
        useful = least < 0.0
        if region.nonnegative is None:
            useful[matrix.indices] = True
        else:
            useful[matrix.indices[~region.nonnegative[matrix.indices]]] = True
        self.columns: IntArray = np.flatnonzero(useful | (start != 0.0))
        self.order = np.argsort(rows.owner, kind="stable")
        self.matrix = sp.csr_array(sp.csr_array(matrix[self.order])[:, self.columns])
        self.matrix.sort_indices()
        self.loss, self.owner = rows.loss[self.order], rows.owner[self.order]
        self.first = np.searchsorted(self.owner, np.arange(n_examples + 1)).astype(np.int32)
        self.lower = np.full(len(self.columns), -np.inf)
        if region.nonnegative is not None:
            self.lower[region.nonnegative[self.columns]] = 0.0
        self.compressed = (
            self.matrix.indptr.astype(np.int32),
            self.matrix.indices.astype(np.int32),
            np.ascontiguousarray(self.matrix.data),
        )

    def answer(self, weights: FloatArray, multipliers: FloatArray, work: int) -> Answer:
        """Weights of the columns and multipliers as those of all weights and rows, in the region and feasible."""
        found, back = np.zeros(self.rows.matrix.shape[1]), np.empty(len(self.order))
        found[self.columns] = weights
        back[self.order] = multipliers
        return Answer(self.region.project(found), self.rows.feasible(back, self.n_examples), work)

    def proximal_weight(self) -> float:
        """One that prices the weights of a margin, of size ``loss / ||a||_1``, as the penalty does."""
        sizes = np.asarray(abs(self.matrix).sum(axis=1)).ravel()
        held = (sizes > 0.0) & (self.loss > 0.0)
        typical = float(np.median(self.loss[held] / sizes[held])) if held.any() else 1.0
        return self.price / max(typical, 1e-300)

    def ascend(
        self, center: FloatArray, proximal_weight: float, multipliers: FloatArray, aim: float, seed: int
    ) -> _Step:
        """One proximal step; moves the multipliers in place."""
        mu = np.full(len(center), proximal_weight)
        g = np.asarray(self.matrix.T @ multipliers)
        pull = mu * center - g
        weights = np.maximum(np.copysign(np.maximum(np.abs(pull) - self.price, 0.0), pull) / mu, self.lower)
        left = _kernels.proximal_master_ascend(
            *self.compressed, self.loss, self.first, center, mu, self.lower,
            weights, g, multipliers, self.price, 0.1 * aim / max(1, self.n_examples), aim, PIECE, seed,
        )  # fmt: skip
        if not (np.isfinite(left) and np.isfinite(weights).all()):
            raise NonFiniteError("a master problem met numbers that are not finite")
        values = np.asarray(self.matrix @ weights) + self.loss
        slacks = linear_masters.slacks(values, self.owner, self.n_examples)
        model = self.price * float(np.abs(weights).sum()) + float(slacks.sum())
        bound, lacking = self.bound(multipliers)
        return _Step(weights, model, bound, lacking, left)

    def bound(self, multipliers: FloatArray) -> tuple[float, float]:
        """The lower bound by the multipliers, made feasible, and how much that cost."""
        g = np.asarray(self.matrix.T @ multipliers)
        pull = np.where(self.lower < 0.0, np.abs(g), -g)
        gain, most = float(self.loss @ multipliers), float(np.max(pull, initial=0.0))
        bound = gain * min(1.0, self.price / most) if most > 0.0 else gain
        return bound, gain - bound


class ProximalMaster(InexactMaster):
    """Masters by proximal steps, at first; exact ones where those do not arrive and no fresh rows are found.

    What it remembers from one master to the next is the center, the objective there, and the weight of the proximal
    term.
    """

    def __init__(self, region: Region, n_examples: int, random: np.random.Generator) -> None:
        super().__init__(region, n_examples)
        self.random = random
        self.proximal_weight = 0.0
        self.center: FloatArray | None = None
        self.at_center = self.model = np.inf

    def state(self) -> StateDict:
        """The numbers, the center and the exact master if there are any."""
        found: StateDict = {name: getattr(self, name) for name in ("proximal_weight", "at_center", "model")}
        return found | ({} if self.center is None else {"center": self.center}) | super().state()

    def restore(self, saved: StateDict, rows: OutputRows) -> None:
        """See :meth:`Master.restore`."""
        self.proximal_weight = number(saved, "proximal_weight", least=0.0)
        self.at_center, self.model = (number(saved, name, infinite=True) for name in ("at_center", "model"))
        self.center = vector(saved, "center", rows.matrix.shape[1]) if "center" in saved else None
        super().restore(saved, rows)

    def solve(self, problem: MasterProblem) -> Answer:
        """Proximal steps until the gap of the master is at most what it promises or what is aimed at."""
        if self.exact is None and problem.accuracy < TIGHT:
            self.hand_over()
        if self.exact is not None:
            return self.exact.solve(problem)
        begin, rows = problem.begin, problem.rows
        if problem.over:
            return begin
        if not len(rows):
            return Answer(np.zeros(len(begin.weights)), begin.multipliers)
        if self.center is None or problem.value <= self.at_center - SERIOUS * (self.at_center - self.model):
            self.center, self.at_center = begin.weights, problem.value
        program = RowProgram(rows, self.region, self.n_examples, self.center)
        center = self.center[program.columns]
        self.proximal_weight = self.proximal_weight or program.proximal_weight()
        multipliers = rows.feasible(begin.multipliers, self.n_examples)[program.order]
        size, work = min(abs(problem.primal), float(program.loss.sum())), 0
        while True:
            aim = LEFT * problem.accuracy * size
            step = program.ascend(center, self.proximal_weight, multipliers, aim, int(self.random.integers(1 << 31)))
            size, work = abs(step.model), work + 1
            if step.left > max(aim, APART * step.lacking):
                self.proximal_weight *= APART
            promised = problem.primal - step.model if np.isfinite(problem.primal) else 0.0
            arrived = step.model - step.bound <= max(promised, problem.accuracy * size)
            if arrived or work >= STEPS or problem.over:
                break
            if step.lacking > APART * step.left:
                self.proximal_weight /= APART
            center = step.weights
        self.model = step.model
        if work > 1:  # the center has gone on: the next one is the solution, whatever the objective there
            self.center = None
        answer = program.answer(step.weights, multipliers, work)
        if arrived or problem.over or len(rows) > int(problem.kept.sum()):
            return answer
        return self.hand_over().solve(replace(problem, start=answer, before=rows, kept=np.ones(len(rows), dtype=bool)))
