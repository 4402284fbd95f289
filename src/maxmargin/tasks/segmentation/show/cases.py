"""Cases of a report: an image or a scan with the labels of annotators and of a model, as small pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.segmentation.io.images import resize_labels
from maxmargin.tasks.segmentation.metrics.scores import Scores, evaluate
from maxmargin.tasks.segmentation.show.overlay import Bytes, boundaries, shown_image
from maxmargin.tasks.segmentation.show.pictures import (
    indexed_png,
    jpeg,
    raster,
    reduced,
    reduced_size,
    side_view,
    top_view,
)

WRONG = (255, 64, 24, 240)
_DIMMED, _VOID = (16, 20, 26, 165), (128, 128, 128, 215)
GOLD_EDGE, PREDICTED_EDGE = (255, 255, 255, 255), (255, 214, 10, 255)
_RIGHT_POINT, _VOID_POINT = (128, 138, 148, 255), (128, 138, 148, 90)


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture of a case.

    Attributes:
        title: what it shows.
        layer: a PNG file to lay over the image; None for the image alone.
    """

    title: str
    layer: bytes | None


@dataclass(frozen=True, eq=False)
class Case:
    """An image or a scan of a report.

    Attributes:
        name: its name.
        scores: of this case alone.
        views: the pictures side by side, and what they are views of; no name if there is one view.
        size: height and width of the pictures of each view.
        photo: the image as a JPEG file; None for scans.
        edges: PNG files of the boundaries of gold and predicted labels; None for scans.
        note: what else to say of it.
    """

    name: str
    scores: Scores
    views: Sequence[tuple[str, Sequence[Picture]]]
    size: Sequence[tuple[int, int]]
    photo: bytes | None = None
    edges: tuple[bytes, bytes] | None = None
    note: str = ""


def image_case(
    name: str,
    image: npt.NDArray[Any],
    gold: IntArray,
    predicted: IntArray,
    class_names: Sequence[str],
    colors: Bytes,
) -> Case:
    """The case of an image, or of a stack, which shows the page with the most errors.

    Args:
        name: of the image.
        image: as :func:`read_image` returns it, in the size of the labels.
        gold: the annotators' class of each pixel, -1 for none.
        predicted: the predicted classes.
        class_names: names of the classes.
        colors: of the classes, shape ``(n_classes, 3)``.
    """
    scores = evaluate([gold], [predicted], class_names, images=[name])
    shown, note = shown_image(image), ""
    if gold.ndim == 3:
        wrong = ((gold >= 0) & (gold != predicted)).sum(axis=(1, 2))
        page = int(wrong.argmax())
        shown, gold, predicted = shown[page], gold[page], predicted[page]
        note = f"page {page + 1} of {len(wrong)}, the one with the most errors"
    size = reduced_size(*gold.shape)
    gold, predicted = (np.asarray(resize_labels(labels, size)) for labels in (gold, predicted))
    table = np.concatenate([np.column_stack([colors, np.full(len(colors), 255)]), [(0, 0, 0, 0)]])
    errors = np.where(gold < 0, 2, gold != predicted)
    last = len(colors)
    pictures = (
        Picture("image", None),
        Picture("gold", indexed_png(np.where(gold < 0, last, gold), table)),
        Picture("prediction", indexed_png(np.where(predicted < 0, last, predicted), table)),
        Picture("errors", indexed_png(errors, (_DIMMED, WRONG, _VOID))),
    )
    edges = [
        indexed_png(boundaries(labels), ((0, 0, 0, 0), color))
        for labels, color in ((gold, GOLD_EDGE), (predicted, PREDICTED_EDGE))
    ]
    return Case(name, scores, [("", pictures)], [size], jpeg(reduced(shown)), (edges[0], edges[1]), note)


def scan_case(
    name: str,
    points: FloatArray,
    gold: IntArray,
    predicted: IntArray,
    class_names: Sequence[str],
    colors: Bytes,
) -> Case:
    """The case of a scan, seen from above and from the side.

    Args:
        name: of the scan.
        points: shape ``(n, 3)``.
        gold: the annotators' class of each point, -1 for none.
        predicted: the predicted classes.
        class_names: names of the classes.
        colors: of the classes, shape ``(n_classes, 3)``.
    """
    scores = evaluate([gold], [predicted], class_names, images=[name], boundaries=False, unit="point")
    none, k = (0, 0, 0, 0), len(colors)
    table = [none, *((*color, 255) for color in colors.tolist()), _VOID_POINT]
    wrong = (gold >= 0) & (gold != predicted)
    views, sizes = [], []
    for title, (place, nearness) in (("from above", top_view(points)), ("from the side", side_view(points))):
        found = [raster(place, nearness, np.where(labels < 0, k, labels) + 1) for labels in (gold, predicted)]
        # Errors are drawn in front of all else: none is hidden.
        front = nearness + np.where(wrong, np.ptp(nearness) + 1.0, 0.0)
        errors = raster(place, front, np.where(gold < 0, 3, np.where(wrong, 2, 1)))
        pictures = (
            Picture("gold", indexed_png(found[0], table)),
            Picture("prediction", indexed_png(found[1], table)),
            Picture("errors", indexed_png(errors, (none, _RIGHT_POINT, WRONG, _VOID_POINT))),
        )
        views.append((title, pictures))
        sizes.append((found[0].shape[0], found[0].shape[1]))
    return Case(name, scores, views, sizes)
