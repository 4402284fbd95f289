"""Column generation for L1 norms (Wang and Shawe-Taylor 2009): linear programs over few outputs of each example.

    min_{w in W}  1/C ||w||_1 + sum_i s_i h_i(w),     W: signs, a ball ||w||_1 <= radius, or both

with any hinge ``h_i`` of :mod:`maxmargin.problem.hinges`, each the largest of linear functions of the weights, one per
output. One round finds, for every example, the output that violates the margin most and adds its row to a restricted
master problem (``linear_masters.py``), whose solution gives the next weights and, by its multipliers, a lower bound of
the objective. Rows are columns of the dual program, hence the name. With ``rescaling="none"`` this is
LP (6) of the paper divided by its C, which is our C: neither divides by the number of examples (2-best decoding finds
the outputs), with "margin" and "slack" LP (6) with the loss in place of, or as a factor of, the margin of 1. There
``w >= 0``; here signs are those of the region.

Masters are solved in one of three ways, and what goes beyond the paper differs.

*Exact masters* (HiGHS) jump from vertex to far vertex, so each keeps its weights in a box around the best so far
(Marsten, Hogan and Blankenship 1975), which grows while masters keep what they promise, shrinks where they are far off,
and is removed where no weight reaches its bounds: then the master's multipliers are feasible without it and give the
bound. Outputs are also decoded halfway from the best weights to the master's (Ben-Ameur and Neto 2007), which costs
little beside a master and saves a third of the rounds. With ``rescaling="none"`` an example's hinge falls below that of
zero weights only when its gold output is the best one of all, which says little about where to go from zero; so the
first rounds solve the problem with the margin rescaled, roughly, whose weights are the first box's center and whose
outputs the first rows.

*Proximal masters* (``proximal_master.py``) and *Newton masters* (``newton_master.py``) stay near their center by
themselves. They start from the weights of an averaged perceptron, which halves the rounds.

With all, rows without a multiplier for ``age`` rounds leave the master; a row that has come back twice stays, so that
rounds are finite.

Cost of a round: one or two argmax passes (and one for the certificate), the features of the rows, and the master, which
is most of it. Memory: the rows. Figures: docs/how-to/column-generation.md.

While the box is in use, or the center moves, the lower bound is poor: a run that ends then has good weights and a large
gap.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin.execution import Piece
from maxmargin.optimization.certificate import Proposal
from maxmargin.optimization.checkpoints.saved import StateDict, require
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.optimization.solver import Solver, Start
from maxmargin.problem import BaseProblem, hinges
from maxmargin.solvers.column_generation import states
from maxmargin.solvers.column_generation.highs_master import HighsMaster
from maxmargin.solvers.column_generation.linear_masters import (
    Answer,
    Box,
    Master,
    MasterProblem,
    OutputRows,
    output_rows,
)
from maxmargin.solvers.column_generation.newton_master import NewtonMaster
from maxmargin.solvers.column_generation.plain import PlainColumnGeneration
from maxmargin.solvers.column_generation.proximal_master import ProximalMaster
from maxmargin.solvers.column_generation.states import ColumnGenerationState
from maxmargin.solvers.online.perceptron import AveragedPerceptron
from maxmargin.structures.base import SHARD_PARTS, FloatArray, IntArray

FEW = 1_000
"""Up to this many weights "auto" takes Newton masters, whose Hessians are matrices of that size."""

SOME, MANY = 30_000, 300_000
"""From this many examples times weights on "auto" takes Newton masters if there are few weights, or else proximal ones:
vertices are then a bad choice in early masters, and costly ones."""

PASSES = 10
"""Passes of the averaged perceptron whose weights a run with proximal masters starts from."""

RETURNS = 2
"""A row that was dropped and has come back so often stays."""

WARM_ROUNDS, WARM_GAP = 30, 0.15
"""A warm-up ends after this many rounds, or when a master promises to lower the objective by less than this share."""

GOOD, GROWTH, IDLE = 0.25, 2.0, 0.99
"""The share of what a master promised that lets the box grow, the factor by which it grows and shrinks, and the share
of its size that weights do not reach where it is idle."""

ROUGH = 0.03
"""The box shrinks only for masters that promise to lower the objective by more than this share. Closer to a solution,
where rows describe all there is around, it would make the method forget them: idle ones age while it is small."""

_AGREEMENT = 1e-5
"""Share by which what is computed again may differ: argmax ends at a tolerance."""

CLOSER = 0.3
"""The relative gap of an inexact master, as a share of that of the whole problem."""


@dataclass(frozen=True, kw_only=True)
class ColumnGeneration(Solver):
    """Settings of column generation. ``ColumnGeneration.plain()`` is the 2009 paper's own version.

    Attributes:
        master: how master problems are solved: "highs" (dual simplex, warm), "newton" (Newton steps on a smoothed
            objective, see :mod:`~maxmargin.solvers.column_generation.newton_master`), "proximal" (proximal steps by
            coordinate ascent, see :mod:`~maxmargin.solvers.column_generation.proximal_master`), or "auto", by examples
            and weights: the second for few weights, the third for many, the first for small problems and balls.
        k_best: rows per example and round, from the ``k_best`` most violated outputs. More than one
            needs ``rescaling="margin"`` or "none".
        age: rounds after which a row without a multiplier leaves the master; None keeps all rows. "auto": 3 with exact
            masters, 10 with the others, where a row costs less.
        stabilize: keep the weights of exact masters in a box around the best so far, a trust region, and decode halfway
            to them too, after a warm-up where that is needed; start the others from an averaged perceptron.
        max_iter: limit of rounds when the caller gives none.
    """

    master: Literal["auto", "highs", "newton", "proximal"] = "auto"
    k_best: int = 1
    age: int | Literal["auto"] | None = "auto"
    stabilize: bool = True
    max_iter: int = 1000
    needs = ("lasso",)
    takes_slack = ("linear",)
    shard_size = SHARD_PARTS
    shards_unsupported = ""

    @classmethod
    def plain(cls, **settings: Any) -> PlainColumnGeneration:
        """The method as it was published; its settings are those of :class:`PlainColumnGeneration`."""
        return PlainColumnGeneration(**settings)

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.one_of("master", self.master, ("auto", "highs", "newton", "proximal"))
        _checks.integer("k_best", self.k_best, least=1)
        if self.age is not None and not _checks.is_one_of(self.age, "auto"):
            _checks.integer("age", self.age, least=1)

    def unsupported(self, problem: BaseProblem) -> str | None:
        """Linear programs: an L1 region, linear slack."""
        if reason := super().unsupported(problem):
            return reason
        lasso = problem.region.lasso
        if self.master in ("newton", "proximal") and lasso is not None and np.isfinite(lasso.radius):
            return f'{self.master} masters do not support a ball; use master="highs", or C without a radius'
        if self.k_best > 1 and problem.rescaling == "slack":
            return 'the k most violated outputs of slack rescaling are not known; use k_best=1 or rescaling="margin"'
        if self.k_best > 1 and problem.good is not None:
            return "with several good outputs only one pair of each example is found; use k_best=1"
        if self.k_best > 1 and problem.kind.relaxed:
            return f"the argmax of {problem.kind.called} is relaxed, so that it has no k best; use k_best=1"
        return None

    def _master(self, problem: BaseProblem, random: np.random.Generator) -> Master:
        region, n_examples = problem.region, problem.n_examples
        assert region.lasso is not None
        master, size = self.master, n_examples * problem.n_weights
        if master == "auto" and np.isinf(region.lasso.radius):
            few = problem.n_weights <= FEW
            master = "newton" if few and size > SOME else "proximal" if not few and size > MANY else "highs"
        if master == "newton":
            return NewtonMaster(region, n_examples)
        return ProximalMaster(region, n_examples, random) if master == "proximal" else HighsMaster(region, n_examples)

    def init(self, run: Run, start: Start) -> ColumnGenerationState:
        """No rows, at the start weights; without given ones, Newton and proximal masters start from an averaged
        perceptron unless the data is in several shards, exact ones with a warm-up where that helps."""
        problem = run.problem
        weights = start.weights_for(problem)
        state = self._empty(run, weights)
        here = run.session.n_shards == 1 and run.data is not None  # as online passes need
        if here and self.stabilize and state.master.stabilizes and start.weights is None and problem.good is None:
            with suppress(NonFiniteError):  # where that is the features' fault, the first step will say so
                return replace(state, answer=Answer(self._perceptron(run), np.zeros(0)))
        if self._boxed(state) and start.weights is None and problem.rescaling == "none" and problem.good is None:
            warm = _margin(run)
            return replace(state, warm=self._empty(warm, start.weights_for(problem)))
        return state

    def _perceptron(self, run: Run) -> FloatArray:
        """The weights of an averaged perceptron, times the power of two with the least objective."""
        perceptron = AveragedPerceptron()
        state = perceptron.init(run, Start())
        for _ in range(PASSES):
            if run.deadline is not None and time.perf_counter() >= run.deadline:
                break
            state = perceptron.step(run, state)
        weights = perceptron.propose(run, state)[0].weights
        values = {exponent: self._decode(run, 2.0**exponent * weights)[1] for exponent in (0, -1)}
        step = 1 if values[0] < values[-1] else -1
        at = min(values, key=values.__getitem__)
        while abs(at) < 20:
            values[at + step] = self._decode(run, 2.0 ** (at + step) * weights)[1]
            if values[at + step] >= values[at]:
                break
            at += step
        return np.asarray(2.0**at * weights)

    def _boxed(self, state: ColumnGenerationState) -> bool:
        return self.stabilize and not state.master.stabilizes

    def _empty(self, run: Run, weights: FloatArray) -> ColumnGenerationState:
        problem = run.problem
        return ColumnGenerationState(
            rows=OutputRows.none(problem.n_weights),
            answer=Answer(weights, np.zeros(0)),
            slacks=np.zeros(problem.n_examples),
            g=np.zeros(problem.n_weights),
            best=weights,
            master=self._master(problem, run.random),
        )

    def step(self, run: Run, state: ColumnGenerationState) -> ColumnGenerationState:
        """Decode at the master's solution, move the box, add violated rows, drop idle ones, solve the master."""
        if state.warm is not None:
            return self._warmed(run, state, state.warm)
        problem = run.problem
        found, primal = self._decode(run, state.answer.weights)
        best, least, box = self._judged(state, found, primal)
        fresh = self._violated(run, state, found, state.answer.weights, state.slacks)
        if self._boxed(state) and np.isfinite(state.primal):
            between = 0.5 * (state.best + state.answer.weights)
            found, value = self._decode(run, between)
            slacks = state.rows.slacks(between, problem.n_examples)
            more = self._violated(run, state, found, between, slacks)
            fresh = fresh.joined(more.take(~np.isin(more.key, fresh.key)))
            if value < least:
                best, least = between, value
        gap = (least - problem.region.dual(state.g, state.loss)) / abs(least) if least else 0.0
        if gap <= run.tol:  # the next certificate ends the run
            return replace(state, best=best, primal=least)
        if not len(fresh) or least - state.model <= run.tol * abs(least):
            # The best weights of the box are found; the bound is still missing, and a box without effect gives it.
            box = np.inf
        if box > 2.0 * problem.region.norm_bound(least):  # nothing better than the best weights is outside
            box = np.inf
        if not self._boxed(state):
            box = np.inf
        kept, back, dropped, returns = self._aged(state, fresh)
        rows = state.rows.take(kept).joined(fresh)
        # A master that is not exact and finds no fresh rows is solved more closely.
        tightness = state.tightness * (1.0 if len(fresh) else 0.1)
        accuracy = max(1e-10, min(CLOSER * tightness * gap, 0.1))
        bounds = Box(best, box)
        master = MasterProblem(state.rows, kept, rows, state.answer, bounds, accuracy, least, primal, run.deadline)
        answer = state.master.solve(master)
        idle = np.concatenate([state.idle[kept], np.zeros(len(fresh), dtype=np.int64)]) + 1
        idle[answer.multipliers > 0.0] = 0
        g, loss = rows.aggregate(answer.multipliers)
        slacks = rows.slacks(answer.weights, problem.n_examples)
        return ColumnGenerationState(
            rows=rows,
            idle=idle,
            returned=np.concatenate([state.returned[kept], back]),
            answer=answer,
            slacks=slacks,
            model=problem.region.penalty(answer.weights) + float(slacks.sum()),
            g=g,
            loss=loss,
            best=best,
            primal=least,
            box=box,
            dropped=dropped,
            returns=returns,
            master=state.master,
            tightness=tightness,
        )

    def _aged(
        self, state: ColumnGenerationState, fresh: OutputRows
    ) -> tuple[npt.NDArray[np.bool_], IntArray, FloatArray, IntArray]:
        """Which rows stay, how often each fresh one has come back, and the keys and returns of those that have left."""
        kept = np.ones(len(state.rows), dtype=bool)
        age = state.master.age if self.age == "auto" else self.age
        if age is not None:
            kept = (state.idle < age) | (state.returned >= RETURNS)
        dropped, returns = state.dropped, state.returns
        if not kept.all():
            dropped = np.concatenate([dropped, state.rows.key[~kept]])
            returns = np.concatenate([returns, state.returned[~kept]])
        back = np.zeros(len(fresh), dtype=np.int64)
        if len(fresh) and len(dropped):
            by_key = np.argsort(dropped, kind="stable")
            place = np.minimum(np.searchsorted(dropped, fresh.key, sorter=by_key), len(dropped) - 1)
            known = dropped[by_key[place]] == fresh.key
            back[known] = returns[by_key[place[known]]] + 1
            left = ~np.isin(dropped, fresh.key)
            dropped, returns = dropped[left], returns[left]
        return kept, back, dropped, returns

    def _warmed(self, run: Run, state: ColumnGenerationState, warm: ColumnGenerationState) -> ColumnGenerationState:
        """One round of the warm-up; after the last one, its outputs as rows with a margin of 1."""
        warm = self.step(_margin(run), warm)
        rounds = state.rounds + 1
        if warm.primal - warm.model > WARM_GAP * warm.primal and rounds < WARM_ROUNDS:
            return replace(state, warm=warm, rounds=rounds, answer=Answer(warm.best, state.answer.multipliers))
        held = warm.rows.take(warm.rows.loss > 0.0)  # the gold output has no row
        rows = OutputRows.of(held.matrix, run.problem.scale[held.owner], held.owner)
        rows = rows.take(np.unique(rows.key, return_index=True)[1])
        none = np.zeros(len(rows), dtype=np.int64)
        return replace(
            state,
            rows=rows,
            idle=none,
            returned=none,
            answer=Answer(warm.best, np.zeros(len(rows))),
            slacks=rows.slacks(warm.best, run.problem.n_examples),
            box=warm.box,
            warm=None,
        )

    def _judged(
        self, state: ColumnGenerationState, found: OutputRows, primal: float
    ) -> tuple[FloatArray, float, float]:
        """The best weights and their objective, and the size of the box, after decoding at the master's solution.

        As in any trust region: the master promised ``promised``, the objective fell by ``fell``.
        """
        if np.isinf(state.primal):  # the first weights
            if np.isfinite(state.box):
                return state.answer.weights, primal, state.box
            sizes = np.asarray(abs(found.matrix).sum(axis=1)).ravel()
            held = sizes > 0.0
            box = float(np.median(found.loss[held] / sizes[held])) if self._boxed(state) and held.any() else np.inf
            return state.answer.weights, primal, box if box > 0.0 else np.inf
        promised, fell = state.primal - state.model, state.primal - primal
        box = state.box
        far = float(np.abs(state.answer.weights - state.best).max(initial=0.0))
        if fell < -promised and promised > ROUGH * abs(state.primal):
            box = far / GROWTH
        elif far < IDLE * box:
            box = np.inf
        elif fell >= GOOD * promised:
            box *= GROWTH
        return (state.answer.weights, primal, box) if fell > 0.0 else (state.best, state.primal, box)

    def _decode(self, run: Run, weights: FloatArray) -> tuple[OutputRows, float]:
        """The rows of the most violated outputs of all examples, and the objective."""
        if self.k_best == 1:
            rows = OutputRows.joined_pieces(run.violated_each(output_rows, weights))
            hinge = run.found.value
        else:
            run.counters.argmax += 1
            hinge, found = 0.0, []
            for value, ranks in run.each(_ranked, weights, int(self.k_best), run.rescaled):
                hinge += value
                found += ranks
            rows = OutputRows.joined_pieces(found)
        return rows, run.problem.region.penalty(weights) + hinge

    def _violated(
        self, run: Run, state: ColumnGenerationState, found: OutputRows, weights: FloatArray, slacks: FloatArray
    ) -> OutputRows:
        """The found rows that exceed the master's slacks by more than a share of the gap aimed at, each once."""
        values = found.values(weights)
        n = max(1, run.problem.n_examples)
        aimed = 0.05 * run.tol * float(np.maximum(values, 0.0).sum()) / n
        over = values - slacks[found.owner] > np.maximum(aimed, 1e-12 * (1.0 + np.abs(values)))
        over &= ~np.isin(found.key, state.rows.key)
        chosen = np.flatnonzero(over)
        return found.take(chosen[np.unique(found.key[chosen], return_index=True)[1]])

    @property
    def checkpoint_unsupported(self) -> str:
        """Empty: all of it can be saved."""
        return ""

    def settled(self, state: ColumnGenerationState) -> ColumnGenerationState:
        """With masters that hold a basis in place of a model of HiGHS."""
        return states.settled(state)

    def state_dict(self, state: ColumnGenerationState) -> StateDict:
        """The rows, the answer of the last master and what it was made of."""
        return states.state_dict(state)

    def load_state_dict(self, run: Run, saved: StateDict) -> ColumnGenerationState:
        """The same state, once its rows are found below the most violated outputs."""
        state = states.load_state_dict(
            saved,
            run.problem.n_weights,
            run.problem.n_examples,
            lambda: self._master(run.problem, run.random),
        )
        found, primal = self._decode(run.uncounted(), state.best)
        n = run.problem.n_examples
        room = _AGREEMENT * (1.0 + abs(primal))
        above = state.rows.slacks(state.best, n) > found.slacks(state.best, n) + room
        require(run.problem.rescaling == "none" or not above.any(), "a row is above the most violated output")
        known = np.isinf(state.primal) or abs(state.primal - primal) <= room
        require(known, "its objective is not that of its best weights")
        return state

    def propose(self, run: Run, state: ColumnGenerationState) -> Sequence[Proposal]:
        """The best weights so far, the first ones before any, and the bound by the master's multipliers."""
        return [Proposal(state.best, state.g, state.loss)]


def _ranked(
    piece: Piece, memory: Any, weights: FloatArray, k: int, rescaling: str | None
) -> tuple[tuple[float, list[Any]], Any]:
    """``H(w)`` of a piece, and the rows of its ``k`` most violated outputs, rank by rank."""
    problem = piece.problem if rescaling is None else piece.problem.with_rescaling(rescaling)
    ranks = hinges.ranked(problem, weights, k, piece.first)
    value = np.maximum(np.max([rank.value for rank in ranks], axis=0), 0.0)
    own = Piece(problem, piece.first)
    return (problem.total(value), [output_rows(own, None, rank) for rank in ranks]), memory


def _margin(run: Run) -> Run:
    """The run of the same problem with the margin rescaled; its work counts as the run's."""
    problem = run.problem.with_rescaling("margin")
    return replace(run, problem=problem, rescaled="margin", caches_oracle=False, hinge_tol=0.0, _cached=None)
