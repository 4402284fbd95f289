"""The public estimators as users call them."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from data import KINDS, PickOne, chains, cuts, made, matchings, picks, same
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import maxmargin as mm
from maxmargin.solvers import JsonLines, ProgressBar

kinds = pytest.mark.parametrize("kind", list(KINDS))


@kinds
def test_fit_predict_score(kind):
    model, (X, y), (X_new, y_new) = made(kind, C=1.0)
    assert model.fit(X, y) is model
    assert model.score(X, y) > 0.85
    assert model.score(X_new, y_new) > 0.6
    predicted = model.predict(X_new)
    assert isinstance(predicted, list)
    assert len(predicted) == len(X_new)
    assert model.score(X_new, predicted) == 1.0
    assert model.solution_.status == "converged"
    assert model.solution_.certificate.relative_gap <= 1e-3
    assert model.coef_.shape == (model.model_.encoder.n_weights,)
    assert model.decision_function(X_new).shape == (len(X_new),)


def test_readme_use_of_matchings():
    X, y = matchings(8)
    model = mm.MatchingSVM(C=1.0, loss=mm.losses.Hamming(false_positive=1, false_negative=3)).fit(X, y)
    links = model.predict(X)[0]
    assert links.dtype == np.int64
    assert links.shape[1] == 2
    # Where missed links cost more, more links are made.
    cautious = mm.MatchingSVM(C=1.0, loss=mm.losses.Hamming(false_positive=3, false_negative=1)).fit(X, y)
    assert sum(map(len, model.predict(X))) > sum(map(len, cautious.predict(X)))


def test_pruned_graphs_and_capacities():
    X, y = matchings(6, pruned=True)
    full, links = matchings(2, seed=3)
    model = mm.MatchingSVM().fit(X + full, y + links)
    for x, found in zip(X, model.predict(X), strict=True):
        assert {tuple(pair) for pair in found.tolist()} <= {tuple(pair) for pair in x.edges.tolist()}
    loose = mm.MatchingSVM(left_capacity=2).fit([np.ones((1, 3, 1))], [[[0, 0], [0, 2]]])
    assert len(loose.predict([np.ones((1, 3, 1))])[0]) == 2
    given = mm.Bipartite(np.ones((2, 1)), [[0, 0], [0, 1]], (1, 2), left_capacity=[2])
    assert len(mm.MatchingSVM().fit([given], [[[0, 0], [0, 1]]]).predict([given])[0]) == 2


@pytest.mark.parametrize(
    "labels",
    [
        ("noun", "verb", "name"),
        (3, 1, 2),
        (("B", "x"), ("I", "x"), ("O", None)),
        ("a", 1, (None,)),
        (1.5, -2.0, 0.25),
        (True, False, "maybe"),
        (frozenset([1]), frozenset([2]), frozenset()),
        (b"a", b"b", b"c"),
    ],
)
def test_labels_of_any_hashable_type(labels):
    X, y = chains(6, labels=labels)
    model = mm.ChainSVM().fit(X, y)
    assert set(model.classes_) == set(labels)
    assert model.score(X, y) > 0.8
    assert all(label in labels for found in model.predict(X) for label in found)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32, "U1", object, bool])
def test_labels_in_numpy_arrays_come_back_as_plain_values(dtype):
    numbers = (0, 1)
    X, y = chains(6, labels=numbers)
    model = mm.ChainSVM().fit(X, [np.array(labels).astype(dtype) for labels in y])
    plain = {np.dtype("U1"): str, np.dtype(np.float32): float, np.dtype(bool): bool}.get(np.dtype(dtype), int)
    assert {type(label) for labels in model.predict(X) for label in labels} == {plain}
    assert model.score(X, [np.array(labels).astype(dtype) for labels in y]) > 0.8


def test_label_order_and_given_classes():
    X, y = chains(4, labels=("b", "a"))
    assert mm.ChainSVM().fit(X, y).classes_ == ("a", "b")
    wide = mm.ChainSVM(classes=np.array(["c", "b", "a"])).fit(X, y)
    assert wide.classes_ == ("c", "b", "a")
    assert {type(label) for label in wide.classes_} == {str}
    assert wide.score(X, [["c"] * len(labels) for labels in y]) < 0.5


def test_dense_sparse_and_mixed_sequences_agree():
    X, y = chains(6)
    dense = mm.ChainSVM().fit(X, y)
    for make in (sp.csr_array, sp.csr_matrix, sp.coo_array, sp.csc_matrix):
        np.testing.assert_allclose(mm.ChainSVM().fit([make(x) for x in X], y).coef_, dense.coef_, atol=1e-9)
    mixed = [sp.csr_array(x) if i % 2 else x for i, x in enumerate(X)]
    np.testing.assert_allclose(mm.ChainSVM().fit(mixed, y).coef_, dense.coef_, atol=1e-9)
    assert same(dense.predict(mixed), dense.predict(X))


def test_sequences_with_edge_features():
    X, y = chains(6, edges=True)
    model = mm.ChainSVM().fit(X, y)
    assert model.coef_.shape == (3 * 3 + 9 + 2 * 9,)
    assert model.score(X, y) > 0.8
    sparse = [mm.FeatureSequence(sp.csr_array(x.features), sp.csr_array(x.edge_features)) for x in X]
    np.testing.assert_allclose(mm.ChainSVM().fit(sparse, y).coef_, model.coef_, atol=1e-9)
    plain = [mm.FeatureSequence(x.features) for x in X]
    assert mm.ChainSVM().fit(plain, y).coef_.shape == (3 * 3 + 9,)
    with pytest.raises(ValueError, match="edge features must be given for all"):
        model.predict(plain)
    with pytest.raises(ValueError, match=r"example 1: no edge features.*for all or for none"):
        mm.ChainSVM().fit([X[0], plain[1]], y[:2])


@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_sequences_of_length_one_and_one_label():
    assert mm.ChainSVM().fit([np.ones((1, 2))], [["a"]]).predict([np.ones((3, 2))]) == [["a"] * 3]
    X = [mm.FeatureSequence(np.ones((1, 2)), np.zeros((0, 1))), mm.FeatureSequence(np.ones((2, 2)), np.ones((1, 1)))]
    assert mm.ChainSVM().fit(X, [["a"], ["a", "b"]]).predict(X)[0] in (["a"], ["b"])


def test_graphs_without_edge_features_or_edges():
    X, y = cuts(5)
    plain = [mm.Graph(x.node_features, x.edges) for x in X]
    model = mm.CutSVM().fit(plain, y)
    assert model.coef_.shape == (3,)
    assert model.coef_[-1] >= 0
    lonely = mm.Graph(X[0].node_features, [])
    assert model.predict([lonely])[0].shape == y[0].shape
    assert mm.CutSVM().fit([lonely], y[:1]).score([lonely], y[:1]) > 0.5
    sparse = [mm.Graph(sp.csr_array(x.node_features), x.edges, sp.csr_array(x.edge_features)) for x in X]
    np.testing.assert_allclose(mm.CutSVM().fit(sparse, y).coef_, mm.CutSVM().fit(X, y).coef_, atol=1e-9)
    assert (mm.CutSVM().fit(X, y).coef_[2:] >= 0).all()


def test_a_structure_of_ones_own():
    X, y = picks()
    model = mm.StructuredSVM(PickOne, C=5.0).fit(X, y)
    assert model.score(X, y) > 0.8
    assert same(model.predict(X), clone(model).fit(X, y).predict(X))
    assert mm.StructuredSVM(structure=lambda sizes: PickOne(sizes)).fit(X, y).score(X, y) > 0.5
    encoder = mm.encoders.MatchingEncoder()
    X, y = matchings()
    np.testing.assert_array_equal(mm.StructuredSVM(encoder).fit(X, y).coef_, mm.MatchingSVM().fit(X, y).coef_)


@kinds
def test_score_with_weights(kind):
    model, (X, y), _ = made(kind)
    model.fit(X, y)
    chosen = [0, 2]
    weights = np.zeros(len(X))
    weights[chosen] = 3.0
    assert model.score(X, y, weights) == pytest.approx(model.score([X[i] for i in chosen], [y[i] for i in chosen]))


@kinds
def test_clone_get_params_set_params_and_repr(kind):
    model, (X, y), _ = made(kind, C=2.0, callbacks=[ProgressBar(), JsonLines("log")])
    params = model.get_params()
    assert params["C"] == 2.0
    assert {"C", "radius", "loss", "solver", "tol", "max_iter", "max_seconds", "n_jobs", "warm_start"} <= set(params)
    assert clone(model).get_params().keys() == params.keys()
    assert model.set_params(C=3.0, tol=0.1) is model
    assert (model.C, model.tol) == (3.0, 0.1)
    assert "C=3.0" in repr(model)
    assert type(model).__name__ in repr(type(model)())
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(nonsense=1)
    with pytest.raises(TypeError, match="nonsense"):
        type(model)(nonsense=1)
    assert not hasattr(clone(model.set_params(callbacks=()).fit(X, y)), "coef_")


@kinds
def test_grid_search_and_cross_validation(kind):
    model, (X, y), _ = made(kind)
    if kind == "chain":
        model.set_params(classes=("a", "b", "c"))
    search = GridSearchCV(model, {"C": [0.01, 1.0]}, cv=2, error_score="raise").fit(X, y)
    assert search.best_params_["C"] in (0.01, 1.0)
    assert len(search.predict(X)) == len(X)
    losses = [mm.losses.Hamming(), mm.losses.Hamming(2.0, 2.0)]
    assert GridSearchCV(model, {"loss": losses}, cv=2, error_score="raise").fit(X, y).best_score_ > 0.3
    assert cross_val_score(model, X, y, cv=2, error_score="raise").shape == (2,)


@kinds
def test_pickle(kind):
    model, (X, y), (X_new, _) = made(kind, C=2.0, verbose=True)
    unfitted = pickle.loads(pickle.dumps(model))
    assert unfitted.get_params() == model.get_params()
    model.fit(X, y)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert same(again.predict(X_new), model.predict(X_new))
        np.testing.assert_array_equal(again.decision_function(X_new), model.decision_function(X_new))
        assert again.solution_.certificate == model.solution_.certificate


@kinds
def test_k_best(kind):
    model, (X, y), (X_new, _) = made(kind)
    model.fit(X, y)
    lists = model.k_best(X_new, 4)
    assert [len(found) for found in lists] == [4] * len(X_new)
    assert same([found[0][0] for found in lists], model.predict(X_new))
    np.testing.assert_allclose([found[0][1] for found in lists], model.decision_function(X_new), rtol=1e-12)
    for found in lists:
        scores = [score for _, score in found]
        assert scores == sorted(scores, reverse=True)
        assert len({repr(output) for output, _ in found}) == len(found)
    for k in (0, -1, 1.5, True, "2", None, np.nan):
        with pytest.raises(ValueError, match="k must be an integer >= 1"):
            model.k_best(X_new, k)


def test_k_best_where_there_are_fewer():
    model = mm.MatchingSVM().fit(*matchings(3))
    assert len(model.k_best([np.ones((1, 1, 3))], 5)[0]) == 2
    X, y = picks()
    assert [len(found) for found in mm.StructuredSVM(PickOne).fit(X, y).k_best(X, 9)] == [len(x) for x in X]


@kinds
def test_nothing_works_before_fit(kind, tmp_path):
    model, (X, y), _ = made(kind)
    for call in (
        lambda: model.predict(X),
        lambda: model.score(X, y),
        lambda: model.k_best(X, 2),
        lambda: model.decision_function(X),
        lambda: model.save(tmp_path / "model"),
    ):
        with pytest.raises(NotFittedError):
            call()
    assert not hasattr(model, "classes_")


@kinds
def test_a_failing_fit_leaves_no_half_fitted_estimator(kind):
    model, (X, y), _ = made(kind)
    for settings, data in (
        ({"C": -1.0}, (X, y)),
        ({"tol": "x"}, (X, y)),
        ({"solver": mm.Exact(max_entries=1)}, (X, y)),
        ({}, (X, y[:-1])),
    ):
        broken = clone(model).set_params(**settings)
        with pytest.raises(ValueError):
            broken.fit(*data)
        assert not [name for name in vars(broken) if name.endswith("_")]
    model.fit(X, y)
    kept = {name: value for name, value in vars(model).items() if name.endswith("_")}
    outputs = model.predict(X)
    with pytest.raises(ValueError):
        model.fit(X, y[:-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            model.set_params(max_iter=1, tol=1e-12).fit(X, y)
    assert all(getattr(model, name) is value for name, value in kept.items())
    assert same(model.predict(X), outputs)


def arrays_of(value):
    """All arrays inside inputs or outputs."""
    if isinstance(value, np.ndarray):
        return [value]
    if sp.issparse(value):
        return [value.data, value.indices, value.indptr]
    if isinstance(value, (list, tuple)):
        return [array for part in value for array in arrays_of(part)]
    if hasattr(value, "__dataclass_fields__"):
        return [array for part in vars(value).values() for array in arrays_of(part)]
    return []


@kinds
@pytest.mark.parametrize("single", [False, True])
def test_inputs_are_never_changed(kind, single):
    model, (X, y), _ = made(kind)
    if single:
        X, y = X[1:2], y[1:2]
    before = [array.copy() for array in arrays_of((X, y))]
    for array in arrays_of((X, y)):
        array.flags.writeable = False
    model.fit(X, y, loss_weight=None, dev=(X, y))
    model.predict(X), model.score(X, y), model.k_best(X, 2)
    for old, new in zip(before, arrays_of((X, y)), strict=True):
        np.testing.assert_array_equal(old, new)


def test_sparse_inputs_are_never_changed():
    X, y = chains(3)
    # Unsorted columns with duplicates are legal CSR.
    odd = sp.csr_array((np.ones(3), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    X, y = [odd, *map(sp.csr_array, X)], [["a"], *y]
    before = [array.copy() for array in arrays_of(X)]
    model = mm.ChainSVM().fit(X, y)
    model.predict(X)
    for old, new in zip(before, arrays_of(X), strict=True):
        np.testing.assert_array_equal(old, new)
    np.testing.assert_allclose(model.coef_, mm.ChainSVM().fit([x.toarray() for x in X], y).coef_, atol=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        lambda a: np.asfortranarray(a),
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: a[..., ::-1][..., ::-1],
        lambda a: a.tolist(),
        lambda a: a.astype(np.longdouble),
        lambda a: a.astype(">f8"),
        lambda a: np.ma.array(a),
    ],
)
def test_layouts_of_features(change):
    X, y = matchings(4)
    plain = mm.MatchingSVM().fit(X, y)
    np.testing.assert_array_equal(mm.MatchingSVM().fit([change(x) for x in X], y).coef_, plain.coef_)
    X, y = chains(4)
    plain = mm.ChainSVM().fit(X, y)
    np.testing.assert_array_equal(mm.ChainSVM().fit([change(x) for x in X], y).coef_, plain.coef_)
    X, y = cuts(4)
    plain = mm.CutSVM().fit(X, y)
    changed = [mm.Graph(change(x.node_features), x.edges.tolist(), change(x.edge_features)) for x in X]
    np.testing.assert_array_equal(mm.CutSVM().fit(changed, y).coef_, plain.coef_)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool, np.float16])
@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_dtypes_of_features(dtype):
    X, y = matchings(4)
    X = [np.round(np.abs(4 * x)).astype(dtype) for x in X]
    expected = mm.MatchingSVM().fit([x.astype(np.float64) for x in X], y).coef_
    np.testing.assert_array_equal(mm.MatchingSVM().fit(X, y).coef_, expected)
    rows = [sp.csr_array(x.reshape(-1, 3).astype(np.float32)) for x in X]
    graphs = [mm.Bipartite(r, np.argwhere(np.ones(x.shape[:2])), x.shape[:2]) for r, x in zip(rows, X, strict=True)]
    if dtype is not np.float16:
        np.testing.assert_allclose(mm.MatchingSVM().fit(graphs, y).coef_, expected, atol=1e-9)


def test_outputs_of_other_integer_types():
    X, y = matchings(4)
    plain = mm.MatchingSVM().fit(X, y)
    others = [y[0].tolist(), y[1].astype(np.uint8), [tuple(p) for p in y[2].tolist()], np.asfortranarray(y[3])]
    np.testing.assert_array_equal(mm.MatchingSVM().fit(X, others).coef_, plain.coef_)
    assert plain.score(X, others) == plain.score(X, y)
    X, y = cuts(3)
    plain = mm.CutSVM().fit(X, y)
    others = [y[0].astype(bool), y[1].tolist(), y[2].astype(float)]
    np.testing.assert_array_equal(mm.CutSVM().fit(X, others).coef_, plain.coef_)
    assert plain.score(X, others) == plain.score(X, y)


def test_empty_matchings_are_legal_outputs():
    X, _ = matchings(2)
    model = mm.MatchingSVM().fit(X, [[], np.zeros((0, 2))])
    assert [len(found) for found in model.predict(X)] == [0, 0]
    assert model.score(X, [[], []]) == 1.0


def test_one_array_may_hold_all_examples():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((5, 4, 2)), rng.integers(0, 2, size=(5, 4))
    listed = mm.ChainSVM().fit(list(X), [row.tolist() for row in y])
    np.testing.assert_array_equal(mm.ChainSVM().fit(X, y).coef_, listed.coef_)


@kinds
def test_built_in_structures_take_no_other(kind):
    with pytest.raises(TypeError, match="structure"):
        KINDS[kind][0](structure=PickOne)


@kinds
def test_unknown_settings_name_the_class_and_what_was_meant(kind):
    estimator = KINDS[kind][0]
    name = estimator.__name__
    for wrong, message in (
        ("foo", rf"{name}\(\) got an unexpected keyword argument 'foo'; it takes .*C, radius, norm, loss"),
        ("max_iters", rf"{name}\(\) got .* 'max_iters'; did you mean max_iter"),
        ("c", rf"{name}\(\) got .* 'c'; did you mean C\?"),
        ("structure", rf"{name}\(\) takes no structure.*StructuredSVM\(structure="),
    ):
        with pytest.raises(TypeError, match=message):
            estimator(**{wrong: 1})

    class Mine(estimator):
        pass

    with pytest.raises(TypeError, match=r"Mine\(\) got"):
        Mine(foo=1)
    with pytest.raises(TypeError, match=rf"{name}.__init__\(\) takes 1 positional argument"):
        estimator(1)
    assert clone(Mine(C=2.0)).C == 2.0


def test_scores_too_large_are_an_error_not_a_guess():
    X, y = matchings(3)
    model = mm.MatchingSVM().fit(X, y)
    huge = [X[0], np.full((2, 2, 3), 1.7e308)]
    with np.errstate(over="ignore"):
        for call in (model.predict, model.decision_function, lambda X: model.k_best(X, 2)):
            with pytest.raises(ValueError, match=r"example 1: its scores are not finite.*scale"):
                call(huge)


def chain_score(coef, x, labels, n_labels):
    """The formula of :class:`maxmargin.ChainSVM`, written out; labels are numbers."""
    features, edges = (x.features, x.edge_features) if isinstance(x, mm.FeatureSequence) else (x, None)
    d, k = features.shape[1], n_labels
    W, T = coef[: d * k].reshape(d, k), coef[d * k : d * k + k * k].reshape(k, k)
    total = sum(float(features[t] @ W[:, label]) for t, label in enumerate(labels))
    total += sum(T[a, b] for a, b in pairwise(labels))
    if edges is not None:
        V = coef[d * k + k * k :].reshape(-1, k, k)
        total += sum(float(edges[t] @ V[:, a, b]) for t, (a, b) in enumerate(pairwise(labels)))
    return total


@pytest.mark.parametrize("edges", [False, True])
def test_chain_scores_are_what_the_formula_says(edges):
    X, y = chains(5, edges=edges)
    model = mm.ChainSVM().fit(X, y)
    number = {label: k for k, label in enumerate(model.classes_)}
    for x, found in zip(X, model.k_best(X, 10_000), strict=True):
        length = len(found[0][0])
        assert len(found) == 3**length
        for labels, score in found:
            assert score == pytest.approx(chain_score(model.coef_, x, [number[a] for a in labels], 3), abs=1e-9)


def test_matching_scores_are_what_the_formula_says():
    X, y = matchings(5)
    model = mm.MatchingSVM().fit(X, y)
    for x, found in zip(X, model.k_best(X, 10_000), strict=True):
        left, right = x.shape[:2]
        assert len(found) == sum(math.comb(left, m) * math.comb(right, m) * math.factorial(m) for m in range(left + 1))
        for links, score in found:
            assert score == pytest.approx(sum(float(x[j, k] @ model.coef_) for j, k in links), abs=1e-9)


def test_cut_scores_are_what_the_formula_says():
    X, y = cuts(5)
    model = mm.CutSVM().fit(X, y)
    for x, found in zip(X, model.k_best(X, 10_000), strict=True):
        assert len(found) == 2 ** len(x.node_features)
        for labels, score in found:
            apart = labels[x.edges[:, 0]] != labels[x.edges[:, 1]]
            total = labels @ x.node_features @ model.coef_[:2] - apart @ x.edge_features @ model.coef_[2:]
            assert score == pytest.approx(float(total), abs=1e-9)
