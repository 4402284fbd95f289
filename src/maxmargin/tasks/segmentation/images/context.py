"""Auto-context: features of regions from the class probabilities that a previous stage gave to the whole image.

For two classes the probability of the second one says all; for more, every class has its own columns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray
from maxmargin.tasks.segmentation.images.channels import smooth
from maxmargin.tasks.segmentation.images.hierarchy import LEVELS
from maxmargin.tasks.segmentation.images.regions import Regions, directions

RADII = (0.05, 0.1, 0.18, 0.3, 0.45)
"""Distances at which probabilities are read, in units of the image's mean side."""
_COLOR_WIDTHS = (4.0, 10.0)
"""Color differences within which regions of an image vote for each other."""
PLACE_WIDTHS = (0.05, 0.12, 0.25)
PIXEL_SIGMAS = (0.0, 1.0, 3.0)
CLIP = 6.0
"""Log-odds beyond this count as this."""
_SEED = 0.7
"""Regions with at least this probability are where paths to a class begin."""


def region_context(regions: Regions, probabilities: FloatArray) -> npt.NDArray[np.float32]:
    """Auto-context features of all regions, shape ``(n, c)``."""
    chosen = context_classes(probabilities.shape[1])
    ratios = _log_ratios(regions, probabilities[:, chosen])
    parts = []
    for k, label in enumerate(chosen):
        p = probabilities[:, label]
        parts += [_nearby(regions, p), _around(regions, p), _shape(regions, p), _paths(regions, p), ratios[:, k]]
    return np.concatenate(parts, axis=1, dtype=np.float32)


def pixel_context(regions: Regions, probabilities: FloatArray) -> npt.NDArray[np.float32]:
    """Auto-context features of all pixels: those of their regions, and their own log-odds at three scales."""
    shape, flat = regions.labels.shape, regions.labels.ravel()
    means = [np.bincount(flat, column, minlength=regions.n) / regions.size for column in probabilities.T]
    own = []
    for label in context_classes(probabilities.shape[1]):
        odds = log_odds(probabilities[:, label]).astype(np.float32).reshape(shape)
        own += [smooth(odds, sigma).ravel() for sigma in PIXEL_SIGMAS]
    return np.concatenate([region_context(regions, np.stack(means, axis=1))[flat], np.stack(own, axis=1)], axis=1)


def context_classes(n_classes: int) -> list[int]:
    """The classes whose probabilities have columns of their own."""
    return [1] if n_classes == 2 else list(range(n_classes))


def log_odds(p: FloatArray) -> FloatArray:
    """Log-odds of probabilities, clipped."""
    edge = 1.0 / (1.0 + np.exp(CLIP))
    clipped = np.clip(p, edge, 1.0 - edge)
    return np.asarray(np.log(clipped / (1.0 - clipped)))


def _nearby(regions: Regions, p: FloatArray) -> FloatArray:
    """Log-odds of the region, and probabilities of its neighbors."""
    odds = log_odds(p)
    near = regions.neighbors @ odds
    second = regions.neighbors @ near
    first_end, second_end = regions.adjacency.edges.T
    highest, lowest = odds.copy(), odds.copy()
    for one, other in ((first_end, second_end), (second_end, first_end)):
        np.maximum.at(highest, one, odds[other])
        np.minimum.at(lowest, one, odds[other])
    columns = [odds, near, second, highest, lowest]
    for segment in regions.segments:
        size = np.bincount(segment, regions.size)
        columns.append((np.bincount(segment, regions.size * odds) / size)[segment])
    return np.column_stack(columns)


def _around(regions: Regions, p: FloatArray) -> FloatArray:
    """Probabilities in eight directions at five distances, and summed along each axis up to the border."""
    columns = [regions.around(p, RADII, 0.35).reshape(regions.n, -1)]
    at, center = regions.grid
    image = p[at]
    nearest = tuple(np.clip(np.rint(center).astype(np.int64), 0, np.array(image.shape) - 1).T)
    for axis in range(image.ndim):
        passed = np.cumsum(image, axis=axis)
        last = tuple(np.full(regions.n, -1) if k == axis else places for k, places in enumerate(nearest))
        before, total = passed[nearest], passed[last]
        scale = regions.extent[axis] / image.shape[axis]
        columns.append(np.column_stack([before, total - before]) * scale)
    return np.concatenate(columns, axis=1)


