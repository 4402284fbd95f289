"""The encoder of images, and the second cut that they get: of pixels near the boundaries of regions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from maxmargin.encoders.base import State
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.segmentation.encoder.segmentation import GraphEncoder, SegmentationEncoder, graph_from_state
from maxmargin.tasks.segmentation.images.extractor import ImageExtractor, ImageSites
from maxmargin.tasks.segmentation.images.pixel_cut import PixelGraph, pixel_graph
from maxmargin.tasks.segmentation.sites import Extractor

BAND = 0.7
"""How far the band of pixels reaches from a boundary, in sides of a region."""


@dataclass(frozen=True, eq=False)
class PixelCut:
    """Learned cuts of pixels.

    Attributes:
        graph: encodes the graphs of pixels.
        weights: the weights of their nodes and edges.
        band: how far the band of pixels reaches from a boundary, in sides of a region.
    """

    graph: GraphEncoder
    weights: FloatArray
    band: float = BAND

    def pixels(self, sites: ImageSites, probabilities: FloatArray, labels: IntArray) -> PixelGraph:
        """The pixels near boundaries of labeled regions."""
        return pixel_graph(sites, probabilities, labels, band=self.band)

    def state(self) -> State:
        """Plain values and arrays."""
        return {
            "pixel_graph": self.graph.kind,
            "pixel_graph_state": self.graph.state(),
            "pixel_weights": self.weights,
            "pixel_band": self.band,
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The inverse of :meth:`state`; ValueError, KeyError or TypeError if it makes no sense."""
        graph = graph_from_state(state["pixel_graph"], state["pixel_graph_state"])
        weights, band = state["pixel_weights"], state["pixel_band"]
        if weights.dtype != np.float64 or weights.shape != (graph.n_weights,) or not np.isfinite(weights).all():
            raise ValueError("the weights of its cut of pixels are damaged")
        signed = graph.nonnegative()
        if signed is not None and (weights[signed] < 0).any():
            raise ValueError("the weights of its cut of pixels must be >= 0 at edges")
        if not isinstance(band, (int, float)) or isinstance(band, bool) or not 0 < band < np.inf:
            raise ValueError("the band of its cut of pixels is damaged")
        return cls(graph, weights, float(band))


@dataclass(frozen=True, eq=False)
class ImageEncoder(SegmentationEncoder):
    """Encodes images and stacks.

    Attributes:
        pixel_cut: the learned cut of pixels near boundaries; None leaves every pixel the label of its region.
    """

    pixel_cut: PixelCut | None = None

    kind = "image segmentation"
    model_class = "maxmargin.tasks.segmentation.model:ImageSegmenterModel"
    extractor_class: ClassVar[type[Extractor]] = ImageExtractor

    def state(self) -> State:
        """Also the cut of pixels."""
        return {**super().state(), **({} if self.pixel_cut is None else self.pixel_cut.state())}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        found = super().from_state(state)
        return found if "pixel_graph" not in state else replace(found, pixel_cut=PixelCut.from_state(state))
