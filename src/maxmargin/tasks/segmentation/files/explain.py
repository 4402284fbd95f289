"""Explanations of the labels of one file, with pictures of where the other labels differ."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._messages import quoted
from maxmargin.explanation.page import Picture
from maxmargin.explanation.result import Explanation
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.text import FileError, name_of
from maxmargin.tasks.segmentation.files.predict import class_numbers, takes_scans
from maxmargin.tasks.segmentation.io.images import read_image, resize_labels
from maxmargin.tasks.segmentation.io.masks import read_mask
from maxmargin.tasks.segmentation.io.points import Scan
from maxmargin.tasks.segmentation.io.scans import point_classes, read_scan
from maxmargin.tasks.segmentation.model import PLACES, SegmenterModel
from maxmargin.tasks.segmentation.show.cases import WRONG
from maxmargin.tasks.segmentation.show.overlay import class_colors, overlay, shown_image
from maxmargin.tasks.segmentation.show.pictures import indexed_png, jpeg, raster, reduced, top_view


def explain_file(
    model: SegmenterModel,
    path: str,
    *,
    at: str | None = None,
    gold: str | None = None,
    label_column: str | int | None = None,
    drawn: bool = False,
) -> tuple[Explanation, list[Picture]]:
    """The explanation of the labels of an image or scan, and pictures of it.

    Args:
        model: labels images, or scans.
        path: the file.
        at: a pixel, ``"row,column"``, or the number of a point: compare with the best labels that differ there.
        gold: a file of other labels to compare with.
        label_column: the column of labels in a scan of them.
        drawn: whether pictures are made.
    """
    scan = takes_scans(model)
    given: Any = read_scan(path) if scan else read_image(path)
    against = None
    if gold is not None:
        codes = model.encoder.file_codes
        classes = point_classes(read_scan(gold, label_column), codes) if scan else read_mask(gold, codes)
        labels = np.array([*(model.encoder.classes or ()), model.encoder.void], dtype=np.int64)  # -1 is the last entry
        against = labels[classes]
    place = None if at is None else _place(at, model.encoder.extractor.labels_shape(given), name_of(path))
    try:
        found = model.explain(given, against=against, at=place)
    except FileError:
        raise
    except ValueError as error:
        raise FileError(f"{name_of(path if gold is None else gold)}: {error}") from None
    if not drawn:
        return found, []
    output = class_numbers(model, found.output)
    rival = output if found.rival is None else class_numbers(model, found.rival)
    return found, (_of_scan if scan else _of_image)(model, given, output, rival)


def _place(text: str, shape: tuple[int, ...], name: str) -> list[int]:
    """A place in labels of some shape, from its text."""
    if re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", text) is None:
        raise ValueError(f"--at must be whole numbers from 0 with commas, such as 12,40, got {quoted(text)}")
    place = [int(one) for one in text.split(",")]
    if len(place) != len(shape) or any(one >= n for one, n in zip(place, shape, strict=True)):
        units, wanted = PLACES[len(shape)]
        size = " x ".join(map(str, shape))
        raise ValueError(f"--at {text}: {name} has {size} {units}; give {wanted}, counted from 0")
    return place


def _of_image(model: SegmenterModel, image: npt.NDArray[Any], output: IntArray, rival: IntArray) -> list[Picture]:
    """The labeled image, and where the other labels differ; of a stack the page where most do."""
    shown, page = shown_image(image), ""
    if output.ndim == 3:
        at = int((output != rival).sum(axis=(1, 2)).argmax())
        shown, output, rival, page = shown[at], output[at], rival[at], f" of page {at + 1}"
    if shown.shape[:2] != output.shape:
        output, rival = (np.asarray(resize_labels(labels, shown.shape[:2])) for labels in (output, rival))
    labeled = overlay(shown, output, class_colors(model.encoder.file_codes))
    differ = shown.copy()
    differ[output != rival] = WRONG[:3]
    return [
        Picture(jpeg(reduced(labeled)), "jpeg", f"The labels{page}"),
        Picture(jpeg(reduced(differ)), "jpeg", f"Where the other labels{page} differ"),
    ]


def _of_scan(model: SegmenterModel, scan: Scan, output: IntArray, rival: IntArray) -> list[Picture]:
    """The labeled points, and where the other labels differ, from above."""
    place, nearness = top_view(scan.points)
    colors = class_colors(model.encoder.file_codes)
    table = [(0, 0, 0, 0), *((*color, 255) for color in colors.tolist())]
    differ = output != rival
    marks = raster(place, nearness + np.where(differ, np.ptp(nearness) + 1.0, 0.0), np.where(differ, 2, 1))
    return [
        Picture(indexed_png(raster(place, nearness, output + 1), table), "png", "The labels, from above"),
        Picture(indexed_png(marks, [(0, 0, 0, 0), (128, 138, 148, 255), WRONG]), "png", "Where the others differ"),
    ]
