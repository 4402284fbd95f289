"""The cut of pixels near the boundaries of labeled regions.

Regions are labeled first. Then the pixels in a band about the boundaries between differently labeled regions are
labeled anew, one by one, by a cut whose weights are learned like those of the regions: node features are log-odds of
the regions, smoothed at several scales, and how much likelier the color of the pixel is in each class; edge features
are contrasts of neighboring pixels. Pixels outside the band keep the label of their region. Those that touch the band
are nodes of the graph too, with features that hold them to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from maxmargin.encoders.data.inputs import Graph
from maxmargin.structures.base import FloatArray
from maxmargin.tasks.segmentation.images.channels import TRUNCATE, Pixels
from maxmargin.tasks.segmentation.images.context import CLIP, context_classes, log_odds
from maxmargin.tasks.segmentation.images.edges import similarities
from maxmargin.tasks.segmentation.images.extractor import ImageSites
from maxmargin.tasks.segmentation.images.superpixels import half_neighborhood, neighbor_views

_COLOR_WIDTHS = (2.0, 4.0, 8.0, 16.0)
"""Color differences within which neighboring pixels look alike."""
SCALES = (0.25, 0.5)
"""Scales at which log-odds are smoothed, in sides of a region."""
_BINS = {1: 64, 3: 16}
"""Bins of each color in the histograms of classes."""
_SIDE = 10.0
"""The side of a region, in pixels, at which edges count as they are."""
_CELLS = 8.0
"""Cells of the grid of smoothing along the side of a region."""


@dataclass(frozen=True, eq=False)
class PixelGraph:
    """The graph of pixels in the band of one image.

    Attributes:
        graph: node features of the pixels, named by :func:`pixel_node_names`, edges and their features.
        pixels: the pixel of each node, as its place in the flattened image.
        held: for each node whether it lies just outside the band and keeps its label.
        labels: the region labels carried to all pixels, with the shape of the image.
    """

    graph: Graph
    pixels: npt.NDArray[np.int64]
    held: npt.NDArray[np.bool_]
    labels: npt.NDArray[np.int64]

    @property
    def inside(self) -> npt.NDArray[np.int64]:
        """The label of each node by its region."""
        return self.labels.ravel()[self.pixels]

    def with_labels(self, labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The labels of all pixels, given those of the nodes; held nodes keep theirs."""
        found = self.labels.copy()
        free = ~self.held
        found.ravel()[self.pixels[free]] = labels[free]
        return found


def pixel_graph(
    sites: ImageSites,
    probabilities: FloatArray,
    labels: npt.NDArray[np.int64],
    band: float,
    connectivity: int = 0,
) -> PixelGraph:
    """The pixels about the boundaries of labeled regions.

    Args:
        sites: the sites of the image.
        probabilities: class probabilities of its nodes, shape ``(n_nodes, n_classes)``.
        labels: the label of each pixel.
        band: how far the band reaches from a boundary, in sides of a region; infinity for the whole image.
        connectivity: neighbors of a pixel, 4 or 8, in stacks 6 or 26; 0 for the larger number.
    """
    pixel_labels = np.asarray(labels, dtype=np.int64)
    axes = pixel_labels.ndim
    side = region_side(sites)
    band_mask = np.ones(pixel_labels.shape, dtype=bool) if np.isinf(band) else band_of(pixel_labels, band * side)
    rim = ndimage.binary_dilation(band_mask, np.ones((3,) * axes)) & ~band_mask if band_mask.any() else band_mask
    chosen = band_mask | rim
    pixels = np.flatnonzero(chosen)
    held = rim.ravel()[pixels]
    color = sites.color
    nodes = _node_features(sites, color, probabilities, pixels, held, pixel_labels.ravel()[pixels])
    offsets = half_neighborhood(axes, connectivity or 3**axes - 1)
    edges, edge_rows = _edges(color, chosen, pixels, offsets)
    # With the side of a region the pixels in it grow by its square, those on its boundary only in proportion.
    return PixelGraph(Graph(nodes, edges, edge_rows * (side / _SIDE)), pixels, held, pixel_labels)


def pixel_node_names(n_classes: int) -> list[str]:
    """The columns of a pixel graph's node features."""
    names = ["log-odds", *(f"log-odds smoothed by {scale:g}" for scale in SCALES), "color log-ratio"]
    return [*(f"class {label}: {name}" for label in context_classes(n_classes) for name in names), "constant"]


def band_of(labels: npt.NDArray[np.int64], reach: float) -> npt.NDArray[np.bool_]:
    """Pixels within a distance of one whose neighbor has another label."""
    boundary = np.zeros(labels.shape, dtype=bool)
    for offset in half_neighborhood(labels.ndim, 2 * labels.ndim):
        here, there = neighbor_views(labels, offset)
        differs = here != there
        for view in neighbor_views(boundary, offset):
            view |= differs
    if not boundary.any():
        return boundary
    return np.asarray(ndimage.distance_transform_edt(~boundary) < max(1.0, reach))


def region_side(sites: ImageSites) -> float:
    """The side of a mean region, in pixels of the image."""
    mean = np.mean(sites.regions.size if sites.pixels else sites.size)
    return float(mean ** (1.0 / sites.node_of.ndim))


