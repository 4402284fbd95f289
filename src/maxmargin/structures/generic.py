"""Projection and k-best from an argmax alone: the fallback of every structure.

**Projection** onto the convex hull of the outputs, ``min 1/2 ||z - point||^2`` (the min-norm-point method of Wolfe
1976, for structures Niculae et al. 2018): an active set of vertices, exact after finitely many steps. Per round one
argmax of ``point - z`` over all unfinished examples and ``O(s^2)`` work for the ``s`` vertices an example holds: at
most one more than the dimension of the face it ends on, so projecting points deep inside a large polytope is expensive
and points well outside are cheap. Stops when ``max_v (point - z)'(v - z) <= tol^2 / 2`` or rounding.

**k best** outputs (Lawler 1972; Murty 1968) of a structure with 0/1 variable parts: the cell of an output already
listed is split by forcing variable parts in or out, one argmax per new cell, all cells of a round in one batch. Up to
``k`` times the number of variable parts argmax calls per example, or ``k`` times the number of variables if these are
categorical.

**Slack rescaling**, relaxed: ``max_z l(z) m(z)`` over the polytope, for a loss ``l`` and a score ``m`` linear in the
parts. The points ``(l, m)`` form a polygon, the product is quasi-concave where both are positive, so the maximum lies
on the upper right of the polygon's boundary, on an edge. Two corners hold it between them, at first those of largest
``m`` and of largest ``l``; an argmax in the direction orthogonal to the line through them finds a corner beyond it,
which takes the place of the one or the other, or shows that the line is an edge. A handful of argmax calls on the
examples that are not finished, at most as many as the polygon has corners there.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _checks as checks
from maxmargin import _kernels, _threads
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


def open_hull(structure: Structure, tol: float, warm: Any, key: object) -> Any:
    """The kernel object of one projection; ``warm`` is used if it came from a batch with the same ``key``."""
    hull = _kernels.HullBatch(structure.sizes, checks.number("tol", tol, least=0))
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
        hull.absorb(layout, ids, target, corner, _codes(vertex.status), scores, done, threads)
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


def _codes(status: Any) -> Any:
    return np.ascontiguousarray(status, dtype=np.int8)


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


def k_best(structure: Structure, scores: FloatArray, k: int) -> list[Points]:
    """The ``k`` best outputs of every example, distinct in their 0/1 variable parts, by ``structure.argmax`` alone.

    Forcing a part adds or subtracts more than the spread of all scores of the example; values are always taken with the
    true scores. Variable parts must be those of the first block, and the other parts determined by them.
    """
    ranks = checks.integer("k", k, least=1)
    scores = vector(scores, structure.n_parts, "scores")
    n = structure.n_examples
    listed: list[Points] = []
    best = structure.argmax(scores)
    mine = [structure.parts_of([i]) for i in range(n)]
    sizes = np.diff(structure.blocks[0].offsets)
    big = _big(structure, scores)
    heaps: list[list[tuple[float, int, _Cell]]] = [[] for _ in range(n)]
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
                pending.extend((i, forced) for forced in _split(cell, structure.categorical))
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


def _big(structure: Structure, scores: FloatArray) -> FloatArray:
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


MOST_TURNS = 300
"""Argmax calls of :func:`slack_argmax` on one example."""


@dataclass
class _Corner:
    """One point of the polytope per example, with its loss and score."""

    z: FloatArray
    loss: FloatArray
    score: FloatArray

    def take(self, other: _Corner, chosen: Any, owners: IntArray) -> None:
        """The other's points in the chosen examples; ``owners`` has the example of each part."""
        if not chosen.any():
            return
        self.z = np.where(chosen[owners], other.z, self.z)
        self.loss = np.where(chosen, other.loss, self.loss)
        self.score = np.where(chosen, other.score, self.score)

    def select(self, left: IntArray, within: IntArray) -> _Corner:
        return _Corner(self.z[within], self.loss[left], self.score[left])


