"""TreeSVM with cliques: nodes scored together, from user data to predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from data import chains, cliqued, trees
from oracles.enumeration import vertices

import maxmargin as mm
from maxmargin.encoders import TreeEncoder
from maxmargin.features import CliqueFeatures, Stacked, TreeFeatures
from maxmargin.structures import JunctionTree, Tree
from maxmargin.testing import check_features

BAD = 2


def test_the_objective_is_that_of_enumeration():
    X, y = cliqued(4, features=True)
    C = 0.3
    model = mm.TreeSVM(C=C, solver=mm.Exact()).fit(X, y)
    encoder = model.model_.encoder
    packed = encoder.transform(X)
    scores, gold = packed.features.scores(model.coef_), encoder.encode(packed, y).dense()
    hinge = 0.0
    for i, outputs in enumerate(vertices(packed.structure)):
        parts = packed.structure.parts_of([i])
        nodes = 3 * len(y[i])
        wrong = len(y[i]) - outputs[:, :nodes] @ gold[parts][:nodes]
        hinge += (wrong + outputs @ scores[parts]).max() - gold[parts] @ scores[parts]
    assert model.solution_.certificate.primal == pytest.approx(hinge + model.coef_ @ model.coef_ / (2 * C), rel=1e-9)


@pytest.mark.parametrize(
    ("data", "features"),
    [
        (trees(edges=True), False),
        (trees(edges=True, ring=True), False),
        (cliqued(edges=True), False),
        (cliqued(edges=True, features=True), True),
    ],
    ids=["tree", "ring", "cliques", "clique features"],
)
def test_scores_are_what_the_formula_says(data, features):
    X, y = data
    model = mm.TreeSVM().fit(X, y)
    d = 3 if features else 1
    pieces = np.split(model.coef_, np.cumsum([9, 9, 18, 3 * d, 9 * d]))
    node_weights, pairs, edge_weights = pieces[0].reshape(3, 3), pieces[1].reshape(3, 3), pieces[2].reshape(2, 3, 3)
    tables = {size: own.reshape(d, *[3] * size) for size, own in enumerate(pieces[3:], start=1) if own.size}
    for x, lists in zip(X, model.k_best(X, 3), strict=True):
        for labels, score in lists:
            numbers = ["abc".index(label) for label in labels]
            own = sum(row @ node_weights[:, k] for row, k in zip(x.node_features, numbers, strict=True))
            for (u, v), row in zip(x.edges, x.edge_features, strict=True):
                own += pairs[numbers[u], numbers[v]] + row @ edge_weights[:, numbers[u], numbers[v]]
            for c, clique in enumerate(x.cliques or ()):
                row = np.append(1.0, x.clique_features[c]) if features else np.ones(1)
                own += row @ tables[len(clique)][(slice(None), *(numbers[v] for v in clique))]
            assert score == pytest.approx(own)
        assert model.decision_function([x])[0] == pytest.approx(lists[0][1])


def test_cliques_of_two_are_edges():
    """The same data with edges, and with cliques of two nodes instead."""
    X, y = chains(edges=True)
    settings = {"C": 0.3, "tol": 1e-7, "solver": mm.Exact()}
    links = [[(t, t + 1) for t in range(len(x.features) - 1)] for x in X]
    pairs = [mm.Graph(x.features, own, x.edge_features) for x, own in zip(X, links, strict=True)]
    cliques = [
        mm.Graph(x.features, [], cliques=own, clique_features=x.edge_features) for x, own in zip(X, links, strict=True)
    ]
    one, two = mm.TreeSVM(**settings).fit(pairs, y), mm.TreeSVM(**settings).fit(cliques, y)
    assert one.solution_.certificate.primal == pytest.approx(two.solution_.certificate.primal, rel=1e-6)
    n = len(one.coef_) - 9 * 3
    np.testing.assert_allclose(two.coef_[n + 9 :], one.coef_[n:], atol=1e-3)
    assert not two.coef_[n : n + 9].any()


def test_nodes_with_some_labels():
    X, y = cliqued()
    allowed = [replace(x, labels=[sorted({label, "c"}) for label in own]) for x, own in zip(X, y, strict=True)]
    model = mm.TreeSVM(C=0.3, tol=1e-5).fit(allowed, y)
    exact = mm.TreeSVM(C=0.3, tol=1e-7, solver=mm.Exact()).fit(allowed, y)
    assert model.solution_.certificate.primal == pytest.approx(exact.solution_.certificate.primal, rel=2e-5)
    for x, labels in zip(allowed, model.predict(allowed), strict=True):
        assert all(label in own for label, own in zip(labels, x.labels, strict=True))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("with_rows", [False, True])
@pytest.mark.parametrize("subsets", [False, True])
@pytest.mark.parametrize("sizes", [(2,), (1, 2, 3)])
def test_features(sparse, with_rows, subsets, sizes):
    rng = np.random.default_rng(0)
    make = sp.csr_array if sparse else np.ascontiguousarray
    labels = (
        {"n_labels": [2, 1, 2, 3, 1, 2], "labels": [0, 2, 1, 0, 1, 0, 1, 2, 2, 1, 2]} if subsets else {"n_labels": 3}
    )
    cliques = [[(2, 0), (1,), (0, 1, 2)], [], [(1,), (1, 0)]]
    cliques = [[clique for clique in own if len(clique) in sizes] for own in cliques]
    tree = JunctionTree(n_nodes=[3, 1, 2], edges=[[0, 1]], edge_offsets=[0, 1, 1, 1], cliques=cliques, **labels)
    rows = make(rng.normal(size=(len(tree.cliques), 2))) if with_rows else None
    pairwise = TreeFeatures(make(rng.normal(size=(6, 4))), tree, 3)
    own = CliqueFeatures(tree, 3, sizes, features=rows)
    check_features(Stacked(pairwise, own), tree)
    matrix = own.to_sparse().toarray()
    np.testing.assert_allclose(own.part_norms(2), np.linalg.norm(matrix, axis=1))
    np.testing.assert_allclose(own.part_norms(np.inf), np.abs(matrix).max(axis=1))
    scale = rng.random(own.n_parts)
    np.testing.assert_allclose(own.weight_norms(scale), np.linalg.norm(scale[:, None] * matrix, axis=0))
    np.testing.assert_allclose(own.weight_norms(), np.linalg.norm(matrix, axis=0))


def test_features_that_do_not_fit():
    tree = JunctionTree([3], 3, [], [0, 0], cliques=[[(0, 1, 2)]])
    with pytest.raises(ValueError, match="clique_features has 2 rows, but the trees have 1 cliques"):
        CliqueFeatures(tree, 3, [3], features=np.ones((2, 1)))
    with pytest.raises(ValueError, match="labels up to 2; n_labels must be larger"):
        CliqueFeatures(tree, 2, [3])
    with pytest.raises(ValueError, match="cliques of 3 nodes, but no weights for them"):
        CliqueFeatures(tree, 3, [1, 2])
    none = CliqueFeatures(Tree([3], 3, [], [0, 0]), 3, [2])
    assert (none.n_parts, none.n_weights) == (0, 9)
    assert not none.adjoint(np.zeros(0)).any()


def test_cliques_that_are_refused():
    X, y = cliqued(features=True, sizes=(1, 2, 3))
    trained = mm.TreeSVM(tol=1e-1).fit(X, y)
    rows = X[BAD].clique_features
    for changes, message in (
        ({"cliques": [(0, 1, 99), (0,), (1,)]}, r"a clique with nodes that it does not have, \(0, 1, 99\); number"),
        ({"cliques": [(0, 1, 1), (0,), (1,)]}, "a clique with the same node more than once"),
        ({"cliques": [(0, 1), (0,), (1, 0)]}, "a clique more than once"),
        ({"cliques": [(0, 1), (0,)]}, "2 cliques but 3 rows of clique features; give one row per clique"),
        ({"cliques": None}, "0 cliques but 3 rows of clique features"),
        ({"cliques": 3}, "its cliques must be a list of tuples of node numbers, got 3"),
        ({"cliques": [(0, 1), (0,), 1]}, "its cliques must be a list of tuples of node numbers, but one is 1"),
        ({"cliques": [(0, 1), (0,), (0.5,)]}, "its cliques must be a list of tuples of node numbers"),
        ({"clique_features": None}, "no clique features, but 4 of 6 graphs have them"),
        ({"clique_features": rows * np.nan}, "clique features hold NaN or infinity in row 0"),
        ({"clique_features": rows[:, :1]}, "clique features have 1 columns, expected 2"),
        ({"clique_features": "ab"}, "clique features must be real numbers"),
    ):
        bad = [replace(x, **changes) if i == BAD else x for i, x in enumerate(X)]
        for call in (lambda bad=bad: mm.TreeSVM().fit(bad, y), lambda bad=bad: trained.predict(bad)):
            with pytest.raises(ValueError, match=rf"example {BAD}\b.*{message}"):
                call()


def test_cliques_that_do_not_fit_the_model():
    X, y = cliqued(sizes=(2, 3))
    model = mm.TreeSVM(tol=1e-1).fit(X, y)
    single = [replace(x, cliques=[(0,)]) if i == BAD else x for i, x in enumerate(X)]
    with pytest.raises(
        ValueError, match=f"example {BAD}: cliques of 1 nodes were not seen in training; leave them out"
    ):
        model.predict(single)
    with pytest.raises(ValueError, match="example 0: cliques of 2 nodes were not seen in training"):
        mm.TreeSVM(tol=1e-1).fit(*trees()).predict(X)
    with pytest.raises(ValueError, match="clique features must be given for all graphs with cliques, in training and"):
        model.predict(cliqued(features=True, sizes=(2, 3))[0])
    with pytest.raises(ValueError, match="clique features must be given for all graphs with cliques, in training and"):
        mm.TreeSVM(tol=1e-1).fit(*cliqued(features=True, sizes=(2, 3))).predict(X)
    for features in (False, True):
        model = mm.TreeSVM(tol=1e-1).fit(*cliqued(features=features))
        assert len(model.predict(trees()[0])) == 6
    with pytest.raises(ValueError, match="example 0: its graph has a tree width above 1"):
        mm.TreeSVM(width=1).fit(X, y)
    assert mm.TreeSVM(width=1, tol=1e-1).fit(*cliqued(sizes=(1, 2))).score(*cliqued(sizes=(1, 2))) > 0.5
    large = [replace(x, cliques=[tuple(range(3))]) for x in X]
    with pytest.raises(ValueError, match="example 0: a clique of 3 nodes with 300 labels needs more than 10000000 wei"):
        mm.TreeSVM(classes=["a", "b", "c", *range(297)]).fit(large, y)


def test_general_graphs_have_no_cliques():
    graph = mm.Graph(np.ones((2, 1)), [[0, 1]], cliques=[(0, 1)])
    with pytest.raises(ValueError, match="example 0: cliques are for TreeSVM, CutSVM and AssociativeSVM; leave them"):
        mm.GraphSVM().fit([graph], [[0, 1]])


@pytest.mark.parametrize("features", [False, True])
def test_layouts_know_the_sizes_of_cliques(features):
    one, other = (TreeEncoder().fit(*cliqued(features=features, sizes=sizes))[0] for sizes in ((1, 2, 3), (1, 2)))
    assert one.clique_sizes == (1, 2, 3)
    assert one.layout != other.layout
    assert one.n_weights == 18 + 39 * (3 if features else 1)