def _shape(regions: Regions, p: FloatArray) -> FloatArray:
    """Centroid, scale and share of the class, and places relative to them.

    The last axis is also mirrored so that the class is heavier on the same side in all images.
    """
    columns = []
    for power in (1.0, 3.0):
        weights = regions.size * p**power + 1e-9 * regions.size
        share = weights.sum() / regions.size.sum()
        weights = weights / weights.sum()
        center = weights @ regions.place
        offset = regions.place - center
        scale = np.sqrt(weights @ offset**2) + 0.02
        relative = offset / scale
        skew = float(weights @ relative[:, -1] ** 3)
        tilt = float(weights @ (relative[:, -1] * relative[:, -2]))
        radius = np.sqrt((relative**2).sum(axis=1))
        same = np.ones((regions.n, 1)) * [share, *(center / regions.extent), *scale, skew, tilt]
        columns.append(np.column_stack([relative, relative[:, -1] * np.sign(skew), radius, same]))
    return np.concatenate(columns, axis=1)


def _paths(regions: Regions, p: FloatArray) -> FloatArray:
    """Shortest paths over color differences to regions that surely are of the class, and surely are not."""
    lengths = regions.edge_color
    return np.column_stack([np.minimum(regions.geodesic(q >= _SEED, lengths), 200.0) for q in (p, 1.0 - p)])


def _log_ratios(regions: Regions, p: FloatArray) -> FloatArray:
    """Log-ratios of each class against the others among regions of like color, texture and place, shape ``(n, k, c)``.

    A region does not vote for itself.
    """
    size = regions.size / regions.size.sum()
    votes = np.column_stack([size[:, None] * p, size]).astype(np.float32)
    columns = []
    for found in np.concatenate([_votes(regions, block, votes) for block in regions.blocks()], axis=1):
        inside, total = found[:, :-1], found[:, -1:]
        smoothing = 0.02 * total.mean() + 1e-9
        columns.append(np.log(inside + smoothing) - np.log(np.maximum(total - inside, 0.0) + smoothing))
    return np.stack(columns, axis=2)


def _votes(regions: Regions, block: slice, votes: npt.NDArray[np.float32]) -> FloatArray:
    """Sums of the votes of regions of like color, texture and place for those of a block, shape ``(c, n_block, v)``."""
    color, texture, place = (
        distance(block) for distance in (regions.color_distance, regions.texture_distance, regions.place_distance)
    )
    exponents = [color * np.float32(0.5 / width**2) for width in _COLOR_WIDTHS]
    exponents.append(exponents[-1] + texture * np.float32(0.5 / 4.0**2))
    exponents += [exponents[1] + place * np.float32(0.5 / width**2) for width in PLACE_WIDTHS]
    found = []
    for exponent in exponents:
        kernel = np.exp(-exponent)
        np.fill_diagonal(kernel[:, block], 0.0)
        found.append(kernel @ votes)
    return np.stack(found).astype(np.float64)


def context_names(n_axes: int, n_classes: int, pixels: bool = False) -> list[str]:
    """The columns of :func:`region_context`, or with ``pixels`` of :func:`pixel_context`."""
    n_directions = len(directions(n_axes)) - 1
    axes = ("z", "y", "x")[3 - n_axes :]
    names = ["log-odds", "neighbors' log-odds", "second ring's log-odds", "highest log-odds", "lowest log-odds"]
    names += [f"log-odds of segment of {level}" for level in LEVELS]
    for radius in RADII:
        names += [f"probability at {radius:g} in direction {k}" for k in range(n_directions)]
        names.append(f"mean probability about {radius:g}")
    for axis in axes:
        names += [f"extent before on {axis}", f"extent after on {axis}"]
    for power in ("", "sharp "):
        names += [f"{power}relative {axis}" for axis in axes]
        names += [f"{power}mirrored x", f"{power}radius", f"{power}share"]
        names += [f"{power}center {axis}" for axis in axes] + [f"{power}scale {axis}" for axis in axes]
        names += [f"{power}skew", f"{power}tilt"]
    names += ["path to class", "path to others"]
    names += [f"color {width:g} log-ratio" for width in _COLOR_WIDTHS] + ["texture log-ratio"]
    names += [f"log-ratio within {width:g}" for width in PLACE_WIDTHS]
    chosen = context_classes(n_classes)
    own = [f"class {label}: pixel log-odds at {sigma:g}" for label in chosen for sigma in PIXEL_SIGMAS]
    return [f"class {label}: {name}" for label in chosen for name in names] + (own if pixels else [])