def _node_features(
    sites: ImageSites,
    color: Pixels,
    probabilities: FloatArray,
    pixels: npt.NDArray[np.int64],
    held: npt.NDArray[np.bool_],
    labels: npt.NDArray[np.int64],
) -> FloatArray:
    read = _Reader.of(sites, pixels)
    own = sites.node_of.ravel()[pixels]
    flat = color.reshape(-1, color.shape[-1])
    columns = []
    for label in context_classes(probabilities.shape[1]):
        p = probabilities[:, label]
        odds = log_odds(p)
        rows: list[npt.NDArray[Any]] = [odds[own], *(read.smoothed(odds, scale) for scale in SCALES)]
        rows.append(_color_log_ratio(flat, p[sites.node_of.ravel()], pixels))
        # A held pixel looks as sure as a pixel can.
        columns += [np.where(held, np.where(labels == label, CLIP, -CLIP), row) for row in rows]
    return np.column_stack([*columns, np.ones(len(pixels))])


@dataclass(frozen=True, eq=False)
class _Reader:
    """Smooths values of nodes over the image, and reads them at some of its pixels.

    Smoothing takes place on a grid on which a region has a side of about eight cells, so it costs the same for images
    of any size.

    Attributes:
        nodes: the node at every cell of the grid.
        places: the pixels on the grid, shape ``(n_axes, n)``.
        sides: the mean side of a region in cells, along each axis.
    """

    nodes: npt.NDArray[np.int32]
    places: FloatArray
    sides: FloatArray

    @classmethod
    def of(cls, sites: ImageSites, pixels: npt.NDArray[np.int64]) -> Self:
        """The reader of an image's pixels."""
        shape = np.array(sites.node_of.shape)
        side = float(np.prod(shape) / sites.regions.n) ** (1.0 / len(shape))
        cells = np.clip(np.round(shape * (_CELLS / side)).astype(np.int64), 1, shape)
        at = [((np.arange(n) + 0.5) * (length / n)).astype(np.int64) for n, length in zip(cells, shape, strict=True)]
        nodes = sites.node_of[np.ix_(*at)]
        there = np.unravel_index(pixels, sites.node_of.shape)
        places = (np.stack(there) + 0.5) * (cells / shape)[:, None] - 0.5
        return cls(nodes, places, side * cells / shape)

    def smoothed(self, values: FloatArray, scale: float) -> Pixels:
        """Values of nodes, smoothed by so many sides of a region."""
        image = values.astype(np.float32)[self.nodes]
        blurred = ndimage.gaussian_filter(image, scale * self.sides, mode="nearest", truncate=TRUNCATE)
        return np.asarray(ndimage.map_coordinates(blurred, self.places, order=1, mode="nearest"))


def _color_log_ratio(color: Pixels, p: FloatArray, pixels: npt.NDArray[np.int64]) -> FloatArray:
    """How much likelier each pixel's color is in the class than outside, by smoothed histograms of the image."""
    n_colors = color.shape[1]
    bins = _BINS[n_colors]
    lowest, width = ([0.0], [100.0]) if n_colors == 1 else ([0.0, -60.0, -60.0], [100.0, 120.0, 120.0])
    index = np.zeros(len(color), dtype=np.int32)
    for channel, low, range_ in zip(color.T, lowest, width, strict=True):
        step = np.clip((channel - np.float32(low)) * np.float32(bins / range_), 0, bins - 1).astype(np.int32)
        index = index * bins + step
    shape, chosen = (bins,) * n_colors, index[pixels]
    inside, total = (
        ndimage.gaussian_filter(np.bincount(index, weights, bins**n_colors).reshape(shape), 0.7, mode="nearest")
        for weights in (p, None)
    )
    inside, total = inside.ravel()[chosen], total.ravel()[chosen]
    smoothing = 1e-4 * len(color)
    ratio = np.log(inside + smoothing) - np.log(np.maximum(total - inside, 0.0) + smoothing)
    return np.asarray(np.clip(ratio, -CLIP, CLIP))


def _edges(
    color: Pixels, chosen: npt.NDArray[np.bool_], pixels: npt.NDArray[np.int64], offsets: list[tuple[int, ...]]
) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Pairs of neighboring pixels in the band, and their contrasts; a longer step counts less."""
    number = np.zeros(chosen.shape, dtype=np.int64)
    number.ravel()[pixels] = np.arange(len(pixels))
    pairs, rows = [np.zeros((0, 2), dtype=np.int64)], [np.zeros((0, 1 + len(_COLOR_WIDTHS)))]
    for offset in offsets:
        here, there = neighbor_views(chosen, offset)
        both = here & there
        first, second = (view[both] for view in neighbor_views(number, offset))
        left, right = (view[both] for view in neighbor_views(color, offset))
        squared = ((left - right) ** 2).sum(axis=1, dtype=np.float64)
        length = 1.0 / np.sqrt(float(np.dot(offset, offset)))
        pairs.append(np.stack([first, second], axis=1))
        rows.append(length * np.column_stack([np.ones(len(squared)), similarities(squared, _COLOR_WIDTHS)]))
    return np.concatenate(pairs), np.concatenate(rows)
