"""Good calls of the compiled functions: small, random and consistent. Each topic returns calls that fit together."""

from collections.abc import Callable

from numpy.random import Generator

from benchmarks.fuzz.kernel_calls import solvers, structures, tasks
from benchmarks.fuzz.kernel_calls.call import Call

TOPICS: dict[str, Callable[[Generator], list[Call]]] = {**structures.TOPICS, **solvers.TOPICS, **tasks.TOPICS}

__all__ = ["TOPICS", "Call"]
