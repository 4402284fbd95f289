import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import maxmargin as mm
from maxmargin.encoders import ChainEncoder


def skipping(n=30, seed=0):
    """Sequences whose label is that of two positions before: pairs of neighbors say nothing, triples everything."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(4, 11))
        labels = [int(rng.integers(0, 2)), int(rng.integers(0, 2))]
        while len(labels) < length:
            labels.append(labels[-2] if rng.random() < 0.97 else 1 - labels[-2])
        x = np.zeros((length, 2))
        x[np.arange(2), labels[:2]] = 1.0
        x += 0.1 * rng.normal(size=x.shape)
        X.append(x)
        y.append(["ab"[label] for label in labels[:length]])
    return X, y


@pytest.fixture(scope="module")
def fitted():
    X, y = skipping()
    return mm.ChainSVM(C=1.0, order=2, tol=1e-3).fit(X, y), X, y


def test_triples_tell_what_pairs_cannot(fitted):
    model, X, y = fitted
    first = mm.ChainSVM(C=1.0, tol=1e-3).fit(X, y)
    test_X, test_y = skipping(seed=1)
    assert model.score(test_X, test_y) > first.score(test_X, test_y) + 0.1
    assert len(model.coef_) == len(first.coef_) + 8
    assert model.solution_.certificate.relative_gap <= 1e-3
    ranks = model.k_best(test_X[:2], 3)[0]
    assert ranks[0][0] == model.predict(test_X[:1])[0]
    assert len(ranks) == 3


def test_dense_and_sparse_rows_agree(fitted):
    model, X, y = fitted
    sparse = mm.ChainSVM(C=1.0, order=2, tol=1e-3).fit([sp.csr_array(x) for x in X], y)
    np.testing.assert_allclose(sparse.coef_, model.coef_, atol=1e-8)


@pytest.mark.parametrize("solver", [mm.AveragedPerceptron(), mm.Mira(k=3)])
def test_online_methods_learn(solver):
    X, y = skipping()
    first, second = (
        mm.ChainSVM(C=1.0, order=order, solver=solver, max_iter=30, random_state=0).fit(X, y) for order in (1, 2)
    )
    assert second.score(X, y) > first.score(X, y) + 0.05


def test_cliques_of_three_neighbors_are_the_same_problem():
    X, y = skipping(8, seed=4)
    paths = []
    for x in X:
        size = len(x)
        threes = [(t, t + 1, t + 2) for t in range(size - 2)]
        paths.append(mm.Graph(x, [(t, t + 1) for t in range(size - 1)], cliques=threes))
    chain = mm.ChainSVM(C=0.5, order=2, solver=mm.Exact()).fit(X, y)
    tree = mm.TreeSVM(C=0.5, solver=mm.Exact()).fit(paths, y)
    np.testing.assert_allclose(chain.coef_, tree.coef_, atol=1e-4)
    assert chain.solution_.certificate.primal == pytest.approx(tree.solution_.certificate.primal, rel=1e-7)
    assert chain.predict(X) == tree.predict(paths)


def test_settings_are_seen_by_scikit_learn():
    model = mm.ChainSVM(order=2)
    assert clone(model).get_params()["order"] == 2
    assert mm.ChainSVM().order == 1


@pytest.mark.parametrize("order", [0, 3, True, "2", None, 1.5])
def test_other_orders_are_refused(order):
    X, y = skipping(3)
    with pytest.raises(ValueError, match="order must be 1 or 2, got"):
        mm.ChainSVM(order=order).fit(X, y)


def test_edge_features_are_refused():
    X, y = skipping(3)
    rich = [mm.FeatureSequence(x, np.ones((len(x) - 1, 1))) for x in X]
    with pytest.raises(ValueError, match="order=2 has no edge features yet; leave them out, or use order=1"):
        mm.ChainSVM(order=2).fit(rich, y)


def test_labels_that_were_not_seen_are_refused(fitted):
    model, X, _ = fitted
    with pytest.raises(ValueError, match="example 0: label 'c' was not seen in training"):
        model.score(X[:1], [["c"] * len(X[0])])
    with pytest.raises(ValueError, match="example 0: features have 3 columns, expected 2"):
        model.predict([np.zeros((4, 3))])


def test_headers_of_other_orders():
    encoder = ChainEncoder(("a", "b"), 3, 0, 2)
    header = json.loads(json.dumps(encoder.state()))
    assert ChainEncoder.from_state({**header, "order": 1}).n_weights == encoder.n_weights - 8
    for order in (0, 3, "2", None, True):
        with pytest.raises(ValueError, match="order must be 1 or 2"):
            ChainEncoder.from_state({**header, "order": order})
    with pytest.raises(ValueError, match="has no edge features"):
        ChainEncoder.from_state({**header, "n_edge_features": 2})


def test_models_of_other_orders_do_not_start_one_another(fitted):
    _, X, y = fitted
    model = mm.ChainSVM(C=1.0, tol=1e-2, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="warm_start: the features or labels are not those of the last fit"):
        model.set_params(order=2).fit(X, y)


def test_gold_labels_that_do_not_fit_are_refused():
    X, y = skipping(3)
    with pytest.raises(ValueError, match=r"example 1 has .* positions but its labels have shape"):
        mm.ChainSVM(order=2).fit(X, [y[0], y[1][:-1], y[2]])
