"""Projection and k-best from an argmax alone: the fallbacks of every structure.

**Projection** onto the convex hull of the outputs, ``min 1/2 ||z - point||^2`` (the min-norm-point method of Wolfe
1976, for structures Niculae et al. 2018): an active set of vertices, exact after finitely many steps. Per round one
argmax of ``point - z`` over all unfinished examples and ``O(s^2)`` work for the ``s`` vertices an example holds: at
most one more than the dimension of the face it ends on, so projecting points deep inside a large polytope is expensive
and points well outside are cheap. Stops when ``max_v (point - z)'(v - z) <= tol^2 / 2`` or rounding.

**k best** outputs (Lawler 1972; Murty 1968) of a structure with 0/1 variable parts: the cell of an output already
listed is split by forcing variable parts in or out, one argmax per new cell, all cells of a round in one batch. Up to
``k`` times the number of variable parts argmax calls per example, or ``k`` times the number of variables if these are
categorical.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _checks, _kernels, _threads
from maxmargin.structures._arrays import pieces, vector
from maxmargin.structures.base import FloatArray, IntArray, Points, PointStatus, Structure

MOST_PARTS = 4_000_000
"""Parts of one batched argmax call of :func:`k_best`: larger rounds are cut, to bound memory."""

SHRINK = 0.7
"""The batch is reduced to its unfinished examples when these are at most this share of it."""


@dataclass(frozen=True)
class ActiveSets:
    """The warm start of the next projection: the vertices held by every example, by non-zeros, and their weights."""

    key: object
    arrays: tuple[Any, ...]

    @property
    def nbytes(self) -> int:
        """Of the arrays; it grows with the number of vertices that the projections needed."""
        return sum(array.nbytes for array in self.arrays)

    @classmethod
    def of(cls, hull: Any, n_examples: int, key: object) -> ActiveSets:
        """Copy the active sets out of a kernel object."""
        n_vertices, n_nonzeros = hull.extent()
        arrays = (
            np.empty(n_examples + 1, dtype=np.int64),  # where the vertices of each example begin
            np.empty(n_vertices),  # their weights
            np.empty(n_vertices + 1, dtype=np.int64),  # where the non-zeros of each vertex begin
            np.empty(n_nonzeros, dtype=np.int32),  # their parts
            np.empty(n_nonzeros),  # their values
        )
        hull.save(*arrays)
        return cls(key, arrays)


def bound(warm: Any, structure: Structure | None) -> Any:
    """A warm start for ``structure``, whose own it was before: the same batch, perhaps read again from a file.

    With None it refers to no structure any more, so that it can outlive the batch.
    """
    mine = isinstance(warm, ActiveSets) and not isinstance(warm.key, tuple)
    return ActiveSets(structure, warm.arrays) if mine else warm


def open_hull(structure: Structure, tol: float, warm: Any, key: object) -> Any:
    """The kernel object of one projection; ``warm`` is used if it came from a batch with the same ``key``."""
    hull = _kernels.HullBatch(structure.sizes, _checks.number("tol", tol, least=0))
    if isinstance(warm, ActiveSets) and (warm.key is key or (isinstance(key, tuple) and warm.key == key)):
        hull.load(*warm.arrays)
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
        codes = np.ascontiguousarray(vertex.status, dtype=np.int8)
        hull.absorb(layout, ids, target, corner, codes, scores, done, threads)
        left = np.flatnonzero(~done)
        if left.size == 0:
            break
        if left.size <= SHRINK * ids.size:
            within = batch.parts_of(left)
            scores, target, ids = scores[within], target[within], ids[left]
            batch = structure.select(ids)
            layout = _offsets(batch)

    outputs = structure._buffers()
    hull.write(offsets, point, *outputs, threads)
    return Points(*outputs, ActiveSets.of(hull, structure.n_examples, structure))


def project_in_kernel(structure: Structure, tol: float, warm: Any, key: object, kernel: Callable[..., None]) -> Points:
    """A projection whose active set is filled by ``kernel(hull, z, value, status, threads)``."""
    hull = open_hull(structure, tol, warm, key)
    outputs = structure._buffers()
    kernel(hull, *outputs, _threads.current())
    return Points(*outputs, ActiveSets.of(hull, structure.n_examples, key))


def ranked(z: FloatArray, value: FloatArray, status: np.ndarray[Any, np.dtype[np.int8]]) -> list[Points]:
    """The ranks that a kernel has filled, without those at the end that no example has."""
    # A rank that exists for one example comes after ranks that do; forbidden labels can leave none at the end.
    found = int((status <= PointStatus.INEXACT).any(axis=1).sum())
    return [Points(*rank) for rank in zip(z, value, status, strict=True)][: max(found, 1)]


@dataclass(frozen=True)
class _Cell:
    """Outputs that agree with ``forced`` (+1 in, -1 out, 0 free, per variable part), and the best of them."""

    forced: np.ndarray[Any, np.dtype[np.int8]]
    taken: np.ndarray[Any, np.dtype[np.bool_]]
    """Variable parts of the best output."""
    z: FloatArray
    """All its parts, packed for this example alone."""


def k_best(structure: Structure, scores: FloatArray, k: int, kinds: IntArray | None = None) -> list[Points]:
    """The ``k`` best outputs of every example, distinct in their 0/1 variable parts, by ``structure.argmax`` alone.

    With ``kinds``, a number for each part of categorical variables, distinct in the kinds of the states that variables
    take: the best output of each. Forcing a part adds or subtracts more than the spread of all scores of the example;
    values are always taken with the true scores. Variable parts must be those of the first block, and the other parts
    determined by them.
    """
    ranks = _checks.integer("k", k, least=1)
    scores = vector(scores, structure.n_parts, "scores")
    n = structure.n_examples
    # Each part of a variable is chosen or not, so that no example has more than 2^parts outputs.
    structure._require_memory(min(ranks, 2 ** min(int(np.diff(structure.blocks[0].offsets).max(initial=0)), 62)))
    listed: list[Points] = []
    best = structure.argmax(scores)
    mine = [structure.parts_of([i]) for i in range(n)]
    sizes = np.diff(structure.blocks[0].offsets)
    big = spread_of(structure, scores)
    heaps: list[list[tuple[float, int, _Cell]]] = [[] for _ in range(n)]
    owner = np.repeat(np.arange(len(structure.n_states)), structure.n_states)
    serial = 0
    exact = np.ones(n, dtype=bool)
    # Value and status of an example at ranks that it does not have.
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
                first, last = structure.blocks[0].offsets[i : i + 2]
                split = (
                    _split(cell, structure.categorical)
                    if kinds is None
                    else _split_kinds(cell, owner[first:last], kinds[first:last])
                )
                pending.extend((i, forced) for forced in split)
        listed.append(Points(z, value, status))
        for chosen in pieces(np.array([len(mine[i]) for i, _ in pending], dtype=np.int64), MOST_PARTS):
            chunk = [pending[j] for j in chosen]
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


def spread_of(structure: Structure, scores: FloatArray) -> FloatArray:
    """Per example, more than the difference between the scores of any two outputs, and well above its rounding."""
    size = np.where(np.isfinite(scores), np.abs(scores), 0.0) * structure.part_bound
    spread = structure.by_example(size)
    return np.where(spread > 0.0, 1.25 * spread, 1.0)


def _split(cell: _Cell, categorical: bool) -> list[np.ndarray[Any, np.dtype[np.int8]]]:
    """Cells that together hold every output of ``cell`` but its best: agree with the best before a part, not in it.

    Another output of categorical variables must drop a part that the best has taken, so only those are tried.
    """
    free = cell.forced == 0
    order = np.flatnonzero(free & cell.taken) if categorical else np.flatnonzero(free)
    as_best = np.where(cell.taken, 1, -1).astype(np.int8)
    cells = []
    for j, part in enumerate(order):
        forced = cell.forced.copy()
        forced[order[:j]] = as_best[order[:j]]
        forced[part] = -as_best[part]
        cells.append(forced)
    return cells


def _split_kinds(cell: _Cell, owner: IntArray, kinds: IntArray) -> list[np.ndarray[Any, np.dtype[np.int8]]]:
    """As :func:`_split`, where agreeing is to take a state of the same kind; ``owner``: the variable of each part."""
    forced, cells = cell.forced.copy(), []
    for part in np.flatnonzero(cell.taken):
        same = (owner == owner[part]) & (kinds == kinds[part])
        rivals = (owner == owner[part]) & ~same
        if (forced[rivals] < 0).all():
            continue  # no other kind is left
        other = forced.copy()
        other[same] = -1
        cells.append(other)
        forced[rivals] = -1
    return cells


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
