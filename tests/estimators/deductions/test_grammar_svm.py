"""GrammarSVM: trees in and out, learning spans and derivations, refused input."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from data import charts

import maxmargin as mm
from maxmargin.encoders.deductions.bracketed import nodes_of, tree_of

WORDS = {"(": 0, ")": 1, "+": 2, "*": 3, "x": 4}


def expression(rng, depth):
    """A sum of products of names and sums in parentheses, as a tree and as a derivation."""
    if depth == 0 or rng.random() < 0.3:
        return "x", ("F", ("N", "x"))
    inner, below = total(rng, depth - 1)
    return ("P", "(", inner, ")"), ("F", ("L", "("), ("Q", below, ("R", ")")))


def product(rng, depth):
    tree, rules = expression(rng, depth)
    rules = ("T", rules)
    while rng.random() < 0.3:
        other, below = expression(rng, depth)
        tree, rules = ("T", tree, "*", other), ("T", rules, ("M", ("O*", "*"), below))
    return tree, rules


def total(rng, depth):
    tree, rules = product(rng, depth)
    rules = ("E", rules)
    while rng.random() < 0.4:
        other, below = product(rng, depth)
        tree, rules = ("E", tree, "+", other), ("E", rules, ("A", ("O+", "+"), below))
    return tree, rules


GRAMMAR = mm.Grammar(
    [
        ("E", "E", "A"), ("A", "O+", "T"), ("E", "T"), ("T", "T", "M"), ("M", "O*", "F"), ("T", "F"),
        ("F", "L", "Q"), ("Q", "E", "R"), ("F", "N"),
    ]
)  # fmt: skip


def leaves(tree):
    return [leaf for child in tree[1:] for leaf in leaves(child)] if isinstance(tree, tuple) else [tree]


def features(words):
    """For each span its first and last word, those around it, and the least binding operator at its top level."""
    n, spans = len(words), mm.spans_of(len(words))
    x = np.zeros((len(spans), 4 * 6 + 3))
    numbers = [*(WORDS[word] for word in words), 5]
    for row, (begin, end) in zip(x, spans.tolist(), strict=True):
        around = numbers[begin], numbers[end - 1], numbers[begin - 1] if begin else 5, numbers[end] if end < n else 5
        row[[6 * place + word for place, word in enumerate(around)]] = 1.0
        depth, top = 0, set()
        for word in words[begin:end]:
            depth += (word == "(") - (word == ")")
            top |= {word} if depth == 0 else {"low"} if depth < 0 else set()
        row[24:] = "+" in top, "*" in top, "low" in top
    return x


@pytest.fixture(scope="module")
def expressions():
    rng, pairs = np.random.default_rng(3), []
    while len(pairs) < 40:
        tree, rules = total(rng, 1)
        if isinstance(tree, tuple) and len(leaves(tree)) <= 8:
            pairs.append((tree, rules))
    return [features(leaves(tree)) for tree, _ in pairs], *zip(*pairs, strict=True)


def test_spans_are_learned(expressions, tmp_path):
    X, y, _ = expressions
    model = mm.GrammarSVM(C=10.0, tol=1e-2).fit(X[:30], y[:30])
    assert model.classes_ == ("E", "P", "T")
    assert model.score(X[:30], y[:30]) > 0.98
    assert model.score(X[30:], y[30:]) > 0.9
    model.save(tmp_path / "model")
    assert mm.load(tmp_path / "model").predict(X) == model.predict(X)
    text = [mm.tree_text(tree) for tree in y]  # where "(" is a token as well
    with pytest.raises(ValueError, match="example 0: y: character"):
        model.score(X, [line + ")" for line in text])
    [(best, first), (_, second)] = model.k_best(X[:1], 2)[0]
    assert best == model.predict(X[:1])[0]
    assert first >= second


def test_derivations_are_learned(expressions, tmp_path):
    X, _, y = expressions
    model = mm.GrammarSVM(grammar=GRAMMAR, C=10.0, tol=1e-2).fit(X[:30], y[:30])
    assert model.classes_ == GRAMMAR.rules
    assert model.score(X[30:], y[30:]) > 0.9
    model.save(tmp_path / "model")
    assert mm.load(tmp_path / "model").predict(X) == model.predict(X)
    for tree in model.predict(X):  # uses rules of the grammar
        GRAMMAR.derivation(nodes_of(tree, ""), "a prediction")
    assert mm.load(tmp_path / "model").encoder.grammar == GRAMMAR


@pytest.mark.filterwarnings("ignore:stopped at the budget")
@pytest.mark.parametrize("solver", [mm.BlockFrankWolfe(), mm.Mira(k=3), mm.ExponentiatedGradient()])
def test_derivations_by_other_solvers(expressions, solver):
    """One example at a time, the k best, and by marginals; slack rescaling where the solver takes it."""
    X, _, y = expressions
    rescaling = "slack" if isinstance(solver, mm.BlockFrankWolfe) else "margin"
    model = mm.GrammarSVM(
        grammar=GRAMMAR, C=1.0, solver=solver, rescaling=rescaling, max_iter=20, random_state=0, tol=0.2
    )
    assert model.fit(X[:20], y[:20]).score(X[:20], y[:20]) > 0.9


def test_trees_in_every_form():
    texts = ["(S (NP the cat) (VP sleeps))", "(S (VP (V go)))", "( (S (X a) b (Y c)) )"]
    trees = [("S", ("NP", "the", "cat"), ("VP", "sleeps")), ("S", ("VP", ("V", "go")))]
    trees.append(("S", ("X", "a"), "b", ("Y", "c")))
    X = [np.eye(6, 13), np.eye(1, 13, k=6), np.eye(6, 13, k=7)]
    one, two = mm.GrammarSVM(C=100.0).fit(X, texts), mm.GrammarSVM(C=100.0).fit(X, trees)
    assert mm.parse_trees(" ".join(texts)) == trees
    assert np.array_equal(one.coef_, two.coef_)
    assert "S+VP+V" in one.classes_
    assert one.predict(X[1:2]) == [("S", ("VP", ("V", 0)))]
    assert mm.tree_text(one.predict(X[1:2])[0], ["go"]) == texts[1]
    forest = [("A", 0, 1), 2, ("B", ("C", 3), 4)]
    rows = np.eye(15)
    model = mm.GrammarSVM(rooted=False, C=100.0).fit([rows, 0.0 * rows[:3]], [forest, ["x", "y"]])
    assert model.predict([rows]) == [forest]
    assert mm.tree_text(forest) == "(A 0 1) 2 (B (C 3) 4)"


def test_deep_trees():
    tree = 0
    for i in range(1, 3000):
        tree = ("A", tree, i)
    nodes = nodes_of(tree, "y")
    assert nodes_of(tree_of(*nodes[::-1]), "again") == nodes
    assert mm.tree_text(tree).count(")") == 2999


def test_split_features():
    """Trees with the same spans' features: only the split says which is right."""
    X, y = [], []
    for left in (0, 1, 0, 1):
        splits = np.zeros((4, 2))
        splits[mm.splits_of(3).tolist().index([0, 1 + left, 3])] = 1.0
        X.append(mm.SpanChart(np.eye(3)[np.diff(mm.spans_of(3))[:, 0] - 1], splits))
        y.append(("A", ("A", 0, 1), 2) if left else ("A", 0, ("A", 1, 2)))
    model = mm.GrammarSVM(C=10.0).fit(X, y)
    assert model.predict(X) == y
    with pytest.raises(ValueError, match="split features must be given in training and in prediction"):
        model.predict([x.features for x in X])


