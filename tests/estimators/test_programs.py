"""Linear programs through the estimator: training, prediction, bad input, model files, and the example."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from data import matchings, same
from sklearn.base import clone

import maxmargin as mm
from maxmargin.structures import LinearProgram

ROOT = Path(__file__).parents[2]


def as_programs(X, y):
    """Matchings written as linear programs."""
    programs, outputs = [], []
    for x, links in zip(X, y, strict=True):
        left, right, d = x.shape
        A = np.vstack([np.kron(np.eye(left), np.ones((1, right))), np.kron(np.ones((1, left)), np.eye(right))])
        z = np.zeros((left, right), dtype=np.int64)
        z[links[:, 0], links[:, 1]] = 1
        programs.append(mm.Program(x.reshape(-1, d), sp.csr_array(A), np.ones(left + right)))
        outputs.append(z.ravel())
    return programs, outputs


def odd_cycles(n=6, *, seed=0):
    """Choose nodes of a triangle, no two of which are neighbors: the relaxation has the vertex (1/2, 1/2, 1/2)."""
    rng = np.random.default_rng(seed)
    A = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    X, y = [], []
    for _ in range(n):
        features = rng.normal(size=(3, 2))
        z = np.zeros(3, dtype=np.int64)
        z[np.argmax(features[:, 0])] = 1
        X.append(mm.Program(features, A, np.ones(3)))
        y.append(z)
    return X, y


@pytest.mark.parametrize("settings", [{"C": 0.5}, {"radius": 0.7}])
def test_matchings_written_as_programs(settings):
    X, y = matchings()
    programs, outputs = as_programs(X, y)
    wanted = mm.MatchingSVM(solver=mm.Exact(), tol=1e-6, **settings).fit(X, y)
    for solver in (mm.Exact(), mm.Extragradient(), mm.DualExtragradient(), mm.DualExtragradient(store_duals=False)):
        tol = 1e-6 if isinstance(solver, mm.Exact) else 3e-2
        model = mm.ProgramSVM(solver=solver, tol=tol, **settings).fit(programs, outputs)
        assert model.solution_.certificate.primal == pytest.approx(wanted.solution_.certificate.primal, rel=1.1 * tol)
        assert not model.solution_.certificate.relaxed
    assert model.score(programs, outputs) == pytest.approx(wanted.score(X, y), abs=0.1)
    ranks = model.k_best(programs, 3)
    assert all(len(found) == 3 for found in ranks)
    assert all(best[0][1] >= best[1][1] >= best[2][1] for best in ranks)


def test_the_structure_class_stands_for_the_estimator():
    X, y = as_programs(*matchings())
    model = mm.StructuredSVM(LinearProgram, C=0.5).fit(X, y)
    np.testing.assert_array_equal(model.coef_, mm.ProgramSVM(C=0.5).fit(X, y).coef_)


def test_a_relaxed_program():
    X, y = odd_cycles(20)
    model = mm.ProgramSVM(relaxed=True, C=1.0, tol=1e-4).fit(X, y)
    certificate = model.solution_.certificate
    assert certificate.relaxed
    assert "relaxed" in str(certificate)
    assert model.model_.metadata["relaxed"] is True
    # The objective by hand: the hinge of the relaxation is the largest over all its vertices.
    vertices = [np.array(v, dtype=float) for v in product((0, 1), repeat=3) if sum(v) <= 1] + [np.full(3, 0.5)]
    hinge = 0.0
    for x, gold in zip(X, y, strict=True):
        scores = x.features @ model.coef_
        hinge += max((1 - 2 * gold) @ v + gold.sum() + scores @ (v - gold) for v in vertices)
    assert certificate.primal == pytest.approx(0.5 * model.coef_ @ model.coef_ + hinge, rel=1e-9)
    even = mm.Program(np.ones((3, 2)) * np.sign(model.coef_), X[0].A, X[0].b)  # all scores equal: fractional vertex
    (predicted,) = model.predict([even])
    assert predicted.dtype == np.int64
    assert predicted.sum() == 1
    assert len(model.k_best([even], 10)[0]) == 4
    assert model.score(X, y) > 0.8


def test_equations_bounds_and_sparse_features():
    rng = np.random.default_rng(0)
    X, y = [], []
    for size in rng.integers(3, 6, size=10):
        features = rng.normal(size=(size, 2))
        z = np.zeros(size)
        z[np.argsort(-features[:, 0])[:2]] = [2, 1]
        X.append(mm.Program(sp.csr_array(features), A_eq=np.ones((1, size)), b_eq=[3], upper=np.full(size, 2.0)))
        y.append(z)
    absolute = mm.losses.Hamming  # linear only for 0/1 outputs: the gold of counts has a loss
    with pytest.raises(ValueError, match="Hamming counts variables that are 0 or 1"):
        mm.ProgramSVM(loss=absolute()).fit(X, y)
    ones = [(z > 0).astype(int) for z in y]
    binary = [replace(x, b_eq=[2], upper=1.0) for x in X]
    model = mm.ProgramSVM(C=10.0).fit(binary, ones)
    assert model.score(binary, ones) > 0.9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": np.full((3, 2), np.nan)}, "example 2: features hold NaN or infinity"),
        ({"features": np.ones((3, 1))}, r"example 2: .*1 columns, expected 2"),
        ({"features": np.ones(3)}, "example 2: features must be a 2-D array"),
        ({"features": np.ones((4, 2))}, "example 2: the constraints have 3 columns but the features have 4 rows"),
        ({"features": np.ones((0, 2))}, "example 2: no parts"),
        ({"A": None}, "example 2: give A and b together"),
        ({"b": None}, "example 2: give A and b together"),
        ({"A_eq": np.ones((1, 3))}, "example 2: give A_eq and b_eq together"),
        ({"A": "A"}, "example 2: A must be a 2-D array"),
        ({"b": [1.0]}, "example 2: b must be 3 finite numbers, one per row of A"),
        ({"b": [-1.0, 1.0, 1.0]}, r"example 2: no z satisfies"),
        ({"upper": [[1], [1, 2]]}, "example 2: upper must be 3 finite numbers"),
        ({"upper": "one"}, "example 2: upper must be"),
        ({"upper": None}, "example 2: upper must be"),
    ],
)
def test_bad_inputs(change, message):
    X, y = odd_cycles()
    model = mm.ProgramSVM(relaxed=True).fit(X, y)
    X[2] = replace(X[2], **change)
    for call in (lambda: clone(model).fit(X, y), lambda: model.predict(X), lambda: model.score(X, y)):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ([1, 1, 0], "example 2: the output breaks a constraint"),
        ([0.5, 0.5, 0.5], "example 2: y must be whole numbers"),
        ([0, 1], "example 2: the output must be 3 finite numbers"),
        (["a", "b", "c"], "example 2: y must be a vector of whole numbers"),
        ([np.nan, 0, 0], "example 2: y must be whole numbers"),
        (None, "example 2: y must be a vector"),
    ],
)
def test_bad_outputs(output, message):
    X, y = odd_cycles()
    model = mm.ProgramSVM(relaxed=True).fit(X, y)
    y[2] = output
    for call in (lambda: clone(model).fit(X, y), lambda: model.score(X, y)):
        with pytest.raises(ValueError, match=message):
            call()


def test_programs_without_constraints():
    X = [mm.Program([[1.0], [-1.0]]), mm.Program([[2.0]])]
    model = mm.ProgramSVM(C=10.0).fit(X, [[1, 0], [1]])
    assert same(model.predict(X), [np.array([1, 0]), np.array([1])])


def test_other_bad_input():
    X, y = odd_cycles()
    with pytest.raises(ValueError, match=r"example 0: X must be a list of mm\.Program"):
        mm.ProgramSVM().fit([x.features for x in X], y)
    with pytest.raises(ValueError, match="relaxed must be True or False"):
        mm.ProgramSVM(relaxed="yes").fit(X, y)
    with pytest.raises(ValueError, match="X is empty"):
        mm.ProgramSVM().fit([], [])


def test_the_example_runs(capsys):
    spec = importlib.util.spec_from_file_location("tripartite_matching", ROOT / "examples" / "tripartite_matching.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    outcome = module.main()
    printed = capsys.readouterr().out
    assert outcome["relative_gap"] <= 1e-3
    assert outcome["score"] > outcome["greedy_score"]
    assert outcome["score"] > 0.7
    assert "of the relaxed objective" in printed
