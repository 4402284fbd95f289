"""Points found so far and the master problems over them, for simplicial decomposition and cutting planes.

Every example's most violated output gives a point ``(d, l) = (m_i s_i df_i, s_i l_i)``, see
:mod:`maxmargin.problem.hinges`; a *block* holds the points of one example, or sums of points over a group of examples.
With weights ``q >= 0`` of the points, summing to 1 in every block, the master problem is the dual problem over the span
of the points:

    max_q  l'q + min_{w in W} (w'g + 1/(2C) ||w||^2),    g = sum_j q_j d_j

and the next argmax pass is made at ``w``, the best response to ``g``. With quadratic slack weights need not sum to 1,
points are rays, and ``- 1/2 sum_i s_i zeta_i^2`` is added, with the slack ``zeta_i`` of example i, which
is kept as one more coordinate ``sqrt(s_i / C) zeta_i`` after the weights: ``C/2`` times its square is just that.

Without a ridge penalty, in a ball or with an L1 norm, the best response to ``g`` is far away or not unique. There
masters have a proximal term, ``1/(2c) ||w - center||^2``, see :mod:`~maxmargin.solvers.decomposition.proximal_center`.

The kernel solves masters of a few hundred points at once by a projected Newton method, larger ones block by block
(``simplex/masters.hpp``). Memory: the entries of all points, and the Gram matrix of every block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maxmargin import _kernels, _memory, _threads
from maxmargin._sparse import sp
from maxmargin._vectors import squared
from maxmargin.optimization.checkpoints.saved import StateDict, array, require
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.problem import BaseProblem, Hinge
from maxmargin.solvers.decomposition.found_points import (
    ROUNDING,
    Candidates,
    Search,
    candidates,
    candidates_of,
    halved_squares,
    sum_by,
    sums_of,
)
from maxmargin.solvers.decomposition.proximal_center import ProximalCenter
from maxmargin.structures.base import FloatArray, IntArray, PointStatus

if TYPE_CHECKING:
    from maxmargin.solvers.decomposition.master_solver import Iterate

_NEWTON_STEPS = 100
_LEAST = 1e-15
"""No sweep brings a gap, relative to the loss, below this."""
_STALLED = 60
"""Sweeps end after so many over all blocks that did not make the gap smaller: rounding is all that is left."""


_POINTS = {
    "starts": np.int64,
    "q": np.float64,
    "loss": np.float64,
    "age": np.int64,
    "iterate": np.uint8,
    "entry_starts": np.int64,
    "index": np.int32,
    "value": np.float64,
}
"""The arguments of the kernel's ``restore``, and their types."""

_AGREEMENT = 1e-5
"""Share by which what is computed again may differ: argmax ends at a tolerance."""

UNSOLVED = 3.0
"""A master whose gap is that many times what was aimed at has too weak a proximal term."""

MOST_RELEASED = 1000
"""With more weights that are not zero the force of a proximal term is not taken off."""


@dataclass(frozen=True, eq=False)
class Found:
    """Points that an argmax pass found, at most one a block.

    Attributes:
        hinges: what the examples of each block add to ``H(w)``, shape ``(n_blocks,)``.
        blocks: whose the points are.
        rows: ``d / factor``, one row per point.
        factor: shape ``(n_points,)``.
        loss: shape ``(n_points,)``.
        seen: the numbers of the examples that were looked at.
    """

    hinges: FloatArray
    blocks: IntArray
    rows: sp.csr_array
    factor: FloatArray
    loss: FloatArray
    seen: IntArray


