"""Offsets, ranges and argument checks that all structures and features share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._sparse import sp

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Ragged(Sequence[npt.NDArray[Any]]):
    """One array per example, stored end to end.

    Attributes:
        flat: all entries, shape ``(n,)``.
        offsets: where each example begins, and the end; shape ``(n_examples + 1,)``.
    """

    def __init__(self, flat: npt.NDArray[Any], offsets: IntArray) -> None:
        self.flat, self.offsets = flat, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        return self.flat[self.offsets[i] : self.offsets[i + 1]]


def offsets_of(sizes: npt.ArrayLike) -> IntArray:
    """Where consecutive pieces of the given sizes begin, and where the last ends: shape ``(n,)`` to ``(n + 1,)``."""
    ends = np.cumsum(sizes, dtype=np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), ends])


def ranges(first: npt.NDArray[Any], last: npt.NDArray[Any]) -> IntArray:
    """The numbers of all half-open ranges ``first[i]:last[i]``, one after the other."""
    sizes = (last - first).astype(np.int64)
    shifts = np.repeat(first.astype(np.int64) - (np.cumsum(sizes) - sizes), sizes)
    return np.asarray(np.arange(len(shifts)) + shifts, dtype=np.int64)


def pieces(sizes: IntArray, most: int) -> Iterator[IntArray]:
    """Consecutive numbers of items whose sizes add up to at most ``most``, or of one larger item."""
    ends, first = np.cumsum(sizes), 0
    while first < len(ends):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield np.arange(first, last)
        first = last


def sums_of(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Sums of consecutive pieces ``values[offsets[i]:offsets[i + 1]]``, 0 for empty ones: shape ``(n,)``."""
    sums = np.add.reduceat(np.append(values, 0.0), offsets[:-1]) if len(offsets) > 1 else np.zeros(0)
    return np.where(np.diff(offsets) > 0, sums, 0.0)


def as_bytes(value: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array as uint8 if that holds all its numbers exactly, else itself."""
    with np.errstate(invalid="ignore"):
        small = value.astype(np.uint8, copy=False)
    return small if (small == value).all() else value


def example_numbers(indices: npt.ArrayLike, n_examples: int) -> IntArray:
    """Example numbers as an int64 vector; IndexError if one is out of range, negative ones included."""
    chosen = np.asarray(indices)
    if chosen.ndim != 1 or (chosen.size and not np.issubdtype(chosen.dtype, np.integer)):
        raise ValueError("indices must be a one-dimensional array of integers")
    if chosen.size and (chosen.min() < 0 or chosen.max() >= n_examples):
        raise IndexError(f"indices must lie in 0..{n_examples - 1}, and no negative index counts from the end")
    return chosen.astype(np.int64)


def integers(values: npt.ArrayLike, what: str) -> IntArray:
    """``values`` as a contiguous int64 array of any shape; ValueError if they are not integers."""
    array = np.asarray(values)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{what} must be integers, got {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.int64).reshape(array.shape)


def lengths_of(lengths: npt.ArrayLike) -> IntArray:
    """Numbers of positions of sequences as an int64 vector; ValueError unless they are integers >= 0."""
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or (sizes.size and (sizes.dtype.kind not in "iu" or sizes.min() < 0)):
        raise ValueError("lengths must be a one-dimensional array of non-negative integers")
    return sizes.astype(np.int64)


def started(warm: Any, shape: tuple[int, ...]) -> FloatArray:
    """A copy of the multipliers of an earlier call, or zeros; ValueError if ``warm`` has another shape."""
    start = np.zeros(shape) if warm is None else np.array(warm, dtype=np.float64)
    if start.shape != shape:
        raise ValueError(f"warm has shape {start.shape}; give the warm of a call on the same graphs, {shape}")
    return start


def vector(values: npt.ArrayLike, length: int, what: str) -> FloatArray:
    """``values`` as a contiguous float64 vector of the given length; copied only where it is not one yet."""
    checked = np.ascontiguousarray(values, dtype=np.float64)
    if checked.shape != (length,):
        raise ValueError(f"{what} must have shape ({length},), got {checked.shape}")
    return checked


def assembled(pieces: Sequence[tuple[IntArray, IntArray, FloatArray | float]], shape: tuple[int, int]) -> sp.csr_array:
    """A sparse matrix from pieces ``(rows, columns, values)``, the values one per entry or one for all."""
    empty = np.zeros(0, dtype=np.int64)
    rows = np.concatenate([empty, *(piece[0] for piece in pieces)])
    columns = np.concatenate([empty, *(piece[1] for piece in pieces)])
    values = np.concatenate([np.zeros(0), *(np.broadcast_to(piece[2], len(piece[0])) for piece in pieces)])
    return sp.csr_array((values, (rows, columns)), shape=shape)
