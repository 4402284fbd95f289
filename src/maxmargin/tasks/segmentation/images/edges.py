"""Features of edges between regions or pixels, all >= 0: the larger, the more alike the two ends.

The first one is the constant 1. All others are scaled by the length of the common boundary, in units of its mean over
the image, so that a weight is a price per length.
"""

from __future__ import annotations

import numpy as np

from maxmargin.structures.base import FloatArray
from maxmargin.tasks.segmentation.images.context import log_odds
from maxmargin.tasks.segmentation.images.regions import Regions
from maxmargin.tasks.segmentation.images.superpixels import Adjacency

_COLOR_WIDTHS = (4.0, 8.0, 16.0, 32.0)
"""Color differences within which the two ends of an edge look alike."""
GRADIENT_WIDTHS = (2.0, 6.0)
TEXTURE_WIDTHS = (3.0, 8.0)
ODDS_WIDTHS = (1.0, 3.0)

PIXEL_EDGE_NAMES = [
    "constant",
    "boundary",
    *(f"boundary, color within {width:g}" for width in _COLOR_WIDTHS),
    *(f"boundary, gradient within {width:g}" for width in GRADIENT_WIDTHS),
]
REGION_EDGE_NAMES = [*PIXEL_EDGE_NAMES, *(f"boundary, texture within {width:g}" for width in TEXTURE_WIDTHS)]

CONTEXT_EDGE_NAMES = [
    "boundary, like probabilities",
    *(f"boundary, log-odds within {width:g}" for width in ODDS_WIDTHS),
]


def region_edge_features(regions: Regions) -> FloatArray:
    """Features of the pairs of touching regions, one row each; see :data:`REGION_EDGE_NAMES`."""
    first, second = regions.adjacency.edges.T
    squared = ((regions.texture[first] - regions.texture[second]) ** 2).sum(axis=1)
    texture = similarities(squared, TEXTURE_WIDTHS) * boundary_of(regions.adjacency)[:, None]
    return np.column_stack([contrast_features(regions.adjacency, regions.edge_color), texture])


def contrast_features(adjacency: Adjacency, color_difference: FloatArray) -> FloatArray:
    """Features of pairs by their color difference and the gradient between them; see :data:`PIXEL_EDGE_NAMES`."""
    boundary = boundary_of(adjacency)
    alike = np.column_stack(
        [
            np.ones(len(boundary)),
            similarities(color_difference**2, _COLOR_WIDTHS),
            similarities(adjacency.along**2, GRADIENT_WIDTHS),
        ]
    )
    return np.column_stack([np.ones(len(boundary)), boundary[:, None] * alike])


def boundary_of(adjacency: Adjacency) -> FloatArray:
    """The lengths of boundaries in units of their mean."""
    return adjacency.length / (float(adjacency.length.mean()) if len(adjacency.length) else 1.0)


def similarities(squared: FloatArray, widths: tuple[float, ...]) -> FloatArray:
    """``exp(-squared / (2 width^2))``, a column for each width."""
    return np.exp(np.multiply.outer(squared, [-0.5 / width**2 for width in widths]))


def edge_context_features(adjacency: Adjacency, probabilities: FloatArray, alike: FloatArray) -> FloatArray:
    """How alike the class probabilities of the two ends are, which is given, and their log-odds at two widths.

    See :data:`CONTEXT_EDGE_NAMES`.
    """
    first, second = adjacency.edges.T
    odds = log_odds(probabilities)
    squared = ((odds[first] - odds[second]) ** 2).mean(axis=1)
    both = np.column_stack([alike, similarities(squared, ODDS_WIDTHS)])
    return np.asarray(boundary_of(adjacency)[:, None] * both)
