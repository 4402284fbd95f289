"""Interactive segmentation: the labels of one image or scan, solved again as seeds come in.

Features, stages and scores are computed once. Seeds change the scores of a few nodes only, and the cuts start from the
flow of the last call, so that a stroke takes milliseconds for two classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import _threads
from maxmargin.structures.base import FloatArray, IntArray, Structure
from maxmargin.structures.cuts.cut import Cut
from maxmargin.tasks.segmentation.encoder.images import ImageEncoder, PixelCut
from maxmargin.tasks.segmentation.images.extractor import ImageSites
from maxmargin.tasks.segmentation.images.pixel_cut import band_of, pixel_graph, region_side
from maxmargin.tasks.segmentation.model import ImageSegmenterModel, SegmenterModel, best_labels


class Interactive:
    """The segmentation of one image or scan under changing seeds.

    ``segment(seeds)`` returns what ``model.predict([given], seeds=[seeds])[0]`` returns.

    Args:
        model: a trained segmenter.
        given: the image or scan.
    """

    def __init__(self, model: SegmenterModel, given: Any) -> None:
        self._model, self._encoder = model, model.encoder
        with _threads.threads(model.n_jobs):
            self._sites = self._encoder.extractor.sites(given)
            self._probabilities = self._encoder.auto_context.probabilities(self._sites)
            batch = self._encoder.pack([self._sites], [self._probabilities])
            self._nodes = _WarmGraph(batch.structure, batch.features.scores(model.weights))
            cut = self._encoder.pixel_cut if isinstance(self._encoder, ImageEncoder) else None
            self._pixel_cut = cut
            # A network of more than two classes has no flow to start from: its band is solved anew each time.
            two = len(self._encoder.classes or ()) == 2
            self._pixels = None if cut is None or not two else self._whole(cut)

    def _whole(self, cut: PixelCut) -> _WarmGraph:
        """The graph of all pixels; those outside the band will be held."""
        assert isinstance(self._sites, ImageSites)
        labels = np.zeros(self._sites.node_of.shape, dtype=np.int64)
        found = pixel_graph(self._sites, self._probabilities, labels, np.inf)
        batch = cut.graph.batch(cut.graph.parse([found.graph]))
        return _WarmGraph(batch.structure, batch.features.scores(cut.weights))

    def segment(self, seeds: Any = None) -> IntArray:
        """The label of every pixel or point.

        Args:
            seeds: labels of some pixels or points, void elsewhere, in an array of the shape of the labels; None for
                none. They replace those of the last call.
        """
        k = len(self._encoder.classes or ())
        shape = self._sites.node_of.shape
        codes = np.full(shape, -1) if seeds is None else self._encoder.coded([seeds])[0]
        if codes.shape != shape:
            raise ValueError(f"seeds of shape {codes.shape}, expected {shape}")
        with _threads.threads(self._model.n_jobs):
            labels = self._nodes.solve(self._sites.counts(codes, k))[self._sites.node_of]
            labels = np.where(codes >= 0, codes, labels)
            if self._pixel_cut is not None and self._pixels is None:
                assert isinstance(self._model, ImageSegmenterModel)
                assert isinstance(self._sites, ImageSites)
                labels = self._model.pixel_labels(self._sites, self._probabilities, labels, codes)
            elif self._pixels is not None and self._pixel_cut is not None:
                assert isinstance(self._sites, ImageSites)
                free = band_of(labels, self._pixel_cut.band * region_side(self._sites)) & (codes < 0)
                if free.any():
                    counts = np.zeros((labels.size, k))
                    held = np.flatnonzero(~free)
                    counts[held, labels.ravel()[held]] = 1.0
                    labels = self._pixels.solve(counts).reshape(shape)
        return np.asarray(self._encoder.classes or (), dtype=np.int64)[labels]


class _WarmGraph:
    """One graph with the scores that the weights give, and the flow of the last cut."""

    def __init__(self, structure: Structure, scores: FloatArray) -> None:
        self._structure, self._scores = structure, scores
        self._flow: Any = None
        if isinstance(structure, Cut):
            # A node whose score exceeds the capacities of its edges takes its label, whatever its neighbors do.
            capacity = -np.minimum(scores[len(scores) - len(structure.edges) :], 0.0)
            ends = structure.edges.ravel()
            self._enough = 1.0 + np.bincount(ends, np.repeat(capacity, 2), minlength=int(structure.n_nodes[0]))

    def solve(self, counts: FloatArray) -> IntArray:
        """The best labels, where nodes with counts take their most frequent class."""
        scores = self._scores.copy()
        if not isinstance(self._structure, Cut):
            return best_labels(self._structure, scores, counts)
        seeded = np.flatnonzero(counts.any(axis=1))
        sign = np.where(counts[seeded].argmax(axis=1) > 0, 1.0, -1.0)
        scores[seeded] = sign * self._enough[seeded]
        best = self._structure.argmax(scores, warm=self._flow)
        self._flow = best.warm
        return self._structure.decode(best.z)[0]
