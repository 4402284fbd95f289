"""Checks of user data, with errors that name the example and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _memory
from maxmargin._sparse import sp
from maxmargin.structures._arrays import array_of, integers, offsets_of
from maxmargin.structures._user_sparse import to_csr
from maxmargin.structures.base import FloatArray, IntArray


def examples(X: Any, name: str = "X") -> list[Any]:
    """A list of examples from any sequence; strings, single arrays and empty lists are refused."""
    if type(X) is not list:
        odd = sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 0)
        X = _checks.listed(name, type(X) if odd else X, "a list with one entry per example")
    if len(X) == 0:
        raise ValueError(f"{name} is empty: give at least one example")
    return list(X)


def same_length(X: Sequence[Any], y: Sequence[Any], name: str = "y") -> None:
    """``X`` and ``y`` must go together."""
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} examples but {name} has {len(y)}: give one {name} entry per example")


def array(value: Any, index: int | None, what: str, kinds: str, wanted: str) -> npt.NDArray[Any]:
    """One example's numbers as an array whose dtype is of the given kinds; ValueError naming the example if not."""
    return array_of(value, what if index is None else f"example {index}: {what}", kinds, wanted)


def matrix(value: Any, index: int, what: str) -> Any:
    """One example's features as a 2-D float64 array or CSR matrix."""
    if type(value) is np.ndarray and value.dtype == np.float64 and value.ndim == 2 and value.flags.c_contiguous:
        return value
    if sp.issparse(value):
        if value.dtype.kind not in "fiub" or len(value.shape) != 2:
            raise ValueError(
                f"example {index}: {what} must be a 2-D sparse matrix of real numbers, got shape {value.shape} of "
                f"{value.dtype}"
            )
        try:
            return to_csr(value)
        except ValueError as error:
            raise _not_valid(index, what, value.format, error) from None
    dense = array(value, index, what, "fiub", "real numbers in a 2-D array or CSR matrix, with equally long rows")
    if dense.ndim != 2:
        remedy = "use reshape(-1, 1) for a single feature" if dense.ndim == 1 else "give each example its own matrix"
        raise ValueError(
            f"example {index}: {what} must be a 2-D array (rows x features), got shape {dense.shape}; {remedy}"
        )
    with np.errstate(over="ignore"):  # long doubles that become infinite are refused as such
        return np.ascontiguousarray(dense, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Rows:
    """Feature matrices of all examples, each checked; stacked when first used.

    Attributes:
        matrices: 2-D float64 arrays or CSR matrices, one per example.
        what: what errors call them.
    """

    matrices: list[Any]
    what: str

    @property
    def width(self) -> int:
        """The common number of columns; ValueError naming the first example that differs."""
        width = int(self.matrices[0].shape[1])
        self.require(width)
        return width

    def require(self, width: int | None) -> None:
        """ValueError naming the first example whose number of columns is another."""
        for index, found in enumerate(self.matrices):
            if found.shape[1] != width:
                raise ValueError(
                    f"example {index}: {self.what} have {found.shape[1]} columns, expected {width}; "
                    "give the same features in the same columns for all examples, in training and in prediction"
                )

    @cached_property
    def offsets(self) -> IntArray:
        """Where the rows of each example begin."""
        return offsets_of([m.shape[0] for m in self.matrices])

    @cached_property
    def matrix(self) -> Any:
        """All rows in one matrix, CSR if any example is sparse; ValueError where an entry is not finite."""
        offsets = self.offsets
        _memory.require(
            8.0 * sum(m.nnz if sp.issparse(m) else m.size for m in self.matrices),
            f"all {self.what} in one matrix",
            "give fewer examples at a time, or sparse matrices",
        )
        if any(type(m) is not np.ndarray for m in self.matrices):
            stacked: Any = sp.csr_array(sp.vstack([sp.csr_array(m) for m in self.matrices], format="csr"))
            _check_csr(stacked, self.matrices, self.what)
            if not np.isfinite(stacked.data).all():
                entry = np.flatnonzero(~np.isfinite(stacked.data))[0]
                bad = int(np.searchsorted(stacked.indptr, entry, side="right")) - 1
                raise _not_finite(offsets, bad, self.what)
        else:
            stacked = np.concatenate(self.matrices)
            if not np.isfinite(stacked).all():
                raise _not_finite(offsets, int(np.flatnonzero(~np.isfinite(stacked).all(axis=1))[0]), self.what)
        return stacked


def rows(values: Sequence[Any], what: str, empty: str = "") -> Rows:
    """The feature matrices of all examples; ``empty``: what an example without rows lacks, if that is an error."""
    found = Rows([matrix(value, index, what) for index, value in enumerate(values)], what)
    if empty and (np.diff(found.offsets) == 0).any():
        raise ValueError(f"example {int(np.argmin(np.diff(found.offsets)))}: {empty}; remove it")
    return found


def _check_csr(stacked: Any, matrices: list[Any], what: str) -> None:
    """ValueError naming the first example whose columns or row starts a kernel could not trust."""
    try:
        stacked.check_format(full_check=True)
    except ValueError:
        for index, found in enumerate(matrices):
            try:
                sp.csr_array(found).check_format(full_check=True)
            except ValueError as error:
                raise _not_valid(index, what, "csr", error) from None
        raise


def _not_valid(index: int, what: str, form: str, error: ValueError) -> ValueError:
    return ValueError(
        f"example {index}: {what} are not a valid {form.upper()} matrix ({error}); "
        "build it again from its rows, columns and entries"
    )


def _not_finite(offsets: IntArray, row: int, what: str) -> ValueError:
    index = int(np.searchsorted(offsets, row, side="right")) - 1
    return ValueError(
        f"example {index}: {what} hold NaN or infinity in row {row - int(offsets[index])}; "
        "impute or remove such values first"
    )


def one_per_edge(found: IntArray, index: int, n_rows: int, what: str) -> None:
    """As many rows of features as edges."""
    if len(found) != n_rows:
        raise ValueError(f"example {index}: {len(found)} edges but {n_rows} rows of {what}; give one row per edge")


def pairs(value: npt.ArrayLike, index: int, what: str, shape: str) -> IntArray:
    """An integer array of two columns; anything empty stands for no pairs."""
    wanted = f"an integer array of shape {shape}"
    found = array(value, index, what, "iu", wanted)
    if found.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if found.ndim != 2 or found.shape[1] != 2:
        raise ValueError(f"example {index}: {what} must be {wanted}, got shape {found.shape}")
    return integers(found, f"example {index}: {what}")


def weights(
    value: npt.ArrayLike | None, n_examples: int, name: str = "sample_weight", *, some: bool = True
) -> FloatArray | None:
    """Example weights: finite, >= 0, one per example, and if these are all examples (``some``) not all zero."""
    if value is None:
        return None
    wanted = f"numbers of shape ({n_examples},), one per example"
    found = array(value, None, name, "fiub", wanted)
    if found.shape != (n_examples,):
        raise ValueError(f"{name} must be {wanted}, got shape {found.shape} of {found.dtype}")
    with np.errstate(over="ignore"):  # long doubles that become infinite are refused as such
        found = found.astype(np.float64)
    if not np.isfinite(found).all() or (found < 0).any():
        index = int(np.flatnonzero(~(np.isfinite(found) & (found >= 0)))[0])
        raise ValueError(f"example {index}: {name} must be finite and >= 0, got {found[index]}; use 0 to ignore it")
    if some and not found.any():
        raise ValueError(f"{name} is zero for every example: nothing is left; give at least one a positive weight")
    return found


def per_variable(value: Any, counts: IntArray, name: str = "loss_weight") -> FloatArray:
    """One vector per example, ``counts[i]`` finite numbers >= 0 for example ``i``, all in one vector."""
    entries = examples(value, name)
    if len(entries) != len(counts):
        raise ValueError(f"{name} must have {len(counts)} entries, one per example, got {len(entries)}")
    found = []
    for index, (entry, count) in enumerate(zip(entries, counts.tolist(), strict=True)):
        wanted = f"{count} finite numbers >= 0, one per variable"
        vector = array(entry, index, name, "fiub", wanted).astype(np.float64)
        if vector.shape != (count,) or not np.isfinite(vector).all() or (vector < 0).any():
            raise ValueError(f"example {index}: {name} must be {wanted}, got shape {vector.shape}")
        found.append(vector)
    return np.concatenate(found)


def per_part(value: Any, counts: IntArray, name: str = "costs") -> FloatArray:
    """One array of any shape per example, ``counts[i]`` finite numbers for example ``i``, all in one vector."""
    entries = examples(value, name)
    if len(entries) != len(counts):
        raise ValueError(f"{name} must have {len(counts)} entries, one per example, got {len(entries)}")
    found = []
    for index, (entry, count) in enumerate(zip(entries, counts.tolist(), strict=True)):
        wanted = f"{count} finite numbers, one per candidate, edge, link, or node and label"
        own = array(entry, index, name, "fiub", wanted).astype(np.float64)
        if own.size != count or not np.isfinite(own).all():
            held = " with NaN or infinity" if own.size == count else ""
            raise ValueError(f"example {index}: {name} must be {wanted}, got shape {own.shape}{held}")
        found.append(own.reshape(-1))
    return np.concatenate(found)


def numbers(value: Any, counts: IntArray, name: str) -> IntArray:
    """One vector of whole numbers per example, ``counts[i]`` for example ``i``, all in one vector."""
    entries = examples(value, name)
    if len(entries) != len(counts):
        raise ValueError(f"{name} must have {len(counts)} entries, one per example, got {len(entries)}")
    found = []
    for index, (entry, count) in enumerate(zip(entries, counts.tolist(), strict=True)):
        wanted = f"{count} whole numbers"
        own = integers(entry, f"example {index}: {name}, {wanted},")
        if own.shape != (count,):
            raise ValueError(f"example {index}: {name} must be {wanted}, got shape {own.shape}")
        found.append(own)
    return np.concatenate(found)
