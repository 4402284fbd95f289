"""Words: normalization, vocabularies, and the arrays of their files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.tasks.alignment.translation.words import DistinctWords, WordVocabulary, normalize, shape


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("House", "house"),
        ("1,234.5", "1,234.5"),
        ("36E", "36e"),
        ("École", "école"),
        ("E\u0301cole", "école"),
        ("Straße", "strasse"),
        ("", ""),
        (".", "."),
    ],
)
def test_normalize(word, expected):
    assert normalize(word) == expected


@pytest.mark.parametrize(
    ("word", "expected"), [("1,234.5", "0,000.0"), ("36e", "00e"), ("1998", "0000"), ("٣", "0"), ("maison", "maison")]
)
def test_shape(word, expected):
    assert shape(word) == expected


def test_numbers_are_distinct_words_with_common_stems():
    words = DistinctWords(["1998", "1997", "12", "Maisons", "maison"])
    assert words.forms(0)[1] == ["1998", "1997", "12", "maisons", "maison"]
    assert words.forms(4)[1] == ["0000", "00", "mais"]
    assert words.spelling.normalized.tolist() == [0, 0, 1, 2, 3]


@settings(deadline=None, derandomize=True, max_examples=500)
@given(st.text(max_size=8))
def test_normalizing_twice_changes_nothing(word):
    once = normalize(word)
    assert normalize(once) == once


def test_words_are_numbered():
    vocabulary = WordVocabulary(["c", "a", "b"], np.array([3, 2, 1]))
    assert vocabulary.index == {"c": 0, "a": 1, "b": 2}
    assert len(vocabulary) == 3


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.text(max_size=6), max_size=20, unique=True))
def test_arrays_and_back(words):
    vocabulary = WordVocabulary(words, np.arange(len(words)))
    again = WordVocabulary.from_arrays(vocabulary.arrays())
    assert again.words == vocabulary.words
    np.testing.assert_array_equal(again.counts, vocabulary.counts)


def test_odd_words_travel():
    words = ["", "\ud800", "中文", "\x00"]
    arrays = WordVocabulary(words, np.ones(4, dtype=np.int64)).arrays()
    assert WordVocabulary.from_arrays(arrays).words == words


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": None}, "has no array 'text'"),
        ({"text": np.zeros(3)}, "text of the vocabulary must be one-dimensional uint8"),
        ({"offsets": np.array([0, 1], dtype=np.int64)}, "offsets of the vocabulary do not fit"),
        ({"offsets": np.array([0, 9, 3], dtype=np.int64)}, "offsets of the vocabulary do not fit"),
        ({"offsets": np.array([1, 2, 3], dtype=np.int64)}, "offsets of the vocabulary do not fit"),
        ({"offsets": np.zeros(0, dtype=np.int64), "counts": np.zeros(0, dtype=np.int64)}, "do not fit"),
        ({"counts": np.array([1], dtype=np.int64)}, "offsets of the vocabulary do not fit"),
        ({"counts": np.array([1, -1], dtype=np.int64)}, "negative counts"),
        ({"text": np.full(3, 255, dtype=np.uint8)}, "not UTF-8"),
        ({"text": np.frombuffer(b"aaa", dtype=np.uint8), "offsets": np.array([0, 2, 3])}, None),
        ({"text": np.frombuffer(b"aa", dtype=np.uint8), "offsets": np.array([0, 1, 2])}, "a word twice"),
    ],
)
def test_damaged_arrays_are_refused(change, message):
    arrays = {**WordVocabulary(["ab", "c"], np.array([2, 1])).arrays(), **change}
    arrays = {name: value for name, value in arrays.items() if value is not None}
    if message is None:
        assert WordVocabulary.from_arrays(arrays).words == ["aa", "a"]
        return
    with pytest.raises(ValueError, match=message):
        WordVocabulary.from_arrays(arrays)
