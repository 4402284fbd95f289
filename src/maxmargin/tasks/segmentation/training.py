"""Training of segmenters: stages by folds, then the weights of nodes and edges jointly by large margin.

The nodes of a training graph carry out-of-fold probabilities of the last stage, so that the cut learns how far to
trust them. The loss of a node is its number of labeled pixels or points, divided by the mean: the hinge loss bounds
the pixel error. Void pixels count nowhere, and nodes that are void altogether are left out of the training graphs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from maxmargin import _checks, _threads
from maxmargin._messages import shown
from maxmargin.encoders.cut import CutEncoder
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.inputs import Graph
from maxmargin.models.base import Model
from maxmargin.solvers import Status
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common.finished import Finished
from maxmargin.tasks.common.progress import Stages
from maxmargin.tasks.segmentation.encoder.images import BAND, PixelCut
from maxmargin.tasks.segmentation.encoder.potentials import classifier_weights
from maxmargin.tasks.segmentation.encoder.segmentation import (
    GraphEncoder,
    SegmentationEncoder,
    graph_encoder,
    graph_of,
    label_array,
)
from maxmargin.tasks.segmentation.images.extractor import ImageSites
from maxmargin.tasks.segmentation.images.pixel_cut import pixel_graph
from maxmargin.tasks.segmentation.learning.auto_context import MOST_STAGES, fit_auto_context
from maxmargin.tasks.segmentation.learning.fitting import check_classifier, resolved
from maxmargin.tasks.segmentation.learning.pieces import TrainingGraph, drawn_pieces
from maxmargin.tasks.segmentation.model import ImageSegmenterModel, SegmenterModel
from maxmargin.tasks.segmentation.sites import Sites
from maxmargin.training import Examples, Settings, train_examples

SETTINGS = Settings(C=1.0, tol=1e-3, random_state=0)
"""The default settings of the cuts of images."""

SCAN_SETTINGS = replace(SETTINGS, C=0.01)
"""The default settings of the cuts of scans: with less regularization, edges flip objects that the stages got right."""

ClassWeight = Mapping[Hashable, float] | str | None
"""Costs of classes: a number for each, "balanced", or None."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StageSettings:
    """How to train the stages.

    Attributes:
        classifier: the node classifier: "lightgbm", "boosting" (that of scikit-learn), "auto" for the first of these
            that is installed, "linear" (logistic regression on bins of each feature), or any classifier of
            scikit-learn with ``predict_proba``.
        stages: number of stages; all but the first see the probabilities of the stage before.
        folds: folds of images or scans by which probabilities are out of fold.
        class_weight: costs of errors at pixels or points of each class, by label; "balanced": inversely proportional
            to the number of them; None: 1.
    """

    classifier: Any = "auto"
    stages: int = 3
    folds: int = 5
    class_weight: ClassWeight = None

    def __post_init__(self) -> None:
        check_classifier(self.classifier)
        if _checks.integer("stages", self.stages, least=1) > MOST_STAGES:
            raise ValueError(f"stages must be at most {MOST_STAGES}, got {self.stages}")
        _checks.integer("folds", self.folds, least=2)
        given = self.class_weight
        if not (given is None or isinstance(given, Mapping) or given == "balanced"):
            raise ValueError(f'class_weight must be "balanced", numbers by label, or None, got {shown(given)}')

    def weights(self, classes: Sequence[Hashable], counts: FloatArray) -> FloatArray:
        """The cost of each class, from its number of pixels or points."""
        if self.class_weight is None:
            return np.ones(len(classes))
        if isinstance(self.class_weight, str):
            return np.asarray(counts.sum() / (len(classes) * np.maximum(counts, 1.0)))
        for label, value in self.class_weight.items():
            if label not in classes:
                raise ValueError(
                    f"class_weight names {shown(label)}, which is not a class: {', '.join(map(str, classes))}"
                )
            _checks.number(f"the class_weight of {shown(label)}", value, least=0)
        return np.array([float(self.class_weight.get(label, 1.0)) for label in classes])


@dataclass(frozen=True, eq=False)
class Labeled:
    """Sites with labels.

    Attributes:
        sites: one per image or scan.
        counts: for each, the labeled pixels or points of each class in a node, shape ``(n_nodes, n_classes)``.
    """

    sites: list[Sites]
    counts: list[FloatArray]

    @property
    def totals(self) -> FloatArray:
        """Pixels or points of each class."""
        return np.asarray(np.sum([own.sum(axis=0) for own in self.counts], axis=0))


