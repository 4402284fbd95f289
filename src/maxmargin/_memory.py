"""The memory that arrays may take: sizes are checked before anything is allocated.

A size that comes from a user's number, or from an array that only claims to be large, is compared with the memory of
the machine first; otherwise the process would be killed, or NumPy would give up, where nothing says which input it was.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

LIMIT: int | None = None
"""Bytes; None for :func:`available`. Tests set it."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


@cache
def available() -> int:
    """Bytes of memory of the machine, or of the container or process if they are allowed less."""
    found = [1 << 62]
    with suppress(AttributeError, OSError, ValueError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(AttributeError, OSError):
        found.append(_of_windows())
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            found.append(int(Path("/sys/fs/cgroup", name).read_text(encoding="ascii")))
    with suppress(ImportError, OSError, ValueError):
        import resource

        allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
        found += [allowed] * (allowed != resource.RLIM_INFINITY)
    return min(found)


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX of the Windows API."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 6),
    )


def _of_windows() -> int:
    """Return the bytes of memory of a machine with Windows; AttributeError on other systems."""
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):  # type: ignore[attr-defined,unused-ignore]
        raise OSError("GlobalMemoryStatusEx failed")
    return int(status.total)


@cache
def _library() -> Any:
    """Return the C library; None where it cannot be named, as on Windows. Only glibc has the functions used here."""
    with suppress(OSError, TypeError):
        return ctypes.CDLL(None)
    return None


def give_back() -> None:
    """Return freed memory to the system, where the C library would keep it (glibc only)."""
    with suppress(AttributeError):
        _library().malloc_trim(0)


def return_arrays() -> None:
    """Have arrays of 16 MiB or more returned to the system when they are freed (glibc only, the whole process).

    Otherwise the C library keeps the room of most of them between smaller ones.
    """
    with suppress(AttributeError):
        _library().mallopt(_MMAP_THRESHOLD, 1 << 24)


def keep_arrays() -> None:
    """Have the room of freed arrays up to 32 MiB kept for the next ones, up to 1 GiB (glibc only, the whole process).

    For processes that make the same arrays again and again: otherwise the system gives and clears the same pages every
    time, about a tenth of the time of a pass over a million parts.
    """
    with suppress(AttributeError):
        library = _library()
        library.mallopt(_TRIM_THRESHOLD, 1 << 30)
        library.mallopt(_MMAP_THRESHOLD, 1 << 25)


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause Python's collector of cycles while millions of small objects are made that all stay.

    It would go through all of them again and again: reading a million sentence pairs takes about twice as long with it.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def require(n_bytes: float, what: str, remedy: str) -> None:
    """ValueError if there is not that much memory: ``what`` would need it, ``remedy`` says what to do."""
    limit = available() if LIMIT is None else LIMIT
    if n_bytes > limit:
        raise ValueError(f"{what} would need {shown(n_bytes)} of memory, there are {shown(limit)}; {remedy}")


def shown(n_bytes: float) -> str:
    """A number of bytes in words: "3.2 TB"."""
    size, unit = float(n_bytes), 0
    while size >= 999.5 and unit + 1 < len(_UNITS):
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"
