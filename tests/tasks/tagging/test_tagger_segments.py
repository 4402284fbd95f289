"""Taggers that score segments: attributes of segments, learning, files, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.tasks.common.tokens.table import TokenTable
from maxmargin.tasks.tagging import SequenceTagger
from maxmargin.tasks.tagging.encoder.attributes import AttributeVocabulary
from maxmargin.tasks.tagging.encoder.chunks import ChunkLayout
from maxmargin.tasks.tagging.encoder.templates.template import Template

TEMPLATE = (
    "U0:%x[0,word]\nS0:%x[all,word]\nS1:%lower[first,word]|%x[after,word]\nS2:%x[before,word]%is(upper)[last,word]"
)
LABELS = ("O", "B-X", "I-X", "B-Y", "I-Y")


def phrases(n: int = 30, seed: int = 0, scheme: str = "bio"):
    """Runs of `a` whose type only their length tells: even ones are X, odd ones Y."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words, labels = [], []
        for length in rng.integers(1, 5, size=3).tolist():
            kind = "Y" if length % 2 else "X"
            tags = [f"B-{kind}", *[f"I-{kind}"] * (length - 1)]
            if scheme == "iobes":
                tags[-1] = f"{'S' if length == 1 else 'E'}-{kind}"
            words += ["a"] * length + ["o"]
            labels += [*tags, "O"]
        X.append(words)
        y.append(labels)
    return X, y


def test_attributes_of_segments():
    sentences = [["The", "IT"], [], ["x"]]
    table = TokenTable.of_lists([[(word,) for word in words] for words in sentences], ("word",))
    plan, names = Template.parse(TEMPLATE, ("word",)).segment_plan, AttributeVocabulary()
    chosen = np.ones(4, dtype=bool)
    rows, _ = plan.of_segments(table, names, 2, chosen=chosen)
    found = [
        sorted(names.name(column) for column in rows.columns[first:last].tolist())
        for first, last in zip(rows.starts[:-1], rows.starts[1:], strict=True)
    ]
    assert found == [
        ["S0:The", "S1:the|IT", "length:1"],
        ["S0:The IT", "S1:the|_B+1", "S2:_B-1upper", "length:2"],
        ["S0:IT", "S1:it|_B+1", "S2:Theupper", "length:1"],
        ["S0:x", "S1:x|_B+1", "length:1"],
    ]
    assert rows.lengths.tolist() == [3, 0, 1]
    some, known = AttributeVocabulary(), np.array([True, False, False, False])
    assert plan.of_segments(table, some, 2, chosen=known)[0].lengths.tolist() == [1, 0, 0]
    again = plan.of_segments(table, some, 2)[0]
    assert np.diff(again.starts).tolist() == [3, 0, 1, 1]
    for threads in (1, 3):
        with mm.threads(threads):
            many = TokenTable.of_lists([[(f"w{i * j % 7}",) for j in range(i % 9)] for i in range(2000)], ("word",))
            own = AttributeVocabulary()
            rows, _ = plan.of_segments(many, own, 3, chosen=np.ones(int(_count(many.lengths, 3)), dtype=bool))
            if threads == 1:
                one = own.names, rows.columns
    assert own.names == one[0]
    np.testing.assert_array_equal(rows.columns, one[1])


def _count(lengths, longest):
    return sum(min(longest, n - b) for n in lengths.tolist() for b in range(n))


@pytest.mark.parametrize("scheme", ["bio", "iobes"])
@pytest.mark.parametrize("form", ["text", "dictionaries", "matrices"])
def test_lengths_tell_what_tokens_do_not(scheme, form, tmp_path):
    X, y = phrases(scheme=scheme)
    if form == "dictionaries":
        X = [[{"word": word} for word in words] for words in X]
    if form == "matrices":
        X = [np.array([[word == "a", word == "o"] for word in words], dtype=float) for words in X]
    settings = {"C": 10.0, "folds": 0, "template": "U0:%x[0,word]" if form == "text" else None}
    tagger = SequenceTagger(segments=True, **settings).fit(X, y)
    assert tagger.evaluate(X, y).f1 == 1.0
    if scheme == "bio":
        assert SequenceTagger(**settings).fit(X, y).evaluate(X, y).f1 < 1.0
    chunks = tagger.model_.weight_layout.chunks
    assert dict(zip(chunks.types, chunks.longest.tolist(), strict=True)) == {"O": 1, "X": 4, "Y": 3}
    tagger.save(tmp_path / "model")
    again = mm.load(tmp_path / "model")
    assert again.predict(X) == list(tagger.predict(X))
    assert again.describe()["longest_segment"] == 4
    (best, score), (other, less) = again.k_best(X[:1], 2)[0]
    assert best == y[0] != other
    assert score > less
    known = [[None] * len(words) for words in X[:2]]
    known[0][0] = "O"
    assert again.predict(X[:2], known=known)[0][0] == "O"
    assert (again.margins(X)[0] > 0).all()
    with pytest.warns(UserWarning, match="not calibrated"):
        probability = again.predict_proba(X[:3])
    np.testing.assert_allclose(np.concatenate(probability).sum(axis=1), 1.0, atol=1e-9)
    strongest = again.strongest(2)
    assert {entry["type"] for entry in strongest["segments"]["positive"]} <= {"O", "X", "Y"}
    assert set(again.transition_features_) == {(a, b) for a in chunks.types for b in chunks.types}


