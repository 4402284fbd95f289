"""Datasets from files: images with masks, and scans with a column of labels, read a few at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxmargin import _threads
from maxmargin.datasets import DataBlock, DataSource
from maxmargin.structures.base import IntArray
from maxmargin.tasks.segmentation.files.train import ScanFiles, read_images
from maxmargin.tasks.segmentation.io.classes import ClassCodes
from maxmargin.tasks.segmentation.io.folders import LabeledImages
from maxmargin.tasks.segmentation.io.scans import point_classes
from maxmargin.tasks.segmentation.sharding import BLOCK


class FileSource(DataSource):
    """Images or scans of files with their labels.

    Args:
        files: the files.
        codes: the values of classes in them.
    """

    def __init__(self, files: LabeledImages | ScanFiles, codes: ClassCodes) -> None:
        self._files, self._codes, self._at = files, codes, 0

    def next(self) -> DataBlock | None:
        """See :meth:`DataSource.next`."""
        first, self._at = self._at, self._at + BLOCK
        if first >= len(self._files):
            return None
        return DataBlock(*self._read(slice(first, self._at)))

    def _read(self, some: slice) -> tuple[list[Any], list[IntArray]]:
        files = self._files
        if isinstance(files, LabeledImages):
            return read_images(files[some])
        numbers: Sequence[int] = range(*some.indices(len(files)))
        scans = list(_threads.mapped(files.__getitem__, numbers))
        return scans, [point_classes(scan, self._codes) for scan in scans]

    def reset(self) -> None:
        """See :meth:`DataSource.reset`."""
        self._at = 0