class Masters:
    """The points of a run, in blocks, and their weights. It changes in place.

    Args:
        problem: what is known of the whole problem.
        group: how many consecutive examples share a block; more than 1 keeps sums of points.
        unit_rays: with quadratic slack, take rays along which the dual rises from the current point, all of length 1
            (Yu and Rousu 2007, eq. 30); else those of all violated outputs, in sums each times its slack.
        proximal: whether masters have a proximal term, which they need without a ridge penalty.
    """

    def __init__(
        self, problem: BaseProblem, group: int = 1, *, unit_rays: bool = False, proximal: bool = False
    ) -> None:
        region, norms = problem.region, problem.region.norms
        assert norms is not None
        n = problem.n_examples
        self.problem, self.region, self.group = problem, region, group
        assert proximal or np.isfinite(norms.C)
        self.C = norms.C if np.isfinite(norms.C) else 1.0
        """That of the ridge penalty; without one, the unit of masses alone."""
        self.quadratic = problem.slack == "quadratic"
        self.unit_rays = unit_rays and self.quadratic
        self.n_blocks = -(-n // group)
        mask = np.zeros(0, dtype=np.bool_) if region.nonnegative is None else region.nonnegative
        self.kernel: Any = _kernels.Masters(
            self.n_blocks,
            problem.n_weights,
            n if self.quadratic else 0,
            self.C,
            norms.radius,
            np.ascontiguousarray(mask),
            self.quadratic,
            norms.price,
            norms.l1_radius,
        )
        self.center: ProximalCenter | None = None
        self.ridge_C = norms.C
        if proximal:
            self.center = ProximalCenter(np.zeros(problem.n_weights))
        self.squares = np.zeros(n)
        """``s_i zeta_i^2``, shape ``(n_examples,)``; 0 with linear slack."""

    def evaluate(self, weights: FloatArray) -> None:
        """Find every block's best and current value at some weights."""
        self.best, self.current = np.empty(self.n_blocks), np.empty(self.n_blocks)
        self.kernel.values(weights, self.best, self.current, _threads.current())

    def response(self, g: FloatArray) -> FloatArray:
        """The weights of the master's solution."""
        if self.center is None:
            weights = self.region.best_response(g)
            assert weights is not None
            return weights
        weights = np.empty(self.problem.n_weights)
        self.kernel.response(weights)
        return self.region.project(weights)

    def judge(self, state: Iterate, found: Found, hinge: Hinge) -> None:
        """Move the center of the proximal term, if there is one, after points were found at the state's weights."""
        if self.center is None:
            return
        value = self.region.penalty(state.weights) + hinge.value
        self.center.judge(state.weights, value, hinge, state.model, state.dual)
        zeta = np.ones(len(found.blocks))
        if self.quadratic and self.group == 1:
            zeta = np.sqrt(2.0 * found.hinges[found.blocks] / np.maximum(self.problem.scale[found.blocks], 1e-300))
        self.center.begin(np.asarray(found.rows.T @ (zeta * found.factor))[: self.problem.n_weights])
        self.kernel.recenter(self.center.weights, self.center.c, self.ridge_C)

    def released(self, state: Iterate) -> tuple[FloatArray, float, float] | None:
        """``g``, loss and squares after the points' weights have taken off the force of the proximal term.

        None where the dual is not larger, or what keeps the gap open is another thing.
        """
        center = self.center
        if center is None or not center.c or not center.near(state.model):
            return None
        dual, left = state.dual, max(0.0, center.value - state.model)
        if state.model - dual <= left:
            return None
        force = (state.weights - center.weights) / center.c
        # Weights that are zero keep their g, unless the points leave too little room for that.
        every, used = np.arange(len(force)), np.flatnonzero((state.weights != 0.0) | (force != 0.0))
        best, n = None, len(force)
        for where in (every,) if len(used) == n else (every, used):
            if not 0 < len(where) <= MOST_RELEASED:
                continue
            sums = np.empty(n + (len(self.squares) if self.quadratic else 0))
            loss = self.kernel.release(where, state.g[where] + force[where], sums)
            released = sums[:n].copy(), loss, self.C * squared(sums[n:])
            if (bound := self.region.dual(*released)) > dual:
                best, dual = released, bound
            if state.model - dual <= left:
                break
        return best

    def by_block(self, values: FloatArray) -> FloatArray:
        """Sums of the values of all examples over their blocks, shape ``(n_blocks,)``."""
        return values if self.group == 1 else sums_of(np.arange(len(values)) // self.group, values, self.n_blocks)

    def gaps(self, hinges: FloatArray) -> FloatArray:
        """By how much every block's hinges, shape ``(n_blocks,)``, are above its part of the dual."""
        return np.asarray(hinges + 0.5 * self.by_block(self.squares) - self.current)

    def search(self, margin: float = 0.0) -> Search:
        """What the pieces need to know to find points; ``margin``: by how much a point must beat those it has."""
        return Search(
            group=self.group,
            margin=margin,
            best=self.best if self.group == 1 else None,
            squares=self.squares if self.unit_rays else None,
            unit=1.0 / np.sqrt(self.C),
            width=self.problem.n_weights + (self.problem.n_examples if self.quadratic else 0),
        )

    def add(self, found: Found, limit: float, chosen: npt.NDArray[np.bool_] | None = None) -> int:
        """Add points, those of the ``chosen`` blocks only; returns how many were new. Blocks keep ``limit`` points."""
        numbers = np.arange(len(found.blocks)) if chosen is None else np.flatnonzero(chosen[found.blocks])
        added = np.zeros(len(numbers), dtype=np.bool_)
        rows = found.rows
        # Squares too: without them no master can be solved.
        sizes = squared(rows.data) * squared(found.factor)
        if not (np.isfinite(sizes) and np.isfinite(found.loss).all()):
            raise NonFiniteError("feature differences became NaN, infinite or too large to square")
        self.kernel.add(
            np.ascontiguousarray(found.blocks[numbers], dtype=np.int64),
            numbers,
            np.ascontiguousarray(rows.indptr, dtype=np.int64),
            np.ascontiguousarray(rows.indices, dtype=np.int32),
            np.ascontiguousarray(rows.data, dtype=np.float64),
            np.ascontiguousarray(found.factor[numbers], dtype=np.float64),
            np.ascontiguousarray(found.loss[numbers], dtype=np.float64),
            0 if np.isinf(limit) else int(limit),
            added,
        )
        return int(added.sum())

    def find(self, run: Run, weights: FloatArray, margin: float = 0.0, chosen: tuple[int, int] | None = None) -> Found:
        """The points that one argmax pass finds, one an example or block at most, where they may improve the dual.

        ``chosen``: the share of every shard to look at, as the number of a part and the number of all parts.
        """
        if chosen is None:
            found = list(run.violated_each(candidates, weights, self.search(margin)))
        else:
            shards = run.session.shard_edges
            edges = run.session.example_edges[shards]
            found = [
                one for one in run.each(candidates_of, weights, self.search(margin), edges, *chosen) if one is not None
            ]
            run.counters.argmax += sum(len(one.hinges) for one in found) / max(1, run.problem.n_examples)
        return self._joined(found)

    def find_between(self, run: Run, weights: FloatArray, first: int, last: int) -> Found:
        """The points of some consecutive examples."""
        edges = np.array([first, last], dtype=np.int64)
        found = [one for one in run.each(candidates_of, weights, self.search(), edges, 0, 1) if one is not None]
        run.counters.argmax += (last - first) / max(1, run.problem.n_examples)
        return self._joined(found)

    def _joined(self, found: Sequence[Candidates]) -> Found:
        """The points of several pieces."""
        hinges = np.zeros(self.problem.n_examples)
        for one in found:
            hinges[one.examples] = one.hinges
        hinges = self.by_block(hinges)
        if not found:
            none, seen = np.zeros(0), np.zeros(0, dtype=np.int64)
            width = self.search().width
            return Found(hinges, seen, sp.csr_array((0, width)), none, none, seen)
        seen = np.concatenate([one.examples for one in found])
        rows = found[0].rows if len(found) == 1 else sp.csr_array(sp.vstack([one.rows for one in found]))
        blocks, factor, loss = (
            np.concatenate([getattr(one, name) for one in found]) for name in ("blocks", "factor", "loss")
        )
        if self.group > 1 and len(found) > 1:  # pieces may cut through a block
            blocks, of = np.unique(blocks, return_inverse=True)
            rows = sp.csr_array(sum_by(of, len(blocks), np.ones(len(of))) @ rows)
            factor, loss = np.ones(len(blocks)), sums_of(of, loss, len(blocks))
        return Found(hinges, blocks, rows, factor, loss, seen)

    def solve(self, blocks: IntArray, aim: float, *, joint: int, sweeps: int) -> float:
        """Solve the master over some blocks, the others fixed, to a gap of ``aim``; returns an estimate of the gap.

        Up to ``joint`` points are treated at once, more by at most ``sweeps`` sweeps over the blocks.
        """
        sizes = np.empty(self.n_blocks, dtype=np.int64)
        self.kernel.sizes(sizes)
        status = int(PointStatus.INEXACT)
        if len(blocks) == 1 or sizes[blocks].sum() <= joint:
            status, gap, _ = self.kernel.joint(blocks, aim, _NEWTON_STEPS)
        if status == PointStatus.INEXACT:  # too many points, or Newton steps that came to a halt
            aim = max(aim, _LEAST * abs(self.kernel.loss()))
            status, gap = self._sweep(blocks[sizes[blocks] > 1 - int(self.quadratic)], aim, sweeps)
        if status == PointStatus.NONFINITE:
            raise NonFiniteError("a master problem met NaN or infinite numbers")
        if self.center is not None:
            self.center.unsolved = gap > UNSOLVED * max(aim, ROUNDING * abs(self.kernel.loss()))
        return float(gap)

    def _sweep(self, blocks: IntArray, aim: float, limit: int) -> tuple[int, float]:
        """Sweeps over all blocks and, in between, over those that had much to gain."""
        active, status, gap, least, stalled = blocks, 0, 0.0, np.inf, 0
        enough = 0.1 * aim / max(1, len(blocks))
        for _ in range(limit):
            gaps = np.empty(len(active))
            status, gap, _ = self.kernel.sweep(active, enough, gaps)
            whole = len(active) == len(blocks)
            if whole:
                least, stalled = min(gap, least), stalled + 1 if gap >= least else 0
            if status != 0 or (whole and gap <= aim) or stalled == _STALLED:
                break
            keep = active[gaps > 0.3 * max(gap, aim) / len(active)]
            active = blocks if gap <= 0.5 * aim or not len(keep) else keep
        return status, gap

    def settle(self, age: int) -> tuple[FloatArray, float, float]:
        """Make weights sum to 1 to rounding, recompute ``g``, and drop points without weight in ``age`` masters.

        Returns ``g``, the loss and the sum of squares for a :class:`Proposal`.
        """
        self.kernel.settle(age)
        return self.sums()

    def sums(self) -> tuple[FloatArray, float, float]:
        """``g``, the loss and the sum of squares over the points, as they were last settled."""
        n = self.problem.n_weights
        sums = np.empty(n + (len(self.squares) if self.quadratic else 0))
        self.kernel.g(sums)
        if self.quadratic:
            self.squares = self.C * sums[n:] ** 2
        return sums[:n].copy(), self.kernel.loss(), self.C * squared(sums[n:])

    def state(self) -> StateDict:
        """The points with their weights, and the center of the proximal term."""
        points = dict(zip(_POINTS, self.kernel.state(), strict=True))
        return points if self.center is None else {**points, **self.center.state()}

    def restore(self, run: Run, saved: StateDict) -> None:
        """The inverse of :meth:`state`; ValueError or TypeError if the arrays make no sense."""
        points = {name: array(saved, name, dtype, (None,)) for name, dtype in _POINTS.items()}
        sizes = np.diff(points["starts"])
        # One point an iteration; the inner products of those of a block must fit into memory.
        require(sizes.max(initial=0) <= run.counters.iterations + 2, f"a block has {sizes.max(initial=0)} points")
        _memory.require(32.0 * float((sizes.astype(np.float64) ** 2).sum()), "the points' inner products", "start over")
        self.kernel.restore(*points.values())
        if self.center is not None:
            self.center.restore(saved)
            if self.center.c:
                self.kernel.recenter(self.center.weights, self.center.c, self.ridge_C)

    def check(self, run: Run, state: Iterate) -> None:
        """ValueError if a point is above the most violated output at the state's weights, or the center too low.

        Bounds would be wrong then. Sums of rays have lengths of their own and are not compared.
        """
        apart = run.uncounted()
        if not self.quadratic or self.group == 1:
            hinges = self.find(apart, state.weights).hinges
            best = self.best if not self.quadratic else halved_squares(np.maximum(self.best, 0.0), self.problem.scale)
            room = _AGREEMENT * (1.0 + float(np.abs(hinges).sum()))
            require((best <= hinges + run.hinge_tol + room).all(), "a point is above the most violated output")
        if self.center is not None and np.isfinite(self.center.value):
            hinge, center = apart.hinge(self.center.weights).value, self.center
            room = run.hinge_tol + _AGREEMENT * (1.0 + abs(hinge))
            value = self.region.penalty(center.weights) + center.hinge.value
            low = center.hinge.value < hinge - room or abs(value - center.value) > room
            require(not low, "the objective of its center is not that of its weights")