def train_segmenter(
    encoder: SegmentationEncoder,
    X: Sequence[Any],
    y: Sequence[Any],
    settings: Settings = SETTINGS,
    stages: StageSettings | None = None,
    *,
    dev: tuple[Sequence[Any], Sequence[Any]] | None = None,
    refine: bool = True,
    verbose: bool = False,
) -> SegmenterModel:
    """Train a segmenter.

    Args:
        encoder: an encoder that has not been fitted, for example ``ImageEncoder(ImageExtractor())``.
        X: images or scans.
        y: their labels, arrays of integers with one label for each pixel or point.
        settings: how to train the cut.
        stages: how to train the stages.
        dev: images or scans and labels that choose C and the stopping point.
        refine: whether images get a second cut, of the pixels near boundaries. Its relative gap is 1e-2, or ``tol``
            if that is larger.
        verbose: whether to draw progress bars on a terminal.

    Returns:
        The model; ``model.training`` says how training went.
    """
    stages = stages or StageSettings()
    _checks.flag("refine", refine)
    check_void(encoder)
    began = time.perf_counter()
    finished = Finished(settings.checkpoint_of("-stages"))
    with _threads.threads(settings.n_jobs), Stages(verbose) as bar:
        with finished:
            prepared = prepare(encoder, X, y, stages, settings.random_state or 0, bar, finished)
        score = None
        if dev is not None:
            score = dev_score_of(prepared.encoder, dev, bar)
        bar.begin("cut", 1)
        trained = train_examples(prepared.examples(), settings, score=score)
        model = segmenter_of(prepared.encoder, trained)
        if isinstance(model, ImageSegmenterModel) and refine and not _interrupted(trained):
            bar.begin("pixels", 1)
            pixels = pixel_examples(model, prepared, y)
            model = model if pixels is None else with_pixel_cut(model, pixels, settings)
        if not _interrupted(model):
            finished.remove()
    used = resolved(stages.classifier)
    metadata = {
        "examples": len(prepared.labeled.sites),
        "nodes": sum(one.n_nodes for one in prepared.labeled.sites),
        "classifier": used if isinstance(used, str) else type(used).__name__,
        "stages": stages.stages,
        "folds": stages.folds,
        **model.metadata,
        "seconds": time.perf_counter() - began,
    }
    return replace(model, metadata=metadata)


def check_void(encoder: SegmentationEncoder) -> None:
    """ValueError unless the label of what has none is an integer."""
    if type(encoder.void) is not int:
        raise ValueError(
            f"void must be an integer, the label of pixels or points without one, got {shown(encoder.void)}"
        )


def dev_score_of(encoder: SegmentationEncoder, dev: Any, bar: Stages) -> Callable[[Model], float]:
    """:func:`dev_score` of examples ``(X, y)``, checked."""
    if not isinstance(dev, (tuple, list)) or len(dev) != 2:
        raise ValueError("dev must be a pair (X, y) of inputs and labels")
    try:
        held_out = checks.examples(dev[0]), checks.examples(dev[1], "y")
        return dev_score(encoder, labeled_sites(encoder, *held_out, bar, "dev features"))
    except ValueError as error:
        raise ValueError(f"dev data: {error}") from None


@dataclass(frozen=True, eq=False)
class Prepared:
    """Training data after the stages: what the weights of cuts are learned from.

    Attributes:
        encoder: knows the classes and the stages.
        labeled: sites and labels.
        probabilities: out-of-fold class probabilities of the nodes.
        cost: how much a pixel or point of each class counts.
        seed: random seed.
    """

    encoder: SegmentationEncoder
    labeled: Labeled
    probabilities: list[FloatArray]
    cost: FloatArray
    seed: int

    def examples(self) -> Examples:
        """The graphs of all nodes that are not void, with their labels and losses; of more than two classes, pieces."""
        k = len(self.encoder.classes or ())
        found = examples_of(self.graphs(), k, self.seed, potentials_of(self.encoder))
        return replace(found, anchor=anchor_of(k, found.encoder.n_weights))

    def graphs(self) -> list[TrainingGraph]:
        """The graphs of the nodes that are not void; none of what has no others."""
        triples = zip(self.labeled.sites, self.probabilities, self.labeled.counts, strict=True)
        known = [known_part(sites, own, counts * self.cost) for sites, own, counts in triples]
        return [one for one in known if len(one.labels)]


def potentials_of(encoder: SegmentationEncoder) -> str:
    """The potentials of edges that were chosen before the classes were known."""
    return encoder.graph.potentials if isinstance(encoder.graph, CutEncoder) else "potts"


