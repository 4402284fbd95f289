"""Compiled functions called directly with hostile arguments: every function, class and method of both modules.

A target is a topic: good calls that fit together (``kernel_calls``), of small random sizes. An input makes a few of
them in any order, each with some of its arguments spoiled: offsets that do not rise, wrap around or point outside,
counts beyond reason, NaN and infinities, arrays that are too short or share memory, objects of other sizes or not
initialized. An object made from spoiled arguments that are accepted has its methods called next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from benchmarks.fuzz.harness import Target
from benchmarks.fuzz.kernel_calls import TOPICS, Call

REFUSES = (ValueError, TypeError, IndexError, ArithmeticError, LookupError)
"""Non-finite scores raise ArithmeticError, examples without an output LookupError, numbers of strings IndexError."""

COUNTS = (0, 1, -1, 2, 3, 64, 1000, 1 << 16, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 32, 1 << 34, -(1 << 34), 1 << 40)
COUNTS += ((1 << 62) - 1, 1 << 62, (1 << 63) - 1, -(1 << 63), -(1 << 62))
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-9, 5e-324, 2e-308, 1e100, 1e308, -1e308, 1.7e308, np.inf, -np.inf, np.nan)


def within(value: int, dtype: np.dtype[Any]) -> int:
    """The value as one of the type, near its limits if it is beyond them."""
    info = np.iinfo(dtype)
    return int(min(max(value, info.min), info.max))


def spoiled_array(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A copy with entries, length, shape or kind changed."""
    made, how = array.copy(), random.integers(12)
    if how < 6 and made.size:
        flat, at = made.reshape(-1), random.integers(made.size, size=random.integers(1, 3))
        if made.dtype.kind == "f":
            flat[at] = random.choice(NUMBERS)
        elif made.dtype.kind == "b":
            flat[at] = ~flat[at]
        elif how < 3:
            flat[at] = within(COUNTS[random.integers(len(COUNTS))], made.dtype)
        elif how < 5:  # a block far away from its place: differences of neighbors stay what they were
            first, far = random.integers(made.size), COUNTS[random.integers(len(COUNTS))]
            with np.errstate(over="ignore"):
                flat[first:] += np.array(within(far, made.dtype), dtype=made.dtype)
        else:
            flat[at] = flat[random.integers(made.size, size=len(at))]
        return made
    if how == 6:
        return np.ascontiguousarray(made[:-1])
    if how == 7:
        return np.concatenate([made, made[-1:]])
    if how == 8:
        return np.ascontiguousarray(made[::-1])
    if how == 9:
        return np.zeros((0, *made.shape[1:]), dtype=made.dtype)
    if how == 10 and made.ndim == 2:
        return np.zeros((0, 1 << int(random.integers(20, 59))), dtype=made.dtype)
    if random.integers(3) == 0:
        made.flags.writeable = False
    elif random.integers(2) and made.ndim:
        made = np.repeat(made, 2, axis=-1)[..., ::2]
    else:
        made = made.astype(np.float32 if made.dtype != np.float32 else np.float64)
    return made


def shared(array: np.ndarray, others: list[np.ndarray], random: np.random.Generator) -> np.ndarray:
    """An array of the same type and shape in the memory of another argument."""
    fitting = [one for one in others if one.nbytes >= array.nbytes and one.flags.c_contiguous]
    if not fitting or array.size == 0:
        return array
    memory = fitting[random.integers(len(fitting))].reshape(-1).view(np.uint8)
    return memory[: array.nbytes].view(array.dtype).reshape(array.shape)


def spoiled(value: Any, others: list[np.ndarray], pool: Iterable[Any], random: np.random.Generator) -> Any:
    """Something hostile in place of an argument."""
    if isinstance(value, np.ndarray):
        return shared(value, others, random) if random.integers(8) == 0 else spoiled_array(value, random)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + int(random.integers(-1, 2)) if random.integers(4) == 0 else COUNTS[random.integers(len(COUNTS))]
    if isinstance(value, float):
        return float(random.choice(NUMBERS))
    if isinstance(value, list):
        made = list(value)
        if made and random.integers(3):
            at = random.integers(len(made))
            made[at] = spoiled(made[at], others, pool, random)
        else:
            made = made[:-1] if random.integers(2) else made + made[:1]
        return made
    if isinstance(value, bytes | str):
        return value[: random.integers(len(value) + 1)] * int(random.integers(4))
    if value is None or callable(value):
        return value
    alike = [one for one in pool if type(one) is type(value)]
    if alike and random.integers(4):
        return alike[random.integers(len(alike))]
    return None if random.integers(2) else type(value).__new__(type(value))


def made_by(topic: Callable[[np.random.Generator], list[Call]], random: np.random.Generator) -> None:
    """A few calls of a topic, most of them spoiled; the last refusal is raised at the end."""
    calls = topic(random)
    pool = [value for call in topic(random) for value in call.arguments]
    refusal: Exception | None = None
    kept = []  # views of the insides of objects must stay valid
    for _ in range(random.integers(1, 7)):
        call = calls[random.integers(len(calls))]
        arguments = list(call.arguments)
        for _ in range(random.integers(3) if arguments else 0):
            at = random.integers(len(arguments))
            others = [one for j, one in enumerate(arguments) if j != at and isinstance(one, np.ndarray)]
            arguments[at] = spoiled(arguments[at], others, pool, random)
        try:
            result = call.function(*arguments)
        except REFUSES as error:
            # A list of all signatures follows the sentence that says what is wrong.
            refusal = type(error)(str(error).partition("incompatible function arguments.")[0] or str(error))
            continue
        kept.append(result)
        calls = calls + 2 * call.then(result)
        for found in result if isinstance(result, tuple) else ():
            if isinstance(found, np.ndarray):
                kept.append(found)
    for found in kept:
        if isinstance(found, np.ndarray):
            found.sum()
    if refusal is not None:
        raise refusal


def targets() -> list[Target]:
    """One for each topic."""
    return [
        Target(name, lambda random, topic=topic: made_by(topic, random), REFUSES, seconds=3.0, compiled=True)
        for name, topic in TOPICS.items()
    ]
