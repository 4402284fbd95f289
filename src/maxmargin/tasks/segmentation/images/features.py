"""Features of regions: appearance, place, contrast with the image and its borders, and the same of neighbors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.segmentation.images.hierarchy import LEVELS
from maxmargin.tasks.segmentation.images.regions import Regions, appearance_names

LOCAL_SCALES = (0.1, 0.25)
COLOR_WIDTH = 10.0
_AXES = {2: ("y", "x"), 3: ("z", "y", "x")}


def region_features(regions: Regions) -> npt.NDArray[np.float32]:
    """All features of regions, one row each, shape ``(n, d)``; their names are those of :func:`feature_names`."""
    look = regions.appearance
    near = regions.neighbors @ look
    second = regions.neighbors @ near
    parts = [look, near, look - near, second, _adapted(regions), _place(regions)]
    parts += [np.concatenate([_pairs(regions, block) for block in regions.blocks()]), _geodesics(regions)]
    parts += [_segments(regions, level) for level in regions.segments]
    return np.concatenate(parts, axis=1, dtype=np.float32)


def feature_names(n_axes: int, n_colors: int) -> list[str]:
    """The columns of :func:`region_features`."""
    look = appearance_names(n_axes, n_colors)
    axes = _AXES[n_axes]
    names = [*look, *(f"neighbors' {name}" for name in look), *(f"difference in {name}" for name in look)]
    names += [f"second ring's {name}" for name in look]
    adapted = [*"Lab"[:n_colors], "gradient"]
    names += [f"standardized {name}" for name in adapted] + [f"rank of {name}" for name in adapted]
    names += [*axes, *(f"{axis} from center" for axis in axes), "distance to border", "log size"]
    sides = [f"{side} {axis}" for axis in axes for side in ("first", "last")]
    names += [f"touches {side}" for side in sides] + ["touched sides"]
    for side in [*sides, "border"]:
        names += [f"color to {side}", f"smallest color to {side}"]
    names += ["share of like border", "global contrast"]
    names += [f"contrast within {scale:g}" for scale in LOCAL_SCALES]
    names += ["spread of color", "texture contrast"] + [f"color's mean {axis}" for axis in axes]
    names += [f"{kind} path to {side}" for kind in ("color", "gradient") for side in [*sides, "border"]]
    for level in LEVELS:
        own = ["log share", "border share", "touched sides", *axes, *(f"extent in {axis}" for axis in axes)]
        own += ["roundness", "color deviation", "color to own", "contrast"]
        names += [f"segment of {level}: {name}" for name in [*own, *"Lab"[:n_colors]]]
    return names


def _adapted(regions: Regions) -> FloatArray:
    """Color and gradient relative to those of the whole image: standardized, and by rank."""
    first = 4 * regions.n_colors
    columns = np.column_stack([regions.color, regions.appearance[:, first]])
    weights = regions.size / regions.size.sum()
    center = weights @ columns
    deviation = np.sqrt(weights @ (columns - center) ** 2)
    order = np.argsort(columns, axis=0, kind="stable")
    ranks = np.empty_like(columns)
    for k in range(columns.shape[1]):
        passed = np.cumsum(weights[order[:, k]])
        ranks[order[:, k], k] = passed - 0.5 * weights[order[:, k]]
    return np.column_stack([(columns - center) / (deviation + 1e-3), ranks])


def _place(regions: Regions) -> FloatArray:
    """Relative positions, distance to the nearest border, size, and which sides the region touches."""
    relative = regions.place / regions.extent
    border = np.minimum(regions.place, regions.extent - regions.place).min(axis=1)
    size = np.log(regions.size / regions.size.mean())
    touched = regions.sides.sum(axis=1)
    return np.column_stack([relative, np.abs(2.0 * relative - 1.0), border, size, regions.sides, touched])


def _pairs(regions: Regions, block: slice) -> FloatArray:
    """Features of the regions of a block that compare them with all regions."""
    squared = regions.color_distance(block)
    return np.column_stack([_borders(regions, block, squared), _contrast(regions, block, squared)])


def _borders(regions: Regions, block: slice, squared: npt.NDArray[np.float32]) -> FloatArray:
    """Color differences to the regions at each side and at any, and the share of the border that looks alike."""
    distance = np.sqrt(squared)
    columns = []
    any_side = regions.sides.any(axis=1)
    for members in [*regions.sides.T, any_side]:
        mean = regions.color[members].mean(axis=0)
        columns.append(np.sqrt(((regions.color[block] - mean) ** 2).sum(axis=1)))
        columns.append(distance[:, members].min(axis=1))
    alike = np.exp(-squared[:, any_side] / np.float32(2.0 * COLOR_WIDTH**2))
    return np.column_stack([*columns, alike.mean(axis=1)])


def _contrast(regions: Regions, block: slice, squared: npt.NDArray[np.float32]) -> FloatArray:
    """Mean color difference to the image and its surroundings; where in the image the region's color is found."""
    distance = np.sqrt(squared)
    weights = (regions.size / regions.size.sum()).astype(np.float32)
    columns = [distance @ weights]
    for scale in LOCAL_SCALES:
        near = np.exp(regions.place_distance(block) * np.float32(-0.5 / scale**2)) * weights
        columns.append((near * distance).sum(axis=1) / near.sum(axis=1))
    alike = np.exp(squared * np.float32(-0.5 / COLOR_WIDTH**2)) * weights
    alike /= alike.sum(axis=1, keepdims=True)
    center = alike @ regions.place
    spread = alike @ (regions.place**2).sum(axis=1) - (center**2).sum(axis=1)
    texture = np.sqrt(regions.texture_distance(block)) @ weights
    return np.column_stack([*columns, np.sqrt(np.maximum(spread, 0.0)), texture, center / regions.extent])


