"""The encoder of scans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from maxmargin.tasks.segmentation.encoder.segmentation import SegmentationEncoder
from maxmargin.tasks.segmentation.scans.extractor import ScanExtractor
from maxmargin.tasks.segmentation.sites import Extractor


@dataclass(frozen=True, eq=False)
class ScanEncoder(SegmentationEncoder):
    """Encodes scans: points in space, with attributes if there are any."""

    kind = "scan segmentation"
    model_class = "maxmargin.tasks.segmentation.model:SegmenterModel"
    extractor_class: ClassVar[type[Extractor]] = ScanExtractor
