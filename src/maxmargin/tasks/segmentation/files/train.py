"""Training from files: images with masks, and scans with a column of labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from maxmargin import _threads
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.text import FileError, name_of
from maxmargin.tasks.segmentation.encoder.images import ImageEncoder
from maxmargin.tasks.segmentation.encoder.scans import ScanEncoder
from maxmargin.tasks.segmentation.encoder.segmentation import SegmentationEncoder
from maxmargin.tasks.segmentation.images.extractor import ImageExtractor
from maxmargin.tasks.segmentation.io.classes import Definition
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
    labeled, encoder = image_files(images, masks, definition, extractor)
    with _threads.threads(settings.n_jobs):
        X, y = read_images(labeled)
        held_out = None if dev is None else read_images(LabeledImages.of(*dev, labeled.codes))
    with file_names([image for image, _ in labeled.pairs]):
        return train_segmenter(encoder, X, y, settings, stages, dev=held_out, refine=refine, verbose=verbose)


def image_files(
    images: Paths, masks: Paths, definition: Definition, extractor: ImageExtractor | None = None
) -> tuple[LabeledImages, ImageEncoder]:
    """Return the images and masks of folders, to be read one by one, and an encoder that knows their classes."""
    pairs = pair_files(images, masks)
    codes = learn_codes([mask for _, mask in pairs], definition)
    encoder = ImageEncoder(extractor or ImageExtractor(), tuple(range(codes.n_classes)), codes=codes)
    return LabeledImages(tuple(pairs), codes), encoder


def read_images(labeled: LabeledImages) -> tuple[list[Any], list[IntArray]]:
    """Read images, and the classes of their pixels."""
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
    scans = list(ScanFiles.of(paths, label_column))
    encoder = scan_encoder(scans, definition, extractor)
    held_out = None if dev is None else read_scans(encoder, dev, label_column)
    with file_names([Path(str(scan.source)) for scan in scans]):
        y = [point_classes(scan, encoder.file_codes) for scan in scans]
        return train_segmenter(encoder, scans, y, settings, stages, dev=held_out, verbose=verbose)


@dataclass(frozen=True)
class ScanFiles(Sequence[Scan]):
    """Scans in files, each read when it is asked for.

    Attributes:
        paths: the files.
        label_column: the column of labels, by name or number from 1; None for the one of a usual name.
    """

    paths: tuple[Path, ...]
    label_column: str | int | None = None

    @classmethod
    def of(cls, paths: Sequence[str | Path], label_column: str | int | None) -> ScanFiles:
        """The files, and those of folders."""
        return cls(tuple(list_files(list(paths), SUFFIXES, what="scans")), label_column)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, at: Any) -> Any:
        """Read a scan, or several."""
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        return read_scan(self.paths[at], self.label_column)


def scan_encoder(scans: Sequence[Scan], definition: Definition, extractor: ScanExtractor | None = None) -> ScanEncoder:
    """Return an encoder that knows the classes of scans, and their attributes."""
    codes = learn_scan_codes(scans, definition)
    extractor = extractor or ScanExtractor()
    if extractor.attributes is None:
        extractor = replace(extractor, attributes=usual_attributes(scans))
    return ScanEncoder(extractor, tuple(range(codes.n_classes)), codes=codes)


def read_scans(
    encoder: SegmentationEncoder, paths: Sequence[str | Path], label_column: str | int | None
) -> tuple[list[Any], list[IntArray]]:
    """Read scans, and the classes of their points."""
    scans = list(ScanFiles.of(paths, label_column))
    return scans, [point_classes(scan, encoder.file_codes) for scan in scans]


@contextmanager
def file_names(paths: Sequence[Path]) -> Iterator[None]:
    """Errors that begin with the number of an example name its file instead."""
    try:
        yield
    except FileError:
        raise
    except ValueError as error:
        named = re.sub(r"^(example|scan) (\d+)\b", lambda found: name_of(paths[int(found[2])]), str(error))
        raise FileError(named) from None


USUAL = ("intensity", "red", "green", "blue", "r", "g", "b", "nir", "return_number", "number_of_returns")
"""Attributes that are features unless others are named: others may be numbers of points, times, or notes on labels."""


def usual_attributes(scans: Sequence[Scan]) -> tuple[str, ...]:
    """The attributes with usual names that all scans have."""
    common = set(USUAL)
    for scan in scans:  # once, as they may be read from files
        common &= set(scan.attributes)
    return tuple(name for name in USUAL if name in common)