def anchor_of(n_classes: int, n_weights: int) -> FloatArray | None:
    """The weights that those of more than two classes stay close to.

    With many weights of nodes, and few pixels or points of rare classes, the classifier is a better start than 0.
    """
    if n_classes == 2:
        return None
    anchor = np.zeros(n_weights)
    anchor[: (n_classes + 1) * n_classes] = classifier_weights(n_classes).ravel()
    return anchor


def segmenter_of(encoder: SegmentationEncoder, trained: Model) -> SegmenterModel:
    """The segmenter of a model of graphs."""
    encoder = replace(encoder, graph=cast(GraphEncoder, trained.encoder))
    shell = cast(SegmenterModel, Model.of(encoder, trained.n_jobs))
    return replace(shell, weights=trained.weights, metadata=trained.metadata, training=trained.training)


def prepare(
    encoder: SegmentationEncoder,
    X: Sequence[Any],
    y: Sequence[Any],
    stages: StageSettings,
    seed: int = 0,
    bar: Stages | None = None,
    finished: Finished | None = None,
) -> Prepared:
    """Compute features and train the stages.

    Args:
        encoder: an encoder that has not been fitted.
        X: images or scans.
        y: their labels.
        stages: how to train the stages.
        seed: random seed of folds and classifiers.
        bar: shows the progress.
        finished: keeps the stages, so that they are not repeated.
    """
    bar = bar or Stages(False)
    X, y = checks.examples(X), checks.examples(y, "y")
    checks.same_length(X, y)
    encoder = fitted(encoder, X, y)
    labeled = labeled_sites(encoder, X, y, bar, "features")
    missing = np.flatnonzero(labeled.totals == 0)
    if len(missing):
        name = encoder.class_names[missing[0]]
        raise ValueError(f"no pixel or point has the class {name}; label some, or leave the class out")
    cost = stages.weights(encoder.classes or (), labeled.totals)
    if not (cost > 0).all():
        raise ValueError("a class_weight is 0; give positive numbers, or make the class void")
    bar.begin("stages", stages.stages * min(stages.folds, max(2, len(X))))
    auto_context, probabilities = fit_auto_context(
        labeled.sites,
        labeled.counts,
        classifier=resolved(stages.classifier),
        stages=stages.stages,
        folds=stages.folds,
        seed=seed,
        class_weight=cost,
        advance=bar.advance,
        finished=finished,
    )
    return Prepared(replace(encoder, auto_context=auto_context), labeled, probabilities, cost, seed)


def fitted(encoder: SegmentationEncoder, X: Sequence[Any], y: Sequence[Any]) -> SegmentationEncoder:
    """The encoder with the classes of labels, and an extractor fitted to the inputs."""
    classes = encoder.classes
    if classes is None:
        values = np.unique(np.concatenate([np.unique(label_array(labels, i)) for i, labels in enumerate(y)]))
        classes = tuple(values[values != encoder.void].tolist())
    if len(classes) < 2:
        given = f"only the class {classes[0]}" if classes else "no class"
        raise ValueError(f"the labels have {given} besides void ({encoder.void}); give labels of two or more classes")
    return replace(encoder, classes=classes, extractor=encoder.extractor.fit(X))


def labeled_sites(encoder: SegmentationEncoder, X: list[Any], y: list[Any], bar: Stages, stage: str) -> Labeled:
    """The sites of inputs, and the classes of their nodes."""
    checks.same_length(X, y)
    k = len(encoder.classes or ())
    bar.begin(stage, len(X))

    def one(item: tuple[int, Any, IntArray]) -> tuple[Sites, FloatArray]:
        index, given, labels = item
        try:
            shape = encoder.extractor.labels_shape(given)
            if labels.shape != shape:
                raise ValueError(f"labels of shape {labels.shape}, expected {shape}")
            sites = encoder.extractor.sites(given)
        except ValueError as error:
            raise ValueError(f"example {index}: {error}") from None
        return sites, sites.counts(labels, k)

    found = Labeled([], [])
    for sites, counts in _threads.mapped(one, list(zip(range(len(X)), X, encoder.coded(y), strict=True))):
        found.sites.append(sites)
        found.counts.append(counts)
        bar.advance()
    return found


NETWORK_NODES = 20_000
"""Of more than two classes, about so many nodes teach the weights of networks."""


def examples_of(known: list[TrainingGraph], n_classes: int, seed: int, potentials: str = "potts") -> Examples:
    """Encoded training graphs, whose losses are 1 on average."""
    known = known if n_classes == 2 else drawn_pieces(known, NETWORK_NODES, seed)
    mean = mean_cost(known)
    return Examples.fit(
        graph_encoder(n_classes, potentials),
        [one.graph for one in known],
        [one.labels for one in known],
        loss_weight=[one.cost / mean for one in known],
    )


