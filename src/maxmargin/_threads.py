"""How many threads the kernels may use: one setting per context, read by every kernel call.

``with threads(4): ...`` sets it for everything called inside. Results do not depend on it.
"""

from __future__ import annotations

import operator
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

from maxmargin._messages import shown

Item = TypeVar("Item")
Found = TypeVar("Found")

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
        raise ValueError(f"n_jobs must be None or a non-zero integer, got {shown(n_jobs)}; use -1 for all cores")
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


def mapped(function: Callable[[Item], Found], items: Sequence[Item]) -> Iterator[Found]:
    """Results of a function, in order, of as many items at a time as there are threads.

    For functions that spend their time in NumPy, SciPy or kernels. Inside, one thread is the setting, unless there is
    only one item. At most two results per thread wait to be taken.
    """
    count = min(current(), len(items))
    if count <= 1:
        yield from map(function, items)
        return

    def alone(item: Item) -> Found:
        with threads(1):
            return function(item)

    with ThreadPoolExecutor(count) as pool:
        waiting: deque[Future[Found]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(copy_context().run, alone, item))
                if len(waiting) >= 2 * count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
