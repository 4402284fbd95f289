from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.reranking.metrics.gains import Gains
from maxmargin.tasks.reranking.tuning.base import TuningLists
from maxmargin.tasks.reranking.tuning.decoder import decoder_weights, sized

WEIGHTS = np.array([1.0, -0.5, 3.0])


def sorted_lists(scale: FloatArray, digits: int = 12, seed: int = 0) -> tuple[FloatArray, IntArray]:
    """Lists in the order of hidden weights, with features rounded as files have them."""
    rng = np.random.default_rng(seed)
    pieces = []
    for _ in range(30):
        rows = rng.normal(size=(rng.integers(1, 20), 3)) / WEIGHTS
        pieces.append(np.round(rows[np.argsort(-rows @ WEIGHTS, kind="stable")], digits) * scale)
    return np.concatenate(pieces), offsets_of([len(one) for one in pieces])


@pytest.mark.parametrize("scale", [np.ones(3), np.array([1e-6, 1.0, 1e5])])
@pytest.mark.parametrize("digits", [12, 2])
def test_the_order_of_lists_tells_the_weights(scale: FloatArray, digits: int) -> None:
    rows, offsets = sorted_lists(scale, digits)
    found = decoder_weights(rows, offsets)
    assert found is not None
    found = found * scale
    np.testing.assert_allclose(found / found[0], WEIGHTS, rtol=0.1)


def test_total_scores_tell_the_weights_exactly() -> None:
    rows, offsets = sorted_lists(np.ones(3))
    rng = np.random.default_rng(1)
    shuffled = rng.permutation(len(rows))  # the order does not matter then
    totals = rows[shuffled] @ WEIGHTS + np.repeat(
        rng.normal(size=30), np.diff(offsets)
    )  # nor does a constant of a list
    np.testing.assert_allclose(decoder_weights(rows[shuffled], offsets, totals), WEIGHTS, rtol=1e-9)


def test_lists_in_no_order_tell_nothing() -> None:
    rows, offsets = sorted_lists(np.ones(3))
    rng = np.random.default_rng(0)
    assert decoder_weights(rows[rng.permutation(len(rows))], offsets) is None
    assert decoder_weights(rows, offsets, rng.normal(size=len(rows))) is None
    assert decoder_weights(np.zeros((4, 2)), np.array([0, 2, 4])) is None
    assert decoder_weights(np.eye(4), np.array([0, 4]), np.array([1e308, -1e308, 0.0, 1.0])) is None
    assert decoder_weights(np.ones((2, 1)), np.array([0, 1, 2])) is None
    assert decoder_weights(np.zeros((4, 0)), np.array([0, 4])) is None


def test_the_size_minimizes_the_hinge_loss() -> None:
    rng = np.random.default_rng(2)
    rows, offsets = rng.normal(size=(60, 2)), np.arange(0, 61, 6)
    gains = Gains(rows @ [1.0, 0.5] + 0.3 * rng.normal(size=60))
    lists = TuningLists(offsets, rows, gains.statistics([""] * 60, [], np.zeros(60)), gains, np.zeros(2, dtype=np.int8))

    def hinge(weights: FloatArray) -> float:
        total = 0.0
        for first, last in pairwise(offsets):
            quality, scores = gains.values[first:last], rows[first:last] @ weights
            best = quality.argmax()
            total += (quality[best] - quality + scores - scores[best]).max()
        return total

    direction = np.array([1.0, 0.7])
    found = sized(37.0 * direction, lists)
    np.testing.assert_allclose(found / found[0], direction)
    best = min(hinge(size * direction) for size in np.exp(np.linspace(-4, 4, 2001)))
    assert hinge(found) <= best * (1 + 1e-3)
