"""Sparse matrices from users: checked before scipy converts them.

scipy's conversions trust index arrays, which anybody may have set: an index outside the matrix makes them write outside
their memory. The columns of CSR matrices are checked where they are used, all examples at once.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from maxmargin import _memory
from maxmargin._sparse import sp

_BROKEN = (AttributeError, IndexError, MemoryError, KeyError, OverflowError, TypeError, ValueError, ZeroDivisionError)


def to_csr(value: Any) -> Any:
    """A 2-D sparse matrix of real numbers as CSR of float64; ValueError that says what is wrong with its arrays."""
    _memory.require(8.0 * (value.shape[0] + 1), f"the rows of a matrix of shape {value.shape}", "give fewer rows")
    try:
        if value.format in ("csr", "csc", "bsr"):
            if value.indices.dtype.kind not in "iu":
                raise ValueError("indices must be integers")
            kind = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}[value.format]
            found = kind((value.data, value.indices, value.indptr), shape=value.shape)
            if value.format != "csr":
                found.check_format(full_check=True)
                if (found.indptr[1:] < found.indptr[:-1]).any():  # scipy does not look if the last one is 0
                    raise ValueError("indptr must not decrease")
            elif not 0 <= found.indptr[-1] <= min(len(found.indices), len(found.data)):
                raise ValueError("indptr does not fit indices and data")
        else:
            rows, columns, data = (np.asarray(array) for array in _triples(value))
            if len(data) and (
                rows.dtype.kind not in "iu" or columns.dtype.kind not in "iu" or data.dtype.kind in "OUS"
            ):
                raise ValueError("rows and columns must be integers, and entries numbers")
            integers = rows.astype(np.int64), columns.astype(np.int64)
            found = sp.coo_array((data, integers), shape=value.shape)
        return sp.csr_array(found).astype(np.float64, copy=False)
    except _BROKEN as error:
        raise ValueError(str(error)) from None


def _triples(value: Any) -> tuple[Any, Any, Any]:
    """Rows, columns and entries of a matrix in coordinate, diagonal, list or dictionary format."""
    if value.format == "coo":
        return value.row, value.col, value.data
    if value.format == "dia":
        if len(np.unique(value.offsets)) != len(value.data) or np.ndim(value.data) != 2:
            raise ValueError("data must have one row per offset")
        if not all(-value.shape[0] <= offset <= value.shape[1] for offset in value.offsets.tolist()):
            raise ValueError("offsets must be inside the matrix")
        found = value.tocoo()
        return found.row, found.col, found.data
    if value.format == "dok":
        keys = list(value.keys())
        if not all(isinstance(key, tuple) and len(key) == 2 for key in keys):
            raise ValueError("keys must be pairs")
        rows, columns = zip(*keys, strict=True) if keys else ((), ())
        return rows, columns, list(value.values())
    if value.format == "lil":
        if np.shape(value.rows) != (value.shape[0],) or [*map(len, value.rows)] != [*map(len, value.data)]:
            raise ValueError("rows and data must have one list per row, equally long")
        owners = np.repeat(np.arange(value.shape[0]), [*map(len, value.rows)])
        return owners, list(chain(*value.rows)), list(chain(*value.data))
    raise ValueError(f"unknown format {value.format!r}")
