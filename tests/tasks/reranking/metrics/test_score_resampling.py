"""Intervals and comparisons of any number of statistics, against resamples drawn one by one and against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from maxmargin.tasks.common import resampling
from maxmargin.tasks.reranking import Bleu, Costs, WordErrorRate, compare_scores, score, score_interval

WORDS = [f"w{i}" for i in range(40)]


def corpus(n, errors, seed):
    """References, and hypotheses in which this share of the words is wrong."""
    rng = np.random.default_rng(seed)
    gold = [rng.choice(WORDS, size=12) for _ in range(n)]
    texts = [np.where(rng.random(12) < errors, rng.choice(WORDS, size=12), one) for one in gold]
    return [" ".join(one) for one in texts], [[" ".join(one)] for one in gold]


def statistics(metric, n, errors, seed=0):
    texts, gold = corpus(n, errors, seed)
    return metric.statistics(texts, gold, np.arange(n))


@pytest.mark.parametrize("metric", [Bleu(), WordErrorRate()], ids=lambda metric: metric.name)
def test_interval_is_that_of_resampled_sentences(metric):
    rows = statistics(metric, 60, 0.4)
    rng = np.random.default_rng(1)
    scores = [score(metric, rows[rng.integers(0, 60, size=60)]) for _ in range(3000)]
    found = score_interval(metric, rows, level=0.9, resamples=3000)
    spread = np.quantile(scores, 0.95) - np.quantile(scores, 0.05)
    assert found.low == pytest.approx(np.quantile(scores, 0.05), abs=0.1 * spread)
    assert found.high == pytest.approx(np.quantile(scores, 0.95), abs=0.1 * spread)
    assert found.low < score(metric, rows) < found.high
    assert found == score_interval(metric, rows, level=0.9, resamples=3000)
    assert found != score_interval(metric, rows, level=0.9, resamples=3000, seed=1)


def test_randomization_against_all_swaps():
    metric = Bleu()
    first, second = statistics(metric, 9, 0.5), statistics(metric, 9, 0.3)
    observed = abs(score(metric, second) - score(metric, first))
    as_far = 0
    for swaps in itertools.product([False, True], repeat=9):
        swapped = np.array(swaps)[:, None]
        pair = np.where(swapped, second, first), np.where(swapped, first, second)
        as_far += abs(score(metric, pair[1]) - score(metric, pair[0])) >= observed - 1e-9
    exact = as_far / 2**9
    found = compare_scores(metric, first, second, trials=20000)
    assert found.p_value == pytest.approx(exact, abs=5 * np.sqrt(exact / 20000))
    assert found.difference == pytest.approx(score(metric, second) - score(metric, first))


def test_verdicts():
    wer, bleu = WordErrorRate(), Bleu()
    for metric, better in ((wer, -1), (bleu, 1)):
        bad, good = statistics(metric, 80, 0.5), statistics(metric, 80, 0.2)
        found = compare_scores(metric, bad, good)
        assert found.significant
        assert found.difference * better > 0
        assert found.verdict == "significantly better (p = 0.0001)"
        assert compare_scores(metric, good, bad).verdict == "significantly worse (p = 0.0001)"
        assert found.low < found.difference < found.high
        assert found.low * found.high > 0
        same = compare_scores(metric, good, good)
        assert (same.p_value, same.bootstrap_p_value) == (1.0, 1.0)
        assert same.verdict == "no significant difference (p = 1.0000)"
        assert same.as_dict()["significant"] is False
    assert not compare_scores(wer, statistics(wer, 20, 0.3), statistics(wer, 20, 0.3)[::-1]).significant


def test_tests_hold_their_level():
    """Of two systems that are alike in truth, about one comparison in ten is significant at this level."""
    metric = WordErrorRate()
    found = [
        compare_scores(
            metric,
            *(statistics(metric, 40, 0.3, seed) for seed in (2 * at, 2 * at + 1)),
            level=0.9,
            resamples=10,
            trials=200,
        ).significant
        for at in range(200)
    ]
    assert 0.04 <= np.mean(found) <= 0.17


def test_real_statistics():
    rng = np.random.default_rng(0)
    metric = Costs(rng.normal(size=50))
    rows = metric.statistics([""] * 50, [["a"]] * 50, np.arange(50))
    found = score_interval(metric, rows)
    assert found.low < metric.values.mean() < found.high
    shifted = rows - [0.5, 0.0]
    versus = compare_scores(metric, rows, shifted)
    assert versus.difference == pytest.approx(0.5)
    assert versus.verdict.startswith("significantly worse")


def test_blocks_do_not_matter(monkeypatch):
    metric = Bleu()
    first, second = statistics(metric, 30, 0.5), statistics(metric, 30, 0.4)
    found = compare_scores(metric, first, second)
    monkeypatch.setattr(resampling, "_BLOCK", 1000)
    assert compare_scores(metric, first, second) == found


def test_bad_settings_are_refused():
    rows = statistics(WordErrorRate(), 5, 0.3)
    metric = WordErrorRate()
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        score_interval(metric, rows, level=1.0)
    with pytest.raises(ValueError, match="resamples must be an integer >= 1"):
        score_interval(metric, rows, resamples=0)
    with pytest.raises(ValueError, match="trials must be at least 1"):
        compare_scores(metric, rows, rows, trials=0)
    with pytest.raises(ValueError, match="the first system has 5 sentences and the second 4"):
        compare_scores(metric, rows, rows[:4])
