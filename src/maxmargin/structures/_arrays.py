"""Offsets, ranges and argument checks that all structures and features share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _memory
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


def array_of(values: Any, what: str, kinds: str, wanted: str) -> npt.NDArray[Any]:
    """``values`` as an array whose dtype is of the given kinds, or an empty one; ValueError if they are not.

    Refuses, before they are read, values that would not fit into memory: arrays that are views of one number, and
    sequences that only claim a length.
    """
    remedy = "give the values themselves, or fewer of them"
    if type(values) is np.ndarray:
        found = values
    else:
        got = type(values).__name__
        try:
            masked = np.ma.is_masked(values)
            count = 0 if masked or not hasattr(values, "__len__") else len(values)
        except Exception:  # the caller's code
            masked, count = True, 0
        _memory.require(8.0 * count, what, remedy)
        try:
            if masked:
                raise TypeError
            found = np.asarray(values)
        except Exception:  # the caller's code, or NumPy's many ways to say that these are no numbers
            odd = "with masked entries" if isinstance(values, np.ma.MaskedArray) else "of unequal or odd entries"
            raise ValueError(f"{what} must be {wanted}, got {got} {odd}") from None
    if found.dtype.kind not in kinds and (found.size or not found.ndim):
        raise ValueError(f"{what} must be {wanted}, got shape {found.shape} of {found.dtype!s:.100}")
    if not found.flags.c_contiguous:  # a view may be larger than what it is a view of
        _memory.require(float(found.size) * max(8, found.itemsize), what, remedy)
    return found


def example_numbers(indices: npt.ArrayLike, n_examples: int) -> IntArray:
    """Example numbers as an int64 vector; ValueError if one is out of range, negative ones included."""
    chosen = array_of(indices, "indices", "iu", "a one-dimensional array of integers")
    if chosen.ndim != 1:
        raise ValueError(f"indices must be a one-dimensional array of integers, got shape {chosen.shape}")
    if chosen.size and (chosen.min() < 0 or chosen.max() >= n_examples):
        raise ValueError(f"indices must lie in 0..{n_examples - 1}, and no negative index counts from the end")
    return chosen.astype(np.int64)


def integers(values: Any, what: str) -> IntArray:
    """``values`` as a contiguous int64 array of any shape; ValueError if they are not integers."""
    array = array_of(values, what, "iu", "integers")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{what} must be integers below 2^63, got {array.max()}")
    return np.ascontiguousarray(array, dtype=np.int64).reshape(array.shape)


def pairs_of(values: Any, what: str) -> IntArray:
    """``values`` as an int64 array of two columns; anything empty stands for no rows."""
    array = integers(values, what)
    if array.size and (array.ndim != 2 or array.shape[1] != 2):
        raise ValueError(f"{what} must have two columns, shape (number, 2), got {array.shape}")
    return array.reshape(-1, 2)


def one_per_example(outputs: Any, n_examples: int, what: str) -> Sequence[Any]:
    """The outputs of a batch as a sequence; ValueError unless there is one for each example."""
    if type(outputs) is not list and not isinstance(outputs, (Ragged, tuple)):
        outputs = _checks.listed(what, outputs, "a list with one entry per example")
    if len(outputs) != n_examples:
        raise ValueError(f"{len(outputs)} {what} for {n_examples} examples; give one per example")
    return outputs  # type: ignore[no-any-return]


def counts_of(values: Any, what: str, *, least: int = 0) -> IntArray:
    """Numbers of items of examples as an int64 vector; ValueError naming the first below ``least``.

    Whatever the items are, there is a number for each of them: all of these must fit into memory.
    """
    counts = integers(values, what)
    if counts.ndim != 1:
        raise ValueError(f"{what} must have one dimension, one number per example, got shape {counts.shape}")
    if counts.size and counts.min() < least:
        example = int(np.argmax(counts < least))
        raise ValueError(f"example {example}: {what} must be at least {least}, got {counts[example]}")
    if counts.size:
        _memory.require(8.0 * counts.sum(dtype=np.float64), f"a number for each of the {what}", "give smaller numbers")
    return counts


def lengths_of(lengths: npt.ArrayLike) -> IntArray:
    """Numbers of positions of sequences as an int64 vector; ValueError unless they are integers >= 0."""
    return counts_of(lengths, "lengths")


def offsets_in_memory(counts: IntArray, each: int, what: str) -> IntArray:
    """Where the parts of each example begin if it has ``counts`` items of ``each`` parts.

    ValueError naming the largest example if its parts would not fit into memory, in which no shard could hold it.
    """
    if counts.size:
        most = int(counts.argmax())
        _memory.require(
            8.0 * int(counts[most]) * each, f"example {most}: its {what}", "split the example, or give fewer labels"
        )
        if float(counts.sum(dtype=np.float64)) * each >= 1 << 62:
            raise ValueError(f"the {what} of all examples are more than 2^62; give fewer examples at a time")
    return offsets_of(counts * each)


def started(warm: Any, shape: tuple[int, ...]) -> FloatArray:
    """A copy of the multipliers of an earlier call, or zeros; ValueError if ``warm`` has another shape."""
    if warm is None:
        return np.zeros(shape)
    start = array_of(warm, "warm", "fiub", f"the warm of a call on the same graphs, shape {shape}")
    if start.shape != shape:
        raise ValueError(f"warm has shape {start.shape}; give the warm of a call on the same graphs, {shape}")
    return np.array(start, dtype=np.float64, order="C")


def vector(values: npt.ArrayLike, length: int, what: str) -> FloatArray:
    """``values`` as a contiguous float64 vector of the given length; copied only where it is not one yet."""
    given = values if type(values) is np.ndarray else array_of(values, what, "fiub", f"{length} numbers")
    if given.shape != (length,):
        raise ValueError(f"{what} must have shape ({length},), got {given.shape}")
    if given.dtype.kind not in "fiub":
        raise ValueError(f"{what} must be {length} numbers, got {given.dtype!s:.100}")
    with np.errstate(over="ignore"):  # long doubles that become infinite are refused as such
        return np.ascontiguousarray(given, dtype=np.float64)


def assembled(pieces: Sequence[tuple[IntArray, IntArray, FloatArray | float]], shape: tuple[int, int]) -> sp.csr_array:
    """A sparse matrix from pieces ``(rows, columns, values)``, the values one per entry or one for all."""
    empty = np.zeros(0, dtype=np.int64)
    rows = np.concatenate([empty, *(piece[0] for piece in pieces)])
    columns = np.concatenate([empty, *(piece[1] for piece in pieces)])
    values = np.concatenate([np.zeros(0), *(np.broadcast_to(piece[2], len(piece[0])) for piece in pieces)])
    return sp.csr_array((values, (rows, columns)), shape=shape)
