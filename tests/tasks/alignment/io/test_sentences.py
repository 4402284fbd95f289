"""Sentence pairs however they are given, and with columns of one's own."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.tasks.alignment import Bitext, Prediction, Reference, SentencePair, as_links
from maxmargin.tasks.alignment.io.sentences import (
    alignable,
    as_pairs,
    as_references,
    extra_column,
    extra_names,
    learnable,
    read_annotated,
    require_extra,
    warn_of_long,
)
from maxmargin.tasks.common.files.text import words_of


def test_pairs():
    X = [("a b", ["c"]), SentencePair(("a",), " c \n"), (" ", []), ["x", "y"]]
    found = [(list(pair.source), list(pair.target)) for pair in as_pairs(X)]
    assert found == [(["a", "b"], ["c"]), (["a"], ["c"]), ([], []), (["x"], ["y"])]
    assert as_pairs([]) == []


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.text(st.one_of(st.characters(), st.sampled_from(" \t\n\v\f\r\x1c\x85\xa0\u2003\0\ud800")), max_size=12))
def test_strings_are_split_as_files_are(text):
    (pair,) = as_pairs([(text, "")])
    assert pair.source == [word for word in re.split(r"[ \t\n\v\f\r]+", text) if word]
    if not any(letter == "\0" or unicodedata.category(letter) == "Cs" for letter in text):
        assert pair.source == words_of(text.encode())


def test_anything_that_can_be_iterated():
    bitext = Bitext([["a", "b"], []], [["c"], ["d"]])
    assert list(bitext) == [(["a", "b"], ["c"]), ([], ["d"])]
    for given_pairs in (bitext, iter(bitext), (pair for pair in [("a b", "c"), ("", "d")])):
        assert [(pair.source, pair.target) for pair in as_pairs(given_pairs)] == list(bitext)


def test_references():
    own = Reference.of([(0, 1)], [(1, 1)])
    found = as_references([own, [(1, 0), (0, 0), (1, 0)], np.zeros((0, 2)), (), Prediction(as_links([(2, 2)]))], 5)
    assert found[0] is own
    assert [one.sure.tolist() for one in found[1:]] == [[[0, 0], [1, 0]], [], [], [[2, 2]]]
    assert all(one.possible.tolist() == one.sure.tolist() for one in found[1:])


@pytest.mark.parametrize(
    "links",
    [[0, 1], [(0, 1, 2)], [(0.0, 1.0)], [("0", "1")], [(True, False)], [(0, 1), (2,)], np.zeros((2, 3)), 3,
     [(0.5, 0)], [(0, 10**30)], [0, 0, 1, 1], np.zeros((2, 4)), "0:0", None],
)  # fmt: skip
def test_refused_links(links):
    with pytest.raises((TypeError, ValueError)):
        as_links(links)
    with pytest.raises(ValueError, match="sentence pair 1: a reference must be"):
        as_references([links], 1)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**62)), max_size=12), st.integers(0, 5))
def test_links_are_sorted_and_distinct(links, repeated):
    pairs = links + links[:repeated]
    found = as_links(pairs)
    assert found.dtype == np.int64
    assert list(map(tuple, found.tolist())) == sorted(set(links))
    both = Reference.of(pairs[:4], pairs[4:])
    assert list(map(tuple, both.sure.tolist())) == sorted(set(pairs[:4]))
    assert list(map(tuple, both.possible.tolist())) == sorted(set(pairs))


@pytest.mark.parametrize("form", [sp.csc_array, sp.coo_array, sp.dok_array, sp.dok_matrix])
def test_sparse_matrices_are_refused_without_a_look_at_their_rows(form):
    with pytest.raises(ValueError, match="links must be pairs"):
        as_links(form((2**40, 2)))


def test_columns():
    pairs = as_pairs(
        [
            SentencePair("a b", "x y z", {"o": [(1, 2), (0, 0)]}),
            SentencePair("a", "", {"o": []}),
            SentencePair("a", "x y", {"o": Prediction(np.array([[0, 1], [0, 0]]), np.array([0.25, 0.5]))}),
        ]
    )
    np.testing.assert_array_equal(extra_column(pairs, "o"), [1, 0, 0, 0, 0, 1, 0.5, 0.25])
    assert extra_column([], "o").shape == (0,)


@pytest.mark.parametrize(
    "links",
    [np.array([0.9, 1.2]), np.array([[0.0, 1.0]]), np.array([0, 1]), np.array([[0, 0, 1, 1]]), np.array([[0, -1]]),
     np.array([[True, False]]), [(0, 1), (1,)], [(-1, 0)], [(0, 0.5)], None],
)  # fmt: skip
def test_refused_columns(links):
    message = "dev pair 2, extra column 'o': links must be pairs"
    for column in (Prediction(links), links):
        with pytest.raises(ValueError, match=message):
            as_pairs([("a", "b"), SentencePair("a b", "x y", {"o": column})], "dev pair")


def test_different_columns():
    with_it, without = as_pairs([SentencePair("a", "x", {"o": []}), ("a", "x")])
    assert extra_names([with_it], [with_it]) == ("o",)
    with pytest.raises(
        ValueError, match=r"sentence pair 2 has the extra columns \[\], the first sentence pair \['o'\]"
    ):
        extra_names([with_it, without])
    with pytest.raises(ValueError, match=r"dev pair 1 has the extra columns \[\], the first sentence pair \['o'\]"):
        extra_names([with_it], [without])
    more = SentencePair("a", "x", {"o": [], "more": []})
    with pytest.raises(ValueError, match=r"sentence pair 2 has the extra columns \['more', 'o'\], the first"):
        extra_names([with_it, more])


def test_extra_columns_are_those_of_the_model():
    both, foo, none = (SentencePair("a", "x", dict.fromkeys(names, ())) for names in (("foo", "bar"), ("foo",), ()))
    require_extra([], ["foo"])
    require_extra([none, none], [])
    require_extra([foo], ["foo"])
    require_extra([both], ["bar", "foo"])
    with pytest.raises(ValueError, match=r"sentence pair 2: the model has no extra column 'bar'; it has: foo; omit"):
        require_extra([foo, both], ["foo"])
    with pytest.raises(ValueError, match=r"sentence pair 2: the model has no extra column 'foo'; it has none; omit"):
        require_extra([none, foo], [])
    reported = (
        r"sentence pair 2 has no extra column 'bar', .* give its links: extra=\{'bar': \.\.\.\}, .* --extra bar=FILE"
    )
    with pytest.raises(ValueError, match=reported):
        require_extra([both, foo], ["bar", "foo"])


def test_long_pairs():
    pairs = as_pairs([("a " * 1001, "x"), ("a", "x"), SentencePair("a", "x " * 1001, {"o": [(0, 1000)]})])
    short = alignable(pairs)
    assert [(len(pair.source), len(pair.target)) for pair in short] == [(0, 0), (1, 1), (0, 0)]
    np.testing.assert_array_equal(extra_column(short[2:], "o"), [])
    kept = learnable(pairs, [Reference.of([(0, 0)])] * 3)
    assert [len(one.sure) for one in kept] == [0, 1, 0]


def test_the_warning_of_long_pairs_counts_them():
    pairs = as_pairs([("a", "x"), ("a " * 1001, "x"), ("a", "x " * 1001)])
    with pytest.warns(UserWarning, match=r"sentence pair 2 has .* gets no links \(2 such pairs\); split it"):
        warn_of_long(pairs)
    with pytest.warns(UserWarning, match=r"sentence pair 2 has .* is not learned from \(1 such pair\); split it"):
        warn_of_long(pairs[:2], "is not learned from")
    warn_of_long(pairs[:1])


def test_annotated_pairs_with_bad_links(tmp_path):
    """Left out with a warning; the extra links of the others stay theirs. Sentences beyond the last one, too."""
    both, gold, extra = (tmp_path / name for name in ("both", "gold", "extra"))
    both.write_text("a b ||| c d\ne ||| f\ng ||| h\n", encoding="utf-8")
    extra.write_text("1-1\n0-0\n\n", encoding="utf-8")
    gold.write_text("1 1 1 S\n1 3 1 S\n2 1 1 P\n3 1 1 S\n9 1 1 S\n", encoding="utf-8")
    with pytest.raises(ValueError, match="sentence 9 of 3"):
        read_annotated(both, None, gold)
    with pytest.warns(UserWarning, match="2 links outside the sentences; 1 pair left out; the first is pair 1"):
        pairs, references = read_annotated(both, None, gold, extra={"x": extra}, skip_bad=True)
    assert [pair.source for pair in pairs] == [["e"], ["g"]]
    assert [len(one.sure) for one in references] == [0, 1]
    assert [len(pair.extra["x"].links) for pair in pairs] == [1, 0]
