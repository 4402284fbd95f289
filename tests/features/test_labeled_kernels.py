"""Kernels on chain positions, tree and network nodes, and candidates: equal to explicit features where those exist."""

from __future__ import annotations

import numpy as np
import pytest
from data import chains, graphs, matchings, picks, same, trees
from oracles.enumeration import vertices
from test_kernel_features import KERNELS, dual_over_outputs

import maxmargin as mm
from maxmargin.features import Kernel
from maxmargin.losses import Hamming
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import Problem
from maxmargin.regions import L2


def lists(n=6, *, seed=0):
    return picks(n, seed=seed)


MODELS = {
    "chain": (mm.ChainSVM, chains, {}),
    "chain with edge features": (mm.ChainSVM, lambda n=6, **k: chains(n, edges=True, **k), {}),
    "second-order chain": (mm.ChainSVM, chains, {"order": 2}),
    "tree": (mm.TreeSVM, lambda n=6, **k: trees(n, edges=True, **k), {}),
    "graph of width 2": (mm.TreeSVM, lambda n=6, **k: trees(n, ring=True, **k), {}),
    "graph": (mm.GraphSVM, lambda n=5, **k: graphs(n, signed=True, **k), {}),
    "list": (mm.CandidatesSVM, lists, {}),
    "matching": (mm.MatchingSVM, matchings, {}),
    "associative": (mm.AssociativeSVM, graphs, {}),
}
models = pytest.mark.parametrize("name", list(MODELS))
UNSIGNED = [name for name in MODELS if name != "associative"]


def problem_of(name, kernel=None, region=None, n=5):
    """A training problem, its encoder and its inputs."""
    estimator, data, settings = MODELS[name]
    X, y = data(n)
    encoder, batch, gold = estimator(features=kernel, **settings)._encoder().fit(X, y)
    region = L2(**(region or {"C": 0.5}), nonnegative=encoder.nonnegative())
    problem = Problem.build(batch.structure, batch.features, gold, Hamming(), region)
    return problem, encoder, X


@models
@pytest.mark.parametrize("region", [{"C": 0.5}, {"radius": 0.7}])
@pytest.mark.parametrize("geometry", ["auto", mm.Euclidean()])
def test_iterates_with_a_linear_kernel_are_those_of_explicit_features(name, region, geometry):
    solver = mm.DualExtragradient(geometry=geometry, inexact=0.0, balance=1.0)
    runs = []
    for kernel in (None, Kernel("linear")):
        problem, encoder, _ = problem_of(name, kernel, region)
        vars(problem)["norm"] = runs[0][0].norm if runs else problem.norm  # an estimate: the same for both
        run = Run.of(problem, np.random.default_rng(0))
        runs.append((problem, encoder, run, solver.init(run, Start())))
    for _ in range(25):
        runs = [(problem, encoder, run, solver.step(run, state)) for problem, encoder, run, state in runs]
        (explicit, _, first_run, one), (dual, _, second_run, two) = runs
        for first, second in (
            (one.last.proposal.weights, two.last.proposal.weights),
            (one.average.weights, two.average.weights),
        ):
            wanted = explicit.features.scores(first)
            np.testing.assert_allclose(dual.features.scores(second), wanted, rtol=0, atol=1e-10)
            assert second @ second == pytest.approx(first @ first, rel=1e-10)
        averages = solver.duals(second_run, two), solver.duals(first_run, one)
        np.testing.assert_allclose(*averages, rtol=0, atol=1e-10)
    # The trained model has dual coefficients, and the scores of the weights that it was made of.
    _, encoder, _ = problem_of(name, Kernel("linear"), region)
    trained, a = encoder.to_model(runs[1][3].average.weights)
    explicit = mm.Model(runs[0][3].average.weights, runs[0][1])
    dual = mm.Model(a, trained)
    data = MODELS[name][1]
    for X in (data(5)[0], data(4, seed=7)[0]):
        np.testing.assert_allclose(dual.decision_function(X), explicit.decision_function(X), rtol=0, atol=1e-10)
        assert same(dual.predict(X), explicit.predict(X))
        if not runs[0][0].structure.relaxed:
            for mine, others in zip(dual.k_best(X, 3), explicit.k_best(X, 3), strict=True):
                assert same([output for output, _ in mine], [output for output, _ in others])
                assert [score for _, score in mine] == pytest.approx([score for _, score in others], rel=0, abs=1e-10)


