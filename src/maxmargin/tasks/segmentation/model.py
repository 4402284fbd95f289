"""A trained segmenter: labels and probabilities of every pixel or point, and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _threads
from maxmargin._messages import shown
from maxmargin.encoders.data import checks
from maxmargin.explanation.compute import explain_batch
from maxmargin.explanation.result import Explanation
from maxmargin.models.base import Model
from maxmargin.structures.base import FloatArray, IntArray, Structure
from maxmargin.structures.networks.network import Network
from maxmargin.tasks.segmentation.encoder.images import ImageEncoder
from maxmargin.tasks.segmentation.encoder.segmentation import SegmentationEncoder
from maxmargin.tasks.segmentation.images.extractor import ImageSites
from maxmargin.tasks.segmentation.sites import Sites

PLACES = {
    1: ("points", "the number of a point"),
    2: ("pixels", "a row and a column"),
    3: ("voxels", "a page, a row and a column"),
}
"""For labels of each number of dimensions what they are of, and what says where one of these is."""


@dataclass(frozen=True, eq=False)
class Segmentation:
    """One input's labels and probabilities.

    Attributes:
        labels: the label of every pixel or point.
        sites: the graph of the input.
        node_probabilities: class probabilities of its nodes, shape ``(n_nodes, n_classes)``.
    """

    labels: IntArray
    sites: Sites
    node_probabilities: FloatArray

    @property
    def probabilities(self) -> FloatArray:
        """The class probabilities of every pixel or point, shape ``(..., n_classes)``."""
        return self.node_probabilities[self.sites.node_of]


@dataclass(frozen=True, eq=False)
class SegmenterModel(Model):
    """A trained segmenter; inputs are images or scans, one at a time in memory.

    Attributes:
        encoder: turns inputs into graphs; has the stages.
    """

    encoder: SegmentationEncoder

    def predict(self, X: Sequence[Any], *, seeds: Sequence[Any] | None = None) -> list[IntArray]:  # type: ignore[override]
        """The label of every pixel or point of each input.

        Args:
            X: images or scans.
            seeds: for each input an array of labels, void where nothing is known, or None; predictions have exactly
                these labels there.
        """
        given = checks.examples(X)
        with _threads.threads(self.n_jobs):
            return list(
                _threads.mapped(
                    self._labels, list(zip(range(len(given)), given, self._seeds(given, seeds), strict=True))
                )
            )

    def predict_proba(self, X: Sequence[Any]) -> list[FloatArray]:
        """The class probabilities of every pixel or point, shape ``(..., n_classes)``: those of the last stage."""

        def one(item: tuple[int, Any]) -> FloatArray:
            index, given = item
            try:
                sites = self.encoder.extractor.sites(given)
            except ValueError as error:
                raise ValueError(f"example {index}: {error}") from None
            return self.encoder.auto_context.probabilities(sites)[sites.node_of]

        with _threads.threads(self.n_jobs):
            return list(_threads.mapped(one, list(enumerate(checks.examples(X)))))

    def score(self, X: Sequence[Any], y: Sequence[Any], sample_weight: Any = None) -> float:  # type: ignore[override]
        """The share of labeled pixels or points that are right."""
        gold = checks.examples(y, "y")
        found = self.predict(X)
        checks.same_length(found, gold)
        for index, (right, given) in enumerate(zip(gold, found, strict=True)):
            labels = checks.array(right, index, "y", "iu", f"integers of shape {given.shape}, one label each")
            if labels.shape != given.shape:
                raise ValueError(f"example {index}: y has shape {labels.shape}, expected {given.shape}")
        weight = checks.weights(sample_weight, len(gold))
        counts = np.array([self.encoder.agreement(np.asarray(a), b) for a, b in zip(gold, found, strict=True)])
        right, total = counts.T @ (np.ones(len(counts)) if weight is None else weight)
        return float(right / total) if total > 0 else 1.0

    def decision_function(self, X: Sequence[Any]) -> FloatArray:
        """Refused: the score of the regions' labels is not that of the pixels'."""
        raise ValueError("a segmenter has no decision_function; predict_proba(X) gives probabilities")

    def k_best(self, X: Sequence[Any], k: int) -> list[list[tuple[Any, float]]]:
        """Refused: labelings of regions are not labelings of pixels."""
        raise ValueError("a segmenter has no k_best; predict_proba(X) gives probabilities")

    def relaxation(self, X: Sequence[Any]) -> list[Any]:
        """Refused: it would speak of regions, not of pixels."""
        raise ValueError("a segmenter has no relaxation; its metadata say how its training went")

    def explain(  # type: ignore[override]
        self, x: Any, *, against: Any = None, at: int | Sequence[int] | None = None
    ) -> Explanation:
        """Explain the labels of one image or scan: what contributes to their margin over other labels.

        It is the cut of regions (or of pixels, voxels, points) that is explained, from the class probabilities of the
        last stage on; a second cut of pixels near boundaries comes after it.

        Args:
            x: an image or a scan.
            against: other labels of its pixels or points; where they are void, or a region has several, the most
                frequent one counts, or else the predicted one. None for the runner-up, the best other labels of
                regions.
            at: instead, a pixel ``(row, column)`` or the number of a point: the best labels that differ there.
        """
        with _threads.threads(self.n_jobs):
            sites = self.encoder.extractor.sites(x)
            batch = self.encoder.batch([sites])
            node = None if at is None else _node_at(sites, at)
            return explain_batch(self.encoder, batch, self.weights, x, against=against, at=node)

    def _seeds(self, given: list[Any], seeds: Sequence[Any] | None) -> list[IntArray | None]:
        """Seeds as numbers of classes, -1 elsewhere."""
        if seeds is None:
            return [None] * len(given)
        seeds = checks.examples(seeds, "seeds")
        checks.same_length(given, seeds, "seeds")
        found: list[IntArray | None] = []
        for index, (one, own) in enumerate(zip(given, seeds, strict=True)):
            if own is None:
                found.append(None)
                continue
            codes = self.encoder.codes_of(own, index)
            try:
                shape = self.encoder.extractor.labels_shape(one)
                if codes.shape != shape:
                    raise ValueError(f"seeds of shape {codes.shape}, expected {shape}")
            except ValueError as error:
                raise ValueError(f"example {index}: {error}") from None
            found.append(codes)
        return found

    def _labels(self, item: tuple[int, Any, IntArray | None]) -> IntArray:
        """The labels of one input."""
        index, given, seeds = item
        try:
            return self._segmented(given, seeds).labels
        except ValueError as error:
            raise ValueError(f"example {index}: {error}") from None

    def segment(self, given: Any, seeds: Any = None) -> Segmentation:
        """Labels and probabilities of one image or scan, for the work of one prediction.

        Args:
            given: the image or scan.
            seeds: as in :meth:`predict`, or None.
        """
        with _threads.threads(self.n_jobs):
            return self._segmented(given, self._seeds([given], [seeds])[0])

    def _segmented(self, given: Any, seeds: IntArray | None) -> Segmentation:
        """One input with seeds as numbers of classes."""
        sites = self.encoder.extractor.sites(given)
        probabilities = self.encoder.auto_context.probabilities(sites)
        nodes = self.node_labels(sites, probabilities, seeds)
        labels = self._finished(given, sites, probabilities, nodes, seeds)
        return Segmentation(np.asarray(self.encoder.classes or (), dtype=np.int64)[labels], sites, probabilities)

    def node_labels(self, sites: Sites, probabilities: FloatArray, seeds: IntArray | None = None) -> IntArray:
        """The classes of the nodes of one graph; a node with seeds has their most frequent class."""
        batch = self.encoder.pack([sites], [probabilities])
        counts = None if seeds is None else sites.counts(seeds, len(self.encoder.classes or ()))
        return best_labels(batch.structure, self._scores(batch), counts)

    def _finished(
        self, given: Any, sites: Sites, probabilities: FloatArray, nodes: IntArray, seeds: IntArray | None
    ) -> IntArray:
        """The classes of pixels or points from those of nodes."""
        labels = nodes[sites.node_of]
        return labels if seeds is None else np.where(seeds >= 0, seeds, labels)


@dataclass(frozen=True, eq=False)
class ImageSegmenterModel(SegmenterModel):
    """A trained segmenter of images, which labels pixels near the boundaries of regions by a second cut."""

    encoder: ImageEncoder

    def _finished(
        self, given: Any, sites: Sites, probabilities: FloatArray, nodes: IntArray, seeds: IntArray | None
    ) -> IntArray:
        """The classes of pixels; seeds hold exactly."""
        labels = super()._finished(given, sites, probabilities, nodes, seeds)
        assert isinstance(sites, ImageSites)
        return self.pixel_labels(sites, probabilities, labels, seeds)

    def pixel_labels(
        self, sites: ImageSites, probabilities: FloatArray, labels: IntArray, seeds: IntArray | None = None
    ) -> IntArray:
        """The classes of pixels after the cut of those near boundaries.

        Args:
            sites: the sites of the image.
            probabilities: class probabilities of its nodes.
            labels: the class of each pixel so far.
            seeds: classes of pixels that keep them, -1 elsewhere; None for none.
        """
        cut = self.encoder.pixel_cut
        if cut is None:
            return labels
        found = cut.pixels(sites, probabilities, labels)
        if not len(found.pixels):
            return labels
        batch = cut.graph.batch(cut.graph.parse([found.graph]))
        # Pixels outside the band, and seeds, keep their labels.
        held = found.held if seeds is None else found.held | (seeds.ravel()[found.pixels] >= 0)
        counts = np.zeros((len(held), len(self.encoder.classes or ())))
        counts[np.flatnonzero(held), found.inside[held]] = 1.0
        return found.with_labels(best_labels(batch.structure, batch.features.scores(cut.weights), counts))


def _node_at(sites: Sites, at: Any) -> int:
    """The node of a pixel or point."""
    shape = sites.node_of.shape
    place = np.atleast_1d(checks.array(at, None, "at", "iu", "the indices of a pixel, or the number of a point"))
    if place.shape != (len(shape),) or (place < 0).any() or (place >= shape).any():
        units, wanted = PLACES[len(shape)]
        raise ValueError(
            f"at must be {wanted}, counted from 0, as there are {' x '.join(map(str, shape))} {units}; got {shown(at)}"
        )
    return int(sites.node_of[tuple(place.tolist())])


def best_labels(structure: Structure, scores: FloatArray, counts: FloatArray | None = None) -> IntArray:
    """The best labels of one graph's nodes.

    Args:
        structure: the graph.
        scores: of its parts; changed if there are seeds.
        counts: seeds of each class at each node, shape ``(n_nodes, n_classes)``: a node with seeds takes their most
            frequent class.
    """
    if counts is not None and counts.any():
        seeded = np.flatnonzero(counts.any(axis=1))
        wanted = counts[seeded].argmax(axis=1)
        # More than all else together: no other label of a seeded node can be part of the best output.
        enough = 1.0 + 2.0 * float(np.abs(scores).sum())
        if isinstance(structure, Network):
            table = scores[: counts.size].reshape(counts.shape)
            table[seeded] = -enough
            table[seeded, wanted] = enough
        else:
            scores[seeded] = np.where(wanted > 0, enough, -enough)
    return np.asarray(structure.labels(scores).outputs[0], dtype=np.int64)
