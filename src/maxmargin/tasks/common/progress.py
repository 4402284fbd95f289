"""Progress of long computations, drawn on a terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from maxmargin._terminal import is_quiet


class Stages:
    """A progress bar with the current stage, its steps and the time, on standard error if that is a terminal.

    Args:
        shown: whether to draw at all.
    """

    def __init__(self, shown: bool = True) -> None:
        self._shown = shown
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._shown and not is_quiet():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            console = Console(stderr=True)
            if console.is_terminal:
                columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
                self._bar = Progress(*columns, console=console, transient=True)
                self._bar.start()
        return self

    def begin(self, stage: str, steps: int) -> None:
        """Replace the current stage by one of the given number of steps."""
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(stage, total=steps)

    def advance(self, steps: int = 1) -> None:
        """Count steps of the current stage as done."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, steps)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
