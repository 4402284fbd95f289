"""Master problems of column generation by first-order steps of the two players.

The saddle point of

    min_{w, xi >= 0} max_{lambda >= 0}  1/C ||w||_1 + sum_i xi_i + lambda'(A w + b - M xi)

is approached from the last master's solution, with multipliers of zero for fresh rows and ``xi`` raised to what they
demand. Algorithm 2 of Wang and Shawe-Taylor (2009) does so by extragradient, where both players move twice
(:mod:`~maxmargin.solvers.decomposition.plain_column_generation`); here it is its extrapolated relative (Chambolle and
Pock 2011), where only the weights' move is predicted, at half the passes over the non-zeros of ``A`` (compiled,
``linear_master.hpp``). Steps are ``0.99 / ||[A M]||_2``, with diagonal scaling of rows and columns (Pock and Chambolle
2011), a balance of the two players' steps, and restarts from the average where its gap has fallen enough (Applegate and
others 2021), which make convergence linear. On a master of 1,496 rows and 105,953 non-zeros extragradient with all of
these took as many steps (5,376 and 5,440 to a gap of 0.005) in twice the time. A master holds the columns with a weight
and those whose reduced cost is nearly negative alone, until no other one's is: half of the non-zeros there, a quarter
of the columns.

The paper's two stopping tests pass at points far from a solution, where the multipliers are not feasible; here a
master is solved when the gap of two feasible points has closed: weights with the ``xi`` they need, and multipliers
divided by their sums per example, then, where no box bounds the weights, by ``max(1, C max_k |A'lambda|_k)``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maxmargin import _kernels
from maxmargin._sparse import sp
from maxmargin._vectors import norm
from maxmargin.features.base import operator_norm
from maxmargin.optimization.base import NonFiniteError
from maxmargin.regions import Region
from maxmargin.solvers.decomposition import linear_masters
from maxmargin.solvers.decomposition.linear_masters import Answer, Box, Master, MasterProblem, OutputRows
from maxmargin.structures.base import FloatArray, IntArray

PIECE = 64
"""Steps between two gaps."""

MOST_STEPS = 1_000_000
"""Steps of one master at most; then the best points so far are its answer."""

FALLEN, FALLEN_SOME, LONG = 0.2, 0.8, 0.36
"""A run restarts when its gap has fallen to the first share of that at the last restart, or to the second and rises
again, or when it has taken the third share of all steps so far."""

FAR_BELOW = 0.1
"""A master in a box that does not lower the objective by half of what it can is solved to this share of the gap."""

NEAR = 0.7
"""A column whose weight is zero takes part where its ``|A'lambda|`` is more than this share of ``1/C``."""

_Point = tuple[FloatArray, FloatArray, FloatArray]


