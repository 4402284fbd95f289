"""Every kind of bad input: a ValueError that names the example and says what to do, at fit, predict and score."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from data import KINDS, PickOne, chains, cuts, graphs, matchings, pairings, picks, same, segmented, trees, variables_of
from sklearn.base import clone

import maxmargin as mm

kinds = pytest.mark.parametrize("kind", list(KINDS))
BAD = 2  # the example that each test spoils


@pytest.fixture(scope="module")
def fitted():
    """A trained estimator of each kind with its data; never trained again."""
    return {kind: (estimator().fit(*data()), *data()) for kind, (estimator, data) in KINDS.items()}


def refused(model, X, y, message, *, at=("fit", "predict", "score")):
    """All given calls raise ValueError with this message; fitting is tried on a fresh estimator."""
    calls = {
        "fit": lambda: clone(model).fit(X, y),
        "predict": lambda: model.predict(X),
        "score": lambda: model.score(X, y),
        "k_best": lambda: model.k_best(X, 2),
        "decision_function": lambda: model.decision_function(X),
        "relaxation": lambda: model.relaxation(X),
    }
    for name in at:
        with pytest.raises(ValueError, match=message) as caught:
            calls[name]()
        assert not isinstance(caught.value, UnicodeError), name


def spoiled(values, bad, index=BAD):
    """A copy of a list with one entry replaced."""
    return [bad if i == index else value for i, value in enumerate(values)]


def features_of(kind, x):
    """The main features of one input, and how to put others in their place."""
    if isinstance(x, mm.Graph):
        return x.node_features, lambda new: replace(x, node_features=new)
    if isinstance(x, (mm.PairGraph, mm.SpanChart, mm.WordLattice)):
        return x.features, lambda new: replace(x, features=new)
    return x, lambda new: new


EVERY = ("fit", "predict", "score", "k_best", "decision_function")


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


INTEGER, NUMBER = "must be an integer >= 1", "must be a number > 0"
SETTINGS = {
    "C": [
        ([-1.0], f"C {NUMBER} or infinity.*larger C"),
        ([0, np.nan, "1", True, [1.0, -1.0]], f"C {NUMBER}"),
        ([[]], "C is empty"),
        ([[0.1, 1.0]], "several values of C are compared on dev data"),
    ],
    "radius": [([-1.0, "big"], f"radius {NUMBER}")],
    "tol": [([-1e-3, np.nan, np.inf, "small", None], "tol must be a finite number >= 0")],
    "max_iter": [([0, -5, 1.5, "many", np.inf, True], f"max_iter {INTEGER}")],
    "max_seconds": [([0, -1.0, np.nan, "1"], f"max_seconds {NUMBER}")],
    "n_jobs": [
        ([0], "n_jobs must be None or a non-zero integer.*-1 for all"),
        ([1.5, "2", True], "n_jobs must be None"),
    ],
    "solver": [
        (["best", None, np.ones(2)], 'solver must be "auto" or a solver object'),
        ([mm.Extragradient], r"write mm.Extragradient\(\)"),
    ],
    "loss": [
        (["hamming", mm.losses.Hamming], r"loss must be a loss of maxmargin\.losses"),
        ([mm.losses.Hamming(-1.0, -1.0)], "false_positive must be a finite number >= 0"),
    ],
    "random_state": [(["seed", -1, 1.5], "random_state must be None or an integer")],
    "callbacks": [([[3]], "callbacks must be functions"), ([3, print], "callbacks must be a list")],
    "nonnegative": [
        (
            [[99], [True], "all", [0.5], [[0], [1, 2]], [-1], 3, [[0, 1]]],
            "nonnegative must be a list of indices from 0, a mask of the",
        )
    ],
    "verbose": [(["x"], "verbose must be True or False")],
    "warm_start": [(["x"], "warm_start must be True or False")],
}


@kinds
@pytest.mark.parametrize("name", SETTINGS)
def test_settings(fitted, kind, name):
    model, X, y = fitted[kind]
    for values, message in SETTINGS[name]:
        for value in values:
            with pytest.raises(ValueError, match=message):
                clone(model).set_params(**{name: value}).fit(X, y)


@pytest.mark.parametrize("structure", [None, 3, "chain", [PickOne]])
def test_structures(structure):
    with pytest.raises(ValueError, match=r"structure must be a Structure class.*ChainSVM"):
        mm.StructuredSVM(structure).fit(*picks())


def test_structures_that_break_their_promises():
    X, y = picks()
    with pytest.raises(ValueError, match=r"must make a maxmargin\.structures\.Structure, got list"):
        mm.StructuredSVM(list).fit(X, y)
    with pytest.raises(ValueError, match="give one row of features per part"):
        mm.StructuredSVM(lambda sizes: PickOne(sizes + 1)).fit(X, y)

    class Short(PickOne):
        def encode(self, labels):
            return np.zeros(3)

    with pytest.raises(ValueError, match=r"Short\.encode must return a vector of shape"):
        mm.StructuredSVM(Short).fit(X, y)


def test_parts_of_ones_own():
    X, y = picks()
    model = mm.StructuredSVM(PickOne).fit(X, y)
    refused(model, spoiled(X, np.zeros((0, 2))), y, rf"example {BAD}: no parts; remove it", at=EVERY)
    refused(model, spoiled(X, np.zeros(2)), y, rf"example {BAD}: .*2-D", at=EVERY)
    refused(model, spoiled(X, np.full((2, 2), np.nan)), y, rf"example {BAD}: .*NaN", at=EVERY)
    refused(model, X, spoiled(y, 99), f"example {BAD}: 99 is not one of its", at=("fit", "score"))


# Chains


def test_empty_sequences(fitted):
    model, X, y = fitted["chain"]
    refused(model, spoiled(X, np.zeros((0, 3))), spoiled(y, []), rf"example {BAD}: an empty sequence.*remove", at=EVERY)


def test_labels_of_another_length(fitted):
    model, X, y = fitted["chain"]
    for bad in ([], [*y[BAD], "a"], y[BAD][:-1]):
        refused(model, X, spoiled(y, bad), f"example {BAD} has .*one label per position", at=("fit", "score"))


def test_unknown_labels(fitted):
    model, X, y = fitted["chain"]
    strange = spoiled(y, ["z"] * len(y[BAD]))
    refused(model, X, strange, rf"example {BAD}: label 'z' was not seen in training; give all labels", at=("score",))
    with pytest.raises(ValueError, match=rf"example {BAD}: label 'z' was not seen.*classes"):
        clone(model).set_params(classes=["a", "b", "c"]).fit(X, strange)
    with pytest.raises(ValueError, match=rf"dev data: example {BAD}: label 'z'"):
        clone(model).fit(X, y, dev=(X, strange))


@pytest.mark.parametrize("label", [["x"], {"x": 1}, {1}, np.zeros(2)])
def test_unhashable_labels(fitted, label):
    model, X, y = fitted["chain"]
    bad = spoiled(y, [label] * len(y[BAD]))
    refused(model, X, bad, rf"example {BAD}: labels must be hashable.*tuples", at=("fit", "score"))


def test_labels_that_are_nan(fitted):
    model, X, y = fitted["chain"]
    for bad in ([np.nan] * len(y[BAD]), np.full(len(y[BAD]), np.nan)):
        refused(model, X, spoiled(y, bad), f"example {BAD}: NaN cannot be a label", at=("fit", "score"))


def test_a_string_is_no_list_of_labels(fitted):
    model, X, y = fitted["chain"]
    for bad in ("".join(y[BAD]), set(y[BAD]), dict.fromkeys(y[BAD]), iter(y[BAD])):
        refused(model, X, spoiled(y, bad), rf"example {BAD}: y must be a list or 1-D array", at=("fit", "score"))


@pytest.mark.parametrize("classes", [[], ["a", "a"], [["a"], ["b"]], "abc", 3, [np.nan], {"a": 1, "b": 2}.keys])
def test_bad_classes(classes):
    with pytest.raises(ValueError, match="classes"):
        mm.ChainSVM(classes=classes).fit(*chains(3))


def test_edge_features_of_chains():
    X, y = chains(4, edges=True)
    model = mm.ChainSVM().fit(X, y)
    n = len(y[BAD])

    def with_edges(value):
        return spoiled(X, replace(X[BAD], edge_features=value))

    refused(model, with_edges(np.ones((n, 2))), y, rf"example {BAD}: {n} rows of edge features.*length - 1", at=EVERY)
    refused(model, with_edges(np.ones((n - 1, 3))), y, rf"example {BAD}: edge features have 3 columns", at=EVERY)
    refused(model, with_edges(np.full((n - 1, 2), np.nan)), y, rf"example {BAD}: edge features hold NaN", at=EVERY)
    refused(model, with_edges(np.ones(n - 1)), y, rf"example {BAD}: edge features must be a 2-D array", at=EVERY)
    refused(model, with_edges(None), y, rf"example {BAD}: no edge features.*for all or for none", at=EVERY)


# Sparse features


def test_sparse_features(fitted):
    model, X, y = fitted["chain"]
    sparse = [sp.csr_array(x) for x in X]
    n = len(y[BAD])
    holes = sparse[BAD].copy()
    holes.data[-1] = np.nan
    refused(model, spoiled(sparse, holes), y, rf"example {BAD}: features hold NaN or infinity in row {n - 1}", at=EVERY)
    refused(model, spoiled(X, holes), y, rf"example {BAD}: features hold NaN", at=EVERY)
    refused(model, spoiled(sparse, sparse[BAD].astype(complex)), y, rf"example {BAD}: .*real numbers", at=EVERY)
    refused(model, spoiled(sparse, sp.csr_array((n, 7))), y, rf"example {BAD}: .*7 columns", at=("predict",))
    refused(model, spoiled(sparse, sp.coo_array(np.ones(3))), y, rf"example {BAD}: .*2-D", at=EVERY)
    outside = sp.csr_array(np.ones((n, 3)))
    outside.indices[-1] = 1000
    refused(model, spoiled(sparse, outside), y, rf"example {BAD}: .*not a valid CSR matrix", at=EVERY)
    negative = sp.csr_array(np.ones((n, 3)))
    negative.indices[0] = -1
    refused(model, spoiled(sparse, negative), y, rf"example {BAD}: .*not a valid CSR matrix", at=EVERY)
    falling = sp.csr_array(np.ones((n, 3)))
    falling.indptr[1] = 3 * n
    refused(model, spoiled(sparse, falling), y, rf"example {BAD}: .*not a valid CSR matrix", at=EVERY)


FORMATS = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]


def damaged(form, name, change):
    """A (4, 3) matrix of a format whose array ``name`` was changed in place or replaced."""
    value = sp.csr_array(np.arange(12.0).reshape(4, 3)).asformat(form)
    setattr(value, name, change(getattr(value, name).copy()))
    return value


def put(position, number):
    def change(array):
        array[position] = number
        return array

    return change


@pytest.mark.parametrize("form", FORMATS)
def test_all_sparse_formats_are_taken(form):
    X, y = chains(4)
    sparse = [sp.csr_array(x).asformat(form) for x in X]
    wide = [sp.csr_matrix(x).asformat(form) for x in X]
    plain = mm.ChainSVM().fit(X, y)
    for given in (sparse, wide):
        np.testing.assert_allclose(mm.ChainSVM().fit(given, y).coef_, plain.coef_, atol=1e-9)
        assert plain.predict(given) == plain.predict(X)
    empty = sp.csr_array((3, 3)).asformat(form)
    assert plain.predict([empty]) == plain.predict([np.zeros((3, 3))])


def short(array):
    return array[:-1]


def beside(array):
    return array[:, None]


DAMAGES = {
    "csr": {
        "indices": [short, lambda a: a.astype(float)],
        "indptr": [short, put(-1, -5), put(-1, 10**6), put(0, 1)],
        "data": [short],
    },
    "csc": {
        "indices": [put(0, 10**8), put(-1, 4), put(3, -1), short, lambda a: a.astype(float), beside],
        "indptr": [put(1, 10**8), put(1, -3), put(0, 1), put(-1, 10**8), put(-1, 0), short],
        "data": [short, beside],
    },
    "coo": {"row": [put(0, 10**8), put(0, -1)], "col": [put(-1, 3), short], "data": [short]},
    "bsr": {
        "indices": [put(0, 10**8), put(0, -1)],
        "indptr": [put(1, 10**8), put(-1, 10**8)],
        "data": [short, lambda a: np.ones((len(a), 3, 3)), lambda a: np.ones((len(a), 0, 1))],
    },
    "dia": {
        "offsets": [put(0, 2**31 - 1), put(0, -100), put(0, 0), short],
        "data": [short, lambda a: a[0]],
    },
    "lil": {
        "rows": [
            *(put(1, row) for row in ([0, 10**8, 2], [-1, 1, 2], [0, 1], [0, 1, "x"], None)),
            short,
        ],
        "data": [put(1, [1.0] * 1000), put(1, ["x", 1.0, 1.0])],
    },
    "dok": {
        "_dict": [
            *(lambda d, at=at: d | {at: 1.0} for at in ((0, 10**8), (-1, 0), (0, 1.5), 7)),
            lambda d: d | {(0, 0): "x"},
        ],
    },
}


@pytest.mark.parametrize(
    ("form", "name", "change"),
    [(form, name, change) for form, names in DAMAGES.items() for name, found in names.items() for change in found],
)
def test_damaged_sparse_matrices_never_reach_a_conversion(fitted, form, name, change):
    model, X, y = fitted["chain"]
    bad = damaged(form, name, change)
    labels = spoiled(y, ["a"] * 4)
    refused(model, spoiled(X, bad), labels, f"example {BAD}: features are not a valid {form.upper()} matrix", at=EVERY)
    graphs, links = matchings(3)
    rows = mm.Bipartite(bad, [[0, 0], [0, 1], [1, 0], [1, 1]], (2, 2))
    refused(
        fitted["matching"][0], [*graphs, rows], [*links, []], "example 3: features are not a valid", at=("predict",)
    )


def test_sparse_input_for_dense_graphs(fitted):
    model, X, y = fitted["matching"]
    refused(model, spoiled(X, sp.csr_array(np.ones((3, 3)))), y, rf"example {BAD}: .*mm\.Bipartite", at=EVERY)


# Matchings


def test_gold_matchings_that_are_none(fitted):
    model, X, y = fitted["matching"]
    left, right = X[BAD].shape[:2]
    for pairs, message in (
        ([[0, 0], [0, 1]], "left node 0 has 2 links.*raise left_capacity"),
        ([[0, 0], [1, 0]], "right node 0 has 2 links.*raise right_capacity"),
        ([[left, 0]], "is not an edge of its graph.*drop it"),
        ([[0, right]], "is not an edge of its graph.*drop it"),
        ([[-1, 0]], "is not an edge of its graph.*drop it"),
        ([[0, 0], [0, 0]], "is given more than once; list every pair once"),
        ([[0, 0, 0]], r"integer array of shape \(k, 2\)"),
        ([0, 1], r"integer array of shape \(k, 2\)"),
        ([[0.0, 1.0]], r"integer array of shape \(k, 2\)"),
        ([["0", "1"]], r"integer array of shape \(k, 2\)"),
        ([[True, False]], r"integer array of shape \(k, 2\)"),
        (np.eye(3), r"integer array of shape \(k, 2\)"),
    ):
        refused(model, X, spoiled(y, pairs), f"example {BAD}: .*{message}", at=("fit", "score"))


def test_pairings(fitted):
    X, y = pairings(full=True)
    model, n = fitted["pairing"][0], len(X[BAD])
    assert same(mm.PairingSVM().fit(X, y).predict(X), model.predict(fitted["pairing"][1]))
    for pairs, message in (
        ([[0, 1], [1, 2]], "node 1 has 2 partners.*drop pairs"),
        ([[0, 0]], "is not an edge of its graph.*drop it"),
        ([[0, n]], "is not an edge of its graph.*drop it"),
        ([[0, 1, 2]], r"integer array of shape \(k, 2\)"),
        ([[0.0, 1.0]], r"integer array of shape \(k, 2\)"),
    ):
        refused(model, X, spoiled(y, pairs), f"example {BAD}: .*{message}", at=("fit", "score"))
    refused(model, spoiled(X, X[BAD][:2]), y, rf"example {BAD}: X must be .* got shape", at=EVERY)
    edges = [[0, 1], [2, 3]]
    for graph, message in (
        (mm.PairGraph(np.zeros((3, 3)), edges), "3 rows of features for 2 edges; give one per edge"),
        (mm.PairGraph(np.zeros((2, 3)), edges, 2.5), "n_nodes must be"),
        (mm.PairGraph(np.zeros((2, 3)), [[0, 1], [1, 0]]), "more than once"),
        (mm.PairGraph(np.zeros((2, 3)), edges, 3), "number its nodes from 0"),
    ):
        refused(model, spoiled(X, graph), y, f"example {BAD}.*{message}", at=EVERY)
    with pytest.raises(ValueError, match="perfect must be"):
        mm.PairingSVM(perfect="yes").fit(*pairings(3))
    with pytest.raises(ValueError, match="has no partner; add a pair, or use perfect=False"):
        mm.PairingSVM(perfect=True).fit(*pairings(6))


def test_segments(fitted):
    model, X, y = fitted["segments"]
    n = len(X[BAD])
    for rows, message in (
        ([(0, n + 1, "a")], "ends after the sequence|longer than its label allows"),
        ([(1, n, "a")], "does not begin where the one before it ends"),
        ([(0, 1, "c")], "label 'c' was not seen in training" if n else ""),
        ([(0, 1)], r"must be a list of segments \(begin, end, label\)"),
        ([(0.0, 1, "a")], "must be positions, whole numbers from 0 on"),
        ([(-1, 1, "a")], "must be positions, whole numbers from 0 on"),
        ([(0, 1, [])], "labels must be hashable"),
        ("aab", "must be a list of segments"),
        (3, "must be a list of segments"),
    ):
        at = ("fit",) if "c" not in str(rows) else ()
        refused(model, X, spoiled(y, rows), f"example {BAD}: .*({message})", at=at)
    with pytest.raises(ValueError, match=f"example {BAD}: label 'c' was not seen"):
        mm.SegmentSVM(classes=["a", "b"]).fit(X, spoiled(y, [(0, 1, "c")]))
    for settings, message in (
        ({"longest": 0}, "longest must be"),
        ({"longest": {"c": 2}}, "longest names 'c', which is not a label; there are a, b"),
        ({"longest": {"a": "2"}}, r"longest\['a'\] must be"),
        ({"roles": "IO"}, "roles must be"),
        ({"forbidden": [("a", "c")]}, "forbidden names 'c', which is not a label; there are a, b"),
        ({"forbidden": [("a",)]}, "must be pairs"),
        ({"forbidden": "ab"}, "forbidden"),
        ({"longest": 1}, "is longer than its label allows"),
    ):
        with pytest.raises(ValueError, match=message):
            mm.SegmentSVM(**settings).fit(X, y)
    with pytest.raises(
        ValueError, match=r"example 0: 3 rows of segment features for \d+ segments .*candidate_segments"
    ):
        mm.SegmentSVM(longest=3).fit([mm.SegmentSequence(x, np.zeros((3, 1))) for x in X], y)
    rich = mm.SegmentSVM().fit(*segmented(whole=True))
    with pytest.raises(ValueError, match="segment features must be given for all sequences"):
        rich.predict(X)
    with pytest.raises(ValueError, match="example 0: no segment features, but 1 of 2 sequences have them"):
        rich.predict([X[0], segmented(1, whole=True)[0][0]])


def test_a_gold_link_that_was_pruned():
    X, y = matchings(4, pruned=True)
    left, right = X[BAD].shape
    kept = X[BAD].edges.tolist()
    gone = next([j, k] for j in range(left) for k in range(right) if [j, k] not in kept)
    model = mm.MatchingSVM().fit(X, y)
    refused(model, X, spoiled(y, [gone]), rf"example {BAD}: pair .*drop it or add", at=("fit", "score"))


def test_graphs_of_matchings():
    X, y = matchings(4, pruned=True)
    model = mm.MatchingSVM().fit(X, y)
    good = X[BAD]
    for changes, message in (
        ({"edges": np.concatenate([good.edges[1:], good.edges[1:2]])}, "more than once"),
        ({"edges": good.edges + 10}, "outside its graph.*number the nodes"),
        ({"edges": good.edges - 1}, "outside its graph.*number the nodes"),
        ({"edges": good.edges[:-1]}, "edges but .*one row per edge"),
        ({"edges": good.edges.astype(float)}, r"integer array of shape \(n_edges, 2\)"),
        ({"edges": "ab"}, r"integer array of shape \(n_edges, 2\)"),
        ({"edges": None}, r"integer array of shape \(n_edges, 2\)"),
        ({"edges": [[0, 1], [2]]}, r"integer array of shape \(n_edges, 2\)"),
        ({"edges": good.edges[:, :1]}, r"integer array of shape \(n_edges, 2\)"),
        ({"shape": (0, 3)}, "at least one node on each side.*remove"),
        ({"shape": (2,)}, "shape must be"),
        ({"shape": 3}, "shape must be"),
        ({"shape": None}, "shape must be two integers"),
        ({"shape": "ab"}, "shape must be two integers"),
        ({"shape": (2.5, 3)}, "shape must be two integers"),
        ({"shape": (-1, 3)}, "at least one node"),
        ({"left_capacity": -1}, "left_capacity must be integers >= 0"),
        ({"left_capacity": 1.5}, "left_capacity must be integers >= 0"),
        ({"right_capacity": [1] * 99}, "right_capacity must be integers >= 0, one or"),
        ({"right_capacity": "many"}, "right_capacity must be integers >= 0, one or"),
    ):
        refused(model, spoiled(X, replace(good, **changes)), y, f"example {BAD}: .*{message}", at=EVERY)


@pytest.mark.parametrize("shape", [(0, 3, 3), (3, 0, 3), (0, 0, 3)])
def test_matchings_without_nodes(fitted, shape):
    model, X, y = fitted["matching"]
    refused(model, spoiled(X, np.zeros(shape)), spoiled(y, []), rf"example {BAD}: .*remove", at=EVERY)


@pytest.mark.parametrize("value", [0, -1, 1.5, "2", None, True, np.inf])
@pytest.mark.parametrize("side", ["left_capacity", "right_capacity"])
def test_capacities(side, value):
    with pytest.raises(ValueError, match=f"{side} must be an integer >= 1"):
        mm.MatchingSVM(**{side: value}).fit(*matchings(3))


# Lattices


def test_gold_paths_that_are_none(fitted):
    model, X, y = fitted["lattice"]
    path = y[BAD]
    for given, message in (
        (path[::-1], "not a path from node 0 to node .* give the path's edges in order"),
        (path[:-1], "not a path .* after the last entry"),
        ([], "not a path"),
        ([*path, path[-1]], "not a path"),
        ([-1], "edge -1 is out of range"),
        ([99], "edge 99 is out of range"),
        (3, "y must be a path, a vector of edge numbers, or a list of several paths"),
        (path.astype(float), "y must be a path"),
        (path.astype(str), "y must be a path"),
        (None, "y must be a path"),
        ([path, [0.5]], "y must be a path"),
        ([path, 3], "y must be a path"),
        (np.zeros((0, 3), dtype=int), "no path is good"),
    ):
        refused(model, X, spoiled(y, given), f"example {BAD}: .*{message}", at=("fit", "score"))
    several = [path, path]
    refused(model, X, spoiled(y, several), f'example {BAD}: several paths are good; use formulation="all"', at=("fit",))
    assert model.score(X, spoiled(y, several)) == model.score(X, y)


def test_graphs_of_lattices(fitted):
    model, X, y = fitted["lattice"]
    good = X[BAD]
    n = len(good.edges)
    for changes, message in (
        ({"edges": good.edges[:, ::-1]}, "there is no path from node 0"),
        ({"edges": np.concatenate([good.edges[:-1], [[1, 0]]])}, "its edges form a cycle.*drop or turn an edge"),
        ({"edges": good.edges - 1}, "has a node out of range; number nodes from 0"),
        ({"edges": good.edges + 2**40}, "has a node out of range; number nodes from 0"),
        ({"edges": good.edges[:-1]}, "edges but .*one row per edge"),
        ({"edges": good.edges.astype(float)}, r"integer array of shape \(n_edges, 2\)"),
        ({"edges": None}, r"integer array of shape \(n_edges, 2\)"),
        ({"start": -1}, "start must be one node number >= 0"),
        ({"start": 0.5}, "start must be one node number"),
        ({"start": [0, 1]}, "start must be one node number"),
        ({"start": 99, "end": 99}, None),
        ({"end": 99}, "there is no path from node 0 to node 99; add edges, give another start or end"),
        ({"end": "x"}, "end must be one node number"),
        ({"words": ["a"] * (n - 1)}, f"words must be {n} words, one per edge"),
        ({"words": "a" * n}, f"words must be {n} words"),
        ({"words": 3}, f"words must be {n} words"),
        ({"words": sp.csr_array((n, n))}, f"words must be {n} words"),
        ({"words": [["a"]] * n}, "words must be strings or other hashable values"),
    ):
        changed = spoiled(X, replace(good, **changes))
        if message is None:
            assert len(model.predict(changed)[BAD]) == 0
        else:
            refused(model, changed, y, f"example {BAD}: .*{message}", at=EVERY)
    refused(model, spoiled(X, good.features), y, rf"example {BAD}: X must be mm\.WordLattice", at=EVERY)


def test_other_settings_of_lattices(fitted):
    model, X, y = fitted["lattice"]
    for settings, message in (
        ({"formulation": "nearest"}, "formulation must be"),
        ({"formulation": "best", "rounds": 0}, "rounds must be"),
        ({"formulation": "all", "rescaling": "slack"}, "a margin of 1 or of their costs"),
        ({"formulation": "all"}, "give the costs of all outputs"),
        ({"features": "rbf"}, "features must be None or a kernel"),
    ):
        with pytest.raises(ValueError, match=message):
            mm.LatticeSVM(**settings).fit(X, y)
    with pytest.raises(ValueError, match="distinct must be"):
        model.k_best(X, 2, distinct="edges")
    with pytest.raises(ValueError, match="the lattices have no words"):
        model.k_best([replace(x, words=None) for x in X], 2, distinct="words")
    with pytest.raises(ValueError, match="k_best_words is for lattices, not for a chain"):
        fitted["chain"][0].model_.k_best_words(fitted["chain"][1], 2)
    with pytest.raises(ValueError, match="the lattice has no words"):
        mm.words_of(replace(X[0], words=None), y[0])
    with pytest.raises(ValueError, match="slot 1 has 0 alternatives"):
        mm.WordLattice.confusion_network(np.zeros((2, 1)), [2, 0])


# Cuts


GRAPHS = {
    "associative": (mm.AssociativeSVM, graphs()),
    "cut": (mm.CutSVM, cuts()),
    "graph": (mm.GraphSVM, graphs(signed=True)),
    "tree": (mm.TreeSVM, trees(edges=True)),
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_graphs(kind):
    estimator, (X, y) = GRAPHS[kind]
    model, good = estimator().fit(X, y), X[BAD]
    nodes, edges, rows = good.node_features, good.edges, good.edge_features
    d = rows.shape[1]

    def second(*pair):
        return np.concatenate([edges[:1], [pair], edges[2:]])

    listed = "k_best" if kind in ("cut", "tree") else "relaxation"
    at, pairs = ("fit", "predict", "score", "decision_function", listed), r"integer array of shape \(n_edges, 2\)"
    for changes, message in (
        ({"edges": second(1, 1)}, "self-loop.*leave it out"),
        ({"edges": second(*edges[0])}, "more than once.*keep one edge"),
        ({"edges": second(*edges[0][::-1])}, "more than once.*keep one edge"),
        ({"edges": second(0, len(nodes))}, "number its nodes from 0"),
        ({"edges": second(-1, 0)}, "number its nodes from 0"),
        ({"edges": edges.astype(float)}, pairs),
        ({"edges": edges.reshape(-1)}, pairs),
        ({"edges": None}, pairs),
        ({"edges": "edges"}, pairs),
        ({"edges": [[0, 1], [2]]}, pairs),
        ({"edges": edges[:-1]}, "edges but .*one row per edge"),
        ({"edge_features": rows[1:]}, "one row per edge"),
        ({"edge_features": rows * np.nan}, "edge features hold NaN or infinity in row 0"),
        ({"edge_features": rows[:, 0]}, "edge features must be a 2-D array"),
        ({"edge_features": []}, "edge features must be a 2-D array"),
        ({"edge_features": np.hstack([rows, rows])}, f"edge features have {2 * d} columns, expected {d}"),
        ({"edge_features": rows[:, 1:]}, f"edge features have {d - 1} columns, expected {d}"),
        ({"edge_features": "ab"}, "edge features must be real numbers"),
        ({"node_features": nodes[:, 1:]}, "node features have . columns, expected"),
        ({"node_features": np.vstack([nodes[:2], nodes[2:] * np.nan])}, "node features hold NaN or infinity in row 2"),
        ({"node_features": nodes[:0]}, "at least one node; remove it"),
    ):
        refused(model, spoiled(X, replace(good, **changes)), y, rf"example {BAD}\b.*{message}", at=at)
    for bad in (nodes, (nodes, edges), None, "graph", {}):
        refused(model, spoiled(X, bad), y, rf"example {BAD}: X must be a list of mm\.Graph", at=at)


def test_edge_features_of_cuts(fitted):
    model, X, y = fitted["cut"]
    good = X[BAD]
    negative = good.edge_features.copy()
    negative[1, 1] = -0.5
    for rows, message in (
        (negative, "edge features must be >= 0.*(shift|split)"),
        (sp.csr_array(negative), "edge features must be >= 0.*(shift|split)"),
        (None, "edge features have 1 columns, expected 2"),
    ):
        refused(model, spoiled(X, replace(good, edge_features=rows)), y, rf"example {BAD}\b.*{message}", at=EVERY)


def test_labels_of_cuts(fitted):
    model, X, y = fitted["cut"]
    n = len(y[BAD])
    for bad in (
        np.full(n, 2),
        np.full(n, -1),
        np.full(n, 0.5),
        np.full(n, np.nan),
        np.zeros(n + 1),
        np.zeros(n - 1),
        np.zeros((n, 1)),
        ["0"] * n,
        [None] * n,
        [1j] * n,
        np.zeros(n, dtype=complex),
    ):
        refused(model, X, spoiled(y, bad), rf"example {BAD}\b.*(give|must be).* 0 or 1", at=("fit", "score"))


@kinds
def test_messages_are_short_and_end_without_a_traceback_of_others(fitted, kind):
    model, X, _y = fitted[kind]
    array, put = features_of(kind, X[BAD])
    with pytest.raises(ValueError) as caught:
        model.predict(spoiled(X, put(array * np.nan)))
    assert caught.value.__cause__ is None
    assert len(str(caught.value)) < 300
    assert not re.search(r"\n", str(caught.value))


def test_features_without_columns():
    assert mm.ChainSVM().fit([np.zeros((2, 0))], [["a", "b"]]).predict([np.zeros((2, 0))]) == [["a", "b"]]
    graph = mm.Graph(np.ones((2, 1)), [[0, 1]], np.zeros((1, 0)))
    assert mm.CutSVM(C=10.0).fit([graph], [[1, 1]]).predict([graph])[0].tolist() == [1, 1]
    assert mm.MatchingSVM().fit([np.zeros((2, 2, 0))], [[]]).predict([np.zeros((2, 2, 0))])[0].shape == (0, 2)


def test_cuts_and_chains_are_told_apart(fitted):
    graphs, _ = cuts(2)
    refused(fitted["chain"][0], graphs, [["a"]] * 2, "example 0: features must be real numbers", at=("fit", "predict"))


@pytest.mark.parametrize("name", ["Chain", "Tree", "Matching", "Cut", "PairwiseGraph", "Associative"])
def test_built_in_structures_have_their_estimators(name):
    with pytest.raises(ValueError, match="for the built-in structures use ChainSVM"):
        mm.StructuredSVM(getattr(mm.structures, name)).fit(*chains())


def test_plots_of_something_else():
    with pytest.raises(ValueError, match=r"what mm\.regularization_path returns"):
        mm.report.plot_path(3)
    with pytest.raises(ValueError, match="map names to solutions"):
        mm.report.plot_convergence(3)


def test_fractional_outputs_are_not_silent():
    A, features = [[1, 1, 0], [0, 1, 1], [1, 0, 1]], np.ones((3, 1))
    model = mm.ProgramSVM(C=10.0).fit([mm.Program(features, A, [2, 2, 2])] * 3, [[1, 1, 1]] * 3)
    with pytest.warns(UserWarning, match="relaxed=True"):
        model.predict([mm.Program(features, A, [1, 1, 1])])


def test_a_broken_constraint_is_given_in_its_own_units():
    with pytest.raises(ValueError, match="by 10"):
        mm.ProgramSVM().fit([mm.Program(np.ones((3, 2)), [[10, 10, 10]], [10])], [[1, 1, 0]])


# Sizes that no memory holds are refused before anything is allocated

CLAIMED = np.broadcast_to(0.0, (10**6, 10**6))  # claims 8 TB, and holds one number


class Unreadable:
    """An object that NumPy cannot read."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array here")


