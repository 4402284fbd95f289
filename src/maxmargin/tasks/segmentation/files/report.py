"""Reports of models: predictions of labeled images or scans on one page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.text import FileError, name_of
from maxmargin.tasks.common.progress import Stages
from maxmargin.tasks.segmentation.files.predict import class_numbers, segmented, takes_scans
from maxmargin.tasks.segmentation.io import scans as scan_files
from maxmargin.tasks.segmentation.io.folders import LabeledImages, Paths, by_stem, list_files, stem_of
from maxmargin.tasks.segmentation.io.scans import point_classes, read_scan
from maxmargin.tasks.segmentation.metrics.scores import joined
from maxmargin.tasks.segmentation.model import SegmenterModel
from maxmargin.tasks.segmentation.show import Case, class_colors, default_colors, image_case, page, scan_case

LIMIT = 200
"""So many images or scans get a card, by default."""


def report_on_images(
    model: SegmenterModel,
    images: Paths,
    masks: Paths,
    *,
    title: str = "Segmentation",
    limit: int = LIMIT,
    bar: Stages | None = None,
) -> str:
    """The report on a model's predictions of images with masks, as HTML.

    Args:
        model: the model; it labels images.
        images: folder or files of images.
        masks: folder or files of their masks, with the same names and values as in training.
        title: heading of the page.
        limit: number of cards, of the worst images.
        bar: shows the progress.
    """
    if takes_scans(model):
        raise ValueError("the model labels scans; give --scans instead of --images and --masks")
    codes, alone = model.encoder.file_codes, replace(model, n_jobs=None)
    labeled, colors = LabeledImages.of(images, masks, codes), class_colors(codes)

    def one(at: int) -> Case:
        found = labeled[at]
        try:
            classes = class_numbers(alone, segmented(alone, found.image).labels)
        except ValueError as error:
            raise FileError(f"{name_of(labeled.pairs[at][0])}: {error}") from None
        return image_case(found.name, found.image, found.mask, classes, codes.names, colors)

    with _threads.threads(model.n_jobs):
        cases = _collected(_threads.mapped(one, range(len(labeled))), len(labeled), bar)
    return page_of(cases, colors, title=title, limit=limit, facts=model.metadata)


def report_on_scans(
    model: SegmenterModel,
    paths: Paths,
    *,
    label_column: str | int | None = None,
    title: str = "Segmentation",
    limit: int = LIMIT,
    bar: Stages | None = None,
) -> str:
    """The report on a model's predictions of labeled scans, as HTML.

    Args:
        model: the model; it labels scans.
        paths: folder or files of labeled scans.
        label_column: the column of labels, as in :func:`read_scan`.
        title: heading of the page.
        limit: number of cards, of the worst scans.
        bar: shows the progress.
    """
    if not takes_scans(model):
        raise ValueError("the model labels images; give --images and --masks instead of --scans")
    codes, alone = model.encoder.file_codes, replace(model, n_jobs=None)
    files = list(by_stem(list_files(paths, scan_files.SUFFIXES, what="scans")).values())
    colors = class_colors(codes)

    def one(path: Path) -> Case:
        scan = read_scan(path, label_column)
        gold = point_classes(scan, codes)
        try:
            classes = class_numbers(alone, segmented(alone, scan).labels)
        except ValueError as error:
            raise FileError(f"{name_of(path)}: {error}") from None
        return scan_case(stem_of(path), scan.points, gold, classes, codes.names, colors)

    with _threads.threads(model.n_jobs):
        cases = _collected(_threads.mapped(one, files), len(files), bar)
    return page_of(cases, colors, title=title, limit=limit, facts=model.metadata)


def report_on_arrays(
    names: Sequence[str],
    images: Sequence[npt.NDArray[Any]],
    gold: Sequence[IntArray],
    predicted: Sequence[IntArray],
    class_names: Sequence[str],
    *,
    title: str = "Segmentation",
    limit: int = LIMIT,
    facts: dict[str, Any] | None = None,
) -> str:
    """The report on labels of images from anywhere, as HTML.

    Args:
        names: of the images.
        images: arrays, as :func:`read_image` returns them.
        gold: the annotators' class of each pixel, from 0, -1 for none.
        predicted: the predicted classes.
        class_names: names of the classes.
        title: heading of the page.
        limit: number of cards, of the worst images.
        facts: metadata of a model, as :attr:`Model.metadata` has them.
    """
    colors = default_colors(len(class_names))
    rows = zip(names, images, gold, predicted, strict=True)
    cases = [image_case(*row, class_names, colors) for row in rows]
    return page_of(cases, colors, title=title, limit=limit, facts=facts)


def page_of(cases: Sequence[Case], colors: npt.NDArray[np.uint8], *, title: str, limit: int, facts: Any) -> str:
    """The page of all cases, with cards of the worst ones."""
    worst = sorted(cases, key=lambda case: -np.nan_to_num(case.scores.error, nan=-1.0))[:limit]
    return page(worst, joined([case.scores for case in cases]), colors, title=title, facts=facts)


def _collected(cases: Iterable[Case], count: int, bar: Stages | None) -> list[Case]:
    bar = bar or Stages(False)
    bar.begin("report", count)
    found = []
    for case in cases:
        found.append(case)
        bar.advance()
    return found
