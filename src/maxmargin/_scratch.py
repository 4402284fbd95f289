"""A file without a name for arrays that this process needs again later: they do not count as its memory.

It lies in the folder of temporary files and is gone when the process ends, however that ends.
"""

from __future__ import annotations

import atexit
import itertools
import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_ALIGN, _SPARE = 8, 5 / 4
"""Arrays begin at multiples of so many bytes; room that is taken, for arrays that grow from time to time."""

_POSITIONED = hasattr(os, "pwrite") and hasattr(os, "preadv")
"""Whether the system reads and writes at a place in one call; Windows does not: threads take turns to seek there."""


class _File:
    def __init__(self) -> None:
        self.lock, self.end = threading.Lock(), 0
        self.free: list[tuple[int, int]] = []
        self._file: Any = None

    def number(self) -> int:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="maxmargin", buffering=0)  # noqa: SIM115
            atexit.register(self._file.close)
        found: int = self._file.fileno()
        return found

    def write_at(self, data: memoryview, at: int) -> int:
        """Write bytes at a place; returns how many were written."""
        if _POSITIONED:
            return os.pwrite(self.number(), data, at)
        with self._at(at) as file:
            return int(file.write(data))

    def read_at(self, room: memoryview, at: int) -> int:
        """Read bytes from a place; returns how many there were, 0 at the end."""
        if _POSITIONED:
            return os.preadv(self.number(), [room], at)
        with self._at(at) as file:
            return int(file.readinto(room))

    @contextmanager
    def _at(self, at: int) -> Iterator[Any]:
        self.number()
        with self.lock:
            self._file.seek(at)
            yield self._file

    def take(self, size: int) -> tuple[int, int]:
        """Where there is room for so many bytes, and how much."""
        with self.lock:
            for at, (first, room) in enumerate(self.free):
                if room >= size:
                    del self.free[at]
                    return first, room
            room = int(size * _SPARE)
            first, self.end = self.end, self.end + room
            return first, room

    def give(self, first: int, room: int) -> None:
        with self.lock:
            self.free.append((first, room))


_file = _File()


class Slot:
    """Arrays in the file; writing replaces them, and their room is free when the slot is dropped."""

    def __init__(self) -> None:
        self._first = self._room = 0
        self._kinds: list[tuple[np.dtype[Any], int]] = []

    def write(self, arrays: Sequence[Array]) -> None:
        """Keep vectors; OSError if the disk is full."""
        ends = _ends(arrays)
        if ends[-1] > self._room:
            self._release()
            self._first, self._room = _file.take(ends[-1])
        self._kinds = [(one.dtype, len(one)) for one in arrays]
        for one, at in zip(arrays, ends, strict=False):
            left, at = _bytes(np.ascontiguousarray(one)), at + self._first
            while left:
                done = _file.write_at(left, at)
                left, at = left[done:], at + done

    def read(self) -> list[Array]:
        """The vectors."""
        found = [np.empty(length, dtype=kind) for kind, length in self._kinds]
        for one, at in zip(found, _ends(found), strict=False):
            room, at = _bytes(one), at + self._first
            while room:
                done = _file.read_at(room, at)
                if not done:
                    raise OSError("a temporary file has been cut off")
                room, at = room[done:], at + done
        return found

    def _release(self) -> None:
        if self._room:
            _file.give(self._first, self._room)
            self._room = 0

    def __del__(self) -> None:
        self._release()


def _bytes(array: Array) -> memoryview:
    return array.data.cast("B") if array.size else memoryview(b"")


def _ends(arrays: Sequence[Array]) -> list[int]:
    """Where arrays begin, and the end of the last."""
    return list(itertools.accumulate((-(-one.nbytes // _ALIGN) * _ALIGN for one in arrays), initial=0))
