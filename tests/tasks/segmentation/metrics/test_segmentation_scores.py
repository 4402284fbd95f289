"""Scores against counts by hand and scikit-learn, absent classes, intervals, comparisons and tables."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rich.console import Console
from sklearn.metrics import confusion_matrix, jaccard_score, precision_score, recall_score

from maxmargin.tasks.segmentation.metrics.scores import (
    boundary_interval,
    class_iou_intervals,
    compare_scores,
    error_interval,
    evaluate,
    iou_interval,
)
from maxmargin.tasks.segmentation.metrics.tables import class_table, confusion_table, scores_table, summary

NAMES = ("a", "b", "c")
PAIRS = st.lists(
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=5).flatmap(
        lambda shape: st.tuples(
            hnp.arrays(np.int64, shape, elements=st.integers(-1, 2)),
            hnp.arrays(np.int64, shape, elements=st.integers(0, 2)),
        )
    ),
    min_size=1,
    max_size=4,
)


def scored(pairs, **options):
    return evaluate([gold for gold, _ in pairs], [predicted for _, predicted in pairs], NAMES, **options)


@given(PAIRS)
def test_against_scikit_learn(pairs):
    scores = scored(pairs, boundaries=False)
    gold = np.concatenate([one.ravel() for one, _ in pairs])
    predicted = np.concatenate([one.ravel() for _, one in pairs])
    gold, predicted = gold[gold >= 0], predicted[gold >= 0]
    assert scores.total == len(gold)
    if not len(gold):
        assert np.isnan([scores.error, scores.mean_iou]).all()
        return
    labels = [0, 1, 2]
    np.testing.assert_array_equal(scores.confusion[:, :3], confusion_matrix(gold, predicted, labels=labels))
    assert scores.error == pytest.approx((gold != predicted).mean())
    for found, function in [
        (scores.iou, jaccard_score),
        (scores.precision, precision_score),
        (scores.recall, recall_score),
    ]:
        expected = function(gold, predicted, labels=labels, average=None, zero_division=0)
        np.testing.assert_allclose(np.nan_to_num(found), expected)
    occurs = np.isin(labels, gold) | np.isin(labels, predicted)
    np.testing.assert_array_equal(np.isnan(scores.iou), ~occurs)
    assert scores.mean_iou == pytest.approx(np.nanmean(scores.iou))


def test_absent_classes_are_left_out():
    gold, predicted = np.array([[0, 0, 1, -1]]), np.array([[0, 1, 1, 2]])
    scores = scored([(gold, predicted)])
    assert scores.iou.tolist()[:2] == [0.5, 0.5]
    assert np.isnan(scores.iou[2])
    assert scores.mean_iou == 0.5
    plain = scores.as_dict()
    assert plain["classes"]["c"]["iou"] is None
    assert plain["classes"]["c"]["recall"] is None
    assert plain["mean_iou"] == 0.5
    json.dumps(plain, allow_nan=False)
    # A class that is only predicted occurs, and is all wrong.
    assert scored([(np.array([[0, 0]]), np.array([[0, 2]]))]).iou.tolist()[2] == 0.0


def test_void_and_pixels_without_a_prediction():
    gold, predicted = np.array([[0, 1, -1, 1]]), np.array([[0, -1, -1, 1]])
    scores = scored([(gold, predicted)])
    assert scores.total == 3
    assert scores.error == pytest.approx(1 / 3)
    assert scores.recall.tolist()[:2] == [1.0, 0.5]
    assert scores.precision.tolist()[:2] == [1.0, 1.0]
    assert scores.as_dict()["without_class"] == 1
    nothing = scored([(np.full((2, 2), -1), np.zeros((2, 2), dtype=int))])
    assert nothing.as_dict()["error"] is None
    json.dumps(summary(["x"], [nothing]), allow_nan=False)


def test_errors_of_images_and_of_pixels():
    right = np.zeros((10, 10), dtype=int)
    wrong = np.ones((2, 5), dtype=int)
    scores = scored([(right, right), (np.zeros((2, 5), dtype=int), wrong)], images=["large", "small"])
    assert scores.error == pytest.approx(10 / 110)
    assert scores.image_error == pytest.approx(0.5)
    rows = scores.per_image()
    assert [row["image"] for row in rows] == ["small", "large"]
    assert [row["error"] for row in rows] == [1.0, 0.0]
    assert rows[0]["iou"] == {"a": 0.0, "b": 0.0, "c": None}
    assert rows[1]["boundary_f"] is None


def examples(n=30, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    gold = [np.kron(rng.integers(0, 3, (3, 4)), np.ones((6, 6), dtype=int)) for _ in range(n)]
    wrong = [np.where(rng.random(one.shape) < noise * rng.random(), (one + 1) % 3, one) for one in gold]
    return gold, wrong


def test_intervals_and_comparisons():
    gold, first = examples()
    _, second = examples(noise=0.3)
    better, worse = evaluate(gold, first, NAMES), evaluate(gold, second, NAMES)
    for scores in (better, worse):
        for around, value in [
            (error_interval(scores), scores.error),
            (iou_interval(scores), scores.mean_iou),
            (boundary_interval(scores), scores.boundary_f),
            *zip(class_iou_intervals(scores), scores.iou, strict=True),
        ]:
            assert around.low < value < around.high
            assert around.high - around.low < 0.2
    versus = compare_scores(better, worse)
    assert versus.difference == pytest.approx(worse.error - better.error)
    assert versus.low > 0
    assert versus.p_value < 0.01
    with pytest.raises(ValueError, match="different images"):
        compare_scores(better, evaluate(gold, second, NAMES, images=[f"x{n}" for n in range(30)]))
    # Resampling images by hand gives the same interval of the mean IoU.
    rng = np.random.default_rng(1)
    means = []
    for _ in range(800):
        confusion = worse.counts[rng.integers(0, 30, 30)].sum(axis=0)[:, :3]
        both = np.diagonal(confusion)
        means.append((both / (confusion.sum(axis=0) + confusion.sum(axis=1) - both)).mean())
    around = iou_interval(worse)
    np.testing.assert_allclose([around.low, around.high], np.quantile(means, [0.025, 0.975]), atol=0.004)


def test_wrong_input():
    square = np.zeros((2, 2), dtype=int)
    with pytest.raises(ValueError, match=r"x: \(2, 2\) gold labels and \(2, 3\) predicted ones"):
        evaluate([square], [np.zeros((2, 3), dtype=int)], NAMES, images=["x"])
    with pytest.raises(ValueError, match="1, predicted: labels from 0 to 3; give -1 to 2"):
        evaluate([square], [square + 3], NAMES)
    with pytest.raises(ValueError, match="1, gold: labels must be integers"):
        evaluate([square * 0.5], [square], NAMES)
    with pytest.raises(ValueError, match=r"give as many of both"):
        evaluate([square], [square, square], NAMES)
    with pytest.raises(ValueError, match="2 names and 1 images"):
        evaluate([square], [square], NAMES, images=["x", "y"])
    assert evaluate([], [], NAMES).as_dict()["images"] == 0


def shown(table):
    out = io.StringIO()
    Console(file=out, width=200).print(table)
    return out.getvalue()


def test_tables():
    gold, first = examples(6)
    _, second = examples(6, noise=0.3)
    found = summary(["one", "two"], [evaluate(gold, first, NAMES), evaluate(gold, second, NAMES)])
    json.dumps(found, allow_nan=False)
    text = shown(scores_table(["one", "two"], found))
    for part in ("pixel error %", "mean IoU %", "boundary F %", "95% interval", "pixel error against first", "p value"):
        assert part in text
    text = shown(class_table(found["systems"][0]))
    assert "predicted pixels" in text
    assert text.splitlines()[1].startswith("a ")
    assert str(found["systems"][0]["confusion"][2][1]) in shown(confusion_table(found["systems"][0]))


def test_scans_have_points_and_no_boundaries():
    gold = [np.array([0, 1, 2, 2])]
    scores = evaluate(gold, [np.array([0, 1, 2, 1])], NAMES, boundaries=False, unit="point")
    plain = scores.as_dict()
    assert plain["points"] == 4
    assert "boundary_f" not in plain
    found = summary(["x"], [scores])
    text = shown(scores_table(["x"], found)) + shown(class_table(found["systems"][0]))
    assert "point error %" in text
    assert "scans" in text
    assert "boundary" not in text
