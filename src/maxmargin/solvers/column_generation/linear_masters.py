"""Restricted master problems of column generation: linear programs over the rows found so far.

With the rows ``a_r = m_i df_i(y_r)`` and ``b_r = l_i(y_r)`` of example ``i = owner(r)``, both times the example weight,

    primal   min_{w in W, xi >= 0}  1/C ||w||_1 + sum_i xi_i       s.t.  xi_i >= a_r'w + b_r
    dual     max_{lambda >= 0}      b'lambda          s.t.  |A'lambda| <= 1/C,  sum_{r of i} lambda_r <= 1

which is LP (9) and (10) of Wang and Shawe-Taylor (2009) divided by their C, with the loss in place of the margin of 1.
``W`` holds signs (then only ``-A'lambda <= 1/C``) and, in the master by HiGHS, a ball ``||w||_1 <= radius``.

Weights that no row touches are zero in a solution, so that masters hold only the columns of their rows.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin._sparse import sp
from maxmargin.execution import Piece
from maxmargin.optimization.checkpoints.saved import StateDict, array, require, vector
from maxmargin.optimization.run import NonFiniteError
from maxmargin.problem import MostViolated
from maxmargin.regions import Region
from maxmargin.structures.base import FloatArray, IntArray

LARGEST = 1e15
"""No linear program is solved with entries above this one, which is also where HiGHS refuses them."""


def slacks(values: FloatArray, owner: npt.NDArray[np.integer[Any]], n_examples: int) -> FloatArray:
    """The largest of each example's values and 0, shape ``(n_examples,)``."""
    xi = np.zeros(n_examples)
    np.maximum.at(xi, owner, values)
    return xi


def feasible(multipliers: FloatArray, owner: npt.NDArray[np.integer[Any]], n_examples: int) -> FloatArray:
    """The multipliers made >= 0, with sums of at most 1 per example."""
    positive = np.maximum(multipliers, 0.0)
    sums = np.bincount(owner, positive, minlength=n_examples)
    return np.asarray(positive / np.maximum(sums, 1.0)[owner])


def output_rows(piece: Piece, memory: Any, violated: MostViolated) -> tuple[sp.csr_array, FloatArray, IntArray]:
    """A piece's rows: matrix, losses and the numbers of the examples; none of examples whose margin is kept."""
    if not np.isfinite(violated.value).all():
        raise NonFiniteError("the scores are not finite")
    counts = np.flatnonzero(violated.factor > 0.0)
    differences = sp.csr_array(piece.problem.differences(violated.z)[counts])
    return sp.diags_array(violated.factor[counts]) @ differences, violated.loss[counts], piece.first + counts


