"""Rows restricted to the features that occur in them, so that methods need no memory for the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from maxmargin._sparse import sp
from maxmargin.structures.base import FloatArray, IntArray

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Occurring:
    """The columns of a matrix that have entries.

    Attributes:
        rows: the matrix with these columns alone, dense or CSR, float64.
        columns: their numbers in the whole matrix; None for all of them.
        n_features: columns of the whole matrix.
    """

    rows: Any
    columns: IntArray | None
    n_features: int

    @classmethod
    def of(cls, rows: Any) -> Occurring:
        """Restrict a dense array or a CSR matrix; dense ones keep all columns."""
        n = int(rows.shape[1])
        if isinstance(rows, np.ndarray):
            return cls(np.ascontiguousarray(rows, dtype=np.float64), None, n)
        count = int(rows.indptr[-1])
        index = rows.indices[:count]
        there = np.zeros(n, dtype=bool)
        there[index] = True
        columns = np.flatnonzero(there)
        number = np.cumsum(there, dtype=index.dtype) - index.dtype.type(1)
        local = sp.csr_array((rows.data[:count], number[index], rows.indptr), shape=(rows.shape[0], len(columns)))
        return cls(local, columns, n)

    def taken(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """The entries of a weight-sized vector that belong to the columns."""
        return values if self.columns is None else values[self.columns]

    def spread(self, weights: FloatArray) -> FloatArray:
        """Weights of the columns as weights of the whole matrix, 0 elsewhere."""
        if self.columns is None:
            return weights
        whole = np.zeros(self.n_features)
        whole[self.columns] = weights
        return whole