def test_kernels():
    X, y = charts()
    linear, kernel = (mm.GrammarSVM(C=1.0, features=f).fit(X, y) for f in (None, mm.features.Kernel("linear")))
    assert linear.predict(X) == kernel.predict(X)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (("A", 0, 1), "example 0: y has 2 tokens, and X has the spans of 3"),
        (("A",), r"example 0: y: \('A',\) is not a node; it needs a label and at least one child"),
        (("A", ["B", 0], 1, 2), "stands inside a tree; write nodes as tuples"),
        ([0, 1, 2], "example 0: no node covers all 3 tokens; add one, or use rooted=False"),
        (7, "example 0: y must be a tree"),
        ("(A x y z", "example 0: y: 1 brackets are not closed"),
        (("A+B", 0, 1, 2), r"label 'A\+B' has a '\+'"),
        ((1, (2, 0, 1, 2)), "only labels that are text can be joined"),
        (((["A"],), 0, 1, 2), "example 0: y: labels must be hashable"),
    ],
)
def test_trees_that_are_refused(tree, message):
    x = np.ones((6, 1))
    with pytest.raises(ValueError, match=message):
        mm.GrammarSVM().fit([x, x], [tree, ("A", 0, 1, 2)])


def test_input_that_is_refused():
    X, y = charts(splits=True)
    plain = [x.features for x in X]
    size = y[0]
    for given, message in (
        ([plain[0][:-1], *plain[1:]], "example 0: .* rows of features cannot be one for each span"),
        ([X[0], *plain[1:]], "example 1: no split features, but 1 of 6 sentences have them"),
        ([mm.SpanChart(plain[0], np.ones((9, 2))), *X[1:]], "example 0: 9 rows of split features for"),
        ([np.ones((0, 3)), *plain[1:]], "example 0: a sentence without tokens has no tree"),
    ):
        with pytest.raises(ValueError, match=message):
            mm.GrammarSVM().fit(given, y)
    assert isinstance(size, tuple)
    grammar = mm.Grammar([("S", "S", "S")], preterminals=["S"])
    for settings, message in (
        ({"grammar": "S"}, "grammar must be None or a mm.Grammar"),
        ({"grammar": grammar, "classes": ["S"]}, "give classes or a grammar, not both"),
        ({"grammar": grammar}, "a grammar has no split features"),
    ):
        with pytest.raises(ValueError, match=message):
            mm.GrammarSVM(**settings).fit(X, y)
    with pytest.raises(ValueError, match="example 0: y: the grammar has no rule 'A' ->"):
        mm.GrammarSVM(grammar=grammar).fit(plain, y)
    with pytest.raises(ValueError, match="no tree has a node"):
        mm.GrammarSVM(rooted=False).fit([np.ones((1, 1))], [["x"]])


