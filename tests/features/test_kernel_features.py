"""Kernel features: equal to explicit ones where those exist, to an independent dual where they do not."""

from __future__ import annotations

import pickle
import struct
from dataclasses import FrozenInstanceError
from itertools import pairwise

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from data import chains, cuts, matchings, picks, same, trees
from oracles.enumeration import vertices
from oracles.reference import conic
from sealed_files import changed, parts, refused, sealed
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV

import maxmargin as mm
from maxmargin.encoders.cut import CutEncoder
from maxmargin.encoders.matchings.matching import MatchingEncoder
from maxmargin.features import Kernel, PartFeatures, TiedRows
from maxmargin.features.kernel import GatheredRows, KernelMap, KernelRows
from maxmargin.features.rows import Rows
from maxmargin.structures._arrays import offsets_of
from maxmargin.testing import check_features

KINDS = {
    "matching": (mm.MatchingSVM, matchings),
    "cut": (mm.CutSVM, cuts),
    "chain": (mm.ChainSVM, chains),
    "tree": (mm.TreeSVM, trees),
    "list": (mm.CandidatesSVM, picks),
}
NODES = ("cut", "tree")
"""Kinds whose inputs are graphs with features of nodes."""
kinds = pytest.mark.parametrize("kind", list(KINDS))


def cosine(first, second):
    """A kernel of a user's own; at module level, so that it can be pickled."""
    first, second = (rows.toarray() if sp.issparse(rows) else rows for rows in (first, second))
    return (first @ second.T) ** 2 + 1.0


def with_rows(kind, x, change):
    """The same input with other features of its parts."""
    return mm.Graph(change(x.node_features), x.edges, x.edge_features) if kind in NODES else change(x)


def sparse_copy(kind, X):
    if kind != "matching":
        return [with_rows(kind, x, sp.csr_array) for x in X]
    shapes = [x.shape for x in X]
    return [
        mm.Bipartite(sp.csr_array(x.reshape(-1, s[2])), np.argwhere(np.ones(s[:2])), s[:2])
        for x, s in zip(X, shapes, strict=True)
    ]


@kinds
@pytest.mark.parametrize("settings", [{"C": 0.5}, {"radius": 0.7}, {"C": 2.0, "radius": 0.5}])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_linear_kernel_is_explicit_features(kind, settings, sparse):
    estimator, data = KINDS[kind]
    (X, y), (new, _) = data(), data(4, seed=7)
    if sparse:
        X, new = sparse_copy(kind, X), sparse_copy(kind, new)
    explicit = estimator(solver=mm.Exact(), tol=1e-6, **settings).fit(X, y)
    dual = estimator(solver=mm.Exact(), tol=1e-6, features=Kernel("linear"), **settings).fit(X, y)
    assert dual.solution_.certificate.primal == pytest.approx(explicit.solution_.certificate.primal, rel=1e-9, abs=1e-9)
    # Any weights: the kernel model of w scores as w does, on new inputs too.
    w = explicit.coef_
    encoder = estimator(features=Kernel("linear"))._encoder().fit(X, y)[0]
    rows = encoder.support.rows
    rows = rows.toarray() if sp.issparse(rows) else rows
    n = encoder.n_weights - (explicit.model_.encoder.n_weights - rows.shape[1] * encoder._columns)
    assert n == encoder.support.n_weights * encoder._columns <= rows.shape[1] * encoder._columns
    own, others = np.split(w, [rows.shape[1] * encoder._columns])
    wanted = rows @ own.reshape(rows.shape[1], -1)
    coordinates = np.linalg.lstsq(encoder.support.coordinates, wanted, rcond=None)[0]
    full = np.concatenate([coordinates.ravel(), others])
    trained, a = encoder.to_model(full)
    for inputs in (X, new):
        wanted = explicit.model_.encoder.transform(inputs).features.scores(w)
        np.testing.assert_allclose(encoder.transform(inputs).features.scores(full), wanted, rtol=0, atol=1e-9)
        np.testing.assert_allclose(trained.transform(inputs).features.scores(a), wanted, rtol=0, atol=1e-9)
        assert same(mm.Model(a, trained).predict(inputs), explicit.predict(inputs))
    np.testing.assert_allclose(encoder.to_training(trained, a), full, atol=1e-9)
    assert full @ full == pytest.approx(w @ w, rel=1e-9)


