"""Training from files: images with masks, and scans with a column of labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from maxmargin import _threads
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.text import FileError, name_of
from maxmargin.tasks.segmentation.encoder.images import ImageEncoder
from maxmargin.tasks.segmentation.encoder.scans import ScanEncoder
from maxmargin.tasks.segmentation.images.extractor import ImageExtractor
from maxmargin.tasks.segmentation.io.classes import ClassCodes, Definition
from maxmargin.tasks.segmentation.io.folders import LabeledImages, Paths, list_files, pair_files
from maxmargin.tasks.segmentation.io.masks import learn_codes
from maxmargin.tasks.segmentation.io.points import Scan
from maxmargin.tasks.segmentation.io.scans import SUFFIXES, learn_scan_codes, point_classes, read_scan
from maxmargin.tasks.segmentation.model import SegmenterModel
from maxmargin.tasks.segmentation.scans.extractor import ScanExtractor
from maxmargin.tasks.segmentation.training import StageSettings, train_segmenter
from maxmargin.training import Settings


def train_on_images(
    images: Paths,
    masks: Paths,
    definition: Definition,
    settings: Settings,
    stages: StageSettings,
    *,
    dev: tuple[Paths, Paths] | None = None,
    extractor: ImageExtractor | None = None,
    refine: bool = True,
    verbose: bool = False,
) -> SegmenterModel:
    """Train on folders of images and masks with the same names.

    Args:
        images: folder or files of images.
        masks: folder or files of their masks.
        definition: what the user said of classes.
        settings: how to train the cuts.
        stages: how to train the stages.
        dev: images and masks that choose C and the stopping point.
        extractor: how to make graphs of images.
        refine: whether pixels near boundaries get a second cut.
        verbose: whether to draw progress bars on a terminal.
    """
    pairs = pair_files(images, masks)
    codes = learn_codes([mask for _, mask in pairs], definition)
    with _threads.threads(settings.n_jobs):
        X, y = _read_images(LabeledImages(tuple(pairs), codes))
        held_out = None if dev is None else _read_images(LabeledImages.of(*dev, codes))
    encoder = ImageEncoder(extractor or ImageExtractor(), tuple(range(codes.n_classes)), codes=codes)
    with _file_names([image for image, _ in pairs]):
        return train_segmenter(encoder, X, y, settings, stages, dev=held_out, refine=refine, verbose=verbose)


def _read_images(labeled: LabeledImages) -> tuple[list[Any], list[IntArray]]:
    found = list(_threads.mapped(labeled.__getitem__, range(len(labeled))))
    return [one.image for one in found], [one.mask for one in found]


def train_on_scans(
    paths: Sequence[str | Path],
    definition: Definition,
    settings: Settings,
    stages: StageSettings,
    *,
    label_column: str | int | None = None,
    dev: Sequence[str | Path] | None = None,
    extractor: ScanExtractor | None = None,
    verbose: bool = False,
) -> SegmenterModel:
    """Train on files of scans, or folders of such files.

    Args:
        paths: labeled scans.
        definition: what the user said of classes.
        settings: how to train the cut.
        stages: how to train the stages.
        label_column: the column of labels, by name or number from 1; None for the one of a usual name.
        dev: scans that choose C and the stopping point.
        extractor: how to make graphs of scans; unless it names attributes, those with usual names are features.
        verbose: whether to draw progress bars on a terminal.
    """
    files = list_files(list(paths), SUFFIXES, what="scans")
    scans = [read_scan(path, label_column) for path in files]
    codes = learn_scan_codes(scans, definition)
    extractor = extractor or ScanExtractor()
    if extractor.attributes is None:
        extractor = replace(extractor, attributes=usual_attributes(scans))
    encoder = ScanEncoder(extractor, tuple(range(codes.n_classes)), codes=codes)
    held_out: tuple[list[Any], list[IntArray]] | None = None
    if dev is not None:
        given = [read_scan(path, label_column) for path in list_files(list(dev), SUFFIXES, what="scans")]
        held_out = given, _classes(given, codes)
    with _file_names(files):
        return train_segmenter(encoder, scans, _classes(scans, codes), settings, stages, dev=held_out, verbose=verbose)


@contextmanager
def _file_names(paths: Sequence[Path]) -> Iterator[None]:
    """Errors that begin with the number of an example name its file instead."""
    try:
        yield
    except FileError:
        raise
    except ValueError as error:
        named = re.sub(r"^(example|scan) (\d+)\b", lambda found: name_of(paths[int(found[2])]), str(error))
        raise FileError(named) from None


def _classes(scans: Sequence[Any], codes: ClassCodes) -> list[IntArray]:
    return [point_classes(scan, codes) for scan in scans]


USUAL = ("intensity", "red", "green", "blue", "r", "g", "b", "nir", "return_number", "number_of_returns")
"""Attributes that are features unless others are named: others may be numbers of points, times, or notes on labels."""


def usual_attributes(scans: Sequence[Scan]) -> tuple[str, ...]:
    """The attributes with usual names that all scans have."""
    return tuple(name for name in USUAL if all(name in scan.attributes for scan in scans))
