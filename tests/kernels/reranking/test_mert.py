"""Searches along lines of weights against enumeration of all crossings, and envelopes against dense grids."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.tasks.reranking import best_on_line, made_lists

from maxmargin.structures._arrays import offsets_of
from maxmargin.tasks import _kernels
from maxmargin.tasks.reranking.metrics.base import Formula
from maxmargin.tasks.reranking.tuning.ascent import ListLines, search


def prepared(lists, directions=None, threads=1):
    extra = np.zeros((0, lists.n_features)) if directions is None else directions
    return _kernels.MertLists.prepare(
        lists.offsets, lists.rows, lists.statistics, int(lists.metric.formula), lists.metric.beta, extra, threads
    )


def best_of_lists(scores, offsets):
    return np.array([first + np.argmax(scores[first:last]) for first, last in itertools.pairwise(offsets)])


@given(
    seed=st.integers(0, 10**6),
    formula=st.sampled_from(list(Formula)),
    whole=st.booleans(),
    signed=st.booleans(),
    scale=st.sampled_from([1.0, 1e-9, 1e9]),
)
def test_a_search_finds_the_best_of_all_intervals(seed, formula, whole, signed, scale):
    rng = np.random.default_rng(seed)
    signs = rng.integers(-1, 2, size=3) if signed else None
    lists = made_lists(seed, formula=formula, whole=whole, scale=scale, signs=signs)
    weights = rng.standard_normal(3)
    weights = np.where(lists.signs == 0, weights, lists.signs * np.abs(weights))
    direction = rng.standard_normal((1, 3))
    for j, line in enumerate([*np.eye(3), direction[0]]):
        gamma, value, here = prepared(lists, direction).search(weights, lists.signs, j)
        assert value == pytest.approx(best_on_line(lists, weights, line), abs=1e-9)
        assert value >= here
        moved = weights + gamma * line
        assert (lists.signs * moved >= -1e-12).all()
        assert lists.corpus_quality(lists.choose(moved)) == pytest.approx(value, abs=1e-9)
        by_python = search(ListLines(lists), weights, line, lists.signs)
        assert by_python == pytest.approx((gamma, value, here), rel=1e-6, abs=1e-9)


@given(
    seed=st.integers(0, 10**6), size=st.integers(1, 80), kind=st.sampled_from(["free", "whole", "parallel", "chain"])
)
def test_envelopes_have_the_highest_line_everywhere(seed, size, kind):
    rng = np.random.default_rng(seed)
    offsets = offsets_of([size, 1, size])
    n = int(offsets[-1])
    scores, slopes = rng.standard_normal((2, n))
    if kind == "whole":
        scores, slopes = rng.integers(-3, 4, size=(2, n)).astype(np.float64)
    elif kind == "parallel":
        slopes[:] = 0.25
    elif kind == "chain":  # all lines are on the envelope
        scores = -np.square(slopes)
    ends, begin, line = _kernels.line_envelopes(offsets, scores, slopes, 2)
    for i in range(3):
        own = slice(ends[i], ends[i + 1])
        assert begin[own][0] == -np.inf
        assert (np.diff(begin[own]) > 0).all()
        assert (np.diff(slopes[line[own]]) > 0).all()
    for gamma in np.concatenate([rng.uniform(-4, 4, size=50), [-1e6, 1e6]]):
        chosen = [
            line[ends[i] : ends[i + 1]][np.searchsorted(begin[ends[i] : ends[i + 1]], gamma) - 1] for i in range(3)
        ]
        values = scores + gamma * slopes
        best = best_of_lists(values, offsets)
        np.testing.assert_allclose(values[chosen], values[best], rtol=1e-9, atol=1e-9)
        if kind == "whole":
            clear = [np.sum(values[offsets[i] : offsets[i + 1]] >= values[best[i]] - 1e-9) == 1 for i in range(3)]
            equal = [scores[c] == scores[b] and slopes[c] == slopes[b] for c, b in zip(chosen, best, strict=True)]
            assert all(c == b for c, b, sure, same in zip(chosen, best, clear, equal, strict=True) if sure or same)


@pytest.mark.usefixtures("every_vector_length")
def test_long_lists_at_every_vector_length():
    rng = np.random.default_rng(3)
    for n in (15, 16, 17, 31, 64, 200, 1001):
        scores, slopes = rng.standard_normal((2, n)) @ np.diag(rng.uniform(0.5, 2, size=n))
        scores += 3 * slopes
        _, begin, line = _kernels.line_envelopes(np.array([0, n]), scores, slopes, 1)
        for t in range(len(line)):
            right = begin[t + 1] if t + 1 < len(begin) else begin[t] + 1
            left = begin[t] if t else right - 1
            assert line[t] == np.argmax(scores + 0.5 * (left + right) * slopes)


def test_many_changes_are_sorted():
    lists = made_lists(5, n=300, most=20, formula=Formula.MEAN)
    weights = np.array([1.0, -0.5, 0.25])
    gamma, value, here = prepared(lists).search(weights, lists.signs, 0)
    expected = search(ListLines(lists), weights, np.eye(3)[0], lists.signs)
    assert (gamma, value, here) == pytest.approx(expected, rel=1e-9)


def test_changes_that_nearly_agree_are_sorted():
    # All crossings lie within 1e-9 of 1, but for a few: digits alone cannot put them in order.
    rng = np.random.default_rng(2)
    n = 2000
    at = 1.0 + 1e-6 * rng.permutation(n) / n
    lists = made_lists(0, n=1, d=2, formula=Formula.MEAN)
    rows = np.zeros((2 * n, 2))
    rows[1::2, 0], rows[1::2, 1] = -at, 1.0
    statistics = np.stack([rng.standard_normal(2 * n), np.ones(2 * n)], axis=1)
    lists = type(lists)(offsets_of([2] * n), rows, statistics, lists.metric, lists.signs)
    weights = np.array([1.0, 0.0])
    found = prepared(lists).search(weights, lists.signs, 1)
    assert found == pytest.approx(search(ListLines(lists), weights, np.eye(2)[1], lists.signs), rel=1e-12)
    assert found[1] == pytest.approx(lists.corpus_quality(lists.choose(weights + found[0] * np.eye(2)[1])))


def test_intervals():
    best = _kernels.best_interval
    changes = np.array([-2.0, 1.0, 2.0])
    inf = np.inf
    assert best(changes, np.array([0.0, 1.0, 3.0, 2.0]), -inf, inf, 1.0) == (1.5, 3.0, 1.0)
    # Of equal ones the widest.
    assert best(changes, np.array([0.0, 3.0, 3.0, 2.0]), -inf, inf, 1.0) == (-0.5, 3.0, 3.0)
    # Without an end: as far beyond the last change as that is from 0, or one reach.
    assert best(changes, np.array([0.0, 1.0, 1.0, 2.0]), -inf, inf, 1.0)[0] == 3.0
    assert best(changes, np.array([0.0, 1.0, 1.0, 2.0]), -inf, inf, 8.0)[0] == 6.0
    assert best(changes, np.array([5.0, 1.0, 1.0, 2.0]), -3.0, inf, 1.0)[0] == -2.5
    # Too narrow to be hit.
    assert best(np.array([1.0, 1.0 + 1e-13]), np.array([0.0, 9.0, 1.0]), -inf, inf, 1.0)[1] == 1.0
    assert best(np.zeros(0), np.array([4.0]), -inf, inf, 1.0) == (0.0, 4.0, 4.0)


@pytest.mark.parametrize("formula", list(Formula))
def test_ascents_have_the_same_bits_for_any_number_of_threads(formula):
    lists = made_lists(11, n=40, most=30, d=4, formula=formula)
    rng = np.random.default_rng(0)
    starts, directions, found = rng.uniform(-1, 1, size=(7, 4)), rng.standard_normal((3, 4)), []
    for threads in (1, 2, 5):
        ends, quality, searches = starts.copy(), np.empty(7), np.empty(7, dtype=np.int64)
        prepared(lists, directions, threads).ascend(ends, lists.signs, 30, 1e-10, quality, searches, threads)
        found.append((ends.tobytes(), quality.tobytes(), searches.tobytes()))
        for end, value in zip(ends, quality, strict=True):
            assert lists.corpus_quality(lists.choose(end)) == pytest.approx(value, abs=1e-12)
    assert found[0] == found[1] == found[2]


def test_bad_arguments_are_refused():
    lists = made_lists(0)
    ready = prepared(lists)
    with pytest.raises(ValueError, match="no such direction"):
        ready.search(np.zeros(3), lists.signs, 3)
    with pytest.raises(ValueError, match="entry per feature"):
        ready.search(np.zeros(2), lists.signs, 0)
    with pytest.raises(ValueError, match="every list must have a hypothesis"):
        _kernels.line_envelopes(np.array([0, 0, 2]), np.zeros(2), np.zeros(2), 1)
    with pytest.raises(ValueError, match="so many statistics"):
        _kernels.MertLists.prepare(np.array([0, 1]), np.zeros((1, 2)), np.zeros((1, 3)), 0, 1.0, np.zeros((0, 2)), 1)
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match="NaN or infinite"):
            _kernels.line_envelopes(np.array([0, 2]), np.array([0.0, wrong]), np.zeros(2), 1)
        with pytest.raises(ValueError, match="must be finite"):
            _kernels.MertLists.prepare(
                np.array([0, 1]), np.full((1, 2), wrong), np.zeros((1, 2)), 3, 1.0, np.zeros((0, 2)), 1
            )
    with pytest.raises(ValueError, match="one value more"):
        _kernels.best_interval(np.zeros(2), np.zeros(2), -1.0, 1.0, 1.0)