@pytest.mark.parametrize("name", UNSIGNED)
@pytest.mark.parametrize("kernel", [Kernel("rbf", gamma=0.7), Kernel("poly", degree=2), None])
def test_sums_of_features_in_place_of_weights(name, kernel):
    problem, _, _ = problem_of(name, kernel, {"C": 2.0, "radius": 0.9})
    weights = []
    for store in (True, False):
        solver = mm.DualExtragradient(store_weights=store, inexact=0.0)
        run = Run.of(problem, np.random.default_rng(0))
        state = solver.init(run, Start())
        for _ in range(25):
            state = solver.step(run, state)
        weights.append(solver.propose(run, state)[0].weights)
    np.testing.assert_allclose(weights[1], weights[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("kernel_name", list(KERNELS))
@pytest.mark.parametrize("name", ["chain", "list"])
def test_against_an_independent_dual(name, kernel_name):
    kernel, function = KERNELS[kernel_name]
    C = 0.8
    estimator, data, _ = MODELS[name]
    X, y = data(4)
    new, _ = data(3, seed=5)
    rows = np.concatenate(X)
    model = estimator(C=C, features=kernel, solver=mm.Exact(), tol=1e-6).fit(X, y)
    structure = model.model_.encoder.transform(X).structure
    k = 3 if name == "chain" else 1
    starts = k * np.concatenate([[0], np.cumsum([len(x) for x in X])])
    outputs, gold = vertices(structure), model.model_.encoder.encode(model.model_.encoder.transform(X), y)
    golds = [gold.select(np.array([i]), structure.select([i])).dense() for i in range(len(X))]

    def difference(i, z):  # of parts with features: (rows, labels), and of pairs where the weights are linear
        nodes = np.zeros(len(rows) * k)
        nodes[starts[i] : starts[i + 1]] = (z - golds[i])[: starts[i + 1] - starts[i]]
        return np.concatenate([nodes, (z - golds[i])[starts[i + 1] - starts[i] :]])

    def costs(i, z):
        n = starts[i + 1] - starts[i]
        return float(np.abs(z - golds[i])[:n].sum()) / 2.0

    gram = np.kron(function(rows, rows), np.eye(k))
    n_linear = len(difference(0, outputs[0][0])) - len(gram)
    K = np.block([[gram, np.zeros((len(gram), n_linear))], [np.zeros((n_linear, len(gram))), np.eye(n_linear)]])
    objective, a = dual_over_outputs(K, outputs, difference, costs, C)
    assert model.solution_.certificate.primal == pytest.approx(objective, rel=1e-7)
    quick = estimator(C=C, features=kernel, tol=1e-4).fit(X, y)
    assert quick.solution_.certificate.primal == pytest.approx(objective, rel=2e-4)
    for inputs in (X, new):
        batch = model.model_.encoder.transform(inputs)
        found = batch.features.scores(model.coef_)[: batch.structure.starts[1]].reshape(-1, k)
        wanted = function(np.concatenate(inputs), rows) @ a[: len(gram)].reshape(-1, k)
        np.testing.assert_allclose(found, wanted, atol=1e-4)


@models
def test_save_and_load(name, tmp_path):
    estimator, data, settings = MODELS[name]
    (X, y), (new, gold) = data(5), data(4, seed=7)
    model = estimator(features=Kernel("rbf", gamma=0.3), C=1.0, tol=1e-2, **settings).fit(X, y)
    model.save(tmp_path / "model")
    again = mm.load(tmp_path / "model")
    np.testing.assert_array_equal(again.weights, model.coef_)
    np.testing.assert_array_equal(again.decision_function(new), model.decision_function(new))
    assert same(again.predict(new), model.predict(new))
    assert again.score(new, gold) == model.score(new, gold)
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_trees_with_cliques_and_few_labels():
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(8):
        rows = rng.uniform(-2, 2, size=(4, 1))
        inside = ["in" if abs(x) < 1 else "out" for x in rows[:, 0]]
        allowed = [None, None, [inside[2]], None]
        X.append(mm.Graph(rows, [[0, 1], [1, 2], [2, 3]], cliques=[[0, 1, 2]], labels=allowed))
        y.append(inside)
    curved = mm.TreeSVM(features=Kernel("rbf", gamma=2.0), C=10.0, tol=1e-2).fit(X, y)
    assert curved.score(X, y) > mm.TreeSVM(C=10.0, tol=1e-2).fit(X, y).score(X, y)
    assert all(output[2] == gold[2] for output, gold in zip(curved.predict(X), y, strict=True))


@pytest.mark.parametrize("formulation", ["nearest", "all"])
def test_several_good_candidates(formulation):
    rng = np.random.default_rng(0)
    X = [rng.uniform(-2, 2, size=(6, 1)) for _ in range(30)]
    y = [np.abs(x[:, 0]) <= max(1.0, np.abs(x).min()) for x in X]
    settings = {"formulation": formulation, "rescaling": "none", "C": 5.0, "tol": 1e-2}
    curved = mm.CandidatesSVM(features=Kernel("rbf", gamma=2.0), **settings).fit(X, y)
    assert curved.score(X, y) > 0.9
    with pytest.raises(ValueError, match="distance compares rows of explicit features; leave it out"):
        mm.CandidatesSVM(features=Kernel("rbf"), distance=lambda a, b: 0.0, **settings).fit(X, y)


def test_equal_rows_are_stored_once():
    X = [np.eye(3)[[0, 1, 2, 0, 0]], np.eye(3)[[2, 2]]]
    y = [["a", "b", "c", "a", "a"], ["c", "c"]]
    model = mm.ChainSVM(features=Kernel("rbf"), C=10.0, tol=1e-3).fit(X, y)
    assert model.model_.encoder.support.rows.shape == (3, 3)
    assert model.coef_.shape == (3 * 3 + 3 * 3,)
    assert same(model.predict(X), y)
    zero = mm.ChainSVM(features=Kernel("linear")).fit([np.zeros((2, 1))], [["a", "b"]])
    assert zero.coef_.shape == (4,)
    assert len(zero.predict([np.ones((3, 1))])[0]) == 3


def test_offsets_of_selected_examples():
    X, y = chains(6)
    encoder, batch, _ = mm.ChainSVM(features=Kernel("rbf"))._encoder().fit(X, y)
    w = np.random.default_rng(0).normal(size=encoder.n_weights)
    whole = batch.features.scores(w)
    for chosen in ([2], [1, 2, 3], [4, 0, 4]):
        parts = batch.structure.parts_of(chosen)
        np.testing.assert_allclose(batch.features.select(chosen).scores(w), whole[parts], atol=1e-12)
