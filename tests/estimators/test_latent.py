"""Estimators whose gold outputs are known in part, and labels with hidden sub-labels."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from data import (
    PickOne,
    chains,
    charts,
    cuts,
    graphs,
    lattices,
    matchings,
    pairings,
    picks,
    same,
    segmented,
    sentences,
    trees,
)
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.estimators.base import StructuredSVM
from maxmargin.losses import LabelCost
from maxmargin.training import BestGood, train_examples

BASES: dict[str, tuple[Any, Any]] = {
    "chain": (mm.ChainSVM, chains),
    "cut": (mm.CutSVM, cuts),
    "graph": (mm.GraphSVM, graphs),
    "lattice": (mm.LatticeSVM, lattices),
    "matching": (mm.MatchingSVM, matchings),
    "own": (lambda **settings: StructuredSVM(PickOne, **settings), picks),
    "tree": (mm.TreeSVM, trees),
}
OTHERS: dict[str, tuple[Any, Any]] = {
    "dependency": (mm.DependencySVM, sentences),
    "grammar": (mm.GrammarSVM, charts),
    "pairing": (mm.PairingSVM, pairings),
    "segments": (mm.SegmentSVM, segmented),
}
"""Estimators whose partial outputs are :class:`mm.PartialParts` alone."""


def half_known(kind: str, X: list[Any], y: list[Any]) -> list[Any]:
    """The outputs with every second variable unknown."""
    if kind in ("chain", "graph", "tree"):
        return [[None if j % 2 else label for j, label in enumerate(own)] for own in y]
    if kind == "cut":
        return [[None if j % 2 else label for j, label in enumerate(own.tolist())] for own in y]
    if kind == "matching":
        return [mm.PartialLinks(own[:1], absent=own[1:, ::-1][:0]) for own in y]
    if kind == "own":
        return [
            mm.PartialParts([0 if j == (label + 1) % len(x) else None for j in range(len(x))])
            for x, label in zip(X, y, strict=True)
        ]
    return [
        mm.PartialParts([1 if j == path[0] else None for j in range(len(x.edges))])
        for x, path in zip(X, y, strict=True)
    ]


@pytest.mark.parametrize("kind", {**BASES, **OTHERS})
def test_whole_outputs_train_as_the_base_does(kind: str) -> None:
    estimator, data = {**BASES, **OTHERS}[kind]
    X, y = data()
    base = estimator(C=1.0, tol=1e-3, random_state=0)
    plain = clone(base).fit(X, y)
    for formulation in ("best", "mean"):
        latent = mm.LatentSVM(base, formulation=formulation).fit(X, y)
        if kind == "graph":  # completions of a relaxation
            assert latent.objectives_[-1] == pytest.approx(plain.solution_.certificate.primal, rel=1e-2)
            continue
        np.testing.assert_array_equal(latent.coef_, plain.coef_)
        assert same(latent.predict(X), plain.predict(X))
        assert latent.settled_
        assert latent.objectives_ == (plain.solution_.certificate.primal,)
        assert latent.score(X, y) == plain.score(X, y)


@pytest.mark.parametrize("kind", BASES)
def test_partial_outputs_lower_the_objective_and_are_completed(kind: str) -> None:
    estimator, data = BASES[kind]
    X, y = data()
    known = half_known(kind, X, y)
    base = estimator(C=3.0, tol=1e-4, random_state=0)
    relaxed = mm.LatentSVM(base, formulation="mean").fit(X, known)
    assert len(relaxed.objectives_) == 1
    latent = mm.LatentSVM(base, rounds=8).fit(X, known)
    assert (np.diff(latent.objectives_) <= 0.0).all()
    # The relaxed hinge is nowhere below the latent one: that of a round which takes its best completions.
    examples = mm.LatentSVM(base)._examples(X, known, None, None).completed(relaxed.coef_)
    touching = examples.problem(relaxed._settings(), 3.0)
    assert touching.objective(relaxed.coef_) <= relaxed.objectives_[0] * (1.0 + 1e-9)
    completed = latent.complete(X, known)
    assert len(completed) == len(X)
    if kind == "matching":
        assert all(tuple(own[0]) in set(map(tuple, found.tolist())) for own, found in zip(y, completed, strict=True))
    elif kind == "lattice":
        assert all(own[0] in found for own, found in zip(y, completed, strict=True))
    elif kind != "own":
        pairs = [pair for a, b in zip(known, completed, strict=True) for pair in zip(a, b, strict=True)]
        assert all(found == own for own, found in pairs if own is not None)
    with mm.threads(3):
        again = mm.LatentSVM(base, rounds=8).fit(X, known)
    np.testing.assert_array_equal(again.coef_, latent.coef_)


def test_sets_of_labels_and_unknown_ones() -> None:
    X, y = chains(30, seed=1)
    known = [
        [{label, "c"} if j % 3 == 1 else None if j % 3 == 2 else label for j, label in enumerate(own)] for own in y
    ]
    for formulation, least in (("best", 0.85), ("mean", 0.7)):
        model = mm.LatentSVM(mm.ChainSVM(C=1.0), formulation=formulation).fit(X, known)
        assert model.classes_ == ("a", "b", "c")
        assert model.score(X, y) > least
    found = model.complete(X, known)
    assert all(
        own is None or label == own or label in own
        for a, b in zip(known, found, strict=True)
        for own, label in zip(a, b, strict=True)
    )
    named = mm.LatentSVM(mm.ChainSVM(C=1.0, classes=list("zabc"))).fit(
        X, [[None] * len(own) for own in y[:2]] + known[2:]
    )
    assert named.classes_ == tuple("zabc")


def test_possible_and_absent_links() -> None:
    X, y = matchings(12, seed=2)
    possible = [mm.PartialLinks(own[:1], possible=own[1:]) for own in y]
    model = mm.LatentSVM(mm.MatchingSVM(C=3.0, tol=1e-4)).fit(X, possible)
    allowed = [set(map(tuple, own.tolist())) for own in y]
    for own, links in zip(allowed, model.complete(X, possible), strict=True):
        assert set(map(tuple, links.tolist())) <= own
    whole = mm.LatentSVM(mm.MatchingSVM(C=3.0, tol=1e-4)).fit(X, [mm.PartialLinks(own, possible=[]) for own in y])
    plain = mm.MatchingSVM(C=3.0, tol=1e-4).fit(X, y)
    np.testing.assert_array_equal(whole.coef_, plain.coef_)
    absent = [mm.PartialLinks(own, absent=np.zeros((0, 2), dtype=int)) for own in y]
    assert len(mm.LatentSVM(mm.MatchingSVM(C=3.0)).fit(X, absent).objectives_) >= 1


def bumps(n: int = 40, *, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Sequences of ``in`` at 0 and ``out`` at -1 or 1, which no line tells apart."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        out = rng.random(5) < 0.5
        x = np.where(out, rng.choice([-1.0, 1.0], size=5), 0.0) + 0.15 * rng.standard_normal(5)
        X.append(np.stack([x, np.ones(5)], axis=1))
        y.append(["out" if one else "in" for one in out])
    return X, y


def test_sublabels_learn_what_labels_cannot() -> None:
    X, y = bumps()
    test = bumps(20, seed=9)
    base = mm.ChainSVM(C=10.0, random_state=0)
    plain, latent = clone(base).fit(X, y), mm.LatentSVM(base, n_sublabels=2).fit(X, y)
    assert plain.score(*test) < 0.8
    assert latent.score(*test) > 0.95
    assert latent.classes_ == ("in", "out")
    assert (np.diff(latent.objectives_) <= 0.0).all()
    assert len(latent.coef_) == 2 * 4 + 16
    pairs = latent.predict_sublabels(test[0])
    assert [[label for label, _ in own] for own in pairs] == latent.predict(test[0])
    assert {number for own in pairs for label, number in own if label == "out"} == {0, 1}
    again = mm.LatentSVM(base, n_sublabels=2).fit(X, y)
    np.testing.assert_array_equal(again.coef_, latent.coef_)
    # Labels that are unknown or one of several, too.
    known = [[None if j == 0 else {"in", "out"} if j == 1 else label for j, label in enumerate(own)] for own in y]
    assert mm.LatentSVM(base, n_sublabels=2).fit(X, known).score(*test) > 0.9


@pytest.mark.parametrize("kind", ["tree", "graph", "second order", "kernel"])
def test_sublabels_of_other_bases(kind: str) -> None:
    X, y = bumps(12)
    base: StructuredSVM
    if kind in ("tree", "graph"):
        base = (mm.TreeSVM if kind == "tree" else mm.GraphSVM)(C=10.0, random_state=0)
        X = [mm.Graph(x, [(0, 1), (1, 2), (1, 3), (3, 4)]) for x in X]
        if kind == "tree":
            X[0] = mm.Graph(X[0].node_features, X[0].edges, labels=[[label] for label in y[0]])
    else:
        settings = {"order": 2} if kind == "second order" else {"features": mm.features.Kernel("linear")}
        base = mm.ChainSVM(C=10.0, random_state=0, **settings)
    model = mm.LatentSVM(base, n_sublabels=2, rounds=3).fit(X, y)
    assert model.score(X, y) > 0.9
    if kind == "tree":
        assert model.predict(X)[0] == y[0]


def test_k_best_lists_labels_once() -> None:
    X, y = bumps(8)
    model = mm.LatentSVM(mm.ChainSVM(C=1.0, random_state=0), n_sublabels=2, rounds=1).fit(X, y)
    short = [x[:3] for x in X[:2]]
    batch = model.model_.encoder.transform(short)
    scores, structure = batch.features.scores(model.coef_), batch.structure
    for i, found in enumerate(model.k_best(short, 9)):
        one, own = structure.select([i]), scores[structure.parts_of([i])]
        best: dict[tuple[str, ...], float] = {}
        for states in itertools.product(range(4), repeat=3):
            labels = tuple(("in", "out")[state // 2] for state in states)
            value = float(own @ np.asarray(one.encode([np.array(states)])))
            best[labels] = max(best.get(labels, -np.inf), value)
        assert len(found) == 8
        assert [tuple(labels) for labels, _ in found] == sorted(best, key=lambda labels: -best[labels])
        np.testing.assert_allclose([value for _, value in found], sorted(best.values(), reverse=True), atol=1e-9)


def test_saved_models(tmp_path: Any) -> None:
    X, y = bumps(8)
    for k, kind in ((1, "chain"), (2, "sublabels")):
        model = mm.LatentSVM(mm.ChainSVM(C=1.0, random_state=0), n_sublabels=k, rounds=2).fit(X, y)
        model.save(tmp_path / "model.mm")
        loaded = mm.load(tmp_path / "model.mm")
        assert loaded.predict(X) == model.predict(X)
        assert loaded.classes_ == model.classes_
        assert loaded.score(X, y) == model.score(X, y)
        assert loaded.describe()["kind"] == kind
        assert loaded.metadata["estimator"] == "LatentSVM"
        copied = pickle.loads(pickle.dumps(model))
        assert copied.predict(X) == model.predict(X)


def test_settings_and_scikit_learn() -> None:
    X, y = bumps(10)
    base = mm.ChainSVM(C=[0.1, 10.0], loss=LabelCost([[0.0, 1.0], [2.0, 0.0]]), random_state=0)
    model = clone(mm.LatentSVM(base, n_sublabels=2, rounds=2))
    assert model.get_params()["base__C"] == [0.1, 10.0]
    model.fit(X, y, sample_weight=np.ones(10), loss_weight=[np.ones(5)] * 10, dev=bumps(6, seed=3))
    assert len(model.choices_) == 2
    assert len(model.dev_scores_) > 0
    quadratic = mm.ChainSVM(C=1.0, rescaling="slack", slack="quadratic")
    found = mm.LatentSVM(quadratic, rounds=4).fit(X, [[None, *own[1:]] for own in y])
    assert (np.diff(found.objectives_) <= 0.0).all()
    warm = mm.LatentSVM(mm.ChainSVM(C=1.0, warm_start=True)).fit(X, y).fit(X, y)
    assert warm.n_jobs is None


def test_runs_that_are_resumed_match(tmp_path: Any) -> None:
    X, y = bumps(10)
    known = [[None, *own[1:]] for own in y]
    base = mm.ChainSVM(C=1.0, tol=1e-4, random_state=0)
    plain = mm.LatentSVM(base, rounds=3).fit(X, known)
    path = tmp_path / "run.checkpoint"
    base.set_params(checkpoint=path, max_iter=2)
    with pytest.warns(ConvergenceWarning):
        mm.LatentSVM(base, rounds=1).fit(X, known)
    assert path.exists()
    resumed = mm.LatentSVM(base.set_params(max_iter=None), rounds=3).fit(X, known)
    np.testing.assert_array_equal(resumed.coef_, plain.coef_)
    assert resumed.objectives_ == plain.objectives_
    assert not path.exists()


def test_parts_of_trees_and_pairings() -> None:
    rng = np.random.default_rng(0)
    right = np.isin(np.arange(9), (0, 4, 7))[:, None] * [3.0, 0.0, 0.0]  # rows of the arcs below
    sentences = [mm.Sentence(right + 0.3 * rng.normal(size=(9, 3))) for _ in range(4)]
    heads = [np.array([0, 1, 1])] * 4
    arcs = [mm.PartialParts([1, *[None] * 8])] * 2  # the first token is the root's
    model = mm.LatentSVM(mm.DependencySVM(C=1.0)).fit(sentences, arcs + heads[2:])
    assert (np.diff(model.objectives_) <= 0.0).all()
    assert model.complete(sentences[:1], arcs[:1])[0][0] == 0
    near = np.kron(np.eye(2), [[0.0, 1.0], [1.0, 0.0]])[:, :, None] * [3.0, 0.0]
    graphs = [near + 0.3 * np.ones((4, 4, 1)) * rng.normal(size=2) for _ in range(4)]
    known = [mm.PartialParts([1, *[None] * 5])] * 4
    pairing = mm.LatentSVM(mm.PairingSVM(C=1.0)).fit(graphs, known)
    assert (np.diff(pairing.objectives_) <= 0.0).all()
    assert all([0, 1] in found.tolist() for found in pairing.complete(graphs, known))


class Impatient(BestGood):
    """Believes that the second round began with an objective of 0, which it cannot reach."""

    def begin(self, examples: Any, problem: Any, previous: Any) -> Any:
        found = super().begin(examples, problem, previous)
        self._begun = np.inf if previous is None else 0.0
        return found


def test_rounds_that_raise_the_objective_are_dropped() -> None:
    X, y = chains(10, seed=4)
    known = half_known("chain", X, y)
    model = mm.LatentSVM(mm.ChainSVM(C=1.0, random_state=0))
    examples, hooks = model._examples(X, known, None, None), Impatient(5)
    trained = train_examples(examples, model._settings(), hooks=hooks)
    first = mm.LatentSVM(mm.ChainSVM(C=1.0, random_state=0), rounds=1).fit(X, known)
    np.testing.assert_array_equal(trained.weights, first.coef_)
    assert tuple(hooks.objectives) == first.objectives_
    assert hooks.settled
    assert not first.settled_
    assert hooks.done == 2


def test_bad_input() -> None:
    X, y = bumps(3)
    chain = mm.ChainSVM(C=1.0)

    def refused(match: str, model: Any, *data: Any, **more: Any) -> None:
        with pytest.raises(ValueError, match=match):
            model.fit(*(data or (X, y)), **more)

    refused("base must be an estimator", mm.LatentSVM())
    refused("base must be an estimator", mm.LatentSVM(mm.LatentSVM(chain)))
    refused("base must be an estimator", mm.LatentSVM(mm.ChainSVM))
    refused("CandidatesSVM has lists of good candidates", mm.LatentSVM(mm.CandidatesSVM()), *picks())
    refused("n_sublabels", mm.LatentSVM(chain, n_sublabels=0))
    refused("rounds", mm.LatentSVM(chain, rounds=0))
    refused("formulation", mm.LatentSVM(chain, formulation="all"))
    refused("on average the sub-labels", mm.LatentSVM(chain, n_sublabels=2, formulation="mean"))
    refused("MatchingSVM does not have", mm.LatentSVM(mm.MatchingSVM(), n_sublabels=2), *matchings())
    refused("rewards equal labels", mm.LatentSVM(mm.AssociativeSVM(), n_sublabels=2), *graphs())
    refused('rescaling="none" needs', mm.LatentSVM(mm.ChainSVM(rescaling="none")))
    refused("depend on what is hidden", mm.LatentSVM(chain), costs=[np.zeros((5, 2))] * 3)
    refused("all labels are unknown", mm.LatentSVM(chain), X, [[None] * 5] * 3)
    refused("example 1: an empty set", mm.LatentSVM(chain), X, [y[0], [set(), *y[1][1:]], y[2]])
    refused("example 2: 4 labels for 5 positions", mm.LatentSVM(chain), X, [y[0], y[1], y[2][1:]])
    refused(
        "example 1: label 'new' was not seen",
        mm.LatentSVM(mm.ChainSVM(classes=["in", "out"])),
        X,
        [y[0], [{"in", "new"}] * 5, y[2]],
    )
    refused("X has 3 examples but y has 2", mm.LatentSVM(chain), X, y[:2])
    refused("y is missing", mm.LatentSVM(chain), X)
    refused("example 0: y", mm.LatentSVM(chain), X, [3, 4, 5])
    refused("labels must be hashable", mm.LatentSVM(chain), X, [[[1]] * 5] * 3)
    graph = mm.LatentSVM(mm.CutSVM())
    refused("example 0: give a list or 1-D array with 0, 1, or None", graph, *cuts(1)[:1], [[2, 0, 1, 1]])
    links, gold = matchings(2)
    refused(
        "needs either the possible links or the absent",
        mm.LatentSVM(mm.MatchingSVM()),
        links,
        [mm.PartialLinks(own) for own in gold],
    )
    refused(
        "example 1: pair .* is not an edge",
        mm.LatentSVM(mm.MatchingSVM()),
        links,
        [gold[0], mm.PartialLinks(gold[1], possible=[(99, 0)])],
    )
    refused(
        "example 1: pair .* is not an edge",
        mm.LatentSVM(mm.MatchingSVM()),
        links,
        [mm.PartialParts([None] * links[0][..., 0].size), [(99, 0)]],
    )
    refused("got 1 entries", mm.LatentSVM(mm.MatchingSVM()), links, [mm.PartialParts([1]), gold[1]])
    refused("1, 0, or None", mm.LatentSVM(mm.MatchingSVM()), links, [mm.PartialParts("ab"), gold[1]])
    with pytest.raises(ValueError, match="trains in memory"):
        mm.LatentSVM(chain).build_dataset("folder", (X, y))
    model = mm.LatentSVM(chain).fit(X, y)
    with pytest.raises(ValueError, match="no sub-labels"):
        model.predict_sublabels(X)
    with pytest.raises(ValueError, match="example 0: label 'new' was not seen"):
        model.complete(X, [["new"] * 5, *y[1:]])
    assert isinstance(mm.LatentSVM(chain)._hooks(), BestGood)


def test_outputs_known_in_part_alone_and_links_named_twice() -> None:
    X, y = sentences(2)
    unknown = [mm.PartialParts([1 if j == 0 else None for j in range(len(x))]) for x in X]
    model = mm.LatentSVM(mm.DependencySVM()).fit(X, unknown)
    assert [len(heads) for heads in model.predict(X)] == [len(heads) for heads in y]
    X, y = matchings(2)
    with pytest.raises(ValueError, match="example 1: a link is both there and absent; name it once"):
        mm.LatentSVM(mm.MatchingSVM()).fit(X, [y[0], mm.PartialLinks(y[1], absent=y[1][:1])])
