"""The cut of pixels near the boundaries of labeled regions.

Regions are labeled first. Then the pixels in a band about the boundaries between differently labeled regions are
labeled anew, one by one, by a cut whose weights are learned like those of the regions: node features are log-odds of
the regions, smoothed at several scales, and how well the color of the pixel fits each class in the whole image and
nearby; edge features are contrasts of neighboring pixels. Pixels outside the band keep the label of their region.
Those that touch the band are nodes of the graph too, with features that hold them to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from maxmargin.encoders.data.inputs import Graph
from maxmargin.structures.base import FloatArray
from maxmargin.tasks.segmentation.images.channels import Pixels, smooth
from maxmargin.tasks.segmentation.images.context import CLIP, context_classes, log_odds
from maxmargin.tasks.segmentation.images.edges import similarities
from maxmargin.tasks.segmentation.images.extractor import ImageSites
from maxmargin.tasks.segmentation.images.superpixels import half_neighborhood, neighbor_views

COLOR_WIDTHS = (2.0, 4.0, 8.0, 16.0)
SCALES = (0.25, 0.5)
"""Scales at which log-odds are smoothed and colors are averaged, in sides of a region."""
_BINS = {1: 64, 3: 16}
"""Bins of each color in the histograms of classes."""


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
    side = float(np.mean(sites.size if not sites.pixels else sites.regions.size)) ** (1.0 / axes)
    band_mask = (
        np.ones(pixel_labels.shape, dtype=bool) if np.isinf(band) else _band(pixel_labels, max(1.0, band * side))
    )
    rim = ndimage.binary_dilation(band_mask, np.ones((3,) * axes)) & ~band_mask if band_mask.any() else band_mask
    chosen = band_mask | rim
    pixels = np.flatnonzero(chosen)
    held = rim.ravel()[pixels]
    nodes = _node_features(sites, probabilities, pixels, held, pixel_labels.ravel()[pixels], side)
    offsets = half_neighborhood(axes, connectivity or 3**axes - 1)
    edges, edge_rows = _edges(sites.color, chosen, pixels, offsets)
    return PixelGraph(Graph(nodes, edges, edge_rows), pixels, held, pixel_labels)


def pixel_node_names(n_classes: int) -> list[str]:
    """The columns of a pixel graph's node features."""
    names = ["log-odds", *(f"log-odds smoothed by {scale:g}" for scale in SCALES), "color log-ratio"]
    names += [f"color nearer within {scale:g}" for scale in SCALES]
    return [*(f"class {label}: {name}" for label in context_classes(n_classes) for name in names), "constant"]


PIXEL_EDGE_NAMES = ["length", *(f"length, color within {width:g}" for width in COLOR_WIDTHS)]
"""The columns of a pixel graph's edge features."""


def _band(labels: npt.NDArray[np.int64], reach: float) -> npt.NDArray[np.bool_]:
    """Pixels within a distance of one whose neighbor has another label."""
    boundary = np.zeros(labels.shape, dtype=bool)
    for offset in half_neighborhood(labels.ndim, 2 * labels.ndim):
        here, there = neighbor_views(labels, offset)
        differs = here != there
        for view in neighbor_views(boundary, offset):
            view |= differs
    if not boundary.any():
        return boundary
    return np.asarray(ndimage.distance_transform_edt(~boundary) < reach)


def _node_features(
    sites: ImageSites,
    probabilities: FloatArray,
    pixels: npt.NDArray[np.int64],
    held: npt.NDArray[np.bool_],
    labels: npt.NDArray[np.int64],
    side: float,
) -> FloatArray:
    columns = []
    for label in context_classes(probabilities.shape[1]):
        p = probabilities[:, label]
        odds = log_odds(p).astype(np.float32)[sites.node_of]
        image = p.astype(np.float32)[sites.node_of]
        rows = [odds.ravel()[pixels], *(smooth(odds, scale * side).ravel()[pixels] for scale in SCALES)]
        rows.append(_color_log_ratio(sites.color, image, pixels))
        rows += [_nearer(sites.color, image, scale * 2.0 * side).ravel()[pixels] for scale in SCALES]
        # A held pixel looks as sure as a pixel can.
        columns += [np.where(held, np.where(labels == label, CLIP, -CLIP), row) for row in rows]
    return np.column_stack([*columns, np.ones(len(pixels))])


def _color_log_ratio(color: Pixels, p: Pixels, pixels: npt.NDArray[np.int64]) -> Pixels:
    """How much likelier each pixel's color is in the class than outside, by smoothed histograms of the image."""
    n_colors = color.shape[-1]
    bins = _BINS[n_colors]
    flat = color.reshape(-1, n_colors)
    low, high = (0.0, 100.0) if n_colors == 1 else (np.array([0.0, -60.0, -60.0]), np.array([100.0, 60.0, 60.0]))
    steps = np.clip((flat - low) * (bins / (np.asarray(high) - low)), 0, bins - 1).astype(np.int64)
    index = steps @ bins ** np.arange(n_colors)[::-1]
    inside, total = (
        ndimage.gaussian_filter(
            np.bincount(index, weights, minlength=bins**n_colors).reshape((bins,) * n_colors), 0.7, mode="nearest"
        ).ravel()[index[pixels]]
        for weights in (p.ravel(), np.ones(p.size))
    )
    smoothing = 1e-4 * p.size
    ratio = np.log(inside + smoothing) - np.log(np.maximum(total - inside, 0.0) + smoothing)
    return np.asarray(np.clip(ratio, -CLIP, CLIP), dtype=np.float32)


def _nearer(color: Pixels, p: Pixels, sigma: float) -> Pixels:
    """Whether a pixel's color is nearer to the mean color of the class nearby (1) or of the others (-1), or between."""
    distances = []
    for weights in (p, 1.0 - p):
        total = smooth(weights, sigma) + np.float32(1e-3)
        apart = np.zeros_like(p)
        for k in range(color.shape[-1]):
            plane = np.ascontiguousarray(color[..., k])
            apart += (plane - smooth(plane * weights, sigma) / total) ** 2
        distances.append(np.sqrt(apart))
    inside, outside = distances
    return np.asarray((outside - inside) / (outside + inside + np.float32(2.0)))


def _edges(
    color: Pixels, chosen: npt.NDArray[np.bool_], pixels: npt.NDArray[np.int64], offsets: list[tuple[int, ...]]
) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Pairs of neighboring pixels in the band, and their contrasts; a longer step counts less."""
    number = np.zeros(chosen.shape, dtype=np.int64)
    number.ravel()[pixels] = np.arange(len(pixels))
    pairs, rows = [np.zeros((0, 2), dtype=np.int64)], [np.zeros((0, 1 + len(COLOR_WIDTHS)))]
    for offset in offsets:
        here, there = neighbor_views(chosen, offset)
        both = here & there
        first, second = (view[both] for view in neighbor_views(number, offset))
        left, right = (view[both] for view in neighbor_views(color, offset))
        squared = ((left - right) ** 2).sum(axis=1, dtype=np.float64)
        length = 1.0 / np.sqrt(float(np.dot(offset, offset)))
        pairs.append(np.stack([first, second], axis=1))
        rows.append(length * np.column_stack([np.ones(len(squared)), similarities(squared, COLOR_WIDTHS)]))
    return np.concatenate(pairs), np.concatenate(rows)
