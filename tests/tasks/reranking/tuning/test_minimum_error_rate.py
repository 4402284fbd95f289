"""Minimum error rate training of lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.tasks.reranking import best_on_line, made_lists

import maxmargin as mm
from maxmargin._sparse import sp
from maxmargin.tasks.reranking.metrics.base import Formula
from maxmargin.tasks.reranking.tuning.mert import MOST_FEATURES, Mert

FORMULAS = [*Formula, None]


@given(
    seed=st.integers(0, 10**6),
    formula=st.sampled_from(FORMULAS),
    whole=st.booleans(),
    start=st.sampled_from(["none", "zero", "random"]),
    scale=st.sampled_from([1.0, 1e8, (1e6, 1.0, 1e-6)]),
)
def test_the_reported_quality_is_that_of_the_chosen_hypotheses(seed, formula, whole, start, scale):
    signs = np.random.default_rng(seed).integers(-1, 2, size=3)
    lists = made_lists(seed, formula=formula, whole=whole, signs=signs, scale=np.array(scale))
    given_start = {"none": None, "zero": np.zeros(3), "random": np.abs([0.3, 0.8, 0.1]) * np.where(signs < 0, -1, 1)}
    method = Mert(restarts=3, random_directions=2, max_sweeps=5)
    tuned = method.tune(lists, start=given_start[start], seed=seed)
    assert lists.corpus_quality(lists.choose(tuned.weights)) == tuned.details["quality"]
    assert tuned.details["quality"] >= tuned.details["start_quality"]
    assert (lists.signs * tuned.weights >= 0).all()
    assert np.abs(tuned.weights).max() in (0.0, 1.0)
    if given_start[start] is not None:
        assert tuned.details["quality"] >= lists.corpus_quality(lists.choose(given_start[start]))


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_coordinate_gains_at_the_end(formula):
    lists = made_lists(4, n=20, formula=formula, signs=[1, 0, -1])
    tuned = Mert(restarts=4, max_sweeps=100).tune(lists)
    for direction in np.eye(3):
        assert best_on_line(lists, tuned.weights, direction) == pytest.approx(tuned.details["quality"], abs=1e-9)


def test_learns_the_features_that_matter():
    lists = made_lists(1, n=60, most=20, d=4, formula=Formula.MEAN, learnable=2.0)
    tuned = Mert().tune(lists)
    truth = np.linspace(-1, 1, 4)
    assert tuned.weights @ truth / np.linalg.norm(tuned.weights) / np.linalg.norm(truth) > 0.9
    assert tuned.details["quality"] >= lists.corpus_quality(lists.choose(truth))


def test_compiled_and_called_back_ascents_agree():
    lists = made_lists(9, n=15, formula=Formula.ERROR_RATE, d=4)
    compiled = Mert(restarts=5, random_directions=3).tune(lists, seed=1)

    class Own(type(lists.metric)):
        def quality(self, sums):
            return 1.0 - sums[..., 0] / sums[..., 1]

    called = Mert(restarts=5, random_directions=3).tune(replace(lists, metric=Own(None, 2)), seed=1)
    assert called.details == compiled.details
    np.testing.assert_allclose(called.weights, compiled.weights, rtol=1e-9)


@pytest.mark.parametrize("formula", [Formula.BLEU, None])
def test_threads_sparse_rows_and_seeds(formula):
    lists = made_lists(3, n=30, formula=formula, d=5)
    method = Mert(restarts=6, random_directions=2)
    first = method.tune(lists, seed=3)
    with mm.threads(3):
        assert method.tune(lists, seed=3).weights.tobytes() == first.weights.tobytes()
    sparse = method.tune(replace(lists, rows=sp.csr_array(lists.rows)), seed=3)
    np.testing.assert_allclose(sparse.weights, first.weights, rtol=1e-9)
    assert method.tune(lists, seed=4).weights.tobytes() != first.weights.tobytes()


def test_lists_of_one_hypothesis_leave_the_start():
    lists = made_lists(0, most=1)
    tuned = Mert(restarts=3).tune(lists, start=np.array([2.0, -1.0, 0.5]))
    assert tuned.weights.tolist() == [1.0, -0.5, 0.25]


def test_of_hypotheses_with_equal_features_the_first_counts():
    lists = made_lists(2, n=20, most=12, whole=True, formula=Formula.MEAN, d=2)
    lists.statistics[:, 0] = np.arange(len(lists.statistics))  # later ones would be better
    tuned = Mert(restarts=5).tune(lists)
    assert lists.corpus_quality(lists.choose(tuned.weights)) == tuned.details["quality"]
    for direction in np.eye(2):
        assert best_on_line(lists, tuned.weights, direction) == pytest.approx(tuned.details["quality"])


def test_memory_is_limited(monkeypatch):
    monkeypatch.setattr("maxmargin.tasks.reranking.tuning.mert._MOST_SLOPES", 10)
    with pytest.raises(ValueError, match="GB of slopes; tune fewer features or lists"):
        Mert().tune(made_lists(0, d=4))


def test_bad_input_is_refused():
    wide = made_lists(0, d=3)
    wide = replace(
        wide, rows=sp.csr_array((len(wide.rows), MOST_FEATURES + 1)), signs=np.zeros(MOST_FEATURES + 1, np.int8)
    )
    with pytest.raises(ValueError, match="got 1,001; use max-margin, mira or pro"):
        Mert().tune(wide)
    lists = made_lists(0)
    lists.rows[2, 1] = np.nan
    with pytest.raises(ValueError, match="features of hypothesis 2"):
        Mert().tune(lists)
    lists = made_lists(0)
    lists.statistics[1, 0] = np.inf
    with pytest.raises(ValueError, match="statistics of hypothesis 1"):
        Mert().tune(lists)
    with pytest.raises(ValueError, match="start must have shape"):
        Mert().tune(made_lists(0), start=np.zeros(2))
    with pytest.raises(ValueError, match="NaN or infinite"):
        Mert().tune(made_lists(0), start=np.array([0.0, np.nan, 0.0]))
    with pytest.raises(ValueError, match="restarts"):
        Mert(restarts=0)