class _Program:
    """One master in the coordinates of its own columns and examples, scaled."""

    def __init__(self, rows: OutputRows, region: Region, box: Box, columns: IntArray) -> None:
        assert region.lasso is not None
        self.rows, self.price = rows, region.lasso.price
        self.columns = columns
        self.examples, owner = np.unique(rows.owner, return_inverse=True)
        self.owner = owner.astype(np.int32)
        matrix = sp.csr_array(rows.matrix[:, self.columns])
        size = abs(matrix)  # each scale is the root of the sum of absolute entries, those of M included
        self.of_rows = 1.0 / np.sqrt(np.asarray(size.sum(axis=1)).ravel() + 1.0)
        self.of_columns = 1.0 / np.sqrt(np.maximum(np.asarray(size.sum(axis=0)).ravel(), 1e-300))
        self.of_examples = 1.0 / np.sqrt(np.bincount(self.owner, minlength=len(self.examples)))
        matrix = sp.csr_array(sp.diags_array(self.of_rows) @ matrix @ sp.diags_array(self.of_columns))
        matrix.sort_indices()
        self.matrix, self.transposed = matrix, sp.csr_array(matrix.T)
        self.link = self.of_rows * self.of_examples[self.owner]
        self.b, self.cost = self.of_rows * rows.loss, self.of_examples
        self.prices = self.price * self.of_columns
        self.boxed, self.center = np.isfinite(box.size), box.center[self.columns] / self.of_columns
        self.lower, self.upper = box.bounds(region, self.columns)
        self.bounds = self.lower / self.of_columns, self.upper / self.of_columns
        self.compressed = *_compressed(self.matrix), *_compressed(self.transposed)

    def point(self, weights: FloatArray, multipliers: FloatArray) -> _Point:
        """A start in scaled coordinates, with the slacks that the weights need."""
        w = np.clip(weights[self.columns], self.lower, self.upper)
        return w / self.of_columns, self.slacks(w / self.of_columns) / self.of_examples, multipliers / self.of_rows

    def slacks(self, scaled: FloatArray) -> FloatArray:
        """Those, not scaled, that scaled weights need."""
        return linear_masters.slacks((self.matrix @ scaled + self.b) / self.of_rows, self.owner, len(self.examples))

    def iterate(self, at: _Point, sums: _Point, primal_step: float, dual_step: float, steps: int) -> None:
        """Compiled steps; ``at`` and ``sums`` are changed in place."""
        program = (*self.compressed, self.b, self.link, self.owner, self.prices, *self.bounds, self.cost)
        _kernels.linear_master_iterate(*program, *at, *sums, primal_step, dual_step, steps, False)

    def primal(self, at: _Point) -> float:
        """The objective of the weights, with the slacks they need."""
        return float(self.prices @ np.abs(at[0])) + float(self.slacks(at[0]).sum())

    def feasible(self, at: _Point) -> FloatArray:
        """Multipliers, not scaled, with sums of at most 1 per example."""
        return linear_masters.feasible(at[2] * self.of_rows, self.owner, len(self.examples))

    def dual(self, multipliers: FloatArray) -> float:
        """The bound of feasible multipliers: ``b'lambda + min_w (A'lambda)'w + 1/C ||w||_1`` in the box.

        Without a box, they are divided by ``max(1, C max |A'lambda|)`` for the minimum to be finite.
        """
        g = (self.transposed @ (multipliers / self.of_rows)) / self.of_columns
        gain = float(self.rows.loss @ multipliers)
        if self.boxed:
            ends = [g * end + self.price * np.abs(end) for end in (self.lower, self.upper)]
            inside = np.where((self.lower <= 0.0) & (self.upper >= 0.0), 0.0, np.inf)
            return gain + float(np.minimum(inside, np.minimum(*ends)).sum())
        pull = float(np.max(np.where(self.lower < 0.0, np.abs(g), -g), initial=0.0))
        return gain * min(1.0, self.price / pull) if pull > 0.0 else gain

    def norm(self) -> float:
        """``||[A M]||_2`` by power iteration."""
        n, m = len(self.columns), len(self.examples)

        def normal(x: FloatArray) -> FloatArray:
            y = self.matrix @ x[:n] + self.link * x[n:][self.owner]
            return np.concatenate([self.transposed @ y, np.bincount(self.owner, self.link * y, minlength=m)])

        return operator_norm(normal, n + m)


