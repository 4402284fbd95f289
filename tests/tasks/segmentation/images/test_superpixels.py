"""Regions and their neighborhoods, against loops over pixels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.tasks.segmentation.images import superpixels


def brute_force(labels, connectivity, along):
    """Boundary lengths and mean gradients by a loop over all pairs of neighboring pixels."""
    steps = [s for s in product((-1, 0, 1), repeat=labels.ndim) if any(s)]
    if connectivity == 2 * labels.ndim:
        steps = [s for s in steps if sum(map(abs, s)) == 1]
    found = {}
    for here in np.ndindex(labels.shape):
        for step in steps:
            there = tuple(np.add(here, step))
            if here < there and all(0 <= t < n for t, n in zip(there, labels.shape, strict=True)):
                pair = tuple(sorted((int(labels[here]), int(labels[there]))))
                found.setdefault(pair, []).append(0.5 * (along[here] + along[there]))
    return found


@st.composite
def label_images(draw):
    shape = draw(st.sampled_from([(1, 1), (1, 7), (6, 1), (4, 5), (2, 3, 4), (1, 2, 2)]))
    seed = draw(st.integers(0, 2**16))
    many = draw(st.booleans())
    return np.random.default_rng(seed).integers(0, 5, size=shape), 3 ** len(shape) - 1 if many else 2 * len(shape), seed


@given(label_images())
def test_adjacency_is_that_of_a_loop_over_pixels(drawn):
    labels, connectivity, seed = drawn
    labels = superpixels.consecutive(labels)
    along = np.random.default_rng(seed).random(labels.shape).astype(np.float32)
    expected = {p: v for p, v in brute_force(labels, connectivity, along).items() if p[0] != p[1]}
    found = superpixels.adjacency(labels, connectivity, along)
    assert list(map(tuple, found.edges.tolist())) == sorted(expected)
    np.testing.assert_array_equal(found.length, [len(expected[p]) for p in sorted(expected)])
    np.testing.assert_allclose(found.along, [np.mean(expected[p]) for p in sorted(expected)], rtol=1e-5)


@given(label_images())
def test_pixel_adjacency_is_that_of_a_loop_over_pixels(drawn):
    labels, connectivity, seed = drawn
    numbers = np.arange(labels.size).reshape(labels.shape)
    along = np.random.default_rng(seed).random(labels.shape).astype(np.float32)
    expected = brute_force(numbers, connectivity, along)
    found = superpixels.pixel_adjacency(labels.shape, connectivity, along)
    pairs = list(map(tuple, found.edges.tolist()))
    assert sorted(pairs) == sorted(expected)
    np.testing.assert_allclose(found.along, [expected[p][0] for p in pairs], rtol=1e-5)


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=12))
def test_consecutive_keeps_regions_and_their_order(values):
    found = superpixels.consecutive(np.array([values]))
    np.testing.assert_array_equal(found[0], np.unique(values, return_inverse=True)[1])
    assert found.dtype == np.int32


def test_consecutive_refuses_fractions():
    with pytest.raises(ValueError, match="integers"):
        superpixels.consecutive(np.array([[0.5]]))


def test_superpixels_are_connected_and_follow_colors():
    from skimage.measure import label

    color = np.zeros((40, 60, 3), dtype=np.float32)
    color[:, 30:] = [80.0, 10.0, -20.0]
    found = superpixels.slic(color, 40, 25.0)
    sides = [set(found[:, :30].ravel().tolist()), set(found[:, 30:].ravel().tolist())]
    assert not sides[0] & sides[1]
    assert found.max() + 1 == len(np.unique(found)) == label(found, background=-1, connectivity=2).max()
    assert 25 <= found.max() + 1 <= 60


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (3, 3), (1, 4, 4), (5, 6, 7)])
def test_superpixels_of_small_and_one_color_images(shape):
    found = superpixels.slic(np.full((*shape, 3), 50.0, dtype=np.float32), 5, 25.0)
    assert found.shape == shape
    assert found.min() == 0
    assert found.max() + 1 == len(np.unique(found))


def test_connectivity_must_suit_the_axes():
    with pytest.raises(ValueError, match="4 or 8 for 2 axes, got 6"):
        superpixels.half_neighborhood(2, 6)
