"""One row of features per part, and maps put side by side.

Cost per call: one pass over the matrix, see :mod:`maxmargin.features.rows`. The pair methods read the matrix once for
two vectors, which halves the memory traffic of a map that is bound by it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin.features.base import Features
from maxmargin.features.rows import Matrix, Rows, row_offsets
from maxmargin.structures._arrays import example_numbers, offsets_of, vector
from maxmargin.structures.base import FloatArray, IntArray


class PartFeatures(Features):
    """Features of the parts of one block: ``scores = sign * matrix @ w``.

    Args:
        matrix: shape ``(n_parts, d)``, one row per part: float64, C-contiguous or CSR with 32- or 64-bit indices.
            Kept, not copied; it must not change afterwards.
        offsets: shape ``(n_examples + 1,)``: example ``i`` has rows ``offsets[i]:offsets[i + 1]``.
        sign: a factor of all scores; -1 where a block's weights are penalties, such as the edges of a cut.
    """

    def __init__(self, matrix: Matrix | Rows, offsets: npt.ArrayLike, *, sign: float = 1.0) -> None:
        rows = matrix if isinstance(matrix, Rows) else Rows(matrix, "the feature matrix")
        self.rows, self.offsets, self.sign = rows, row_offsets(offsets, rows.n), _checks.number("sign", sign)
        self.n_weights, self.n_parts, self.n_examples = rows.d, rows.n, len(self.offsets) - 1

    def fingerprint_data(self) -> Iterable[Any]:
        """Matrix, offsets and sign."""
        return self.rows, self.offsets, self.sign

    def _signed(self, values: FloatArray) -> FloatArray:
        return values if self.sign == 1.0 else self.sign * values

    def write_scores(self, weights: FloatArray, out: FloatArray) -> None:
        """Write ``F'w`` into ``out``, a contiguous vector of length ``n_parts``."""
        self.rows.times(self._signed(vector(weights, self.n_weights, "weights")), 1, out)

    def write_adjoint(self, z: FloatArray, out: FloatArray) -> None:
        """Write ``F z`` into ``out``, a contiguous vector of length ``n_weights``."""
        self.rows.transpose_times(vector(z, self.n_parts, "z"), 1, out)
        if self.sign != 1.0:
            out *= self.sign

    def per_example(self, blocks: Sequence[IntArray]) -> Any:
        """The same rows, read by example."""
        if len(blocks) > 1:
            return super().per_example(blocks)
        return self.rows.per_example(self.offsets, sign=self.sign)

    def part_norms(self, order: float) -> FloatArray:
        """Norms of the matrix's rows."""
        return abs(self.sign) * self.rows.norms(order)

    def weight_norms(self, scale: FloatArray | None = None) -> FloatArray:
        """Norms of the matrix's columns."""
        given = None if scale is None else vector(scale, self.n_parts, "scale")
        return abs(self.sign) * self.rows.column_norms(given)

    def scores_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``scores`` of two weight vectors in one pass over the matrix."""
        first, second = (self._signed(vector(weights, self.n_weights, "weights")) for weights in (first, second))
        return self.rows.times_pair(first, second)

    def adjoint_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``adjoint`` of two packed vectors in one pass over the matrix."""
        first, second = (vector(z, self.n_parts, "z") for z in (first, second))
        sums = self.rows.transpose_times_pair(first, second)
        return self._signed(sums[0]), self._signed(sums[1])

    def select(self, indices: npt.ArrayLike) -> Self:
        """The features of the given examples, in that order; consecutive ones share memory."""
        chosen = example_numbers(indices, self.n_examples)
        offsets = offsets_of(np.diff(self.offsets)[chosen])
        return type(self)(self.rows.select(self.offsets, chosen), offsets, sign=self.sign)

    def part_rows(self, parts: IntArray) -> sp.csr_array:
        """Rows of the matrix."""
        return sp.csr_array(self.sign * self.rows.taken(parts))

    def to_sparse(self) -> sp.csr_array:
        """``sign * matrix``, shape ``(n_parts, n_weights)``."""
        return sp.csr_array(self.sign * self.rows.to_sparse())


