"""Feature dictionaries to numbered attributes, against a walk in Python."""

from __future__ import annotations

import pickle
from collections import OrderedDict, defaultdict
from decimal import Decimal

import numpy as np
import pytest
from corpora import named_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.tasks.tagging import rows_of_items

from maxmargin.tasks.tagging import read_tagged
from maxmargin.tasks.tagging.encoder.attributes import AttributeVocabulary

names = st.one_of(st.sampled_from(["a", "b", "word", "a:b", "ünï", "日本", ""]), st.text(max_size=5))
values = st.recursive(
    st.one_of(names, st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 0.0, np.float32(1.5), np.int64(2)])),
    lambda inner: st.one_of(
        st.lists(names, max_size=3), st.sets(names, max_size=3), st.dictionaries(names, inner, max_size=3)
    ),
    max_leaves=6,
)
tokens = st.one_of(
    st.dictionaries(names, values, max_size=5), st.lists(names, max_size=4), st.sets(names, max_size=4), names
)
texts = st.lists(st.lists(tokens, max_size=4), max_size=4)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(texts, texts)
def test_attributes_are_those_of_the_walk(first, second):
    vocabulary = AttributeVocabulary()
    found = vocabulary.of_items(first, grow=True)
    expected = rows_of_items(first)
    assert named_rows(found, vocabulary) == expected
    assert found.lengths.tolist() == [len(sentence) for sentence in first]
    assert vocabulary.names == list(dict.fromkeys(name for row in expected for name in row))
    assert (found.values is None) == all(value == 1.0 for row in expected for value in row.values())
    known = set(vocabulary.names)
    size = len(vocabulary)
    seen = vocabulary.of_items(second)
    assert len(vocabulary) == size
    assert named_rows(seen, vocabulary) == [
        {name: value for name, value in row.items() if name in known} for row in rows_of_items(second)
    ]


def test_what_python_crfsuite_documents():
    vocabulary = AttributeVocabulary()
    token = {
        "key1": 0.25,
        "key2": "text",
        "key3": True,
        "gone": False,
        "key4": {"key5": ["x", "y"], "key6": 2},
        b"key7": b"bytes",
    }
    found = vocabulary.of_items([[token, ["foo", "bar"], {"bar": {"baz": 1}}]], grow=True)
    assert named_rows(found, vocabulary) == [
        {"key1": 0.25, "key2:text": 1, "key3": 1, "key4:key5:x": 1, "key4:key5:y": 1, "key4:key6": 2, "key7:bytes": 1},
        {"foo": 1, "bar": 1},
        {"bar:baz": 1},
    ]


def test_kinds_of_containers():
    vocabulary = AttributeVocabulary()
    sentence = (OrderedDict(a=1), defaultdict(float, a=2.0), frozenset("b"), ("a",), {"a": ("x", "y"), "d": Decimal(3)})
    found = vocabulary.of_items((s for s in [iter(sentence), [], np.array(["a", "b"], dtype=object)]), grow=True)
    assert found.lengths.tolist() == [5, 0, 2]
    assert named_rows(found, vocabulary) == [
        {"a": 1},
        {"a": 2},
        {"b": 1},
        {"a": 1},
        {"a:x": 1, "a:y": 1, "d": 3},
        {"a": 1},
        {"b": 1},
    ]


def test_repeated_attributes_add_up():
    vocabulary = AttributeVocabulary()
    found = vocabulary.of_items([[["a", "b", "a"], {"a:b": 2.0, "a": "b"}, {"c": 1.5, b"c": -1.5}]], grow=True)
    assert named_rows(found, vocabulary)[:2] == [{"a": 2, "b": 1}, {"a:b": 3}]


def test_no_sentences():
    vocabulary = AttributeVocabulary()
    for nothing in ([], (), iter([])):
        found = vocabulary.of_items(nothing, grow=True)
        assert (found.n_rows, found.n_columns, len(found.lengths)) == (0, 0, 0)
        assert found.matrix.shape == (0, 0)


def looped():
    one = {}
    one["a"] = one
    return one


class Odd:
    def __float__(self):
        raise RuntimeError("of its own")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[{}], [{}, None]], "sentence 1, token 1: expected a dictionary or a list of texts, got NoneType"),
        ([[{"a": None}]], "sentence 0, token 0: attribute 'a': .* got NoneType; leave it out"),
        ([[{"a": {"b": object()}}]], "attribute 'a:b': .* got object"),
        ([[{"a": float("nan")}]], "attribute 'a': the value is NaN"),
        ([[{"a": -np.inf}]], "NaN or infinite"),
        ([[{"a": 10**400}]], "too large"),
        ([[{"a": 1e308, b"a": 1e308}]], "sentence 0, token 0: .*add up to infinity"),
        ([[], [["b"], {"a": 1e308, b"a": 1e308}]], "sentence 1, token 1: .*add up to infinity"),
        ([[{1: "a"}]], "name of an attribute must be text, got int"),
        ([[{"a": ["b", 1]}]], "expected texts in a list, got int"),
        ([[{"a": {1}}]], "expected texts in a set, got int"),
        ([[["a", None]]], "expected texts in a list, got NoneType"),
        ([[{"a": "\ud800"}]], "sentence 0, token 0: .*lone surrogate"),
        ([[{"\udfff": "a"}]], "lone surrogate"),
        ([["\ud800"]], "lone surrogate"),
        ([[{"a": b"\xff"}]], "not UTF-8"),
        ([[3.0]], "got float"),
        ([[{}], "words"], "sentence 1: expected a list of tokens, got str"),
        ([{"a": 1}], "sentence 0: expected a list of tokens, got dict"),
        ([[], 4], "sentence 1: expected a list of tokens, got int"),
        (4, "expected a list of sentences, got int"),
        ([[looped()]], "nested too deeply"),
    ],
    ids=lambda value: None if isinstance(value, str) else "data",
)
def test_refused(data, message):
    vocabulary = AttributeVocabulary()
    vocabulary.of_items([[["known"]]], grow=True)
    new = [[[f"new{i}"] for i in range(5000)]]  # more than is numbered at once
    if isinstance(data, list):
        data = [*data, *new]
    with pytest.raises(ValueError, match=message):
        vocabulary.of_items(data, grow=True)
    assert vocabulary.names == ["known"]


