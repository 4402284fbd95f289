"""Exact masters of column generation by HiGHS, and masters by other methods that hand over to one of these."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin._sparse import sp
from maxmargin.optimization.checkpoints.saved import StateDict, array, count, number, part_of, require
from maxmargin.optimization.run import NonFiniteError
from maxmargin.regions import Region
from maxmargin.solvers.column_generation.linear_masters import Answer, Master, MasterProblem, OutputRows
from maxmargin.structures.base import IntArray

if TYPE_CHECKING:
    import highspy

_OPTIONS: dict[str, Any] = {
    "output_flag": False,
    "parallel": "off",
    "solver": "simplex",
    "simplex_strategy": 1,
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}

SMALL, MOST_COST = 1e-3, 1e10
"""Where all entries of the first rows are below the former, weights have a larger unit, up to this cost of one."""

MOST_RUNS = 100_000
"""After this many pieces of simplex iterations a master counts as failed."""


@dataclass(frozen=True, eq=False)
class Basis:
    """The basis of a solution by weights, examples and rows: numbers of HiGHS, :data:`ABSENT` for columns not there.

    Attributes:
        rows: the rows of the program.
        unit: that of its weights.
        positive: of the positive part of each weight, ``negative`` of the negative one, ``slack`` of each example's.
        status: of each row, with that of a ball before them.
    """

    rows: OutputRows
    unit: float
    positive: npt.NDArray[np.uint8]
    negative: npt.NDArray[np.uint8]
    slack: npt.NDArray[np.uint8]
    status: npt.NDArray[np.uint8]


ABSENT = 255
"""The status of a column that is not in the program."""


class HighsMaster(Master):
    """One HiGHS model kept over all rounds: rows are added and deleted in place, the dual simplex starts warm.

    Columns: for each weight that a row touches a positive and, unless it is sign-constrained, a negative part, each of
    cost ``1/C``; for each example with a row its slack, of cost 1. Fresh columns have entries in fresh rows alone and a
    cost >= 0, so that the last basis stays dual feasible. Weights of small features are held in a larger unit, as
    HiGHS leaves entries below 1e-9 out; numbers that it refuses raise a NonFiniteError.
    """

    PIECE = 2000
    """Simplex iterations between two chances for Ctrl-C."""

    def __init__(self, region: Region, n_examples: int) -> None:
        assert region.lasso is not None
        self.region, self.n_examples, (self.price, self.radius) = region, n_examples, region.lasso
        self.rows: OutputRows | None = None
        self.basis: Basis | None = None

    def settled(self) -> Self:
        """One that holds the last basis in place of the model, which has more in memory than a file."""
        if self.rows is None:
            return self
        new = type(self)(self.region, self.n_examples)
        new.basis = self._last_basis()
        return new

    def _last_basis(self) -> Basis | None:
        assert self.rows is not None
        found = self.solver.getBasis()
        if not found.valid:
            return None
        columns = np.array([int(one) for one in found.col_status], dtype=np.uint8)
        positive, negative, slack = (
            np.where(at >= 0, columns[at], ABSENT).astype(np.uint8) for at in (self.positive, self.negative, self.slack)
        )
        status = np.array([int(one) for one in found.row_status], dtype=np.uint8)
        return Basis(self.rows, self.unit, positive, negative, slack, status)

    def state(self) -> StateDict:
        """The basis, if there is one."""
        if self.basis is None:
            return {}
        names = ("unit", "positive", "negative", "slack", "status")
        return {name: getattr(self.basis, name) for name in names}

    def restore(self, saved: StateDict, rows: OutputRows) -> None:
        """A basis that HiGHS does not take is none."""
        if "unit" not in saved:
            return
        n_weights, ball = rows.matrix.shape[1], int(np.isfinite(self.radius))
        sizes = {"positive": n_weights, "negative": n_weights, "slack": self.n_examples, "status": ball + len(rows)}
        found = {name: array(saved, name, np.uint8, (size,)) for name, size in sizes.items()}
        for name, one in found.items():
            require(((one < 5) | ((one == ABSENT) & (name != "status"))).all(), f"{name} is not of a basis")
        unit = number(saved, "unit", least=1.0)
        self.basis = Basis(rows, unit, **found)

    def _resume(self, basis: Basis) -> None:
        """The model of the last master again, with its basis."""
        import highspy

        rows = basis.rows
        self._begin(rows.matrix.shape[1], rows)
        self._add(rows)
        made: Any = highspy.HighsBasis()
        columns = np.zeros(self.n_columns, dtype=np.uint8)
        for table, own in ((self.positive, basis.positive), (self.negative, basis.negative), (self.slack, basis.slack)):
            held = table >= 0
            columns[table[held]] = np.where(own[held] == ABSENT, 0, own[held])
        made.col_status = [highspy.HighsBasisStatus(one) for one in columns.tolist()]
        made.row_status = [highspy.HighsBasisStatus(one) for one in basis.status.tolist()]
        made.valid = True
        self.solver.setBasis(made)  # refused if it is none: then the simplex method starts without one

    def _begin(self, n_weights: int, now: OutputRows) -> None:
        import highspy

        make: Any = highspy.Highs  # it has no types
        self.solver = make()
        for name, value in _OPTIONS.items():
            self.solver.setOptionValue(name, value)
        self.positive, self.negative = np.full(n_weights, -1), np.full(n_weights, -1)
        self.slack = np.full(self.n_examples, -1)
        self.unit = self._unit(now) if self.basis is None else self.basis.unit
        self.n_columns = 0
        self.ball = 0
        if np.isfinite(self.radius):
            nothing = np.zeros(0, dtype=np.int32)
            _taken(self.solver.addRow(-np.inf, float(self.radius) / self.unit, 0, nothing, np.zeros(0)))
            self.ball = 1

    def _unit(self, now: OutputRows) -> float:
        """A power of two that makes the largest entry at least 1, where all are small; one for all weights, so that
        rounding errors in place of zeros stay small."""
        largest = float(np.abs(now.matrix.data).max(initial=0.0))
        if largest >= SMALL or largest == 0.0:
            return 1.0
        most = MOST_COST / self.price if self.price > 0.0 else np.inf
        return float(max(1.0, min(2.0 ** -np.floor(np.log2(largest)), most)))

    def _columns(self, count: int, cost: float, in_ball: bool) -> IntArray:
        entries = count if in_ball and self.ball else 0
        status = self.solver.addCols(
            count,
            np.full(count, cost),
            np.zeros(count),
            np.full(count, np.inf),
            entries,
            np.arange(count, dtype=np.int32) if entries else np.zeros(count, dtype=np.int32),
            np.zeros(entries, dtype=np.int32),
            np.ones(entries),
        )
        _taken(status)
        found = np.arange(self.n_columns, self.n_columns + count)
        self.n_columns += count
        return found

    def _add(self, fresh: OutputRows) -> None:
        """``xi_owner - a'(u - v) >= b``, with ``u`` and ``v`` in the model's unit."""
        touched = fresh.columns
        unsigned = touched if self.region.nonnegative is None else touched[~self.region.nonnegative[touched]]
        for table, wanted in ((self.positive, touched), (self.negative, unsigned)):
            new = wanted[table[wanted] < 0]
            if len(new):
                table[new] = self._columns(len(new), self.price * self.unit, True)
        owners = np.unique(fresh.owner)
        new = owners[self.slack[owners] < 0]
        if len(new):
            self.slack[new] = self._columns(len(new), 1.0, False)
        a = sp.coo_array(fresh.matrix)
        at, column, value = a.row, a.col, a.data * self.unit
        split = self.negative[column] >= 0
        n = len(fresh)
        matrix = sp.csr_array(
            (
                np.concatenate([-value, value[split], np.ones(n)]),
                (
                    np.concatenate([at, at[split], np.arange(n)]),
                    np.concatenate([self.positive[column], self.negative[column[split]], self.slack[fresh.owner]]),
                ),
            ),
            shape=(n, self.n_columns),
        )
        status = self.solver.addRows(
            n,
            fresh.loss,
            np.full(n, np.inf),
            matrix.nnz,
            matrix.indptr.astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )
        _taken(status)

    def solve(self, problem: MasterProblem) -> Answer:
        """Change the rows of the model, then dual simplex from the last basis."""
        if problem.over:
            return problem.begin
        now, kept, n_weights = problem.rows, problem.kept, problem.rows.matrix.shape[1]
        warm, self.rows = self.rows is problem.before, None
        if self.basis is not None:
            if warm := self.basis.rows is problem.before and len(now) > 0:
                self._resume(self.basis)
            self.basis = None
        if not len(now):  # the start weights violate no margin; HiGHS has no solution of an empty model
            return Answer(np.zeros(n_weights), np.zeros(0))
        if not warm:  # the first master, or one after an interrupted step
            self._begin(n_weights, now)
            self._add(now)
        else:
            if not kept.all():  # slacks of rows without a multiplier are basic: the others stay a basis
                gone = (np.flatnonzero(~kept) + self.ball).astype(np.int32)
                _taken(self.solver.deleteRows(len(gone), gone))
            fresh = now.take(np.arange(int(kept.sum()), len(now)))
            if len(fresh):
                self._add(fresh)
        columns = np.flatnonzero(self.positive >= 0)
        lower, upper = problem.box.bounds(self.region, columns)
        for table, least, most in ((self.positive, lower, upper), (self.negative, -upper, -lower)):
            held = table[columns] >= 0
            status = self.solver.changeColsBounds(
                int(held.sum()),
                table[columns[held]].astype(np.int32),
                np.maximum(least[held], 0.0) / self.unit,
                np.maximum(most[held], 0.0) / self.unit,
            )
            _taken(status)
        work = self._run(problem)
        answer = self.solver.getSolution()
        self.rows = now
        if not (answer.value_valid and answer.dual_valid):  # the deadline came before the first basis
            return replace(problem.begin, work=work)
        values, duals = np.asarray(answer.col_value), np.asarray(answer.row_dual)[self.ball :]
        weights = np.zeros(n_weights)
        for table, sign in ((self.positive, 1.0), (self.negative, -1.0)):
            at = np.flatnonzero(table >= 0)
            weights[at] += sign * self.unit * np.maximum(values[table[at]], 0.0)
        return Answer(self.region.project(weights), now.feasible(duals, self.n_examples), work)

    def _run(self, problem: MasterProblem) -> int:
        """Run the simplex method in pieces, between which Ctrl-C works; from scratch if the warm start fails."""
        import highspy

        work, status, deadline = 0, highspy.HighsModelStatus, problem.deadline
        # HiGHS counts the seconds of all its runs.
        left = np.inf if deadline is None else max(0.0, deadline - time.perf_counter()) + self.solver.getRunTime()
        self.solver.setOptionValue("time_limit", left)
        for again in (False, True):
            if again:
                self.solver.clearSolver()
            self.solver.setOptionValue("simplex_iteration_limit", self.PIECE)
            for _ in range(MOST_RUNS):
                self.solver.run()
                work += max(0, int(self.solver.getInfo().simplex_iteration_count))
                if self.solver.getModelStatus() != status.kIterationLimit or problem.over:
                    break
            if problem.over or self.solver.getModelStatus() in (status.kTimeLimit, status.kOptimal):
                return work
        raise NonFiniteError(
            f"HiGHS did not solve a master problem ({self.solver.modelStatusToString(self.solver.getModelStatus())})"
        )


class InexactMaster(Master):
    """A master by steps of its own, and by an exact one from where these do not do.

    Attributes:
        exact: that one; None as long as there is none.
    """

    stabilizes = True
    age = 10

    def __init__(self, region: Region, n_examples: int) -> None:
        self.region, self.n_examples = region, n_examples
        self.exact: HighsMaster | None = None

    def hand_over(self) -> HighsMaster:
        """Make the exact master, which solves all further problems."""
        self.exact = HighsMaster(self.region, self.n_examples)
        return self.exact

    def settled(self) -> Self:
        """With an exact master that is settled."""
        if self.exact is None or (exact := self.exact.settled()) is self.exact:
            return self
        new = copy.copy(self)
        new.exact = exact
        return new

    def state(self) -> StateDict:
        """The exact master, if there is one."""
        exact = {} if self.exact is None else self.exact.state()
        return {"exact": int(self.exact is not None)} | {f"exact.{name}": one for name, one in exact.items()}

    def restore(self, saved: StateDict, rows: OutputRows) -> None:
        """The exact master, if there was one."""
        if count(saved, "exact", most=1):
            self.hand_over().restore(part_of(saved, "exact."), rows)


def _taken(status: highspy.HighsStatus) -> None:
    """NonFiniteError where HiGHS refused a change of the model."""
    import highspy

    if status == highspy.HighsStatus.kError:
        raise NonFiniteError("HiGHS refused numbers of a master problem, which are too large or not finite")