class Long:
    """A sequence that claims more items than it has."""

    def __len__(self):
        return 2**50

    def __getitem__(self, index):
        raise IndexError(index)


NEEDS = r"would need [\d.]+ [TPE]B of memory, there are [\d.]+ \w+; "


@kinds
def test_views_larger_than_memory(fitted, kind):
    model, X, y = fitted[kind]
    array, put = features_of(kind, X[BAD])
    claimed = np.broadcast_to(0.0, (10**6, 10**6, 3)[-array.ndim :] if array.ndim == 3 else (10**6, 10**6))
    refused(model, spoiled(X, put(claimed)), y, f"example {BAD}: .*{NEEDS}", at=EVERY)
    refused(model, CLAIMED, y, f"X {NEEDS}", at=EVERY)
    refused(model, X, CLAIMED, f"y {NEEDS}", at=("fit", "score"))
    refused(model, Long(), y, f"X {NEEDS}", at=EVERY)


@kinds
def test_objects_that_cannot_be_read(fitted, kind):
    model, X, y = fitted[kind]
    _, put = features_of(kind, X[BAD])
    refused(model, spoiled(X, put(Unreadable())), y, rf"example {BAD}: .* of unequal or odd entries", at=EVERY)
    refused(model, X, spoiled(y, Unreadable()), f"example {BAD}", at=("fit", "score"))
    with pytest.raises(ValueError, match="sample_weight must be numbers"):
        clone(model).fit(X, y, Unreadable())


