"""How many threads the kernels may use: one setting per context, read by every kernel call.

``with threads(4): ...`` sets it for everything called inside. Results do not depend on it.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_threads: ContextVar[int] = ContextVar("maxmargin_threads", default=1)

_MOST = 1024
"""More threads than this are never started."""


def resolve(n_jobs: int | None) -> int:
    """Turn scikit-learn's ``n_jobs`` into a number of threads.

    None keeps the setting around it (1 outside any :func:`threads` block), -1 is all cores, -2 all but one, ...
    """
    if n_jobs is None:
        return _threads.get()
    try:
        count = 0 if isinstance(n_jobs, bool) else operator.index(n_jobs)
    except TypeError:
        count = 0
    if count == 0:
        raise ValueError(f"n_jobs must be None or a non-zero integer, got {n_jobs!r}; use -1 for all cores")
    if count > 0:
        return min(count, _MOST)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores + 1 + count)


def current() -> int:
    """The number of threads that kernels called now may use."""
    return _threads.get()


@contextmanager
def threads(n_jobs: int | None) -> Iterator[int]:
    """Let kernels called inside the block use this many threads (``n_jobs`` as scikit-learn reads it)."""
    token = _threads.set(resolve(n_jobs))
    try:
        yield _threads.get()
    finally:
        _threads.reset(token)