class ExtragradientMaster(Master):
    """Masters by extrapolated steps; what it remembers from one to the next is the balance of the steps."""

    def __init__(self, region: Region, n_examples: int) -> None:
        assert region.lasso is not None
        self.region, self.n_examples, self.price = region, n_examples, region.lasso.price
        self.balance: float | None = None

    def solve(self, problem: MasterProblem) -> Answer:
        """Steps from the start until the gap is at most ``accuracy`` times the primal."""
        found, work, rows, box = problem.begin, 0, problem.rows, problem.box
        if problem.over:
            return found
        columns = self._priced(rows, found.multipliers, (found.weights != 0.0) | (np.abs(box.center) > box.size))
        while True:
            program = _Program(rows, self.region, box, columns)
            found = self._solve(problem, program, found)
            work += found.work
            missing = np.setdiff1d(self._violated(rows, found.multipliers, 1.0 + 0.5 * problem.accuracy), columns)
            if not len(missing) or work >= MOST_STEPS or problem.over:
                return Answer(self.region.project(found.weights), found.multipliers, work)
            columns = np.union1d(columns, self._violated(rows, found.multipliers, NEAR))

    def _violated(self, rows: OutputRows, multipliers: FloatArray, share: float) -> IntArray:
        """The columns with ``|A'lambda| > share / C`` (signed ones: ``-A'lambda``)."""
        g = rows.aggregate(multipliers)[0]
        pull = np.abs(g) if self.region.nonnegative is None else np.where(self.region.nonnegative, -g, np.abs(g))
        return np.flatnonzero(pull > share * self.price)

    def _priced(self, rows: OutputRows, multipliers: FloatArray, held: npt.NDArray[np.bool_]) -> IntArray:
        """The columns to begin with: all without multipliers to judge them by, else the held ones and the near ones."""
        if not multipliers.any():
            return rows.columns
        return np.intersect1d(np.union1d(np.flatnonzero(held), self._violated(rows, multipliers, NEAR)), rows.columns)

    def _solve(self, problem: MasterProblem, program: _Program, start: Answer) -> Answer:
        at = program.point(start.weights, start.multipliers)
        length = 0.99 / max(program.norm(), 1e-300)
        balance = self.balance
        if balance is None:
            costs = norm(np.concatenate([program.prices, program.cost]))
            balance = costs / norm(program.b) if program.b.any() else 1.0
        best = _Best(program, at)
        if program.boxed:
            best.see((program.center, at[1], at[2]))
        before = best.value if program.boxed else np.inf
        origin, sums = _copied(at), _zeros(at)
        at_restart = last = best.gap
        done = since = 0
        while done < MOST_STEPS and not best.enough(problem.accuracy, before) and not problem.over:
            program.iterate(at, sums, length / balance, length * balance, PIECE)
            done, since = done + PIECE, since + PIECE
            if not all(np.isfinite(x).all() for x in at):
                raise NonFiniteError("a master problem met numbers that are not finite")
            mean: _Point = sums[0] / since, sums[1] / since, sums[2] / since
            gap, candidate = min((best.see(point), rank) for rank, point in enumerate((mean, at)))
            if gap <= FALLEN * at_restart or (last < gap <= FALLEN_SOME * at_restart) or since >= LONG * done:
                at = _copied((mean, at)[candidate])
                balance = _balanced(balance, at, origin)
                origin, sums, at_restart, last, since = _copied(at), _zeros(at), gap, gap, 0
            else:
                last = gap
        self.balance = balance
        found = np.zeros(len(start.weights))
        found[program.columns] = best.weights
        return Answer(found, best.multipliers, done)


class _Best:
    """The smallest primal and the largest dual, with their points."""

    def __init__(self, program: _Program, at: _Point) -> None:
        self.program = program
        self.value, self.bound = np.inf, -np.inf
        self.weights, self.multipliers = at[0], at[2]
        self.see(at)

    def see(self, at: _Point) -> float:
        """Take a point into account; its own gap."""
        primal = self.program.primal(at)
        multipliers = self.program.feasible(at)
        dual = self.program.dual(multipliers)
        if primal < self.value:
            self.value, self.weights = primal, at[0] * self.program.of_columns
        if dual > self.bound:
            self.bound, self.multipliers = dual, multipliers
        return primal - dual

    def enough(self, accuracy: float, before: float) -> bool:
        """Whether the relative gap is at most ``accuracy`` and, unless it is far below, the value has fallen from
        ``before`` by half of what it can: in a small box the gap may be large beside all there is to gain."""
        aim = accuracy * abs(self.value)
        return self.gap <= aim and (self.gap <= FAR_BELOW * aim or before - self.value >= self.gap)

    @property
    def gap(self) -> float:
        """Of the best points."""
        return self.value - self.bound


def _compressed(x: sp.csr_array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], FloatArray]:
    return x.indptr.astype(np.int32), x.indices.astype(np.int32), np.ascontiguousarray(x.data)


def _copied(at: _Point) -> _Point:
    return at[0].copy(), at[1].copy(), at[2].copy()


def _zeros(at: _Point) -> _Point:
    return np.zeros(len(at[0])), np.zeros(len(at[1])), np.zeros(len(at[2]))


def _balanced(balance: float, at: _Point, origin: _Point) -> float:
    """Halfway, in logarithms, to the ratio of the distances that the two players have come since the last restart."""
    far_primal = float(np.hypot(norm(at[0] - origin[0]), norm(at[1] - origin[1])))
    far_dual = norm(at[2] - origin[2])
    if min(far_primal, far_dual) <= 1e-12:
        return balance
    return float(np.clip(np.sqrt(balance * far_dual / far_primal), 1e-5, 1e5))