def test_matrices_of_more_columns_than_weights_fit(fitted):
    model, X, y = fitted["chain"]
    wide = [sp.csr_array((x.shape[0], 2**45)) for x in X]
    refused(model, wide, y, f"a model of .* weights {NEEDS}", at=("fit",))
    tall = spoiled(X, sp.coo_array((2**45, X[0].shape[1])))
    refused(model, tall, y, f"example {BAD}: .*{NEEDS}", at=EVERY)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mm.structures.Chain([2**40], 3),
        lambda: mm.structures.Chain([2**62, 2**62], 3),
        lambda: mm.structures.Chain([2**20], 2**15, transitions="each"),
        lambda: mm.structures.SecondOrderChain([2**40], 3),
        lambda: mm.structures.Candidates([3, 2**45]),
        lambda: mm.structures.Cut([2**45], [], [0, 0]),
        lambda: mm.structures.Tree([2**45], 2, [], [0, 0]),
        lambda: mm.structures.Associative([2**45], [], [0, 0], 2),
        lambda: mm.structures.Matching.dense([[2**25, 2**25]]),
        lambda: mm.structures.Lattice([2**45], [[0, 1]], [0, 1]),
        lambda: mm.structures.TransitionConstraints.anything(2**30),
        lambda: mm.WordLattice.confusion_network(np.ones((2, 1)), [2**45, 1]),
        lambda: mm.features.TiedRows(np.ones((2, 2)), [0, 2], 2**50),
        lambda: mm.features.PartFeatures(sp.csr_array((2, 2**50)), [0, 2]),
        lambda: mm.features.ChainFeatures(np.ones((2, 2)), [2], 2**30),
    ],
)
def test_sizes_that_no_memory_holds(make):
    with pytest.raises(ValueError, match=NEEDS):
        make()


