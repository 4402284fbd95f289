"""Edits with shifts of blocks are those that sacrebleu finds, one hypothesis at a time."""

from __future__ import annotations

import numpy as np
import pytest
import token_lists
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.tasks import _kernels

lib_ter = pytest.importorskip("sacrebleu.metrics.lib_ter", reason="sacrebleu is not installed")


def statistics(lists, threads=1):
    return token_lists.statistics(_kernels.ter_statistics, lists, threads)


def searched(tokens, references):
    """Fewest edits and mean length of the references, by sacrebleu's search."""
    edits = [lib_ter.translation_edit_rate(list(map(str, tokens)), list(map(str, gold)))[0] for gold in references]
    return [min(edits), sum(map(len, references)) / len(references)]


def expected(lists):
    return [searched(one, gold) for some, gold in lists for one in some]


def shifted(rng, gold, shifts, errors, types):
    """A reference with blocks moved and tokens removed, inserted and replaced."""
    one = list(gold)
    for _ in range(shifts):
        at, size = int(rng.integers(0, len(one) + 1)), int(rng.integers(1, 14))
        block = one[at : at + size]
        del one[at : at + size]
        to = int(rng.integers(0, len(one) + 1))
        one[to:to] = block
    for _ in range(errors):
        at = int(rng.integers(0, len(one) + 1))
        one[at : at + int(rng.integers(0, 3))] = rng.integers(0, types, size=int(rng.integers(0, 3))).tolist()
    return one


# Few types of words have many blocks in common.
sentences = st.lists(st.integers(0, 3), max_size=9) | st.lists(
    st.sampled_from([0, 1, 2, 3, 4, 5, 256, -1]), max_size=14
)


@given(
    st.lists(
        st.tuples(st.lists(sentences, max_size=3), st.lists(sentences, min_size=1, max_size=3)), min_size=1, max_size=4
    ),
    st.integers(1, 3),
)
def test_short_sequences(lists, threads):
    assert statistics(lists, threads) == expected(lists)


@given(st.permutations(range(9)), st.permutations(range(9)))
def test_permutations(one, two):
    """Nothing but shifts."""
    assert statistics([([one], [two])]) == expected([([one], [two])])


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_shifted_references(seed):
    rng = np.random.default_rng(seed)
    types = int(rng.choice([4, 10, 40]))
    gold = rng.integers(0, types, size=int(rng.integers(1, 28))).tolist()
    lists = [([shifted(rng, gold, int(rng.integers(0, 4)), int(rng.integers(0, 4)), types) for _ in range(2)], [gold])]
    assert statistics(lists) == expected(lists)


@pytest.mark.parametrize(
    ("size", "types", "shifts", "errors"),
    [
        (30, 3, 3, 3),  # the limit of the number of shifts that are tried
        (45, 12, 2, 2),
        (64, 300, 5, 3),
        (65, 300, 3, 10),
        (80, 300, 4, 70),  # paths at the border of the beam
        (130, 1000, 4, 6),  # blocks that are too far away
    ],
)
def test_long_sequences(size, types, shifts, errors):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        gold = rng.integers(0, types, size=size).tolist()
        lists = [([shifted(rng, gold, shifts, errors, types)], [gold])]
        assert statistics(lists) == expected(lists)


def test_likes_beyond_the_beam():
    """They are errors, though the Levenshtein distance is smaller, and too far away to be shifted."""
    block, some, others = list(range(70)), list(range(100, 151)), list(range(200, 251))
    lists = [([[*block, *some, 1000, 1001]], [[*others, *block, 1001, 1000]])]
    assert statistics(lists) == expected(lists) == [[122, 123]]
    assert token_lists.statistics(_kernels.error_statistics, lists) == [[103, 123]]


def test_references_of_more_than_a_thousand_tokens():
    """Whole tables are no longer searched there."""
    gold = list(range(1050))
    one = [*gold[:900], *gold[903:920], *gold[900:903], *gold[920:1040], *gold[1042:], 7]
    assert statistics([([one], [gold])]) == expected([([one], [gold])]) == [[4, 1050]]


def test_the_limit_of_shifts():
    """A thousand shifts are too many, one fewer are not; shifts to the same place count once."""
    exactly = "1311220011031023223122133", "2031023223122133013110011"
    repeated = "11112000021002101100221", "00021011002211111020100"
    lists = [([list(map(int, one))], [list(map(int, gold))]) for one, gold in (exactly, repeated)]
    assert [edits for edits, _ in statistics(lists)] == [edits for edits, _ in expected(lists)] == [9, 5]


@pytest.mark.parametrize("more", range(22, 29))
def test_paths_at_the_border_of_the_beam(more):
    """Where one side has so many tokens more, the best path of all leaves the beam or just does not."""
    extra = list(range(1000, 1000 + more))
    lists = []
    for one, gold in (
        ("73406657", "73406657"),
        ("7240555737557", "7557240555737"),
        ("77340126656715377165720253", "77340126656715377165720253"),
    ):
        tokens, other = list(map(int, one)), list(map(int, gold))
        lists += [([tokens], [extra + other]), ([tokens], [other + extra]), ([extra + other], [tokens])]
    assert statistics(lists) == expected(lists)


@pytest.mark.parametrize("place", [0, 1, 2, 50, 98, 99])
@pytest.mark.parametrize("size", [100, 101, 102, 106])
def test_wider_beams(place, size):
    """Two tokens in a reference of more than fifty times as many, where each stands near the border of its row."""
    gold = list(range(100, 100 + size))
    gold[place], gold[-1 - place // 2] = 0, 1
    lists = [([[0, 1], [1, 0], [0]], [gold])]
    assert statistics(lists) == expected(lists)


@pytest.mark.parametrize("sizes", [(1, 120), (2, 101), (2, 103), (3, 400), (120, 1), (200, 3), (7, 53), (49, 98)])
def test_very_different_lengths(sizes):
    rng = np.random.default_rng(sum(sizes))
    lists = [([rng.integers(0, 40, size=sizes[0]).tolist()], [rng.integers(0, 40, size=sizes[1]).tolist()])]
    assert statistics(lists) == expected(lists)


def test_empty_sequences_and_several_references():
    one, two = [1, 2, 3, 4], [3, 4, 1]
    lists = [([[], one], [[]]), ([[], one], [[], two]), ([[]], [one]), ([], [one]), ([one, two], [two, one, []])]
    assert statistics(lists) == expected(lists)
    assert statistics(lists)[:5] == [[0, 0], [4, 0], [0, 1.5], [2, 1.5], [4, 4]]


def test_threads_do_not_matter():
    rng = np.random.default_rng(0)
    lists = []
    for _ in range(60):
        gold = [rng.integers(0, 20, size=rng.integers(0, 60)).tolist() for _ in range(2)]
        lists.append(([shifted(rng, gold[0], 3, 3, 20) for _ in range(3)], gold))
    assert statistics(lists, 1) == statistics(lists, 4)


def test_bad_arguments_are_refused():
    empty, start = np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    with pytest.raises(ValueError, match="a row of statistics"):
        _kernels.ter_statistics(empty, start, empty, start, start, start, np.empty((0, 3)), 1)
    with pytest.raises(ValueError, match="offsets must rise"):
        _kernels.ter_statistics(empty, np.array([0, 1]), empty, start, start, start, np.empty((1, 2)), 1)
    with pytest.raises(ValueError, match="each list needs a reference"):
        _kernels.ter_statistics(empty, start, empty, start, np.array([0, 0]), np.array([0, 0]), np.empty((0, 2)), 1)
