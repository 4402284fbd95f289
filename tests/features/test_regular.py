"""Cuts with regular potentials: the four weight sets, solved directly and in orthonormal coordinates."""

from __future__ import annotations

import itertools

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from data import cuts, same
from hypothesis import given
from hypothesis import strategies as st
from oracles.reference import conic
from sealed_files import parts

import maxmargin as mm
from maxmargin.encoders.cut import CutEncoder
from maxmargin.regions import L2
from maxmargin.testing import check_features

NORMAL = np.array([1.0, -1.0, -1.0, 1.0])


def graphs(n=4, *, seed=0, edge_columns=2):
    """Small graphs whose labels follow hidden regular potentials: a 1 tends to come before a 0, not after it."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    hidden = np.array([0.3, -0.8, 1.2, 0.2])[:, None] * rng.random(edge_columns)
    for size in rng.integers(2, 6, size=n):
        pairs = [(j, k) for j in range(size) for k in range(size) if j < k and rng.random() < 0.7]
        edges = np.array([pair[:: rng.choice([1, -1])] for pair in pairs], dtype=np.int64).reshape(-1, 2)
        graph = mm.Graph(rng.normal(size=(size, 2)), edges, rng.random((len(edges), edge_columns)))
        scores = [four_set_score(graph, labels, np.array([1.0, -0.5]), hidden) for labels in labelings(size)]
        X.append(graph)
        y.append(labelings(size)[int(np.argmax(scores))])
    return X, y


def labelings(size):
    return np.array(list(itertools.product((0, 1), repeat=int(size))))


def four_set_score(graph, labels, node_weights, sets):
    """``sum_j y_j w_n'x_j + sum_jk w_{y_j y_k}'x_jk`` as written."""
    score = float(labels @ (graph.node_features @ node_weights))
    for (j, k), x in zip(graph.edges, graph.edge_features, strict=True):
        score += float(sets[2 * labels[j] + labels[k]] @ x)
    return score


def four_set_features(graph, labels):
    """The joint features of a labeling in the four-set form: nodes, then 00, 01, 10, 11."""
    d = graph.edge_features.shape[1]
    sums = np.zeros((4, d))
    for (j, k), x in zip(graph.edges, graph.edge_features, strict=True):
        sums[2 * labels[j] + labels[k]] += x
    return np.concatenate([labels @ graph.node_features, sums.ravel()])


def direct_optimum(X, y, *, C=None, radius=None):
    """The training problem over (node weights, four sets) with the cone written out, by Clarabel over labelings."""
    nodes, d = X[0].node_features.shape[1], X[0].edge_features.shape[1]
    width, n = nodes + 4 * d, len(X)
    rows, rhs = [], []
    for i, (graph, gold) in enumerate(zip(X, y, strict=True)):
        at_gold = four_set_features(graph, gold)
        for labels in labelings(len(gold)):
            row = np.zeros(width + n)
            row[:width] = four_set_features(graph, labels) - at_gold
            row[width + i] = -1.0
            rows.append(row)
            rhs.append(-float(np.sum(labels != gold)))
    for k in range(d):  # w00 + w11 - w01 - w10 >= 0
        row = np.zeros(width + n)
        row[nodes + k : width : d] = -NORMAL
        rows.append(row)
        rhs.append(0.0)
    cones = [clarabel.NonnegativeConeT(len(rows))]
    if radius is not None:
        ball = np.zeros((width + 1, width + n))
        ball[1:, :width] = -np.eye(width)
        rows += list(ball)
        rhs += [radius] + [0.0] * width
        cones.append(clarabel.SecondOrderConeT(width + 1))
    quadratic = np.zeros((width + n, width + n))
    if C is not None:
        quadratic[:width, :width] = np.eye(width) / C
    linear = np.concatenate([np.zeros(width), np.ones(n)])
    found, least = conic(quadratic, linear, np.array(rows), rhs, cones)
    return least, found[:nodes], found[nodes:width].reshape(4, d)


@pytest.mark.parametrize("settings", [{"C": 0.5}, {"C": 0.05}, {"radius": 0.6}, {"C": 1.0, "radius": 0.4}])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_four_sets_solved_directly(settings, seed):
    X, y = graphs(seed=seed)
    objective, nodes, sets = direct_optimum(X, y, **settings)
    model = mm.CutSVM(potentials="regular", solver=mm.Exact(), tol=1e-7, **settings).fit(X, y)
    assert model.solution_.certificate.primal == pytest.approx(objective, rel=1e-6)
    quick = mm.CutSVM(potentials="regular", tol=1e-4, **settings).fit(X, y)
    assert quick.solution_.certificate.dual <= objective * (1 + 1e-7)
    assert quick.solution_.certificate.primal == pytest.approx(objective, rel=2e-4)
    if "C" in settings:  # strongly convex: the weights are unique
        np.testing.assert_allclose(model.coef_[:2], nodes, atol=1e-4)
        np.testing.assert_allclose(model.regular_weights_, sets, atol=1e-4)
        np.testing.assert_allclose(sets.sum(axis=0), 0.0, atol=1e-6)


@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from([0.3, 1.0, 10.0, np.inf]))
def test_projections_agree(seed, d, radius):
    """The cone of regular sets by its own projection, then the ball; and the coordinates with signs."""
    rng = np.random.default_rng(seed)
    sets = rng.normal(size=(4, d))
    sets -= sets.mean(axis=0)  # the direction that changes no decision
    nodes = rng.normal(size=2)
    direct = sets + np.maximum(0.0, -NORMAL @ sets) / 4 * NORMAL[:, None]
    length = np.sqrt((direct**2).sum() + nodes @ nodes)
    shrink = min(1.0, radius / length)

    encoder = CutEncoder(2, d, "regular")
    coordinates = [
        (sets[3] + sets[2] - sets[0] - sets[1]) / 2,
        (sets[3] + sets[1] - sets[0] - sets[2]) / 2,
        (sets[0] + sets[3] - sets[1] - sets[2]) / 2,
    ]
    w = np.concatenate([nodes, *coordinates])
    assert w @ w == pytest.approx((sets**2).sum() + nodes @ nodes)
    np.testing.assert_allclose(encoder.regular_weights(w), sets, atol=1e-12)
    projected = L2(radius=radius, nonnegative=encoder.nonnegative()).project(w)
    np.testing.assert_allclose(encoder.regular_weights(projected), shrink * direct, atol=1e-12)
    np.testing.assert_allclose(projected[:2], shrink * nodes, atol=1e-12)
    found = encoder.regular_weights(projected)
    assert (NORMAL @ found >= -1e-12).all()


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_the_four_sets(seed):
    X, y = graphs(seed=seed)
    model = mm.CutSVM(potentials="regular", C=1.0).fit(X, y)
    nodes, sets = model.coef_[:2], model.regular_weights_
    found = model.decision_function(X)
    for graph, labels, best in zip(X, model.predict(X), found, strict=True):
        scores = [four_set_score(graph, other, nodes, sets) for other in labelings(len(labels))]
        assert four_set_score(graph, labels, nodes, sets) == pytest.approx(max(scores), abs=1e-9)
        assert best == pytest.approx(max(scores) - scores[0], abs=1e-9)  # relative to all nodes 0


@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_direction_of_edges_is_learned():
    """Labels that fall along each edge: Potts cannot tell the two ends apart, regular potentials can."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(20):
        edge = [0, 1] if rng.random() < 0.5 else [1, 0]
        labels = np.zeros(2, dtype=np.int64)
        labels[edge[0]] = 1
        X.append(mm.Graph(np.ones((2, 1)), [edge]))
        y.append(labels)
    assert mm.CutSVM(potentials="regular", C=10.0).fit(X, y).score(X, y) == 1.0
    assert mm.CutSVM(C=10.0).fit(X, y).score(X, y) < 0.8