@dataclass
class _Products:
    """``loss(z) score(z)`` of every example of a batch, in directions ``a loss + b score``."""

    structure: Structure
    scores: FloatArray
    margin: FloatArray
    costs: FloatArray
    constants: FloatArray

    def __post_init__(self) -> None:
        numbers = np.arange(self.structure.n_examples, dtype=np.float64)
        self.owners = self.structure.to_parts(numbers).astype(np.int64)
        forbidden = self.scores == -np.inf
        self.forbidden = forbidden if forbidden.any() else None
        self.finite = np.where(forbidden, 0.0, self.scores) if forbidden.any() else self.scores

    def select(self, left: IntArray, within: IntArray) -> _Products:
        return _Products(
            self.structure.select(left),
            self.scores[within],
            self.margin[left],
            self.costs[within],
            self.constants[left],
        )

    def corner(self, a: FloatArray, b: FloatArray) -> tuple[_Corner, FloatArray, Any]:
        """The argmax of ``a loss + b score``; its value or an upper bound of it, and its status."""
        asked = a[self.owners] * self.costs
        asked += b[self.owners] * self.finite
        if self.forbidden is not None:
            asked[self.forbidden] = -np.inf
        points = self.structure.argmax(asked)
        corner = self.at(vector(points.z, self.structure.n_parts, "the argmax's z"))
        bound = a * corner.loss + b * corner.score
        inexact = points.status == PointStatus.INEXACT
        bound[inexact] = np.maximum(bound, points.value + a * self.constants + b * self.margin)[inexact]
        return corner, bound, _codes(points.status)

    def at(self, z: FloatArray) -> _Corner:
        """A point with its loss and score."""
        loss = np.maximum(self.structure.by_example(self.costs * z) + self.constants, 0.0)
        return _Corner(z, loss, self.structure.by_example(self.finite * z) + self.margin)


def slack_argmax(
    structure: Structure,
    scores: FloatArray,
    margin: FloatArray,
    costs: FloatArray,
    constants: FloatArray,
    *,
    warm: Any = None,
) -> Points:
    """``max_{z in Z_i} (costs'z + constants) (margin + scores'z)`` of every example, by ``structure.argmax`` alone.

    ``z`` is a mix of two vertices. Where no product is positive the value is 0, at the point of the largest score. An
    argmax that is INEXACT makes the status INEXACT and, if its values are bounds, the value a bound. ``warm`` spares
    the argmax of the costs alone where they are those of the call before.
    """
    n = structure.n_examples
    scores, costs = vector(scores, structure.n_parts, "scores"), vector(costs, structure.n_parts, "costs")
    margin, constants = vector(margin, n, "margin"), vector(constants, n, "constants")
    with np.errstate(over="ignore", invalid="ignore"):
        search = _SlackSearch(_Products(structure, scores, margin, costs, constants), warm)
        for turn in range(MOST_TURNS):
            if not search.ids.size:
                break
            search.turn(last=turn + 1 == MOST_TURNS)
    return search.result()


