"""Kernels of translation models against twins that enumerate alignments."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.tasks import translation as twin

from maxmargin.tasks import _kernels

UNSEEN = 1e-7
SCALE = 2.0**50
CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # single precision
NONE = np.zeros(0)


def packed(sentences):
    start = np.concatenate([[0], np.cumsum([len(one) for one in sentences])]).astype(np.int64)
    return start, np.array([word for one in sentences for word in one], dtype=np.int32)


def sentence_pairs(pairs, n_source=5, n_target=5):
    return _kernels.SentencePairs(
        *packed([source for source, _ in pairs]), *packed([target for _, target in pairs]), n_source, n_target
    )


class Case:
    """Random tables for a bitext."""

    def __init__(self, pairs, *, seed=0, n_words=5, width=3, power=1.0, threads=1):
        rng = np.random.default_rng(seed)
        self.pairs, self.n_words, self.threads = pairs, n_words, threads
        self.checked = sentence_pairs(pairs, n_words, n_words)
        self.row_start, self.column, self.together = _kernels.bitext_lexicon(self.checked, threads)
        self.n_slots = len(self.column)
        self.tables = [
            (rng.random(shape) ** power).astype(np.float32) for shape in ((self.n_slots, 2), n_words, n_words)
        ]
        self.jumps = rng.random((2, 2 * width + 1)) + 0.01
        self.cells = sum(len(source) * len(target) for source, target in pairs)
        self.longest = max([len(side) for pair in pairs for side in pair], default=0)

    def prune(self, kept):
        """Only the marked entries of the lexicon."""
        self.row_start = np.concatenate([[0], np.cumsum(kept)])[self.row_start]
        self.column, self.together, self.tables[0] = self.column[kept], self.together[kept], self.tables[0][kept]
        self.n_slots = len(self.column)

    @property
    def slot(self):
        rows = np.repeat(np.arange(self.n_words), np.diff(self.row_start))
        return {key: slot for slot, key in enumerate(zip(rows.tolist(), self.column.tolist(), strict=True))}

    def slots(self):
        slots = np.empty(self.cells, dtype=np.int64)
        _kernels.WordPairs(self.row_start, self.column, self.n_words).find(self.checked, slots, self.threads)
        return slots

    def posteriors(self, markov, null=0.1):
        found = [
            np.empty(self.cells),
            np.empty(self.cells),
            np.empty(sum(len(target) for _, target in self.pairs)),
            np.empty(sum(len(source) for source, _ in self.pairs)),
            np.empty((len(self.pairs), 2)),
        ]
        jumps = self.jumps if markov else (NONE, NONE)
        _kernels.translation_posteriors(
            self.checked, self.slots(), *self.tables, UNSEEN, *jumps, null, *found, self.threads
        )
        return found

    def expect(self, markov, agree=False, null=0.1, longest=None, block_cells=1 << 20, unseen=UNSEEN, first=0, every=1):
        longest = self.longest if longest is None else longest
        types = np.float32, np.uint64, np.uint64
        counts = [np.zeros(table.shape, dtype=dtype) for table, dtype in zip(self.tables, types, strict=True)]
        distances = np.zeros(self.jumps.shape, dtype=np.uint64)
        departures = np.zeros((2, longest + 1, longest + 1), dtype=np.uint64)
        likelihood = np.empty((len(self.pairs), 2))
        jumps = self.jumps if markov else (NONE, NONE)
        _kernels.translation_expect(
            self.checked, self.row_start, self.column, *self.tables, unseen, *jumps, null, agree, longest, SCALE,
            *counts, distances, departures, likelihood, block_cells, first, every, self.threads,
        )  # fmt: skip
        return [*counts, distances, departures, likelihood]

    def beliefs(self, markov, null=0.1, unseen=UNSEEN):
        """The twin's, of every pair: forward, and backward (links turned to source x target)."""
        word, null_target, null_source = (table.astype(np.float64) for table in self.tables)
        slot = self.slot

        def emission(source, target, way):
            grid = [[word[slot[e, f], way] if (e, f) in slot else unseen for f in target] for e in source]
            return np.maximum(np.array(grid).reshape(len(source), len(target)), 1e-30)

        def empty(table, words):
            return np.array([max(table[word], 1e-30) if word >= 0 else unseen for word in words])

        for source, target in self.pairs:
            grids = emission(source, target, 0), emission(source, target, 1).T
            nulls = empty(null_target, target), empty(null_source, source)
            if markov:
                yield [twin.hmm(grids[way], nulls[way], self.jumps[way], null) for way in (0, 1)]
            else:
                yield [twin.model1(grids[way], nulls[way]) for way in (0, 1)]


