"""Explicit lists of candidate outputs, of which one is chosen: re-ranking, choices among classes with features.

Example ``i`` has ``n_i`` candidates, its parts, and ``Z_i`` is the simplex ``{z >= 0, sum z = 1}``, whose vertices are
the candidates. Every method is a few passes over packed vectors, ``O(parts)``, except for ``k_best``, which sorts. The
projection finds the threshold ``t`` of ``z = max(0, point - t)`` by dropping parts that fall below it (Michelot 1986):
a handful of passes, as many as candidates at worst.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels
from maxmargin._sparse import sp
from maxmargin.structures._arrays import array_of, counts_of, example_numbers, offsets_of, one_per_example, vector
from maxmargin.structures.base import Block, FloatArray, IntArray, Labeling, Points, PointStatus, Polytope, Structure
from maxmargin.structures.sparse import SparsePoint


class Candidates(Structure):
    """A packed batch of lists with one block, ``candidates``.

    Args:
        sizes: number of candidates of each example, at least 1, shape ``(n_examples,)``.
    """

    name = "list of candidates"
    categorical = True
    marginals_unsupported = ""
    slack_relaxed = False

    def __init__(self, sizes: npt.ArrayLike) -> None:
        counts = counts_of(sizes, "sizes", least=-1)
        if (counts < 1).any():
            bad = int(np.flatnonzero(counts < 1)[0])
            raise ValueError(f"example {bad}: a list of {int(counts[bad])} candidates; give at least one, or remove it")
        self.blocks = (Block("candidates", offsets_of(counts)),)

    @property
    def states_per_variable(self) -> IntArray:
        """The candidates of an example are the states of one variable."""
        return self.sizes

    @cached_property
    def _owner(self) -> IntArray:
        """The example of every part."""
        return np.repeat(np.arange(self.n_examples), self.sizes)

    @property
    def _begin(self) -> IntArray:
        return self.blocks[0].offsets[:-1]

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """The packed 0/1 vector of the chosen candidates, counted from 0 in each list."""
        labels = one_per_example(labels, self.n_examples, "choices")
        for example, label in enumerate(labels):
            found = array_of(label, f"example {example}: the choice", "iu", "one whole number")
            if found.ndim:
                raise ValueError(f"example {example}: the choice must be one whole number, got shape {found.shape}")
            if not 0 <= found < self.sizes[example]:
                raise ValueError(
                    f"example {example}: choice {int(found)} is out of range for {int(self.sizes[example])} "
                    "candidates; count them from 0"
                )
        return SparsePoint.from_index(self, self._begin + np.array(labels, dtype=np.int64).reshape(-1))

    def decode(self, z: FloatArray) -> list[int]:
        """The number of the largest part of each list, the first of equal ones."""
        at, _ = self.first_largest(vector(z, self.n_parts, "z"))
        return [int(number) for number in at - self._begin]

    def first_largest(self, values: FloatArray) -> tuple[IntArray, FloatArray]:
        """Where in a packed vector the largest value of each example is, the first of equal ones, and that value."""
        if not self.n_examples:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        largest = np.maximum.reduceat(values, self._begin)
        hits = np.flatnonzero(values == largest[self._owner])
        first = np.full(self.n_examples, -1)
        first[self._owner[hits][::-1]] = hits[::-1]
        return np.where(first < 0, self._begin, first), largest

    def _finite(self, values: FloatArray, *, forbid: bool = False) -> npt.NDArray[np.bool_]:
        """Which examples have no NaN or infinity (``-inf`` may be allowed)."""
        bad = np.isnan(values) | (values == np.inf) if forbid else ~np.isfinite(values)
        return np.asarray(np.bincount(self._owner[bad], minlength=self.n_examples) == 0)

    def _points(self, z: FloatArray, value: FloatArray, fine: npt.NDArray[np.bool_]) -> Points:
        status = np.where(fine, PointStatus.OK, PointStatus.NONFINITE).astype(np.int8)
        return Points(np.where(fine[self._owner], z, 0.0), np.where(fine, value, np.nan), status)

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """The candidate of the largest score, the first of equal ones."""
        values = vector(scores, self.n_parts, "scores")
        fine = self._finite(values)
        at, largest = self.first_largest(np.where(fine[self._owner], values, 0.0))
        z = np.zeros(self.n_parts)
        z[at] = 1.0
        return self._points(z, largest, fine)

    def labels(self, scores: FloatArray) -> Labeling:
        """The candidate of the largest score by its number, without the packed vector."""
        values = vector(scores, self.n_parts, "scores")
        fine = self._finite(values)
        at, largest = self.first_largest(np.where(fine[self._owner], values, 0.0))
        status = np.where(fine, PointStatus.OK, PointStatus.NONFINITE).astype(np.int8)
        return Labeling((at - self._begin).tolist(), np.where(fine, largest, np.nan), status)

    def slack_argmax(
        self, scores: FloatArray, margin: FloatArray, costs: FloatArray, constants: FloatArray, *, warm: Any = None
    ) -> Points:
        """Every candidate is tried: exact."""
        values = vector(scores, self.n_parts, "scores")
        with np.errstate(invalid="ignore", over="ignore"):
            products = (costs + constants[self._owner]) * (margin[self._owner] + values)
        points = self.argmax(products)
        return replace(points, value=np.maximum(points.value, 0.0))

    def k_best(self, scores: FloatArray, k: int) -> list[Points]:
        """The ``k`` largest scores, by one sort."""
        most, values = _checks.integer("k", k, least=1), vector(scores, self.n_parts, "scores")
        fine = self._finite(values)
        order = np.lexsort((-np.where(fine[self._owner], values, 0.0), self._owner))
        ranks = []
        for rank in range(min(most, int(self.sizes.max(initial=1)))):
            there = self.sizes > rank
            at = order[(self._begin + rank)[there]]
            z, value = np.zeros(self.n_parts), np.full(self.n_examples, -np.inf)
            z[at], value[there] = 1.0, values[at]
            points = self._points(z, value, fine)
            points.status[~there & fine] = PointStatus.ABSENT
            ranks.append(points)
        return ranks

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection onto the simplexes, exact to rounding."""
        _checks.number("tol", tol, least=0)
        values = vector(point, self.n_parts, "point")
        fine = self._finite(values)
        safe = np.where(fine[self._owner], values, 0.0)
        _, largest = self.first_largest(safe)
        # After subtracting the largest, only parts in [-1, 0] can be positive in the projection.
        low = np.maximum(safe - largest[self._owner], -1.0)
        active = low > -1.0
        threshold = np.zeros(self.n_examples)
        for _ in range(int(self.sizes.max(initial=0)) + 1):
            total, count = self.by_example(low * active), self.by_example(active.astype(np.float64))
            threshold = (total - 1.0) / np.maximum(count, 1.0)
            left = active & (low > threshold[self._owner])
            if (left == active).all():
                break
            active = left
        z = np.maximum(low - threshold[self._owner], 0.0) * active
        z /= np.where(fine, self.by_example(z), 1.0)[self._owner]
        with np.errstate(over="ignore"):
            distance = 0.5 * self.by_example(np.square(z - safe))
        return self._points(z, distance, fine)

    def marginals(self, potentials: FloatArray) -> Points:
        """A softmax per list."""
        values = vector(potentials, self.n_parts, "potentials")
        fine = self._finite(values, forbid=True)
        safe = np.where(fine[self._owner], values, 0.0)
        _, largest = self.first_largest(safe)
        some = largest > -np.inf
        shift = np.where(some, largest, 0.0)
        p = np.exp(safe - shift[self._owner])
        total = np.where(some, self.by_example(p), 1.0)
        points = self._points(p / total[self._owner], np.where(some, shift + np.log(total), -np.inf), fine)
        points.status[fine & ~some] = PointStatus.ABSENT
        return points

    def oracle(self, ranks: int = 1) -> Any:
        """Compiled, the ``ranks`` best and slack rescaling too."""
        return _kernels.CandidatesOracle(self.blocks[0].offsets, _checks.integer("ranks", ranks, least=1))

    def polytope(self) -> Polytope:
        """``q = z``, one equation per list."""
        n = self.n_parts
        sums = sp.csr_array((np.ones(n), (self._owner, np.arange(n))), shape=(self.n_examples, n))
        return Polytope(sp.csr_array(sp.eye_array(n)), eq=sums, eq_rhs=np.ones(self.n_examples))

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order; an example may come several times."""
        return type(self)(self.sizes[example_numbers(indices, self.n_examples)])
