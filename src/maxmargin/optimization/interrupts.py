"""Ctrl-C that waits until a step is complete."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def defer_interrupts() -> Iterator[None]:
    """Hold back SIGINT within the block; the handler that was set before is called for it at the end.

    Does nothing outside the main thread, where handlers cannot be set, and where the handler is not a Python function.
    """
    before = signal.getsignal(signal.SIGINT)
    seen: list[tuple[int, FrameType | None]] = []
    if not callable(before):  # ignored, left to the system, or not set by Python code
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
