"""The generalization bound of 2009 (Theorem 6.2, Corollary 6.3), against its formula and against enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from data import chains, cuts, graphs, matchings
from oracles.enumeration import vertices
from problems import make

import maxmargin as mm
from maxmargin.generalization import bound_of
from maxmargin.problem import Problem
from maxmargin.regions import L1

C = 20.0
L1_NONE = {"norm": "l1", "rescaling": "none"}


def formula(c: float, gamma: float, b: float, d: int, m: int, S: float, eta: float) -> float:
    """Theorem 6.2 with Corollary 6.3 in it, as printed."""

    def log2_cover(l: float, radius: float) -> float:
        steps = math.ceil(4 * c * b / radius + 2)
        return 36 * c**2 * b**2 * (1 + math.log(d + m)) / radius**2 * math.log2(2 * steps * l + 1)

    return 2 / S * (log2_cover(2 * S, gamma / 2) + math.log2(2 / eta))


@pytest.mark.parametrize("S", [3.0, 1e4, 1e80])
@pytest.mark.parametrize(("c", "gamma", "b"), [(0.01, 1.0, 0.5), (7.0, 0.3, 2.0), (900.0, 1.0, 30.0)])
def test_the_formula(c: float, gamma: float, b: float, S: float) -> None:
    found = bound_of(c / gamma, b, 50, 20, math.log(S), 0.1)
    expected = formula(c, gamma, b, 50, 20, S, 0.1)
    assert found.error == pytest.approx(expected, rel=1e-9)
    assert found.over_examples == pytest.approx(expected * S / 20, rel=1e-9)
    assert found.vacuous == (expected >= 1.0)
    assert ("vacuous" in str(found)) == (expected >= 1.0 or found.over_examples >= 1.0)


def by_enumeration(problem: Problem, weights: np.ndarray, C: float, gamma: float) -> tuple[float, float, float]:
    """The norm c, a lower bound of b and the number of triples, from all outputs."""
    matrix, slacks, largest, triples = problem.features.to_sparse(), 0.0, 1.0 / C, 0
    for i, outputs in enumerate(vertices(problem.structure)):
        parts = problem.structure.parts_of([i])
        gold = problem.gold[parts]
        wrong = outputs[np.abs(outputs - gold).sum(axis=1) > 0]
        differences = (gold - wrong) @ matrix[parts]
        triples += len(wrong)
        if len(wrong):
            slacks += max(0.0, gamma - float((differences @ weights).min()))
            largest = max(largest, float(np.abs(differences).max()))
    return float(np.abs(weights).sum()) + C * slacks, largest, triples


@pytest.mark.parametrize("gamma", [1.0, 0.25])
@pytest.mark.parametrize(
    ("estimator", "data"),
    [(mm.ChainSVM, chains(5)), (mm.CutSVM, cuts(4)), (mm.AssociativeSVM, graphs(3, labels=("x", "y")))],
    ids=["chain", "cut", "associative"],
)
def test_the_numbers_of_a_model(estimator: type, data: tuple[list, list], gamma: float) -> None:
    X, y = data
    model = estimator(C=C, **L1_NONE, tol=0.05).fit(X, y)
    found = mm.generalization_bound(model, X, y, gamma=gamma, eta=0.01)
    _, batch, gold = model.model_.encoder.fit(X, y)
    problem = Problem.build(batch.structure, batch.features, gold, mm.losses.Hamming(), L1(C=C), rescaling="none")
    c, b, triples = by_enumeration(problem, model.coef_, C, gamma)
    assert found.norm * gamma == pytest.approx(c)
    assert found.largest >= b - 1e-12
    assert math.exp(found.log_triples) == pytest.approx(triples)
    assert (found.dimension, found.n_examples, found.eta) == (2 * len(model.coef_), len(X), 0.01)
    assert found.error == pytest.approx(
        formula(c, gamma, found.largest, found.dimension, len(X), triples, 0.01), rel=1e-9
    )
    exact = mm.generalization_bound(model.model_, X, y, gamma=gamma, largest=b, nonnegative=True)
    assert exact.largest == b
    assert exact.dimension == len(model.coef_)
    assert exact.log2_error <= found.log2_error + math.log2(math.log2(2 / 0.05) + 1)


def test_the_linear_program_has_the_smallest_norm() -> None:
    X, y = chains(8)
    bounds = {
        name: mm.generalization_bound(mm.ChainSVM(C=1.0, tol=1e-4, **settings).fit(X, y), X, y).norm
        for name, settings in {"program": L1_NONE, "l1": {"norm": "l1"}, "ridge": {}}.items()
    }
    assert min(bounds, key=bounds.__getitem__) == "program"


def test_several_good_candidates() -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 3)) for _ in range(6)]
    y = [[0, 2], [1], [0, 1, 2], [4], [3], [0, 1, 2, 3, 4]]
    for x, good in zip(X, y, strict=True):
        x[good, 0] += 3.0
    model = mm.CandidatesSVM(C=C, formulation="all", **L1_NONE).fit(X, y)
    found = mm.generalization_bound(model, X, y)
    assert math.exp(found.log_triples) == pytest.approx(2 * 3 + 4 + 3 * 2 + 4 + 4 + 0)
    scores = [x @ model.coef_ for x in X]
    slacks = [max(0.0, 1.0 + np.delete(s, g).max(initial=-np.inf) - s[g].min()) for s, g in zip(scores, y, strict=True)]
    assert found.norm == pytest.approx(np.abs(model.coef_).sum() + C * sum(slacks))


@pytest.mark.parametrize(
    "kind", ["candidates", "chain", "second-order", "tree", "junction", "cut", "associative", "graph"]
)
def test_numbers_of_outputs(kind: str) -> None:
    structure = make(kind, n=4).structure
    np.testing.assert_allclose(np.exp(structure.log_outputs()), [len(rows) for rows in vertices(structure)])


def test_what_is_refused() -> None:
    X, y = matchings(4)
    model = mm.MatchingSVM(C=1.0, **L1_NONE).fit(X, y)
    with pytest.raises(ValueError, match="the number of outputs of a matching is not known; give it"):
        mm.generalization_bound(model, X, y)
    found = mm.generalization_bound(model, X, y, log_outputs=np.full(4, math.log(13.0)))
    assert math.exp(found.log_triples) == pytest.approx(4 * 12)
    with pytest.raises(ValueError, match=r"log_outputs must have shape \(4,\)"):
        mm.generalization_bound(model, X, y, log_outputs=[1.0])
    with pytest.raises(ValueError, match="no example has a wrong output"):
        mm.generalization_bound(model, X, y, log_outputs=np.zeros(4))
    with pytest.raises(ValueError, match="which C it was trained with; give C"):
        mm.generalization_bound(mm.Model(model.coef_, model.model_.encoder), X, y)
    kernel = mm.MatchingSVM(C=1.0, features=mm.features.Kernel("rbf")).fit(X, y)
    with pytest.raises(ValueError, match="sums of absolute weights"):
        mm.generalization_bound(kernel, X, y)
    for bad in ({"C": np.inf}, {"gamma": 0.0}, {"eta": 1.0}, {"largest": -1.0}, {"nonnegative": 1}):
        with pytest.raises(ValueError, match=f"^{next(iter(bad))} must be"):
            mm.generalization_bound(model, X, y, **bad, log_outputs=np.ones(4))
