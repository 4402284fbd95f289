"""Classes of words: compiled passes and merges against slow twins; wrong arguments."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from maxmargin.tasks import _kernels
from maxmargin.tasks.tagging.encoder.columns.word_clusters import _merges, _neighbors


def f(x: float) -> float:
    return x * math.log(x) if x > 0 else 0.0


def objective(counts: np.ndarray) -> float:
    """Return the log-likelihood of the bigram model of classes, without what depends on the words alone."""
    return sum(f(x) for x in counts.flat) - sum(f(x) for x in counts.sum(0)) - sum(f(x) for x in counts.sum(1))


def class_counts(row: list[int], classes: np.ndarray, k: int) -> np.ndarray:
    counts = np.zeros((k, k))
    for first, second in pairwise(row):
        counts[classes[first], classes[second]] += 1
    return counts


def slow_pass(row: list[int], classes: np.ndarray, n_free: int, k_free: int, k: int) -> int:
    """Put each word where the whole objective is largest."""
    moved = 0
    for word in range(n_free):
        own, scores = classes[word], []
        for c in range(k_free):
            classes[word] = c
            scores.append(objective(class_counts(row, classes, k)))
        best = own
        for c in range(k_free):
            if scores[c] > scores[best] + 1e-8:
                best = c
        classes[word] = best
        moved += best != own
    return moved


def slow_merges(counts: np.ndarray, k_free: int) -> list[list[int]]:
    """Merge the pair that keeps the whole objective largest."""
    counts, alive, pairs = counts.astype(float), list(range(k_free)), []
    while len(alive) > 1:
        best: tuple[float, int, int, np.ndarray] | None = None
        for at, a in enumerate(alive):
            for b in alive[at + 1 :]:
                merged = counts.copy()
                merged[a] += merged[b]
                merged[b] = 0
                merged[:, a] += merged[:, b]
                merged[:, b] = 0
                score = objective(merged)
                if best is None or score > best[0] + 1e-8:
                    best = score, a, b, merged
        assert best is not None
        counts = best[3]
        alive.remove(best[2])
        pairs.append([best[1], best[2]])
    return pairs


def some_text(seed: int, n: int, sentences: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 7, size=sentences)
    habit = rng.dirichlet(np.full(n + 2, 0.3), size=n + 2)
    habit[:, n] = 0.0  # the boundary
    places, bounds = [], [0]
    for length in lengths:
        word = int(rng.integers(n))
        for _ in range(length):
            word = int(rng.choice(n + 2, p=habit[word] / habit[word].sum()))
            places.append(word)
        bounds.append(len(places))
    return np.array(places, dtype=np.int32), np.array(bounds)


@pytest.mark.parametrize("seed", range(6))
def test_passes_and_merges_are_those_of_the_slow_twins(seed):
    n, k = 9, 4
    places, sentences = some_text(seed, n, 40)
    row = [n]
    for first, last in pairwise(sentences):
        row += [*places[first:last].tolist(), n] if first < last else []
    after, before = _neighbors(places, sentences, n)
    classes = np.concatenate([np.arange(n) % k, [k, k + 1]]).astype(np.int32)
    twin = classes.copy()
    for _ in range(3):
        moved = _kernels.exchange_words(*after, *before, k + 2, 2, n, classes)
        assert moved == slow_pass(row, twin, n, k, k + 2)
        np.testing.assert_array_equal(classes, twin)
    counts = class_counts(row, twin, k + 2)
    assert _merges(after, classes, k).tolist() == slow_merges(counts, k)
    # Every word alone: the tree of words that Brown's method finds.
    alone = np.arange(n + 2, dtype=np.int32)
    assert _merges(after, alone, n).tolist() == slow_merges(class_counts(row, alone, n + 2), n)


def test_wrong_arguments_of_the_kernels():
    n, k = 5, 2
    after, before = _neighbors(*some_text(0, n, 9), n)
    classes = np.array([0, 1, 0, 1, 0, 2, 3], dtype=np.int32)
    with pytest.raises(ValueError, match="or one that is fixed"):
        _kernels.exchange_words(*after, *before, k + 2, 2, n + 1, classes)
    with pytest.raises(ValueError, match="both directions must have the same neighbors"):
        _kernels.exchange_words(*after, before[0], before[1], before[2] + 1, k + 2, 2, n, classes)
    with pytest.raises(ValueError, match="n_classes must be between 1 and 4096, got 5000"):
        _kernels.exchange_words(*after, *before, 5000, 2, n, classes)
    with pytest.raises(ValueError, match="counts must not be negative"):
        _kernels.merge_classes(np.full((3, 3), -1), 1, np.zeros(2, dtype=np.int32))
