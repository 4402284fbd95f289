"""Edit alignments against enumeration, and the kernel that scores many pairs of sequences from tables."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import reference
from oracles.enumeration import gibbs, vertices
from oracles.structures.edits import alignments, random_edits, worth

from maxmargin import _kernels, threads
from maxmargin.structures import Edits, PointStatus
from maxmargin.testing import check_structure

RULES = settings(deadline=None, derandomize=True, max_examples=30)
seeds = st.integers(0, 2**32 - 1)


def test_alignments_are_sets_of_pairs_each_with_one_derivation() -> None:
    structure = Edits([0, 3, 3, 5], [4, 0, 4, 2])
    counts = np.exp(structure.log_outputs())
    np.testing.assert_allclose(counts, [1, 1, comb(7, 3), comb(7, 2)])
    assert [len(rows) for rows in vertices(structure)] == [1, 1, comb(7, 3), comb(7, 2)]
    np.testing.assert_allclose(np.exp(Edits([3], [4], nonmatch=True).log_outputs()), comb(7, 3) + 1)


@RULES
@given(seed=seeds)
def test_scores_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(0, 5, size=2).tolist()
    structure = Edits([n], [m])
    scores = rng.normal(size=structure.n_parts)
    pairs, gaps, openings = np.split(scores, structure.starts[1:-1])
    table, both = pairs.reshape(n, m), np.stack([gaps, openings], axis=1)
    best = max(worth(own, table, both[:n], both[n:]) for own in alignments(n, m))
    found = structure.argmax(scores)
    np.testing.assert_allclose(found.value[0], best, atol=1e-12)
    decoded = structure.decode(found.z)[0]
    assert decoded is not None
    np.testing.assert_allclose(worth(decoded, table, both[:n], both[n:]), best, atol=1e-12)
    np.testing.assert_array_equal(np.asarray(structure.encode([decoded])), found.z)


@RULES
@given(seed=seeds)
def test_k_best_marginals_and_slack_rescaling_equal_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_edits(rng, 3)
    scores = np.round(rng.normal(size=structure.n_parts), int(rng.integers(0, 3)))
    scores[rng.random(structure.n_parts) < 0.1] = -np.inf
    costs, margin, constants = rng.random(structure.n_parts), rng.normal(size=3), rng.random(3)
    ranks, sums = structure.k_best(scores, 4), structure.marginals(scores)
    slack = structure.slack_argmax(scores, margin, costs, constants)
    for i, outputs in enumerate(vertices(structure)):
        own = structure.parts_of([i])
        with np.errstate(invalid="ignore"):
            values = np.where(outputs > 0, outputs * scores[own], 0.0).sum(axis=1)
        legal = values > -np.inf
        if not legal.any():
            assert ranks[0].status[i] == sums.status[i] == slack.status[i] == PointStatus.ABSENT
            continue
        wanted = np.sort(values[legal])[::-1][:4]
        np.testing.assert_allclose([rank.value[i] for rank in ranks][: len(wanted)], wanted, atol=1e-12)
        assert len({rank.z[own].tobytes() for rank in ranks[: len(wanted)]}) == min(len(wanted), len(ranks))
        z, value = gibbs(outputs, scores[own])
        np.testing.assert_allclose(sums.z[own], z, atol=1e-12)
        np.testing.assert_allclose(sums.value[i], value, atol=1e-12)
        products = (outputs[legal] @ costs[own] + constants[i]) * np.maximum(margin[i] + values[legal], 0.0)
        np.testing.assert_allclose(slack.value[i], products.max(), atol=1e-12)


def test_k_best_of_long_sequences() -> None:
    """As deep as the sequences are long, which a recursion would not survive."""
    structure = Edits([150_000], [1])
    scores = np.random.default_rng(0).normal(size=structure.n_parts)
    first, second = structure.k_best(scores, 2)
    assert first.value[0] == structure.argmax(scores).value[0] >= second.value[0]
    assert (first.z != second.z).any()


def test_projection_agrees_with_a_general_solver() -> None:
    structure = Edits([2, 3, 0], [3, 1, 2], nonmatch=True)
    point = np.random.default_rng(0).normal(size=structure.n_parts)
    np.testing.assert_allclose(structure.project(point).z, reference.project(structure, point), atol=1e-6)


def test_keeps_the_promises_of_structures() -> None:
    rng = np.random.default_rng(1)
    for affine in (True, False):
        check_structure(Edits([3, 0, 2], [2, 1, 4], affine=affine), rng)
        check_structure(Edits([3, 0, 2], [2, 1, 4], affine=affine, nonmatch=True), rng)


@pytest.mark.parametrize(
    ("alignment", "message"),
    [
        ([(0, 3)], r"example 1: pair \(0, 3\) is out of range for sequences of 2 and 3 symbols"),
        ([(-1, 0)], r"example 1: pair \(-1, 0\) is out of range"),
        ([(0, 1), (1, 1)], r"example 1: pair \(1, 1\) does not lie after the pair before it"),
        ([(0, 1), (1, 0)], r"example 1: pair \(1, 0\) does not lie after the pair before it"),
        ([0, 1, 2], r"example 1: an alignment must be pairs of positions, shape \(k, 2\)"),
        ([(0.5, 1)], "example 1: an alignment must be integers"),
        (None, "example 1: None says that the sequences do not match; build Edits with nonmatch=True"),
    ],
)
def test_alignments_that_are_refused(alignment: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Edits([1, 2], [1, 3]).encode([[(0, 0)], alignment])


def test_sequences_that_are_refused() -> None:
    with pytest.raises(ValueError, match="2 lengths of first and 1 of second sequences"):
        Edits([1, 2], [3])
    with pytest.raises(ValueError, match="example 1: first must be at least 0"):
        Edits([1, -2], [3, 3])
    with pytest.raises(ValueError, match="too long to align"):
        Edits([60_000], [60_000])


def drawn(rng: np.random.Generator, rows: int, known: int, count: int, longest: int) -> dict[str, np.ndarray]:
    """Random tables and sequences, whose unknown symbols are told apart by their identity."""
    lengths = rng.integers(0, longest + 1, size=count)
    total = int(lengths.sum())
    numbers = rng.integers(0, rows - 1, size=total)
    more = np.where(numbers < known, 0, rng.integers(0, 2, size=total))
    tables = {name: rng.normal(size=2 * rows * rows) for name in ("gb", "ga", "ob", "oa")}
    return {
        "offsets": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        "rows": numbers.astype(np.int32),
        "identities": (numbers + rows * more).astype(np.int32),
        "pairs": rng.normal(size=rows * rows),
        "equal": rng.normal(size=rows),
        **tables,
        "ends": rng.normal(size=4),
    }


def scored(data: dict[str, np.ndarray], known: int, first: np.ndarray, second: np.ndarray, n: int = 1) -> np.ndarray:
    out = np.empty(len(first))
    names = ("offsets", "rows", "identities"), ("pairs", "equal", "gb", "ga", "ob", "oa", "ends")
    before, after = ([data[name] for name in own] for own in names)
    _kernels.edit_scores(*before, known, *after, first, second, out, n)
    return out


def expected(data: dict[str, np.ndarray], known: int, one: int, two: int) -> float:
    """The best alignment by the structure's own argmax, with the scores of each part put together one by one."""
    r = len(data["equal"])
    begin, end = data["offsets"][[one, two]], data["offsets"][[one + 1, two + 1]]
    rows = [data["rows"][b:e].tolist() for b, e in zip(begin, end, strict=True)]
    same = [data["identities"][b:e].tolist() for b, e in zip(begin, end, strict=True)]
    n, m = len(rows[0]), len(rows[1])
    pairs = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            equal = same[0][i] == same[1][j]
            unknown = equal and rows[0][i] >= known
            pairs[i, j] = data["equal"][rows[0][i]] if unknown else data["pairs"][rows[0][i] * r + rows[1][j]]
            pairs[i, j] += data["ends"][0 if equal else 1] if i == j == 0 else 0.0
            pairs[i, j] += data["ends"][2 if equal else 3] if (i, j) == (n - 1, m - 1) else 0.0
    gaps: list[float] = []
    openings: list[float] = []
    for side, own in enumerate(rows):
        for at, row in enumerate(own):
            before, after = own[at - 1] if at else r - 1, own[at + 1] if at + 1 < len(own) else r - 1
            b, a = side * r * r + before * r + row, side * r * r + row * r + after
            gaps.append(data["gb"][b] + data["ga"][a])
            openings.append(data["ob"][b] + data["oa"][a])
    return float(Edits([n], [m]).argmax(np.concatenate([pairs.ravel(), gaps, openings])).value[0])


