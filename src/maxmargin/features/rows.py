"""A tall matrix, dense or sparse, and its threaded products with a few columns: the base of all feature maps.

Cost of a product with ``k`` columns: one pass over the matrix, ``2 n d k`` or ``2 nnz k`` operations. The adjoint of a
sparse matrix whose sums ``d k`` fit in cache (:data:`SCATTER_LIMIT`) scatters rows into at most 32 such sums; a larger
one goes over a transposed copy, made at the first adjoint and kept: as much memory again as the matrix itself.
Results have the same bits for any number of threads.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _memory, _threads
from maxmargin._sparse import sp
from maxmargin._vectors import rises
from maxmargin.structures._arrays import integers, offsets_of, pieces, ranges
from maxmargin.structures.base import FloatArray, IntArray

Matrix: TypeAlias = "FloatArray | sp.csr_array | sp.csr_matrix"

SCATTER_LIMIT = 1 << 16
"""Largest ``d k`` (numbers) for which a sparse adjoint scatters: half a megabyte of sums, within second-level cache."""

_ENTRIES = 1 << 18
"""Number of non-zeros that are copied at a time."""

_NOTHING: FloatArray = np.zeros(0)
_NO_INDEX = np.zeros(0, dtype=np.int32)
_NO_PARTS = np.zeros(0, dtype=np.int64)


def row_offsets(offsets: npt.ArrayLike, n_rows: int) -> IntArray:
    """Where the rows of each example begin, as an int64 vector; ValueError unless it rises from 0 to ``n_rows``."""
    bounds = integers(offsets, "offsets")
    rising = bounds.ndim == 1 and len(bounds) > 0 and rises(bounds)
    if not rising or bounds[0] != 0 or bounds[-1] != n_rows:
        raise ValueError(f"offsets must rise from 0 to the number of rows, {n_rows}")
    return bounds


def rows_of(offsets: IntArray, chosen: IntArray) -> slice | IntArray:
    """The rows of the chosen examples, where example ``i`` has rows ``offsets[i]:offsets[i + 1]``.

    A slice if the examples are consecutive: the rows taken then share memory.
    """
    if len(chosen) and np.all(np.diff(chosen) == 1):
        return slice(int(offsets[chosen[0]]), int(offsets[chosen[-1] + 1]))
    return ranges(offsets[chosen], offsets[chosen + 1])


def entries_of(starts: npt.NDArray[Any], rows: slice | IntArray) -> tuple[npt.NDArray[Any], slice | IntArray]:
    """Some rows of a sparse matrix: their starts, and which non-zeros are theirs."""
    if isinstance(rows, slice):
        own = starts[rows.start : rows.stop + 1]
        return own - own[0], slice(int(own[0]), int(own[-1]))
    first, last = starts[rows], starts[rows + 1]
    return offsets_of(np.subtract(last, first)), ranges(first, last)


class Rows:
    """``X``, shape ``(n, d)``: a C-contiguous float64 array or the arrays of a CSR matrix; neither is copied.

    ``times`` is ``X W``, ``transpose_times`` is ``X' Z``; ``W`` is ``(d, k)`` and ``Z`` is ``(n, k)``, flattened.
    """

    def __init__(self, matrix: Matrix, what: str) -> None:
        self.what = what
        self.dense: FloatArray | None = None
        if isinstance(matrix, np.ndarray):
            if matrix.ndim != 2:
                raise ValueError(f"{what} must be a two-dimensional array or a CSR matrix")
            if matrix.dtype != np.float64:
                raise ValueError(f"{what} must hold float64 values, got {matrix.dtype}; use .astype(np.float64)")
            self.n, self.d = matrix.shape
            if not matrix.flags.c_contiguous:
                _memory.require(8.0 * matrix.size, what, "give an array of its own, not a view of one number")
            self.dense = np.ascontiguousarray(matrix)
        elif getattr(matrix, "format", None) == "csr" and len(matrix.shape) == 2:
            _memory.require(8.0 * matrix.shape[1], f"a weight for each column of {what}", "give fewer columns")
            if matrix.data.dtype != np.float64:
                raise ValueError(f"{what} must hold float64 values, got {matrix.data.dtype}; use .astype(np.float64)")
            self.n, self.d = (int(size) for size in matrix.shape)
            try:
                matrix.check_format(full_check=True)  # kernels trust it
            except ValueError as error:
                raise ValueError(f"{what} is not a valid CSR matrix: {error}") from None
            self._set_sparse(matrix.indptr, matrix.indices, matrix.data)
        else:
            raise ValueError(
                f"{what} must be a dense or CSR matrix, got {type(matrix).__name__}; convert with .tocsr()"
            )

    def _set_sparse(self, starts: npt.NDArray[Any], columns: npt.NDArray[Any], values: FloatArray) -> None:
        same = starts.dtype == columns.dtype and starts.dtype in (np.int32, np.int64)
        wide = np.dtype(np.int64) if not same else starts.dtype
        # scipy lets the arrays be longer than the last start.
        count = int(starts[-1])
        self.starts = np.ascontiguousarray(starts, dtype=wide)
        self.columns = np.ascontiguousarray(columns[:count], dtype=wide)
        self.values = np.ascontiguousarray(values[:count])

    @cached_property
    def transposed(self) -> Rows:
        """``X'``, of a sparse matrix; kept."""
        return Rows(self.to_sparse().tocsc().T, self.what)

    def times(self, weights: FloatArray, k: int, out: FloatArray, initial: FloatArray = _NOTHING) -> None:
        """``out = X W``, shape ``(n, k)``, plus ``initial`` (``k`` numbers or none) in every row."""
        threads = _threads.current()
        if self.dense is not None:
            _kernels.linear_dense_forward(self.dense, weights, k, initial, out, threads)
        else:
            _kernels.linear_sparse_forward(
                self.starts, self.columns, self.values, self.d, weights, k, initial, out, threads
            )

    def transpose_times(self, z: FloatArray, k: int, out: FloatArray) -> None:
        """``out = X' Z``, shape ``(d, k)``."""
        threads = _threads.current()
        if self.dense is not None:
            _kernels.linear_dense_adjoint(self.dense, z, k, out, threads)
        elif self.d * k <= SCATTER_LIMIT:
            _kernels.linear_sparse_adjoint(self.starts, self.columns, self.values, self.d, z, k, out, threads)
        else:
            self.transposed.times(z, k, out)

    def times_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``X w`` for two vectors in one pass over ``X``."""
        if self.dense is None:
            return self._interleaved(np.stack([first, second], axis=1))
        outs = np.empty(self.n), np.empty(self.n)
        _kernels.linear_dense_forward_pair(self.dense, first, second, *outs, _threads.current())
        return outs

    def transpose_times_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``X' z`` for two vectors in one pass over ``X``."""
        threads = _threads.current()
        if self.dense is not None:
            out = np.empty((2, self.d))
            _kernels.linear_dense_adjoint_pair(self.dense, first, second, out, threads)
            return out[0], out[1]
        both = np.stack([first, second], axis=1)
        if self.d * 2 > SCATTER_LIMIT:
            return self.transposed._interleaved(both)
        sums = np.empty((self.d, 2))
        _kernels.linear_sparse_adjoint(self.starts, self.columns, self.values, self.d, both, 2, sums, threads)
        return np.ascontiguousarray(sums[:, 0]), np.ascontiguousarray(sums[:, 1])

    def _interleaved(self, both: FloatArray) -> tuple[FloatArray, FloatArray]:
        outs = np.empty(self.n), np.empty(self.n)
        _kernels.linear_sparse_forward_pair(
            self.starts, self.columns, self.values, self.d, both, *outs, _threads.current()
        )
        return outs

    def per_example(
        self,
        offsets: IntArray,
        m: int = 1,
        *,
        constant: bool = False,
        alike: bool = False,
        sign: float = 1.0,
        kept: IntArray | None = None,
        numbers: IntArray = _NO_PARTS,
    ) -> Any:
        """A compiled view of single examples, whose rows are ``offsets[i]:offsets[i + 1]``; see features/tied.py.

        Dense rows that are mostly zeros are read as sparse ones. ``numbers``: which row of the matrix each row is, or
        empty for their own.
        """
        starts, columns, values = _NO_INDEX, _NO_INDEX, _NOTHING
        if self.dense is None:
            starts, columns, values = self.starts, self.columns, self.values
        elif self.d and np.count_nonzero(self.dense) <= 0.5 * self.dense.size:
            sparse = self.to_sparse()
            starts, columns, values = sparse.indptr, sparse.indices, sparse.data
        else:
            values = self.dense.ravel()
        some = _NO_PARTS if kept is None else np.ascontiguousarray(kept, dtype=np.int64)
        return _kernels.rows_map(
            starts, columns, values, self.n, self.d, offsets, m, constant, alike, sign, some, kept is not None, numbers
        )

    def select(self, offsets: IntArray, chosen: IntArray) -> Rows:
        """The rows of the chosen examples, where example ``i`` has rows ``offsets[i]:offsets[i + 1]``.

        Consecutive examples share memory with this matrix; others are copied.
        """
        rows = rows_of(offsets, chosen)
        if self.dense is not None:
            return Rows(self.dense[rows], self.what)
        if isinstance(rows, slice):
            starts, entries = entries_of(self.starts, rows)
            columns, values = self.columns[entries], self.values[entries]
        else:
            starts = offsets_of(np.diff(self.starts)[rows])
            columns, values = self._copied(offsets, chosen, int(starts[-1]))
        narrow = starts[-1] <= np.iinfo(self.columns.dtype).max
        return self._with_sparse(starts.astype(self.columns.dtype) if narrow else starts, columns, values)

    def _copied(self, offsets: IntArray, chosen: IntArray, count: int) -> tuple[npt.NDArray[Any], FloatArray]:
        """The non-zeros of the chosen examples, ``count`` of them.

        Copied in pieces, as numbers of all of them would take several times the memory of the non-zeros.
        """
        first, last = self.starts[offsets[chosen]], self.starts[offsets[chosen + 1]]
        columns, values = np.empty(count, dtype=self.columns.dtype), np.empty(count)
        at = 0
        for some in pieces(np.subtract(last, first, dtype=np.int64), _ENTRIES):
            entries = ranges(first[some], last[some])
            to = slice(at, at + len(entries))
            np.take(self.columns, entries, out=columns[to], mode="clip")
            np.take(self.values, entries, out=values[to], mode="clip")
            at += len(entries)
        return columns, values

    def _with_sparse(self, starts: npt.NDArray[Any], columns: npt.NDArray[Any], values: FloatArray) -> Rows:
        other = Rows.__new__(Rows)
        other.what, other.dense, other.n, other.d = self.what, None, len(starts) - 1, self.d
        other._set_sparse(starts, columns, values)
        return other

    def taken(self, rows: IntArray) -> sp.csr_array:
        """Some rows as a CSR array; a row may come several times."""
        return self.select(np.arange(self.n + 1), rows).to_sparse()

    def fingerprint_data(self) -> tuple[Any, ...]:
        """The data that identifies the matrix in fingerprints."""
        return (self.dense,) if self.dense is not None else (self.d, self.starts, self.columns, self.values)

    def to_sparse(self) -> sp.csr_array:
        """``X`` as a CSR array."""
        if self.dense is not None:
            return sp.csr_array(self.dense)
        return sp.csr_array((self.values, self.columns, self.starts), shape=(self.n, self.d))

    def norms(self, order: float) -> FloatArray:
        """Euclidean norm (order 2) or largest absolute entry (order inf) of every row, shape ``(n,)``."""
        if _checks.number("order", order, least=2, infinite=True) not in (2, np.inf):
            raise ValueError(f"order must be 2 or infinity, got {order}")
        if self.dense is not None:
            if order == 2:
                return np.asarray(np.sqrt(np.einsum("ij,ij->i", self.dense, self.dense)))
            return np.asarray(np.abs(self.dense).max(axis=1, initial=0.0))
        over = np.add if order == 2 else np.maximum
        size = np.append(np.square(self.values) if order == 2 else np.abs(self.values), 0.0)
        rows = over.reduceat(size, self.starts[:-1]) if self.n else np.zeros(0)
        rows = np.where(np.diff(self.starts) > 0, rows, 0.0)
        return np.asarray(np.sqrt(rows) if order == 2 else rows)

    def column_norms(self, scale: FloatArray | None = None) -> FloatArray:
        """Euclidean norm of every column of ``diag(scale) X``, shape ``(d,)``; for scales ``(n, k)``, ``(d, k)``."""
        scale = np.ones(self.n) if scale is None else scale
        if self.dense is not None:
            squares = Rows(np.square(self.dense), self.what)
        else:
            squares = self._with_sparse(self.starts, self.columns, np.square(self.values))
        sums = np.empty((self.d, *scale.shape[1:]))
        if sums.size:
            squares.transpose_times(np.square(scale).ravel(), sums.size // self.d, sums.ravel())
        return np.sqrt(sums)
