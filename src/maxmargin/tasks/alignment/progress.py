"""What long work tells a terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self


class Stages:
    """A line on standard error, drawn only if that is a terminal: the stage, how far it is, the time.

    Args:
        shown: whether to draw at all.
    """

    def __init__(self, shown: bool = True) -> None:
        self._shown = shown
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            console = Console(stderr=True)
            if console.is_terminal:
                columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
                self._bar = Progress(*columns, console=console, transient=True)
                self._bar.start()
        return self

    def begin(self, stage: str, steps: int) -> None:
        """A stage of so many steps begins; the one before is over."""
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(stage, total=steps)

    def advance(self, steps: int = 1) -> None:
        """So many steps are done."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, steps)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
