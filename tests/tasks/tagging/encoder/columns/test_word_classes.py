"""Classes of words against a slow twin, and what cross-fitting hides."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.tasks.common.tokens.table import TokenTable
from maxmargin.tasks.tagging.encoder.columns.word_classes import ENDINGS, NO_CLASS, RARE, SHARE, WordClasses

LABELS = ("N", "V", "D")

words = st.one_of(
    st.sampled_from(
        ["the", "The", "Run", "run", "runs", "RUNS", "nations", "stations", "Straße", "日本", "", "İ", "\0"]
    ),
    st.text(max_size=5),
)
tokens = st.tuples(words, st.integers(-1, len(LABELS) - 1))
texts = st.lists(st.lists(tokens, max_size=7), max_size=8)


def split(text):
    table = TokenTable.of_lists([[word for word, _ in sentence] for sentence in text], ("word",))
    return table, (np.array([code for sentence in text for _, code in sentence], dtype=np.int32), LABELS)


def ending_keys(word):
    kind, lower = "X" if word[:1].isupper() else "x", word.lower()
    return [kind + lower[len(lower) - size :] for size in range(min(ENDINGS, len(lower) - 1), -1, -1)]


def slow(text):
    """A function from words to classes, by counting one token after the other."""
    by_word, by_ending = defaultdict(Counter), defaultdict(Counter)
    labeled = [token for sentence in text for token in sentence if token[1] >= 0]
    for word, code in labeled:
        by_word[word.lower()][code] += 1
    for word, code in labeled:
        if by_word[word.lower()].total() <= RARE:
            for key in ending_keys(word):
                by_ending[key][code] += 1

    def class_of(word):
        counts = by_word.get(word.lower())
        if counts:
            return " ".join(LABELS[code] for code in sorted(counts) if counts[code] >= SHARE * counts.total())
        for key in ending_keys(word):
            if key in by_ending and by_ending[key].total() >= RARE:
                return NO_CLASS + LABELS[min(by_ending[key], key=lambda code: (-by_ending[key][code], code))]
        return NO_CLASS

    return class_of


@settings(deadline=None, derandomize=True, max_examples=150)
@given(texts, texts)
def test_classes_are_those_of_counting(text, new):
    table, labels = split(text)
    classes = WordClasses.learn(table, labels)
    class_of = slow(text)
    found = classes.columns(split(new)[0], name="kind")
    assert found.columns == ("word", "kind")
    assert found.cells(0) == [word for sentence in new for word, _ in sentence]
    assert found.cells(1) == [class_of(word) for sentence in new for word, _ in sentence]
    back = WordClasses.from_arrays(classes.to_arrays(), classes.names, classes.source)
    assert back.columns(found).cells(2) == found.cells(1)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(texts, st.integers(2, 5))
def test_classes_across_folds_are_those_of_the_other_folds(text, folds):
    table, labels = split(text)
    found = WordClasses.crossed(table, labels, folds=folds).by_sentence(1)
    n = len(text)
    for k in range(folds):
        first, last = k * n // folds, (k + 1) * n // folds
        class_of = slow(text[:first] + text[last:])
        assert found[first:last] == [[class_of(word) for word, _ in sentence] for sentence in text[first:last]]


def test_a_sentence_does_not_see_its_own_labels():
    text = [[("run", 1), ("run", 1)], [("dog", 0)], [("run", 0)]]
    table, (codes, names) = split(text)
    other = codes.copy()
    other[:2] = 2
    assert WordClasses.crossed(table, (codes, names), folds=3).by_sentence(1)[0] == ["N", "N"]
    assert WordClasses.crossed(table, (other, names), folds=3).by_sentence(1)[0] == ["N", "N"]


def test_seldom_labels_are_left_out_and_unknown_words_go_by_their_ending():
    text = [[("saw", 0)] * 11 + [("saw", 1)], [(f"{letter}ation", 0) for letter in "abcdef"]]
    classes = WordClasses.learn(*split(text))
    new = TokenTable.of_lists([["Saw", "nation", "Nation", "zzz"]], ("word",))
    assert classes.columns(new).cells(1) == ["N", "?N", "?", "?N"]
    assert repr(classes) == "WordClasses(7 words, 3 classes)"


def test_empty_texts_have_no_classes():
    empty, labels = split([])
    classes = WordClasses.learn(empty, labels)
    assert classes.columns(TokenTable.of_lists([["a"]], ("word",))).cells(1) == [NO_CLASS]
    assert WordClasses.crossed(empty, labels).columns == ("word", "class")
    one, labels = split([[("a", 0)]])
    assert WordClasses.crossed(one, labels).cells(1) == [NO_CLASS]


def test_lines_and_file_names_stay():
    table, labels = split([[("a", 0)], [("b", 1)]])
    table = replace(table, lines=np.array([3, 5]), source="train.txt")
    found = WordClasses.crossed(table, labels)
    assert found.where(1) == "train.txt, line 5"


def test_bad_input_is_refused():
    table, (codes, names) = split([[("a", 0), ("b", 1)]])
    with pytest.raises(ValueError, match=r"whole numbers of shape \(2,\), got int32 \(1,\)"):
        WordClasses.learn(table, (codes[:1], names))
    with pytest.raises(ValueError, match="got float64"):
        WordClasses.learn(table, (np.zeros(2), names))
    with pytest.raises(ValueError, match="sentence 0, token 1: label 1 of 1; give -1"):
        WordClasses.crossed(table, (codes, names[:1]))
    with pytest.raises(ValueError, match="no column 'form'"):
        WordClasses.learn(table, (codes, names), source="form")
    with pytest.raises(ValueError, match="folds is 1; give 2 or more"):
        WordClasses.crossed(table, (codes, names), folds=1)
    with pytest.raises(ValueError, match="there is already a column 'word'"):
        WordClasses.learn(table, (codes, names)).columns(table, name="word")


@pytest.mark.parametrize("key", ["words.text", "words.ends", "endings.text", "word_classes", "ending_classes"])
def test_damaged_arrays_are_refused(key):
    classes = WordClasses.learn(*split([[(f"{letter}ation", 0) for letter in "abcdef"]]))
    arrays = classes.to_arrays()
    for damaged in (None, arrays[key][:-1], arrays[key].astype(np.float64)):
        broken = {**arrays, key: damaged}
        if damaged is None:
            del broken[key]
        with pytest.raises(ValueError):
            WordClasses.from_arrays(broken, classes.names)
    if key.endswith("classes"):
        with pytest.raises(ValueError, match="a class without a name"):
            WordClasses.from_arrays({**arrays, key: arrays[key] + 5}, classes.names)
    with pytest.raises(ValueError, match="the word classes have no names"):
        WordClasses.from_arrays(arrays, ())