class Joined(Features):
    """Several maps of the same examples, their weights one after the other."""

    def __init__(self, *features: Features) -> None:
        if not features:
            raise ValueError(f"{type(self).__name__} needs at least one map")
        self._join(features)

    def _join(self, features: tuple[Features, ...]) -> None:
        for member in features:
            if not isinstance(member, Features):
                raise ValueError(f"maps must be features, got {shown(member)}")
        counts = [member.n_examples for member in features]
        if len(set(counts)) > 1:
            raise ValueError(f"all maps must have the same number of examples, got {counts}")
        self.features, self.n_examples = features, counts[0]
        self.weight_starts = tuple(offsets_of([member.n_weights for member in features]).tolist())
        self.n_weights = self.weight_starts[-1]

    def fingerprint_data(self) -> Iterable[Any]:
        """The maps."""
        return self.features

    def _weights_of(self, weights: FloatArray) -> list[FloatArray]:
        checked = vector(weights, self.n_weights, "weights")
        return [checked[first:last] for first, last in pairwise(self.weight_starts)]

    @abstractmethod
    def _parts_of(self, z: FloatArray) -> list[FloatArray]:
        """The parts of each map in a packed vector."""

    def write_adjoint(self, z: FloatArray, out: FloatArray) -> None:
        """Write ``F z`` into ``out``, a contiguous vector of length ``n_weights``."""
        for member, part, target in zip(self.features, self._parts_of(z), self._weights_of(out), strict=True):
            member.write_adjoint(part, target)

    def weight_norms(self, scale: FloatArray | None = None) -> FloatArray:
        """Those of each map."""
        scales = [None] * len(self.features) if scale is None else self._parts_of(scale)
        return np.concatenate([m.weight_norms(part) for m, part in zip(self.features, scales, strict=True)])

    def _score_pairs(self, first: FloatArray, second: FloatArray) -> tuple[Sequence[FloatArray], ...]:
        """The scores of two weight vectors by each map, in one pass each."""
        parts = zip(self.features, self._weights_of(first), self._weights_of(second), strict=True)
        return tuple(zip(*(member.scores_pair(one, two) for member, one, two in parts), strict=True))

    def adjoint_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``adjoint`` of two packed vectors, each map in one pass."""
        parts = zip(self.features, self._parts_of(first), self._parts_of(second), strict=True)
        ones, twos = zip(*(member.adjoint_pair(one, two) for member, one, two in parts), strict=True)
        return np.concatenate(ones), np.concatenate(twos)

    def select(self, indices: npt.ArrayLike) -> Self:
        """Each map of the given examples, in that order; consecutive ones share memory."""
        other = type(self).__new__(type(self))
        other._join(tuple(member.select(indices) for member in self.features))
        return other


class Stacked(Joined):
    """The direct sum of several maps of the same examples: parts block after block, weights one after the other.

    A cut, for example, has node features with node weights, then edge features with ``sign=-1`` and edge weights.
    """

    def _join(self, features: tuple[Features, ...]) -> None:
        super()._join(features)
        self.part_starts = tuple(offsets_of([member.n_parts for member in features]).tolist())
        self.n_parts = self.part_starts[-1]

    @property
    def n_blocks(self) -> int:
        """Those of all maps."""
        return sum(member.n_blocks for member in self.features)

    def _parts_of(self, z: FloatArray) -> list[FloatArray]:
        checked = vector(z, self.n_parts, "z")
        return [checked[first:last] for first, last in pairwise(self.part_starts)]

    def write_scores(self, weights: FloatArray, out: FloatArray) -> None:
        """Write ``F'w`` into ``out``, a contiguous vector of length ``n_parts``."""
        for member, part, target in zip(self.features, self._weights_of(weights), self._parts_of(out), strict=True):
            member.write_scores(part, target)

    def per_example(self, blocks: Sequence[IntArray]) -> Any:
        """Each map with its own blocks."""
        if len(blocks) != self.n_blocks:
            return super().per_example(blocks)
        bounds = pairwise(offsets_of([member.n_blocks for member in self.features]).tolist())
        members = [
            member.per_example(blocks[first:last]) for member, (first, last) in zip(self.features, bounds, strict=True)
        ]
        return _kernels.joined_map(members, list(self.weight_starts[:-1]), self.n_weights, True)

    def part_norms(self, order: float) -> FloatArray:
        """Those of each map."""
        return np.concatenate([member.part_norms(order) for member in self.features])

    def scores_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``scores`` of two weight vectors, each map in one pass."""
        ones, twos = self._score_pairs(first, second)
        return np.concatenate(ones), np.concatenate(twos)

    def part_rows(self, parts: IntArray) -> sp.csr_array:
        """Those of each map, beside the weights of the others."""
        owner = np.searchsorted(self.part_starts, parts, side="right") - 1
        blocks = []
        for number, (member, first) in enumerate(zip(self.features, self.part_starts, strict=False)):
            own = np.flatnonzero(owner == number)
            blocks.append(spread_rows(member.part_rows(parts[own] - first), own, len(parts)))
        return sp.csr_array(sp.hstack(blocks, format="csr"))

    def to_sparse(self) -> sp.csr_array:
        """The block diagonal matrix, shape ``(n_parts, n_weights)``."""
        return sp.csr_array(sp.block_diag([member.to_sparse() for member in self.features], format="csr"))


class Beside(Joined):
    """Several maps of the same parts: scores add up, weights one after the other.

    The nodes of a cut, for example, may have features of their own and sums over the edges that meet in them.
    """

    def _join(self, features: tuple[Features, ...]) -> None:
        super()._join(features)
        self.n_parts = features[0].n_parts
        if any(member.n_parts != self.n_parts for member in features):
            raise ValueError("Beside needs maps of the same parts")

    @property
    def n_blocks(self) -> int:
        """Those of each map."""
        return self.features[0].n_blocks

    def _parts_of(self, z: FloatArray) -> list[FloatArray]:
        return [z] * len(self.features)

    def write_scores(self, weights: FloatArray, out: FloatArray) -> None:
        """Write ``F'w`` into ``out``, a contiguous vector of length ``n_parts``."""
        pieces = self._weights_of(weights)
        self.features[0].write_scores(pieces[0], out)
        for member, part in zip(self.features[1:], pieces[1:], strict=True):
            out += member.scores(part)

    def per_example(self, blocks: Sequence[IntArray]) -> Any:
        """Each map of the same blocks."""
        members = [member.per_example(blocks) for member in self.features]
        return _kernels.joined_map(members, list(self.weight_starts[:-1]), self.n_weights, False)

    def part_norms(self, order: float) -> FloatArray:
        """Those of a row across all maps."""
        norms = np.stack([member.part_norms(order) for member in self.features])
        return np.asarray(np.sqrt(np.square(norms).sum(axis=0)) if order == 2 else norms.max(axis=0))

    def scores_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``scores`` of two weight vectors, each map in one pass."""
        ones, twos = self._score_pairs(first, second)
        return sum(ones[1:], ones[0]), sum(twos[1:], twos[0])

    def part_rows(self, parts: IntArray) -> sp.csr_array:
        """Those of each map, side by side."""
        return sp.csr_array(sp.hstack([member.part_rows(parts) for member in self.features], format="csr"))

    def to_sparse(self) -> sp.csr_array:
        """The matrices side by side, shape ``(n_parts, n_weights)``."""
        return sp.csr_array(sp.hstack([member.to_sparse() for member in self.features], format="csr"))


def spread_rows(rows: sp.csr_array, places: IntArray, n: int) -> sp.csr_array:
    """A matrix of ``n`` rows with the given ones at rising ``places``, and nothing in the others."""
    counts = np.zeros(n, dtype=np.int64)
    counts[places] = np.diff(rows.indptr)
    return sp.csr_array((rows.data, rows.indices, offsets_of(counts)), shape=(n, rows.shape[1]))
