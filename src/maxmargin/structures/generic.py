"""Projection and k-best from an argmax alone: the fallback of every structure.

**Projection** onto the convex hull of the outputs, ``min 1/2 ||z - point||^2`` (the min-norm-point method of Wolfe
1976, for structures Niculae et al. 2018): an active set of vertices, exact after finitely many steps. Per round one
argmax of ``point - z`` over all unfinished examples and ``O(s^2)`` work for the ``s`` vertices an example holds: at
most one more than the dimension of the face it ends on, so points deep inside a large polytope are dear and points
well outside are cheap. Stops when ``max_v (point - z)'(v - z) <= tol^2 / 2`` or rounding.

**k best** outputs (Lawler 1972; Murty 1968) of a structure with 0/1 decision parts: the cell of an output already
listed is split by forcing decision parts in or out, one argmax per new cell, all cells of a round in one batch. Up to
``k`` times the number of decision parts argmax calls per example, or ``k`` times the number of choices if exactly one
part of each is taken.
"""

from __future__ import annotations

import heapq
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _kernels, _threads
from maxmargin.structures._arrays import tolerance, vector
from maxmargin.structures.base import FloatArray, IntArray, Points, PointStatus, Structure

MOST_PARTS = 4_000_000
"""Parts of one batched argmax call of :func:`k_best`: larger rounds are cut, to bound memory."""

SHRINK = 0.7
"""The batch is cut down to the unfinished examples when no more than this share of it is unfinished."""


@dataclass(frozen=True)
class ActiveSets:
    """What a projection hands to the next one: the vertices held by every example, by non-zeros, and their weights."""

    key: object
    vertices: IntArray
    weights: FloatArray
    nonzeros: IntArray
    index: np.ndarray[Any, np.dtype[np.int32]]
    value: FloatArray

    @classmethod
    def of(cls, hull: Any, n_examples: int, key: object) -> ActiveSets:
        """Copy the active sets out of a kernel object."""
        n_vertices, n_nonzeros = hull.extent()
        sets = cls(
            key=key,
            vertices=np.empty(n_examples + 1, dtype=np.int64),
            weights=np.empty(n_vertices),
            nonzeros=np.empty(n_vertices + 1, dtype=np.int64),
            index=np.empty(n_nonzeros, dtype=np.int32),
            value=np.empty(n_nonzeros),
        )
        hull.save(*sets._arrays())
        return sets

    def _arrays(self) -> tuple[Any, ...]:
        return self.vertices, self.weights, self.nonzeros, self.index, self.value

    def load_into(self, hull: Any) -> None:
        """Let a fresh kernel object start from these active sets."""
        hull.load(*self._arrays())


def open_hull(structure: Structure, tol: float, warm: Any, key: object) -> Any:
    """The kernel object of one projection; ``warm`` is used if it came from a batch with the same ``key``."""
    hull = _kernels.HullBatch(structure.sizes, tolerance(tol))
    if isinstance(warm, ActiveSets) and (warm.key is key or (isinstance(key, tuple) and warm.key == key)):
        warm.load_into(hull)
    return hull


def _offsets(structure: Structure) -> IntArray:
    """Where the parts of every example lie in a packed vector: shape ``(n_blocks, n_examples + 1)``."""
    pairs = zip(structure.blocks, structure.starts, strict=False)
    return np.ascontiguousarray([block.offsets + start for block, start in pairs], dtype=np.int64)


