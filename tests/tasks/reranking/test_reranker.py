from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

import maxmargin as mm
from maxmargin._sparse import sp
from maxmargin.tasks.reranking import LinearProgram7, Reranker, made_lists
from maxmargin.tasks.reranking.io.forms import as_lists
from maxmargin.tasks.reranking.tuning.mert import Mert

RNG = np.random.default_rng(0)
HIDDEN = np.array([1.0, -2.0, 0.5])
X = [RNG.normal(size=(RNG.integers(1, 30), 3)) for _ in range(50)]
GAINS = [x @ HIDDEN + 0.1 * RNG.normal(size=len(x)) for x in X]


def regret(model: Reranker, **options: Any) -> float:
    found = model.predict(X, **options)
    return float(np.mean([gains.max() - gains[at] for gains, at in zip(GAINS, found, strict=True)]))


@pytest.mark.parametrize("method", ["max-margin", "mert", "pro", Mert(restarts=3)])
def test_real_valued_gains(method: Any) -> None:
    model = Reranker(method, folds=3).fit(X, GAINS)
    assert regret(model) < 0.05
    assert model.score(X, GAINS) == pytest.approx(
        np.mean([gains[at] for gains, at in zip(GAINS, model.predict(X), strict=True)])
    )
    assert model.report_.held_out[0].metric == "gain"
    assert (model.solution_ is not None) == (method == "max-margin")
    assert model.feature_names_ == ["x0", "x1", "x2"]
    assert len(model.decision_function(X)) == 50
    assert model.rank(X)[0].tolist() == np.argsort(-model.decision_function(X)[0], kind="stable").tolist()


def test_all_forms_of_lists_give_the_same_model() -> None:
    dense = Reranker(folds=2).fit(X, GAINS)
    table, groups = np.concatenate(X), np.repeat(np.arange(50), [len(x) for x in X])
    grouped = Reranker(folds=2).fit(table, np.concatenate(GAINS), groups)
    np.testing.assert_array_equal(grouped.coef_, dense.coef_)
    assert grouped.predict(table, groups) == dense.predict(X)
    named = Reranker(folds=2).fit([[dict(zip("abc", row, strict=True)) for row in x] for x in X], GAINS)
    np.testing.assert_array_equal(named.coef_, dense.coef_)
    assert named.feature_names_ == ["a", "b", "c"]
    sparse = Reranker(folds=2, normalize="none").fit([sp.csr_array(x) for x in X], GAINS)
    np.testing.assert_allclose(sparse.coef_, Reranker(folds=2, normalize="none").fit(X, GAINS).coef_, rtol=0.05)


def test_references() -> None:
    lists = made_lists(30, 0, size=10)
    model = Reranker("mert", metric="chrf", folds=2).fit(lists, lists.references)
    assert [one.metric for one in model.report_.held_out] == ["chrF2", "BLEU"]
    one = Reranker("mert", folds=0).fit(lists, [first for first, _ in lists.references])
    assert 0.0 < one.score(lists, lists.references) <= 1.0


def test_it_is_an_estimator(tmp_path: Any) -> None:
    model = Reranker("pro", C=[0.1, 1.0], folds=2, positive=("x0",))
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(X)
    scores = cross_val_score(Reranker("perceptron", folds=0), X, GAINS, cv=3)
    assert scores.shape == (3,)
    model.fit(X, GAINS).save(tmp_path / "model")
    assert mm.load(tmp_path / "model").predict(X) == model.predict(X)


def test_more_columns_than_in_training_are_refused() -> None:
    model = Reranker("perceptron", folds=0).fit(X, GAINS)
    with pytest.raises(ValueError, match="features have 5 columns, expected 3"):
        model.predict([np.ones((2, 5))])
    with pytest.raises(ValueError, match="lack the feature 'x2'"):
        model.predict([np.ones((2, 2))])


