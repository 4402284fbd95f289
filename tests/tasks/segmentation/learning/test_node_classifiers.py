"""Node classifiers as arrays against the libraries that trained them."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from maxmargin.tasks.segmentation.learning.classifiers import (
    Estimator,
    Mean,
    NodeClassifier,
    Trees,
    classifier_from_state,
    coded,
    quantile_bounds,
)
from maxmargin.tasks.segmentation.learning.fitting import NAMES, TrainingRows, check_classifier


def data(n_classes: int, n: int = 400, d: int = 5, seed: int = 0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)).astype(np.float32)
    rows[:, 3] = np.round(rows[:, 3])  # ties
    labels = np.minimum((rows[:, 0] > 0) * 1 + (rows[:, 1] + rows[:, 3] > 0), n_classes - 1)
    return rows, labels, rng.uniform(0.5, 1.5, n)


def fitted(classifier, n_classes: int) -> tuple[NodeClassifier, np.ndarray, np.ndarray]:
    rows, labels, weight = data(n_classes)
    prepared = TrainingRows.of(classifier, rows)
    return prepared.fit(np.arange(300), labels, weight, n_classes, seed=0), rows, labels


def test_bins_are_those_of_searching_every_value():
    rows, _, _ = data(2)
    bounds = quantile_bounds(rows, 6)
    codes = coded(rows, bounds)
    expected = (rows[:, :, None].astype(np.float64) > bounds[None]).sum(axis=2)
    np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", NAMES[1:])
def test_named_classifiers_learn_and_survive_their_state(name, n_classes):
    pytest.importorskip("lightgbm", reason="LightGBM is not installed") if name == "lightgbm" else None
    found, rows, labels = fitted(name, n_classes)
    assert not isinstance(found, Estimator)
    assert (found.probabilities(rows[300:]).argmax(axis=1) == labels[300:]).mean() > 0.7
    again = classifier_from_state(found.state())
    np.testing.assert_array_equal(again.scores(rows), found.scores(rows))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "classifier",
    [
        RandomForestClassifier(5, random_state=0),
        ExtraTreesClassifier(5, random_state=0),
        HistGradientBoostingClassifier(max_iter=4, max_bins=16, random_state=0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_trees_of_scikit_learn_predict_the_same_as_arrays(classifier, n_classes):
    rows, labels, _ = data(n_classes)
    ones = np.ones(len(rows))
    found = TrainingRows.of(classifier, rows).fit(np.arange(300), labels, ones, n_classes, seed=0)
    assert isinstance(found, Trees)
    expected = classifier.fit(rows[:300], labels[:300], sample_weight=ones[:300]).predict_proba(rows)
    np.testing.assert_allclose(found.probabilities(rows), expected, atol=1e-4)


def test_other_classifiers_predict_but_are_not_saved():
    found, rows, labels = fitted(GaussianNB(), 3)
    assert isinstance(found, Estimator)
    assert (found.probabilities(rows).argmax(axis=1) == labels).mean() > 0.7
    with pytest.raises(ValueError, match=r"GaussianNB cannot be saved.*classifier=\"boosting\""):
        found.state()


def test_a_mean_has_the_mean_of_probabilities():
    rows, labels, weight = data(3)
    prepared = TrainingRows.of("linear", rows)
    parts = [prepared.fit(np.arange(first, first + 200), labels, weight, 3, seed=first) for first in (0, 100, 200)]
    mean = Mean(tuple(parts))
    expected = np.mean([one.probabilities(rows) for one in parts], axis=0)
    np.testing.assert_allclose(mean.probabilities(rows), expected, atol=1e-4)
    again = classifier_from_state(mean.state())
    np.testing.assert_array_equal(again.scores(rows), mean.scores(rows))
    for wrong in ({"members": 0}, {"members": 4}, {"members": 10**6}, {"member1_kind": "mean"}):
        with pytest.raises((ValueError, KeyError)):
            classifier_from_state({**mean.state(), **wrong})


def test_a_class_that_no_row_has_gets_hardly_any_probability():
    rows, labels, weight = data(2)
    for name in ("linear", "boosting"):
        found = TrainingRows.of(name, rows).fit(np.arange(300), labels, weight, 4, seed=0)
        assert found.probabilities(rows)[:, 2:].max() < 1e-3
        only = TrainingRows.of(name, rows).fit(np.flatnonzero(labels == 1), labels, weight, 2, seed=0)
        assert only.probabilities(rows)[:, 1].min() > 0.99


@pytest.mark.parametrize("name", ["trees", "coded linear"])
def test_damaged_states_are_refused(name):
    found, _, _ = fitted("linear" if name == "coded linear" else "boosting", 2)
    state = found.state()
    assert state["kind"] == name
    for key, value in state.items():
        if isinstance(value, np.ndarray):
            for wrong in (value[:-1], value.astype(np.complex128), value.reshape(-1, 1, 1)):
                with pytest.raises((ValueError, TypeError, KeyError)):
                    classifier_from_state({**state, key: wrong})
    with pytest.raises(ValueError, match="unknown kind"):
        classifier_from_state({**state, "kind": "magic"})
    if name == "trees":
        loop = state["left"].copy()
        loop[0] = 0
        with pytest.raises(ValueError, match="children"):
            classifier_from_state({**state, "left": loop})


def test_what_is_not_a_classifier_is_refused():
    with pytest.raises(ValueError, match="'auto', 'boosting', 'lightgbm', 'linear'"):
        check_classifier("forest")
    with pytest.raises(ValueError, match="predict_proba"):
        check_classifier(object())
