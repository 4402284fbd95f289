"""Confidences: the calibration curve, and what the aligner makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from maxmargin.tasks.alignment.confidence import Calibration
from maxmargin.tasks.alignment.start import StartWeights


@pytest.mark.parametrize(("slope", "intercept", "scale"), [(1.0, 0.0, 2.0), (3.0, -1.0, 1.0), (0.01, 0.5, 200.0)])
def test_simulated_margins(slope, intercept, scale):
    rng = np.random.default_rng(0)
    margins = scale * rng.standard_normal(20_000)
    right = rng.random(20_000) < expit(slope * margins + intercept)
    found = Calibration.fit(margins, right)
    at = scale * np.linspace(-2, 2, 21)
    np.testing.assert_allclose(found(at), expit(slope * at + intercept), atol=0.03)


def test_far_links_say_nothing():
    """The many cells that nobody would link do not bend the curve where links are."""
    rng = np.random.default_rng(1)
    margins = rng.standard_normal(5_000)
    right = rng.random(5_000) < expit(2 * margins)
    found = Calibration.fit(margins, right)
    far = Calibration.fit(np.append(margins, np.full(100_000, -50.0)), np.append(right, np.zeros(100_000, dtype=bool)))
    at = np.linspace(-3, 3, 13)
    np.testing.assert_allclose(found(at), far(at), atol=1e-6)


numbers = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 1e-300, 1e8, -1e8, np.inf, -np.inf, np.nan])


@given(st.lists(st.tuples(numbers, st.booleans()), max_size=12))
def test_any_margins(given):
    margins = np.array([margin for margin, _ in given])
    right = np.array([one for _, one in given], dtype=bool)
    found = Calibration.fit(margins, right)
    assert np.isfinite([found.slope, found.intercept, found.bend]).all()
    assert found.bend >= 0
    assert found.slope > 0
    confidence = found(np.array([-1e9, -1.0, 0.0, 1.0, 1e9]))
    assert (np.diff(confidence) >= 0).all()
    assert (confidence >= 0).all()
    assert (confidence <= 1).all()


def test_degenerate_margins():
    empty = Calibration.fit(np.zeros(0), np.zeros(0, dtype=bool))
    assert (empty.slope, empty.intercept) == (1.0, 0.0)
    apart = Calibration.fit(np.array([-2.0, -1.0, 1.0, 2.0] * 50), np.array([False, False, True, True] * 50))
    assert 0.9 < apart(np.array([1.0]))[0] < 1.0
    turned = Calibration.fit(np.array([-1.0, 1.0] * 50), np.array([True, False] * 50))
    assert turned.slope > 0  # a curve that falls would call the best links the worst
    assert turned(np.array([0.0]))[0] == pytest.approx(0.5, abs=0.05)


def as_sets(predictions):
    return [set(map(tuple, one.links.tolist())) for one in predictions]


def test_margin_is_the_inverse_of_the_curve():
    for curve in (Calibration(), Calibration(2.0, -1.0), Calibration(0.5, 0.3, 2.0)):
        for confidence in (0.01, 0.3, 0.5, 0.9, 0.999):
            assert curve(np.array([curve.margin(confidence)]))[0] == pytest.approx(confidence)
        assert np.isfinite([curve.margin(0.0), curve.margin(1.0)]).all()


def test_thresholds(aligner, others):
    """A higher one gives fewer links; all are as sure as it says, and no word has more than its fertility."""
    X = others[0]
    before = np.inf
    for threshold in (0.0, 1e-9, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0):
        found = aligner.align(X, threshold=threshold)
        number = sum(len(one.links) for one in found)
        assert number <= before
        before = number
        for one in found:
            assert (one.confidence >= threshold).all()
            for side in (0, 1):
                assert np.bincount(one.links[:, side], minlength=1).max() <= aligner.fertility
    assert sum(len(one.links) for one in aligner.align(X, threshold=0.1)) > sum(map(len, aligner.predict(X)))


def test_confidences_belong_to_their_links(aligner, others):
    """A link has the same confidence whatever the threshold."""
    X = [*others[0], ([], []), (["a"], []), others[0][0]]
    best = [dict(zip(map(tuple, one.links.tolist()), one.confidence, strict=True)) for one in aligner.align(X)]
    common = 0
    for threshold in (0.2, 0.5, 0.95):
        for one, sure in zip(aligner.align(X, threshold=threshold), best, strict=True):
            assert one.confidence.shape == (len(one.links),)
            assert ((one.confidence >= 0) & (one.confidence <= 1)).all()
            for link, value in zip(map(tuple, one.links.tolist()), one.confidence, strict=True):
                if link in sure:
                    assert sure[link] == value
                    common += 1
    assert common > 0


def test_the_best_alignment(aligner, others):
    X = others[0]
    for links, one in zip(aligner.predict(X), aligner.align(X), strict=True):
        np.testing.assert_array_equal(links, one.links)
    # Links of the best alignment have positive margins, the others negative ones.
    half = float(aligner.model_.curve(np.zeros(1))[0])
    assert all((one.confidence >= half).all() for one in aligner.align(X))
    assert as_sets(aligner.align(X, threshold=half)) == as_sets(aligner.align(X))


def test_confidences_are_near_the_truth(make, few, others):
    """Calibrated on pairs that were not trained on, they say how many of other links are right."""
    aligner = make(folds=3, tol=1e-2).fit(*few)
    found = aligner.align(others[0], threshold=0.1)
    confidence = np.concatenate([one.confidence for one in found])
    possible = [set(map(tuple, reference.possible.tolist())) for reference in others[1]]
    right = np.array(
        [tuple(link) in gold for one, gold in zip(found, possible, strict=True) for link in one.links.tolist()]
    )
    parts = [(confidence >= low) & (confidence < low + 0.2) for low in np.arange(0.1, 1.0, 0.2)]
    off = [abs(right[part].mean() - confidence[part].mean()) * part.mean() for part in parts if part.any()]
    assert sum(off) < 0.06  # the expected calibration error
    assert ((confidence - right) ** 2).mean() < 0.7 * right.var()
    precise = confidence > np.quantile(confidence, 0.5)
    assert right[precise].mean() > right.mean()


def test_estimates_without_annotations(corpus, make, few):
    """They rise with the agreement of directions, and say that they are estimates."""
    low, high = Calibration.estimated(0.6), Calibration.estimated(0.9)
    margins = np.array([0.1, 1.0, 3.0, 6.0])
    assert (low(margins) < high(margins)).all()
    assert Calibration.estimated(0.0) == Calibration.estimated(0.4)
    X = list(corpus)
    aligner = make().bootstrap(X, n_pairs=100)
    assert not aligner.model_.calibrated
    assert aligner.model_.metadata["confidences"] == "estimated from other languages"
    found = aligner.align(X)
    confidence = np.concatenate([one.confidence for one in found])
    possible = [set(map(tuple, reference.possible.tolist())) for reference in corpus.references]
    right = np.array([tuple(k) in gold for one, gold in zip(found, possible, strict=True) for k in one.links.tolist()])
    assert abs(confidence.mean() - right.mean()) < 0.06
    assert right[confidence >= 0.99].mean() > 0.99
    assert make(folds=2).fit(*few).model_.calibrated
    assert make(folds=0).fit(*few).model_.metadata["confidences"] == "not calibrated"


def test_estimates_for_another_start(corpus, make):
    """Weights of another size give margins of another size, and the same confidences."""
    X, packaged = list(corpus)[:60], StartWeights.packaged()
    larger = StartWeights({name: 3 * weight for name, weight in packaged.weights.items()})
    curves = [make(start=start, C=1e-9).bootstrap(X).model_ for start in ("packaged", larger)]
    assert curves[1].metadata["confidences"] == "estimated from other languages"
    one, three = (curve.calibration for curve in curves)
    assert three["slope"] == pytest.approx(one["slope"] / 3)
    assert three["intercept"] == one["intercept"]
