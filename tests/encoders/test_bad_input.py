"""Bad input of any kind: a ValueError that names the example and says what to do, at fit, predict and score."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from data import cuts, variables_of
from refusals import BAD, EVERY, features_of, kinds, refused, spoiled
from sklearn.base import clone

import maxmargin as mm


@kinds
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite(fitted, kind, value):
    model, X, y = fitted[kind]
    array, put = features_of(kind, X[BAD])
    array = array.copy()
    array.reshape(-1)[-1] = value
    refused(model, spoiled(X, put(array)), y, rf"example {BAD}: .*NaN or infinity.*(impute|remove)", at=EVERY)


@kinds
@pytest.mark.parametrize(
    "make",
    [
        lambda a: a.reshape(-1),
        lambda a: a[0, 0] if a.ndim == 3 else a[0],
        lambda a: a[None, None],
        lambda a: np.float64(3.0),
        lambda a: a.astype(str),
        lambda a: a.astype(object),
        lambda a: a.astype(complex),
        lambda a: a.astype("M8[s]"),
        lambda a: "features",
        lambda a: b"features",
        lambda a: None,
        lambda a: {"a": 1},
        lambda a: {1, 2},
        lambda a: object(),
        lambda a: [[1.0, 2.0], [3.0]],
        lambda a: [[None, 1.0]],
        lambda a: np.ma.masked_array(a, mask=np.ones(a.shape, dtype=bool)),
        lambda a: [],
        lambda a: mm,
        lambda a: (row for row in a),
    ],
)
def test_features_of_another_shape_or_type(fitted, kind, make):
    model, X, y = fitted[kind]
    array, put = features_of(kind, X[BAD])
    refused(model, spoiled(X, put(make(array))), y, rf"example {BAD}: .*must be .*(array|numbers|mm\.)", at=EVERY)


@kinds
@pytest.mark.parametrize("at", [("fit",), ("predict", "score", "k_best", "decision_function")])
def test_ragged_widths(fitted, kind, at):
    model, X, y = fitted[kind]
    array, put = features_of(kind, X[BAD])
    wide = np.concatenate([array, array], axis=-1)
    d = array.shape[-1]
    refused(
        model,
        spoiled(X, put(wide)),
        y,
        rf"example {BAD}: .*{2 * d} columns, expected {d}; give the same features",
        at=at,
    )


@kinds
def test_other_feature_counts_than_in_training(fitted, kind):
    model, X, y = fitted[kind]
    narrow = [put(array[..., :1]) for array, put in (features_of(kind, x) for x in X)]
    refused(model, narrow, y, r"example 0: .*1 columns, expected \d", at=("predict", "score", "k_best"))


@kinds
@pytest.mark.parametrize(
    "X", [[], (), np.zeros((0, 2, 2)), "abc", b"abc", None, 5, 2.5, {}, {"a": 1}, {1}, np.array(3), iter([1]), object()]
)
def test_inputs_that_are_no_list_of_examples(fitted, kind, X):
    model, _, y = fitted[kind]
    refused(model, X, y, r"X (is empty: give|must be a list).*", at=EVERY)


@kinds
def test_one_matrix_for_all_examples(fitted, kind):
    model, _, y = fitted[kind]
    refused(model, np.ones((len(y), 3)), y, "example 0: ", at=("fit", "predict"))
    refused(model, sp.csr_array(np.ones((5, 3))), y, "X must be a list", at=("fit", "predict"))


@kinds
@pytest.mark.parametrize("y", [[], "abc", None, 5, {}, {1}, np.array(3), iter([1])])
def test_outputs_that_are_no_list(fitted, kind, y):
    model, X, _ = fitted[kind]
    refused(model, X, y, r"y (is empty: give|is missing: give|must be a list).*", at=("fit", "score"))


@kinds
def test_different_lengths(fitted, kind):
    model, X, y = fitted[kind]
    refused(model, X, y[:-1], f"X has {len(X)} examples but y has {len(y) - 1}: give one", at=("fit", "score"))
    refused(model, X[:-1], y, f"X has {len(X) - 1} examples but y has {len(y)}", at=("fit", "score"))


@kinds
@pytest.mark.parametrize(
    "bad", [None, 3, "word", {}, {"a": 1}, object(), 1.5, [[1, 2], [3]], [[[0]]], np.zeros((2, 2, 2))]
)
def test_outputs_of_another_type(fitted, kind, bad):
    model, X, y = fitted[kind]
    refused(model, X, spoiled(y, bad), rf"(example {BAD}\b|example {BAD}:)", at=("fit", "score"))


@kinds
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), r"sample_weight must be numbers of shape \(\d,\), one per example"),
        (np.ones((5, 1)), "one per example"),
        (2.0, "one per example"),
        ("ab", "one per example"),
        ({}, "one per example"),
        ([[1], [1, 2]], "one per example"),
        (lambda n: [1j] * n, "one per example"),
        (lambda n: ["1"] * n, "one per example"),
        (lambda n: [None] * n, "one per example"),
        (lambda n: [1.0] * (n - 1) + [-1.0], r"example \d: sample_weight must be finite and >= 0"),
        (lambda n: [1.0, np.nan] + [1.0] * (n - 2), "example 1: sample_weight must be finite and >= 0"),
        (lambda n: [1.0, np.inf] + [1.0] * (n - 2), "example 1: sample_weight must be finite and >= 0"),
        (lambda n: np.zeros(n), "sample_weight is zero for every example"),
    ],
)
def test_sample_weights(fitted, kind, weight, message):
    model, X, y = fitted[kind]
    weight = weight(len(X)) if callable(weight) else weight
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, y, weight)
    with pytest.raises(ValueError, match=message):
        model.score(X, y, weight)


@kinds
def test_loss_weights(fitted, kind):
    model, X, y = fitted[kind]
    counts = [variables_of(*example) for example in zip(X, y, strict=True)]
    good = [np.ones(n) for n in counts]
    for bad in (np.ones(counts[BAD] + 1), -np.ones(counts[BAD]), np.full(counts[BAD], np.nan), 1.0, "a", None, [1j]):
        with pytest.raises(ValueError, match=rf"example {BAD}: loss_weight must be {counts[BAD]} finite numbers"):
            clone(model).fit(X, y, loss_weight=spoiled(good, bad))
    for bad in (good[:-1], 3, "abc", {}, []):
        with pytest.raises(ValueError, match="loss_weight"):
            clone(model).fit(X, y, loss_weight=bad)


@kinds
def test_messages_are_short_and_end_without_a_traceback_of_others(fitted, kind):
    model, X, _y = fitted[kind]
    array, put = features_of(kind, X[BAD])
    with pytest.raises(ValueError) as caught:
        model.predict(spoiled(X, put(array * np.nan)))
    assert caught.value.__cause__ is None
    assert len(str(caught.value)) < 300
    assert not re.search(r"\n", str(caught.value))


def test_matrices_of_one_or_three_dimensions():
    model = mm.ChainSVM(C=1.0).fit([np.eye(2)], [["a", "b"]])
    with pytest.raises(ValueError, match=r"example 0: .* got shape \(3,\); use reshape\(-1, 1\) for a single feature"):
        model.predict([np.ones(3)])
    with pytest.raises(ValueError, match=r"example 0: .* got shape \(1, 2, 2\); give each example its own matrix"):
        model.explain([np.eye(2)])


def test_features_without_columns():
    assert mm.ChainSVM().fit([np.zeros((2, 0))], [["a", "b"]]).predict([np.zeros((2, 0))]) == [["a", "b"]]
    graph = mm.Graph(np.ones((2, 1)), [[0, 1]], np.zeros((1, 0)))
    assert mm.CutSVM(C=10.0).fit([graph], [[1, 1]]).predict([graph])[0].tolist() == [1, 1]
    assert mm.MatchingSVM().fit([np.zeros((2, 2, 0))], [[]]).predict([np.zeros((2, 2, 0))])[0].shape == (0, 2)


def test_cuts_and_chains_are_told_apart(fitted):
    graphs, _ = cuts(2)
    refused(fitted["chain"][0], graphs, [["a"]] * 2, "example 0: features must be real numbers", at=("fit", "predict"))