def test_scores_from_tables_are_those_of_the_best_alignments() -> None:
    rng = np.random.default_rng(4)
    known = 3
    data = drawn(rng, 6, known, 12, 7)
    first, second = (grid.ravel() for grid in np.indices((12, 12)))
    wanted = [expected(data, known, one, two) for one, two in zip(first.tolist(), second.tolist(), strict=True)]
    np.testing.assert_allclose(scored(data, known, first, second), wanted, atol=1e-12)


def test_scores_from_tables_have_the_same_bits_for_any_width_order_and_number_of_threads() -> None:
    rng = np.random.default_rng(5)
    data = drawn(rng, 8, 5, 300, 300)
    first, second = rng.integers(0, 300, size=(2, 5000))
    short = np.diff(data["offsets"])[first] * np.diff(data["offsets"])[second] < 9000
    first, second = first[short], second[short]
    wanted, order = scored(data, 5, first, second), rng.permutation(len(first))
    np.testing.assert_array_equal(scored(data, 5, first[order], second[order], 3), wanted[order])
    for lanes in (2, 4, 8):
        _kernels._use_lanes(lanes)
        try:
            np.testing.assert_array_equal(scored(data, 5, first, second), wanted)
        finally:
            _kernels._use_lanes(0)


def test_the_same_bits_with_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    structure = Edits(rng.integers(0, 12, size=40), rng.integers(0, 12, size=40), nonmatch=True)
    scores = rng.normal(size=structure.n_parts)
    found = []
    for count in (1, 3):
        with threads(count):
            found.append((structure.argmax(scores), structure.marginals(scores), *structure.k_best(scores, 3)))
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one.z, three.z)
        np.testing.assert_array_equal(one.value, three.value)
