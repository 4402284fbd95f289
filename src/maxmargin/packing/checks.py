"""Checks of user data, with errors that name the example and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.structures.base import FloatArray, IntArray


def examples(X: Any, name: str = "X") -> list[Any]:
    """A list of examples from any sequence; strings, single arrays and empty lists are refused."""
    if isinstance(X, (str, bytes, dict)) or sp.issparse(X) or not hasattr(X, "__len__"):
        raise ValueError(f"{name} must be a list with one entry per example, got {type(X).__name__}")
    if len(X) == 0:
        raise ValueError(f"{name} is empty: give at least one example")
    return list(X)


def same_length(X: Sequence[Any], y: Sequence[Any], name: str = "y") -> None:
    """``X`` and ``y`` must go together."""
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} examples but {name} has {len(y)}: give one {name} entry per example")


def matrix(value: Any, index: int, what: str) -> Any:
    """One example's features as a 2-D float64 array or CSR matrix."""
    if sp.issparse(value):
        found = sp.csr_array(value)
        if found.dtype != np.float64:
            found = found.astype(np.float64)
        return found
    try:
        dense = np.asarray(value)
        if dense.dtype.kind not in "fiub":
            raise TypeError
        dense = np.ascontiguousarray(dense, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"example {index}: {what} must be numbers in a 2-D array or CSR matrix") from None
    if dense.ndim != 2:
        raise ValueError(
            f"example {index}: {what} must be a 2-D array (rows x features), got shape {dense.shape}; "
            "use reshape(-1, 1) for a single feature"
        )
    return dense


def width(matrices: Sequence[Any], expected: int | None, what: str) -> int:
    """The common number of columns; ValueError naming the first example that differs."""
    if expected is None:
        expected = int(matrices[0].shape[1])
    for index, found in enumerate(matrices):
        if found.shape[1] != expected:
            raise ValueError(
                f"example {index}: {what} have {found.shape[1]} columns, expected {expected} as in the "
                "other (or the training) examples"
            )
    return expected


def stack(matrices: Sequence[Any], what: str) -> tuple[Any, IntArray]:
    """All rows in one matrix (CSR if any example is sparse), finite, with row offsets per example."""
    offsets = np.concatenate([[0], np.cumsum([m.shape[0] for m in matrices])]).astype(np.int64)
    if any(sp.issparse(m) for m in matrices):
        stacked: Any = sp.csr_array(sp.vstack([sp.csr_array(m) for m in matrices], format="csr"))
        if not np.isfinite(stacked.data).all():
            bad = int(np.searchsorted(stacked.indptr, np.flatnonzero(~np.isfinite(stacked.data))[0], side="right")) - 1
            raise _not_finite(offsets, bad, what)
    else:
        stacked = np.ascontiguousarray(np.concatenate(matrices))
        if not np.isfinite(stacked).all():
            raise _not_finite(offsets, int(np.flatnonzero(~np.isfinite(stacked).all(axis=1))[0]), what)
    return stacked, offsets


def _not_finite(offsets: IntArray, row: int, what: str) -> ValueError:
    index = int(np.searchsorted(offsets, row, side="right")) - 1
    return ValueError(
        f"example {index}: {what} hold NaN or infinity in row {row - int(offsets[index])}; "
        "impute or remove such values first"
    )


def edges(value: npt.ArrayLike, index: int, n_rows: int, what: str) -> IntArray:
    """An integer array of shape ``(n_edges, 2)``."""
    array = np.asarray(value)
    if array.size == 0:
        array = np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(f"example {index}: edges must be an integer array of shape (n_edges, 2), got {array.shape}")
    if len(array) != n_rows:
        raise ValueError(f"example {index}: {len(array)} edges but {n_rows} rows of {what}; give one row per edge")
    return array.astype(np.int64)


def weights(value: npt.ArrayLike | None, n_examples: int, name: str = "sample_weight") -> FloatArray | None:
    """Example weights: finite, >= 0, one per example, not all zero."""
    if value is None:
        return None
    array = np.asarray(value, dtype=np.float64)
    if array.shape != (n_examples,):
        raise ValueError(f"{name} must have shape ({n_examples},), one per example, got {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any():
        index = int(np.flatnonzero(~(np.isfinite(array) & (array >= 0)))[0])
        raise ValueError(f"example {index}: {name} must be finite and >= 0, got {array[index]}")
    if not array.any():
        raise ValueError(f"{name} is zero for every example: nothing to learn from")
    return array