@pytest.mark.parametrize(
    ("rules", "settings", "message"),
    [
        ([("A", "B", "C", "D")], {}, r"rule 0 must be a tuple \(A, B, C\) or \(A, B\)"),
        ([("A", "B"), ("B", "A")], {"preterminals": ["A"]}, "unary rules form a cycle"),
        ([("A", "B"), ("A", "B")], {}, "rule 'A' -> 'B' is given twice"),
        ([("A", "B", "C")], {"preterminals": ["B"]}, "symbol 'C' has no rule and is not a preterminal"),
        ([("A", "B")], {"start": "X"}, "symbol 'X' has no rule"),
        ([("A", "B")], {"preterminals": ["B", "B"]}, "preterminals must be different symbols"),
        ([], {}, "a grammar needs rules"),
    ],
)
def test_grammars_that_are_refused(rules, settings, message):
    with pytest.raises(ValueError, match=message):
        mm.Grammar(rules, **settings)


def test_the_example_runs(tmp_path, capsys):
    path = Path(__file__).parents[3] / "examples" / "operator_precedence.py"
    spec = importlib.util.spec_from_file_location("operator_precedence", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    outcome = module.main(str(tmp_path / "tree.png"), 25, 6)
    assert (tmp_path / "tree.png").stat().st_size > 10_000
    assert outcome["F1"] > 0.8
    assert "the tree that was found" in capsys.readouterr().out
