"""Closeness of hypotheses by the n-grams that they share: by loops, and with any number of threads."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin.tasks import _kernels
from maxmargin.tasks.reranking.tuning import references


def dice(one: str, other: str) -> float:
    grams = []
    for text in (one, other):
        words = text.split()
        grams.append(Counter(tuple(words[k : k + n]) for n in range(1, 5) for k in range(len(words) - n + 1)))
    total = grams[0].total() + grams[1].total()
    return 2.0 * (grams[0] & grams[1]).total() / total if total else 1.0


@given(seed=st.integers(0, 10_000))
def test_closeness_by_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, size=5)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    texts = [" ".join(rng.choice(list("abcé"), size=rng.integers(0, 9))) for _ in range(offsets[-1])]
    good = rng.random(len(texts)) < 0.4
    good[offsets[:-1] + rng.integers(0, sizes)] = True
    found = references.nearest_by_texts(texts, offsets, good)
    for first, last in pairwise(offsets.tolist()):
        right = np.flatnonzero(good[first:last])
        for row in range(first, last):
            closest = right[np.argmax([dice(texts[row], texts[first + g]) for g in right])]
            assert found[row] == (row - first if good[row] else closest)


def test_closeness_in_pieces_and_threads(monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    offsets, texts = np.arange(0, 121, 6), [" ".join(rng.choice(list("abcd"), size=7)) for _ in range(120)]
    good = np.arange(120) % 3 == 0
    whole = references.nearest_by_texts(texts, offsets, good)
    monkeypatch.setattr(references, "_TEXTS", 20)
    for threads in (1, 4):
        with mm.threads(threads):
            np.testing.assert_array_equal(references.nearest_by_texts(texts, offsets, good), whole)
    rows, columns, counts = np.array([0, 1]), np.zeros(1, np.int32), np.ones(1)
    for marks, message in ((np.zeros(1, np.uint8), "a good row"), (np.ones(2, np.uint8), "one mark")):
        with pytest.raises(ValueError, match=message):
            _kernels.nearest_by_overlap(np.array([0, 1]), rows, columns, counts, marks, np.zeros(1, np.int64), 1)
