"""Auto-context on small graphs."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.ndimage import uniform_filter1d

from maxmargin.tasks.segmentation.learning import auto_context
from maxmargin.tasks.segmentation.learning.auto_context import AutoContext, fit_auto_context, stage_rows
from maxmargin.tasks.segmentation.sites import Sites


@dataclass(frozen=True, eq=False)
class Line(Sites):
    """Nodes in a row; the context is what the neighbors say."""

    def context(self, probabilities):
        means = [uniform_filter1d(probabilities[:, 1], width, mode="nearest") for width in (3, 7)]
        return np.column_stack(means).astype(np.float32)


def line(rng, n=60):
    """Labels in runs of ten; a feature that hardly tells them."""
    labels = (np.arange(n) // 10) % 2
    features = np.column_stack([labels + 1.2 * rng.normal(size=n), rng.normal(size=n)]).astype(np.float32)
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    return Line(features, edges, np.ones((n - 1, 1)), np.arange(n, dtype=np.int32), np.ones(n)), labels


def fit(sites, labels, **settings):
    counts = [one.counts(own, 2) for one, own in zip(sites, labels, strict=True)]
    chosen = {"classifier": "linear", "stages": 2, "folds": 3, "seed": 0, "class_weight": np.ones(2), **settings}
    return fit_auto_context(sites, counts, **chosen)


def test_later_stages_see_their_neighbors_and_err_less():
    rng = np.random.default_rng(0)
    sites, labels = zip(*(line(rng) for _ in range(30)), strict=True)
    errors = []
    for stages in (1, 3):
        _, found = fit(sites, labels, stages=stages)
        errors.append(np.mean([(own.argmax(axis=1) != right).mean() for own, right in zip(found, labels, strict=True)]))
    assert errors[1] < 0.9 * errors[0]


def test_probabilities_of_training_nodes_are_out_of_fold():
    # Labels that nothing predicts: in-sample probabilities would look good, out-of-fold ones cannot.
    rng = np.random.default_rng(0)
    sites = [line(rng)[0] for _ in range(12)]
    labels = [rng.integers(0, 2, 60) for _ in sites]
    trained, found = fit(sites, labels, classifier="boosting", stages=1)
    own = [trained.probabilities(one) for one in sites]
    right = [np.mean([(p.argmax(1) == y).mean() for p, y in zip(ps, labels, strict=True)]) for ps in (found, own)]
    assert right[0] < 0.6 < right[1]


def test_the_same_for_any_number_of_threads():
    import maxmargin as mm

    rng = np.random.default_rng(0)
    sites, labels = zip(*(line(rng) for _ in range(6)), strict=True)
    results = []
    for jobs in (1, 2):
        with mm.threads(jobs):
            results.append(np.concatenate(fit(sites, labels)[1]))
    np.testing.assert_array_equal(*results)


def test_void_nodes_are_not_learned_from():
    rng = np.random.default_rng(0)
    sites, labels = zip(*(line(rng) for _ in range(6)), strict=True)
    hidden = [np.where(rng.random(60) < 0.5, -1, own) for own in labels]
    counts = [one.counts(own, 2) for one, own in zip(sites, hidden, strict=True)]
    assert (np.concatenate(counts).sum(axis=1) == np.concatenate([own >= 0 for own in hidden])).all()
    _, found = fit(sites, hidden)
    assert all(np.isfinite(own).all() and len(own) == 60 for own in found)


def test_one_example_is_split_into_stretches():
    rng = np.random.default_rng(0)
    one, labels = line(rng, 90)
    trained, found = fit([one], [labels])
    assert len(trained.stages) == 2
    assert found[0].shape == (90, 2)


def test_many_nodes_are_thinned(monkeypatch):
    monkeypatch.setattr(auto_context, "MOST_ROWS", 50)
    rng = np.random.default_rng(0)
    sites, labels = zip(*(line(rng) for _ in range(6)), strict=True)
    _, found = fit(sites, labels)
    assert len(found) == 6


def test_states():
    rng = np.random.default_rng(0)
    sites, labels = zip(*(line(rng) for _ in range(6)), strict=True)
    trained, _ = fit(sites, labels)
    again = AutoContext.from_state(trained.state())
    np.testing.assert_array_equal(again.probabilities(sites[0]), trained.probabilities(sites[0]))
    assert stage_rows(sites[0], None) is sites[0].features
    with pytest.raises(ValueError, match="stages"):
        AutoContext.from_state({**trained.state(), "stages": 1000})
    with pytest.raises(KeyError):
        AutoContext.from_state({**trained.state(), "stages": 3})
