"""Edit distances and the choice of references against the textbook's table."""

from __future__ import annotations

import numpy as np
import pytest
import token_lists
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.tasks import _kernels


def distance(one, two):
    """Levenshtein, row by row."""
    row = list(range(len(two) + 1))
    for i, a in enumerate(one, start=1):
        last, row[0] = row[0], i
        for j, b in enumerate(two, start=1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]


def best(tokens, references):
    """Errors and length for the smallest error rate."""
    found = [(distance(tokens, gold), len(gold)) for gold in references]
    return list(min(found, key=lambda one: 0.0 if not one[0] else one[0] / one[1] if one[1] else np.inf))


def statistics(lists, threads=1):
    return token_lists.statistics(_kernels.error_statistics, lists, threads)


# Small numbers and large ones are found in two ways.
tokens = st.sampled_from([0, 1, 255, 256, 70000, -1])
sentences = st.lists(tokens, max_size=12)


@given(
    st.lists(
        st.tuples(st.lists(sentences, max_size=4), st.lists(sentences, min_size=1, max_size=3)), min_size=1, max_size=5
    ),
    st.integers(1, 3),
)
def test_short_sequences(lists, threads):
    assert statistics(lists, threads) == [best(one, gold) for some, gold in lists for one in some]


@given(st.integers(0, 2**32 - 1))
def test_long_sequences(seed):
    """Around the borders of machine words, with equal and different ends."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice([1, 60, 63, 64, 65, 127, 128, 129, 200]))
    gold = rng.integers(0, int(rng.integers(2, 300)), size=size).tolist()
    hypotheses = []
    for _ in range(4):
        one = list(gold)
        for _ in range(int(rng.integers(0, 30))):
            at = int(rng.integers(0, len(one) + 1))
            one[at : at + int(rng.integers(0, 3))] = rng.integers(0, 300, size=int(rng.integers(0, 3))).tolist()
        hypotheses.append(one)
    hypotheses.append(rng.integers(0, 3, size=int(rng.integers(0, 150))).tolist())
    assert statistics([(hypotheses, [gold])]) == [[distance(one, gold), size] for one in hypotheses]


def test_choice_of_the_reference():
    two, four = [1, 2], [1, 2, 3, 4]
    assert statistics([([[1, 9]], [two, four])]) == [[1, 2]]
    assert statistics([([[1, 9, 9, 9]], [four, [1, 9, 5, 5]])]) == [[2, 4]]
    # All words are wrong in both: the first counts.
    assert statistics([([[7]], [two, four])]) == [[2, 2]]
    assert statistics([([[7]], [four, two])]) == [[4, 4]]
    # No errors are best, and errors in an empty reference worst.
    assert statistics([([[], [7, 7, 7]], [[1], []])]) == [[0, 0], [3, 1]]
    assert statistics([([[7, 7, 7]], [[], []])]) == [[3, 0]]


def test_threads_do_not_matter():
    rng = np.random.default_rng(0)
    lists = []
    for _ in range(50):
        gold = [rng.integers(0, 30, size=rng.integers(0, 80)).tolist() for _ in range(2)]
        lists.append(([rng.integers(0, 30, size=rng.integers(0, 80)).tolist() for _ in range(3)], gold))
    assert statistics(lists, 1) == statistics(lists, 4)


def test_bad_arguments_are_refused():
    empty, start = np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    with pytest.raises(ValueError, match="a row of statistics"):
        _kernels.error_statistics(empty, start, empty, start, start, start, np.empty((0, 3)), 1)
    with pytest.raises(ValueError, match="offsets must rise"):
        _kernels.error_statistics(empty, np.array([0, 1]), empty, start, start, start, np.empty((1, 2)), 1)
