"""Warnings of other libraries that say nothing to users, ignored."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_depth = 0
_outer = warnings.catch_warnings()


@contextmanager
def quiet(category: type[Warning] = Warning, message: str = "") -> Iterator[None]:
    """Ignore warnings within the block, also where several threads do so at once.

    The filters belong to the process. Two threads in a ``warnings.catch_warnings`` of their own would restore them in
    any order, so that the warnings of one show up again, or those of the program are lost. Here the first thread that
    comes keeps the filters, and the last that leaves restores them.
    """
    global _depth, _outer
    with _lock:
        if _depth == 0:
            _outer = warnings.catch_warnings()
            _outer.__enter__()
        _depth += 1
        warnings.filterwarnings("ignore", message, category)
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _outer.__exit__(None, None, None)