@pytest.mark.parametrize("sparse", ["neither", "nodes", "edges", "both"])
def test_sparse_inputs(sparse):
    X, y = graphs()
    rows = [
        mm.Graph(
            sp.csr_array(x.node_features) if sparse in ("nodes", "both") else x.node_features,
            x.edges,
            sp.csr_array(x.edge_features) if sparse in ("edges", "both") else x.edge_features,
        )
        for x in X
    ]
    encoder = CutEncoder(potentials="regular").fit(rows, y)[0]
    packed = encoder.transform(rows)
    check_features(packed.features, packed.structure)
    dense = CutEncoder(potentials="regular").fit(X, y)[1]
    np.testing.assert_allclose(packed.features.to_sparse().toarray(), dense.features.to_sparse().toarray())
    assert packed.features.n_weights == encoder.n_weights == 2 + 3 * 2


def test_graphs_without_edges():
    X = [
        mm.Graph(np.ones((1, 2)), np.zeros((0, 2)), np.zeros((0, 3))),
        mm.Graph(-np.ones((2, 2)), [], np.zeros((0, 3))),
    ]
    model = mm.CutSVM(potentials="regular").fit(X, [[1], [0, 0]])
    assert same(model.predict(X), [np.array([1]), np.array([0, 0])])
    assert model.regular_weights_.shape == (4, 3)
    np.testing.assert_array_equal(model.regular_weights_, 0.0)


def test_potts_is_unchanged():
    X, y = cuts()
    assert mm.CutSVM().get_params()["potentials"] == "potts"
    model = mm.CutSVM(C=1.0).fit(X, y)
    assert model.coef_.shape == (4,)
    sets = model.regular_weights_
    np.testing.assert_allclose(sets[0] + sets[3] - sets[1] - sets[2], 2 * model.coef_[2:])


def test_files_hold_the_kind_of_potentials(tmp_path):
    X, y = graphs()
    model = mm.CutSVM(potentials="regular", C=2.0).fit(X, y)
    model.save(tmp_path / "regular")
    again = mm.load(tmp_path / "regular")
    assert again.encoder.state()["potentials"] == "regular"
    np.testing.assert_array_equal(again.encoder.regular_weights(again.weights), model.regular_weights_)
    mm.CutSVM().fit(X, y).save(tmp_path / "potts")
    header, _ = parts((tmp_path / "potts").read_bytes())
    assert set(header["encoder"]) == {"n_node_features", "n_edge_features", "n_clique_features", "potentials"}
    assert mm.load(tmp_path / "potts").encoder.potentials == "potts"


def test_bad_settings():
    X, y = graphs()
    for wrong in ("ising", None, 3, ["potts"]):
        with pytest.raises(ValueError, match="potentials must be one of 'potts', 'regular'"):
            mm.CutSVM(potentials=wrong).fit(X, y)
    with pytest.raises(ValueError, match="example 1: edge features must be >= 0"):
        mm.CutSVM(potentials="regular").fit([X[0], mm.Graph(np.ones((2, 2)), [[0, 1]], [[1.0, -1.0]]), *X[2:]], y)
    model = mm.CutSVM(potentials="regular", warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="warm_start: the features"):
        model.set_params(potentials="potts").fit(X, y)
    assert (
        "an L1 ball with regular potentials has no cheap projection" in CutEncoder(potentials="regular").l1_unsupported
    )
    assert CutEncoder().l1_unsupported == ""
