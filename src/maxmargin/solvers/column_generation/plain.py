"""Column generation as it was published (Wang and Shawe-Taylor 2009, Algorithms 1 and 2), for comparisons.

    min_{w >= 0, xi >= 0}  1'w + C 1'xi       s.t.  H w >= 1 - M xi                                          LP (9)

*Algorithm 1*: from ``w = 1``, ``xi = 0`` and no rows, each round finds for every example the output that violates the
margin most, adds its row if it does by more than ``xi_i``, and solves the master problem, LP (9) over the rows so far:
exactly, by the dual simplex method (``master="highs"``), or by *Algorithm 2*: steps of extragradient, process (13),
with ``alpha = (2 ||H||_F^2 + 2 ||M||_F^2)^-1/2``, from the last round's ``(w, xi, lambda)``, where ``xi_i`` is raised
to what a fresh row demands and a fresh row's multiplier is zero, until

    max(||(w, xi)^t - (w, xi)^{t-1}|| / ||(w, xi)^t||,  ||lambda^t - lambda^{t-1}|| / ||lambda^t||)  <  epsilon_1   and
    ||w||_1 + C ||xi||_1 - ||lambda||_1  <  epsilon_2

The paper leaves five things open, or is not followed in them. *Tightening* "when the optimum is achieved": here both
tolerances are divided by 10 in every round that adds no row. *Hinges and signs*: rows are those of the problem's
hinge, ``xi_i >= a_r'w + b_r``, which is LP (9), with ``b = 1``, for ``rescaling="none"`` (the second test has
``b'lambda``); weights without a sign constraint move by soft thresholds. *Rounding*: with exact masters, a row must
be violated by more than 1e-9. *Rows found again*: a master that is not exact may leave one of its rows violated,
which is then added once more, as the algorithm says. *LP (7)*: line 5 looks only at the bad output of the highest
score, whose pair is often not the most violated one; here the most violated pair is found.

**The two stopping tests pass falsely**: the multipliers are not feasible for the dual, so that the difference of the
objectives bounds nothing, and is negative where the multipliers are too large; and steps become short long before the
players are where they are going. So the certificate uses neither: the primal decodes every example, the dual scales the
multipliers until they are feasible, and a run whose tests have passed may end with an honest, large gap.

Cost of a step: four passes over the non-zeros of ``H``. Memory: all rows of all rounds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels
from maxmargin._sparse import sp
from maxmargin._vectors import norm
from maxmargin.optimization.certificate import Proposal
from maxmargin.optimization.checkpoints.saved import StateDict, count, number, part_of, require, vector
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.optimization.solver import Solver, Start
from maxmargin.problem import BaseProblem
from maxmargin.solvers.column_generation.highs_master import HighsMaster
from maxmargin.solvers.column_generation.linear_masters import (
    Answer,
    Box,
    MasterProblem,
    OutputRows,
    output_rows,
)
from maxmargin.structures.base import SHARD_PARTS, FloatArray

EXACT = 1e-9
"""With exact masters a row is violated by more than this: HiGHS solves them to such a tolerance."""

_AGREEMENT = 1e-5
"""Share by which what is computed again may differ: argmax ends at a tolerance."""

TIGHTER = 0.1
"""The factor of both tolerances after a round that adds no row."""


@dataclass(frozen=True, eq=False)
class PlainState:
    """The rows of all rounds, and the point of the last master.

    Attributes:
        rows: the working set, ``xi_owner >= matrix w + loss``: ``H = -matrix`` and, without rescaling, ``loss = 1``.
        weights: ``w``, shape ``(n_weights,)``.
        slacks: ``xi``, shape ``(n_examples,)``.
        multipliers: ``lambda``, shape ``(n_rows,)``, in the scale of the paper: at most C per example where feasible.
        tightness: the factor of both tolerances.
        steps: of extragradient, or of the simplex method, over all rounds.
        master: the simplex method's model, or None.
    """

    rows: OutputRows
    weights: FloatArray
    slacks: FloatArray
    multipliers: FloatArray
    tightness: float = 1.0
    steps: int = 0
    master: HighsMaster | None = None


@dataclass(frozen=True, kw_only=True)
class PlainColumnGeneration(Solver):
    """Settings of column generation as it was published; made by :meth:`ColumnGeneration.plain`.

    Attributes:
        master: "extragradient", Algorithm 2, or "highs", Algorithm 1 with exact masters by the dual simplex method.
        start: the first weights where no others are given: "ones", as in Algorithm 1, or "zeros".
        epsilon_1: Algorithm 2 ends when steps are shorter than this share of where they lead,
        epsilon_2: and the difference of the objectives ``||w||_1 + C ||xi||_1 - ||lambda||_1`` is less than this.
        max_steps: limit of extragradient steps in one round: the first test never passes where a player's limit is 0.
        max_iter: limit of rounds when the caller gives none.
    """

    master: Literal["extragradient", "highs"] = "extragradient"
    start: Literal["ones", "zeros"] = "ones"
    epsilon_1: float = 1e-4
    epsilon_2: float = 1e-2
    max_steps: int = 100_000
    max_iter: int = 1000
    needs = ("lasso",)
    takes_slack = ("linear",)
    shard_size = SHARD_PARTS
    shards_unsupported = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.one_of("master", self.master, ("extragradient", "highs"))
        _checks.one_of("start", self.start, ("ones", "zeros"))
        _checks.positive("epsilon_1", self.epsilon_1)
        _checks.positive("epsilon_2", self.epsilon_2)
        _checks.integer("max_steps", self.max_steps, least=1)

    def unsupported(self, problem: BaseProblem) -> str | None:
        """LP (9): an L1 penalty without a ball, linear slack."""
        if reason := super().unsupported(problem):
            return reason
        lasso = problem.region.lasso
        assert lasso is not None
        if np.isfinite(lasso.radius) or lasso.price == 0.0:
            return "the published method has a penalty, and no ball; give C without a radius, or use ColumnGeneration()"
        return None

    def init(self, run: Run, start: Start) -> PlainState:
        """No rows, no slacks, at the start weights."""
        problem = run.problem
        weights = start.weights_for(problem)
        if start.weights is None and self.start == "ones":
            weights = problem.region.project(np.ones(problem.n_weights))
        n_examples = problem.n_examples
        return PlainState(
            rows=OutputRows.none(problem.n_weights),
            weights=weights,
            slacks=np.zeros(n_examples),
            multipliers=np.zeros(0),
            master=HighsMaster(problem.region, n_examples) if self.master == "highs" else None,
        )

    def step(self, run: Run, state: PlainState) -> PlainState:
        """One round of Algorithm 1: decode, add the violated rows, solve the master."""
        found = _decoded(run, state.weights)
        values = found.values(state.weights)
        over = values > state.slacks[found.owner]
        if self.master == "highs":
            over = values - state.slacks[found.owner] > EXACT * (1.0 + np.abs(values))
        fresh, raised = found.take(over), values[over]
        rows = state.rows.joined(fresh)
        if not len(rows):  # the master's solution is zero, and alpha would be infinite
            return replace(state, weights=np.zeros(len(state.weights)))
        slacks = state.slacks.copy()
        slacks[fresh.owner] = raised
        multipliers = np.concatenate([state.multipliers, np.zeros(len(fresh))])
        tightness = state.tightness * (1.0 if len(fresh) else TIGHTER)
        if state.master is not None:
            return self._exact(run, state, rows)
        w, xi, multipliers, steps = self._extragradient(run, rows, state.weights, slacks, multipliers, tightness)
        return PlainState(rows, w, xi, multipliers, tightness, state.steps + steps)

    def _exact(self, run: Run, state: PlainState, rows: OutputRows) -> PlainState:
        """Line 12 of Algorithm 1. The master is the library's, divided by C."""
        C, master = _C(run.problem), state.master
        assert master is not None
        kept = np.ones(len(state.rows), dtype=bool)
        last = Answer(state.weights, state.multipliers / C)
        free = Box(np.zeros(run.problem.n_weights), np.inf)
        answer = master.solve(MasterProblem(state.rows, kept, rows, last, free, 0.0, deadline=run.deadline))
        slacks = rows.slacks(answer.weights, run.problem.n_examples)
        return PlainState(rows, answer.weights, slacks, C * answer.multipliers, 1.0, state.steps + answer.work, master)

    def _extragradient(
        self, run: Run, rows: OutputRows, w: FloatArray, xi: FloatArray, multipliers: FloatArray, tightness: float
    ) -> tuple[FloatArray, FloatArray, FloatArray, int]:
        """Algorithm 2 from its line 9: process (13) until both tests pass, and the number of steps."""
        C, region = _C(run.problem), run.problem.region
        # A weight that is zero and in no row stays zero.
        columns = np.union1d(rows.columns, np.flatnonzero(w))
        matrix = sp.csr_array(rows.matrix[:, columns])
        signed = np.ones(len(columns), dtype=bool) if region.nonnegative is None else ~region.nonnegative[columns]
        n, m, n_rows = len(columns), len(xi), len(rows)
        alpha = float((2.0 * matrix.data @ matrix.data + 2.0 * n_rows) ** -0.5)
        program = (
            *_compressed(matrix),
            *_compressed(sp.csr_array(matrix.T)),
            *(rows.loss, rows.owner.astype(np.int32)),
            *(np.ones(n), np.where(signed, -np.inf, 0.0), np.full(m, C)),
        )
        at = w[columns], xi.copy(), multipliers.copy()
        done, passed = 0, False
        while done < self.max_steps and not passed:
            before = tuple(part.copy() for part in at)
            _kernels.linear_master_extragradient(*program, *at, alpha, 1)
            if not all(np.isfinite(part).all() for part in at):
                raise NonFiniteError("a master problem met numbers that are not finite")
            moved = [norm(now - then) for now, then in zip(at, before, strict=True)]
            far = [norm(now) for now in at]
            small = _below(np.hypot(moved[0], moved[1]), self.epsilon_1 * tightness * np.hypot(far[0], far[1]))
            small = small and _below(moved[2], self.epsilon_1 * tightness * far[2])
            difference = float(np.abs(at[0]).sum() + C * at[1].sum() - rows.loss @ at[2])
            passed, done = small and difference < self.epsilon_2 * tightness, done + 1
            if run.deadline is not None and time.perf_counter() >= run.deadline:
                break
        weights = np.zeros(len(w))
        weights[columns] = at[0]
        return weights, at[1], at[2], done

    @property
    def checkpoint_unsupported(self) -> str:
        """Empty: all of it can be saved."""
        return ""

    def settled(self, state: PlainState) -> PlainState:
        """With a master that holds a basis in place of a model of HiGHS."""
        if state.master is None or (master := state.master.settled()) is state.master:
            return state
        return replace(state, master=master)

    def state_dict(self, state: PlainState) -> StateDict:
        """The rows and the point of the last master."""
        found: StateDict = {f"rows.{name}": value for name, value in state.rows.state().items()}
        names = ("weights", "slacks", "multipliers", "tightness", "steps")
        found |= {name: getattr(state, name) for name in names}
        master = {} if state.master is None else state.master.state()
        return found | {f"master.{name}": value for name, value in master.items()}

    def load_state_dict(self, run: Run, saved: StateDict) -> PlainState:
        """The same state, once its rows are found below the most violated outputs."""
        problem, n = run.problem, run.problem.n_examples
        rows = OutputRows.from_state(part_of(saved, "rows."), problem.n_weights, n)
        weights, slacks = vector(saved, "weights", problem.n_weights), vector(saved, "slacks", n)
        most = _decoded(run.uncounted(), weights).slacks(weights, n)
        room = _AGREEMENT * (1.0 + float(most.sum()))
        above = problem.rescaling != "none" and (rows.slacks(weights, n) > most + room).any()
        require(not above, "a row is above the most violated output")
        multipliers = vector(saved, "multipliers", len(rows))
        require((multipliers >= 0.0).all() and (slacks >= 0.0).all(), "its multipliers or slacks are negative")
        master = HighsMaster(problem.region, n) if self.master == "highs" else None
        if master is not None:
            master.restore(part_of(saved, "master."), rows)
        tightness = number(saved, "tightness", least=0.0)
        return PlainState(rows, weights, slacks, multipliers, tightness, count(saved, "steps"), master)

    def propose(self, run: Run, state: PlainState) -> Sequence[Proposal]:
        """The weights, and the bound by the multipliers made feasible."""
        multipliers = state.rows.feasible(state.multipliers / _C(run.problem), len(state.slacks))
        g, loss = state.rows.aggregate(multipliers)
        return [Proposal(state.weights, g, loss)]


def _C(problem: BaseProblem) -> float:
    assert problem.region.lasso is not None
    return 1.0 / problem.region.lasso.price


def _below(length: float, limit: float) -> bool:
    """Whether a step is short; one of no length is, wherever it leads."""
    return length < limit or length == 0.0


def _decoded(run: Run, weights: FloatArray) -> OutputRows:
    """The rows of the most violated outputs, those of examples whose margin is kept left out."""
    return OutputRows.joined_pieces(run.violated_each(output_rows, weights))


def _compressed(x: sp.csr_array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], FloatArray]:
    return x.indptr.astype(np.int32), x.indices.astype(np.int32), np.ascontiguousarray(x.data)
