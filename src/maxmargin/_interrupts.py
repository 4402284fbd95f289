"""Ctrl-C that waits until a step is complete, and other signals that end a program as it does."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

# Windows has no SIGHUP, and Ctrl-Break as SIGBREAK, the one signal that one process can send to another there.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
_ENDING = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))

_AGAIN = 0.01
"""Seconds after which an interrupt that was lost is raised again."""

_received: int | None = None
_held: list[tuple[int, FrameType | None]] | None = None


@contextlib.contextmanager
def defer_interrupts() -> Iterator[None]:
    """Hold back SIGINT within the block; the handler that was set before is called for it at the end.

    Does nothing outside the main thread, where handlers cannot be set, and where the handler is not a Python function.
    In a command, where :func:`end_on_signals` was called, other signals that end it are held back, too.
    """
    before = signal.getsignal(signal.SIGINT)
    seen: list[tuple[int, FrameType | None]] = []
    if not callable(before):  # ignored, left to the system, or not set by Python code
        with _holding(seen):
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


@contextlib.contextmanager
def _holding(seen: list[tuple[int, FrameType | None]]) -> Iterator[None]:
    """Hold back the other signals where Ctrl-C is ignored, as in a command that a script runs in the background."""
    global _held
    if _held is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    _held = seen
    try:
        yield
    finally:
        _held = None
        if seen:
            _repeat(*seen[0])


def received() -> int | None:
    """The signal that ends this command; None as long as there is none."""
    return _received


def exit_code() -> int:
    """The exit code of a command that was interrupted: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + int(_received or signal.SIGINT)


def end_on_signals() -> None:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt as Ctrl-C does; for the process of a command.

    Signals that are ignored, as SIGHUP after ``nohup``, stay so.
    """
    for number in _ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupt if number == signal.SIGINT else _forward)
    if hasattr(signal, "setitimer"):  # not on Windows: an interrupt that is lost there must be repeated by the user
        signal.signal(signal.SIGALRM, _repeat)
        sys.unraisablehook = _lost


def no_more_signals() -> None:
    """Leave signals to the system again: the command is done, and nothing is left to be kept whole."""
    for number in _ENDING:
        if signal.getsignal(number) in (_interrupt, _forward):
            signal.signal(number, signal.SIG_DFL)


def drop_output() -> None:
    """Send what is still to be written to standard output nowhere: its reader has gone."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _received
    _received = number
    raise KeyboardInterrupt


def _forward(number: int, frame: FrameType | None) -> None:
    """Take another signal for SIGINT, which may be held back."""
    global _received
    _received = number
    _repeat(number, frame)


def _repeat(number: int, frame: FrameType | None) -> None:
    if _held is not None:
        _held.append((number, frame))
        return
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler) and handler is not _interrupt:
        handler(_received or number, frame)
    else:
        raise KeyboardInterrupt


def _lost(what: Any) -> None:
    """Raise KeyboardInterrupt again where it came in a place that cannot raise, such as a finalizer."""
    if issubclass(what.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
    else:
        sys.__unraisablehook__(what)
