"""Segments: regions merged step by step into fewer and larger ones, by Ward's criterion on color and texture."""

from __future__ import annotations

import heapq

import numpy as np

from maxmargin.structures.base import FloatArray, IntArray

LEVELS = (6, 15, 40, 100)
"""Numbers of segments into which an image is merged."""


def merged(rows: FloatArray, size: FloatArray, edges: IntArray) -> IntArray:
    """The segment of each region at each level, shape ``(len(LEVELS), n)``.

    The two touching segments whose merging adds least to the variance of ``rows`` within segments are merged first.
    """
    n = len(size)
    order = merge_order(rows, size, edges)
    found = np.empty((len(LEVELS), n), dtype=np.int64)
    for level, wanted in enumerate(LEVELS):
        parent = np.arange(n)
        for kept, gone in order[: max(0, n - wanted)]:
            parent[gone] = kept
        while not np.array_equal(parent[parent], parent):
            parent = parent[parent]
        found[level] = np.unique(parent, return_inverse=True)[1]
    return found


def merge_order(rows: FloatArray, size: FloatArray, edges: IntArray) -> list[tuple[int, int]]:
    """Pairs (segment that stays, segment that joins it) in the order of merging, as far as edges reach."""
    means, weight = rows.copy(), size.astype(np.float64)
    near: list[set[int]] = [set() for _ in size]
    stamp = [0] * len(size)
    first, second = edges.T
    price = ((means[first] - means[second]) ** 2).sum(axis=1) * weight[first] * weight[second]
    price /= weight[first] + weight[second]
    heap = list(zip(price.tolist(), first.tolist(), second.tolist(), [0] * len(edges), [0] * len(edges), strict=True))
    for i, j in edges.tolist():
        near[i].add(j)
        near[j].add(i)
    heapq.heapify(heap)
    order = []
    while heap:
        _, i, j, at_i, at_j = heapq.heappop(heap)
        if stamp[i] != at_i or stamp[j] != at_j:  # one of the two was merged since
            continue
        if len(near[i]) < len(near[j]):
            i, j = j, i
        order.append((i, j))
        own = weight[i] + weight[j]
        means[i] += (means[j] - means[i]) * (weight[j] / own)
        weight[i] = own
        stamp[i] += 1
        stamp[j] = -1
        near[i].discard(j)
        near[j].discard(i)
        for k in near[j]:
            near[k].discard(j)
            near[k].add(i)
        near[i] |= near[j]
        others = list(near[i])
        apart = means[others] - means[i]
        prices = np.einsum("ij,ij->i", apart, apart) * weight[others] * own / (weight[others] + own)
        for k, cost in zip(others, prices.tolist(), strict=True):
            heapq.heappush(heap, (cost, i, k, stamp[i], stamp[k]))
    return order
