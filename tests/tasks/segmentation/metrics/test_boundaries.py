"""Boundary F against all pairs of boundary pixels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from skimage.segmentation import find_boundaries

from maxmargin.tasks.segmentation.metrics.boundaries import boundary, boundary_scores

SHAPES = st.sampled_from([(1, 1), (5, 7), (9, 4), (3, 4, 5)])
LABELS = SHAPES.flatmap(
    lambda shape: st.tuples(
        hnp.arrays(np.int64, shape, elements=st.integers(-1, 2)),
        hnp.arrays(np.int64, shape, elements=st.integers(-1, 2)),
    )
)


def boundary_by_loops(labels, label, inside):
    found = set()
    for at in np.ndindex(labels.shape):
        for axis, step in itertools.product(range(labels.ndim), (-1, 1)):
            other = tuple(index + step * (one == axis) for one, index in enumerate(at))
            if not all(0 <= index < length for index, length in zip(other, labels.shape, strict=True)):
                continue
            if labels[at] == label and labels[other] != label and inside[at] and inside[other]:
                found.add(at)
    return found


def scores_by_pairs(gold, predicted, label, tolerance):
    inside = gold >= 0
    wanted, found = boundary_by_loops(gold, label, inside), boundary_by_loops(predicted, label, inside)
    if not wanted and not found:
        return (np.nan,) * 3
    within = tolerance * np.sqrt(sum(length**2 for length in gold.shape))

    def share(these, those):
        near = [
            any(np.sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True))) <= within for q in those) for p in these
        ]
        return sum(near) / len(near) if near else 0.0

    precision, recall = share(found, wanted), share(wanted, found)
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total else 0.0


@given(LABELS, st.sampled_from([0.0, 0.12, 0.2]))
def test_against_all_pairs(pair, tolerance):
    gold, predicted = pair
    found = boundary_scores(gold, predicted, 3, tolerance=tolerance)
    expected = [scores_by_pairs(gold, predicted, label, tolerance) for label in range(3)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_boundary_is_the_inner_one():
    labels = np.zeros((20, 30), dtype=int)
    labels[5:12, 8:20] = 1
    everywhere = np.ones(labels.shape, dtype=bool)
    np.testing.assert_array_equal(boundary(labels, 1, everywhere), find_boundaries(labels, mode="inner", background=0))


def test_a_shift_within_the_tolerance():
    gold = np.zeros((300, 400), dtype=int)  # the diagonal is 500, the tolerance 3.75
    gold[100:200, 100:250] = 1
    for shift, expected in [(0, 1.0), (3, 1.0), (4, None)]:
        scores = boundary_scores(gold, np.roll(gold, shift, axis=1), 2)
        if expected is None:
            assert 0.3 < scores[1, 2] < 0.9  # upper and lower sides still match
        else:
            assert scores[:, 2].tolist() == [expected] * 2


def test_only_one_has_a_boundary():
    gold, flat = np.zeros((8, 8), dtype=int), np.zeros((8, 8), dtype=int)
    gold[2:4] = 1
    assert boundary_scores(gold, flat, 2).tolist() == [[0.0] * 3] * 2
    assert boundary_scores(flat, gold, 2).tolist() == [[0.0] * 3] * 2
    assert np.isnan(boundary_scores(flat, flat, 2)).all()
    void = np.full((8, 8), -1)
    assert np.isnan(boundary_scores(void, gold, 2)).all()


@pytest.mark.parametrize("shape", [(40, 50), (6, 20, 20)])
def test_perfect_predictions(shape):
    gold = np.random.default_rng(0).integers(0, 3, shape)
    assert (boundary_scores(gold, gold, 3) == 1.0).all()
