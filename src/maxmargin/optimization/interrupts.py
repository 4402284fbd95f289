"""Ctrl-C that waits: what must not be left half done is done first."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def after_this() -> Iterator[None]:
    """Within the block SIGINT is only remembered; the handler that was there is called for it at the end.

    Does nothing outside the main thread, which alone may set handlers, and where Ctrl-C is none of Python's business.
    """
    before = signal.getsignal(signal.SIGINT)
    seen: list[tuple[int, FrameType | None]] = []
    if not callable(before):  # ignored, left to the system, or set by other than Python code
        yield
        return
    try:
        signal.signal(signal.SIGINT, lambda number, frame: seen.append((number, frame)))
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if seen:
            before(*seen[0])
