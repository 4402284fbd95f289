"""A sparse matrix by its non-zeros, for maps with weights of some pairs only.

Features of words are mostly indicators: values that are all 1 are not stored, and a non-zero takes 4 bytes instead of
12.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from maxmargin._sparse import sp
from maxmargin.features.rows import Matrix, Rows, entries_of, rows_of
from maxmargin.structures.base import FloatArray, IntArray

_NOTHING: FloatArray = np.zeros(0)


class Entries:
    """``X``, shape ``(n, d)``, in compressed rows; arrays of the right type are not copied.

    Args:
        starts: row ``r`` has the non-zeros ``starts[r]:starts[r + 1]``, shape ``(n + 1,)``.
        columns: the column of each non-zero.
        d: number of columns.
        values: of each non-zero; empty if all are 1.

    Whether indices are in range is checked by the kernels, in every call.
    """

    def __init__(
        self, starts: npt.NDArray[Any], columns: npt.NDArray[Any], d: int, values: FloatArray = _NOTHING
    ) -> None:
        for name, array in (("starts", starts), ("columns", columns)):
            if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
                raise ValueError(f"{name} of a sparse matrix must be a vector of integers")
        if not len(starts) or starts[0] or starts[-1] != len(columns) or (len(values) and len(values) != len(columns)):
            raise ValueError("starts, columns and values of a sparse matrix do not fit together")
        narrow = columns.dtype == np.int32 and len(columns) < 1 << 31
        width = np.int32 if narrow else np.int64
        self.starts = np.ascontiguousarray(starts, dtype=width)
        self.columns = np.ascontiguousarray(columns, dtype=width)
        self.values = np.ascontiguousarray(values)
        self.n, self.d = len(starts) - 1, int(d)

    @classmethod
    def of(cls, matrix: Given, n_features: int | None = None) -> Entries:
        """Of a CSR matrix, or of the places ``(starts, columns)`` of ones among ``n_features`` columns."""
        if isinstance(matrix, Entries):
            return matrix
        if isinstance(matrix, tuple):
            if n_features is None:
                raise ValueError(
                    "say how many columns a matrix has that is given by the places of its ones: n_features"
                )
            if len(matrix) != 2:
                raise ValueError(f"the places of ones must be a pair (starts, columns), got {len(matrix)} entries")
            return cls(np.asarray(matrix[0]), np.asarray(matrix[1]), n_features)
        rows = matrix if isinstance(matrix, Rows) else Rows(matrix, "the feature matrix")
        if rows.dense is not None:
            raise ValueError("weights for some pairs only need a CSR matrix; convert with scipy.sparse.csr_array")
        values = _NOTHING if bool(np.all(rows.values == 1.0)) else rows.values
        return cls(rows.starts, rows.columns, rows.d, values)

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], FloatArray]:
        """As kernels take them."""
        return self.starts, self.columns, self.values

    @cached_property
    def transposed(self) -> Entries:
        """``X'``; kept."""
        order = _by_column(self.columns)
        rows = np.repeat(np.arange(self.n, dtype=self.starts.dtype), np.diff(self.starts))
        starts = np.zeros(self.d + 1, dtype=self.starts.dtype)
        np.cumsum(np.bincount(self.columns, minlength=self.d)[: self.d], out=starts[1:])
        return Entries(starts, rows[order], self.n, self.values[order] if len(self.values) else _NOTHING)

    def select(self, offsets: IntArray, chosen: IntArray) -> Entries:
        """The rows of the chosen examples, where example ``i`` has rows ``offsets[i]:offsets[i + 1]``.

        Consecutive examples share memory with this matrix; others are copied.
        """
        starts, places = entries_of(self.starts, rows_of(offsets, chosen))
        values = self.values[places] if len(self.values) else _NOTHING
        return Entries(starts, self.columns[places], self.d, values)

    def fingerprint_data(self) -> tuple[Any, ...]:
        """The data that identifies the matrix in fingerprints."""
        return self.d, *self.arrays

    def to_sparse(self) -> sp.csr_array:
        """``X`` as a CSR array."""
        values = self.values if len(self.values) else np.ones(len(self.columns))
        return sp.csr_array((values, self.columns, self.starts), shape=(self.n, self.d))


def _by_column(columns: npt.NDArray[Any]) -> IntArray:
    """The places of the non-zeros by columns, in each column as they come.

    NumPy sorts as fast as scipy.sparse turns matrices, and taggers train without loading that.
    """
    if columns.dtype != np.int32:
        return np.argsort(columns, kind="stable")
    key = columns.astype(np.int64) << 32  # columns and places are all different, so that any way of sorting is stable
    key |= np.arange(len(columns))
    key.sort()
    key &= (1 << 32) - 1
    return key


Given: TypeAlias = "Matrix | Rows | Entries | tuple[npt.NDArray[Any], npt.NDArray[Any]]"
