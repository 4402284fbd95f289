"""How a piece of the problem finds points for the masters of simplicial decomposition and cutting planes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._sparse import sp
from maxmargin.execution import Piece
from maxmargin.optimization.run import NonFiniteError
from maxmargin.problem import MostViolated
from maxmargin.structures.base import FloatArray, IntArray

ROUNDING = 1e-13
"""Share of a value by which rounding alone may change it."""


@dataclass(frozen=True, eq=False)
class Search:
    """How a piece finds points, see :class:`Masters`.

    Attributes:
        group: how many consecutive examples share a block.
        margin: by how much an example's point must beat the best of its block.
        best: that one's value, shape ``(n_examples,)``, if blocks are examples.
        squares: ``s_i zeta_i^2`` of all examples where rays have unit length, else None.
        unit: the coordinate that holds ``zeta`` of an example of weight 1, where that is 1.
        width: how many coordinates points have.
    """

    group: int
    margin: float
    best: FloatArray | None
    squares: FloatArray | None
    unit: float
    width: int

    def beats(self, piece: Piece, value: FloatArray) -> npt.NDArray[np.bool_]:
        """Which outputs found for the examples, one a block, are above the best points of their blocks.

        With quadratic slack, where all points are rays of the same length, ``zeta`` does not matter unless rays have
        unit length: at weights that are not the master's own, a ray of less value than ``zeta`` may be the one that
        the master lacks.
        """
        assert self.best is not None
        best = self.best[piece.numbers]
        above = np.asarray(value > best + self.margin + ROUNDING * np.abs(best))
        return above if self.squares is None else above & self.rises(piece, value)

    def rises(self, piece: Piece, value: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether the dual rises along the rays found: their values exceed ``s_i zeta_i``."""
        assert self.squares is not None
        return np.asarray(value > np.sqrt(piece.problem.scale * self.squares[piece.numbers]))


@dataclass(frozen=True, eq=False)
class Candidates:
    """The points of one piece, see :class:`Found`.

    Attributes:
        examples: the numbers of its examples, and ``hinges``: what each adds to ``H(w)``.
    """

    examples: IntArray
    hinges: FloatArray
    blocks: IntArray
    rows: sp.csr_array
    factor: FloatArray
    loss: FloatArray


def candidates(piece: Piece, memory: Any, violated: MostViolated, search: Search) -> Candidates:
    """Points of a piece's examples, or of their blocks, that may improve the dual."""
    if not np.isfinite(violated.value).all():
        raise NonFiniteError("an argmax met NaN or infinite scores")
    problem, quadratic = piece.problem, piece.problem.slack == "quadratic"
    numbers, hinges = piece.first + np.arange(len(violated.value)), violated.value
    if quadratic:
        hinges = halved_squares(violated.value, problem.scale)
    if search.group > 1:
        return _sums(piece, violated, search, numbers, hinges)
    examples = np.flatnonzero(search.beats(piece, violated.value))
    if 4 * len(examples) <= len(violated.value):
        rows = problem.select(examples).differences(violated.z[problem.structure.parts_of(examples)])
    else:
        rows = problem.differences(violated.z)[examples]
    factor = violated.factor[examples]
    if quadratic:
        # zeta comes after the weights; the factor of the row multiplies it too.
        factor = np.where(factor == 0.0, 1.0, factor)
        unit = search.unit * np.sqrt(problem.scale[examples]) / factor
        rows = _with_entries(sp.csr_array(rows), problem.n_weights + numbers[examples], unit, search.width)
    return Candidates(numbers, hinges, numbers[examples], sp.csr_array(rows), factor, violated.loss[examples])


def halved_squares(value: FloatArray, scale: FloatArray) -> FloatArray:
    """What examples add to ``H(w)`` with quadratic slack, given the values of :class:`MostViolated`."""
    return np.divide(0.5 * value * value, scale, out=np.zeros(len(value)), where=scale > 0.0)


def _sums(piece: Piece, violated: MostViolated, search: Search, numbers: IntArray, hinges: FloatArray) -> Candidates:
    """One point per block: the sum over its examples, each times its ``zeta``."""
    problem = piece.problem
    zeta = problem.slack_slope(violated.value)
    if search.squares is not None:
        zeta = search.rises(piece, violated.value).astype(np.float64)
    blocks, of = np.unique(numbers // search.group, return_inverse=True)
    factor = zeta * violated.factor
    if len(blocks) == 1:
        parts = problem.structure.to_parts(factor)
        rows = sp.csr_array(problem.features.adjoint(parts * (violated.z - problem.gold))[None])
    else:
        rows = sp.csr_array(sum_by(of, len(blocks), factor) @ problem.differences(violated.z))
    if problem.slack == "quadratic":
        zetas = sp.csr_array(
            (search.unit * np.sqrt(problem.scale) * zeta, (of, numbers)),
            shape=(len(blocks), search.width - problem.n_weights),
        )
        rows = sp.csr_array(sp.hstack([rows, zetas]))
    loss = sums_of(of, zeta * violated.loss, len(blocks))
    some = sums_of(of, zeta, len(blocks)) > 0.0
    return Candidates(numbers, hinges, blocks[some], sp.csr_array(rows[some]), np.ones(int(some.sum())), loss[some])


def candidates_of(
    piece: Piece, memory: Any, weights: FloatArray, search: Search, edges: IntArray, part: int, parts: int
) -> tuple[Candidates | None, Any]:
    """Those of a share of the examples between each two edges; None if the piece has none of them."""
    starts, sizes = edges[:-1], np.diff(edges)
    chosen = [
        np.arange(max(first, piece.first), min(last, piece.numbers.stop))
        for first, last in zip(starts + sizes * part // parts, starts + sizes * (part + 1) // parts, strict=True)
    ]
    examples = np.concatenate(chosen)
    if not len(examples):
        return None, memory
    if len(examples) < piece.problem.n_examples:
        piece = Piece(piece.problem.select(examples - piece.first), int(examples[0]))
    violated = piece.problem.most_violated(weights, first=piece.first)
    return candidates(piece, memory, violated, search), memory


def sums_of(of: IntArray, values: FloatArray, n: int) -> FloatArray:
    """``n`` sums of values, each into that of its number."""
    return np.asarray(np.bincount(of, weights=values, minlength=n), dtype=np.float64)


def sum_by(of: IntArray, n: int, factor: FloatArray) -> sp.csr_array:
    """The matrix that adds up rows, times their factors, into ``n`` sums."""
    return sp.csr_array((factor, (of, np.arange(len(of)))), shape=(n, len(of)))


def _with_entries(rows: sp.csr_array, columns: IntArray, values: FloatArray, width: int) -> sp.csr_array:
    """The matrix with one more entry at the end of every row, in a column after all others, ``width`` columns wide."""
    n = rows.shape[0]
    ends = rows.indptr[1:]
    return sp.csr_array(
        (np.insert(rows.data, ends, values), np.insert(rows.indices, ends, columns), rows.indptr + np.arange(n + 1)),
        shape=(n, width),
    )
