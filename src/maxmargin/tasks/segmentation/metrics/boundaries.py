"""Boundary F: how well the boundaries of predicted regions follow those of the annotators.

For each class of an image, precision is the share of predicted boundary pixels within a tolerance of a boundary pixel
of the annotators, recall the share of the annotators' within the tolerance of a predicted one; F is their harmonic
mean. As in Csurka, Larlus and Perronnin, *What is a good evaluation measure for semantic segmentation?*, 2013, the
tolerance is 0.75 percent of the image's diagonal, and an image's score is the mean over its classes. Martin, Fowlkes
and Malik, 2004, match boundary pixels one to one instead.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from maxmargin.structures.base import FloatArray, IntArray

TOLERANCE = 0.0075
"""The tolerance as a share of the diagonal."""

Flags = npt.NDArray[np.bool_]


def boundary(labels: IntArray, label: int, inside: Flags) -> Flags:
    """Return the pixels of a class beside a pixel of another one; neighbors share a side.

    Args:
        labels: the class of each pixel of an image or a stack.
        label: the class.
        inside: the pixels that count.
    """
    of_class = (labels == label) & inside
    other = (labels != label) & inside
    found = np.zeros(labels.shape, dtype=bool)
    for axis in range(labels.ndim):
        ahead = tuple(slice(1, None) if one == axis else slice(None) for one in range(labels.ndim))
        behind = tuple(slice(None, -1) if one == axis else slice(None) for one in range(labels.ndim))
        found[behind] |= of_class[behind] & other[ahead]
        found[ahead] |= of_class[ahead] & other[behind]
    return found


def boundary_scores(gold: IntArray, predicted: IntArray, n_classes: int, *, tolerance: float = TOLERANCE) -> FloatArray:
    """Return precision, recall and F of the boundary of each class, shape ``(n_classes, 3)``.

    A class without boundary in both label images has NaN; one with a boundary in only one of them 0.

    Args:
        gold: the annotators' class of each pixel of an image or a stack, -1 for none; such pixels do not count.
        predicted: the predicted classes.
        n_classes: the number of classes.
        tolerance: the tolerance as a share of the diagonal.
    """
    inside = gold >= 0
    within = tolerance * float(np.sqrt(sum(length**2 for length in gold.shape)))
    scores = np.full((n_classes, 3), np.nan)
    for label in range(n_classes):
        wanted, found = boundary(gold, label, inside), boundary(predicted, label, inside)
        if not wanted.any() and not found.any():
            continue
        precision, recall = _share_near(found, wanted, within), _share_near(wanted, found, within)
        total = precision + recall
        scores[label] = precision, recall, 2.0 * precision * recall / total if total else 0.0
    return scores


def _share_near(pixels: Flags, others: Flags, within: float) -> float:
    """Return the share of the pixels within a distance of one of the others; 0 without any."""
    if not pixels.any() or not others.any():
        return 0.0
    # The box around both suffices for distances between them, and is often much smaller.
    box = ndimage.find_objects((pixels | others).astype(np.uint8))[0]
    distance = ndimage.distance_transform_edt(~others[box])
    return float((distance[pixels[box]] <= within).mean())
