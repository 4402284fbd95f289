"""Sparse matrices from users: checked before scipy converts them.

scipy's conversions trust the index arrays they are given: a row or column number outside the matrix, or an array that
is too short, makes them write outside their memory. Arrays of a sparse matrix can be set at will, so each format is
checked first, in time linear in the stored entries. CSR needs no conversion: :func:`maxmargin.encoders.checks.stack`
checks the columns and row starts of all examples at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._sparse import sp


def to_csr(value: Any) -> Any:
    """A 2-D sparse matrix of real numbers as CSR of float64; ValueError that says what is wrong with its arrays."""
    check = _CHECKS.get(value.format)
    if check is None:
        raise ValueError(f"unknown format {value.format!r}")
    try:
        check(value)
        found = sp.csr_array(value)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError) as error:
        raise ValueError(str(error)) from None
    return found if found.dtype == np.float64 else found.astype(np.float64)


def _require(condition: object, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def _indices(array: Any, name: str, below: int | None = None) -> npt.NDArray[Any]:
    """A vector of integers, inside ``[0, below)`` if a bound is given."""
    found = np.asarray(array)
    _require(found.ndim == 1 and found.dtype.kind in "iu", f"{name} must be a vector of integers")
    if below is not None and found.size:
        _require(found.min() >= 0 and found.max() < below, f"{name} must be in 0 .. {below - 1}")
    return found


def _starts(array: Any, n: int, stored: int) -> int:
    """Check that ``n`` rows (columns, blocks) begin in order among the stored entries; how many of these are used."""
    starts = _indices(array, "indptr")
    _require(len(starts) == n + 1 and starts[0] == 0, f"indptr must have {n + 1} entries and begin with 0")
    _require((starts[1:] >= starts[:-1]).all(), "indptr must not fall")
    _require(starts[-1] <= stored, f"indptr ends at {starts[-1]}, but only {stored} entries are stored")
    return int(starts[-1])


def _csr(value: Any) -> None:
    """Enough for the arrays to be sliced; see the module's docstring."""
    stored = min(len(_indices(value.indices, "indices")), len(value.data))
    starts = _indices(value.indptr, "indptr")
    _require(len(starts) == value.shape[0] + 1, f"indptr must have {value.shape[0] + 1} entries")
    _require(np.ndim(value.data) == 1 and 0 <= starts[-1] <= stored, "indices and data must be as long as indptr says")


def _csc(value: Any) -> None:
    _require(np.ndim(value.data) == 1, "data must be a vector")
    used = _starts(value.indptr, value.shape[1], min(len(value.indices), len(value.data)))
    _indices(value.indices[:used], "indices", value.shape[0])


def _coo(value: Any) -> None:
    rows, columns = _indices(value.row, "rows", value.shape[0]), _indices(value.col, "columns", value.shape[1])
    _require(np.shape(value.data) == rows.shape == columns.shape, "data, rows and columns must be equally long")


def _bsr(value: Any) -> None:
    _require(np.ndim(value.data) == 3, "data must be an array of blocks")
    blocks, height, width = np.shape(value.data)
    _require(min(height, width) > 0 and not (value.shape[0] % height or value.shape[1] % width), "blocks must fit")
    used = _starts(value.indptr, value.shape[0] // height, min(len(value.indices), blocks))
    _indices(value.indices[:used], "indices", value.shape[1] // width)


def _dia(value: Any) -> None:
    offsets = _indices(value.offsets, "offsets")
    _require(np.ndim(value.data) == 2 and len(value.data) == len(offsets), "data must have one row per offset")
    _require(len(np.unique(offsets)) == len(offsets), "offsets must be distinct")
    inside = (offsets >= -value.shape[0]) & (offsets <= value.shape[1])
    _require(inside.all(), "offsets must be inside the matrix")


def _lil(value: Any) -> None:
    _require(
        np.shape(value.rows) == np.shape(value.data) == (value.shape[0],), "rows and data must have one list per row"
    )
    for columns, entries in zip(value.rows, value.data, strict=True):
        _require(isinstance(columns, list) and isinstance(entries, list), "rows and data must hold lists")
        _require(len(columns) == len(entries), "rows and data must be equally long")
        _indices(np.array(columns or np.zeros(0, dtype=np.int64)), "columns", value.shape[1])


def _dok(value: Any) -> None:
    keys = list(value.keys())
    _require(all(isinstance(key, tuple) and len(key) == 2 for key in keys), "keys must be pairs")
    for numbers, n in zip(zip(*keys, strict=True), value.shape, strict=False):
        _indices(np.array(numbers), "keys", n)


_CHECKS: dict[str, Callable[[Any], None]] = {
    "csr": _csr,
    "csc": _csc,
    "coo": _coo,
    "bsr": _bsr,
    "dia": _dia,
    "lil": _lil,
    "dok": _dok,
}