@pytest.mark.parametrize(
    ("settings", "y", "message"),
    [
        ({}, GAINS[:-1], "X has 50 lists but y has 49"),
        ({}, [*GAINS[:-1], np.zeros(99)], "example 49: y has shape"),
        ({"metric": "bleu"}, GAINS, "metric needs references"),
        ({"metric": "blue"}, ["a"] * 50, "no metric is named 'blue'"),
        ({"ngrams": 2}, [*GAINS[:-1], GAINS[-1] * np.nan], "give one finite gain"),
        ({}, ["a"] * 50, "no hypothesis has a text"),
        ({}, None, "y is missing: give gains or references"),
        ({}, [*GAINS[:-1], ["a"] * len(GAINS[-1])], "example 49: y must be gains"),
    ],
)
def test_bad_input(settings: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Reranker(**settings).fit(X, y)


def test_features_that_are_sparse_in_some_lists_and_dense_in_others() -> None:
    lists = [[{"a": 1.0, "rare": 2.0}, {"a": 0.5}], [{"a": 0.0}, {"a": 1.0, "rare": -1.0}]]
    model = Reranker("perceptron", folds=0).fit(lists * 3, [[1.0, 0.0], [1.0, 0.0]] * 3)
    assert model.feature_names_ == ["a", "rare"]
    together = model.decision_function(lists)
    everywhere = [[{"a": 1.0, "rare": 2.0}, {"a": 0.5, "rare": 0.0}]]  # dense here
    np.testing.assert_array_equal(model.decision_function(everywhere)[0], together[0])
    always = Reranker("perceptron", folds=0).fit(everywhere * 3, [[1.0, 0.0]] * 3)
    assert always.model_.encoder.names == ("a", "rare")
    np.testing.assert_array_equal(always.decision_function(lists)[0], always.decision_function(everywhere)[0])
    sparse = [sp.csr_array(one) for one in X]
    model = Reranker("perceptron", folds=0).fit(sparse, GAINS)
    assert model.coef_.any()
    assert model.predict(X) == model.predict(sparse)


def test_without_texts_nearest_hypotheses_are_those_of_features() -> None:
    def weights(lists: Any) -> np.ndarray:
        return Reranker(LinearProgram7(C=10.0, levels=3), folds=0).fit(lists, GAINS).coef_

    lists = as_lists(X)
    told = replace(lists, texts=["the same"] * lists.n_hypotheses)  # nearest to each is then the first good one
    assert np.abs(weights(lists) - weights(told)).max() > 1e-3


@pytest.mark.parametrize("factor", [1e200, 1e307])
def test_features_too_large_to_compute_with_are_named(factor: float) -> None:
    with pytest.raises(ValueError, match=r"list 0, hypothesis 0: feature 'x0' is .*; give numbers of at most 1e\+100"):
        Reranker(folds=0).fit([one * factor for one in X], GAINS)
    sparse = [sp.csr_array(one) for one in X]
    sparse[2][[3], [1]] = factor
    with pytest.raises(ValueError, match=r"list 2, hypothesis 3: feature 'x1' is .*; give numbers of at most 1e\+100"):
        Reranker(folds=0).fit(sparse, GAINS)


def test_training_that_is_cut_resumes(tmp_path, monkeypatch):
    """After a fold, and in the last run."""

    class Killed(Exception):
        pass

    def fitted(**settings):
        return Reranker(C=[0.01, 0.1], folds=2, **settings).fit(X, GAINS)

    whole = fitted()
    solver = type(whole.solution_.solver)
    plain, steps = solver.step, []

    def step(self, run, state):
        steps.append(1)
        return plain(self, run, state)

    with monkeypatch.context() as patch:
        patch.setattr(solver, "step", step)
        fitted()
    for after in (len(steps) // 2, 2):  # the second run begins after the folds that the first one has finished
        left = [after]

        def killed(self, run, state, left=left):
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return plain(self, run, state)

        with monkeypatch.context() as patch:
            patch.setattr(solver, "step", killed)
            with pytest.raises(Killed):
                fitted(checkpoint=tmp_path / "run")
        assert list(tmp_path.iterdir())
    again = fitted(checkpoint=str(tmp_path / "run"))
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert not list(tmp_path.iterdir())
