"""One call of a compiled function, and the arrays that most of them take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator


def nothing(_: Any) -> list[Call]:
    """No further calls."""
    return []


@dataclass(frozen=True)
class Call:
    """A function with good arguments.

    Attributes:
        name: of the function in its module, with the class before it for methods.
        function: what is called.
        arguments: good ones.
        then: the calls that a result allows.
    """

    name: str
    function: Callable[..., Any]
    arguments: Sequence[Any] = ()
    then: Callable[[Any], list[Call]] = nothing


def bound(module: Any, name: str, *arguments: Any, then: Callable[[Any], list[Call]] = nothing) -> Call:
    """A function or class of a module."""
    return Call(name, getattr(module, name), arguments, then)


def method(made: Any, name: str, *arguments: Any, then: Callable[[Any], list[Call]] = nothing) -> Call:
    """A method of an object, or one of its properties, which is read."""
    of = getattr(type(made), name)
    if isinstance(of, property) or not callable(of):
        return Call(f"{type(made).__name__}.{name}", lambda: getattr(made, name), (), then)
    return Call(f"{type(made).__name__}.{name}", getattr(made, name), arguments, then)


def i32(values: Any) -> np.ndarray:
    """An array of 32-bit integers."""
    return np.array(values, dtype=np.int32)


def i64(values: Any) -> np.ndarray:
    """An array of 64-bit integers."""
    return np.array(values, dtype=np.int64)


def offsets(sizes: Any) -> np.ndarray:
    """Where blocks of the given sizes begin, and the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def some(random: Generator, most: int = 3, least: int = 0) -> int:
    """A small number."""
    return int(random.integers(least, most + 1))


def sizes(random: Generator, most: int = 4, least: int = 0) -> np.ndarray:
    """Sizes of up to three examples."""
    return random.integers(least, most + 1, size=some(random, 3))


def real(random: Generator, *shape: int) -> np.ndarray:
    """Normal numbers, some of which are equal."""
    return np.round(random.normal(size=shape), int(random.integers(0, 4)))


def outputs(parts: int, examples: int, ranks: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where a structure writes points, values and status."""
    return np.zeros(ranks * parts), np.zeros(ranks * examples), np.zeros(ranks * examples, dtype=np.int8)
