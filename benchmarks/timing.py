"""Timing shared by the benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def best_of(repeats: int, calls: dict[str, Callable[[], Any]], *, warm_up: bool = False) -> dict[str, float]:
    """Least seconds of each call; the calls take turns, so that a busy machine slows down all of them.

    ``warm_up`` adds a first round that does not count: page faults, lazy copies.
    """
    best = dict.fromkeys(calls, float("inf"))
    for turn in range(repeats + warm_up):
        for name, call in calls.items():
            seconds = timed(call, clock=time.perf_counter)[1]
            if turn >= warm_up:
                best[name] = min(best[name], seconds)
    return best


def timed(
    call: Callable[[], Any], repeats: int = 1, clock: Callable[[], float] = time.process_time
) -> tuple[Any, float]:
    """The call's result and the least seconds of CPU time (or by another clock) of several repeats."""
    best = float("inf")
    for _ in range(repeats):
        began = clock()
        result = call()
        best = min(best, clock() - began)
    return result, best


def significant(value: float, digits: int = 2) -> float:
    """The value rounded to so many significant digits."""
    return float(f"{value:.{digits}g}")


class Budget:
    """A callback that ends the run of a solver once it has used its seconds of CPU time.

    ``times`` are the seconds used at each certificate.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.began = seconds, time.process_time()
        self.times: list[float] = []

    def __call__(self, record: object) -> bool:
        """Whether to stop."""
        self.times.append(self.used())
        return self.times[-1] > self.seconds

    def used(self) -> float:
        """Seconds of CPU time since this was made."""
        return time.process_time() - self.began