def mean_cost(known: list[TrainingGraph]) -> float:
    """The mean over the nodes whose errors cost something."""
    cost = np.concatenate([one.cost for one in known])
    return float(cost[cost > 0].mean())


def known_part(sites: Sites, probabilities: FloatArray, counts: FloatArray) -> TrainingGraph:
    """The graph of the nodes that are not void, their classes, and the loss of each."""
    whole = graph_of(sites, probabilities)
    weight = counts.sum(axis=1)
    kept = weight > 0
    number = np.cumsum(kept) - 1
    both = kept[sites.edges].all(axis=1)
    ordered = np.sort(counts, axis=1)
    # A wrong node costs the pixels that it gets wrong beyond those of the best label; mixed nodes cost little.
    lead = ordered[:, -1] - ordered[:, -2]
    graph = Graph(whole.node_features[kept], number[sites.edges[both]], np.asarray(whole.edge_features)[both])
    return TrainingGraph(graph, counts[kept].argmax(axis=1), np.maximum(lead[kept], 1e-3 * weight[kept]))


def dev_score(encoder: SegmentationEncoder, dev: Labeled) -> Callable[[Model], float]:
    """A function of models of graphs: the share of pixels or points that they label right."""
    if not dev.totals.any():
        raise ValueError("no pixel or point has a label; label some, or give no dev data")
    probabilities = [encoder.auto_context.probabilities(one) for one in dev.sites]
    graphs = [graph_of(one, own) for one, own in zip(dev.sites, probabilities, strict=True)]
    batches: dict[int, Any] = {}

    def score(model: Model) -> float:
        if not batches:
            batches[0] = model.encoder.transform(graphs)
        right = 0.0
        for labels, counts in zip(model.outputs(batches[0]), dev.counts, strict=True):
            right += float(counts[np.arange(len(counts)), np.asarray(labels)].sum())
        return right / float(dev.totals.sum())

    return score


PIXELS = 500_000
"""About so many pixels of training images teach the cut of pixels."""


def pixel_examples(
    model: ImageSegmenterModel, prepared: Prepared, y: Sequence[Any], band: float = BAND
) -> Examples | None:
    """The pixels near the boundaries that a model gives the regions of training images out of fold.

    Args:
        model: labels regions.
        prepared: what it was trained on.
        y: the labels of the pixels.
        band: how far the band of pixels reaches from a boundary, in sides of a region.

    Returns:
        The examples; None if no image has a boundary.
    """
    encoder = prepared.encoder
    found: list[TrainingGraph] = []
    count = 0
    for index in np.random.default_rng(prepared.seed).permutation(len(y)).tolist():
        sites, probabilities = prepared.labeled.sites[index], prepared.probabilities[index]
        assert isinstance(sites, ImageSites)
        regions = model.node_labels(sites, probabilities)[sites.node_of]
        pixels = pixel_graph(sites, probabilities, regions, band)
        gold = encoder.coded([y[index]])[0].ravel()[pixels.pixels]
        known = (gold >= 0) & ~pixels.held
        if known.any():
            cost = np.where(known, prepared.cost[np.maximum(gold, 0)], 0.0)
            found.append(TrainingGraph(pixels.graph, np.where(known, gold, pixels.inside), cost))
            count += len(gold)
        if count >= PIXELS:
            break
    return examples_of(found, len(encoder.classes or ()), prepared.seed) if found else None


def with_pixel_cut(
    model: ImageSegmenterModel, examples: Examples, settings: Settings, band: float = BAND
) -> ImageSegmenterModel:
    """The model with a cut of pixels that is learned from :func:`pixel_examples`."""
    # Of several values of C, the one that was best for regions.
    chosen = settings.C if model.training is None else model.training.C
    saved = settings.checkpoint_of("-pixels")
    settings = replace(settings, tol=max(settings.tol, 1e-2), C=chosen, patience=None, checkpoint=saved)
    trained = train_examples(examples, settings)
    cut = PixelCut(cast(GraphEncoder, trained.encoder), trained.weights, band)
    metadata = {**model.metadata, "pixel_relative_gap": trained.metadata["relative_gap"]}
    if _interrupted(trained):
        metadata["status"] = str(Status.INTERRUPTED)
    training = model.training and replace(model.training, interrupted=_interrupted(trained))
    return replace(model, encoder=replace(model.encoder, pixel_cut=cut), metadata=metadata, training=training)


def _interrupted(trained: Model) -> bool:
    return trained.training is not None and trained.training.interrupted
