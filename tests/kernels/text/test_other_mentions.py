"""Other mentions of names against a slow twin, and in a long text."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.tasks import _kernels


def slow(sentences, window, most=32, longest=6):
    """Return the other mention of each token: its token, and the first and last one of its name."""
    flat = [(i, j) for i, words in enumerate(sentences) for j in range(len(words))]

    def name(i, j):
        first = last = j
        while first and sentences[i][first - 1][0].isupper():
            first -= 1
        while last + 1 < len(sentences[i]) and sentences[i][last + 1][0].isupper():
            last += 1
        return first, last

    found = []
    for i, j in flat:
        word = sentences[i][j]
        same = [p for p in flat if sentences[p[0]][p[1]].lower() == word.lower() and sentences[p[0]][p[1]][0].isupper()]
        near = [p for p in same if p < (i, j)][-most:] + [p for p in same if p > (i, j)][:most]
        near = [p for p in near if abs(p[0] - i) <= window and (p[0] != i or name(*p) != name(i, j))]
        if not word[0].isupper() or not near:
            found.append((-1, -1, -1))
            continue
        sizes = {p: min(name(*p)[1] - name(*p)[0] + 1, longest) for p in near}
        best = min(near, key=lambda p: (-sizes[p], abs(p[0] - i), p))
        found.append(tuple(flat.index((best[0], at)) for at in (best[1], *name(*best))))
    return found


words = st.lists(st.sampled_from(["A", "a", "B", "b", "C", "of"]), max_size=9)


@settings(max_examples=60, deadline=None)
@given(st.lists(words, min_size=1, max_size=8), st.integers(0, 4))
def test_kernel_against_a_slow_twin(sentences, window):
    flat = [word for one in sentences for word in one]
    places = {word: at for at, word in enumerate(["a", "b", "c", "of"])}
    found = np.empty((3, len(flat)), dtype=np.int64)
    _kernels.other_mentions(
        np.cumsum([0, *map(len, sentences)]),
        np.array([places[word.lower()] for word in flat], dtype=np.int32),
        np.array([word[0].isupper() for word in flat], dtype=np.bool_),
        len(places),
        window,
        *found,
    )
    assert [tuple(row) for row in found.T.tolist()] == slow(sentences, window)


def test_many_mentions_take_linear_time():
    found = np.empty((3, 300_000), dtype=np.int64)
    arguments = np.array([0, 300_000]), np.zeros(300_000, dtype=np.int32), np.arange(300_000) % 3 < 2
    _kernels.other_mentions(*arguments, 1, 1, *found)
    assert found[0, 0] == 3  # of the nearest 32
