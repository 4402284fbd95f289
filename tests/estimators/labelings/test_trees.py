"""TreeSVM: forests and graphs of small width, from user data to predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from data import chains, trees

import maxmargin as mm
from maxmargin.encoders import TreeEncoder
from maxmargin.features import ChainFeatures, TreeFeatures
from maxmargin.losses import LabelCost
from maxmargin.structures import JunctionTree, Tree
from maxmargin.testing import check_features

BAD = 2
graphs = pytest.mark.parametrize("ring", [False, True], ids=["tree", "ring"])


def refused(X, y, message, *, at=("fit", "predict", "score"), **settings):
    """All given calls raise ValueError with this message; models are trained on good data first."""
    model = mm.TreeSVM(**settings)
    if at != ("fit",):
        model.fit(*trees(edges=X[0].edge_features is not None))
    calls = {
        "fit": lambda: mm.TreeSVM(**settings).fit(X, y),
        "predict": lambda: model.predict(X),
        "score": lambda: model.score(X, y),
    }
    for name in at:
        with pytest.raises(ValueError, match=message):
            calls[name]()


@graphs
@pytest.mark.parametrize("edges", [False, True])
def test_training_reaches_the_exact_optimum(ring, edges):
    X, y = trees(edges=edges, ring=ring)
    exact = mm.TreeSVM(C=0.3, solver=mm.Exact(), tol=1e-7).fit(X, y)
    model = mm.TreeSVM(C=0.3, tol=1e-5).fit(X, y)
    assert model.solution_.status == "converged"
    best = exact.solution_.certificate.primal
    assert model.solution_.certificate.primal == pytest.approx(best, rel=2e-5)
    assert model.solution_.certificate.dual <= best + 1e-9
    assert model.score(X, y) > 0.8
    assert model.classes_ == ("a", "b", "c")


def test_a_path_is_a_chain():
    X, y = chains(edges=True)
    settings = {"C": 0.3, "tol": 1e-8, "max_iter": 20_000, "solver": mm.Extragradient(geometry=mm.Euclidean())}
    chain = mm.ChainSVM(**settings).fit(X, y)
    paths = [mm.Graph(x.features, [(t, t + 1) for t in range(len(x.features) - 1)], x.edge_features) for x in X]
    tree = mm.TreeSVM(**settings).fit(paths, y)
    np.testing.assert_allclose(tree.coef_, chain.coef_, atol=1e-4)
    assert tree.solution_.certificate.primal == pytest.approx(chain.solution_.certificate.primal, rel=1e-7)
    assert tree.predict(paths) == chain.predict(X)


def test_labels_allowed_at_a_node():
    X, y = trees(8)
    rng = np.random.default_rng(1)
    allowed = [[sorted({label, "abc"[rng.integers(3)]}, reverse=True) for label in labels] for labels in y]
    allowed[0], allowed[1][0] = None, None
    some = [replace(x, labels=labels) for x, labels in zip(X, allowed, strict=True)]
    model = mm.TreeSVM(tol=1e-4).fit(some, y)
    for labels, predicted in zip(allowed, model.predict(some), strict=True):
        for node, label in enumerate(predicted):
            assert labels is None or labels[node] is None or label in labels[node]
    unseen = replace(X[3], labels=[["c"]] * len(y[3]))
    assert model.predict([unseen]) == [["c"] * len(y[3])]
    assert model.k_best([unseen], 3)[0][1:] == []
    exact = mm.TreeSVM(solver=mm.Exact()).fit(some, y)
    assert model.solution_.certificate.primal == pytest.approx(exact.solution_.certificate.primal, rel=2e-4)


@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_losses_where_nodes_have_different_labels():
    X, y = trees(5)
    some = [replace(x, labels=[sorted({label, "c"}) for label in labels]) for x, labels in zip(X, y, strict=True)]
    matrix = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]], dtype=float)
    encoder = TreeEncoder().fit(some, y)[0]
    packed = encoder.transform(some)
    gold = encoder.encode(packed, y).dense()
    costs, offset = LabelCost(matrix).costs(packed.structure, gold)
    other = [["c"] * len(labels) for labels in y]
    wanted = sum(matrix["abc".index(label), 2] for labels in y for label in labels)
    parts = packed.structure.variable_parts
    assert costs @ encoder.encode(packed, other).dense()[parts] + offset.sum() == pytest.approx(wanted)
    assert costs @ gold[parts] == 0.0
    with pytest.raises(ValueError, match="a row for each of the 3 labels of this tree"):
        LabelCost(matrix[:2, :2]).costs(packed.structure, gold)
    weights = [np.arange(len(labels)) for labels in y]
    mm.TreeSVM(loss=LabelCost(matrix), tol=1e-2).fit(some, y, loss_weight=weights)
    with pytest.raises(ValueError, match=r"example 0: loss_weight must be \d finite numbers"):
        mm.TreeSVM().fit(some, y, loss_weight=[w[1:] for w in weights])
    ignored = mm.TreeSVM().fit(some, y, loss_weight=[np.zeros(len(labels)) for labels in y])
    assert not ignored.coef_.any()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("with_edges", [False, True])
@pytest.mark.parametrize("subsets", [False, True])
def test_features(sparse, with_edges, subsets):
    rng = np.random.default_rng(0)
    make = sp.csr_array if sparse else np.ascontiguousarray
    edges, offsets = [[0, 1], [2, 1], [1, 0]], [0, 2, 2, 3]
    labels = (
        {"n_labels": [2, 1, 2, 3, 1, 2], "labels": [0, 2, 1, 0, 1, 0, 1, 2, 2, 1, 2]} if subsets else {"n_labels": 3}
    )
    tree = Tree(n_nodes=[3, 1, 2], edges=edges, edge_offsets=offsets, **labels)
    edge_rows = make(rng.normal(size=(3, 2))) if with_edges else None
    check_features(TreeFeatures(make(rng.normal(size=(6, 4))), tree, 3, edge_features=edge_rows), tree)


def test_features_of_a_path_are_those_of_a_chain():
    rng = np.random.default_rng(0)
    rows, edge_rows = rng.normal(size=(7, 4)), rng.normal(size=(5, 2))
    edges = [(0, 1), (1, 2), (2, 3), (0, 1), (1, 2)]
    tree = TreeFeatures(rows, Tree([4, 3], 3, edges, [0, 3, 5]), 3, edge_features=edge_rows)
    chain = ChainFeatures(rows, [4, 3], 3, edge_features=edge_rows)
    weights, z = rng.normal(size=chain.n_weights), rng.normal(size=chain.n_parts)
    np.testing.assert_array_equal(tree.scores(weights), chain.scores(weights))
    np.testing.assert_array_equal(tree.adjoint(z), chain.adjoint(z))


def test_features_that_do_not_fit():
    tree = Tree([3], 3, [[0, 1]], [0, 1])
    with pytest.raises(ValueError, match="nodes has 2 rows, but the trees have 3 nodes"):
        TreeFeatures(np.ones((2, 1)), tree, 3)
    with pytest.raises(ValueError, match="edge_features has 2 rows, but the trees have 1 edges"):
        TreeFeatures(np.ones((3, 1)), tree, 3, edge_features=np.ones((2, 1)))
    with pytest.raises(ValueError, match="labels up to 2; n_labels must be larger"):
        TreeFeatures(np.ones((3, 1)), tree, 2)


def test_graphs_that_are_refused():
    X, y = trees(edges=True)
    good = X[BAD]
    n = len(good.node_features)
    for changes, message in (
        ({"edge_features": None}, "no edge features, but 5 of 6 graphs have them"),
        ({"labels": "abc"}, "labels must be a list that holds, for each of its"),
        ({"labels": [["a"]]}, "labels must be a list that holds, for each of its"),
        ({"labels": 3}, "labels must be a list that holds, for each of its"),
        ({"labels": [[], *[None] * (n - 1)]}, "labels of node 0 must be at least one label, each once"),
        ({"labels": [["a", "a"], *[None] * (n - 1)]}, "labels of node 0 must be at least one label, each once"),
        ({"labels": ["a", *[None] * (n - 1)]}, "labels of node 0 must be a list of labels, got 'a'"),
        ({"labels": [5, *[None] * (n - 1)]}, "labels of node 0 must be a list of labels, got 5"),
        ({"labels": [["a", "q"], *[None] * (n - 1)]}, "labels of node 0: 'q' was not seen in training"),
        ({"labels": [[["a"]], *[None] * (n - 1)]}, "labels of node 0: labels must be hashable"),
    ):
        bad = [replace(good, **changes) if i == BAD else x for i, x in enumerate(X)]
        refused(bad, y, rf"example {BAD}\b.*{message}")
    with pytest.raises(ValueError, match="edge features must be given for all graphs, in training and in prediction"):
        mm.TreeSVM().fit(X, y).predict(trees()[0])


def test_labels_that_are_refused():
    X, y = trees()
    for bad, message in (
        (["z"] * len(y[BAD]), "label 'z' was not seen in training; give all labels with classes"),
        (y[BAD][:-1], r"nodes but its labels have shape"),
        ("abc", "y must be a list or 1-D array"),
        ([["a"]] * len(y[BAD]), "labels must be hashable"),
    ):
        at = ("score",) if "seen" in message else ("fit", "score")
        refused(X, [bad if i == BAD else labels for i, labels in enumerate(y)], rf"example {BAD}\b.*{message}", at=at)
    narrow = [replace(x, labels=[[label] for label in labels]) for x, labels in zip(X, y, strict=True)]
    wrong = list(narrow)
    wrong[BAD] = replace(
        X[BAD], labels=[None, *[[label] for label in "abc" if label != y[BAD][1]][:1]] + [None] * (len(y[BAD]) - 2)
    )
    message = rf"example {BAD}: label '{y[BAD][1]}' is not among the labels allowed at node 1; correct y, or add it"
    refused(wrong, y, message, at=("fit", "score"))


def test_widths():
    X, y = trees(ring=True)
    with pytest.raises(ValueError, match="example 0: its edges form a cycle, so it is not a forest; use JunctionTree"):
        mm.TreeSVM(width=1).fit(X, y)
    encoder = TreeEncoder().fit(X, y)[0]
    assert isinstance(encoder.transform(X).structure, JunctionTree)
    model = mm.TreeSVM(width=2).fit(X, y)
    assert model.predict(X) == mm.TreeSVM().fit(X, y).predict(X)
    size = 12
    full = mm.Graph(np.ones((size, 3)), [(u, v) for u in range(size) for v in range(u)])
    smaller = mm.Graph(np.ones((4, 3)), [(u, v) for u in range(4) for v in range(u)])
    with pytest.raises(ValueError, match="example 0: its graph has a tree width above 2; use GraphSVM"):
        model.predict([smaller])
    with pytest.raises(ValueError, match=r"example 0: its graph needs a cluster of 5\.31e\+05 joint labels"):
        mm.TreeSVM().fit(X, y).predict([full])
    for width in (0, -1, 1.5, "2", True):
        with pytest.raises(ValueError, match="width must be an integer >= 1"):
            mm.TreeSVM(width=width).fit(X, y)
    assert Tree([2], 2, [[0, 1]], [0, 1]).name == "tree"


def test_a_cut_has_no_labels_per_node():
    graph = mm.Graph(np.ones((2, 1)), [[0, 1]], labels=[[0], [1]])
    with pytest.raises(ValueError, match="example 0: labels per node are for TreeSVM"):
        mm.CutSVM().fit([graph], [[0, 1]])


def test_graphs_without_edges_or_columns():
    single = mm.Graph(np.eye(2)[:1], np.zeros((0, 2), dtype=int))
    pair = mm.Graph(np.eye(2), [])
    model = mm.TreeSVM(C=10.0).fit([single, pair], [["a"], ["a", "b"]])
    assert model.predict([single, pair]) == [["a"], ["a", "b"]]
    blank = mm.Graph(np.zeros((2, 0)), [[0, 1]])
    assert mm.TreeSVM(C=10.0).fit([blank], [["a", "b"]]).predict([blank]) == [["a", "b"]]


def test_forests_are_packed_as_trees():
    encoder = mm.encoders.TreeEncoder()
    for ring, kind in ((False, mm.structures.Tree), (True, mm.structures.JunctionTree)):
        X, y = trees(ring=ring)
        assert type(encoder.fit(X, y)[1].structure) is kind
    assert mm.TreeSVM().fit(*trees()).solution_.why.startswith("a tree")
