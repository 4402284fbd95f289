"""Weights for some pairs of features and labels only, such as those that occur together in the training data.

Row ``x_r`` of an item gives its part ``c`` the score ``sum_f x_rf W[f, c]`` over those features ``f`` that have a
weight for ``c``: :class:`Support` says which do. With hundreds of thousands of features, each of which occurs with one
or two of the labels, weights of all pairs would mostly be unsupported by data, and take ten times the memory.

Cost per call: one addition per non-zero of the matrix and weight of its feature; with AVX-512 and up to 64 columns one
per non-zero and eight columns, with AVX2 and up to 32 one per non-zero and four. The adjoint goes over a transposed
copy, made at the first one and kept. A matrix of ones is held by its places alone, 4 bytes per non-zero. Results have
the same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _memory, _threads
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin.features.base import Features
from maxmargin.features.entries import Entries, Given
from maxmargin.features.rows import row_offsets
from maxmargin.structures._arrays import example_numbers, integers, offsets_of, ranges, vector
from maxmargin.structures.base import FloatArray, IntArray

_NOTHING: FloatArray = np.zeros(0)
_MOST = (1 << 31) - 1
"""Weights, features and columns are counted in 32 bits."""


@dataclass(frozen=True, eq=False)
class Support:
    """Which columns each feature has weights for.

    Attributes:
        starts: feature ``f`` has the weights ``starts[f]:starts[f + 1]``, shape ``(n_features + 1,)``, int32.
        columns: the column of each weight, rising within a feature, int32.
        m: number of columns.
    """

    starts: npt.NDArray[np.int32]
    columns: npt.NDArray[np.int32]
    m: int

    def __post_init__(self) -> None:
        _checks.integer("m", self.m, least=0, most=_MOST)
        for name in ("starts", "columns"):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != np.int32:
                raise ValueError(f"{name} of a support must be a vector of int32, got {shown(array)}")
        if not len(self.starts) or self.starts[-1] != len(self.columns):
            raise ValueError("the last of the starts of a support must be the number of its columns")

    @property
    def n_features(self) -> int:
        """Rows of the pattern."""
        return len(self.starts) - 1

    @property
    def n_weights(self) -> int:
        """Pairs in the pattern."""
        return len(self.columns)

    @cached_property
    def features(self) -> IntArray:
        """The feature of each weight, shape ``(n_weights,)``."""
        return np.repeat(np.arange(self.n_features), np.diff(self.starts))

    @cached_property
    def compiled(self) -> Any:
        """As kernels take it; ValueError if the arrays are not a pattern."""
        try:
            return _kernels.Support(self.starts, self.columns, self.m)
        except ValueError as error:
            raise ValueError(f"not a support: {error}") from None

    def __getstate__(self) -> dict[str, Any]:
        return {"starts": self.starts, "columns": self.columns, "m": self.m}

    @classmethod
    def of_pairs(cls, pairs: IntArray, n_features: int, m: int) -> Support:
        """Of numbers ``feature * m + column``, rising."""
        m, n_features = _checks.integer("m", m, least=1, most=_MOST), _sized(n_features)
        _check_count(pairs.size if isinstance(pairs, np.ndarray) else 0)
        pairs = integers(pairs, "pairs")
        if (
            pairs.ndim != 1
            or (np.diff(pairs) <= 0).any()
            or (pairs.size and not 0 <= pairs[0] <= pairs[-1] < n_features * m)
        ):
            raise ValueError(f"pairs must be numbers in 0..{n_features * m - 1}, rising, in one dimension")
        _check_count(len(pairs))
        starts = np.searchsorted(pairs, np.arange(n_features + 1, dtype=np.int64) * m).astype(np.int32)
        return cls(starts, (pairs % m).astype(np.int32), m)

    @classmethod
    def observed(cls, matrix: Given, columns: npt.ArrayLike, m: int, *, n_features: int | None = None) -> Support:
        """The pairs that occur: feature ``f`` and column ``columns[r]`` where row ``r`` has ``f``; -1 for no column.

        ``matrix`` has shape ``(n_rows, n_features)``, as for :class:`SupportedRows`, and ``columns`` ``(n_rows,)``.
        ``n_features`` is needed only where the matrix is given by its places.
        """
        entries, pairs = _pair_set(matrix, m, n_features)
        _add(pairs, entries, np.arange(entries.n), columns, m)
        return cls._of_set(pairs, entries.d, m)

    @classmethod
    def _of_set(cls, pairs: Any, n_features: int, m: int) -> Support:
        counts = np.empty(n_features, dtype=np.int64)
        pairs.count(counts)
        starts = offsets_of(counts)
        _check_count(int(starts[-1]))
        columns = np.empty(int(starts[-1]), dtype=np.int32)
        pairs.write(columns)
        return cls(starts.astype(np.int32), columns, m)

    @classmethod
    def empty(cls, m: int) -> Support:
        """No features yet."""
        return cls(np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.int32), m)

    @classmethod
    def full(cls, n_features: int, m: int) -> Support:
        """All pairs."""
        m, n_features = _checks.integer("m", m, least=1, most=_MOST), _sized(n_features)
        _check_count(n_features * m)
        return cls.of_pairs(np.arange(n_features * m, dtype=np.int64), n_features, m)

    def with_pairs(self, matrix: Given, rows: npt.ArrayLike, columns: npt.ArrayLike) -> Support:
        """These pairs and, for every ``i``, all features of row ``rows[i]`` of a matrix with column ``columns[i]``.

        ``matrix`` as for :class:`SupportedRows`; ``rows`` and ``columns`` have shape ``(k,)``, -1 for no column.
        """
        entries, pairs = _pair_set(matrix, self.m, self.n_features)
        if entries.d != self.n_features:
            raise ValueError(f"the matrix has {entries.d} columns, the support {self.n_features} features")
        pairs.add_support(self.compiled)
        _add(pairs, entries, rows, columns, self.m)
        return self._of_set(pairs, self.n_features, self.m)

    def union(self, other: Support) -> Support:
        """The pairs of either; the two have the same features and columns."""
        if (self.n_features, self.m) != (other.n_features, other.m):
            raise ValueError(
                f"the supports have {self.n_features} and {other.n_features} features, {self.m} and {other.m} columns; "
                "add features with extended()"
            )
        pairs = _kernels.PairSet(self.n_features, self.m)
        pairs.add_support(self.compiled)
        pairs.add_support(other.compiled)
        return self._of_set(pairs, self.n_features, self.m)

    def extended(self, n_features: int) -> Support:
        """With more features at the end, none of which has a weight."""
        if n_features < self.n_features:
            raise ValueError(f"the support has {self.n_features} features already, more than {n_features}")
        more = np.full(n_features - self.n_features, self.starts[-1], dtype=np.int32)
        return Support(np.concatenate([self.starts, more]), self.columns, self.m)

    def carried(self, weights: FloatArray, to: Support) -> FloatArray:
        """Weights of this pattern as those of a larger one: zero where that has pairs of its own."""
        given = vector(weights, self.n_weights, "weights")
        own, others = self.pairs(), to.pairs()
        at = np.searchsorted(others, own)
        if self.m != to.m or not np.array_equal(
            others[np.minimum(at, len(others) - 1)] if len(others) else others, own
        ):
            raise ValueError("some pairs of this support are not in the other one; make that by union()")
        out = np.zeros(to.n_weights)
        out[at] = given
        return out

    def pairs(self) -> IntArray:
        """Numbers ``feature * m + column`` of the weights, rising."""
        return self.features * self.m + self.columns


class GrowingSupport:
    """The pairs that occur in matrices that come one after the other, as :meth:`Support.observed` finds them in one.

    Args:
        n_features: columns of the matrices.
        m: number of columns that features have weights for.
    """

    def __init__(self, n_features: int, m: int) -> None:
        self._d, self._m = _sized(n_features), _checks.integer("m", m, least=1, most=_MOST)
        self._pairs = _kernels.PairSet(self._d, self._m)

    def add(self, matrix: Given, columns: npt.ArrayLike, rows: npt.ArrayLike | None = None) -> None:
        """All features of row ``rows[i]`` (None: of row ``i``) with column ``columns[i]``, -1 for none."""
        entries = Entries.of(matrix, self._d)
        if entries.d != self._d:
            raise ValueError(f"the matrix has {entries.d} columns, the support {self._d} features")
        _add(self._pairs, entries, np.arange(entries.n) if rows is None else rows, columns, self._m)

    def add_support(self, support: Support) -> None:
        """The pairs of another pattern."""
        self._pairs.add_support(support.compiled)

    def support(self) -> Support:
        """The pattern so far."""
        return Support._of_set(self._pairs, self._d, self._m)


def _check_count(count: int) -> None:
    remedy = "give fewer features, or a larger frequency cut-off"
    if count > _MOST:
        raise ValueError(f"{count:,} weights are too many; {remedy}")
    _memory.require(8.0 * count, f"{count:,} weights", remedy)


def _sized(n_features: Any) -> int:
    found = _checks.integer("n_features", n_features, least=0, most=_MOST)
    _memory.require(8.0 * found, f"the starts of {found:,} features", "give fewer features")
    return found


def _pair_set(matrix: Given, m: int, n_features: int | None) -> tuple[Entries, Any]:
    """The matrix, and an empty set of its features and ``m`` columns."""
    entries = Entries.of(matrix, None if n_features is None else _sized(n_features))
    return entries, _kernels.PairSet(_sized(entries.d), _checks.integer("m", m, least=1, most=_MOST))


def _add(pairs: Any, entries: Entries, rows: npt.ArrayLike, columns: npt.ArrayLike, m: int) -> None:
    """Add the features of rows with one column each, checked."""
    numbers, labels = integers(rows, "rows"), integers(columns, "columns")
    if numbers.ndim != 1 or numbers.shape != labels.shape:
        raise ValueError(f"give one column per row: {numbers.shape} rows, {labels.shape} columns")
    if numbers.size and (numbers.min() < 0 or numbers.max() >= entries.n):
        raise ValueError(f"rows must lie in 0..{entries.n - 1}")
    if labels.size and (labels.min() < -1 or labels.max() >= m):
        raise ValueError(f"columns must lie in 0..{m - 1}, or be -1 for none")
    pairs.add_rows(entries.starts, entries.columns, numbers, labels)


class SupportedRows(Features):
    """Features of one block of labeled items, with weights for the pairs of a :class:`Support`.

    Weights: with ``constant`` first ``m`` numbers, then one per pair. Parts: item-major, ``m`` per row.

    Args:
        matrix: shape ``(n_items, d)``, one row per item of all examples: CSR, or ``(starts, columns)`` for ones at
            ``columns[starts[r]:starts[r + 1]]`` of row ``r``.
        offsets: shape ``(n_examples + 1,)``: example ``i`` has rows ``offsets[i]:offsets[i + 1]``.
        support: which pairs have weights.
        constant: whether every row has ``m`` more weights that do not depend on it.
    """

    def __init__(self, matrix: Given, offsets: npt.ArrayLike, support: Support, *, constant: bool = False) -> None:
        if not isinstance(support, Support):
            raise ValueError(f"support must be a Support, got {shown(support)}")
        _checks.flag("constant", constant)
        rows = Entries.of(matrix, support.n_features)
        if rows.d != support.n_features:
            raise ValueError(f"the matrix has {rows.d} columns, the support {support.n_features} features")
        self.rows, self.offsets, self.support, self.constant = rows, row_offsets(offsets, rows.n), support, constant
        self.m, self.start = support.m, support.m if constant else 0
        self.n_weights = self.start + support.n_weights
        self.n_parts, self.n_examples = rows.n * self.m, len(self.offsets) - 1

    def fingerprint_data(self) -> Iterable[Any]:
        """Matrix, offsets and pattern."""
        return self.rows, self.offsets, self.support, self.constant

    def write_scores(self, weights: FloatArray, out: FloatArray) -> None:
        """Write ``F'w`` into ``out``, a contiguous vector of length ``n_parts``."""
        weights = vector(weights, self.n_weights, "weights")
        initial = weights[: self.start] if self.constant else _NOTHING
        _kernels.supported_forward(
            self.support.compiled, *self.rows.arrays, weights[self.start :], initial, out, _threads.current()
        )

    def write_adjoint(self, z: FloatArray, out: FloatArray) -> None:
        """Write ``F z`` into ``out``, a contiguous vector of length ``n_weights``."""
        self._write_sums(self.rows.transposed.arrays, vector(z, self.n_parts, "z"), out)

    def _write_sums(self, turned: tuple[Any, Any, FloatArray], z: FloatArray, out: FloatArray) -> None:
        threads = _threads.current()
        if self.constant:
            ones = np.ones(self.rows.n)
            _kernels.linear_dense_adjoint(z.reshape(-1, self.m), ones, 1, out[: self.start], threads)
        _kernels.supported_adjoint(self.support.compiled, *turned, z, out[self.start :], threads)

    def per_example(self, blocks: Sequence[IntArray]) -> Any:
        """The same rows, read by example."""
        return _kernels.supported_map(self.support.compiled, *self.rows.arrays, self.offsets, self.constant)

    def part_norms(self, order: float) -> FloatArray:
        """The norm over the features of the item's row that have a weight for the part, and a 1 for a constant."""
        norms = np.empty(self.n_parts)
        _kernels.supported_part_norms(self.support.compiled, *self.rows.arrays, order != 2, norms, _threads.current())
        if self.constant:
            return np.asarray(np.hypot(1.0, norms) if order == 2 else np.maximum(1.0, norms))
        return norms

    def weight_norms(self, scale: FloatArray | None = None) -> FloatArray:
        """Norms of the columns, each with the scales of the parts that see it."""
        given = np.ones(self.n_parts) if scale is None else vector(scale, self.n_parts, "scale")
        starts, columns, values = self.rows.transposed.arrays
        squares = np.empty(self.n_weights)
        self._write_sums((starts, columns, np.square(values)), np.square(given), squares)
        return np.sqrt(squares)

    def select(self, indices: npt.ArrayLike) -> Self:
        """The features of the given examples, in that order; consecutive ones share memory."""
        chosen = example_numbers(indices, self.n_examples)
        offsets = offsets_of(np.diff(self.offsets)[chosen])
        return type(self)(self.rows.select(self.offsets, chosen), offsets, self.support, constant=self.constant)

    def part_rows(self, parts: IntArray) -> sp.csr_array:
        """The features of their items that have a weight for their places."""
        item, place = np.divmod(parts, self.m)
        rows = self.rows.select(np.arange(self.rows.n + 1), item).to_sparse()
        first, last = self.support.starts[rows.indices], self.support.starts[rows.indices + 1]
        at, entry = ranges(first, last), np.repeat(np.arange(rows.nnz), last - first)
        part = np.repeat(np.arange(len(parts)), np.diff(rows.indptr))[entry]
        own = self.support.columns[at] == place[part]
        counts = np.bincount(part[own], minlength=len(parts))
        entries = rows.data[entry[own]], at[own], offsets_of(counts)
        varying = sp.csr_array(entries, shape=(len(parts), self.support.n_weights))
        return with_constant(varying, place, self.m) if self.constant else varying

    def to_sparse(self) -> sp.csr_array:
        """The explicit matrix, shape ``(n_parts, n_weights)``."""
        rows, support = self.rows.to_sparse(), self.support
        # Pairs of a feature in all m columns, then those that have a weight.
        all_pairs = sp.kron(rows, sp.eye_array(self.m), format="csc")
        matrix = sp.csr_array(all_pairs[:, support.pairs()])
        if not self.constant:
            return matrix
        repeated = sp.kron(np.ones((rows.shape[0], 1)), sp.eye_array(self.m))
        return sp.csr_array(sp.hstack([repeated, matrix], format="csr"))


def with_constant(rows: sp.csr_array, place: IntArray, m: int) -> sp.csr_array:
    """Rows behind ``m`` columns in which row ``r`` has a one at ``place[r]``."""
    n = len(place)
    ones = sp.csr_array((np.ones(n), place, np.arange(n + 1)), shape=(n, m))
    return sp.csr_array(sp.hstack([ones, rows], format="csr"))
