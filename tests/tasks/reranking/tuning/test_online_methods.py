"""K-best MIRA and the perceptron against slow twins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.tasks.reranking import by_passes, made_lists

import maxmargin as mm
from maxmargin._sparse import sp
from maxmargin.tasks.reranking.metrics.base import Formula
from maxmargin.tasks.reranking.tuning.online import STEPS, KBestMira, Perceptron


def expected(lists, averages):
    """The first of the best averages, its quality and pass."""
    qualities = [lists.corpus_quality(lists.choose(average)) for average in averages]
    best = int(np.argmax(qualities))
    return averages[best], qualities[best], best + 1


@given(
    seed=st.integers(0, 10**6),
    formula=st.sampled_from([*Formula, None]),
    signed=st.booleans(),
    layout=st.sampled_from(["dense", "int32", "int64"]),
    method=st.sampled_from([KBestMira(epochs=4, C=0.3, decay=0.9), KBestMira(epochs=3), Perceptron(epochs=4)]),
)
def test_as_the_slow_twin(seed, formula, signed, layout, method):
    signs = np.random.default_rng(seed).integers(-1, 2, size=4) if signed else None
    lists = made_lists(seed, n=8, d=4, formula=formula, signs=signs)
    tuned_lists = lists
    if layout != "dense":
        rows = sp.csr_array(lists.rows)
        rows.indptr, rows.indices = rows.indptr.astype(layout), rows.indices.astype(layout)
        tuned_lists = replace(lists, rows=rows)
    C, decay = method._step()
    averages = by_passes(lists, method.epochs, seed, C=C, decay=decay)
    tuned = method.tune(tuned_lists, seed=seed)
    weights, quality, epoch = expected(lists, averages)
    assert tuned.details["quality"] == pytest.approx(quality)
    if tuned.details["epoch"] == epoch:
        np.testing.assert_allclose(tuned.weights, weights, rtol=1e-9, atol=1e-12)
    assert lists.corpus_quality(lists.choose(tuned.weights)) == pytest.approx(tuned.details["quality"], abs=1e-12)
    assert (lists.signs * tuned.weights >= 0).all()


@pytest.mark.parametrize("method", [KBestMira(), Perceptron()])
def test_learns_the_features_that_matter(method):
    lists = made_lists(1, n=80, most=20, d=4, formula=Formula.MEAN, learnable=2.0)
    tuned = method.tune(lists)
    truth = np.linspace(-1, 1, 4)
    assert tuned.weights @ truth / np.linalg.norm(tuned.weights) / np.linalg.norm(truth) > 0.9


@pytest.mark.parametrize("method", [KBestMira(epochs=3), Perceptron(epochs=3)])
def test_never_below_a_given_start(method):
    lists = made_lists(2, n=10, formula=Formula.BLEU)
    for start in np.random.default_rng(0).standard_normal((10, 3)):
        before = lists.corpus_quality(lists.choose(start))
        tuned = method.tune(lists, start=start)
        assert lists.corpus_quality(lists.choose(tuned.weights)) == tuned.details["quality"] >= before


@pytest.mark.parametrize("method", [KBestMira(epochs=3), Perceptron(epochs=3)])
def test_features_that_do_not_occur_take_no_part(method):
    lists = made_lists(3, n=10, d=3, formula=Formula.CHRF)
    at = np.array([7, 400_000, 999_999])
    narrow = sp.csr_array(lists.rows)
    wide = sp.csr_array((narrow.data, at[narrow.indices], narrow.indptr), shape=(len(lists.rows), 1_000_000))
    found = method.tune(replace(lists, rows=wide, signs=np.zeros(1_000_000, dtype=np.int8)), seed=5)
    assert found.weights[at].tobytes() == method.tune(replace(lists, rows=narrow), seed=5).weights.tobytes()
    assert np.count_nonzero(found.weights) <= 3


def test_threads_and_seeds():
    lists = made_lists(4, n=20)
    method = KBestMira(epochs=3)
    first = method.tune(lists, seed=1).weights
    with mm.threads(2):
        assert method.tune(lists, seed=1).weights.tobytes() == first.tobytes()
    assert method.tune(lists, seed=2).weights.tobytes() != first.tobytes()


def test_candidates():
    assert [method.describe() for method in KBestMira().candidates()] == [{"C": C} for C in STEPS]
    assert [method.describe() for method in KBestMira(C=0.5).candidates()] == [{"C": 0.5}]
    assert len(Perceptron().candidates()) == 1


def test_bad_settings_and_starts_are_refused():
    with pytest.raises(ValueError, match="C must be"):
        KBestMira(C=0.0)
    with pytest.raises(ValueError, match="decay must be"):
        KBestMira(decay=1.0)
    with pytest.raises(ValueError, match="epochs must be"):
        Perceptron(epochs=0)
    with pytest.raises(ValueError, match="NaN or infinite"):
        Perceptron().tune(made_lists(0), start=np.full(3, np.inf))
    lists = made_lists(0, n=20)
    lists.rows[:] = 1e308
    lists.rows[::2] *= -1
    with pytest.raises(ValueError, match="scale them"), np.errstate(all="ignore"):
        Perceptron().tune(lists)
