"""Pairwise ranking: the pairs that are drawn, and the optimum of the objective."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles.tasks.reranking import made_lists

import maxmargin as mm
from maxmargin._sparse import sp
from maxmargin.tasks.reranking.metrics.base import Formula
from maxmargin.tasks.reranking.tuning import pro
from maxmargin.tasks.reranking.tuning.pro import STRENGTHS, Pro


def gradient(lists, method, weights, better, worse):
    """Of the objective as its docstring has it, pair by pair."""
    rows = lists.rows if isinstance(lists.rows, np.ndarray) else lists.rows.toarray()
    total = weights / method.C
    for one, two in zip(better.tolist(), worse.tolist(), strict=True):
        delta = rows[one] - rows[two]
        v = lists.quality[one] - lists.quality[two] if method.weighted else 1.0
        total = total - v / method.keep * delta / (1 + np.exp(weights @ delta))
    return total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("signs", [(0, 0, 0), (1, -1, 1), (-1, 1, 0)])
def test_the_weights_are_optimal(weighted, sparse, signs):
    lists = made_lists(1, n=12, formula=Formula.MEAN, learnable=1.0, signs=signs)
    if sparse:
        lists = replace(lists, rows=sp.csr_array(lists.rows))
    method = Pro(C=0.7, samples=60, keep=20, weighted=weighted)
    tuned = method.tune(lists, seed=4)
    slope = gradient(lists, method, tuned.weights, *method.pairs(lists, 4))
    assert (lists.signs * tuned.weights >= 0).all()
    free = (lists.signs == 0) | (tuned.weights != 0)
    np.testing.assert_allclose(slope[free], 0.0, atol=1e-4)
    assert (lists.signs[~free] * slope[~free] >= -1e-4).all()


def test_pairs_are_drawn_once_for_all_strengths():
    """And again for other settings, another seed and other lists."""
    lists = made_lists(1, n=12, formula=Formula.MEAN)
    method = Pro(samples=60, keep=20)
    first = method.pairs(lists, 4)
    assert replace(method, C=3.0).pairs(lists, 4) is first
    for other, seed in ((replace(method, keep=10), 4), (method, 5)):
        found, alone = other.pairs(lists, seed), other.pairs(replace(lists), seed)
        assert found is not first
        np.testing.assert_array_equal(found, alone)
    np.testing.assert_array_equal(method.pairs(lists, 4), first)


def test_pairs_are_the_most_different_of_those_drawn():
    lists = made_lists(2, n=9, most=30, formula=Formula.MEAN)
    method = Pro(samples=300, keep=7, min_difference=0.4)
    better, worse = method.pairs(lists, 0)
    owner = np.repeat(np.arange(len(lists)), np.diff(lists.offsets))
    assert (owner[better] == owner[worse]).all()
    difference = lists.quality[better] - lists.quality[worse]
    assert (difference >= 0.4).all()
    everything = replace(method, keep=300).pairs(lists, 0)
    for i in range(len(lists)):
        drawn = np.sort((lists.quality[everything[0]] - lists.quality[everything[1]])[owner[everything[0]] == i])
        np.testing.assert_array_equal(np.sort(difference[owner[better] == i]), drawn[-7:])
        if lists.offsets[i + 1] - lists.offsets[i] == 1:
            assert not len(drawn)


def test_pairs_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch):
    lists = made_lists(3, n=20, formula=Formula.MEAN)
    method = Pro(samples=40, keep=5)
    first = method.pairs(lists, 1)
    monkeypatch.setattr(pro, "_DRAWS_AT_ONCE", 100)
    np.testing.assert_array_equal(method.pairs(lists, 1), first)


def test_learns_the_features_that_matter():
    lists = made_lists(1, n=60, most=20, d=4, formula=Formula.MEAN, learnable=2.0)
    truth = np.linspace(-1, 1, 4)
    for C in STRENGTHS:
        tuned = Pro(C=C).tune(lists)
        assert tuned.weights @ truth / np.linalg.norm(tuned.weights) / np.linalg.norm(truth) > 0.95
        assert tuned.details["quality"] == lists.corpus_quality(lists.choose(tuned.weights))


def test_wide_sparse_rows_threads_and_seeds():
    lists = made_lists(5, n=20, formula=Formula.CHRF)
    at = np.array([1, 50, 999])
    narrow = sp.csr_array(lists.rows)
    wide = sp.csr_array((narrow.data, at[narrow.indices], narrow.indptr), shape=(len(lists.rows), 1000))
    method = Pro(samples=100, min_difference=0.01)
    first = method.tune(replace(lists, rows=narrow), seed=1).weights
    found = method.tune(replace(lists, rows=wide, signs=np.zeros(1000, dtype=np.int8)), seed=1).weights
    assert found[at].tobytes() == first.tobytes()
    with mm.threads(2):
        assert method.tune(replace(lists, rows=narrow), seed=1).weights.tobytes() == first.tobytes()
    assert method.tune(replace(lists, rows=narrow), seed=2).weights.tobytes() != first.tobytes()


@pytest.mark.parametrize("sparse", [False, True])
def test_lists_without_pairs_give_zero_weights(sparse):
    lists = made_lists(0, most=1)
    tuned = Pro().tune(replace(lists, rows=sp.csr_array(lists.rows)) if sparse else lists)
    assert not tuned.weights.any()
    assert tuned.details["pairs"] == 0


def test_candidates_and_bad_settings():
    assert [method.describe() for method in Pro().candidates()] == [{"C": C} for C in STRENGTHS]
    assert [method.describe() for method in Pro(C=2.0).candidates()] == [{"C": 2.0}]
    for settings in (
        {"C": -1.0},
        {"samples": 0},
        {"keep": 0},
        {"min_difference": -0.1},
        {"weighted": 1},
        {"max_iter": 0},
    ):
        with pytest.raises(ValueError, match=next(iter(settings))):
            Pro(**settings)
