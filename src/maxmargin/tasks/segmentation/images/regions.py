"""Regions of one image: sizes, places, mean appearance, neighbors, and kernels between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import ndimage
from scipy.sparse.csgraph import dijkstra

from maxmargin._sparse import sp
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.segmentation.images import channels
from maxmargin.tasks.segmentation.images.channels import COLOR_SIGMAS, TEXTURE_SIGMAS, Pixels
from maxmargin.tasks.segmentation.images.hierarchy import merged
from maxmargin.tasks.segmentation.images.superpixels import Adjacency, Labels, adjacency

N_ORIENTATIONS = 8
N_DIRECTIONS = 8
_SAMPLES = {2: 96, 3: 28}
"""Cells along each axis of the coarse grid on which probabilities are sampled, for images of two and three axes."""
MOST_REGIONS = 100_000
"""All pairs of regions are compared, which takes minutes for so many."""
_MOST_PAIRS = 1 << 22
"""Pairs of regions that are compared at a time."""


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of one image.

    Attributes:
        labels: the region of every pixel.
        size: pixels of each region, shape ``(n,)``.
        place: the mean position of each region in units of the image's mean side, shape ``(n, n_axes)``.
        extent: the sides of the image in the same units, shape ``(n_axes,)``.
        sides: whether a region touches the first and last plane of each axis, shape ``(n, 2 n_axes)``.
        appearance: mean color and texture of each region, shape ``(n, a)``, named by :func:`appearance_names`.
        n_colors: 1 for lightness, 3 for L*a*b*; the first columns of the appearance are the mean color.
        adjacency: the pairs of regions that touch, with the mean gradient along their boundary.
    """

    labels: Labels
    size: FloatArray
    place: FloatArray
    extent: FloatArray
    sides: npt.NDArray[np.bool_]
    appearance: FloatArray
    n_colors: int
    adjacency: Adjacency

    @property
    def n(self) -> int:
        """The number of regions."""
        return len(self.size)

    @property
    def color(self) -> FloatArray:
        """The mean color of each region."""
        return self.appearance[:, : self.n_colors]

    @cached_property
    def texture(self) -> FloatArray:
        """Gradients and orientations of each region, on the scale of color differences."""
        first = (len(COLOR_SIGMAS) + 1) * self.n_colors
        found = np.sqrt(np.abs(self.appearance[:, first : first + 3 * len(TEXTURE_SIGMAS) + N_ORIENTATIONS]))
        return np.asarray(10.0 * found / max(1e-6, float(found.mean())) / np.sqrt(found.shape[1]))

    @cached_property
    def neighbors(self) -> sp.csr_array:
        """Averages over the touching regions, weighed by the length of the boundary; a lone region averages itself."""
        first, second = self.adjacency.edges.T
        weights = np.concatenate([self.adjacency.length] * 2)
        ends = np.concatenate([first, second]), np.concatenate([second, first])
        matrix = sp.csr_array((weights, ends), shape=(self.n, self.n))
        total = np.asarray(matrix.sum(axis=1)).ravel()
        lone = np.flatnonzero(total == 0)
        matrix = matrix + sp.csr_array((np.ones(len(lone)), (lone, lone)), shape=(self.n, self.n))
        return sp.csr_array(sp.diags_array(1.0 / np.where(total > 0, total, 1.0)) @ matrix)

    def blocks(self) -> Iterator[slice]:
        """Runs of regions so short that they can be compared with all regions at once."""
        step = max(1, _MOST_PAIRS // self.n)
        for first in range(0, self.n, step):
            yield slice(first, min(first + step, self.n))

    def color_distance(self, block: slice) -> npt.NDArray[np.float32]:
        """Squared color differences between the regions of a block and all regions, shape ``(n_block, n)``."""
        return squared_distances(self.color, block)

    def texture_distance(self, block: slice) -> npt.NDArray[np.float32]:
        """Squared texture differences between the regions of a block and all regions."""
        return squared_distances(self.texture, block)

    def place_distance(self, block: slice) -> npt.NDArray[np.float32]:
        """Squared distances between the regions of a block and all regions."""
        return squared_distances(self.place, block)

    @cached_property
    def segments(self) -> IntArray:
        """The segment of each region at each of the levels of :func:`merged`, shape ``(n_levels, n)``."""
        return merged(np.column_stack([self.color, 0.5 * self.texture]), self.size, self.adjacency.edges)

    @cached_property
    def edge_color(self) -> FloatArray:
        """The color difference of each pair of touching regions."""
        first, second = self.adjacency.edges.T
        return np.asarray(np.sqrt(((self.color[first] - self.color[second]) ** 2).sum(axis=1)))

    def geodesic(self, sources: npt.NDArray[np.bool_], lengths: FloatArray) -> FloatArray:
        """The shortest path of each region to a source over touching regions; a large number if there is none."""
        if not sources.any() or not len(lengths):
            return np.where(sources, 0.0, 1e3)
        first, second = self.adjacency.edges.T
        graph = sp.csr_array((np.maximum(lengths, 1e-6), (first, second)), shape=(self.n, self.n))
        found = dijkstra(graph, directed=False, indices=np.flatnonzero(sources), min_only=True)
        return np.asarray(np.minimum(found, 1e3))

    @cached_property
    def grid(self) -> tuple[IntArray, FloatArray]:
        """A coarse grid over the image: the region at each of its points, and each region's place on it."""
        shape = np.array(self.labels.shape)
        step = float(np.prod(shape)) ** (1.0 / len(shape)) / _SAMPLES[len(shape)]
        points = np.clip(np.ceil(shape / step).astype(np.int64), 1, shape)
        at = [((np.arange(p) + 0.5) * s / p).astype(np.int64) for p, s in zip(points, shape, strict=True)]
        return self.labels[np.ix_(*at)].astype(np.int64), self.place / self.extent * points - 0.5

    def around(self, values: FloatArray, radii: tuple[float, ...], blur: float) -> npt.NDArray[np.float32]:
        """Values of regions in eight directions at several distances, and about the region itself.

        At each distance the values are averaged over a neighborhood of ``blur`` times the distance. Beyond the border
        the nearest pixel counts. In stacks the two directions along the first axis come on top. Shape
        ``(n, len(radii), n_directions + 1)``; the last direction is the region itself.
        """
        at, center = self.grid
        image: npt.NDArray[np.float32] = values[at].astype(np.float32)
        cell = image.shape / self.extent
        steps = directions(image.ndim) * cell
        found = []
        for radius in radii:
            blurred = ndimage.gaussian_filter(image, blur * radius * cell, mode="nearest", truncate=2.5)
            points = (center[:, None] + radius * steps).reshape(-1, image.ndim)
            read = ndimage.map_coordinates(blurred, points.T, order=1, mode="nearest")
            found.append(read.reshape(self.n, len(steps)))
        return np.stack(found, axis=1)


def directions(n_axes: int) -> FloatArray:
    """Unit steps in eight directions of the last two axes, in stacks two along the first, and no step at the end."""
    angles = np.arange(N_DIRECTIONS) * (2.0 * np.pi / N_DIRECTIONS)
    plane = np.column_stack([np.sin(angles), np.cos(angles)])
    if n_axes == 2:
        return np.concatenate([plane, [[0.0, 0.0]]])
    flat = np.column_stack([np.zeros(N_DIRECTIONS), plane])
    return np.concatenate([flat, [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])


def squared_distances(rows: FloatArray, block: slice) -> npt.NDArray[np.float32]:
    """Squared Euclidean distances between the rows of a block and all rows."""
    centered = (rows - rows.mean(axis=0)).astype(np.float32)
    norms = (centered * centered).sum(axis=1)
    found = norms[block, None] + norms[None, :] - 2.0 * (centered[block] @ centered.T)
    np.einsum("ii->i", found[:, block])[:] = 0.0  # rounding depends on the machine's BLAS, and a root would magnify it
    return np.asarray(np.maximum(found, 0.0, out=found))


def regions_of(color: Pixels, labels: Labels, connectivity: int) -> Regions:
    """The regions of an image, given its color channels and a label image without gaps."""
    n, shape = int(labels.max()) + 1, np.array(labels.shape)
    if n > MOST_REGIONS:
        raise ValueError(
            f"the image of shape {labels.shape} has {n} regions, and at most {MOST_REGIONS} are possible; use fewer or "
            "larger regions: n_regions, region_size, or the regions of a Presegmented image"
        )
    flat = labels.ravel()
    size = np.bincount(flat, minlength=n).astype(np.float64)
    unit = float(np.prod(shape)) ** (1.0 / len(shape))
    place = np.empty((n, len(shape)))
    sides = np.zeros((n, 2 * len(shape)), dtype=bool)
    for axis, length in enumerate(shape.tolist()):
        coordinate = (np.arange(length, dtype=np.float32) + 0.5).reshape(
            [-1 if k == axis else 1 for k in range(len(shape))]
        )
        place[:, axis] = np.bincount(flat, np.broadcast_to(coordinate, shape).ravel(), minlength=n) / size / unit
        for side, plane in enumerate((0, -1)):
            sides[np.take(labels, plane, axis=axis).ravel(), 2 * axis + side] = True
    appearance, gradient = _appearance(color, flat, n, size)
    touching = adjacency(labels, connectivity, gradient)
    return Regions(labels, size, place, shape / unit, sides, appearance, color.shape[-1], touching)


def _appearance(color: Pixels, flat: Labels, n: int, size: FloatArray) -> tuple[FloatArray, Pixels]:
    """The mean color and texture of each region, and the gradient of the image at the finest scale."""

    def mean(channel: Pixels) -> FloatArray:
        return np.bincount(flat, channel.ravel(), minlength=n) / size

    columns: list[FloatArray] = []
    planes = [np.ascontiguousarray(color[..., k]) for k in range(color.shape[-1])]
    for sigma in COLOR_SIGMAS:
        columns += [mean(channels.smooth(plane, sigma)) for plane in planes]
    for plane, average in zip(planes, columns, strict=False):
        # Squares about the region's mean: no cancellation in single precision.
        columns.append(np.sqrt(mean((plane.ravel() - average.astype(np.float32)[flat]) ** 2)))
    strengths, blobs, spots = [], [], []
    finest: tuple[list[Pixels], Pixels] | None = None
    for sigma in TEXTURE_SIGMAS:
        parts, second = channels.derivatives(planes[0], sigma)
        strength = channels.magnitude(parts)
        finest = finest or (parts, strength)
        strengths.append(mean(strength))
        blobs.append(mean(second))
        spots.append(mean(np.abs(second)))
    assert finest is not None
    parts, strength = finest
    columns += strengths + blobs + spots
    columns += list(_orientations(parts, strength, flat, n, size).T)
    columns += list(_structure_tensor(parts, mean).T)
    return np.stack(columns, axis=1), strength


def _orientations(parts: list[Pixels], strength: Pixels, flat: Labels, n: int, size: FloatArray) -> FloatArray:
    """The mean gradient in each of eight directions of the last two axes."""
    angle = np.arctan2(parts[-2], parts[-1])
    bins = (angle * np.float32(N_ORIENTATIONS / np.pi) + np.float32(N_ORIENTATIONS)).astype(np.int32) % N_ORIENTATIONS
    sums = np.bincount(flat * N_ORIENTATIONS + bins.ravel(), strength.ravel(), minlength=n * N_ORIENTATIONS)
    return np.asarray(sums.reshape(n, N_ORIENTATIONS) / size[:, None])


def _structure_tensor(parts: list[Pixels], mean: Callable[[Pixels], FloatArray]) -> FloatArray:
    """Roots of the eigenvalues of each region's mean gradient product, largest first; its direction and coherence."""
    axes = len(parts)
    products = {(i, j): mean(parts[i] * parts[j]) for i in range(axes) for j in range(i, axes)}
    tensor = np.stack([[products[min(i, j), max(i, j)] for j in range(axes)] for i in range(axes)]).transpose(2, 0, 1)
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(tensor)[:, ::-1], 0.0))
    yy, xx, xy = products[axes - 2, axes - 2], products[axes - 1, axes - 1], products[axes - 2, axes - 1]
    total = yy + xx + 1e-3
    difference, mixed = (xx - yy) / total, 2.0 * xy / total
    return np.column_stack([values, difference, mixed, np.hypot(difference, mixed)])


def appearance_names(n_axes: int, n_colors: int) -> list[str]:
    """The columns of :attr:`Regions.appearance`."""
    letters = "Lab"[:n_colors]
    names = [f"{letter} at {sigma:g}" for sigma in COLOR_SIGMAS for letter in letters]
    names += [f"deviation of {letter}" for letter in letters]
    for what in ("gradient", "Laplacian", "absolute Laplacian"):
        names += [f"{what} at {sigma:g}" for sigma in TEXTURE_SIGMAS]
    names += [f"orientation {k}" for k in range(N_ORIENTATIONS)]
    names += [f"structure {k}" for k in range(n_axes)]
    return [*names, "structure difference", "structure mixed", "coherence"]
