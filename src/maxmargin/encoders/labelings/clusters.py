"""Clusters of rows of features (k-means), for the first sub-labels of labels.

Starts by the sampling of Arthur and Vassilvitskii (k-means++, 2007): each further center is a row, drawn with a
probability proportional to its squared distance to the nearest center so far.
"""

from __future__ import annotations

import numpy as np

from maxmargin.features.rows import Rows
from maxmargin.structures.base import FloatArray, IntArray

STEPS = 25
"""Steps of k-means at most; a start needs no more."""


def clusters_within(rows: Rows, labels: IntArray, k: int, random: np.random.Generator) -> IntArray:
    """The cluster, counted from 0, of each row among the rows of its label, shape ``(n,)``.

    Args:
        rows: the rows.
        labels: the label of each, counted from 0; -1 for rows that are left out, whose cluster is -1.
        k: clusters of each label.
        random: draws the first centers.
    """
    found = np.full(rows.n, -1, dtype=np.int64)
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(int(labels.max(initial=-1)) + 2))
    each = np.arange(rows.n + 1)
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        own = order[first:last]
        if len(own):
            found[own] = clusters(rows.select(each, own), k, random)
    return found


def clusters(rows: Rows, k: int, random: np.random.Generator) -> IntArray:
    """The nearest of ``k`` centers of each row, counted from 0."""
    if rows.n <= k:
        return np.arange(rows.n)
    centers = _first_centers(rows, k, random)
    found = _nearest(rows, centers)
    for _ in range(STEPS):
        counts = np.bincount(found, minlength=k)
        sums = np.empty((rows.d, k))
        rows.transpose_times(np.ascontiguousarray(np.eye(k)[found]), k, sums)
        centers = np.where(counts > 0, sums / np.maximum(counts, 1), centers)
        before, found = found, _nearest(rows, centers)
        if np.array_equal(before, found):
            break
    return found


def _first_centers(rows: Rows, k: int, random: np.random.Generator) -> FloatArray:
    size = rows.norms(2.0) ** 2
    centers, closest, products = np.zeros((rows.d, k)), np.full(rows.n, np.inf), np.empty(rows.n)
    for number in range(k):
        total = closest.sum()
        share = closest / total if 0.0 < total < np.inf else None
        chosen, center = np.zeros(rows.n), np.empty(rows.d)
        chosen[random.choice(rows.n, p=share)] = 1.0
        rows.transpose_times(chosen, 1, center)
        rows.times(center, 1, products)
        closest = np.minimum(closest, np.maximum(size - 2.0 * products + center @ center, 0.0))
        centers[:, number] = center
    return centers


def _nearest(rows: Rows, centers: FloatArray) -> IntArray:
    k = centers.shape[1]
    products = np.empty((rows.n, k))
    rows.times(np.ascontiguousarray(centers), k, products)
    return np.asarray(np.argmin((centers**2).sum(axis=0) - 2.0 * products, axis=1))