@kinds
def test_a_linear_kernel_runs_as_explicit_features(kind):
    estimator, data = KINDS[kind]
    X, y = data()
    for solver in (mm.Extragradient(), mm.DualExtragradient(), mm.DualExtragradient(store_duals=False)):
        settings = {"C": 0.5, "solver": solver, "tol": 2e-2}
        explicit, dual = estimator(**settings).fit(X, y), estimator(features=Kernel("linear"), **settings).fit(X, y)
        for model in (explicit, dual):
            assert model.solution_.certificate.relative_gap <= 2e-2
        assert dual.solution_.certificate.dual <= explicit.solution_.certificate.primal * (1 + 1e-9)
        assert explicit.solution_.certificate.dual <= dual.solution_.certificate.primal * (1 + 1e-9)


def dual_over_outputs(K, outputs, difference, costs, C, signed=None):
    """Optimum and dual coefficients by Clarabel, from enumerated outputs alone.

    ``max_mu sum_iy mu_iy loss_iy - C/2 (d'Kd + ||[-g]_+||^2)`` over one simplex per example, where ``d`` adds up the
    ``difference(i, y)`` of parts to the gold and ``g`` the differences ``signed(i, y)`` of features with weights >= 0.
    """
    pairs = [(i, z) for i, found in enumerate(outputs) for z in found]
    d = np.array([difference(i, z) for i, z in pairs]).T
    g = np.array([signed(i, z) for i, z in pairs]).T if signed else np.zeros((0, len(pairs)))
    n, extra = len(pairs), len(g)
    quadratic = np.zeros((n + extra, n + extra))
    quadratic[:n, :n] = C * d.T @ K @ d
    quadratic[n:, n:] = C * np.eye(extra)
    sums = np.zeros((len(outputs), n + extra))
    sums[[i for i, _ in pairs], np.arange(n)] = 1.0
    above = np.hstack([-g, -np.eye(extra)])  # s >= -g mu, s >= 0
    matrix = np.vstack([sums, -np.eye(n + extra), above])
    linear = np.concatenate([[-costs(i, z) for i, z in pairs], np.zeros(extra)])
    rhs = np.concatenate([np.ones(len(outputs)), np.zeros(n + 2 * extra)])
    cones = [clarabel.ZeroConeT(len(outputs)), clarabel.NonnegativeConeT(n + 2 * extra)]
    mu, least = conic(quadratic, linear, matrix, rhs, cones)
    return -least, -C * d @ mu[:n]


KERNELS = {
    "rbf": (Kernel("rbf", gamma=0.7), lambda a, b: rbf_kernel(a, b, gamma=0.7)),
    "poly": (Kernel("poly", degree=2, gamma=0.5, coef0=1.0), lambda a, b: polynomial_kernel(a, b, 2, 0.5, 1.0)),
    "callable": (Kernel(cosine), cosine),
}


@pytest.mark.parametrize("name", list(KERNELS))
@pytest.mark.parametrize("C", [0.3, 3.0])
def test_matchings_against_an_independent_dual(name, C):
    kernel, function = KERNELS[name]
    (X, y), (new, _) = matchings(4), matchings(3, seed=5)
    rows = np.concatenate([x.reshape(-1, 3) for x in X])
    packed = MatchingEncoder().fit(X, y)[1]
    outputs, gold = vertices(packed.structure), packed.structure.encode(y).dense()
    offsets = packed.structure.blocks[0].offsets
    golds = [gold[first:last] for first, last in pairwise(offsets)]

    def difference(i, z):
        full = np.zeros(len(rows))
        full[offsets[i] : offsets[i + 1]] = z - golds[i]
        return full

    def costs(i, z):
        return float(np.abs(z - golds[i]).sum())

    objective, a = dual_over_outputs(function(rows, rows), outputs, difference, costs, C)
    model = mm.MatchingSVM(C=C, features=kernel, solver=mm.Exact(), tol=1e-6).fit(X, y)
    assert model.solution_.certificate.primal == pytest.approx(objective, rel=1e-7)
    for inputs in (X, new):
        parts_of = np.concatenate([x.reshape(-1, 3) for x in inputs])
        found = model.model_.encoder.transform(inputs).features.scores(model.coef_)
        np.testing.assert_allclose(found, function(parts_of, rows) @ a, atol=1e-4)
    assert model.coef_.shape == (model.model_.encoder.n_weights,)
    quick = mm.MatchingSVM(C=C, features=kernel, tol=1e-4).fit(X, y)
    assert quick.solution_.certificate.primal == pytest.approx(objective, rel=2e-4)


