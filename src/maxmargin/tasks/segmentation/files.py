"""Training from files: images with masks, and scans with a column of labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from maxmargin.structures.base import IntArray
from maxmargin.tasks.segmentation.encoder.scans import ScanEncoder
from maxmargin.tasks.segmentation.io.classes import ClassCodes, Definition
from maxmargin.tasks.segmentation.io.folders import list_files
from maxmargin.tasks.segmentation.io.scans import SUFFIXES, learn_scan_codes, point_classes, read_scan
from maxmargin.tasks.segmentation.model import SegmenterModel
from maxmargin.tasks.segmentation.scans.extractor import ScanExtractor
from maxmargin.tasks.segmentation.training import StageSettings, train_segmenter
from maxmargin.training import Settings


def train_on_scans(
    paths: Sequence[str | Path],
    definition: Definition,
    settings: Settings,
    stages: StageSettings,
    *,
    label_column: str | int | None = None,
    dev: Sequence[str | Path] | None = None,
    voxel: float = ScanExtractor.voxel,
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
        voxel: the size of the voxels that thin scans.
        verbose: whether to draw progress bars on a terminal.
    """
    scans = [read_scan(path, label_column) for path in list_files(list(paths), SUFFIXES, what="scans")]
    codes = learn_scan_codes(scans, definition)
    encoder = ScanEncoder(ScanExtractor(voxel=voxel), tuple(range(codes.n_classes)), codes=codes)
    held_out: tuple[list[Any], list[IntArray]] | None = None
    if dev is not None:
        given = [read_scan(path, label_column) for path in list_files(list(dev), SUFFIXES, what="scans")]
        held_out = given, _classes(given, codes)
    return train_segmenter(encoder, scans, _classes(scans, codes), settings, stages, dev=held_out, verbose=verbose)


def _classes(scans: Sequence[Any], codes: ClassCodes) -> list[IntArray]:
    return [point_classes(scan, codes) for scan in scans]