@dataclass(frozen=True, eq=False)
class OutputRows:
    """Constraints ``xi_owner >= matrix w + loss``.

    Attributes:
        matrix: shape ``(n_rows, n_weights)``, sorted column numbers.
        loss: shape ``(n_rows,)``.
        owner: the example of each row, shape ``(n_rows,)``.
        key: a number that equal rows share, shape ``(n_rows,)``.
    """

    matrix: sp.csr_array
    loss: FloatArray
    owner: IntArray
    key: FloatArray

    @classmethod
    def of(cls, matrix: Any, loss: FloatArray, owner: IntArray) -> OutputRows:
        """Rows with their keys: inner products with fixed random numbers, which tell different rows apart."""
        matrix = sp.csr_array(matrix)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        if not np.abs(matrix.data).max(initial=0.0) <= LARGEST:
            raise NonFiniteError("the features of an output are too large for a linear program, or not finite")
        drawn = np.random.default_rng(0).random(matrix.shape[1])
        return cls(matrix, loss, owner, matrix @ drawn + np.sqrt(2.0) * owner + np.sqrt(3.0) * loss)

    @classmethod
    def joined_pieces(cls, found: Iterable[tuple[sp.csr_array, FloatArray, IntArray]]) -> OutputRows:
        """The rows of all pieces, see :func:`output_rows`."""
        matrices, losses, owners = zip(*found, strict=True)
        return cls.of(sp.vstack(matrices, format="csr"), np.concatenate(losses), np.concatenate(owners))

    @classmethod
    def none(cls, n_weights: int) -> OutputRows:
        """No rows."""
        empty = np.zeros(0)
        return cls(sp.csr_array((0, n_weights)), empty, np.zeros(0, dtype=np.int64), empty)

    def __len__(self) -> int:
        return len(self.loss)

    def take(self, chosen: npt.NDArray[Any]) -> OutputRows:
        """Some of the rows, by numbers or mask."""
        return OutputRows(sp.csr_array(self.matrix[chosen]), self.loss[chosen], self.owner[chosen], self.key[chosen])

    def joined(self, more: OutputRows) -> OutputRows:
        """These rows, then others."""
        return OutputRows(
            sp.csr_array(sp.vstack([self.matrix, more.matrix], format="csr")),
            *(
                np.concatenate([mine, other])
                for mine, other in ((self.loss, more.loss), (self.owner, more.owner), (self.key, more.key))
            ),
        )

    def values(self, weights: FloatArray) -> FloatArray:
        """``matrix w + loss``, shape ``(n_rows,)``."""
        return np.asarray(self.matrix @ weights) + self.loss

    def slacks(self, weights: FloatArray, n_examples: int) -> FloatArray:
        """The smallest feasible ``xi``, shape ``(n_examples,)``."""
        return slacks(self.values(weights), self.owner, n_examples)

    def feasible(self, multipliers: FloatArray, n_examples: int) -> FloatArray:
        """The multipliers made >= 0, with sums of at most 1 per example."""
        return feasible(multipliers, self.owner, n_examples)

    def aggregate(self, multipliers: FloatArray) -> tuple[FloatArray, float]:
        """``A'lambda`` and ``b'lambda``."""
        return np.asarray(self.matrix.T @ multipliers), float(self.loss @ multipliers)

    def state(self) -> StateDict:
        """The entries, losses and owners; keys are worked out from them."""
        matrix = self.matrix
        return {
            "starts": matrix.indptr.astype(np.int64),
            "index": matrix.indices.astype(np.int32),
            "value": np.asarray(matrix.data),
            "loss": self.loss,
            "owner": np.asarray(self.owner, dtype=np.int64),
        }

    @classmethod
    def from_state(cls, saved: StateDict, n_weights: int, n_examples: int) -> OutputRows:
        """The inverse of :meth:`state`; ValueError if the arrays make no sense."""
        starts, index = array(saved, "starts", np.int64, (None,)), array(saved, "index", np.int32, (None,))
        value, loss = vector(saved, "value", len(index)), vector(saved, "loss", max(0, len(starts) - 1))
        owner = array(saved, "owner", np.int64, (len(loss),))
        spans = len(starts) and starts[0] == 0 and starts[-1] == len(index) and (np.diff(starts) >= 0).all()
        require(spans, "rows do not span their entries")
        rises = np.ones(len(index), dtype=np.bool_)
        rises[1:] = np.diff(index) > 0
        rises[starts[:-1][np.diff(starts) > 0]] = True
        inside = ((index >= 0) & (index < n_weights)).all() and ((owner >= 0) & (owner < n_examples)).all()
        require(inside and rises.all() and (value != 0.0).all(), "rows have entries outside the weights, or twice")
        return cls.of(sp.csr_array((value, index, starts), shape=(len(loss), n_weights)), loss, owner)

    @cached_property
    def columns(self) -> IntArray:
        """The weights that the rows touch, in increasing order."""
        return np.unique(self.matrix.indices).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Answer:
    """A master's solution: weights, shape ``(n_weights,)``, and feasible multipliers, shape ``(n_rows,)``.

    ``work`` counts simplex iterations or proximal steps.
    """

    weights: FloatArray
    multipliers: FloatArray
    work: int = 0


@dataclass(frozen=True, eq=False)
class Box:
    """``|w - center| <= size``, weight by weight; no bounds where ``size`` is infinite."""

    center: FloatArray
    size: float

    def bounds(self, region: Region, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """The smallest and largest values of some weights."""
        lower, upper = self.center[columns] - self.size, self.center[columns] + self.size
        if region.nonnegative is not None:
            lower = np.where(region.nonnegative[columns], np.maximum(lower, 0.0), lower)
        return lower, upper


@dataclass(frozen=True, eq=False)
class MasterProblem:
    """One master problem.

    Attributes:
        before: the rows of the last master, and ``kept``: which of them stay, shape ``(n_before,)``.
        rows: those that stay, then fresh ones.
        start: the solution of the last master.
        box: where weights stay; its center are the best weights so far.
        accuracy: the relative gap aimed at, where there is a choice.
        primal: the whole problem's objective at the best weights, and ``value``: at those of the start.
        deadline: the value of ``time.perf_counter()`` at which the answer is the best at hand; None for none.
    """

    before: OutputRows
    kept: npt.NDArray[np.bool_]
    rows: OutputRows
    start: Answer
    box: Box
    accuracy: float
    primal: float = np.inf
    value: float = np.inf
    deadline: float | None = None

    @property
    def over(self) -> bool:
        """Whether the clock has reached the deadline."""
        return self.deadline is not None and time.perf_counter() >= self.deadline

    @property
    def begin(self) -> Answer:
        """The start, with multipliers of zero for fresh rows."""
        fresh = np.zeros(len(self.rows) - int(self.kept.sum()))
        return Answer(self.start.weights, np.concatenate([self.start.multipliers[self.kept], fresh]))


class Master(ABC):
    """Working memory of one master problem whose rows come and go."""

    stabilizes = False
    """Whether its weights stay near a center by themselves, without a box."""

    age = 3
    """Rounds after which idle rows leave, unless the solver says otherwise."""

    @abstractmethod
    def settled(self) -> Self:
        """A master that goes on as one from a file does: itself, or one without what no file holds."""

    @abstractmethod
    def state(self) -> StateDict:
        """All that the next master depends on, of one that is settled."""

    @abstractmethod
    def restore(self, saved: StateDict, rows: OutputRows) -> None:
        """The inverse of :meth:`state` on a new master; ``rows`` are those of the last one."""

    @abstractmethod
    def solve(self, problem: MasterProblem) -> Answer:
        """The solution; at the deadline weights of the region, perhaps outside the box, and feasible multipliers."""
