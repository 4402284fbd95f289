"""Non-projective trees: against enumeration, by duality at any size, against networkx and exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import reference
from oracles.enumeration import gibbs, scores_of, worth
from oracles.structures.dependencies import random_nonprojective, trees, vertices

from maxmargin import _kernels, threads
from maxmargin.structures import NonProjectiveTrees, PointStatus
from maxmargin.structures.fallbacks import generic
from maxmargin.testing import check_structure

OK, NONFINITE, ABSENT = PointStatus.OK, PointStatus.NONFINITE, PointStatus.ABSENT
RULES = settings(deadline=None, derandomize=True, max_examples=40)
seeds = st.integers(0, 2**32 - 1)
scales = st.sampled_from([1.0, 30.0, 1000.0])


def table(structure: NonProjectiveTrees, i: int, scores: np.ndarray) -> np.ndarray:
    """The best score of each arc of a sentence over its labels, by head and modifier; -inf if it is none."""
    own = np.arange(*structure.blocks[0].offsets[i : i + 2])
    heads, _ = structure.heads_of(own)
    first = structure.token_offsets[i]
    token = np.repeat(np.arange(structure.n_tokens.sum()), structure.n_states)[own] - first + 1
    found = np.full((structure.n_tokens[i] + 1, structure.n_tokens[i] + 1), -np.inf)
    np.maximum.at(found, (heads, token), scores[own])
    return found


def certify(structure: NonProjectiveTrees, scores: np.ndarray) -> None:
    """Check the argmax of finite scores by its duals: they cover every arc, and their sum is its score."""
    best, duals = structure.argmax(scores), structure.duals(scores)
    assert (best.status == OK).all()
    assert structure.encode(structure.decode(best.z)) is not None
    size = np.abs(scores).max(initial=1.0) * structure.n_tokens.max()
    np.testing.assert_allclose(best.value, structure.by_example(scores * best.z), rtol=0, atol=1e-13 * size)
    for i, n in enumerate(structure.n_tokens.tolist()):
        first = 2 * structure.token_offsets[i]
        y, parent = duals.sets[first : first + 2 * n], duals.parents[first : first + 2 * n]
        y, parent = y[parent >= 0], parent[parent >= 0]
        heads = structure.decode(best.z)[i].reshape(-1, n)[0]
        from_root = 1 + np.flatnonzero(heads == 0)
        np.testing.assert_allclose(y.sum(), best.value[i], rtol=0, atol=1e-12 * size)
        member = np.zeros((len(y) + 1, n + 1), dtype=bool)
        for token in range(1, n + 1):
            at = token
            while at:
                member[at, token] = True
                at = parent[at - 1]
        slack = np.einsum("s,shm->hm", y, (~member[1:, :, None] & member[1:, None, :]).astype(float))
        slack -= table(structure, i, scores)
        np.testing.assert_allclose(slack[heads, np.arange(1, n + 1)], 0.0, atol=1e-12 * size)
        free = np.zeros(len(y), dtype=bool)
        if structure.single_root:
            # A number may be subtracted from the arcs from the root: it comes from the dual of the set that the tree
            # enters by one of them, so that it leaves the slack of those into this set, and covers all others.
            free = member[1:, from_root[0]] & (parent == 0)
            slack[0, ~member[1 + np.flatnonzero(free)[0]]] = 0.0
        assert (y[n:][~free[n:]] <= 0).all()
        assert slack[:, 1:].min() >= -1e-12 * size


@RULES
@given(seed=seeds, k=st.sampled_from([1, 4, 30, 10**6]))
def test_k_best_and_marginals_equal_enumeration(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_nonprojective(rng, 3)
    scores = scores_of(rng, structure)
    best, ranks, sums = structure.argmax(scores), structure.k_best(scores, k), structure.marginals(scores)
    np.testing.assert_array_equal(best.z, ranks[0].z)
    np.testing.assert_array_equal(best.status, ranks[0].status)
    for i, outputs in enumerate(vertices(structure)):
        own = structure.parts_of([i])
        values = worth(outputs, scores[own])
        wanted = np.sort(values[values > -np.inf])[::-1][:k]
        right = [points.status[i] == OK for points in ranks]
        assert right == [r < len(wanted) for r in range(len(ranks))]
        np.testing.assert_allclose([points.value[i] for points in ranks][: len(wanted)], wanted, atol=1e-12)
        listed = {points.z[own].tobytes() for points in ranks[: len(wanted)]}
        assert len(listed) == len(wanted)
        assert listed <= {row.tobytes() for row in outputs}
        if not len(wanted):
            assert best.status[i] == sums.status[i] == ABSENT
            assert best.value[i] == sums.value[i] == -np.inf
            continue
        z, value = gibbs(outputs, scores[own])
        np.testing.assert_allclose(sums.z[own], z, atol=1e-13)
        np.testing.assert_allclose(sums.value[i], value, atol=1e-13)


@pytest.mark.parametrize("single_root", [True, False])
def test_five_tokens(single_root: bool) -> None:
    rng = np.random.default_rng(5)
    heads = np.array(trees(5, single_root=single_root, projective=False))
    assert len(heads) == (5**4 if single_root else 6**4)  # Cayley
    places = np.arange(5) * 5 + heads - (heads > np.arange(1, 6))
    structure = NonProjectiveTrees.dense([5], single_root=single_root)
    np.testing.assert_allclose(structure.log_outputs(), np.log(len(heads)))
    for exponent in (0, 1, 3):
        scores = rng.normal(size=25) * 10**exponent
        found = structure.k_best(scores, len(heads) + 1)
        assert len(found) == len(heads)
        values = np.sort(scores[places].sum(axis=1))[::-1]
        np.testing.assert_allclose([points.value[0] for points in found], values, atol=1e-12 * 10**exponent)
        assert len({points.z.tobytes() for points in found}) == len(heads)


@RULES
@given(seed=seeds, n=st.integers(1, 30), single_root=st.booleans(), whole=st.booleans())
def test_duals_prove_the_maximum(seed: int, n: int, single_root: bool, whole: bool) -> None:
    rng = np.random.default_rng(seed)
    structure = NonProjectiveTrees.dense([n, 1, n], int(rng.integers(1, 3)), single_root=single_root)
    scores = rng.normal(size=structure.n_parts) * 10
    certify(structure, np.round(scores / 5) if whole else scores)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("kind", ["random", "nested", "even"])
def test_long_sentences(single_root: bool, kind: str) -> None:
    """By duality; cycles within cycles to a depth of the number of tokens, and scores that are all the same."""
    n = 90
    structure = NonProjectiveTrees.dense([n], single_root=single_root)
    scores = np.random.default_rng(0).normal(size=structure.n_parts)
    if kind == "nested":  # neighbors first take one another, then the tokens before them, one after the other
        heads, token = structure.heads_of(np.arange(n * n))[0], np.repeat(np.arange(1, n + 1), n)
        scores = -np.maximum(heads, token) * 3.0 - np.where(heads == 0, 1000.0, 0.0)
    certify(structure, np.ones(n * n) if kind == "even" else scores)


def test_agrees_with_networkx() -> None:
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    rng = np.random.default_rng(0)
    for n in (3, 8, 20):
        structure = NonProjectiveTrees.dense([n], single_root=False)
        scores = np.round(rng.normal(size=n * n), 1)
        graph = networkx.DiGraph()
        weights = table(structure, 0, scores)
        graph.add_weighted_edges_from((h, m, weights[h, m]) for m in range(1, n + 1) for h in range(n + 1) if h != m)
        tree = networkx.maximum_spanning_arborescence(graph)
        np.testing.assert_allclose(structure.argmax(scores).value[0], tree.size(weight="weight"), atol=1e-12)


def exact_marginals(weights: list[list[Fraction]], single_root: bool) -> tuple[Fraction, dict[tuple[int, int], float]]:
    """The partition function of small integer weights by head and modifier, and all marginals, in exact arithmetic."""
    n = len(weights) - 1

    def determinant(rows: list[list[Fraction]]) -> Fraction:
        rows, found = [list(row) for row in rows], Fraction(1)
        for k in range(len(rows)):
            pivot = next((j for j in range(k, len(rows)) if rows[j][k]), None)
            if pivot is None:
                return Fraction(0)
            if pivot != k:
                rows[k], rows[pivot], found = rows[pivot], rows[k], -found
            found *= rows[k][k]
            for j in range(k + 1, len(rows)):
                ratio = rows[j][k] / rows[k][k]
                rows[j] = [x - ratio * y for x, y in zip(rows[j], rows[k], strict=True)]
        return found

    def partition(w: list[list[Fraction]]) -> Fraction:
        # The number of roots is the power of a variable; its coefficient is a difference of determinants by Koo's rows.
        laplacian = [
            [
                sum((w[h][m] for h in range(single_root, n + 1)), Fraction(0)) if a == m else -w[a][m]
                for m in range(1, n + 1)
            ]
            for a in range(1, n + 1)
        ]
        if single_root:
            laplacian[0] = [w[0][m] for m in range(1, n + 1)]
        return determinant(laplacian)

    total, found = partition(weights), {}
    for h, m in product(range(n + 1), range(1, n + 1)):
        if h != m:
            without = [
                [Fraction(0) if (a, b) == (h, m) else x for b, x in enumerate(row)] for a, row in enumerate(weights)
            ]
            found[h, m] = float(1 - partition(without) / total)
    return total, found


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("spread", [3, 60, 900])
def test_marginals_agree_with_exact_arithmetic(single_root: bool, spread: int) -> None:
    """Also where cycles weigh e.g. 2^900 times more than trees, so that a Laplacian would have no digit of them."""
    rng = np.random.default_rng(spread)
    n = 6
    structure = NonProjectiveTrees.dense([n], single_root=single_root)
    powers = rng.integers(-spread, spread + 1, size=n * n)
    weights = [[Fraction(0)] * (n + 1) for _ in range(n + 1)]
    place = [(h, m) for m in range(1, n + 1) for h in range(n + 1) if h != m]
    for (h, m), power in zip(place, powers.tolist(), strict=True):
        weights[h][m] = Fraction(2) ** power
    total, wanted = exact_marginals(weights, single_root)
    found = structure.marginals(powers * np.log(2.0))
    logarithm = (total.numerator.bit_length() - total.denominator.bit_length()) * np.log(2.0)
    assert abs(found.value[0] - logarithm) < 2.0
    np.testing.assert_allclose(found.z, [wanted[arc] for arc in place], atol=4e-16 * spread * n)
    np.testing.assert_allclose(structure.by_example(found.z), n)


@RULES
@given(seed=seeds, scale=scales)
def test_marginals_are_the_slope_of_the_log_partition_function(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    structure = random_nonprojective(rng, 2, tokens=9, labels=3, listed=False)
    potentials, step = rng.normal(size=structure.n_parts) * scale, rng.normal(size=structure.n_parts)
    h = 1e-4
    up, down = structure.marginals(potentials + h * step), structure.marginals(potentials - h * step)
    slope = structure.by_example(structure.marginals(potentials).z * step)
    np.testing.assert_allclose((up.value - down.value) / (2 * h), slope, atol=1e-5)
    forced = structure.marginals(1e5 * (np.asarray(structure.argmax(potentials).z) - 0.5))
    np.testing.assert_allclose(forced.z, structure.argmax(potentials).z, atol=1e-12)


@RULES
@given(seed=seeds)
def test_forced_and_forbidden_arcs(seed: int) -> None:
    """A list without an arc is the same as a score that forbids it, and rivals that are not there force an arc."""
    rng = np.random.default_rng(seed)
    some = random_nonprojective(rng, 2, listed=True)
    every = NonProjectiveTrees.dense(some.n_tokens, some.n_labels, single_root=some.single_root)
    example = np.repeat(np.arange(2), np.diff(some.blocks[0].offsets))
    token = np.repeat(np.arange(int(some.n_tokens.sum())), some.n_states) - some.token_offsets[example] + 1
    heads, labels = some.heads_of(np.arange(some.n_parts))
    place = every._part_of(example, heads, token, labels)
    scores = np.full(every.n_parts, -np.inf)
    scores[place] = own = rng.normal(size=some.n_parts)
    for name in ("argmax", "marginals"):
        listed, dense = getattr(some, name)(own), getattr(every, name)(scores)
        np.testing.assert_allclose(listed.z, dense.z[place], atol=1e-13)
        np.testing.assert_allclose(listed.value, dense.value, atol=1e-13)
    first, second = some.k_best(own, 5), every.k_best(scores, 5)
    np.testing.assert_allclose([p.value for p in first], [p.value for p in second[: len(first)]], atol=1e-13)


def test_one_root_that_is_not_the_best_of_several() -> None:
    scores = np.array([5.0, 1.0, 5.0, 1.5])  # 0 -> 1, 2 -> 1, 0 -> 2, 1 -> 2
    assert NonProjectiveTrees.dense([2], single_root=False).argmax(scores).value == 10.0
    one = NonProjectiveTrees.dense([2])
    assert one.decode(one.argmax(scores).z)[0].tolist() == [0, 1]
    assert [points.value[0] for points in one.k_best(scores, 9)] == [6.5, 6.0]


def test_scores_that_are_not_finite() -> None:
    structure = NonProjectiveTrees.dense([2, 2, 2, 2], single_root=False)
    scores = np.ones(16)
    scores[0], scores[4], scores[[8, 10]], scores[12] = np.nan, np.inf, -np.inf, -1e308
    scores[13] = 1e308
    for name in ("argmax", "marginals"):
        found = getattr(structure, name)(scores)
        assert found.status.tolist() == [NONFINITE, NONFINITE, ABSENT, OK]
        np.testing.assert_array_equal(found.value[:3], [np.nan, np.nan, -np.inf])
        assert not found.z[:12].any()
    ranks = structure.k_best(scores, 3)
    assert [points.status.tolist()[:3] for points in ranks] == [[NONFINITE, NONFINITE, ABSENT]] * len(ranks)
    huge = NonProjectiveTrees.dense([3])
    assert huge.argmax(np.full(9, 1.5e308)).status[0] == NONFINITE
    assert huge.argmax(np.tile([1.5e308, -1.5e308, -1.5e308], 3)).status[0] == NONFINITE


def test_scores_far_below_others_are_not_lost() -> None:
    """A tree can be the best although its arcs are a rounding error of those of cycles."""
    structure = NonProjectiveTrees.dense([3])
    # Tokens 1 to 3 take one another at 1e12; the arcs from the root decide.
    scores = np.array([0.25, 1e12, 1e12, 0.5, 1e12, 1e12, 0.75, 1e12, 1e12])
    assert 0 in structure.decode(structure.argmax(scores).z)[0].tolist()
    assert structure.decode(structure.argmax(scores).z)[0][2] == 0
    found = structure.marginals(np.where(scores < 1, scores, 4000.0))
    roots = np.exp([0.25, 0.5, 0.75])
    np.testing.assert_allclose(found.z[::3], roots / roots.sum(), atol=1e-12)
    np.testing.assert_allclose(found.value, 8000.0 + np.log(3 * roots.sum()), rtol=1e-15)


@pytest.mark.parametrize("single_root", [True, False])
def test_projection_and_linear_description_agree_with_a_general_solver(single_root: bool) -> None:
    rng = np.random.default_rng(3)
    structure = NonProjectiveTrees.dense([3, 1, 2], 2, single_root=single_root)
    point = rng.normal(size=structure.n_parts)
    found = structure.project(point)
    np.testing.assert_allclose(found.z, reference.project(structure, point), atol=1e-6)
    np.testing.assert_array_equal(structure.project(point, warm=found.warm).z, found.z)
    np.testing.assert_allclose(generic.project(structure, point).z, found.z, atol=1e-8)
    for _ in range(5):
        scores = rng.normal(size=structure.n_parts)
        most = reference.maximum(structure, scores)
        np.testing.assert_allclose(structure.argmax(scores).value.sum(), most, atol=1e-9)


def test_the_same_bits_with_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    structure = NonProjectiveTrees.dense(rng.integers(1, 12, size=20), 2)
    scores = rng.normal(size=structure.n_parts)

    def found() -> list[Any]:
        points = structure.argmax(scores), structure.marginals(300 * scores), *structure.k_best(scores, 4)
        return [
            *(p.z for p in points),
            *(p.value for p in points),
            structure.project(scores).z,
            *structure.duals(scores),
        ]

    with threads(1):
        one = found()
    with threads(3):
        three = found()
    for a, b in zip(one, three, strict=True):
        np.testing.assert_array_equal(a, b)


def test_any_width_of_vectors() -> None:
    rng = np.random.default_rng(0)
    structure = NonProjectiveTrees.dense([1, 6, 17, 33], single_root=False)
    scores = rng.normal(size=structure.n_parts)
    wide = structure.argmax(scores), *structure.k_best(scores, 4)
    try:
        _kernels._use_lanes(2)
        narrow = structure.argmax(scores), *structure.k_best(scores, 4)
    finally:
        _kernels._use_lanes(0)
    for a, b in zip(wide, narrow, strict=True):
        np.testing.assert_array_equal(a.z, b.z)


def test_keeps_the_promises_of_structures() -> None:
    rng = np.random.default_rng(2)
    check_structure(random_nonprojective(rng, 4, listed=False), rng)
    check_structure(random_nonprojective(rng, 4, tokens=3, listed=True), rng)


def test_candidates_without_a_tree_are_refused() -> None:
    arcs, offsets = [(0, 1), (0, 1), (0, 2)], [0, 1, 3]
    with pytest.raises(ValueError, match="example 1: its candidate arcs do not contain a tree with one root"):
        NonProjectiveTrees([1, 2], arcs, offsets)
    NonProjectiveTrees([1, 2], arcs, offsets, single_root=False)
    crossing = [(3, 1), (4, 2), (0, 3), (3, 4)]
    found = NonProjectiveTrees([4], crossing, [0, 4])
    assert found.decode(found.argmax(np.zeros(4)).z)[0].tolist() == [3, 4, 0, 3]