def test_folds_dev_prune_and_objective():
    X, y = phrases(40)
    tagger = SequenceTagger(template=TEMPLATE, segments=True, C=[0.1, 1.0], folds=2, prune=0.05, tol=1e-3).fit(X, y)
    assert tagger.calibrated_on == "folds"
    assert tagger.solution_.certificate.relative_gap <= 1e-3
    dev = SequenceTagger(template=TEMPLATE, segments=True, support="all", C=1.0).fit(
        X[:30], y[:30], dev=(X[30:], y[30:])
    )
    assert dev.dev_scores_[-1][1] == 1.0
    assert dev.model_.weight_layout.segment_support.n_weights == 3 * len(dev.model_.extractor.segments.names)


def test_segments_of_labels():
    layout = ChunkLayout.of_labels(LABELS)
    codes = np.array([1, 2, 0, 1, 1, 3, 4, 4, 0])
    first, length, kind = layout.segments(codes, np.array([4, 5]))
    assert first.tolist() == [0, 2, 3, 4, 5, 8]
    assert length.tolist() == [2, 1, 1, 1, 3, 1]
    assert [layout.types[k] for k in kind] == ["X", "O", "X", "X", "Y", "O"]
    layout = layout.fitted(codes, np.array([4, 5]))
    assert layout.longest.tolist() == [1, 2, 3]
    rows, kind = layout.candidates(codes, np.array([4, 5]))
    pairs = np.concatenate([mm.candidate_segments(4, 3), mm.candidate_segments(5, 3) + 4])
    assert pairs[rows].tolist() == [[0, 2], [2, 3], [3, 4], [4, 5], [5, 8], [8, 9]]


def test_what_is_refused(tmp_path):
    X, y = phrases(4)
    settings = {"template": TEMPLATE, "segments": True, "C": 1.0, "folds": 0}
    hidden = [[None, *labels[1:]] for labels in y]
    for options, labels, message in (
        ({"order": 2}, y, "order=2 cannot be combined with segments"),
        ({"template": "U0:%x[0,word]\nB0:%x[0,word]"}, y, "segments cannot be combined with attributes of pairs"),
        ({"segments": "yes"}, y, "segments must be"),
        ({}, hidden, "some labels are unknown, and segments must be known as wholes"),
        ({}, [["N"] * len(words) for words in X], "the labels do not encode chunks"),
        ({}, [["I-X"] * len(words) for words in X], "none that begins a chunk of type X"),
        ({"forbidden": [("B-X", "B-Y")]}, y, "must be the same for short and long chunks"),
        ({"forbidden": [("B-Y", "I-Y")], "classes": LABELS}, [["O"] * len(words) for words in X], None),
    ):
        tagger = SequenceTagger(**(settings | options))
        if message is None:
            tagger.fit(X, labels)
            continue
        with pytest.raises(ValueError, match=message):
            tagger.fit(X, labels)
    tagger = SequenceTagger(**settings).fit(X, y)
    with pytest.raises(ValueError, match="cannot be trained further"):
        tagger.partial_fit(X, y)
    with pytest.raises(ValueError, match="segments need all sentences in memory"):
        tagger.build_dataset(tmp_path / "data", (X, y))
    for line, message in (
        ("S0:%x[0,word]", r"row '0' of a line of segments must be one of first, last, before, after, all"),
        ("U0:%x[all,word]", "row 'all' is not an integer"),
        ("S0:%x[all,pos]", "no column 'pos'"),
    ):
        with pytest.raises(ValueError, match=message):
            Template.parse(f"U1:%x[0,word]\n{line}", ("word",))
