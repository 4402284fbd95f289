"""Word and character error rates against rapidfuzz, and metrics that users give as numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from maxmargin.tasks.reranking import CharacterErrorRate, Costs, Gains, WordErrorRate

SENTENCES = st.lists(st.sampled_from(["a", "b", "ab", "ba", "\u00e9", "\u732b", " ", "\t"]), max_size=30).map(" ".join)


@given(st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=5))
def test_error_rates_are_those_of_rapidfuzz(pairs):
    texts, gold = (list(side) for side in zip(*pairs, strict=True))
    for metric, tokens in (
        (WordErrorRate(), str.split),
        (CharacterErrorRate(), lambda text: " ".join(text.split())),
    ):
        statistics = metric.statistics(texts, [[one] for one in gold], np.arange(len(texts)))
        errors = [Levenshtein.distance(tokens(one), tokens(two)) for one, two in pairs]
        lengths = [len(tokens(one)) for one in gold]
        assert statistics.tolist() == [list(one) for one in zip(errors, lengths, strict=True)]
        if sum(lengths):
            shown = metric.shown(float(metric.quality(statistics.sum(axis=0))))
            assert shown == pytest.approx(100 * sum(errors) / sum(lengths), abs=1e-9)


def test_corpora_of_empty_references():
    metric = WordErrorRate()
    statistics = metric.statistics(["", "a"], [[""], [""]], np.arange(2))
    assert metric.quality(statistics).tolist() == [1.0, 0.0]
    assert metric.shown(0.0) == 100.0


def test_gains_and_costs():
    texts, references, owner = ["", "", ""], [["a"], ["b"]], np.array([0, 0, 1])
    for metric, sign in ((Gains([1.5, -2.0, 4.0]), 1.0), (Costs([1.5, -2.0, 4.0]), -1.0)):
        statistics = metric.statistics(texts, references, owner)
        assert statistics.tolist() == [[sign * 1.5, 1.0], [sign * -2.0, 1.0], [sign * 4.0, 1.0]]
        assert metric.sentence_quality(statistics).tolist() == [sign * 1.5, sign * -2.0, sign * 4.0]
        assert metric.shown(float(metric.quality(statistics[[0, 2]].sum(axis=0)))) == 2.75
        with pytest.raises(ValueError, match=r"3 (gain|cost)s and 2 hypotheses; give one for each"):
            metric.statistics(texts[:2], references, owner[:2])
    assert not Gains.lower_is_better
    assert Costs.lower_is_better
    for wrong in ([1.0, np.nan], [1.0, 1e200], [[1.0]]):
        with pytest.raises(ValueError, match="give one finite gain for each hypothesis"):
            Gains(wrong)
