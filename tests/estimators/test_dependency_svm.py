"""DependencySVM: what it learns, forms of inputs and outputs, constraints on arcs, files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from data import same, sentences

import maxmargin as mm
from maxmargin.structures import ProjectiveTrees

LABELS = ("det", "obj", "subj")


def arcs_of(n: int) -> np.ndarray:
    """All arcs in the order of rows."""
    return np.array([(h, m) for m in range(1, n + 1) for h in range(n + 1) if h != m])


def test_learns_heads_and_labels() -> None:
    X, y = sentences(40, labels=LABELS)
    model = mm.DependencySVM(C=1.0, tol=1e-2).fit(X, y)
    assert model.classes_ == LABELS
    assert model.coef_.shape == (6 + 6 * 3,)
    unseen, gold = sentences(30, seed=1, labels=LABELS)
    found = model.predict(unseen)
    right = [(h == g) & (np.array(a) == np.array(b)) for (h, a), (g, b) in zip(found, gold, strict=True)]
    assert model.score(unseen, gold) == np.concatenate(right).mean() > 0.85
    heads_alone = mm.DependencySVM(C=1.0, tol=1e-2).fit(X, [heads for heads, _ in y])
    assert heads_alone.score(unseen, [heads for heads, _ in gold]) > 0.85
    assert all(isinstance(heads, np.ndarray) for heads in heads_alone.predict(unseen))


def test_one_label_is_as_good_as_none() -> None:
    X, y = sentences(10)
    bare = mm.DependencySVM(C=1.0).fit(X, y)
    named = mm.DependencySVM(C=1.0).fit(X, [(heads, ["dep"] * len(heads)) for heads in y])
    np.testing.assert_array_equal(bare.coef_, named.coef_)
    for heads, (others, labels) in zip(bare.predict(X), named.predict(X), strict=True):
        np.testing.assert_array_equal(heads, others)
        assert labels == ["dep"] * len(heads)


def test_listed_arcs_in_any_order_are_as_all_arcs() -> None:
    X, y = sentences(8, labels=LABELS)
    rng = np.random.default_rng(0)
    listed = []
    for x, (heads, _) in zip(X, y, strict=True):
        order = rng.permutation(len(x))
        listed.append(mm.Sentence(x[order], arcs_of(len(heads))[order]))
    model = mm.DependencySVM(C=0.5).fit(X, y)
    again = mm.DependencySVM(C=0.5).fit(listed, y)
    np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-9)
    assert same(model.predict(X), again.predict(listed))
    assert same(model.predict(X), model.predict(listed))


def test_forbidden_and_forced_arcs() -> None:
    X, y = sentences(12, tokens=6)
    model = mm.DependencySVM(C=1.0).fit(X, y)
    for x, free in zip(X, model.predict(X), strict=True):
        n = len(free)
        token = n
        other = next(h for h in range(n + 1) if h not in (token, free[token - 1]))
        forced = model.predict([mm.Sentence(x, forced=[(other, token)])])[0]
        assert forced[token - 1] == other
        without = model.predict([mm.Sentence(x, forbidden=[(int(free[token - 1]), token)])])[0]
        assert without[token - 1] != free[token - 1]
        ranks = model.k_best([x], 50)[0]
        assert next(tree for tree, _ in ranks if tree[token - 1] == other).tolist() == forced.tolist()
        assert next(tree for tree, _ in ranks if tree[token - 1] != free[token - 1]).tolist() == without.tolist()


def crossing(heads: np.ndarray) -> bool:
    """Whether two arcs cross."""
    spans = [sorted((int(head), token)) for token, head in enumerate(heads, start=1)]
    return any(a < c < b < d for a, b in spans for c, d in spans)


@pytest.mark.parametrize("single_root", [True, False])
def test_trees_whose_arcs_cross(single_root: bool) -> None:
    X, y = sentences(40, labels=LABELS, tokens=8, projective=False)
    assert np.mean([crossing(heads) for heads, _ in y]) > 0.3
    model = mm.DependencySVM(projective=False, single_root=single_root, C=1.0, tol=1e-2).fit(X, y)
    assert model.solution_.certificate.gap < 1e-2 * model.solution_.certificate.primal
    unseen, gold = sentences(40, seed=1, labels=LABELS, tokens=8, projective=False)
    found = model.predict(unseen)
    assert any(crossing(heads) for heads, _ in found)
    assert not single_root or all((heads == 0).sum() == 1 for heads, _ in found)
    assert model.score(unseen, gold) > 0.8
    ranks = model.k_best(unseen[:3], 4)
    assert same([own[0][0] for own in ranks], found[:3])
    assert all(own[0][1] >= own[1][1] >= own[2][1] for own in ranks)
    with pytest.raises(ValueError, match="crosses another; use non-projective trees"):
        mm.DependencySVM().fit(X, y)


@pytest.mark.parametrize(
    "settings",
    [
        {"rescaling": "slack"},
        {"solver": mm.Mira(k=3)},
        {"solver": mm.BlockFrankWolfe()},
        {"solver": mm.DualExtragradient(geometry=mm.Entropic())},
        {"solver": mm.DualExtragradient()},
        {"solver": mm.Exact()},
    ],
)
def test_solvers_on_trees_whose_arcs_cross(settings: dict[str, Any]) -> None:
    X, y = sentences(8, projective=False)
    assert mm.DependencySVM(projective=False, C=1.0, tol=1e-1, **settings).fit(X, y).score(X, y) > 0.7


def test_forced_and_forbidden_arcs_that_cross() -> None:
    X, y = sentences(8, tokens=6, projective=False)
    model = mm.DependencySVM(projective=False, C=1.0).fit(X, y)
    for x, free in zip(X, model.predict(X), strict=True):
        token = len(free)
        other = next(h for h in range(token) if h != free[-1])
        forced = model.predict([mm.Sentence(x, forced=[(other, token)])])[0]
        without = model.predict([mm.Sentence(x, forbidden=[(int(free[-1]), token)])])[0]
        ranks = [tree.tolist() for tree, _ in model.k_best([x], 200)[0]]
        assert next(tree for tree in ranks if tree[-1] == other) == forced.tolist()
        assert next(tree for tree in ranks if tree[-1] != free[-1]) == without.tolist()


def test_second_order_learns_what_arcs_do_not_show() -> None:
    """Some sentences are chains, in others all tokens are below the root: a feature of first modifiers says which."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for n in rng.integers(3, 6, size=12).tolist():
        arcs = arcs_of(n)
        siblings = [(h, s, m) for h, m in arcs for s in range(h, m) if h < m] + [(h, h, m) for h, m in arcs if h > m]
        chain = len(X) % 2 == 0
        first = np.array([[float(h == s) * (1 if chain else -1)] for h, s, m in siblings])
        X.append(mm.Sentence((arcs[:, :1] < arcs[:, 1:]).astype(float), None, first, siblings))
        y.append(np.arange(n) if chain else np.zeros(n, dtype=int))
    model = mm.DependencySVM(order=2, single_root=False, C=10.0).fit(X, y)
    plain = [x.features for x in X]
    assert model.score(X, y) == 1.0
    assert mm.DependencySVM(single_root=False, C=10.0).fit(plain, y).score(plain, y) < 0.9
    assert model.coef_[1] > 0.0


