"""Regions of images and their neighborhoods: superpixels, the user's own regions, or single pixels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common.packages import optional
from maxmargin.tasks.segmentation.images.channels import Pixels
from maxmargin.tasks.segmentation.io.pixels import EXTRA

Labels = npt.NDArray[np.int32]

CONNECTIVITY = {2: (4, 8), 3: (6, 26)}
"""Neighbors that a pixel may have in images of two and three axes."""
ALL_CONNECTIVITIES = tuple(count for counts in CONNECTIVITY.values() for count in counts)


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Pairs of regions that touch.

    Attributes:
        edges: pairs of regions, each once with the smaller number first, shape ``(n_edges, 2)``.
        length: how many pairs of neighboring pixels lie on both sides of the common boundary.
        along: the mean of an image over these pixels, such as its gradient; zeros if no image was given.
    """

    edges: IntArray
    length: FloatArray
    along: FloatArray


def slic(color: Pixels, n_regions: int, compactness: float, iterations: int = 10) -> Labels:
    """Superpixels by k-means in color and space (Achanta et al. 2012): a number from 0 for each pixel.

    A color difference of ``compactness`` counts as much as a distance of one side of a superpixel.
    """
    if n_regions <= 1 or color[..., 0].size == 1:
        return np.zeros(color.shape[:-1], dtype=np.int32)
    spread = float(color.max() - color.min())  # scikit-image divides colors by this
    found = optional("skimage.segmentation", EXTRA).slic(
        color,
        n_segments=n_regions,
        compactness=compactness / spread if spread > 0 else 1.0,
        max_num_iter=iterations,
        convert2lab=False,
        enforce_connectivity=True,
        start_label=0,
        channel_axis=-1,
    )
    return consecutive(found)


def consecutive(labels: npt.NDArray[Any]) -> Labels:
    """The same regions numbered from 0 without gaps, in the order of their labels."""
    found = np.asarray(labels)
    if found.dtype.kind not in "iub":
        raise ValueError(f"regions must be an image of integers, got {found.dtype}")
    first, last = int(found.min()), int(found.max())
    if last - first > 4 * found.size:  # a table of all labels would be larger than sorting them
        return np.unique(found, return_inverse=True)[1].reshape(found.shape).astype(np.int32)
    shifted = found.astype(np.int64) - first
    present = np.zeros(last - first + 1, dtype=bool)
    present[shifted.ravel()] = True
    return (np.cumsum(present) - 1).astype(np.int32)[shifted]


def half_neighborhood(n_axes: int, connectivity: int) -> list[tuple[int, ...]]:
    """Offsets to half of a pixel's neighbors, so that every pair of neighbors comes once."""
    if connectivity not in CONNECTIVITY[n_axes]:
        few, many = CONNECTIVITY[n_axes]
        raise ValueError(f"connectivity must be {few} or {many} for {n_axes} axes, got {connectivity}")
    if connectivity == 2 * n_axes:
        return [tuple(int(axis == k) for k in range(n_axes)) for axis in range(n_axes)]
    zero = (0,) * n_axes
    return [offset for offset in product((-1, 0, 1), repeat=n_axes) if offset > zero]


def neighbor_views(values: npt.NDArray[Any], offset: tuple[int, ...]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Two views of an image: pixels that have a neighbor at the offset, and these neighbors."""
    here = tuple(slice(max(0, -step), size - max(0, step)) for step, size in zip(offset, values.shape, strict=False))
    there = tuple(slice(max(0, step), size - max(0, -step)) for step, size in zip(offset, values.shape, strict=False))
    return values[here], values[there]


def adjacency(labels: Labels, connectivity: int, along: Pixels | None = None) -> Adjacency:
    """The neighboring regions of a label image without gaps, with the lengths of their common boundaries."""
    n = int(labels.max()) + 1
    keys, strengths = [], []
    for offset in half_neighborhood(labels.ndim, connectivity):
        here, there = neighbor_views(labels, offset)
        border = here != there
        one, other = here[border].astype(np.int64), there[border].astype(np.int64)
        keys.append(np.minimum(one, other) * n + np.maximum(one, other))
        if along is not None:
            left, right = neighbor_views(along, offset)
            strengths.append(0.5 * (left[border] + right[border]))
    found, inverse, count = np.unique(np.concatenate(keys), return_inverse=True, return_counts=True)
    length = count.astype(np.float64)
    mean = np.zeros(len(found))
    if along is not None:
        mean = np.bincount(inverse, np.concatenate(strengths), minlength=len(found)) / length
    return Adjacency(np.stack([found // n, found % n], axis=1), length, mean)


def pixel_adjacency(shape: tuple[int, ...], connectivity: int, along: Pixels | None = None) -> Adjacency:
    """The neighboring pixels of an image, numbered in the order of memory; the lengths are 1."""
    numbers = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    pairs, strengths = [], []
    for offset in half_neighborhood(len(shape), connectivity):
        here, there = neighbor_views(numbers, offset)
        pairs.append(np.stack([here.ravel(), there.ravel()], axis=1))
        if along is not None:
            left, right = neighbor_views(along, offset)
            strengths.append((0.5 * (left + right)).ravel())
    edges = np.concatenate(pairs)
    mean = np.concatenate(strengths).astype(np.float64) if along is not None else np.zeros(len(edges))
    return Adjacency(edges, np.ones(len(edges)), mean)