@pytest.mark.parametrize("potentials", ["potts", "regular"])
def test_cuts_against_an_independent_dual(potentials):
    C = 0.8
    X, y = cuts(3)
    kernel, function = KERNELS["rbf"]
    rows = np.concatenate([x.node_features for x in X])
    starts = offsets_of([len(x.node_features) for x in X])
    packed = CutEncoder().fit(X, y)[1]
    outputs = [np.asarray(found) for found in vertices(packed.structure)]

    def difference(i, z):
        full = np.zeros(len(rows))
        full[starts[i] : starts[i + 1]] = z[: len(y[i])] - y[i]
        return full

    def linear(i, z):
        labels = z[: len(y[i])]
        first, second = np.asarray(X[i].edges).T
        x = X[i].edge_features
        at = [np.abs(v[first] - v[second]) @ x for v in (labels, y[i])]
        return -(at[0] - at[1])

    def unsigned(i, z):
        labels = z[: len(y[i])]
        first, second = np.asarray(X[i].edges).T
        x = X[i].edge_features
        return np.concatenate([(labels[first] - y[i][first]) @ x, (labels[second] - y[i][second]) @ x])

    def joined(i, z):  # the unsigned linear sets of regular potentials, beside the kernel's
        return np.concatenate([difference(i, z), unsigned(i, z)])

    def costs(i, z):
        return float(np.abs(z[: len(y[i])] - y[i]).sum())

    K = function(rows, rows)
    if potentials == "regular":
        K = np.block([[K, np.zeros((len(rows), 4))], [np.zeros((4, len(rows))), np.eye(4)]])
    moved = joined if potentials == "regular" else difference
    objective, _ = dual_over_outputs(K, outputs, moved, costs, C, linear)
    model = mm.CutSVM(C=C, features=kernel, potentials=potentials, solver=mm.Exact(), tol=1e-6).fit(X, y)
    assert model.solution_.certificate.primal == pytest.approx(objective, rel=1e-7)
    assert (model.coef_[-2:] >= 0).all()
    assert model.regular_weights_.shape == (4, 2)


@kinds
@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_kernels_learn_what_linear_features_cannot(kind):
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(40):
        if kind == "matching":
            order = rng.permutation(4)
            left, right = rng.uniform(-2, 2, size=(2, 4))
            right[order] = left + 0.05 * rng.standard_normal(4)
            difference = left[:, None] - right[None, :]  # the sign says nothing, only the size does
            X.append(difference[:, :, None])
            y.append(np.stack([np.arange(4), order], axis=1))
            continue
        position = rng.uniform(-2, 2, size=6)
        rows, inside = position[:, None], (np.abs(position) < 1).astype(int)
        X.append(mm.Graph(rows, [[j, j + 1] for j in range(5)]) if kind in NODES else rows)
        y.append(int(np.argmin(np.abs(position))) if kind == "list" else inside.tolist())
    estimator = KINDS[kind][0]
    curved = estimator(C=1.0, features=Kernel("rbf", gamma=2.0), tol=1e-2).fit(X[:25], y[:25])
    straight = estimator(C=1.0, tol=1e-2).fit(X[:25], y[:25])
    assert curved.score(X[25:], y[25:]) > 0.9
    assert curved.score(X[25:], y[25:]) > straight.score(X[25:], y[25:]) + 0.2


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["rbf", "poly", "linear"])
def test_feature_maps_keep_their_promises(name, sparse):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(12, 4)).round(1)
    rows[5] = rows[2]
    rows[7] = 0.0
    offsets = np.array([0, 3, 3, 8, 12])
    other = rng.normal(size=(6, 4))
    if sparse:
        rows, other = sp.csr_array(rows), sp.csr_array(other)
    trained = KernelMap.learn(Kernel(name), rows)
    assert trained.rows.shape == (11, 4)
    known, new = trained.features(rows), trained.features(other)
    assert isinstance(known, GatheredRows)
    assert isinstance(new, KernelRows)
    known, new = PartFeatures(known, offsets), PartFeatures(new, np.array([0, 1, 6]))
    gram = trained.kernel.values(rows, rows)
    matrix = known.to_sparse().toarray()
    np.testing.assert_allclose(matrix @ matrix.T, gram, atol=1e-12)
    np.testing.assert_allclose(matrix @ new.to_sparse().toarray().T, trained.kernel.values(rows, other), atol=1e-7)
    w = rng.normal(size=trained.n_weights)
    final, a = trained.to_model(w)
    assert final.to_model(a) == (final, a)
    trained_again = PartFeatures(final.features(rows), offsets)
    np.testing.assert_allclose(trained_again.scores(a), known.scores(w), atol=1e-9)
    dual = PartFeatures(final.features(other), np.array([0, 1, 6]))
    np.testing.assert_allclose(dual.scores(a), new.scores(w), atol=1e-9)
    for features in (known, new, dual):
        check_features(features)
    for matrix, bounds in ((trained.features(rows), offsets), (trained.features(other), [0, 1, 6])):
        explicit = Rows(matrix.to_sparse(), "the same rows")
        for m, constant, alike in ((3, False, False), (2, True, False), (2, False, True)):
            tied, plain = (TiedRows(given, bounds, m, constant=constant, alike=alike) for given in (matrix, explicit))
            check_features(tied)
            w_tied, z = rng.normal(size=tied.n_weights), rng.normal(size=tied.n_parts)
            np.testing.assert_allclose(tied.scores(w_tied), plain.scores(w_tied), atol=1e-9)
            np.testing.assert_allclose(tied.adjoint(z), plain.adjoint(z), atol=1e-9)
            for order in (2, np.inf):
                np.testing.assert_allclose(tied.part_norms(order), plain.part_norms(order), atol=1e-9)
            np.testing.assert_allclose(tied.weight_norms(z), plain.weight_norms(z), atol=1e-9)
    again = pickle.loads(pickle.dumps(trained))
    np.testing.assert_array_equal(PartFeatures(again.features(rows), offsets).scores(w), known.scores(w))