def sentence(most, unknown=True):
    return st.lists(st.integers(-1 if unknown else 0, 4), max_size=most)


TINY = st.lists(st.tuples(sentence(4), sentence(4)), max_size=4)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.tuples(sentence(9), sentence(9)), max_size=30), st.integers(1, 3))
def test_the_lexicon_has_the_words_that_meet(pairs, threads):
    case = Case(pairs, threads=threads)
    rows = np.repeat(np.arange(5), np.diff(case.row_start)).tolist()
    found = dict(zip(zip(rows, case.column.tolist(), strict=True), case.together.tolist(), strict=True))
    assert list(found.items()) == list(twin.lexicon(pairs).items())
    expected = [case.slot.get((e, f), -1) for source, target in pairs for e in source for f in target]
    assert case.slots().tolist() == expected


@settings(deadline=None, derandomize=True, max_examples=60)
@given(TINY, st.integers(0, 99), st.booleans(), st.sampled_from([0.0, 0.1, 0.7]), st.integers(1, 3))
def test_posteriors_are_sums_over_all_alignments(pairs, seed, markov, null, width):
    case = Case(pairs, seed=seed, width=width, power=4.0)
    forward, backward, null_target, null_source, likelihood = case.posteriors(markov, null)
    both = list(case.beliefs(markov, null))
    cell = source_at = target_at = 0
    for number, ((source, target), (forth, back)) in enumerate(zip(pairs, both, strict=True)):
        J, K = len(source), len(target)
        grid = slice(cell, cell + J * K)
        np.testing.assert_allclose(forward[grid].reshape(J, K), forth.links, **CLOSE)
        np.testing.assert_allclose(backward[grid].reshape(J, K), back.links.T, **CLOSE)
        np.testing.assert_allclose(null_target[target_at : target_at + K], forth.null, **CLOSE)
        np.testing.assert_allclose(null_source[source_at : source_at + J], back.null, **CLOSE)
        expected = [forth.likelihood, back.likelihood]
        np.testing.assert_allclose(likelihood[number], expected, **CLOSE)
        cell, source_at, target_at = cell + J * K, source_at + J, target_at + K


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    TINY, st.integers(0, 99), st.booleans(), st.booleans(), st.sampled_from([0.0, 0.1, 0.7]), st.sampled_from([2, 4]),
    st.sampled_from([1, 9, 1 << 20]), st.booleans(),
)  # fmt: skip
def test_expected_counts_are_those_of_the_twin(pairs, seed, markov, agree, null, longest, block_cells, pruned):
    case = Case(pairs, seed=seed, power=3.0)
    if pruned:
        case.prune(np.arange(case.n_slots) % 3 > 0)
    word, null_target, null_source = (np.zeros(table.shape) for table in case.tables)
    distances, departures = np.zeros(case.jumps.shape), np.zeros((2, longest + 1, longest + 1))
    likelihoods = []
    for (source, target), (forth, back) in zip(pairs, case.beliefs(markov, null), strict=True):
        if not source or not target or max(len(source), len(target)) > longest:
            likelihoods.append([0.0, 0.0])
            continue
        likelihoods.append([forth.likelihood, back.likelihood])
        links = [forth.links, back.links.T]
        if agree:
            links = [links[0] * links[1]] * 2
        for j, e in enumerate(source):
            null_source[e] += back.null[j] if e >= 0 else 0
            for k, f in enumerate(target):
                if (e, f) in case.slot:
                    word[case.slot[e, f]] += links[0][j, k], links[1][j, k]
        for k, f in enumerate(target):
            null_target[f] += forth.null[k] if f >= 0 else 0
        for way, (believed, n) in enumerate(((forth, len(source)), (back, len(target)))):
            distances[way] += twin.jump_counts(believed.jumps, 3)
            departures[way, : n + 1, n] += believed.jumps.sum(axis=1)
    found = case.expect(markov, agree, null, longest, block_cells)
    np.testing.assert_allclose(found[0], word, **CLOSE)
    for values, expected in zip(found[1:], [null_target, null_source, distances, departures], strict=False):
        np.testing.assert_allclose(values / SCALE, expected, **CLOSE)
    np.testing.assert_allclose(found[-1], np.reshape(likelihoods, (-1, 2)), **CLOSE)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(TINY, st.integers(0, 99), st.sampled_from([0.0, 0.01, 1.0, 7.0]), st.integers(1, 3))
