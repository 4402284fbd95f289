"""Progress of long computations: a bar on a terminal, or lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any, Self, cast

from maxmargin._terminal import is_quiet

EVERY = 60.0
"""Seconds between two lines of :func:`print_lines`."""

_lines = False


def print_lines(wanted: bool = True) -> None:
    """Let :class:`Stages` print lines where standard error is not a terminal: on every stage, and every minute."""
    global _lines
    _lines = wanted


class Stages:
    """The current stage, its steps and the time: a bar on standard error if that is a terminal.

    Args:
        shown: whether to show anything at all.
    """

    def __init__(self, shown: bool = True) -> None:
        self._shown = shown
        self._bar: Any = None
        self._task: Any = None
        self._lines: _Lines | None = None

    def __enter__(self) -> Self:
        if self._shown and not is_quiet():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            console = Console(stderr=True)
            if console.is_terminal:
                columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
                self._bar = Progress(*columns, console=console, transient=True)
                self._bar.start()
            elif _lines:
                self._lines = _Lines()
        return self

    def begin(self, stage: str, steps: int | None) -> None:
        """Replace the current stage by one of the given number of steps; None if that is not known."""
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(stage, total=steps)
        if self._lines is not None:
            self._lines.begin(stage, steps)

    def advance(self, steps: int = 1) -> None:
        """Count steps of the current stage as done."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, steps)
        if self._lines is not None:
            self._lines.done += steps

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._lines is not None:
            self._lines.stop()


class _Lines:
    """Lines of the elapsed time, the stage and the share of it that is done, from a thread that waits between them."""

    def __init__(self) -> None:
        self.done = 0
        self._stage, self._steps, self._began = "", cast(int | None, 0), time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def begin(self, stage: str, steps: int | None) -> None:
        self._stage, self._steps, self.done = stage, steps, 0
        self._print()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(EVERY):
            self._print()

    def _print(self) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        share = f", {100 * self.done / self._steps:.0f}% done ({self.done} of {self._steps})" if self._steps else ""
        share = f", {self.done} done" if self._steps is None else share
        line = f"{minutes}:{seconds:02d} {self._stage or 'starting'}{share}\n"  # in one piece, as two threads write
        sys.stderr.write(line)
        sys.stderr.flush()
