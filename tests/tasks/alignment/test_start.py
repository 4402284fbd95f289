"""Weights to start from: those of the package, and of other models."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.tasks.alignment import WordAligner, evaluate
from maxmargin.tasks.alignment.start import BOUND, StartWeights, traveling_model


def test_the_packaged_weights_have_the_names_of_the_features():
    packaged = StartWeights.packaged()
    model = traveling_model(2)
    assert list(packaged.weights) == model.names
    assert np.isfinite(packaged.carried(model)).all()
    assert packaged.symmetric().weights == pytest.approx(packaged.weights)


def test_the_script_makes_the_packaged_weights():
    from benchmarks.alignment.weights import KNOWN, made

    _, found = made(tol=1e-2)
    packaged = StartWeights.packaged().carried(traveling_model(2))
    again = found.carried(traveling_model(2))
    assert set(KNOWN) <= set(found.weights)
    assert np.corrcoef(packaged, again)[0, 1] > 0.99
    np.testing.assert_allclose(again, packaged, atol=0.25)


def test_weights_are_carried_by_name(few):
    fitted = WordAligner(folds=0, tol=1e-2, fertility=2, frequent_pairs=5).fit(*few)
    start = StartWeights.of(fitted.feature_names_, fitted.coef_)
    assert not any(name.partition(":")[0] in BOUND for name in start.weights)
    three = dict(zip(traveling_model(3).names, start.carried(traveling_model(3)), strict=True))
    for name, weight in start.weights.items():
        assert three[name] == weight
    assert three["cost of a third link, source word: one"] == three["cost of a second link, source word: one"]
    assert len(start.carried(traveling_model(1))) < len(start.weights)


def test_training_stays_close_to_its_start(few, models):
    """With little room the weights do not move; five pairs are better with a start than without."""
    X, y = few
    still = WordAligner(models=models, C=1e-9, false_negative=2.0, folds=0, tol=1e-2).fit(X, y)
    expected = StartWeights.packaged().carried(still.model_.encoder.link_model)
    np.testing.assert_allclose(still.coef_, expected, atol=1e-6)
    other = WordAligner(models=models, C=1e-9, false_negative=2.0, folds=0, tol=1e-2, start=still.model_).fit(X, y)
    np.testing.assert_allclose(other.coef_, expected, atol=1e-6)
    five = [
        WordAligner(models=models, C=0.03, false_negative=1.0, folds=0, tol=1e-2, start=start).fit(X[:5], y[:5])
        for start in ("packaged", None)
    ]
    near, far = (evaluate(y[5:], one.predict(X[5:])).aer for one in five)
    assert near < far


@pytest.mark.parametrize("start", ["other", 3, [1.0]])
def test_refused_starts(start, few):
    with pytest.raises(ValueError, match="start must be 'packaged', an AlignerModel or None"):
        WordAligner(start=start).fit(*few)


def test_a_choice_at_the_edge_is_told(few, models):
    aligner = WordAligner(models=models, C=0.1, false_negative=(100.0, 200.0, 400.0), folds=2, tol=0.1).fit(*few)
    note = aligner.model_.metadata.get("note", "")
    errors = {chosen["false_negative"]: error for chosen, error in aligner.choices_}
    if errors[100.0] < min(errors[200.0], errors[400.0]):
        assert (
            note == "false_negative=100 has the best score and is the smallest of those tried; try smaller ones as well"
        )
    else:
        assert "smallest" not in note
