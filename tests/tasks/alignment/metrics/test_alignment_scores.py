"""Scores against sets, zero-division rules, intervals and comparisons."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.tasks.alignment.io.links import Prediction, Reference, as_links
from maxmargin.tasks.alignment.metrics import scores
from maxmargin.tasks.alignment.metrics.scores import compare_scores, evaluate, interval_of
from maxmargin.tasks.common.resampling import Interval

LINKS = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14)


def by_sets(pairs):
    """The scores of a list of (sure, possible, predicted), by Python sets."""
    counts = np.zeros(5, dtype=int)
    exact = 0
    for sure, possible, predicted in pairs:
        possible = possible | sure
        counts += [len(predicted), len(sure), len(possible), len(predicted & sure), len(predicted & possible)]
        exact += sure <= predicted <= possible
    a, s, _, a_s, a_p = counts.tolist()
    precision = a_p / a if a else 1.0
    recall = a_s / s if s else 1.0
    return {
        "aer": 1 - (a_s + a_p) / (a + s) if a + s else 0.0,
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        "balance": precision - recall,
        "sentences": len(pairs),
        "exact": exact,
        **dict(zip(scores._COUNTS, counts.tolist(), strict=True)),
    }


@given(st.lists(st.tuples(LINKS, LINKS, LINKS), max_size=6))
def test_scores_are_those_of_sets(pairs):
    references = [Reference.of(sure, possible) for sure, possible, _ in pairs]
    predictions = [as_links(predicted) for *_, predicted in pairs]
    scores = evaluate(references, predictions)
    assert scores.as_dict() == pytest.approx(by_sets(pairs))
    for one, pair in zip(scores.per_sentence, pairs, strict=True):
        assert one.as_dict() == pytest.approx(by_sets([pair]))
    assert evaluate(references, [Prediction(links) for links in predictions]) == scores
    # A reference that does not repeat its sure links among the possible ones, links out of order and repeated.
    bare = [Reference(as_links(sure)[::-1].copy(), as_links(possible - sure)) for sure, possible, _ in pairs]
    repeated = [np.concatenate([links[::-1], links]) for links in predictions]
    assert evaluate(bare, repeated) == scores


def test_far_positions():
    reference = Reference.of([(10**9, 10**9), (0, 10**9)])
    references, predictions = [reference] * 20, [as_links([(10**9, 10**9), (10**9, 0)])] * 20
    scores = evaluate(references, predictions)
    assert (scores.predicted_sure, scores.predicted, scores.sure) == (20, 40, 40)


def one(sure, possible, predicted):
    return evaluate([Reference.of(sure, possible)], [as_links(predicted)])


def test_zero_division():
    nothing = one([], [], [])
    assert (nothing.aer, nothing.precision, nothing.recall, nothing.f1, nothing.balance) == (0, 1, 1, 1, 0)
    assert nothing.exact == 1
    silent = one([(0, 0)], [], [])
    assert (silent.aer, silent.precision, silent.recall, silent.f1, silent.balance) == (1, 1, 0, 0, 1)
    unsure = one([], [(0, 0)], [(0, 0)])
    assert (unsure.aer, unsure.precision, unsure.recall, unsure.f1) == (0, 1, 1, 1)
    wrong = one([], [], [(0, 0)])
    assert (wrong.aer, wrong.precision, wrong.recall, wrong.f1) == (1, 0, 1, 0)
    both = one([(0, 0)], [], [(1, 1)])
    assert (both.aer, both.precision, both.recall, both.f1) == (1, 0, 0, 0)
    empty = evaluate([], [])
    assert (empty.aer, empty.sentences, empty.per_sentence) == (0, 0, [])


def test_balance_says_too_few_or_too_many():
    gold = [(0, 0), (1, 1)]
    assert one(gold, [], [(0, 0)]).balance > 0
    assert one(gold, [], [*gold, (2, 2)]).balance < 0


def test_negative_positions():
    """(1, -1) beside columns 0 and 1 would count as (0, 1)."""
    wrong = np.array([[1, -1]])
    message = r"sentence 2: link \(1, -1\) has a negative position; positions count from 0"
    none = as_links([])
    with pytest.raises(ValueError, match=message):
        evaluate([Reference.of([(0, 1)])] * 2, [none, wrong])
    with pytest.raises(ValueError, match=message):
        evaluate([Reference.of([(0, 1)]), Reference(wrong, wrong)], [none, none])
    for odd in (wrong, [(1, -1)], np.array([[2**63, 0]], dtype=np.uint64)):
        with pytest.raises(ValueError, match="positions from 0; one is negative, or too large"):
            as_links(odd)


def test_refused():
    reference, links = Reference.of([(0, 0)]), as_links([(0, 0)])
    with pytest.raises(ValueError, match="1 sentence pairs have references and 2 predictions"):
        evaluate([reference], [links, links])
    with pytest.raises(ValueError, match="sentence 2: links must be an int64 array"):
        evaluate([reference] * 2, [links, links.astype(float)])
    with pytest.raises(ValueError, match="sentence 1: links must be an int64 array"):
        evaluate([reference] * 2, [[], links])
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        interval_of(evaluate([reference], [links]), level=95)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        compare_scores(*[evaluate([reference], [links])] * 2, level=0)
    with pytest.raises(ValueError, match="resamples must be an integer >= 1"):
        interval_of(evaluate([reference], [links]), resamples=0)
    with pytest.raises(ValueError, match="1 sentences and the second 2"):
        compare_scores(evaluate([reference], [links]), evaluate([reference] * 2, [links] * 2))


def corpus(n, right, seed):
    """References of ten links each, and predictions each of which is right with a given chance."""
    rng = np.random.default_rng(seed)
    gold = np.stack([np.arange(10), np.arange(10)], axis=1)
    references = [Reference.of(gold)] * n
    return references, [as_links(gold + np.outer(rng.random(10) > right, [0, 10])) for _ in range(n)]


def test_interval_is_that_of_resampled_sentences():
    """Against the plain bootstrap, and against the spread of fresh corpora."""
    references, predictions = corpus(60, 0.8, 1)
    scores = evaluate(references, predictions)
    found = interval_of(scores, resamples=4000)
    assert found.low < scores.aer < found.high
    rng = np.random.default_rng(5)
    drawn = scores.counts[rng.integers(0, 60, size=(4000, 60))].sum(axis=1)
    rates = 1 - (drawn[:, 3] + drawn[:, 4]) / (drawn[:, 0] + drawn[:, 1])
    assert np.allclose([found.low, found.high], np.quantile(rates, [0.025, 0.975]), atol=0.005)
    fresh = [evaluate(*corpus(60, 0.8, seed)).aer for seed in range(100, 300)]
    assert found.high - found.low == pytest.approx(np.subtract(*np.quantile(fresh, [0.975, 0.025])), rel=0.3)
    wider = interval_of(scores, level=0.99, resamples=4000)
    assert wider.low < found.low < found.high < wider.high


def test_intervals_depend_on_the_seed_alone():
    scores = evaluate(*corpus(20, 0.8, 1))
    assert interval_of(scores, seed=3) == interval_of(scores, seed=3)
    few = [interval_of(scores, resamples=7, seed=seed) for seed in range(5)]
    assert len(set(few)) > 1
    assert interval_of(evaluate([], [])) == Interval(0.0, 0.0, 0.95)
    assert interval_of(evaluate(*corpus(5, 1.1, 0))) == Interval(0.0, 0.0, 0.95)


def test_comparison():
    good, bad, other = (evaluate(*corpus(60, right, seed)) for right, seed in ((0.9, 1), (0.7, 2), (0.9, 3)))
    found = compare_scores(bad, good)
    assert found.difference == pytest.approx(good.aer - bad.aer)
    assert found.low < found.difference < found.high < 0
    assert 0 < found.p_value < 0.01
    back = compare_scores(good, bad)
    assert back.difference == -found.difference
    assert back.p_value < 0.01
    same = compare_scores(good, good)
    assert (same.difference, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    assert compare_scores(good, other).p_value > 0.05


def test_p_values_of_like_systems_are_spread_evenly():
    systems = [evaluate(*corpus(30, 0.8, seed)) for seed in (*range(60), *range(500, 560))]
    values = [compare_scores(*pair, resamples=300).p_value for pair in zip(systems[:60], systems[60:], strict=True)]
    assert 0.3 < np.mean(values) < 0.7
    assert np.mean(np.array(values) < 0.1) < 0.3
