"""Slack rescaling from an argmax alone, relaxed to the polytope: the fallback of every structure.

For a loss ``l`` and a score ``m`` linear in the parts it is ``max_z l(z) m(z)`` over the polytope. Pairs ``(l, m)``
form a polygon, and the product is quasi-concave where both are positive, so the maximum lies on the upper right of the
polygon's boundary, on an edge. Two corners hold it between them, at first those of largest ``m`` and of largest ``l``;
an argmax in the direction orthogonal to the line through them finds a corner beyond it, which takes the place of the
one or the other, or shows that the line is an edge. A handful of argmax calls on the examples that are not finished, at
most as many as the polygon has corners there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.structures._arrays import vector
from maxmargin.structures.base import FloatArray, IntArray, Points, PointStatus, Structure

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
        return corner, bound, np.ascontiguousarray(points.status, dtype=np.int8)

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

    @property
    def nbytes(self) -> int:
        """Of both vectors."""
        return self.costs.nbytes + self.z.nbytes

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