def test_pieces_of_large_batches(monkeypatch):
    rng = np.random.default_rng(0)
    kernel = Kernel("rbf", gamma=1.0)
    rows, support, a = rng.normal(size=(50, 3)), rng.normal(size=(7, 3)), rng.normal(size=7)
    z = rng.normal(size=50)
    whole = PartFeatures(KernelRows(kernel, rows, support), [0, 50])
    wanted = whole.scores(a), whole.adjoint(z)
    monkeypatch.setattr("maxmargin.features.kernel.CHUNK", 40)
    monkeypatch.setattr("maxmargin.features.kernel.KEPT", 1)
    pieces = PartFeatures(KernelRows(kernel, rows, support), [0, 50])
    np.testing.assert_allclose(pieces.scores(a), wanted[0], atol=1e-14)
    np.testing.assert_allclose(pieces.adjoint(z), wanted[1], atol=1e-14)
    assert pieces.rows._kept is None


@kinds
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", [Kernel("rbf", gamma=0.3), Kernel("poly", degree=2), Kernel("linear")])
def test_save_and_load(kind, sparse, kernel, tmp_path):
    estimator, data = KINDS[kind]
    (X, y), (new, gold) = data(), data(4, seed=7)
    if sparse:
        X, new = sparse_copy(kind, X), sparse_copy(kind, new)
    model = estimator(features=kernel, C=2.0).fit(X, y)
    model.save(tmp_path / "model")
    again = mm.load(tmp_path / "model")
    np.testing.assert_array_equal(again.weights, model.coef_)
    for other in (again, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.decision_function(new), model.decision_function(new))
        assert same(other.predict(new), model.predict(new))
        assert other.score(new, gold) == model.score(new, gold)
        assert [len(best) for best in other.k_best(new, 2)] == [len(best) for best in model.k_best(new, 2)]
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    header, _ = parts((tmp_path / "model").read_bytes())
    assert header["encoder"]["kernel"]["function"] == kernel.function
    assert ("support" in header["arrays"]) is not sparse