def test_more_ranks_than_fit_into_memory():
    structure = mm.structures.Chain([40], 3)
    with pytest.raises(ValueError, match=r"^\d+ outputs per example \(k\) would need .* smaller k"):
        structure.k_best(np.zeros(structure.n_parts), 10**9 // 2)
    cut = mm.structures.Cut([40], [[0, 1]], [0, 1])
    with pytest.raises(ValueError, match=r"^\d+ outputs per example \(k\) would need .* smaller k"):
        cut.k_best(np.ones(cut.n_parts), 10**12)
    assert len(mm.structures.Chain([2], 2).k_best(np.zeros(8), 10**12)) == 4


def test_memory_is_that_of_the_machine_unless_it_is_set(monkeypatch):
    from maxmargin import _memory

    with pytest.raises(ValueError, match=r"it would need 8 EB of memory, there are \d+(\.\d+)? [GT]B; buy more"):
        _memory.require(8e18, "it", "buy more")
    _memory.require(1e6, "it", "buy more")
    monkeypatch.setattr(_memory, "LIMIT", 10**6)
    with pytest.raises(ValueError, match=r"it would need 1\.5 MB of memory, there are 1 MB; buy more"):
        _memory.require(1.5e6, "it", "buy more")


@pytest.mark.parametrize("seed", [[[[1]]], [1, [2, [3]]], "1", -1, 1.5, True, Unreadable(), np.timedelta64(3, "s")])
def test_seeds_that_numpy_would_crash_on(seed):
    with pytest.raises(ValueError, match="random_state must be None or an integer >= 0"):
        mm.training.Settings(random_state=seed)


def test_numbers_of_any_kind_are_taken_as_they_are_meant():
    from fractions import Fraction

    X, y = chains(4)
    given = {"C": Fraction(1, 2), "tol": np.float32(0.5), "max_iter": np.int8(100), "max_seconds": 10**400}
    assert mm.ChainSVM(**given).fit(X, y).solution_.certificate.relative_gap <= 0.5
    for value in (10**400, np.longdouble("1e4000"), 1j, "1"):
        with pytest.raises(ValueError, match="tol must be a finite number >= 0"):
            mm.Stop(tol=value)


@pytest.mark.parametrize("value", ["x" * 10**6, list(range(10**6)), 10**5000], ids=["text", "list", "number"])
def test_messages_stay_short(value):
    with pytest.raises(ValueError, match="solver must be") as caught:
        mm.training.Settings(solver=value)
    assert len(str(caught.value)) < 1000


class Odd(mm.losses.Loss):
    """A loss that returns what it was given."""

    def __init__(self, returned):
        self.returned = returned

    def costs(self, structure, gold):
        return self.returned


@pytest.mark.parametrize(
    "returned", [None, 3, "ab", (1, 2, 3), ("a", "b"), (np.ones(2),), (None, None), (CLAIMED,) * 2]
)
def test_losses_that_return_something_else(fitted, returned):
    model, X, y = fitted["chain"]
    with pytest.raises(ValueError, match=r"Odd\.costs (must )?return"):
        clone(model).set_params(loss=Odd(returned)).fit(X, y)


@pytest.mark.parametrize("returned", [np.zeros(2), sp.csr_array(np.eye(2))])
def test_callbacks_whose_result_is_neither_true_nor_false(fitted, returned):
    model, X, y = fitted["chain"]
    with pytest.raises(ValueError, match="callbacks must return True to stop"):
        clone(model).set_params(callbacks=[lambda record: returned]).fit(X, y)
