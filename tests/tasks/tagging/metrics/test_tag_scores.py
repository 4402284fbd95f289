"""Scores of labels: known answers, the plain walk over tokens, sets of chunks, seqeval where it is there."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.tasks.tag_metrics import chunk_counts, chunk_sets

from benchmarks.record import DATA
from maxmargin.tasks.tagging.metrics.chunks import look_like_chunks, tag_and_type
from maxmargin.tasks.tagging.metrics.scores import Rates, compare_scores, evaluate, evaluate_codes, interval_of

IOB = ["O", "B-A", "I-A", "B-B", "I-B"]
IOE = ["O", "I-A", "E-A", "I-B", "E-B"]
IOBES = ["O", *(f"{tag}-{kind}" for tag in "BIES" for kind in "AB")]
STRANGE = [*IOBES, "B-A-B", "I-A-B", "B", "I", "E", "S", ".", "[-A", "]-A", "[", "NN", "x-A", "-A", "B-"]


def spelled(labels):
    """Pairs of labelings of the same sentences, often alike."""
    pair = st.one_of(
        st.sampled_from(labels).map(lambda label: (label, label)), st.tuples(*[st.sampled_from(labels)] * 2)
    )
    sentences = st.lists(st.lists(pair, max_size=12), max_size=5)
    return sentences.map(lambda all_: tuple([[pair[side] for pair in one] for one in all_] for side in (0, 1)))


def counts_of(scores):
    return {kind: (rates.gold, rates.predicted, rates.correct) for kind, rates in scores.chunk_types.items()}


@pytest.mark.parametrize("labels", [IOB, IOE, IOBES, STRANGE], ids=["iob", "ioe", "iobes", "strange"])
def test_chunks_are_those_of_a_walk(labels):
    @settings(deadline=None, derandomize=True, max_examples=150)
    @given(spelled(labels))
    def check(both):
        walked = chunk_counts(*both)
        scores = evaluate(*both, chunks=True)
        assert counts_of(scores) == {
            kind: tuple(one[kind] for one in walked)
            for kind in set().union(*walked)
            if any(one[kind] for one in walked)
        }
        assert scores.chunks == Rates(*(sum(one.values()) for one in walked))
        if labels in (IOB, IOE):  # where conlleval itself has all the rules
            assert chunk_counts(*both, original=True) == walked
        if labels is not STRANGE:
            gold, predicted = map(chunk_sets, both)
            assert scores.chunks == Rates(len(gold), len(predicted), len(gold & predicted))

    check()


@settings(deadline=None, derandomize=True, max_examples=100)
@given(spelled(IOBES))
def test_labels_are_those_of_a_loop(both):
    scores = evaluate(*both)
    pairs = [(g, p) for gold, predicted in zip(*both, strict=True) for g, p in zip(gold, predicted, strict=True)]
    assert (scores.tokens, scores.correct) == (len(pairs), sum(g == p for g, p in pairs))
    assert scores.accuracy == (scores.correct / scores.tokens if pairs else 0.0)
    assert (scores.sentences, scores.exact) == (len(both[0]), sum(g == p for g, p in zip(*both, strict=True)))
    assert list(scores.labels) == sorted({label for pair in pairs for label in pair})
    table = scores.confusion
    for row, gold in enumerate(scores.labels):
        rates = scores.per_label[gold]
        assert rates.gold == sum(g == gold for g, _ in pairs)
        assert rates.predicted == sum(p == gold for _, p in pairs)
        assert rates.correct == sum(g == p == gold for g, p in pairs)
        for column, predicted in enumerate(scores.labels):
            assert table[row, column] == pairs.count((gold, predicted))
    wrong = scores.confused()
    assert all(table[scores.labels.index(g), scores.labels.index(p)] == count for g, p, count in wrong)
    assert sum(count for *_, count in wrong) == scores.tokens - scores.correct
    assert [count for *_, count in wrong] == sorted((count for *_, count in wrong), reverse=True)
    assert scores.confused(1) == wrong[:1]
    json.dumps(scores.summary())


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
    [
        ("B-A I-A O", "B-A I-A O", (1, 1, 1)),
        ("B-A I-A O", "I-A I-A O", (1, 1, 1)),  # I after O begins a chunk
        ("B-A I-A O", "B-A O O", (1, 1, 0)),
        ("B-A I-A I-A", "B-A I-A B-A", (1, 2, 0)),
        ("I-A I-A B-A", "B-A I-A B-A", (2, 2, 2)),  # IOB1 and IOB2
        ("I-A I-B", "B-A B-B", (2, 2, 2)),  # another type begins another chunk
        ("B-A I-B I-B", "B-A B-B I-B", (2, 2, 2)),
        ("I-A E-A E-A", "B-A I-A B-A", (2, 2, 2)),  # IOE1: E before another chunk
        ("B-A I-A E-A S-A", "B-A I-A I-A B-A", (2, 2, 2)),
        ("B-A E-A B-A E-A", "B-A I-A B-A I-A", (2, 2, 2)),
        ("S-A S-A O", "B-A B-A O", (2, 2, 2)),
        ("U-A B-A I-A L-A", "S-A B-A I-A E-A", (2, 2, 2)),
        ("B-A M-A E-A S-A", "B-A I-A I-A B-A", (2, 2, 2)),
        ("B-a-b I-a-b", "B-a-b I-a-c", (1, 2, 0)),  # types with dashes
        ("B I O", "B I B", (1, 2, 1)),  # no types
        ("O O O", "O O O", (0, 0, 0)),
        ("B-A O B-A", "NN NN B-A", (2, 1, 1)),
    ],
)
def test_known_chunks(gold, predicted, expected):
    scores = evaluate([gold.split()], [predicted.split()], chunks=True)
    assert scores.chunks == Rates(*expected)


def test_chunks_end_with_their_sentence():
    scores = evaluate([["B-A"], ["I-A"], [], ["I-A", "O"]], [["B-A"], ["I-A"], [], ["I-A", "I-A"]])
    assert scores.chunks == Rates(3, 3, 2)
    assert scores.chunks_of_sentences.tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]]
    assert (scores.exact, scores.sentences, scores.sentence_accuracy) == (3, 4, 0.75)


def test_known_rates():
    gold = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "O"]]
    predicted = [["B-NP", "I-NP", "B-VP", "B-VP"], ["B-PP", "O"]]
    scores = evaluate(gold, predicted)
    assert scores.chunks == Rates(3, 4, 2)
    assert (scores.chunks.precision, scores.chunks.recall) == (0.5, pytest.approx(2 / 3))
    assert scores.f1 == pytest.approx(4 / 7)
    assert scores.accuracy == pytest.approx(4 / 6)
    assert scores.chunk_types == {"NP": Rates(2, 1, 1), "PP": Rates(0, 1, 0), "VP": Rates(1, 2, 1)}
    assert scores.per_label["B-PP"] == Rates(0, 1, 0)
    assert scores.per_label["B-PP"].f1 == scores.per_label["B-PP"].recall == 0.0
    assert scores.confused() == [("B-NP", "B-PP", 1), ("O", "B-VP", 1)]
    assert scores.macro_f1 == pytest.approx(np.mean([2 / 3, 0, 2 / 3, 1, 2 / 3]))
    assert scores.measure == "f1"


@settings(deadline=None, derandomize=True, max_examples=100)
@given(spelled(IOB))
def test_seqeval_agrees(both):
    seqeval = pytest.importorskip("seqeval.metrics", reason="seqeval is not installed")
    scores = evaluate(*both, chunks=True)
    if not scores.chunks.gold or not scores.chunks.predicted:
        return  # it divides by nothing and warns
    assert seqeval.f1_score(*both) == pytest.approx(scores.f1)
    assert seqeval.precision_score(*both) == pytest.approx(scores.chunks.precision)
    assert seqeval.recall_score(*both) == pytest.approx(scores.chunks.recall)


def test_published_counts_of_conll_2000():
    path = DATA / "tagging" / "conll2000" / "test.txt.gz"
    if not path.is_file():
        pytest.skip("the CoNLL-2000 data is not here; set MAXMARGIN_DATA to their folder")
    text = gzip.decompress(path.read_bytes()).decode("utf-8")
    gold = [[line.split()[-1] for line in block.split("\n")] for block in text.strip().split("\n\n")]
    scores = evaluate(gold, gold)
    assert (scores.sentences, scores.tokens) == (2012, 47377)
    assert scores.chunks == Rates(23852, 23852, 23852)
    found = {kind: scores.chunk_types[kind].gold for kind in ("NP", "VP", "PP", "ADVP", "SBAR", "ADJP", "PRT")}
    assert found == {"NP": 12422, "VP": 4658, "PP": 4811, "ADVP": 866, "SBAR": 535, "ADJP": 438, "PRT": 106}


def test_what_looks_like_chunks():
    assert look_like_chunks(IOB)
    assert look_like_chunks(["B", "I", "O"])
    assert look_like_chunks(["U-PER", "L-PER", "O"])
    assert look_like_chunks([*IOB, "??"])
    assert not look_like_chunks(["O"])
    assert not look_like_chunks([])
    assert not look_like_chunks(["NOUN", "VERB", "X", "I-don't-know"])
    assert not look_like_chunks([0, 1, 2])
    assert tag_and_type("B-a-b") == ("B", "a-b")
    assert evaluate([["NN"]], [["NN"]]).chunks is None
    assert evaluate([["B-A"]], [["B-A"]], chunks=False).chunks is None
    assert evaluate([["NN"]], [["NN"]]).measure == "accuracy"
    with pytest.raises(ValueError, match="do not look like B-NP"):
        _ = evaluate([["NN"]], [["NN"]]).f1


def test_labels_of_any_kind():
    scores = evaluate([[1, (2, 3)], [None]], [np.array([1, 5]), [None]])
    assert scores.labels == (1, (2, 3), None, 5)
    assert (scores.tokens, scores.correct) == (3, 2)
    json.dumps(scores.summary())


def test_unseen_labels_have_a_row_and_are_wrong():
    scores = evaluate_codes(
        np.array([0, 1, 2, 2]),
        np.array([1, 0, 0, 1]),
        np.array([0, 3, 4]),
        ["B-A", "O"],
        gold_labels=["O", "B-A", "B-Z"],
    )
    assert scores.labels == ("B-A", "O", "B-Z")
    assert scores.unseen == ("B-Z",)
    assert scores.confusion.tolist() == [[1, 0, 0], [0, 1, 0], [1, 1, 0]]
    assert scores.chunk_types == {"A": Rates(1, 2, 1), "Z": Rates(2, 0, 0)}
    by_lists = evaluate([["O", "B-A", "B-Z"], ["B-Z"]], [["O", "B-A", "B-A"], ["O"]], known=["B-A", "O"])
    assert by_lists.unseen == ("B-Z",)
    assert by_lists.accuracy == scores.accuracy == 0.5
    assert by_lists.summary()["unseen_labels"] == ["B-Z"]


@pytest.mark.parametrize("k", [3, 400])
def test_codes_and_lists_agree(k):
    rng = np.random.default_rng(k)
    labels = ["O", *(f"{'BI'[at % 2]}-{at // 2}" for at in range(k - 1))]
    offsets = np.array([0, 0, 7, 50, 50, 300])
    gold, predicted = rng.integers(0, k, (2, 300))
    predicted[::2] = gold[::2]
    scores = evaluate_codes(gold.astype(np.int32), predicted, offsets, labels)
    names = np.array(labels, dtype=object)
    sides = [[list(one) for one in np.split(names[codes], offsets[1:-1])] for codes in (gold, predicted)]
    same = evaluate(*sides)
    assert same.chunk_types == scores.chunk_types
    assert (same.chunks_of_sentences == scores.chunks_of_sentences).all()
    assert (same.of_sentences == scores.of_sentences).all()
    assert set(same.confused()) == set(scores.confused())
    assert {name: rates for name, rates in scores.per_label.items() if rates.gold or rates.predicted} == same.per_label
    assert same.macro_f1 == pytest.approx(scores.macro_f1)


def test_nothing():
    for scores in (evaluate([], []), evaluate([], [], chunks=True)):
        assert (scores.tokens, scores.accuracy, scores.sentence_accuracy, scores.macro_f1) == (0, 0, 0, 0)
        assert interval_of(scores).high == 0.0
        assert compare_scores(scores, scores).p_value == 1.0
        json.dumps(scores.summary())
    assert evaluate([], [], chunks=True).chunks == Rates(0, 0, 0)
    assert evaluate([[]], [[]]).exact == 1
    none = np.zeros(0, dtype=np.int64)
    assert evaluate_codes(none, none, np.array([0]), []).tokens == 0


@pytest.mark.parametrize(
    ("gold", "predicted", "said"),
    [
        ([["A"]], [], "1 sentences have gold labels and 0 predicted"),
        ([["A"], ["A"]], [["A"], ["A", "B"]], "sentence 1 has 1 gold labels and 2 predicted"),
        (
            [["A"], "AB"],
            [["A"], ["A", "B"]],
            "gold: example 1: y must be a list or 1-D array .* got 'AB'",
        ),
        (iter([["A"]]), [["A"]], "gold must be a list with a list of labels per sentence, got <list_iterator"),
        ([["A"]], [3], "predicted: example 0: y must be a list .* got 3"),
        ([["A", "B"]], [["A", []]], "predicted: example 0: labels must be hashable .* got list"),
    ],
)
def test_refused_lists(gold, predicted, said):
    with pytest.raises(ValueError, match=said):
        evaluate(gold, predicted)


@pytest.mark.parametrize(
    ("gold", "predicted", "sentences", "said"),
    [
        ([0, 2], [0, 0], [0, 2], "gold: token 1 has the label number 2, and there are 2 labels"),
        ([0, 1], [0, -1], [0, 2], "predicted: token 1 has the label number -1"),
        ([0, 1], [0], [0, 2], "2 tokens have gold labels and 1 predicted"),
        ([0, 1], [0, 0], [0, 1], "sentences must increase from 0 to the number of tokens, 2"),
        ([0, 1], [0, 0], [0, 2, 1, 2], "sentences must increase"),
        ([0.0, 1.0], [0, 0], [0, 2], "gold must be a vector of integers"),
        ([[0, 1]], [0, 0], [0, 2], "gold must be a vector of integers"),
    ],
)
def test_refused_codes(gold, predicted, sentences, said):
    with pytest.raises(ValueError, match=said):
        evaluate_codes(np.array(gold), np.array(predicted), np.array(sentences), ["A", "B"])
    with pytest.raises(ValueError, match="a label is repeated"):
        evaluate_codes(np.array([0]), np.array([0]), np.array([0, 1]), ["A", "A"])


def corpus(n, quality, seed):
    """Gold labels that do not depend on the seed, and predictions that do."""
    labels = np.array(IOB)
    gold = np.random.default_rng(0).integers(0, 5, (n, 9))
    rng = np.random.default_rng(seed)
    predicted = np.where(rng.random(gold.shape) < quality, gold, rng.integers(0, 5, gold.shape))
    return evaluate(labels[gold].tolist(), labels[predicted].tolist())


@pytest.mark.parametrize("measure", ["accuracy", "sentence_accuracy", "f1"])
def test_intervals_and_comparisons(measure):
    good, bad = corpus(200, 0.95, 1), corpus(200, 0.8, 2)
    around = interval_of(good, measure)
    assert around.low < getattr(good, measure) < around.high
    wider = interval_of(good, measure, level=0.99)
    assert wider.low <= around.low < around.high <= wider.high
    rng = np.random.default_rng(5)
    counts = good.counts(measure)
    drawn = counts[rng.integers(0, 200, (3000, 200))].sum(axis=1)
    low, high = np.quantile(drawn[:, 1] / drawn[:, 0], [0.025, 0.975])
    assert (around.low, around.high) == (pytest.approx(low, abs=0.006), pytest.approx(high, abs=0.006))
    versus = compare_scores(bad, good, measure)
    assert versus.difference == pytest.approx(getattr(good, measure) - getattr(bad, measure))
    assert 0 < versus.low < versus.difference < versus.high
    assert versus.p_value < 0.01
    assert compare_scores(good, bad, measure).difference == -versus.difference
    assert compare_scores(good, corpus(200, 0.95, 3), measure).p_value > 0.05
    assert compare_scores(good, good, measure).p_value == 1.0


def test_refused_comparisons():
    one, other = corpus(5, 0.9, 1), corpus(6, 0.9, 1)
    with pytest.raises(ValueError, match="the first system has 5 sentences and the second 6"):
        compare_scores(one, other)
    with pytest.raises(ValueError, match="sentence 1 has 2 tokens for the first and 1 for the second"):
        compare_scores(evaluate([["A"], ["A", "B"]], [["A"], ["A", "B"]]), evaluate([["A"], ["A"]], [["A"], ["A"]]))
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        interval_of(one, level=1.0)
    with pytest.raises(ValueError, match="resamples must be an integer >= 1"):
        interval_of(one, resamples=0)
    with pytest.raises(ValueError, match="measure must be one of accuracy"):
        interval_of(one, "aer")
