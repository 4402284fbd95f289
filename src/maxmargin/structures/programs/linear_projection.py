"""Euclidean projection onto polytopes given by rows of constraints: Newton's method on the multipliers.

    min 1/2 ||z - a||^2   s.t.  A z <= b,  E z = e,  0 <= z <= u

has ``z = clip(a - G'y, 0, u)`` with ``G = [A; E]`` and multipliers ``y`` that minimize the piecewise quadratic

    theta(y) = max_{0 <= z <= u} (a - G'y)'z - 1/2 ||z||^2 + g'y,    y >= 0 on the inequalities,    gradient g - G z

A projected semismooth Newton method with Armijo steps (Bertsekas 1982; Qi and Sun 1993) solves the small dense system
``G D G'`` of each example, ``D`` the parts strictly between their bounds; as theta is piecewise quadratic it ends after
finitely many steps: seven to nine on three-way matchings, two to three from warm multipliers. A last correction within
the active rows makes ``z`` feasible to rounding, whatever the size of ``a``. Accepted is a point whose duality gap

    y'(g - G z) + sum 1/2 (z - z(y))^2 + (z - z(y)) (z(y) - a + G'y)

(three sums of terms >= 0, so without cancellation) is at most ``tol^2 / 2`` or at rounding level.

All examples of similar size go through NumPy's batched products together: cost per example and step ``2 m^2 n + m^3/3``
operations for ``m`` rows and ``n`` parts. Examples of more than :data:`MOST_ENTRIES` entries ``m n`` are left to the
caller, marked INEXACT.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from maxmargin._sparse import sp
from maxmargin.structures._arrays import offsets_of, ranges
from maxmargin.structures.base import FloatArray, IntArray, PointStatus

STEPS = 60
"""Newton steps before an example is given up."""

MOST_ENTRIES = 1 << 25
"""Entries ``rows x parts`` of one example that are handled as a dense matrix (256 MB)."""

NEAR, FARTHER, STEPS_ON_THE_WAY = 10.0, 8.0, 10
"""Points farther than NEAR are approached by factors of FARTHER, with STEPS_ON_THE_WAY Newton steps each."""

_CHUNK = 1 << 20
"""Entries that go through NumPy together."""

_FEASIBLE = 1e-12

_Program: TypeAlias = "tuple[sp.csr_array, FloatArray, sp.csr_array, FloatArray, FloatArray]"


class _Chunk:
    """Examples padded to one size: ``G (k, m, n)`` with rows of length 1, ``g (k, m)``, and their bounds ``(k, n)``."""

    def __init__(self, examples: IntArray, programs: list[_Program], m: int, n: int) -> None:
        k = len(examples)
        self.examples = examples
        self.rows, self.parts = np.zeros((k, m), dtype=bool), np.zeros((k, n), dtype=bool)
        self.G, self.g, self.norms = np.zeros((k, m, n)), np.zeros((k, m)), np.ones((k, m))
        self.equation, self.upper = np.zeros((k, m), dtype=bool), np.zeros((k, n))
        for i, example in enumerate(examples):
            A, b, E, e, u = programs[example]
            m_i, n_i = len(b) + len(e), len(u)
            self.rows[i, :m_i] = self.parts[i, :n_i] = True
            self.G[i, : len(b), :n_i], self.G[i, len(b) : m_i, :n_i] = A.toarray(), E.toarray()
            self.g[i, :m_i] = np.concatenate([b, e])
            self.equation[i, len(b) : m_i] = True
            self.upper[i, :n_i] = u
        length = np.sqrt((self.G**2).sum(axis=2))
        self.norms[length > 0] = length[length > 0]
        self.G /= self.norms[:, :, None]
        self.g /= self.norms
        # A row of zeros says nothing (the program was found feasible).
        idle = length == 0
        self.g[idle], self.equation[idle] = 0.0, False


class NewtonProjection:
    """Projections onto the programs ``(A, b, E, e, upper)`` of a batch."""

    def __init__(self, programs: list[_Program]) -> None:
        sizes = np.array([(len(b) + len(e), len(u)) for _, b, _, e, u in programs], dtype=np.int64).reshape(-1, 2)
        self.row_offsets = offsets_of(sizes[:, 0])
        self.part_offsets = offsets_of(sizes[:, 1])
        self.chunks: list[_Chunk] = []
        small = np.flatnonzero(sizes[:, 0] * sizes[:, 1] <= MOST_ENTRIES)
        order = small[np.lexsort((sizes[small, 1], sizes[small, 0]))]
        first = 0
        while first < len(order):
            last = first + 1
            while last < len(order):
                m, n = sizes[order[first : last + 1]].max(axis=0)
                # Padding may double the work of the smallest example, no more.
                if (last + 1 - first) * m * n > _CHUNK or m * n > 2 * sizes[order[first]].prod() + 64:
                    break
                last += 1
            m, n = sizes[order[first:last]].max(axis=0)
            self.chunks.append(_Chunk(order[first:last], programs, int(m), int(n)))
            first = last

    def project(self, point: FloatArray, tol: float, warm: Any) -> tuple[FloatArray, npt.NDArray[np.int8], FloatArray]:
        """``z``, a status per example, and the multipliers, one per row, for the next call."""
        n_rows, n = int(self.row_offsets[-1]), len(self.row_offsets) - 1
        start = np.zeros(n_rows)
        if isinstance(warm, np.ndarray) and warm.shape == (n_rows,) and np.isfinite(warm).all():
            start = warm
        z, multipliers = np.zeros(len(point)), np.zeros(n_rows)
        status = np.full(n, PointStatus.INEXACT, dtype=np.int8)
        for chunk in self.chunks:
            shape = chunk.upper.shape
            a, y = np.zeros(shape), np.zeros(chunk.g.shape)
            parts, rows = (
                ranges(offsets[chunk.examples], offsets[chunk.examples + 1])
                for offsets in (self.part_offsets, self.row_offsets)
            )
            a[chunk.parts], y[chunk.rows] = point[parts], start[rows]
            bad = ~np.isfinite(a).all(axis=1)
            a[bad] = 0.0
            with np.errstate(all="ignore"), _blas().limit(limits=1, user_api="blas"):
                found, y, exact = _solve(chunk, a, y * chunk.norms, tol)
            found[bad] = 0.0
            z[parts], multipliers[rows] = found[chunk.parts], (y / chunk.norms)[chunk.rows]
            status[chunk.examples] = np.where(
                bad, PointStatus.NONFINITE, np.where(exact, PointStatus.OK, PointStatus.INEXACT)
            )
        lost = np.flatnonzero(status == PointStatus.INEXACT)
        for i in lost:  # those without a dense matrix still need a check of their numbers
            if not np.isfinite(point[self.part_offsets[i] : self.part_offsets[i + 1]]).all():
                status[i] = PointStatus.NONFINITE
        return z, status, multipliers


@cache
def _blas() -> Any:
    """Handle of the BLAS's threads: for matrices this small they cost more than they give, and change the last bits."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _image(G: FloatArray, z: FloatArray) -> FloatArray:
    return np.asarray((G @ z[:, :, None])[:, :, 0])