def test_unlisted_triples_score_nothing() -> None:
    X, y = sentences(6, second=True)
    model = mm.DependencySVM(order=2, C=1.0).fit(X, y)
    assert model.coef_.shape == (3 + 1 + 2,)
    x = replace(
        X[0], siblings=[], sibling_features=np.zeros((0, 1)), grandparents=[], grandparent_features=np.zeros((0, 2))
    )
    best = ProjectiveTrees.dense([len(y[0])])
    heads = best.decode(best.argmax(X[0].features @ model.coef_[:3]).z)[0]
    np.testing.assert_array_equal(model.predict([x])[0], heads)


@pytest.mark.parametrize("labels", [(), LABELS])
def test_kernels_match_explicit_features(labels: tuple[str, ...]) -> None:
    X, y = sentences(6, labels=labels)
    linear = mm.DependencySVM(C=0.5, tol=1e-6).fit(X, y)
    kernel = mm.DependencySVM(C=0.5, tol=1e-6, features=mm.features.Kernel("linear")).fit(X, y)
    unseen, _ = sentences(5, seed=3, labels=labels)
    assert same(linear.predict(unseen), kernel.predict(unseen))
    again = mm.DependencySVM(C=0.5, tol=1e-6, features=mm.features.Kernel("linear"), warm_start=True).fit(X, y)
    assert same(again.fit(X, y).predict(unseen), kernel.predict(unseen))