def _geodesics(regions: Regions) -> FloatArray:
    """Shortest paths to each side and to any, over color differences and over gradients."""
    sources = [*regions.sides.T, regions.sides.any(axis=1)]
    lengths = [regions.edge_color, regions.adjacency.along]
    return np.column_stack([regions.geodesic(source, length) for length in lengths for source in sources])


def _segments(regions: Regions, segment: IntArray) -> FloatArray:
    """Features of the segment that each region belongs to: size, border, place, extent, color, contrast around it."""
    size = np.bincount(segment, regions.size)

    def mean(values: FloatArray) -> FloatArray:
        rows = values.reshape(len(values), -1)
        sums = [np.bincount(segment, regions.size * column) / size for column in rows.T]
        return np.stack(sums, axis=1)

    share = size / size.sum()
    border = np.bincount(segment, regions.sides.sum(axis=1)) / max(1.0, float(regions.sides.sum()))
    touched = sum(np.bincount(segment, side) > 0 for side in regions.sides.T)
    center, color = mean(regions.place), mean(regions.color)
    extent = np.sqrt(np.maximum(mean(regions.place**2) - center**2, 0.0))
    roundness = share / (np.prod(extent, axis=1) + 1e-4)
    deviation = np.sqrt(np.maximum(mean(regions.color**2) - color**2, 0.0).sum(axis=1))
    first, second = segment[regions.adjacency.edges.T]
    apart = np.sqrt(((color[first] - color[second]) ** 2).sum(axis=1)) * regions.adjacency.length
    outer = regions.adjacency.length * (first != second)
    n = len(size)
    around, length = (np.bincount(first, x, n) + np.bincount(second, x, n) for x in (apart, outer))
    contrast = around / np.maximum(length, 1.0)
    rows = [np.log(share), border, touched, center / regions.extent, extent, roundness, deviation]
    own = np.sqrt(((regions.color - color[segment]) ** 2).sum(axis=1))
    return np.column_stack([np.column_stack(rows)[segment], own, contrast[segment], color[segment]])