def _pull(G: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray((y[:, None, :] @ G)[:, 0, :])


class _State:
    """Multipliers and what follows from them, for some examples of a chunk."""

    def __init__(self, G: FloatArray, g: FloatArray, equation: Any, upper: FloatArray, a: FloatArray, y: FloatArray):
        self.y = np.where(equation, y, np.maximum(y, 0.0))
        self.x = a - _pull(G, self.y)
        self.z = np.clip(self.x, 0.0, upper)
        self.slack = g - _image(G, self.z)
        self.residual = np.abs(np.where(equation, self.slack, np.minimum(self.y, self.slack))).max(axis=1, initial=0.0)
        self.theta = (self.x * self.z - 0.5 * self.z**2).sum(axis=1) + (g * self.y).sum(axis=1)


def _solve(
    chunk: _Chunk, a: FloatArray, y: FloatArray, tol: float
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Points, multipliers, and whether each point is as near as asked."""
    k = len(a)
    z, exact = np.zeros_like(a), np.zeros(k, dtype=bool)
    scale = np.maximum(1.0, np.abs(a).max(axis=1, initial=0.0))
    y = _approach(chunk, a, y, scale)
    left = np.arange(k)
    for step in range(STEPS + 1):
        G, g, equation, upper = chunk.G[left], chunk.g[left], chunk.equation[left], chunk.upper[left]
        state = _State(G, g, equation, upper, a[left], y[left])
        y[left] = state.y
        done = state.residual <= 4e-15 * (scale[left] + np.abs(g).max(axis=1, initial=0.0))
        near = (state.residual <= 1e-6 * scale[left]) | (step == STEPS)
        if near.any():
            # The active rows may be the right ones before the multipliers are; the gap decides.
            at = np.flatnonzero(near)
            point, gap, broken = _finish(G[at], g[at], equation[at], upper[at], a[left[at]], y[left[at]])
            rounding = 1e-15 * scale[left[at]] * (1.0 + np.abs(point).sum(axis=1))
            good = (broken <= _FEASIBLE) & (gap <= np.maximum(0.5 * tol * tol, rounding))
            z[left[at[good]]], exact[left[at[good]]] = point[good], True
            done[at[good]] = True
        keep = ~done
        if step == STEPS or not keep.any():
            break
        left = left[keep]
        if done.any():
            G, g, equation, upper = G[keep], g[keep], equation[keep], upper[keep]
            state = _State(G, g, equation, upper, a[left], y[left])
        y[left] = _step(G, g, equation, upper, a[left], state, scale[left])
    return z, y, exact


def _approach(chunk: _Chunk, a: FloatArray, y: FloatArray, scale: FloatArray) -> FloatArray:
    """Multipliers to start from, by way of nearer points on the same rays.

    Far points make theta nearly piecewise linear and Newton's method slow. Each point starts from the multipliers of
    the one before, which grow about as the points do.
    """
    share, y = np.minimum(1.0, NEAR / scale), y.copy()
    y *= share[:, None]
    while (share < 1.0).any():
        left = np.flatnonzero(share < 1.0)
        for _ in range(STEPS_ON_THE_WAY):
            G, g, equation, upper = chunk.G[left], chunk.g[left], chunk.equation[left], chunk.upper[left]
            point = a[left] * share[left, None]
            state = _State(G, g, equation, upper, point, y[left])
            y[left] = _step(G, g, equation, upper, point, state, np.maximum(1.0, scale[left] * share[left]))
            left = left[state.residual > 1e-6]
            if not left.size:
                break
        following = np.minimum(1.0, FARTHER * share)
        y *= (following / share)[:, None]
        share = following
    return y


def _step(
    G: FloatArray, g: FloatArray, equation: Any, upper: FloatArray, a: FloatArray, state: _State, scale: FloatArray
) -> FloatArray:
    """One projected Newton step of every example: the next multipliers."""
    margin = np.minimum(state.residual, 1e-3 * scale)[:, None]
    held = ~equation & (state.y <= margin) & (state.slack > 0)
    free = (state.x > 0) & (state.x < upper)
    matrix = (G * free[:, None, :]) @ G.transpose(0, 2, 1)
    moving = (~held).astype(np.float64)
    matrix *= moving[:, :, None] * moving[:, None, :]
    # Shrinks with the residual: fast at the end, bounded steps where no part is free.
    damping = 1e-2 * np.minimum(1.0, state.residual) / scale + 1e-14
    index = np.arange(matrix.shape[1])
    matrix[:, index, index] += np.where(held, 1.0, damping[:, None])
    direction = -np.linalg.solve(matrix, np.where(held, state.y, state.slack)[:, :, None])[:, :, 0]
    size = np.ones(len(a))
    following, open_ = state.y.copy(), np.ones(len(a), dtype=bool)
    for _ in range(40):
        at = np.flatnonzero(open_)
        trial = _State(G[at], g[at], equation[at], upper[at], a[at], state.y[at] + size[at, None] * direction[at])
        promised = (state.slack[at] * (trial.y - state.y[at])).sum(axis=1)
        rounding = 1e-15 * (np.abs(state.theta[at]) + scale[at])
        enough = trial.theta <= state.theta[at] + 1e-4 * np.minimum(promised, 0.0) + rounding
        enough &= (promised <= 0) | (trial.residual <= 0.5 * state.residual[at])
        enough |= trial.residual <= 0.1 * state.residual[at]
        following[at[enough]] = trial.y[enough]
        open_[at[enough]] = False
        if not open_.any():
            break
        size[open_] *= 0.5
    return following


def _finish(
    G: FloatArray, g: FloatArray, equation: Any, upper: FloatArray, a: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Feasible points near those of the multipliers, their duality gaps, and by how much they break a constraint."""
    state = _State(G, g, equation, upper, a, y)
    z = state.z.copy()
    tight = equation | (state.y > 0)
    free = (state.x > 0) & (state.x < upper)
    pinned = np.where(tight[:, :, None] & free[:, None, :], G, 0.0)
    matrix = pinned @ pinned.transpose(0, 2, 1)
    index = np.arange(matrix.shape[1])
    matrix[:, index, index] += 1e-13
    for _ in range(3):  # the damping is undone by repetition
        off = np.where(tight, _image(G, z) - g, 0.0)
        z -= _pull(pinned, np.linalg.solve(matrix, off[:, :, None])[:, :, 0])
        z = np.clip(z, 0.0, upper)
    slack = g - _image(G, z)
    size = 1.0 + np.abs(g) + _image(np.abs(G), z)
    broken = (np.where(equation, np.abs(slack), np.maximum(-slack, 0.0)) / size).max(axis=1, initial=0.0)
    moved = z - state.z
    held = (state.y * np.where(equation, 0.0, np.maximum(slack, 0.0))).sum(axis=1)
    gap = held + (0.5 * moved**2 + np.maximum(moved * (state.z - state.x), 0.0)).sum(axis=1)
    return z, gap, broken
