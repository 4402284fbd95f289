"""Pictures of labels: colors of classes, tinted images, boundaries, and where labels are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import IntArray
from maxmargin.tasks.segmentation.io.classes import ClassCodes
from maxmargin.tasks.segmentation.io.masks import class_color

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

_TWO = ((86, 98, 112), (240, 110, 30))
_MORE = (
    *((0, 114, 178), (230, 159, 0), (0, 158, 115), (204, 121, 167), (213, 94, 0), (86, 180, 233), (240, 228, 66)),
    *((120, 94, 240), (150, 110, 70), (120, 130, 140)),
)
TINT = 0.45
"""How much of the class's color a tinted pixel has."""


def class_colors(codes: ClassCodes) -> Bytes:
    """The color in which each class is shown, shape ``(n_classes, 3)``: that of its masks, or one of a palette."""
    if codes.by_color:
        return np.array(codes.written, dtype=np.uint8)
    return default_colors(codes.n_classes)


def default_colors(n_classes: int) -> Bytes:
    """Colors that stay apart for every common kind of color vision, as far as there are enough of them."""
    if n_classes <= 2:
        return np.array(_TWO[:n_classes], dtype=np.uint8)
    more = [class_color(number) for number in range(len(_MORE) + 3, n_classes + 3)]
    return np.array([*_MORE, *more][:n_classes], dtype=np.uint8)


def shown_image(image: Array) -> Bytes:
    """An image or stack in 8-bit RGB for the eye; other types are stretched between their darkest and brightest."""
    values = np.asarray(image)
    color = values.ndim == 4 or (values.ndim == 3 and values.shape[-1] == 3)
    if values.dtype != np.uint8:
        # A few pixels that are far brighter or darker than all others must not hide the rest.
        low, high = np.percentile(values, [0.2, 99.8])
        scaled = (values.astype(np.float64) - low) / max(float(high - low), 1e-12)
        values = np.rint(255.0 * np.clip(scaled, 0.0, 1.0)).astype(np.uint8)
    return values if color else np.repeat(values[..., None], 3, axis=-1)


def boundaries(labels: IntArray) -> Flags:
    """Which pixels lie beside one of another class; both sides of a boundary count. Pages of stacks count apart."""
    found = np.zeros(labels.shape, dtype=bool)
    for differ, axis in ((labels[..., 1:, :] != labels[..., :-1, :], -2), (labels[..., 1:] != labels[..., :-1], -1)):
        ahead = [slice(None)] * labels.ndim
        behind = [slice(None)] * labels.ndim
        ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
        found[tuple(ahead)] |= differ
        found[tuple(behind)] |= differ
    return found


def overlay(image: Array, labels: IntArray, colors: Bytes, *, tint: float = TINT) -> Bytes:
    """The image with its classes tinted and their boundaries drawn, in 8-bit RGB.

    Of two classes, only the second is tinted: the first is the background.

    Args:
        image: an image or stack.
        labels: the class of each pixel.
        colors: of the classes, shape ``(n_classes, 3)``.
        tint: how much of the class's color a pixel has.
    """
    below = shown_image(image).astype(np.float64)
    share = np.full(labels.shape, tint)
    if len(colors) == 2:
        share[labels == 0] = 0.0
    mixed = below * (1.0 - share[..., None]) + share[..., None] * colors[labels]
    mixed[boundaries(labels)] = 255.0
    if len(colors) == 2:
        mixed[boundaries(labels) & (labels == 1)] = colors[1]
    return np.rint(mixed).astype(np.uint8)
