"""Calls of online methods over the oracle of any structure."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.random import Generator

from benchmarks.fuzz.kernel_calls.call import Call, bound, i32, i64, method, offsets, real, some
from maxmargin import _kernels as core

FREE = np.zeros(0, dtype=np.uint8)


def rows_of(random: Generator, rows: int, d: int) -> tuple[Any, ...]:
    """Starts, columns and values of a matrix; starts and columns are empty for a dense one."""
    if random.integers(2):
        return i64([]), i64([]), real(random, rows * d)
    kind = np.int32 if random.integers(2) else np.int64
    taken = [np.flatnonzero(random.integers(2, size=d)) for _ in range(rows)]
    columns = np.concatenate([*taken, i64([])]).astype(kind)
    return offsets([len(own) for own in taken]).astype(kind), columns, real(random, len(columns))


def map_call(random: Generator, own: np.ndarray) -> Call:
    """Features of parts that are rows of a matrix."""
    d, parts = some(random, 3), int(own.sum())
    matrix = rows_of(random, parts, d)
    constant = bool(random.integers(2))
    numbers = random.integers(0, parts, size=parts) if parts and random.integers(2) else i64([])
    settings = parts, d, offsets(own), 1, constant, not constant and bool(random.integers(2)), 1.0, i64([]), False
    return bound(core, "rows_map", *matrix, *settings, numbers.astype(np.int64),
                 then=lambda made: joined(random, made, own))  # fmt: skip


def joined(random: Generator, made: Any, own: np.ndarray) -> list[Call]:
    """A map beside itself, whose weights it shares or not."""
    first = some(random, 4)
    return [bound(core, "joined_map", [made, made], [0, first], first + 8, False,
                  then=lambda both: examples_of(random, core.CandidatesOracle(offsets(own), 1), own, features=both))
            ] if (own > 0).all() else []  # fmt: skip


def examples_of(random: Generator, oracle: Any, own: np.ndarray, hinge: Any = None, features: Any = None) -> list[Call]:
    """Examples over an oracle whose examples have the given numbers of parts."""
    own = np.asarray(own, dtype=np.int64)
    if (own < 0).any() or own.sum() > 1 << 16:
        return []
    of_map = map_call(random, own)
    features = of_map.function(*of_map.arguments) if features is None else features
    n, blocks, has = len(own), offsets(own), own > 0
    gold = offsets(has), blocks[:-1][has].copy(), np.ones(int(has.sum()))
    costs = np.abs(real(random, int(own.sum())))
    if random.integers(2):
        costs = costs.astype(np.uint8)
    rescaling = some(random, 2) if callable(hinge) or hinge is not None else 0
    arguments = oracle, features, rescaling, hinge, hinge is not None, [blocks], costs, *gold, np.ones(n)
    return [of_map, bound(core, "OnlineExamples", *arguments, then=lambda made: passes(random, made, own, blocks))]


def weights_of(made: Any, most: int = 300) -> int:
    """How many weights examples have, found by trying."""
    for d in range(most + 1):
        with suppress(ValueError):
            core.perceptron_pass(made, i64([]), FREE, np.zeros(d), np.zeros(d), 0.0)
            return d
    return 0


def passes(random: Generator, made: Any, own: np.ndarray, blocks: np.ndarray) -> list[Call]:
    """Methods over examples, and block Frank-Wolfe."""
    n, d = len(own), weights_of(made)
    order = random.integers(0, n, size=some(random, 4)) if n else i64([])
    sums = np.zeros(d), np.zeros(d), 0.0
    kept = some(random, 4, 1), some(random, 5, 1), some(random, 5, 2), 0.5, 0.5, some(random, 3, 1)
    signs = FREE if random.integers(2) else np.ones(d, dtype=np.uint8)
    memory = made.memory()
    return [
        bound(core, "perceptron_pass", made, order, signs, *sums),
        bound(core, "mira_pass", made, order, 0.5, some(random, 3, 1), signs, *sums),
        bound(core, "subgradient_pass", made, order, 0.5, 1.0 if random.integers(2) else np.inf, signs, *sums),
        bound(core, "differences", made, [blocks], real(random, int(own.sum())), some(random, 2, 1)),
        method(made, "memory"),
        method(made, "remember", np.zeros(len(memory))),
        bound(core, "BlockFrankWolfe", made, 0.5, 1.0 if random.integers(2) else np.inf, signs, some(random, 2),
              *kept[1:], then=lambda descent: descents(random, descent, own, order, d)),
    ]  # fmt: skip


def descents(random: Generator, made: Any, own: np.ndarray, order: np.ndarray, d: int) -> list[Call]:
    """A descent: passes, what it keeps, and its return to that."""
    has = (own > 0).astype(int)
    outputs = offsets(has), np.ones(int(has.sum())), np.arange(int(has.sum()) + 1), i32(np.zeros(int(has.sum())))
    value = np.ones(int(has.sum()), dtype=np.uint8 if random.integers(2) else np.float64)

    def back(state: tuple[Any, ...]) -> list[Call]:
        arrays = [np.array(one, dtype=np.float64 if j == 5 else None) for j, one in enumerate(state)]
        return [method(made, "restore", *arrays)]

    return [
        method(made, "pass_over", order, bool(random.integers(2)), some(random, 3, 1)),
        method(made, "begin", real(random, d), 0.5, 1.0 + random.random()),
        method(made, "pass_over", order, False, some(random, 3, 1)),
        method(made, "packed", then=lambda kept: [method(made, "unpack", *kept)]),
        method(made, "end", random.random()),
        method(made, "seed", *outputs, value),
        method(made, "state", then=back),
        method(made, "active_set", then=lambda found: [method(made, "seed", *found)]),
        method(made, "refresh"),
        method(made, "average", np.zeros(d)),
        *(method(made, name) for name in ("mark", "examples", "g", "gap", "loss", "atoms")),
    ]
