"""CutSVM and AssociativeSVM with cliques: sets of nodes that are rewarded for having one label."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from data import cuts, same, teams
from oracles import reference, training
from oracles.enumeration import vertices

import maxmargin as mm
from maxmargin.structures import CliqueCut, CliqueNetwork
from maxmargin.testing import check_features
from maxmargin.training import Examples, Settings

THREE = ("red", "green", "blue")


def problem_of(estimator, X, y):
    """The training problem of an estimator."""
    return Examples.fit(estimator._encoder(), X, y).problem(Settings(C=estimator.C), estimator.C)


def bare(X):
    """The graphs without their cliques."""
    return [mm.Graph(x.node_features, x.edges, x.edge_features) for x in X]


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize(
    ("estimator", "labels"),
    [
        (mm.CutSVM(C=0.3), (0, 1)),
        (mm.CutSVM(C=0.3, potentials="regular"), (0, 1)),
        (mm.AssociativeSVM(C=0.3), (False, True)),
        (mm.AssociativeSVM(C=0.3), THREE),
        (mm.AssociativeSVM(C=0.3, per_label=False), THREE),
    ],
    ids=["cut", "cut, regular", "two labels", "three labels", "three labels, tied"],
)
def test_cliques_help_and_their_weights_are_not_negative(estimator, labels, features):
    X, y = teams(25, labels=labels, features=features)
    X_new, y_new = teams(25, seed=1, labels=labels, features=features)
    model = estimator.fit(X, y)
    with_cliques = model.score(X_new, y_new)
    coef, encoder = model.coef_, model.model_.encoder
    assert model.solution_.certificate.relative_gap <= 1e-3
    assert model.solution_.certificate.relaxed == (len(labels) > 2)
    own = (2 if features else 1) * {"cut": 1, "associative": len(labels)}[encoder.kind]
    own = {"regular": 2 * own, "tied": own // len(labels)}.get(_variant(estimator), own)
    assert (coef[encoder.nonnegative()] >= 0).all()
    assert encoder.nonnegative()[-own:].all()
    assert coef[-own:].max() > 0.05
    plain = estimator.fit(bare(X), y)
    assert len(plain.coef_) == len(coef) - own
    assert with_cliques > plain.score(bare(X_new), y_new) + 0.05


def _variant(estimator):
    if getattr(estimator, "potentials", "potts") == "regular":
        return "regular"
    return "tied" if not getattr(estimator, "per_label", True) else ""


@pytest.mark.parametrize("potentials", ["potts", "regular"])
def test_scores_and_labels_of_cuts_are_what_the_docs_say(potentials):
    """Score of every labeling by the sums in the documentation; predictions and k best by enumeration."""
    X, y = teams(4, features=True, most=3)
    model = mm.CutSVM(C=1.0, potentials=potentials).fit(X, y)
    coef, d = model.coef_, model.coef_.size
    regular = potentials == "regular"
    cliques = coef[d - 4 :].reshape(2, 2) if regular else np.repeat(coef[d - 2 :, None], 2, axis=1)
    edge = model.regular_weights_[:, 0].reshape(2, 2) if regular else np.array([[0.0, -1.0], [-1.0, 0.0]]) * coef[2]
    batch = model.model_.encoder.transform(X)
    assert isinstance(batch.structure, CliqueCut)
    assert batch.structure.name == "cut with cliques"

    def score(x, labels):
        total = labels @ (x.node_features @ coef[:2])
        total += sum(edge[labels[j], labels[k]] - edge[0, 0] for j, k in x.edges)
        for nodes, row in zip(x.cliques, x.clique_features, strict=True):
            own = labels[list(nodes)]
            total += row @ cliques[:, own[0]] if (own == own[0]).all() else 0.0
        return total

    for i, (x, outputs) in enumerate(zip(X, vertices(batch.structure), strict=True)):
        labelings = outputs[:, : len(x.node_features)].astype(int)
        worth = np.array([score(x, labels) for labels in labelings])
        assert model.decision_function(X)[i] == pytest.approx(worth.max(), abs=1e-9)
        assert same([model.predict(X)[i]], [labelings[worth.argmax()]])
        ranked = model.k_best(X[i : i + 1], 4)[0]
        np.testing.assert_allclose([found[1] for found in ranked], np.sort(worth)[::-1][:4], atol=1e-9)


def test_scores_of_networks_are_what_the_docs_say():
    X, y = teams(4, labels=THREE, features=True)
    model = mm.AssociativeSVM(C=1.0).fit(X, y)
    node, edge, clique = (part.reshape(-1, 3) for part in np.split(model.coef_, [9, 12]))
    assert clique.shape == (2, 3)
    assert isinstance(model.model_.encoder.transform(X).structure, CliqueNetwork)
    for x, record in zip(X, model.relaxation(X), strict=True):
        labels = np.array([model.classes_.index(label) for label in record.labels])
        total = (x.node_features @ node)[np.arange(len(labels)), labels].sum()
        total += sum(edge[0, labels[j]] for j, k in x.edges if labels[j] == labels[k])
        for nodes, row in zip(x.cliques, x.clique_features, strict=True):
            own = labels[list(nodes)]
            total += row @ clique[:, own[0]] if (own == own[0]).all() else 0.0
        assert record.score == pytest.approx(total)
        assert record.bound >= record.score - 1e-9


@pytest.mark.parametrize("potentials", ["potts", "regular"])
def test_the_hinge_is_the_true_one_and_training_finds_the_enumerated_optimum(potentials):
    """With weights >= 0 the linear relaxation equals the largest violation over all labelings, one by one."""
    X, y = teams(3, features=True, most=2)
    problem = problem_of(mm.CutSVM(C=0.3, potentials=potentials), X, y)
    rng = np.random.default_rng(0)
    for _ in range(5):
        w = rng.normal(size=problem.n_weights)
        w[problem.region.nonnegative] = np.abs(w[problem.region.nonnegative])
        scores = problem.augmented(w)
        outputs = vertices(problem.structure)
        best = sum((rows @ scores[problem.structure.parts_of([i])]).max() for i, rows in enumerate(outputs))
        constant = problem.constant - w @ problem.gold_features
        assert problem.hinge(w) == pytest.approx(best + constant, abs=1e-9)
        assert problem.hinge(w) == pytest.approx(reference.maximum(problem.structure, scores) + constant, abs=1e-7)
    optimum = training.optimum(problem)
    for solver in (mm.Exact(), mm.SimplicialDecomposition(), mm.BlockFrankWolfe(), mm.DualExtragradient()):
        tol = 0.02 if isinstance(solver, mm.DualExtragradient) else 1e-4
        model = mm.CutSVM(C=0.3, potentials=potentials, solver=solver, tol=tol, max_iter=5000).fit(X, y)
        assert model.solution_.certificate.primal == pytest.approx(optimum, rel=tol)
        assert model.solution_.certificate.dual <= optimum * (1 + 1e-6)


def test_a_clique_of_two_nodes_is_an_edge():
    X, y = cuts(6)
    pairs = [
        mm.Graph(x.node_features, [], np.zeros((0, 2)), cliques=x.edges, clique_features=x.edge_features) for x in X
    ]
    settings = {"C": 1.0, "tol": 1e-7, "solver": mm.Exact()}
    one, two = mm.CutSVM(**settings).fit(X, y), mm.CutSVM(**settings).fit(pairs, y)
    np.testing.assert_allclose(two.coef_[[0, 1, 4, 5]], one.coef_, atol=1e-4)
    assert one.solution_.certificate.primal == pytest.approx(two.solution_.certificate.primal, rel=1e-6)


@pytest.mark.parametrize("estimator", [mm.CutSVM(), mm.CutSVM(potentials="regular"), mm.AssociativeSVM()])
def test_sparse_rows_threads_and_features(estimator):
    X, y = teams(6, labels=(0, 1) if isinstance(estimator, mm.CutSVM) else THREE, features=True)
    dense = estimator.fit(X, y).coef_
    sparse = [replace(x, clique_features=sp.csr_array(x.clique_features)) for x in X]
    np.testing.assert_allclose(estimator.fit(sparse, y).coef_, dense, atol=1e-8)
    np.testing.assert_array_equal(estimator.set_params(n_jobs=2).fit(X, y).coef_, dense)
    batch = estimator._encoder().fit(X, y)[1]
    check_features(batch.features, batch.structure)


def test_graphs_without_cliques_among_others():
    X, y = teams(8, features=True)
    some = [replace(x, cliques=None, clique_features=None) if i % 3 == 0 else x for i, x in enumerate(X)]
    model = mm.CutSVM().fit(some, y)
    assert len(model.coef_) == 5
    for given in (bare(X), some[:1], [replace(X[0], cliques=[], clique_features=np.zeros((0, 2)))]):
        assert len(model.predict(given)) == len(given)
    assert len(mm.CutSVM().fit([replace(x, cliques=[], clique_features=None) for x in X], y).coef_) == 3
    weights = model.set_params(warm_start=True).fit(some, y).coef_
    assert len(weights) == 5
    with pytest.raises(ValueError, match="warm_start: the features"):
        model.fit(bare(X), y)


def test_kernels_on_nodes_and_cliques():
    X, y = teams(8)
    linear = mm.CutSVM(C=0.5, tol=1e-6).fit(X, y)
    kernel = mm.CutSVM(C=0.5, tol=1e-6, features=mm.features.Kernel("linear")).fit(X, y)
    np.testing.assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=1e-3)
    assert kernel.coef_[-2:] == pytest.approx(linear.coef_[-2:], abs=1e-3)


@pytest.mark.parametrize("estimator", [mm.CutSVM(), mm.AssociativeSVM()])
def test_refused_cliques_name_the_example(estimator):
    X, y = teams(5, features=True)
    model, x = estimator.fit(X, y), X[2]
    n, rows = len(x.node_features), x.clique_features
    for changes, message in (
        ({"clique_features": -rows}, r"example 2: clique features must be >= 0 .*(shift|split)"),
        ({"clique_features": sp.csr_array(-rows)}, "example 2: clique features must be >= 0"),
        ({"clique_features": rows[:, :1]}, "example 2: clique features have 1 columns, expected 2"),
        ({"clique_features": rows[1:]}, "example 2: 4 cliques but 3 rows of clique features"),
        ({"clique_features": np.nan * rows}, "example 2: clique features hold NaN"),
        ({"clique_features": None}, "example 2: no clique features, but 4 of 5 graphs have them"),
        (
            {"cliques": [(0, n), *x.cliques[1:]]},
            "example 2 has a clique with nodes that it does not have.*number its nodes",
        ),
        ({"cliques": [(0, 0), *x.cliques[1:]]}, "example 2 has a clique with the same node more than once"),
        ({"cliques": [(0,), *x.cliques[1:]]}, "example 2 has a clique of fewer than 2 nodes.*features"),
        ({"cliques": [x.cliques[1], *x.cliques[1:]]}, "example 2 has a clique more than once"),
        ({"cliques": [(0.5, 1), *x.cliques[1:]]}, "example 2: its cliques must be a list of tuples of node numbers"),
        ({"cliques": "nodes"}, "example 2: its cliques must be a list of tuples of node numbers"),
        ({"labels": [[0]] * n}, "example 2: labels per node are for TreeSVM"),
    ):
        bad = [*X[:2], replace(x, **changes), *X[3:]]
        with pytest.raises(ValueError, match=message):
            estimator.fit(bad, y)
        with pytest.raises(ValueError, match=message):
            model.predict(bad)
    plain = estimator.fit(bare(X), y)
    with pytest.raises(
        ValueError, match="example 0: there were no cliques in the training data; leave them out, or train"
    ):
        plain.predict(X)
