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
    total, weight = (rows * size[:, None]).tolist(), size.tolist()
    near: list[set[int]] = [set() for _ in weight]
    stamp = [0] * len(weight)
    means = rows
    first, second = edges.T
    cost = ((means[first] - means[second]) ** 2).sum(axis=1) * size[first] * size[second] / (size[first] + size[second])
    heap = list(zip(cost.tolist(), first.tolist(), second.tolist(), [0] * len(edges), [0] * len(edges), strict=True))
    for i, j in edges.tolist():
        near[i].add(j)
        near[j].add(i)
    heapq.heapify(heap)
    order = []
    while heap:
        _, i, j, at_i, at_j = heapq.heappop(heap)
        if stamp[i] != at_i or stamp[j] != at_j:
            continue
        if len(near[i]) < len(near[j]):
            i, j = j, i
        order.append((i, j))
        weight[i] += weight[j]
        total[i] = [a + b for a, b in zip(total[i], total[j], strict=True)]
        stamp[i] += 1
        stamp[j] = -1
        near[i].discard(j)
        near[j].discard(i)
        for k in near[j]:
            near[k].discard(j)
            near[k].add(i)
        near[i] |= near[j]
        own = [a / weight[i] for a in total[i]]
        for k in near[i]:
            other = weight[k]
            apart = sum((a - b / other) ** 2 for a, b in zip(own, total[k], strict=True))
            price = apart * weight[i] * other / (weight[i] + other)
            low, high = (i, k) if i < k else (k, i)
            heapq.heappush(heap, (price, low, high, stamp[low], stamp[high]))
    return order
