"""GraphSVM and AssociativeSVM as users call them: training, predictions that say what they are, files, bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from data import cuts, graphs
from oracles import reference
from oracles.enumeration import vertices
from problems import make
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

import maxmargin as mm
from maxmargin.features import TiedRows
from maxmargin.solvers import Stop, certify, solve
from maxmargin.testing import check_features

KINDS = {"associative": mm.AssociativeSVM, "graph": mm.GraphSVM}
kinds = pytest.mark.parametrize("kind", list(KINDS))


def data(kind: str, n: int = 6, **options):
    return graphs(n, signed=kind == "graph", **options)


@kinds
def test_fit_predict_score(kind):
    X, y = data(kind)
    model = KINDS[kind](C=1.0).fit(X, y)
    assert model.classes_ == ("x", "y", "z")
    assert model.score(X, y) > 0.85
    X_new, y_new = data(kind, seed=9)
    assert model.score(X_new, y_new) > 0.6
    assert model.score(X_new, model.predict(X_new)) == 1.0
    assert model.solution_.certificate.relative_gap <= 1e-3
    assert model.coef_.shape == (model.model_.encoder.n_weights,)
    assert model.decision_function(X_new).shape == (len(X_new),)
    assert repr(clone(model)).startswith(type(model).__name__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert cross_val_score(KINDS[kind](max_iter=20), X, y, cv=2).shape == (2,)


@kinds
def test_the_certificate_is_that_of_the_relaxation(kind):
    """H(w) is the maximum over the relaxed polytope, found here by another solver, and the messages say so."""
    problem = make(kind, n=5, seed=3)
    w = np.abs(np.random.default_rng(0).normal(size=problem.n_weights))
    scores = problem.augmented(w)
    relaxed = reference.maximum(problem.structure, scores) + problem.constant - w @ problem.gold_features
    assert problem.hinge(w) == pytest.approx(relaxed, abs=1e-7)
    outputs = vertices(problem.structure)
    best = sum((rows @ scores[problem.structure.parts_of([i])]).max() for i, rows in enumerate(outputs))
    assert problem.hinge(w) >= best + problem.constant - w @ problem.gold_features - 1e-9
    solution = solve(problem, mm.Exact(), stop=Stop(tol=1e-6))
    assert solution.certificate.relaxed
    assert "of the relaxed objective" in str(solution.certificate)
    assert "of the relaxed objective" in solution.message
    proposal = mm.solvers.Proposal(solution.weights, problem.gradient(problem.gold), problem.loss(problem.gold))
    assert certify(problem, proposal).relaxed


def test_a_fractional_example_raises_the_relaxed_hinge_above_the_true_one():
    """Three nodes that each disagree with both others in a triangle: the relaxation pays for a cut that none makes."""
    structure = mm.structures.PairwiseGraph([3], [[0, 1], [1, 2], [2, 0]], [0, 3], 2)
    scores = np.concatenate([np.zeros(6), np.tile([0.0, 1.0, 1.0, 0.0], 3)])
    assert structure.argmax(scores).value[0] == pytest.approx(3.0)
    assert max(rows @ scores for rows in vertices(structure)[0]) == 2.0


def test_two_labels_agree_with_cuts():
    X, y = cuts(6)
    cut = mm.CutSVM(C=1.0, tol=1e-6, max_iter=20_000).fit(X, y)
    # With edge weights alike for both labels a reward for agreeing is a price of disagreeing, as in a cut.
    both = mm.AssociativeSVM(C=1.0, per_label=False, tol=1e-6, max_iter=20_000).fit(X, [list(labels) for labels in y])
    assert not both.solution_.certificate.relaxed
    assert both.model_.encoder.n_weights == 2 * 2 + 2
    assert both.score(X, [list(labels) for labels in y]) == cut.score(X, y)
    assert all(record.exact for record in both.relaxation(X))
    assert both.solution_.certificate.relative_gap <= 1e-6


@kinds
def test_relaxation_says_when_a_prediction_was_fractional(kind):
    X, y = data(kind)
    model = KINDS[kind](C=1.0).fit(X, y)
    records = model.relaxation(X)
    assert [record.labels for record in records] == model.predict(X)
    np.testing.assert_array_equal([record.score for record in records], model.decision_function(X))
    for x, record in zip(X, records, strict=True):
        assert record.marginals.shape == (len(x.node_features), 3)
        np.testing.assert_allclose(record.marginals.sum(axis=1), 1.0)
        assert record.fractional.shape == (len(x.node_features),)
        assert record.bound >= record.score - 1e-9
        assert record.exact == (record.bound - record.score <= 1e-6)
        if record.exact and not record.fractional.any():
            assert record.labels == [model.classes_[k] for k in record.marginals.argmax(axis=1)]
    with pytest.raises(ValueError, match="relaxation is for graphs and associative networks, not for a cut"):
        mm.CutSVM().fit(*cuts(3)).model_.relaxation(cuts(3)[0])


def test_a_frustrated_triangle_is_reported():
    triangle = mm.Graph(np.zeros((3, 1)), [[0, 1], [1, 2], [2, 0]])
    encoder = mm.encoders.GraphEncoder(("a", "b"), 1, 0)
    (record,) = mm.Model(np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0]), encoder).relaxation([triangle])
    assert record.fractional.all()
    assert not record.exact
    assert (record.score, record.bound) == (2.0, pytest.approx(3.0))
    assert set(record.labels) == {"a", "b"}


def test_graphs_without_edge_features_and_of_any_labels():
    X, y = graphs(5, labels=(("B", 1), True, 2.5))
    plain = [mm.Graph(x.node_features, x.edges) for x in X]
    model = mm.GraphSVM().fit(plain, y)
    assert model.coef_.shape == (3 * 3 + 9,)
    assert set(model.classes_) == {("B", 1), True, 2.5}
    assert model.score(plain, y) > 0.8
    assert mm.AssociativeSVM(per_label=False).fit(plain, y).coef_.shape == (3 * 3 + 1,)
    wide = mm.GraphSVM(classes=["z", "y", "x", "w"]).fit(*graphs(5))
    assert wide.classes_ == ("z", "y", "x", "w")


@kinds
def test_sparse_features_and_threads_agree(kind):
    X, y = data(kind)
    dense = KINDS[kind]().fit(X, y)
    sparse = [mm.Graph(sp.csr_array(x.node_features), x.edges, sp.csr_array(x.edge_features)) for x in X]
    np.testing.assert_allclose(KINDS[kind]().fit(sparse, y).coef_, dense.coef_, atol=1e-8)
    np.testing.assert_array_equal(KINDS[kind](n_jobs=2).fit(X, y).coef_, dense.coef_)


@kinds
def test_weights_of_examples_and_nodes_and_warm_start(kind):
    X, y = data(kind)
    model = KINDS[kind](warm_start=True).fit(X, y, np.arange(1, 7), loss_weight=[np.ones(len(labels)) for labels in y])
    cold = model.solution_.counters.iterations
    again = model.fit(X, y, np.arange(1, 7)).solution_
    assert again.counters.iterations <= max(cold, 5)
    if kind == "associative":
        assert (model.coef_[9:] >= 0).all()


def test_a_file_whose_edge_weights_are_negative_is_refused(tmp_path):
    encoder = mm.encoders.AssociativeEncoder(("a", "b"), 1, 1)
    mm.Model(np.array([1.0, 1.0, 1.0, -1.0]), encoder).save(tmp_path / "m")
    with pytest.raises(mm.ModelFileError, match="edges must be >= 0"):
        mm.load(tmp_path / "m")


@kinds
def test_bad_input_names_the_example_and_the_remedy(kind):
    X, y = data(kind)
    model = KINDS[kind]().fit(X, y)
    good = X[0]
    for call in (model.predict, model.relaxation):
        with pytest.raises(ValueError, match="X is empty"):
            call([])
    with pytest.raises(ValueError, match="example 1: label 'w' was not seen"):
        model.score(X[:2], [y[0], ["w"] * len(y[1])])
    with pytest.raises(ValueError, match=r"example 0 has \d+ nodes but its labels"):
        KINDS[kind]().fit(X, [y[0][:-1], *y[1:]])
    with pytest.raises(ValueError, match="example 0: y must be a list"):
        KINDS[kind]().fit(X, ["text", *y[1:]])
    with pytest.raises(ValueError, match="k best labelings"):
        model.k_best(X, 2)
    with pytest.raises(ValueError, match="example 0: its scores are not finite"):
        model.predict([mm.Graph(1e200 * good.node_features, good.edges, good.edge_features)])


def test_edge_features_by_kind():
    X, y = graphs(4, signed=True)
    with pytest.raises(ValueError, match=r"example 0: edge features must be >= 0.* or use GraphSVM"):
        mm.AssociativeSVM().fit(X, y)
    mixed = [mm.Graph(X[0].node_features, X[0].edges), *X[1:]]
    with pytest.raises(ValueError, match="example 0: no edge features, but 3 of 4 graphs have them"):
        mm.GraphSVM().fit(mixed, y)
    with pytest.raises(ValueError, match="per_label must be True or False"):
        mm.AssociativeSVM(per_label="no").fit(X, y)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("make_rows", [np.asarray, sp.csr_array])
def test_tied_rows(constant, make_rows):
    rows = make_rows(np.random.default_rng(0).normal(size=(7, 3)))
    check_features(TiedRows(rows, [0, 2, 2, 7], 4, constant=constant))
    if not constant:
        check_features(TiedRows(rows, [0, 2, 2, 7], 4, alike=True))
    check_features(TiedRows(np.zeros((3, 0)), [0, 3], 2, constant=True))
    for bad in ([0, 2], [1, 7], [0, 5, 3, 7]):
        with pytest.raises(ValueError, match="offsets"):
            TiedRows(rows, bad, 4)
    with pytest.raises(ValueError, match="not both"):
        TiedRows(rows, [0, 7], 4, constant=True, alike=True)


@pytest.mark.parametrize("kind", [{}, {"constant": True}, {"alike": True}])
@pytest.mark.parametrize("width", [0, 3])
def test_tied_rows_without_some_parts(kind, width):
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(7, width))
    kept = np.flatnonzero(rng.random(28) < 0.5)
    some, every = TiedRows(matrix, [0, 2, 2, 7], 4, kept=kept, **kind), TiedRows(matrix, [0, 2, 2, 7], 4, **kind)
    check_features(some)
    weights = rng.normal(size=some.n_weights)
    np.testing.assert_array_equal(some.scores(weights), every.scores(weights)[kept])
    chosen = [2, 0, 1, 2]
    parts = np.concatenate([kept[(kept >= 4 * a) & (kept < 4 * b)] for a, b in ((2, 7), (0, 2), (2, 2), (2, 7))])
    np.testing.assert_array_equal(some.select(chosen).scores(weights), every.scores(weights)[parts])
    check_features(TiedRows(matrix, [0, 7], 4, kept=kept[:0], **kind))
    for bad in ([[1, 2]], [-1, 3], [3, 28], [2, 2], [5, 4]):
        with pytest.raises(ValueError, match=r"kept parts must rise and lie in 0\.\.27"):
            TiedRows(matrix, [0, 7], 4, kept=np.array(bad), **kind)
