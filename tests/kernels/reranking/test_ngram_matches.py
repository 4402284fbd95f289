"""Statistics of n-grams against counters of Python; words and characters of strings against str.split."""

from __future__ import annotations

import itertools
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.tasks import _kernels


def packed(sequences):
    """Tokens and offsets."""
    flat = [token for one in sequences for token in one]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sequences])])
    return np.array(flat, dtype=np.int32), offsets.astype(np.int64)


def offsets(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def counted(tokens, n):
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def bleu_row(tokens, references, order):
    matches, totals = [], []
    for n in range(1, order + 1):
        most = Counter()
        for reference in references:
            most |= counted(reference, n)
        found = counted(tokens, n)
        matches.append((found & most).total())
        totals.append(found.total())
    closest = min((abs(len(reference) - len(tokens)), len(reference)) for reference in references)[1]
    return [*matches, *totals, len(tokens), closest]


def chrf_row(tokens, words, references, orders, beta):
    best, chosen = -1.0, None
    for gold, gold_words in references:
        row = []
        for have, want, order in ((tokens, gold, orders[0]), (words, gold_words, orders[1])):
            for n in range(1, order + 1):
                one, two = counted(have, n), counted(want, n)
                row += [one.total() if two else 0, two.total(), (one & two).total()]
        out = np.empty(1)
        _kernels.metric_quality(1, beta, np.array([row], dtype=np.float64), out, 1)
        if 100.0 * out[0] > best:
            best, chosen = 100.0 * out[0], row
    return chosen


sentences = st.lists(st.integers(0, 4), max_size=9)
lists = st.lists(
    st.tuples(st.lists(sentences, max_size=4), st.lists(sentences, min_size=1, max_size=3)), min_size=1, max_size=5
)


@given(lists, st.integers(1, 5), st.integers(1, 3))
def test_bleu_statistics(given_lists, order, threads):
    hypotheses = [one for some, _ in given_lists for one in some]
    references = [one for _, some in given_lists for one in some]
    out = np.full((len(hypotheses), 2 * order + 2), np.nan)
    sizes = offsets([len(some) for some, _ in given_lists]), offsets([len(some) for _, some in given_lists])
    _kernels.bleu_statistics(*packed(hypotheses), *packed(references), *sizes, order, out, threads)
    assert out.tolist() == [bleu_row(one, gold, order) for some, gold in given_lists for one in some]


@given(lists, lists, st.tuples(st.integers(0, 4), st.integers(0, 2)).filter(any), st.integers(1, 3))
def test_chrf_statistics(characters, words, orders, threads):
    n = min(len(characters), len(words))
    pairs = [
        (list(zip(*(one[0] for one in both), strict=False)), list(zip(*(one[1] for one in both), strict=False)))
        for both in zip(characters[:n], words[:n], strict=True)
    ]
    both = [[one[side] for some, _ in pairs for one in some] for side in (0, 1)]
    gold = [[one[side] for _, some in pairs for one in some] for side in (0, 1)]
    out = np.full((len(both[0]), 3 * sum(orders)), np.nan)
    sizes = offsets([len(some) for some, _ in pairs]), offsets([len(some) for _, some in pairs])
    _kernels.chrf_statistics(
        *packed(both[0]), *packed(gold[0]), *packed(both[1]), *packed(gold[1]), *sizes, *orders, 2.0, out, threads
    )
    assert out.tolist() == [chrf_row(*one, some, orders, 2.0) for texts, some in pairs for one in texts]


def test_long_sequences_of_many_tokens():
    rng = np.random.default_rng(0)
    reference = rng.integers(-(2**31), 2**31 - 1, size=3000).tolist()
    near = [token if keep else 7 for token, keep in zip(reference, rng.random(3000) < 0.9, strict=True)]
    out = np.empty((2, 10))
    _kernels.bleu_statistics(*packed([near, reference]), *packed([reference]), offsets([2]), offsets([1]), 4, out, 1)
    assert out.tolist() == [bleu_row(near, [reference], 4), bleu_row(reference, [reference], 4)]


def good():
    tokens, starts = packed([[1, 2], [3]])
    gold, gold_starts = packed([[1]])
    return [tokens, starts, gold, gold_starts, offsets([2]), offsets([1]), 2, np.empty((2, 6)), 1]


@pytest.mark.parametrize(
    ("at", "wrong", "message"),
    [
        (1, np.array([0, 2, 4]), "offsets must rise"),
        (3, np.array([1, 1]), "offsets must rise"),
        (4, np.array([0, 1]), "lists must rise from 0 to the number of hypotheses"),
        (4, np.array([0, 1, 2]), "the same lists"),
        (5, np.array([0, 2]), "lists must rise from 0 to the number of references"),
        (6, 0, "order must lie"),
        (7, np.empty((2, 5)), "a row of statistics"),
        (7, np.empty(12), "a row of statistics"),
    ],
)
def test_bad_arguments_are_refused(at, wrong, message):
    arguments = good()
    _kernels.bleu_statistics(*arguments)
    arguments[at] = wrong
    with pytest.raises(ValueError, match=message):
        _kernels.bleu_statistics(*arguments)


def test_a_list_without_references_is_refused():
    arguments = good()
    arguments[4:6] = np.array([0, 1, 2]), np.array([0, 1, 1])
    with pytest.raises(ValueError, match="each list needs a reference"):
        _kernels.bleu_statistics(*arguments)


texts = st.lists(st.text(st.characters() | st.sampled_from(" \t\u00a0\u2003.,()"), max_size=12), max_size=6)


def split(found):
    numbers, starts = (array.tolist() for array in found)
    return [numbers[begin:end] for begin, end in itertools.pairwise(starts)]


@given(texts, texts)
def test_words_are_those_of_split(some, more):
    table = _kernels.StringTable()
    numbers = split(_kernels.words_of_texts(table, some, False)) + split(_kernels.words_of_texts(table, more, False))
    words = [text.split() for text in some + more]
    known = {}
    assert numbers == [[known.setdefault(word, len(known)) for word in line] for line in words]
    assert [table.text(i).decode("utf-8", "surrogatepass") for i in range(len(table))] == list(known)


@given(texts)
def test_punctuation_is_split_off_once(some):
    table = _kernels.StringTable()
    numbers = split(_kernels.words_of_texts(table, tuple(some), True))
    marks = set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
    expected = []
    for text in some:
        line = []
        for word in text.split():
            if len(word) > 1 and word[-1] in marks:
                line += [word[:-1], word[-1]]
            elif len(word) > 1 and word[0] in marks:
                line += [word[0], word[1:]]
            else:
                line.append(word)
        expected.append(line)
    assert [[table.text(i).decode("utf-8", "surrogatepass") for i in line] for line in numbers] == expected


@given(texts, st.booleans())
def test_characters(some, blanks):
    found = split(_kernels.characters_of_texts(some, blanks))
    assert found == [list(map(ord, (" " if blanks else "").join(text.split()))) for text in some]


def test_white_space_is_that_of_python():
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    numbers, _ = _kernels.characters_of_texts(["".join(every)], False)
    assert numbers.tolist() == [ord(character) for character in every if not character.isspace()]


def test_what_is_not_a_string_is_refused():
    with pytest.raises(ValueError, match="text 1 is of type bytes; give strings"):
        _kernels.characters_of_texts(["a", b"b"], False)
    with pytest.raises(TypeError, match="give a list of strings"):
        _kernels.words_of_texts(_kernels.StringTable(), 3, False)