def test_a_failure_after_much_was_numbered_leaves_the_vocabulary():
    vocabulary = AttributeVocabulary()
    vocabulary.of_items([[["known"]]], grow=True)
    with pytest.raises(ValueError, match="sentence 0, token 9000"):
        vocabulary.of_items([[*([f"new{i}"] for i in range(9000)), None]], grow=True)
    assert vocabulary.names == ["known"]


def test_errors_of_others_pass_through():
    def broken():
        yield [["a"]]
        raise KeyError("of the caller")

    with pytest.raises(KeyError):
        AttributeVocabulary().of_items(broken(), grow=True)
    with pytest.raises(RuntimeError, match="of its own"):
        AttributeVocabulary().of_items([[{"a": Odd()}]], grow=True)


def test_values_that_change_what_is_walked():
    token: dict = {}
    sentence = [token, {"b": 1.0}]

    class Clearing:
        def __float__(self):
            token.clear()
            sentence.clear()
            return 2.0

    token.update({"a" + str(i): 1.0 for i in range(5)}, changing=Clearing(), z=1.0)
    vocabulary = AttributeVocabulary()
    vocabulary.of_items([sentence], grow=True)
    assert "changing" in vocabulary.names


def test_cut_off():
    vocabulary = AttributeVocabulary()
    data = [[["a", "b"], ["b", "c"], {"c": 2.0}], [["a", "b", "b"]]]
    found = vocabulary.of_items(data, grow=True)
    assert found.counts().tolist() == [2, 3, 2]
    fewer, kept = vocabulary.cut(found, 3)
    assert fewer.names == ["b"]
    assert named_rows(kept, fewer) == [{"b": 1}, {"b": 1}, {}, {"b": 2}]
    again = fewer.of_items(data)
    assert np.array_equal(again.matrix.toarray(), kept.matrix.toarray())
    assert vocabulary.cut(found, 1) == (vocabulary, found)
    fewer, kept = vocabulary.cut(found, 3, known=1)
    assert fewer.names == ["a", "b"]
    assert named_rows(kept, fewer) == [{"a": 1, "b": 1}, {"b": 1}, {}, {"a": 1, "b": 2}]


@pytest.mark.parametrize("checked", [1, 3, 1 << 20])
def test_arrays_and_pickles(checked, monkeypatch):
    monkeypatch.setattr("maxmargin.tasks.tagging.encoder.attributes._CHECKED", checked)
    vocabulary = AttributeVocabulary()
    vocabulary.of_items([[["", "ü", "b", "日本"]]], grow=True)
    for again in (AttributeVocabulary.from_arrays(vocabulary.to_arrays()), pickle.loads(pickle.dumps(vocabulary))):
        assert again.names == ["", "ü", "b", "日本"]
        assert again.of_items([[["日本", "x"]]]).columns.tolist() == [3]


@pytest.mark.parametrize(
    ("text", "ends", "message"),
    [
        (b"ab", None, "has no array 'ends'"),
        (b"ab", np.array([1.0, 2.0]), "must be one-dimensional int64"),
        (b"aa", np.array([1, 2]), "different"),
        (b"ab", np.array([1, 3]), "end where the text does"),
        (b"\xff", np.array([1]), "save the model again"),
        ("ü".encode(), np.array([1, 2]), "inside a character"),
        ("aü".encode(), np.array([2, 3]), "inside a character"),
        (b"a\xffb", np.array([1, 2, 3]), "save the model again"),
    ],
)
def test_damaged_arrays(text, ends, message):
    arrays = {"text": np.frombuffer(text, dtype=np.uint8)}
    if ends is not None:
        arrays["ends"] = ends
    with pytest.raises(ValueError, match=message):
        AttributeVocabulary.from_arrays(arrays)


def test_sums_of_values_that_are_infinite(saved):
    path = saved("A\told\n\nA\tnew\tx:1e308\nB\ty:-1e308\tx:1\ty:-1e308\n")
    text = read_tagged(path, format="crfsuite").items
    vocabulary = AttributeVocabulary()
    vocabulary.of_items([["old"]], grow=True)
    with pytest.raises(ValueError, match="line 4: the values of 'y' are too large to be added; scale them down"):
        vocabulary.of_text(text, grow=True)
    assert vocabulary.names == ["old"]
    assert vocabulary.of_text(text).columns.tolist() == [0]
