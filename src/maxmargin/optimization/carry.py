"""Everything that changes while a run goes on, and nothing else: what the loop carries from step to step."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from maxmargin.optimization.callbacks import Record
from maxmargin.optimization.certificate import BestBounds
from maxmargin.optimization.run import Run


@dataclass
class Clock:
    """Seconds spent on a run, those before it was resumed included."""

    began: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """The time spent so far."""
        return time.perf_counter() - self.began


@dataclass
class Schedule:
    """The iterations at which certificates are taken: every one up to 8, then spaced by an eighth of the iterations
    done, at most 50 apart. It does not depend on the clock, so that runs give the same bits on a busy machine."""

    next_check: int = 0

    def due(self, iteration: int) -> bool:
        """Whether a certificate is due."""
        return iteration >= self.next_check

    def advance(self, iteration: int) -> None:
        """Plan the next certificate after one that was due."""
        self.next_check = iteration + max(1, min(50, iteration // 8))


@dataclass(eq=False)
class Carry:
    """A run between two steps.

    Attributes:
        run: the problem's operations, with the counters, random numbers and warm starts.
        best: the best bounds so far, and their weights.
        clock: the time spent.
        state: the solver's state.
        history: one record per certificate, without the weights.
        schedule: when the next certificate is due.
        asked: why a callback asks to stop; empty if none does.
    """

    run: Run
    best: BestBounds
    clock: Clock
    state: Any = None
    history: list[Record] = field(default_factory=list)
    schedule: Schedule = field(default_factory=Schedule)
    asked: str = ""

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return self.run.counters.iterations

    @property
    def certified(self) -> bool:
        """Whether the last certificate is that of the current iteration."""
        return bool(self.history) and self.history[-1].iteration == self.iteration
