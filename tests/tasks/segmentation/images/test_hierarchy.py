"""Merging of regions, against a slow twin that looks at all pairs again after every step."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from maxmargin.tasks.segmentation.images.hierarchy import LEVELS, merge_order, merged


def grid_edges(height, width):
    number = np.arange(height * width).reshape(height, width)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    return np.concatenate([across, down])


def slow_costs(rows, size, edges):
    """The price of every merge when the cheapest pair of touching segments is merged each time."""
    members = {k: [k] for k in range(len(rows))}
    owner = np.arange(len(rows))
    prices = []

    def variance(nodes):
        weight = size[nodes]
        mean = weight @ rows[nodes] / weight.sum()
        return float(weight @ ((rows[nodes] - mean) ** 2).sum(axis=1))

    while True:
        pairs = {tuple(sorted((owner[i], owner[j]))) for i, j in edges if owner[i] != owner[j]}
        if not pairs:
            return prices
        priced = [
            (variance(members[i] + members[j]) - variance(members[i]) - variance(members[j]), i, j) for i, j in pairs
        ]
        price, i, j = min(priced)
        prices.append(price)
        owner[owner == j] = i
        members[i] += members.pop(j)


@given(st.integers(0, 2**16), st.integers(1, 4), st.integers(1, 4))
def test_each_merge_is_the_cheapest_one(seed, height, width):
    rng = np.random.default_rng(seed)
    rows, size = rng.standard_normal((height * width, 2)), rng.integers(1, 9, size=height * width).astype(float)
    edges = grid_edges(height, width)
    order = merge_order(rows, size, edges)
    members = {k: [k] for k in range(len(rows))}
    prices = []
    for kept, gone in order:
        one, other = members[kept], members.pop(gone)
        means = [size[m] @ rows[m] / size[m].sum() for m in (one, other)]
        weights = [size[m].sum() for m in (one, other)]
        prices.append(((means[0] - means[1]) ** 2).sum() * weights[0] * weights[1] / sum(weights))
        members[kept] = one + other
    np.testing.assert_allclose(prices, slow_costs(rows, size, edges), rtol=1e-7, atol=1e-12)


def test_segments_are_connected_nested_and_as_many_as_wanted():
    rng = np.random.default_rng(0)
    edges = grid_edges(15, 20)
    found = merged(rng.standard_normal((300, 3)), np.ones(300), edges)
    for level, wanted in zip(found, LEVELS, strict=True):
        assert len(np.unique(level)) == wanted == level.max() + 1
        inside = edges[level[edges[:, 0]] == level[edges[:, 1]]]
        links = coo_array((np.ones(len(inside)), inside.T), shape=(300, 300))
        assert connected_components(links)[0] == wanted
    for coarse, fine in pairwise(found):
        assert all(len(np.unique(coarse[fine == k])) == 1 for k in range(fine.max() + 1))


def test_few_or_unconnected_regions():
    none = np.zeros((0, 2), dtype=np.int64)
    np.testing.assert_array_equal(merged(np.zeros((1, 3)), np.ones(1), none), np.zeros((len(LEVELS), 1)))
    np.testing.assert_array_equal(merged(np.zeros((3, 3)), np.ones(3), none), [[0, 1, 2]] * len(LEVELS))