class _SlackSearch:
    """The state of :func:`slack_argmax`: answers of the finished examples, two corners of each of the others."""

    def __init__(self, products: _Products, warm: Any) -> None:
        self.structure = structure = products.structure
        n = structure.n_examples
        self.z, self.value = np.zeros(structure.n_parts), np.zeros(n)
        self.high, most_score, of_high = products.corner(np.zeros(n), np.ones(n))
        self.widest: _Widest | None = None
        if isinstance(warm, _Widest) and warm.fits(products):
            self.wide, of_wide = products.at(warm.z), np.zeros(n, dtype=np.int8)
            most_loss, self.widest = self.wide.loss, warm
        else:
            self.wide, most_loss, of_wide = products.corner(np.ones(n), np.zeros(n))
            known = products.forbidden is None and (of_wide == PointStatus.OK).all()
            self.widest = _Widest(structure, products.costs, self.wide.z) if known else None
        self.status = np.maximum(of_high, of_wide)
        size = self.high.loss + self.wide.loss + np.abs(self.high.score) + np.abs(self.wide.score)
        fine = np.isfinite(size + products.margin + products.constants)
        self.status[(self.status <= PointStatus.INEXACT) & ~fine] = PointStatus.NONFINITE
        # The product is at most that of both maxima, and V^2 / (4 a b) where a loss + b score <= V.
        self.bound = np.maximum(most_score, 0.0) * np.maximum(most_loss, 0.0)
        self.products, self.ids = products, np.arange(n)
        self._go_on_with(np.flatnonzero(self.status <= PointStatus.INEXACT))

    def _go_on_with(self, left: IntArray) -> None:
        if left.size == len(self.ids):
            return
        self.ids = self.ids[left]
        if left.size:
            within = self.products.structure.parts_of(left)
            self.products = self.products.select(left, within)
            self.high, self.wide = self.high.select(left, within), self.wide.select(left, within)

    def turn(self, *, last: bool) -> None:
        """One argmax call for the examples that are not finished."""
        high, wide, ids = self.high, self.wide, self.ids
        done, a, b = _direction(high, wide)
        corner, most, found = self.products.corner(a, b)
        failed = ~done & (found > PointStatus.INEXACT)
        self.status[ids] = np.maximum(self.status[ids], np.where(done, np.int8(0), found))
        cover = np.square(np.maximum(most, 0.0)) / (4.0 * a * b)
        self.bound[ids] = np.where(done | failed, self.bound[ids], np.fmin(self.bound[ids], cover))
        level = np.maximum(a * high.loss + b * high.score, a * wide.loss + b * wide.score)
        size = a * wide.loss + b * (np.abs(high.score) + np.abs(wide.score))
        done |= failed | ~(a * corner.loss + b * corner.score > level + 4e-15 * size)
        # The gradient (score, loss) of the product at the corner says on which side of it the maximum lies.
        right = ~done & (corner.score * b > a * corner.loss)
        high.take(corner, right, self.products.owners)
        wide.take(corner, ~done & ~right, self.products.owners)
        share, best = _best_mix(high, wide)
        done |= best >= self.bound[ids] * (1.0 - 1e-14)
        if last:
            self.status[ids[~done]] = np.maximum(self.status[ids[~done]], np.int8(PointStatus.INEXACT))
            done[:] = True
        chosen = np.flatnonzero(done)
        if chosen.size:
            batch = self.products.structure
            within = batch.parts_of(chosen)
            part = share[self.products.owners[within]]
            self.z[self.structure.parts_of(ids[chosen])] = (1.0 - part) * high.z[within] + part * wide.z[within]
            self.value[ids[chosen]] = best[chosen]
            self._go_on_with(np.flatnonzero(~done))

    def result(self) -> Points:
        bounded, none = self.status == PointStatus.INEXACT, self.status > PointStatus.INEXACT
        self.value[bounded] = np.maximum(self.value, self.bound)[bounded]
        self.value[none] = np.where(self.status == PointStatus.ABSENT, -np.inf, np.nan)[none]
        self.z[self.structure.to_parts(none.astype(np.float64)) > 0.0] = 0.0
        return Points(self.z, self.value, self.status, self.widest)


@dataclass(frozen=True, eq=False)
class _Widest:
    """Outputs of the largest loss, for the next call with the same costs."""

    structure: Structure
    costs: FloatArray
    z: FloatArray

    def fits(self, products: _Products) -> bool:
        if self.structure is not products.structure or products.forbidden is not None:
            return False
        return np.array_equal(self.costs, products.costs)


def _direction(high: _Corner, wide: _Corner) -> tuple[Any, FloatArray, FloatArray]:
    """Examples whose answer is known, and for the others the direction ``a, b`` (the larger is 1) to ask next.

    It is orthogonal to the line from ``high`` to ``wide``, but never beyond the product's gradients ``(score, loss)``
    at the two: the maximum between them has its gradient between theirs.
    """
    rise, run = high.score - wide.score, wide.loss - high.loss
    done = (rise <= 0.0) | (run <= 0.0) | (high.score <= 0.0) | (wide.loss <= 0.0)
    a, b = np.where(done, 1.0, rise), np.where(done, 1.0, run)
    steep = ~done & (a * high.loss > high.score * b)
    flat = ~done & ~steep & (a * wide.loss < wide.score * b)
    a = np.where(steep, high.score, np.where(flat, wide.score, a))
    b = np.where(steep, high.loss, np.where(flat, wide.loss, b))
    larger = np.maximum(a, b)
    return done, np.maximum(a / larger, 1e-300), np.maximum(b / larger, 1e-300)


def _best_mix(high: _Corner, wide: _Corner) -> tuple[FloatArray, FloatArray]:
    """The share of ``wide`` in the best mix of the two, and its product; share 0 where none is positive."""
    rise, run = high.score - wide.score, wide.loss - high.loss
    curved = (rise > 0.0) & (run > 0.0)
    slope = run * high.score - rise * high.loss
    share = np.divide(slope, 2.0 * rise * run, out=(slope > 0.0).astype(np.float64), where=curved)
    share = np.clip(share, 0.0, 1.0)
    product = np.maximum(high.loss + share * run, 0.0) * (high.score - share * rise)
    none = ~(product > 0.0)
    return np.where(none, 0.0, share), np.where(none, 0.0, product)