def test_files_that_deceive(tmp_path):
    X, y = matchings()
    for inputs, arrays in ((X, ["support"]), (sparse_copy("matching", X), ["values", "columns", "starts"])):
        mm.MatchingSVM(features=Kernel("rbf")).fit(inputs, y).save(tmp_path / "model")
        data = (tmp_path / "model").read_bytes()
        names = [name if name == "support" else f"support_{name}" for name in arrays]
        for name in names:
            refused(tmp_path / "bad", changed(data, lambda header, name=name: header["arrays"].pop(name)), "missing")
            for entry in ({"dtype": "<f4"}, {"shape": [1]}, {"shape": []}, {"shape": [2, 2]}):
                refused(
                    tmp_path / "bad",
                    changed(data, lambda header, name=name, entry=entry: header["arrays"][name].update(entry)),
                )
        for change in (
            {"function": "spectral"},
            {"function": None},
            {"gamma": None},
            {"gamma": -1.0},
            {"gamma": "1"},
            {"degree": 0},
            {"degree": 1.5},
            {"coef0": None},
            {"coef0": -1},
        ):
            refused(
                tmp_path / "bad",
                changed(data, lambda header, change=change: header["encoder"]["kernel"].update(change)),
            )
        for kernel in (None, 3, "rbf", []):
            refused(
                tmp_path / "bad", changed(data, lambda header, kernel=kernel: header["encoder"].update(kernel=kernel))
            )
        refused(tmp_path / "bad", changed(data, lambda header: header["encoder"].pop("kernel")))
        refused(tmp_path / "bad", changed(data, lambda header: header["encoder"].update(n_features=2)))
        header, payload = parts(data)
        where = header["arrays"][names[0]]["offset"]
        bad = payload[:where] + struct.pack("<d", np.nan) + payload[where + 8 :]
        refused(tmp_path / "bad", sealed(header, bad), "finite")
    where = header["arrays"]["support_columns"]["offset"]
    for column in (-1, 3, 2**40):
        bad = payload[:where] + struct.pack("<q", column) + payload[where + 8 :]
        refused(tmp_path / "bad", sealed(header, bad), "sparse matrix of 3 columns")
    where = header["arrays"]["support_starts"]["offset"]
    for start in (-1, 3, 2**40):
        bad = payload[:where] + struct.pack("<q", start) + payload[where + 8 :]
        refused(tmp_path / "bad", sealed(header, bad), "sparse matrix")


@kinds
def test_a_function_cannot_be_saved(kind, tmp_path):
    estimator, data = KINDS[kind]
    X, y = data()
    model = estimator(features=Kernel(cosine)).fit(X, y)
    with pytest.raises(ValueError, match=r"cannot be saved, as its kernel is a function.*pickle the estimator"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    assert same(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_the_setting_is_a_frozen_value():
    kernel = Kernel("rbf", gamma=0.5)
    assert kernel == Kernel("rbf", gamma=0.5) != Kernel("rbf", gamma=0.6)
    assert hash(kernel) == hash(Kernel("rbf", gamma=0.5))
    with pytest.raises(FrozenInstanceError):
        kernel.gamma = 1.0  # type: ignore[misc]
    estimator = mm.MatchingSVM(features=kernel)
    assert clone(estimator).features == kernel
    assert clone(mm.CutSVM(features=Kernel(cosine))).features.function is cosine
    X, y = matchings(6)
    grid = {"features": [None, Kernel("rbf", gamma=0.1), Kernel("poly", degree=2)]}
    search = GridSearchCV(mm.MatchingSVM(tol=1e-2), grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"function": "sigmoid"}, 'one of "rbf", "poly", "linear" or a function'),
        ({"function": 3}, "or a function"),
        ({"gamma": 0.0}, "gamma must be a finite number > 0"),
        ({"gamma": np.nan}, "gamma must be"),
        ({"gamma": "scale"}, "gamma must be"),
        ({"gamma": True}, "gamma must be"),
        ({"degree": 0}, "degree must be an integer >= 1"),
        ({"degree": 2.5}, "degree must be"),
        ({"coef0": -1.0}, "coef0 must be"),
        ({"coef0": np.inf}, "coef0 must be"),
        ({"max_parts": 0}, "max_parts must be"),
    ],
)
def test_bad_kernels(settings, message):
    with pytest.raises(ValueError, match=message):
        Kernel(**settings)


@kinds
@pytest.mark.parametrize(
    ("features", "message"),
    [
        ("rbf", "features must be None or a kernel such as"),
        (Kernel, "features must be None or a kernel"),
        (Kernel("rbf", max_parts=3), r"distinct rows .* max_parts=3.*Nystroem.*, or raise max_parts"),
        (Kernel(lambda a, b: np.zeros((1, 1))), "must return real numbers of shape"),
        (Kernel(lambda a, b: np.full((len(a), len(b)), np.nan)), "not finite; scale the features"),
        (Kernel(lambda a, b: a @ b[:, ::-1].T + np.arange(len(b))), "not symmetric"),
        (Kernel(lambda a, b: -(a @ b.T)), "not positive semidefinite"),
        (Kernel("poly", degree=2000), None),
    ],
)
def test_bad_kernel_features(kind, features, message):
    estimator, data = KINDS[kind]
    X, y = data()
    if message is None:
        X = [with_rows(kind, x, lambda rows: 1e3 * rows) for x in X]
        message = "not finite; scale the features"
    with pytest.raises(ValueError, match=message):
        estimator(features=features).fit(X, y)


