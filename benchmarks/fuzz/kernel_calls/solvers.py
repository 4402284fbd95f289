"""Calls of linear maps, of online methods, and of master problems."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from benchmarks.fuzz.kernel_calls.call import Call, bound, i32, i64, method, offsets, real, sizes, some
from benchmarks.fuzz.kernel_calls.online import examples_of
from maxmargin import _kernels as core


def linear(random: Generator) -> list[Call]:
    """Products with dense and sparse matrices."""
    n, d, k, threads = some(random), some(random), some(random, 3, 1), some(random, 2, 1)
    x, initial = real(random, n, d), real(random, k if random.integers(2) else 0)
    index = np.int32 if random.integers(2) else np.int64
    full = np.tile(np.arange(d), n).astype(index)
    matrix = offsets(np.full(n, d)).astype(index), full, real(random, n * d), d
    lists = i64(random.integers(-1, d, size=(k, n)) if d else np.full((k, n), -1))
    return [
        bound(core, "indicator_rows", lists, d, np.zeros(n + 1, dtype=index)),
        bound(core, "linear_dense_forward", x, real(random, d * k), k, initial, np.zeros(n * k), threads),
        bound(
            core, "linear_dense_forward_pair", x, real(random, d), real(random, d), np.zeros(n), np.zeros(n), threads
        ),
        bound(core, "linear_dense_adjoint", x, real(random, n * k), k, np.zeros(d * k), threads),
        bound(core, "linear_dense_adjoint_pair", x, real(random, n), real(random, n), np.zeros(2 * d), threads),
        bound(core, "linear_sparse_forward", *matrix, real(random, d * k), k, initial, np.zeros(n * k), threads),
        bound(core, "linear_sparse_forward_pair", *matrix, real(random, 2 * d), np.zeros(n), np.zeros(n), threads),
        bound(core, "linear_sparse_adjoint", *matrix, real(random, n * k), k, np.zeros(d * k), threads),
        bound(core, "_use_lanes", 0),
    ]


def supported(random: Generator) -> list[Call]:
    """Products with weights for some pairs of features and columns."""
    n, d, threads = some(random), some(random, 3, 1), some(random, 2, 1)
    m = int(random.choice([1, 2, 3, 40, 70]))
    taken = [np.flatnonzero(random.random(m) < 0.4) for _ in range(d)]
    pattern = i32(offsets([len(own) for own in taken])), i32(np.concatenate(taken)), m
    w = len(pattern[1])
    index = np.int32 if random.integers(2) else np.int64
    rows = offsets(np.full(n, d)).astype(index), np.tile(np.arange(d), n).astype(index)
    across = offsets(np.full(d, n)).astype(index), np.tile(np.arange(n), d).astype(index)
    values = real(random, n * d if random.integers(2) else 0)
    own = np.diff(offsets([n])) * m
    pairs = core.PairSet(d, m)

    def use(made: Any) -> list[Call]:
        initial = real(random, m if random.integers(2) else 0)
        return [
            bound(core, "supported_forward", made, *rows, values, real(random, w), initial, np.zeros(n * m), threads),
            bound(core, "supported_adjoint", made, *across, values, real(random, n * m), np.zeros(w), threads),
            bound(core, "supported_part_norms", made, *rows, values, True, np.zeros(n * m), threads),
            bound(core, "supported_map", made, *rows, values, i64([0, n]), bool(random.integers(2)),
                  then=lambda features: examples_of(random, core.CandidatesOracle(offsets(own), 1), own,
                                                    features=features) if n else []),
            method(pairs, "add_support", made),
        ]  # fmt: skip

    def collect(made: Any) -> list[Call]:
        chosen = np.arange(n)
        counted = np.zeros(d, int)
        return [
            method(made, "add_rows", *rows, chosen, random.integers(-1, m, size=n)),
            method(made, "count", counted, then=lambda _: [method(made, "write", np.zeros(counted.sum(), np.int32))]),
            method(made, "write", np.zeros(0, np.int32)),
        ]

    return [
        bound(core, "Support", *pattern, then=use),
        bound(core, "PairSet", d, m, then=collect),
        *use(core.Support(*pattern)),
        *collect(pairs),
    ]


def online(random: Generator) -> list[Call]:
    """Structures and hinges that only Python knows."""
    own = sizes(random, 4, 1)
    status = int(random.choice([0, 0, 0, 1, 2, 3, 7]))

    def find(i: int, scores: np.ndarray, k: int) -> tuple[int, list[Any]]:
        ranks = np.argsort(-scores)[:k]
        wrong = int(random.choice([0, 0, 0, 1, 1 << 40, -1]))
        return status, [(i64([at + wrong]), np.ones(1)) for at in ranks] if random.integers(8) else []

    def most_violated(i: int, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return i64([int(np.argmax(scores))]), np.ones(1)

    def use(made: Any) -> list[Call]:
        return examples_of(random, made, own) + examples_of(random, made, own, most_violated)

    return [bound(core, "PythonOracle", find, i64(own), then=use), *use(core.PythonOracle(find, i64(own)))]


def masters(random: Generator) -> list[Call]:
    """Master problems of decomposition methods."""
    n, d, cone = some(random, 3, 1), some(random, 3, 1), bool(random.integers(2))
    masses = n if cone else 0
    nonnegative = np.zeros(0, bool) if random.integers(2) else random.integers(2, size=d).astype(bool)
    radius = 1.0 if random.integers(2) else np.inf
    made = core.Masters(n, d, masses, 0.5, radius, nonnegative, cone)
    rows = some(random, 4, 1)
    index = i32(random.integers(0, d + masses, size=2 * rows))

    def use(made: Any) -> list[Call]:
        blocks = np.arange(n)
        return [
            method(made, "add", blocks, random.integers(0, rows, size=n), offsets(np.full(rows, 2)), index,
                   real(random, 2 * rows), np.ones(n), real(random, n), some(random, 4), np.zeros(n, bool)),
            method(made, "values", real(random, d), np.zeros(n), np.zeros(n), some(random, 2, 1)),
            method(made, "sweep", blocks, 0.0, np.zeros(n)),
            method(made, "joint", blocks, 1e-9, 20),
            method(made, "recenter", real(random, d), 2.0, float(random.choice([0.5, np.inf]))),
            method(made, "response", np.zeros(d)),
            method(made, "release", random.permutation(d)[:2], real(random, min(d, 2)), np.zeros(d + masses)),
            method(made, "settle", some(random, 3)),
            method(made, "state"),
            method(made, "restore", *made.state()),
            method(made, "g", np.zeros(d + masses)),
            method(made, "loss"),
            method(made, "n_points"),
            method(made, "sizes", np.zeros(n, int)),
            method(made, "weights", 0, np.ones(0 if cone else 1)),
        ]  # fmt: skip

    m = some(random, 4, 1)
    half = real(random, m, m)
    split = offsets([m]) if random.integers(2) else np.arange(m + 1)
    q = np.full(m, 1.0 / m if len(split) == 2 else 1.0)
    return [
        bound(core, "simplex_newton", half @ half.T, real(random, m), split, bool(random.integers(2)), q, 1e-9, 30),
        bound(core, "Masters", n, d, masses, 0.5, radius, nonnegative, cone, then=use),
        *use(made),
        *use(made),
        bound(core, "linear_master_extragradient", *linear_program(random)),
        bound(core, "proximal_master_ascend", *proximal_program(random)),
        bound(core, "newton_master_minimize", *newton_program(random)),
    ]


def linear_program(random: Generator) -> tuple[Any, ...]:
    """A working set of rows by rows and by columns, and where its players stand."""
    r, n, m = some(random), some(random, 3, 1), some(random, 3, 1)
    x = real(random, r, n)
    rows = i32(offsets(np.full(r, n))), i32(np.tile(np.arange(n), r)), x.ravel().copy()
    columns = i32(offsets(np.full(n, r))), i32(np.tile(np.arange(r), n)), x.T.ravel().copy()
    owner = i32(random.integers(0, m, size=r))
    rest = real(random, r), owner, np.ones(n), np.full(n, -np.inf), np.ones(m)
    return *rows, *columns, *rest, np.zeros(n), np.zeros(m), np.zeros(r), 0.1, 20


def proximal_program(random: Generator) -> tuple[Any, ...]:
    """The same with a proximal term."""
    r, n, m = some(random), some(random, 3, 1), some(random, 3, 1)
    first = np.sort(random.integers(0, r + 1, size=m + 1))
    first[0], first[-1] = 0, r
    rows = i32(offsets(np.full(r, n))), i32(np.tile(np.arange(n), r)), real(random, r * n)
    weights = real(random, n), np.ones(n), np.full(n, -np.inf), np.zeros(n), np.zeros(n), np.zeros(r)
    return *rows, real(random, r), i32(first), *weights, 0.1, 1e-6, 1e-6, 20, 1


def newton_program(random: Generator) -> tuple[Any, ...]:
    """The same, smoothed."""
    *rows, b, first, center, mu, lower, w, _, multipliers = proximal_program(random)[:11]
    return *rows, b, first, center, mu, lower, np.zeros(len(b)), w, multipliers, 0.1, 0.5, 1e-6, 20


TOPICS = {"linear": linear, "supported": supported, "online": online, "masters": masters}