def test_the_maximization_step(pairs, seed, prior, threads):
    from scipy.special import digamma

    case = Case(pairs, threads=threads)
    counts = np.random.default_rng(seed).random((case.n_slots, 2)) ** 3 * (np.arange(case.n_slots) % 3 > 0)[:, None]
    word = counts.astype(np.float32)
    _kernels.translation_maximize(case.row_start, case.column, 5, prior, word, threads)
    rows = np.repeat(np.arange(5), np.diff(case.row_start))
    for way, groups in ((0, rows), (1, case.column)):
        total = np.bincount(groups, weights=counts[:, way], minlength=5)[groups]
        entries = np.bincount(groups, minlength=5)[groups]
        if prior > 0:
            expected = np.exp(digamma(counts[:, way] + prior) - digamma(total + prior * entries))
        else:
            expected = np.divide(counts[:, way], total, out=np.zeros(len(total)), where=total > 0)
        np.testing.assert_allclose(word[:, way], expected, rtol=1e-5, atol=1e-30)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(TINY, st.integers(0, 99), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_slots_that_are_probable_or_the_best_of_a_word(pairs, seed, least):
    case = Case(pairs)
    word = np.random.default_rng(seed).random((case.n_slots, 2)).astype(np.float32)
    kept = np.full(case.n_slots, 7, dtype=np.uint8)
    _kernels.translation_probable(case.row_start, case.column, 5, word, least, kept)
    rows = np.repeat(np.arange(5), np.diff(case.row_start))
    expected = np.sqrt(word[:, 0]) * np.sqrt(word[:, 1]) >= least
    for way, groups in ((0, rows), (1, case.column)):
        best = np.zeros(5, dtype=np.float32)
        np.maximum.at(best, groups, word[:, way])
        expected |= word[:, way] == best[groups]
    np.testing.assert_array_equal(kept, expected)


def text(seed=0, n=40, most=60, n_words=30):
    """Long sentences, with some that are empty or have one word."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most, (n, 2))
    sizes[::9, 0] = 0
    sizes[4::9, 1] = 0
    sizes[2::9] = 1
    return [tuple(rng.integers(-1, n_words, size).tolist() for size in row) for row in sizes.tolist()]


@pytest.mark.parametrize("markov", [False, True])
@pytest.mark.parametrize("power", [1.0, 30.0])
@pytest.mark.parametrize("width", [1, 4, 10, 80])
def test_posteriors_of_long_sentences_sum_to_one(markov, power, width):
    case = Case(text(seed=3), n_words=30, power=power, width=width)
    forward, backward, null_target, null_source, likelihood = case.posteriors(markov)
    cells = np.concatenate([[0], np.cumsum([len(source) * len(target) for source, target in case.pairs])])
    source_start, target_start = (packed([pair[side] for pair in case.pairs])[0] for side in (0, 1))
    for p, (begin, end) in enumerate(pairwise(cells.tolist())):
        shape = len(case.pairs[p][0]), len(case.pairs[p][1])
        columns = forward[begin:end].reshape(shape).sum(axis=0) + null_target[target_start[p] : target_start[p + 1]]
        rows = backward[begin:end].reshape(shape).sum(axis=1) + null_source[source_start[p] : source_start[p + 1]]
        np.testing.assert_allclose(columns, 1.0, atol=1e-5)
        np.testing.assert_allclose(rows, 1.0, atol=1e-5)
    for values in (forward, backward, null_target, null_source):
        assert (values >= 0).all()
        assert (values <= 1 + 1e-5).all()
    assert np.isfinite(likelihood).all()


def dense(emission, null, c, p_null):
    """Forward and backward over a full table of jumps between (position, empty or not), in logarithms."""
    J, K = emission.shape
    width = len(c) // 2
    distance = np.arange(J)[None, :] - np.append(np.arange(J), -1)[:, None]
    table = c[np.clip(distance, -width, width) + width]
    table = (1 - p_null) * table / table.sum(axis=1, keepdims=True)
    ahead, alphas = np.append(np.zeros(J), 1.0), []
    for k in range(K):
        moved, kept = (ahead @ table) * emission[:, k], p_null * null[k] * ahead
        total = moved.sum() + kept.sum()
        alphas.append((ahead, moved / total, total))
        ahead = np.append(moved, 0.0) / total + kept / total
    beta, links, empty, jumps = np.ones(J + 1), np.zeros((J, K)), np.zeros(K), np.zeros((J + 1, J))
    for k in reversed(range(K)):
        before, moved, total = alphas[k]
        links[:, k] = moved * beta[:J]
        empty[k] = (before * beta).sum() * p_null * null[k] / total
        jumps += before[:, None] * table * (emission[:, k] * beta[:J] / total)[None, :]
        beta = table @ (emission[:, k] * beta[:J] / total) + p_null * null[k] / total * beta
    return links, empty, jumps, sum(np.log(total) for _, _, total in alphas)


@pytest.mark.parametrize("width", [1, 2, 7, 10, 25])
def test_long_sentences_against_a_full_table_of_jumps(width, every_vector_length):
    rng = np.random.default_rng(width)
    sizes = [(1, 1), (1, 9), (9, 1), (2, 3), (7, 8), (8, 7), (16, 17), (33, 12), (47, 64), (64, 70)]
    pairs = [(rng.integers(0, 30, j).tolist(), rng.integers(0, 30, k).tolist()) for j, k in sizes]
    case = Case(pairs, seed=width, n_words=30, power=6.0, width=width)
    word = np.maximum(case.tables[0], np.float32(1e-30)).astype(np.float64)
    found, slots = case.posteriors(True, 0.2), case.slots()
    distances, departures = np.zeros(case.jumps.shape), np.zeros((2, case.longest + 1, case.longest + 1))
    cell = s = t = 0
    for number, (source, target) in enumerate(pairs):
        J, K = len(source), len(target)
        grid = slots[cell : cell + J * K].reshape(J, K)
        null_target = case.tables[1][target].astype(np.float64)
        null_source = case.tables[2][source].astype(np.float64)
        for way, (emission, null, where) in enumerate(
            ((word[grid, 0], null_target, slice(t, t + K)), (word[grid, 1].T, null_source, slice(s, s + J)))
        ):
            links, empty, jumps, likelihood = dense(emission, null, case.jumps[way], 0.2)
            mine = found[way][cell : cell + J * K].reshape(J, K)
            np.testing.assert_allclose(mine if way == 0 else mine.T, links, **CLOSE)
            np.testing.assert_allclose(found[2 + way][where], empty, **CLOSE)
            np.testing.assert_allclose(found[4][number, way], likelihood, rtol=1e-6)
            size = len(emission)
            at, i = np.indices((size + 1, size))
            bucket = np.clip(i - (np.where(at == size, -1, at)), -width, width) + width
            distances[way] += np.bincount(bucket.ravel(), weights=jumps.ravel(), minlength=2 * width + 1)
            departures[way, 1 : size + 1, size] += jumps[:size].sum(axis=1)
            departures[way, 0, size] += jumps[size].sum()
        cell, s, t = cell + J * K, s + J, t + K
    counted = case.expect(True, null=0.2)
    np.testing.assert_allclose(counted[3] / SCALE, distances, **CLOSE)
    np.testing.assert_allclose(counted[4] / SCALE, departures, **CLOSE)


@pytest.mark.parametrize("agree", [False, True])
@pytest.mark.parametrize("markov", [False, True])
def test_same_bits_for_any_number_of_threads(markov, agree):
    pairs = text(seed=1, n=400, most=25)
    results = []
    for threads in (1, 2, 3):
        case = Case(pairs, seed=5, n_words=30, threads=threads)
        counted = case.expect(markov, agree, block_cells=5000)
        word = counted[0].copy()
        _kernels.translation_maximize(case.row_start, case.column, 30, 0.01, word, threads)
        results.append([case.row_start, case.column, case.together, *case.posteriors(markov), *counted, word])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert one.tobytes() == two.tobytes()


def test_counts_are_added_to_what_is_there():
    case = Case(text(seed=2, n=70, most=9, n_words=5), threads=2)
    once = case.expect(True)
    totals = [array.copy() for array in once[:-1]]
    _kernels.translation_expect(
        case.checked, case.row_start, case.column, *case.tables, UNSEEN, *case.jumps, 0.1, False, case.longest, SCALE,
        *totals, once[-1], 1 << 20, 0, 1, 2,
    )  # fmt: skip
    for one, two in zip(once, totals, strict=False):
        np.testing.assert_array_equal(2 * one, two)


@pytest.mark.parametrize("markov", [False, True])
def test_rare_words_of_long_rows_are_searched(markov):
    """A block of one pair, and rows that are much longer than its cells: the same counts as those of one block."""
    rng = np.random.default_rng(0)
    pairs = [([0, 1 + number % 3], rng.integers(0, 300, 2).tolist()) for number in range(300)]
    case = Case(pairs, n_words=300)
    assert np.diff(case.row_start).max() > 100
    one, two = case.expect(markov), case.expect(markov, block_cells=1)
    np.testing.assert_allclose(one[0], two[0], rtol=1e-5, atol=1e-7)
    for first, second in zip(one[1:], two[1:], strict=True):
        np.testing.assert_array_equal(first, second)


def test_jumps_are_counted_in_some_pairs_of_a_long_text():
    """Every third of 65 pairs, which are those from number 4 of a text: 6, 9, ... 66."""
    pair = ([0, 1, 2], [1, 0])
    many, fewer = Case([pair] * 65).expect(True, first=4, every=3), Case([pair] * 21).expect(True)
    np.testing.assert_array_equal(many[3], fewer[3])
    np.testing.assert_array_equal(many[4], fewer[4])


@pytest.mark.parametrize("agree", [False, True])
@pytest.mark.parametrize("markov", [False, True])
def test_equal_pairs_are_one_that_counts_as_often(markov, agree):
    some = [*text(seed=3, n=40, most=9, n_words=4), ([], [1]), ([1], []), ([], [])]
    order = np.random.default_rng(0).integers(0, len(some), 300)
    pairs = [some[at] for at in order]
    one, two = (Case(pairs, n_words=4, threads=2) for _ in range(2))
    two.checked = _kernels.SentencePairs(
        *packed([source for source, _ in pairs]), *packed([target for _, target in pairs]), 4, 4, merge=True
    )
    keys = [(tuple(source), tuple(target)) for source, target in pairs]
    two.pairs = list(dict.fromkeys(keys))
    assert (len(one.checked), len(two.checked)) == (300, len(two.pairs))
    assert len(two.pairs) < 60
    lexicons = (_kernels.bitext_lexicon(case.checked, 2) for case in (one, two))
    for first, second in zip(*lexicons, strict=True):
        np.testing.assert_array_equal(first, second)
    counted, merged = one.expect(markov, agree), two.expect(markov, agree)
    for first, second in zip(counted[:-1], merged[:-1], strict=True):
        np.testing.assert_allclose(second, first, rtol=1e-5)
    of_key = dict(zip(two.pairs, merged[-1], strict=True))
    likelihood = dict(zip(keys, counted[-1], strict=True))
    for key in two.pairs:
        np.testing.assert_allclose(of_key[key], keys.count(key) * likelihood[key], rtol=1e-9)


def test_lexicons_of_parts_are_those_of_the_whole():
    pairs = text(seed=5, n=40, most=9, n_words=12)
    whole, *parts = (Case(some, n_words=12) for some in (pairs, pairs[:17], pairs[17:]))
    found = [_kernels.bitext_lexicon(case.checked, 1) for case in (whole, *parts)]
    for threads in (1, 2):
        merged = _kernels.merged_lexicon(*found[1], *found[2], threads)
        for one, two in zip(found[0], merged, strict=True):
            np.testing.assert_array_equal(one, two)


def test_no_pairs_and_no_words():
    for pairs in ([], [([], [])], [([], [0, 1]), ([2], [])]):
        case = Case(pairs)
        for markov in (False, True):
            posteriors = case.posteriors(markov)
            np.testing.assert_array_equal(posteriors[2], 1.0)
            np.testing.assert_array_equal(posteriors[3], 1.0)
            counted = case.expect(markov)
            assert not any(array.any() for array in counted[:-1])
    none = Case([], n_words=0)
    assert none.n_slots == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e-45, 1e30])
@pytest.mark.parametrize("markov", [False, True])
def test_bad_probabilities_give_finite_posteriors(value, markov):
    case = Case(text(seed=4, n=20, most=9, n_words=5))
    for table in case.tables:
        table.ravel()[::3] = value
    for values in case.posteriors(markov):
        assert np.isfinite(values).all()
    case.expect(markov)


def good_arguments():
    case = Case([([0, 1], [1, 2, 3]), ([4], [0])])
    expected = {
        "pairs": case.checked,
        "row_start": case.row_start,
        "column": case.column,
        **dict(zip(("word", "null_target", "null_source"), case.tables, strict=True)),
        "unseen": UNSEEN,
        "forth": case.jumps[0].copy(),
        "back": case.jumps[1].copy(),
        "null": 0.1,
        "agree": True,
        "longest": 3,
        "scale": SCALE,
        "counts": np.zeros(case.tables[0].shape, dtype=np.float32),
        "null_target_counts": np.zeros(5, dtype=np.uint64),
        "null_source_counts": np.zeros(5, dtype=np.uint64),
        "distances": np.zeros((2, 7), dtype=np.uint64),
        "departures": np.zeros((2, 4, 4), dtype=np.uint64),
        "likelihood": np.empty((2, 2)),
        "block_cells": 1 << 20,
        "first": 0,
        "every": 1,
        "threads": 1,
    }
    believed = {
        "pairs": case.checked,
        "slots": case.slots(),
        **dict(zip(("word", "null_target", "null_source"), case.tables, strict=True)),
        "unseen": UNSEEN,
        "forth": case.jumps[0].copy(),
        "back": case.jumps[1].copy(),
        "null": 0.1,
        "forward": np.empty(7),
        "backward": np.empty(7),
        "empty_target": np.empty(4),
        "empty_source": np.empty(3),
        "likelihood": np.empty((2, 2)),
        "threads": 1,
    }
    maximized = {
        "row_start": case.row_start,
        "column": case.column,
        "n_target": 5,
        "prior": 0.0,
        "word": np.zeros(case.tables[0].shape, dtype=np.float32),
        "threads": 1,
    }
    made = {
        "source_start": np.array([0, 2, 3]),
        "source": np.array([0, 1, 4], dtype=np.int32),
        "target_start": np.array([0, 3, 4]),
        "target": np.array([1, 2, 3, 0], dtype=np.int32),
        "n_source": 5,
        "n_target": 5,
    }
    listed = {"row_start": np.array([0, 2, 3]), "column": np.array([0, 4, 1], dtype=np.int32), "n_target": 5}
    return {
        "WordPairs": listed,
        "translation_expect": expected,
        "translation_posteriors": believed,
        "translation_maximize": maximized,
        "translation_probable": {
            "row_start": case.row_start,
            "column": case.column,
            "n_target": 5,
            "word": case.tables[0],
            "least": 0.1,
            "kept": np.zeros(len(case.column), dtype=np.uint8),
        },
        "bitext_lexicon": {"pairs": case.checked, "threads": 1},
        "merged_lexicon": {
            "row_start": np.array([0, 2, 3]),
            "column": np.array([0, 4, 1], dtype=np.int32),
            "together": np.array([1, 2, 3], dtype=np.int32),
            "more_start": np.array([0, 1, 2]),
            "more_column": np.array([4, 1], dtype=np.int32),
            "more_together": np.array([1, 2], dtype=np.int32),
            "threads": 1,
        },
        "SentencePairs": made,
    }


FUNCTIONS = sorted(good_arguments())
ROWS_ALONE = ("WordPairs", "translation_maximize", "translation_probable")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_arrays_of_other_lengths_and_types_are_refused(function):
    good = good_arguments()[function]
    getattr(_kernels, function)(**good)
    for name, value in good.items():
        if not isinstance(value, np.ndarray):
            continue
        for wrong in (value.ravel()[:-1], np.append(value.ravel(), value.ravel()[-1:])):
            if function in ROWS_ALONE and name == "row_start" and len(wrong) > len(value):
                continue  # one more row, which is empty
            with pytest.raises(ValueError, match=r"must|too|fit|outside"):
                getattr(_kernels, function)(**{**good, name: np.ascontiguousarray(wrong)})
        with pytest.raises(TypeError):
            getattr(_kernels, function)(**{**good, name: value.astype(np.complex128)})
        with pytest.raises(TypeError):
            getattr(_kernels, function)(**{**good, name: None})


BAD: list[tuple[str, str, Any]] = [
    *(
        (function, name, values)
        for function in ("translation_expect", "translation_posteriors")
        for name in ("forth", "back")
        for values in (
            [np.nan] * 7,
            [1.0] * 6 + [np.inf],
            [0.0] * 7,
            [5e-324] * 7,
            [1e300] * 7,
            [-1.0] * 7,
            [1.0],
            [1.0] * 6,
        )
    ),
    *(
        (function, "null", value)
        for function in ("translation_expect", "translation_posteriors")
        for value in (np.nan, -0.1, 1.0, np.inf)
    ),
    *(
        (function, "unseen", value)
        for function in ("translation_expect", "translation_posteriors")
        for value in (0.0, 1.0, np.nan, -1.0, 1e-31)
    ),
    ("translation_posteriors", "slots", np.full(7, 2**40)),
    ("translation_posteriors", "slots", np.full(7, 9)),
    *(("translation_expect", "scale", value) for value in (0.0, np.nan, np.inf, 1e300, -1.0)),
    *(("translation_expect", "longest", value) for value in (-1, 2, 2**21)),
    *(("translation_expect", "block_cells", value) for value in (0, -1, 2**40)),
    *(("translation_expect", "first", value) for value in (-1, 2**60)),
    *(("translation_expect", "every", value) for value in (0, -1, 2**60)),
    *(
        (function, "n_target", value)
        for function in ("translation_maximize", "translation_probable")
        for value in (-1, 0, 3, 2**40)
    ),
    *(("translation_probable", "least", value) for value in (-0.1, 1.1, np.nan)),
    *(
        (function, name, values)
        for function in ("translation_expect", "translation_maximize", "translation_probable")
        for name, values in (
            ("row_start", np.array([0, 3, 2, 7, 7, 7])),
            ("row_start", np.array([0, 3, 6, 6, 6, 9])),
            ("column", np.array([1, 2, 3, 1, 2, 3, -1], dtype=np.int32)),
            ("column", np.array([1, 2, 3, 1, 2, 3, 5], dtype=np.int32)),
        )
    ),
    *(("translation_maximize", "prior", value) for value in (-1.0, np.nan, np.inf)),
    *(("WordPairs", "n_target", value) for value in (-1, 0, 4)),
    *(
        ("WordPairs", "row_start", np.array(value, dtype=np.int64))
        for value in ([], [0], [1, 3], [0, 4, 3], [0, -1, 3], [0, 4])
    ),
    *(("WordPairs", "column", np.array(value, dtype=np.int32)) for value in ([0, -1, 1], [0, 5, 1], [])),
    *(("SentencePairs", name, value) for name in ("n_source", "n_target") for value in (-1, 0, 3)),
    *(
        ("SentencePairs", name, np.array(value))
        for name in ("source_start", "target_start")
        for value in ([0, 4, 3], [1, 2, 3], [0, -1, 3], [0, 2, 9], [0])
    ),
    *(
        ("SentencePairs", name, np.array(value, dtype=np.int32))
        for name in ("source", "target")
        for value in ([0, 1, 5, 0], [0, -2, 4, 0])
    ),
]


@pytest.mark.parametrize(("function", "name", "value"), BAD)
def test_values_out_of_range_are_refused(function, name, value):
    good = good_arguments()[function]
    value = np.array(value) if isinstance(value, list) else value
    if isinstance(value, np.ndarray) and name == "source":
        value = value[:3]
    with pytest.raises(ValueError, match=r"must|too|fit|outside|out of range"):
        getattr(_kernels, function)(**{**good, name: value})


def test_slots_of_other_lengths_and_vocabularies_are_refused():
    case = Case([([0, 1], [1, 2, 3]), ([4], [0])])
    lexicon = _kernels.WordPairs(case.row_start, case.column, 5)
    for n in (6, 8):
        with pytest.raises(ValueError, match="one entry per cell"):
            lexicon.find(case.checked, np.empty(n, dtype=np.int64), 1)
    for sizes in ((6, 5), (5, 6)):
        with pytest.raises(ValueError, match="does not fit the vocabularies"):
            lexicon.find(sentence_pairs(case.pairs, *sizes), np.empty(7, dtype=np.int64), 1)


def test_a_lexicon_needs_pairs():
    with pytest.raises(TypeError):
        _kernels.bitext_lexicon(None, 1)