@kinds
def test_what_kernels_exclude(kind):
    estimator, data = KINDS[kind]
    X, y = data()
    with pytest.raises(ValueError, match="sign constraints have no kernel form; use explicit features"):
        estimator(features=Kernel("rbf"), nonnegative=[0]).fit(X, y)
    assert "L1 ball" in estimator(features=Kernel("rbf"))._encoder().l1_unsupported
    assert estimator()._encoder().l1_unsupported == ""
    empty = [mm.Graph(np.zeros((2, 0)), [[0, 1]]) if kind in NODES else np.zeros((2, 0))]
    gold = [0] if kind == "list" else [[0, 1]]
    if kind == "matching":
        empty, gold = [np.zeros((2, 2, 0))], [[[0, 1]]]
    with pytest.raises(ValueError, match="at least one feature"):
        estimator(features=Kernel("rbf")).fit(empty, gold)


@kinds
def test_bad_inputs_to_a_kernel_model(kind):
    estimator, data = KINDS[kind]
    X, y = data()
    model = estimator(features=Kernel("poly", degree=3)).fit(X, y)

    def put(array):
        return with_rows(kind, X[0], lambda _: array)

    array = X[0].node_features if kind in NODES else X[0]
    with pytest.raises(ValueError, match=r"example 1: .*columns, expected"):
        model.predict([X[0], put(array[..., :1])])
    with pytest.raises(ValueError, match=r"example 1: .*NaN or infinity"):
        model.predict([X[0], put(np.full_like(array, np.nan))])
    with pytest.raises(ValueError, match="example 1: its scores are not finite"):
        model.predict([X[0], put(np.full_like(array, 1e200))])


@kinds
def test_warm_start(kind):
    estimator, data = KINDS[kind]
    X, y = data()
    model = estimator(features=Kernel("rbf", gamma=0.5), warm_start=True, C=1.0).fit(X, y)
    cold = model.solution_.counters.iterations
    model.fit(X, y)
    assert model.solution_.counters.iterations < cold
    with pytest.raises(ValueError, match="warm_start: the features or labels are not those of the last fit"):
        model.fit(*data(5, seed=3))
    with pytest.raises(ValueError, match="warm_start"):
        model.set_params(features=Kernel("rbf", gamma=0.6)).fit(X, y)
    with pytest.raises(ValueError, match="warm_start"):
        model.set_params(features=None).fit(X, y)


@kinds
def test_validation_chooses_dual_coefficients(kind):
    estimator, data = KINDS[kind]
    (X, y), (new, gold) = data(), data(4, seed=7)
    model = estimator(features=Kernel("rbf", gamma=0.5), C=np.inf, max_iter=20)
    model.set_params(patience=50).fit(X, y, dev=(new, gold))
    assert model.score(new, gold) == pytest.approx(max(score for _, score in model.dev_scores_))


@kinds
def test_same_bits_for_any_number_of_threads(kind):
    estimator, data = KINDS[kind]
    X, y = data()
    models = [estimator(features=Kernel("rbf"), n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2, 3)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_equal_rows_ties_and_single_parts():
    X = [np.ones((2, 2, 1)), np.ones((1, 1, 1)), np.zeros((1, 2, 1))]
    y = [[[0, 0], [1, 1]], [[0, 0]], np.zeros((0, 2), dtype=int)]
    model = mm.MatchingSVM(features=Kernel("rbf", gamma=1.0), C=10.0).fit(X, y)
    assert model.model_.encoder.support.rows.shape[0] == 2
    assert model.score(X, y) == 1.0
    zero = mm.MatchingSVM(features=Kernel("linear")).fit([np.zeros((2, 2, 1))], [[[0, 0]]])
    assert zero.coef_.shape == (0,)
    assert len(zero.predict([np.ones((2, 2, 1))])) == 1


@pytest.mark.parametrize("scale", [1e-4, 1e5])
def test_scaled_features(scale):
    X, y = matchings()
    model = mm.MatchingSVM(features=Kernel("linear"), C=1.0 / scale**2).fit([scale * x for x in X], y)
    plain = mm.MatchingSVM(C=1.0).fit(X, y)
    assert model.solution_.certificate.primal == pytest.approx(plain.solution_.certificate.primal, rel=2e-3)