def project(structure: Structure, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
    """Euclidean projection of every example onto the hull of its outputs, by ``structure.argmax`` alone.

    ``warm`` counts only if it came from a projection of the same ``structure`` object: vertices of another structure
    of the same size need not be outputs of this one.
    """
    point = vector(point, structure.n_parts, "point")
    threads = _threads.current()
    hull = open_hull(structure, tol, warm, structure)
    offsets = _offsets(structure)
    scores = np.empty(structure.n_parts)
    hull.begin(offsets, point, scores, threads)

    batch, ids, target, layout = structure, np.arange(structure.n_examples), point, offsets
    while ids.size:
        vertex = batch.argmax(scores)
        corner = vector(vertex.z, batch.n_parts, "the argmax's z")
        done = np.empty(ids.size, dtype=np.bool_)
        hull.absorb(layout, ids, target, corner, _codes(vertex.status), scores, done, threads)
        left = np.flatnonzero(~done)
        if left.size == 0:
            break
        if left.size <= SHRINK * ids.size:
            within = batch.parts_of(left)
            scores, target, ids = scores[within], target[within], ids[left]
            batch = structure.select(ids)
            layout = _offsets(batch)

    z, value = np.empty(structure.n_parts), np.empty(structure.n_examples)
    status = np.empty(structure.n_examples, dtype=np.int8)
    hull.write(offsets, point, z, value, status, threads)
    return Points(z, value, status, ActiveSets.of(hull, structure.n_examples, structure))


def _codes(status: Any) -> Any:
    return np.ascontiguousarray(status, dtype=np.int8)


def check_k(k: int) -> int:
    """``k`` as a positive int, or ValueError."""
    ranks = operator.index(k)
    if ranks < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    return ranks


@dataclass(frozen=True)
class _Cell:
    """Outputs that agree with ``forced`` (+1 in, -1 out, 0 free, per decision part), and the best of them."""

    forced: np.ndarray[Any, np.dtype[np.int8]]
    taken: np.ndarray[Any, np.dtype[np.bool_]]
    """Decision parts of the best output."""
    z: FloatArray
    """All its parts, packed for this example alone."""


def k_best(structure: Structure, scores: FloatArray, k: int) -> list[Points]:
    """The ``k`` best outputs of every example, distinct in their 0/1 decision parts, by ``structure.argmax`` alone.

    Forcing a part adds or subtracts more than the spread of all scores of the example; values are always taken with the
    true scores. Decision parts must be those of the first block, and the other parts determined by them.
    """
    ranks = check_k(k)
    scores = vector(scores, structure.n_parts, "scores")
    n = structure.n_examples
    listed: list[Points] = []
    best = structure.argmax(scores)
    offsets = _offsets(structure)
    mine = [np.concatenate([np.arange(row[i], row[i + 1]) for row in offsets]) for i in range(n)]
    sizes = np.diff(structure.blocks[0].offsets)
    big = _big(structure, scores)
    heaps: list[list[tuple[float, int, _Cell]]] = [[] for _ in range(n)]
    serial = 0
    exact = np.ones(n, dtype=bool)
    # What a rank says of an example that has no output of that rank.
    no_value, no_status = np.full(n, -np.inf), np.full(n, PointStatus.ABSENT, dtype=np.int8)
    for i in range(n):
        if best.status[i] in (PointStatus.NONFINITE, PointStatus.ABSENT):
            no_value[i], no_status[i] = best.value[i], best.status[i]
            continue
        exact[i] = best.status[i] == PointStatus.OK
        own = best.z[mine[i]]
        free = np.zeros(sizes[i], dtype=np.int8)
        heaps[i].append((-_value(scores[mine[i]], own), serial, _Cell(free, own[: sizes[i]] > 0.5, own)))
        serial += 1

    for rank in range(ranks):
        if rank and not any(heaps):
            break
        z, value, status = np.zeros(structure.n_parts), no_value.copy(), no_status.copy()
        pending: list[tuple[int, np.ndarray[Any, np.dtype[np.int8]]]] = []
        for i in range(n):
            if not heaps[i]:
                continue
            negative, _, cell = heapq.heappop(heaps[i])
            z[mine[i]] = cell.z
            value[i] = -negative
            status[i] = PointStatus.OK if exact[i] else PointStatus.INEXACT
            if rank + 1 < ranks:
                pending.extend((i, forced) for forced in _split(cell, structure.one_of_many))
        listed.append(Points(z, value, status))
        for chunk in _chunks(pending, mine):
            owners = np.array([i for i, _ in chunk], dtype=np.int64)
            forced = np.concatenate([rows for _, rows in chunk])
            batch = structure.select(owners)
            asked = scores[structure.parts_of(owners)]
            asked[: len(forced)] += np.repeat(big[owners], sizes[owners]) * forced
            found = batch.argmax(asked)
            within = _offsets(batch)
            taken = found.z[: len(forced)] > 0.5
            disobeyed = np.where(forced > 0, ~taken, (forced < 0) & taken)
            for j, (i, rows) in enumerate(chunk):
                first, last = within[0, j], within[0, j + 1]
                if found.status[j] in (PointStatus.NONFINITE, PointStatus.ABSENT) or disobeyed[first:last].any():
                    continue
                own = np.concatenate([found.z[row[j] : row[j + 1]] for row in within])
                exact[i] &= found.status[j] == PointStatus.OK
                heapq.heappush(
                    heaps[i], (-_value(scores[mine[i]], own), serial, _Cell(rows, taken[first:last].copy(), own))
                )
                serial += 1
    return listed


def _value(scores: FloatArray, z: FloatArray) -> float:
    """``scores'z`` where ``-inf`` scores of parts not taken do not count."""
    at = np.flatnonzero(z)
    return float(scores[at] @ z[at])


def _big(structure: Structure, scores: FloatArray) -> FloatArray:
    """Per example, more than the difference between the scores of any two outputs, and well above its rounding."""
    size = np.where(np.isfinite(scores), np.abs(scores), 0.0) * structure.part_bound
    spread = structure.by_example(size)
    return np.where(spread > 0.0, 1.25 * spread, 1.0)


def _split(cell: _Cell, one_of_many: bool) -> list[np.ndarray[Any, np.dtype[np.int8]]]:
    """Cells that together hold every output of ``cell`` but its best: agree with the best before a part, not in it.

    Where exactly one part of each choice is taken, another output must drop a part that the best has taken, so only
    those are run through.
    """
    free = cell.forced == 0
    order = np.flatnonzero(free & cell.taken) if one_of_many else np.flatnonzero(free)
    as_best = np.where(cell.taken, 1, -1).astype(np.int8)
    cells = []
    for j, part in enumerate(order):
        forced = cell.forced.copy()
        forced[order[:j]] = as_best[order[:j]]
        forced[part] = -as_best[part]
        cells.append(forced)
    return cells


def _chunks(pending: list[tuple[int, Any]], mine: list[IntArray]) -> list[list[tuple[int, Any]]]:
    """Cut a round into batches of at most MOST_PARTS parts (or one cell)."""
    chunks: list[list[tuple[int, Any]]] = []
    room = 0
    for entry in pending:
        need = len(mine[entry[0]])
        if need > room or not chunks:
            chunks.append([])
            room = max(MOST_PARTS, need)
        chunks[-1].append(entry)
        room -= need
    return chunks


def oracle(structure: Structure) -> Any:
    """A compiled view of single examples that calls back: batches of one example are made when first needed."""
    single: dict[int, Structure] = {}

    def find(example: int, scores: FloatArray, k: int) -> tuple[int, list[tuple[IntArray, FloatArray]]]:
        own = single.get(example)
        if own is None:
            own = single[example] = structure.select([example])
        ranks = [own.argmax(scores)] if k == 1 else own.k_best(scores, k)
        found = [rank for rank in ranks if rank.status[0] <= PointStatus.INEXACT]
        nonzeros = [np.flatnonzero(rank.z) for rank in found]
        return int(ranks[0].status[0]), [(at, rank.z[at]) for at, rank in zip(nonzeros, found, strict=True)]

    return _kernels.PythonOracle(find, structure.sizes)