def test_saved_and_loaded(tmp_path: Any) -> None:
    for X, y, settings in (
        (*sentences(5, labels=LABELS), {"single_root": False}),
        (*sentences(5, second=True), {"order": 2}),
    ):
        model = mm.DependencySVM(C=1.0, **settings).fit(X, y)
        model.save(tmp_path / "trees.mm")
        again = mm.load(tmp_path / "trees.mm")
        assert same(again.predict(X), model.predict(X))


def test_rescaling_marginals_and_online_training() -> None:
    X, y = sentences(8, labels=LABELS[:2])
    for settings in (
        {"rescaling": "slack"},
        {"solver": mm.Mira()},
        {"solver": mm.DualExtragradient(geometry=mm.Entropic())},
    ):
        assert mm.DependencySVM(C=1.0, tol=1e-1, **settings).fit(X, y).score(X, y) > 0.7


X, Y = sentences(3)
N = len(Y[1])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((N * N + 1, 3)), "rows of features are not those of all arcs"),
        (mm.Sentence(np.zeros((2, 3)), [(0, 1)]), "1 arcs but 2 rows of features"),
        (mm.Sentence(np.zeros((2, 3)), [(0, 1), (0, 1)]), r"arc \(0, 1\) is listed twice"),
        (mm.Sentence(np.zeros((2, 3)), [(0, 1), (3, 2)]), r"arc \(3, 2\) is out of range"),
        (mm.Sentence(np.zeros((2, 3)), [(0, 1), (1, 3)]), "token 2 has no candidate head"),
        (mm.Sentence(X[1], forced=[(N + 1, 1)]), "forced arc .* is not a candidate"),
        (mm.Sentence(X[1], forced=[(0, 2), (1, 2)]), "two arcs to one token are forced"),
        (
            mm.Sentence(X[1], forced=[(1, 2), (2, 1)]),
            "its candidate arcs do not contain a projective tree with one root",
        ),
        (mm.Sentence(X[1], siblings=[(0, 0, 1)]), "siblings without sibling_features"),
        (np.zeros((0, 3)), "a sentence without arcs has no tree"),
    ],
)
def test_sentences_that_are_refused(x: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"example 1: .*{message}"):
        mm.DependencySVM().fit([X[0], x, X[2]], Y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y[1][:-1], "heads for"),
        (np.zeros(N, dtype=int), "token 2 is a second one below the root"),
        ((Y[1], ["a"] * N), "example 1: y holds heads and labels, but example 0 has heads"),
        ((Y[1], ["a"] * (N - 1)), "example 1: y holds heads and labels"),
        ("text", "heads, a vector of integers"),
        (np.zeros((3, 3), dtype=int), "got shape"),
    ],
)
def test_trees_that_are_refused(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mm.DependencySVM().fit(X, [Y[0], y, Y[2]])


def test_settings_that_are_refused() -> None:
    second, heads = sentences(3, second=True)
    with pytest.raises(ValueError, match="order must be 1 or 2"):
        mm.DependencySVM(order=3).fit(X, Y)
    with pytest.raises(ValueError, match="NP-hard"):
        mm.DependencySVM(order=2, projective=False).fit(X, Y)
    with pytest.raises(ValueError, match="order=2 needs features of second order"):
        mm.DependencySVM(order=2).fit(X, Y)
    with pytest.raises(ValueError, match="sibling_features need order=2"):
        mm.DependencySVM().fit(second, heads)
    with pytest.raises(ValueError, match="no grandparent_features, but other sentences have them"):
        mm.DependencySVM(order=2).fit(
            [second[0], replace(second[1], grandparents=None, grandparent_features=None)], heads[:2]
        )
    with pytest.raises(ValueError, match="classes were given, but y has no labels"):
        mm.DependencySVM(classes=["a", "b"]).fit(X, Y)
    model = mm.DependencySVM(order=2).fit(second, heads)
    with pytest.raises(ValueError, match="example 0: no sibling_features, other than in training"):
        model.predict([x.features for x in second])
