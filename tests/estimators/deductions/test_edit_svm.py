"""EditSVM: features of edits by their definition, scores and distances from tables, and bad input."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from data import same, spellings
from oracles.structures.edits import alignments
from sklearn.base import clone

import maxmargin as mm
from maxmargin.encoders.deductions.edits import EditEncoder

VOWELS = dict.fromkeys("aeiou", "vowel")
SETTINGS: list[dict[str, Any]] = [
    {},
    {"gaps": "linear", "context": False},
    {"symmetric": True, "classes_of": VOWELS},
    {"min_count": 3, "classes_of": VOWELS},
    {"symbols": False},
]
STRANGE = [("", ""), ("", "xyz"), ("ax", ""), ("xa", "xxa"), ("uxu", "uxu"), ("yx", "xy"), ("aab", "ab")]
"""Empty sequences, and symbols that were not seen in training."""


def with_features(X: list[Any], seed: int = 0, d: int = 2) -> list[mm.SequencePair]:
    rng = np.random.default_rng(seed)
    return [
        mm.SequencePair(a, b, rng.normal(size=(len(a), len(b), d)), *(rng.normal(size=(len(s), 1)) for s in (a, b)))
        for a, b in X
    ]


@pytest.mark.parametrize("settings", SETTINGS)
def test_scores_from_tables_are_those_of_the_batch(settings: dict[str, Any]) -> None:
    X, y = spellings(20)
    model = mm.EditSVM(tol=0.1, **settings).fit(X, y)
    for pairs in (X, STRANGE):
        np.testing.assert_allclose(model.score_pairs(pairs), model.decision_function(pairs), atol=1e-10)


def features_of(first: str, second: str, pairs: np.ndarray, known: set[str]) -> dict[str, float]:
    """The features of an alignment, by their names, with classes VOWELS and context."""
    found: dict[str, float] = {}

    def add(*names: str) -> None:
        for name in names:
            found[name] = found.get(name, 0.0) + 1.0

    for i, j in pairs.tolist():
        a, b = first[i], second[j]
        kind = "equal" if a == b else "different"
        add(kind)
        if (i, j) == (0, 0):
            add(f"first {kind}")
        if (i, j) == (len(first) - 1, len(second) - 1):
            add(f"last {kind}")
        if a != b:
            add(f"classes {VOWELS.get(a)!r}, {VOWELS.get(b)!r}")
        if a in known and b in known:
            add(f"{a!r}, {b!r}")
    for side, own in enumerate((first, second)):
        used = set(pairs[:, side].tolist())
        for at in set(range(len(own))) - used:
            symbol = own[at]
            for operation in ("gap", "opening"):
                if operation == "opening" and at > 0 and at - 1 not in used:
                    continue
                name = f"{operation} {side}"
                add(name, f"{name} class {VOWELS.get(symbol)!r}", f"{name} {symbol if symbol in known else None!r}")
                add(*[f"{name} begins"] * (at == 0), *[f"{name} ends"] * (at == len(own) - 1))
                if operation == "opening":
                    continue
                before, after = own[at - 1] if at else None, own[at + 1] if at + 1 < len(own) else None
                if symbol in known and before == symbol:
                    add(f"{name} repeats")
                if symbol in known and before in known:
                    add(f"{name} after {before}{symbol}")
                if symbol in known and after in known:
                    add(f"{name} before {symbol}{after}")
    return found


def test_features_are_those_of_the_definition() -> None:
    """Two sets of features that tell the same alignments apart in the same way have Gram matrices that agree."""
    X = [("aab", "ab"), ("abe", "baa"), ("xa", "ax"), ("e", "bbe")]
    encoder = EditEncoder(classes_of=VOWELS, known=("a", "b", "e"))
    batch = encoder.transform(X)
    rows, own = [], []
    for i, (first, second) in enumerate(X):
        every = list(alignments(len(first), len(second)))
        many = batch.select(np.full(len(every), i))
        z = np.asarray(many.structure.encode(every))
        dense = many.features.to_sparse().toarray()
        for number in range(len(every)):
            parts = many.structure.parts_of([number])
            rows.append(dense[parts].T @ z[parts])
        own += [features_of(first, second, pairs, {"a", "b", "e"}) for pairs in every]
    names = sorted({name for one in own for name in one})
    wanted = np.array([[one.get(name, 0.0) for name in names] for one in own])
    np.testing.assert_array_equal(np.array(rows) @ np.array(rows).T, wanted @ wanted.T)


def test_distances() -> None:
    X, y = spellings(20)
    model = mm.EditSVM(symmetric=True, tol=0.1).fit(X, y)
    first, second = [a for a, _ in X], [b for _, b in X[:5]]
    table = model.distances(first, second)
    assert table.shape == (20, 5)
    np.testing.assert_allclose(table[:5].diagonal(), model.distance(X[:5]), atol=1e-12)
    np.testing.assert_allclose(model.distance(X), model.distance([(b, a) for a, b in X]), atol=1e-12)
    np.testing.assert_allclose(model.distance([(a, a) for a in first]), 0.0, atol=1e-12)
    with pytest.raises(ValueError, match="set nonmatches=True, or use distance"):
        model.match_scores(X)
    np.testing.assert_array_equal(
        mm.EditSVM(symmetric=True, tol=0.1, n_jobs=2).fit(X, y).distance(X), model.distance(X)
    )
    assert model.distances([], second).shape == (0, 5)


def test_equal_costs_are_levenshteins() -> None:
    def edits(one: str, two: str) -> int:
        row = list(range(len(two) + 1))
        for i, a in enumerate(one, 1):
            before, row[0] = row[0], i
            for j, b in enumerate(two, 1):
                before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
        return row[-1]

    X = spellings(30)[0] + STRANGE + [("ab" * 30_000, "ab"), ("ba" * 30_000, "b")]
    wanted = [edits(a, b) for a, b in X]
    np.testing.assert_array_equal(-mm.EditModel.levenshtein().score_pairs(X), wanted)


def test_verdicts(tmp_path: Any) -> None:
    X, y = spellings(24, nonmatches=True)
    model = mm.EditSVM(nonmatches=True).fit(X, y)
    assert model.score(X, y) == 1.0
    found = model.predict(X)
    assert [one is False for one in found] == [one is False for one in y]
    scores = model.match_scores(X)
    np.testing.assert_array_equal(scores > 0, [one is not False for one in y])
    lengths = np.array([[len(a), len(b)] for a, b in X])
    verdict = model.model_.encoder.verdict_scores(model.coef_, *lengths.T)
    np.testing.assert_allclose(model.decision_function(X), np.maximum(model.score_pairs(X), verdict), atol=1e-10)
    table = model.match_matrix([a for a, _ in X], [b for _, b in X])
    np.testing.assert_allclose(table.diagonal(), scores, atol=1e-12)
    model.save(tmp_path / "model")
    again = mm.load(tmp_path / "model")
    assert isinstance(again, mm.EditModel)
    np.testing.assert_array_equal(again.match_scores(X), scores)


def test_hidden_alignments_are_found_in_rounds_that_never_raise_the_objective() -> None:
    X, y = spellings(30, nonmatches=True)
    verdicts = [one is not False for one in y]
    model = mm.EditSVM(nonmatches=True, tol=1e-4, C=0.1, random_state=0).fit(X, verdicts)
    assert model.score(X, y) == model.score(X, verdicts) == 1.0
    assert (np.diff(model.objectives_) <= 1e-9).all()
    assert model.settled_
    # At the end the hinge of the definition: the best output with its loss, less the best alignment or no match.
    scores, margins, s = model.score_pairs(X), model.match_scores(X), np.array(verdicts)
    hinges = np.where(s, np.maximum(0.0, 1.0 - margins), np.maximum(0.0, 1.0 + margins))
    objective = float(model.coef_ @ model.coef_) / 0.2 + hinges.sum()
    assert model.solution_.certificate.primal == pytest.approx(objective, rel=1e-6)
    assert scores.shape == (30,)
    known = mm.EditSVM(nonmatches=True, tol=1e-4, C=0.1, random_state=0).fit(X, y)
    assert len(known.objectives_) == 1
    assert mm.EditSVM().fit(X[:2], [True, True]).predict(X[:2])[0].shape[1] == 2
    with pytest.raises(ValueError, match="rounds"):
        mm.EditSVM(rounds=0).fit(X[:2], y[:2])


def test_features_of_the_inputs() -> None:
    X, y = spellings(12)
    plain = with_features(X)
    flat = [mm.SequencePair(x.first, x.second, sp.csr_array(x.pair_features.reshape(-1, 2)), *gaps(x)) for x in plain]
    model = mm.EditSVM(tol=0.01).fit(plain, y)
    assert same(model.predict(plain), model.predict(flat))
    assert model.score(plain, y) > 0.9
    with pytest.raises(ValueError, match="sequences without features of their own; use decision_function"):
        model.distance(plain)
    with pytest.raises(ValueError, match="example 0: it has no pair_features; give the 2 columns"):
        model.predict(X)
    with pytest.raises(ValueError, match="this one was trained with features of its inputs"):
        model.distances(["a"], ["b"])
    marked = []
    for (a, b), pairs in zip(X, y, strict=True):
        cells = np.zeros((len(a), len(b), 1))
        cells[pairs[:, 0], pairs[:, 1]] = 1.0
        marked.append(mm.SequencePair(a, b, cells))
    assert mm.EditSVM(symbols=False).fit(marked, y).score(marked, y) == 1.0


def gaps(x: mm.SequencePair) -> list[Any]:
    return [sp.csr_array(one) for one in (x.first_features, x.second_features)]


def test_symbols_of_any_kind() -> None:
    X = [(["the", ("a", 1), 3], ["the", 3]), (np.array([1, 2]), [2]), ("ab", ["a", "b"])] * 3
    y = [[(0, 0), (2, 1)], [(1, 0)], [(0, 0), (1, 1)]] * 3
    model = mm.EditSVM().fit(X, y)
    assert same([one.tolist() for one in model.predict(X)], [[list(pair) for pair in pairs] for pairs in y])
    assert set(model.model_.encoder.known) == {"the", ("a", 1), 1, 2, 3, "a", "b"}


def test_the_example_runs(tmp_path: Path) -> None:
    path = Path(__file__).parents[3] / "examples" / "learned_edit_distance.py"
    spec = importlib.util.spec_from_file_location("learned_edit_distance", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.compared(np.random.default_rng(0), (240, 60, 100), path=str(tmp_path / "distance.png"))
    assert (tmp_path / "distance.png").stat().st_size > 10_000
    assert found["learned"]["f1"] > 0.6
    assert {"learned", "Levenshtein", "Levenshtein / length", "learned, threshold 0"} == set(found)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("ab", "X must be a pair of sequences, such as two strings"),
        (("ab",), "X must be a pair of sequences"),
        (("ab", 3), "its second sequence must be a string or a list of symbols"),
        ((None, "ab"), "its first sequence must be a string or a list of symbols"),
        ((b"ab", "ab"), "its first sequence must be a string or a list of symbols"),
        (([["a"]], "ab"), "its first sequence: symbols must be hashable"),
        (([float("nan")], "ab"), "its first sequence: NaN cannot be a symbol"),
        (mm.SequencePair("ab", "a", np.zeros((2, 2, 1))), "pair_features have shape"),
        (mm.SequencePair("ab", "a", np.zeros((3, 1))), "pair_features have 3 rows, but there are 2 pairs of symbols"),
        (mm.SequencePair("ab", "a", np.full((2, 1), np.nan)), "NaN or infinity"),
        (mm.SequencePair("ab", "a", None, np.zeros((2, 1))), "it has no second_features"),
        (mm.SequencePair("ab", "a", None, np.zeros((2, 1)), np.zeros((2, 1))), "second_features have shape"),
    ],
)
def test_bad_inputs(bad: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"example 0: .*{message}"):
        mm.EditSVM().fit([bad], [[]])
    model = mm.EditSVM().fit([("ab", "a")], [[(0, 0)]])
    with pytest.raises(ValueError, match="example 0: "):
        model.predict([bad])


def test_bad_outputs_and_settings() -> None:
    X, y = spellings(3)
    for bad, message in (
        ([(0, 99)], r"pair \(0, 99\) is out of range"),
        ([(1, 1), (0, 0)], "does not lie after the pair before it"),
        ([(0, 1, 2)], r"y must be an integer array of shape \(k, 2\)"),
        (None, "y must be"),
        ("ab", "y must be"),
        (False, "set nonmatches=True to learn that"),
    ):
        with pytest.raises(ValueError, match=f"example 1: .*{message}"):
            mm.EditSVM().fit(X, [y[0], bad, y[2]])
    for settings in (
        {"gaps": "none"},
        {"nonmatches": 1},
        {"symbols": None},
        {"symmetric": "yes"},
        {"context": 0},
        {"min_count": 0},
        {"classes_of": ["a"]},
        {"classes_of": {"a": []}},
    ):
        with pytest.raises(ValueError, match=next(iter(settings))):
            clone(mm.EditSVM(**settings)).fit(X, y)
    with pytest.raises(ValueError, match=r"example 1: True .* without features of symbols .* give their alignment"):
        mm.EditSVM(symbols=False).fit(X, [y[0], True, y[2]])
    many = [[i, i + 1] for i in range(0, 2000, 2)]
    with pytest.raises(ValueError, match=r"2000 different symbols.*raise min_count"):
        mm.EditSVM().fit([(own, own) for own in many], [[(0, 0), (1, 1)]] * len(many))
