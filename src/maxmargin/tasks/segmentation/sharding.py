"""Segmenters from more images or scans than memory: encoded graphs in a folder, and training on them.

Stages are classifiers whose rows are in memory, so a sample of the images or scans, drawn at random, teaches them; with
fewer than that, all do. The graphs of all are then encoded one by one: those of the sample with probabilities out of
fold, as in memory, the others with those of the stages, which have not seen them. The unit of losses is the mean of the
sample. Of more than two classes all pieces of graphs are encoded, where training in memory draws some.

Training on a folder learns the cut of regions or points. The second cut, of the pixels near boundaries, is learned from
images, which a folder does not have.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np

from maxmargin import _checks, _threads
from maxmargin.datasets import DataBlock, Examples, Recipe, ShardedDataset
from maxmargin.datasets.build import renumbered
from maxmargin.datasets.sources import SourceError
from maxmargin.encoders.base import Encoder
from maxmargin.encoders.data import checks
from maxmargin.structures.base import FloatArray
from maxmargin.tasks.common.progress import Stages
from maxmargin.tasks.common.sharding import require_kind
from maxmargin.tasks.segmentation.encoder.segmentation import SegmentationEncoder, graph_encoder, label_array
from maxmargin.tasks.segmentation.learning.pieces import TrainingGraph
from maxmargin.tasks.segmentation.model import SegmenterModel
from maxmargin.tasks.segmentation.sites import Sites
from maxmargin.tasks.segmentation.training import (
    SETTINGS,
    StageSettings,
    anchor_of,
    check_void,
    dev_score_of,
    known_part,
    labeled_sites,
    mean_cost,
    potentials_of,
    prepare,
    segmenter_of,
)
from maxmargin.training import Settings, train_examples

SAMPLE = 500
"""Images or scans that teach the stages, unless another number is given."""

BLOCK = 8
"""Images or scans that are read together."""


class SegmentationRecipe(Recipe):
    """How images or scans become graphs: stages of a sample, then the graphs of all.

    Args:
        encoder: has not been fitted.
        stages: how to train the stages.
        sample: how many images or scans teach the stages.
        seed: random seed of the sample, of folds and of classifiers.
        verbose: whether to draw progress bars on a terminal.
    """

    def __init__(
        self,
        encoder: SegmentationEncoder,
        stages: StageSettings,
        *,
        sample: int = SAMPLE,
        seed: int = 0,
        verbose: bool = False,
    ) -> None:
        check_void(encoder)
        self._encoder, self._stages, self._verbose = encoder, stages, verbose
        self._sample, self._seed = _checks.integer("sample", sample, least=2), seed
        self._cost: FloatArray = np.zeros(0)
        self._unit = 1.0
        self._probabilities: dict[int, FloatArray] = {}

    @property
    def settings(self) -> str:
        """Extractor, classes and stages."""
        encoder, stages = self._encoder, self._stages
        how = ", ".join(f"{one.name}={getattr(stages, one.name)!r}" for one in fields(stages))
        graph = f"potentials={potentials_of(encoder)!r}, void={encoder.void}, classes={encoder.classes}"
        sample = f"sample={self._sample}, random_state={self._seed}"
        return f"{type(encoder).__name__}({encoder.extractor!r}, {graph}), {how}, {sample}"

    def learn(self, blocks: Iterable[tuple[Any, Any]]) -> SegmentationEncoder:
        """Learn classes from all labels, features and stages from the sample."""
        numbers, X, y, classes = self._drawn(blocks)
        encoder = self._encoder if self._encoder.classes is not None else replace(self._encoder, classes=classes)
        with Stages(self._verbose) as bar, _numbered(numbers):
            prepared = prepare(encoder, X, y, self._stages, self._seed, bar)
        k = len(prepared.encoder.classes or ())
        graphs = _parts(prepared.graphs(), k)
        self._cost, self._unit = prepared.cost, mean_cost(graphs)
        self._probabilities = dict(zip(numbers, prepared.probabilities, strict=True))
        plain = graph_encoder(k, potentials_of(encoder))
        graph = plain.learn(plain.parse([one.graph for one in graphs]), [one.labels for one in graphs])
        return replace(prepared.encoder, graph=graph)

    def _drawn(self, blocks: Iterable[tuple[Any, Any]]) -> tuple[list[int], list[Any], list[Any], tuple[int, ...]]:
        """The numbers of the sample, its inputs and labels, and the classes of all labels."""
        rng, count = np.random.default_rng(self._seed), 0
        kept: list[tuple[int, Any, Any]] = []
        values: set[int] = set()
        for X, y in blocks:
            X, y = checks.examples(X), checks.examples(y, "y")
            checks.same_length(X, y)
            for index, (given, labels) in enumerate(zip(X, y, strict=True)):
                if self._encoder.classes is None:
                    values |= set(np.unique(label_array(labels, index)).tolist())
                at = count if count < self._sample else int(rng.integers(0, count + 1))
                if at < self._sample:
                    kept[at : at + 1] = [(count, given, labels)]
                count += 1
        if not kept:
            raise ValueError(f"there are no {self._encoder.extractor.inputs}: give at least one")
        kept.sort(key=lambda one: one[0])
        classes = tuple(sorted(values - {self._encoder.void}))
        return [one[0] for one in kept], [one[1] for one in kept], [one[2] for one in kept], classes

    def blocks(self, encoder: Encoder, blocks: Iterable[DataBlock]) -> Iterator[DataBlock]:
        """Yield the graphs of each block, without nodes that are void."""
        assert isinstance(encoder, SegmentationEncoder)
        stages, k, first = encoder.auto_context, len(encoder.classes or ()), 0
        with Stages(False) as bar:
            for block in blocks:
                with renumbered(lambda first=first: first):  # type: ignore[misc]
                    labeled = labeled_sites(encoder, checks.examples(block.X), checks.examples(block.y, "y"), bar, "")

                def graph(
                    item: tuple[int, Sites, FloatArray],
                ) -> TrainingGraph:
                    number, sites, counts = item
                    own = self._probabilities.get(number)
                    return known_part(sites, stages.probabilities(sites) if own is None else own, counts * self._cost)

                numbers = range(first, first + len(labeled.sites))
                items = list(zip(numbers, labeled.sites, labeled.counts, strict=True))
                found = _parts([one for one in _threads.mapped(graph, items) if len(one.labels)], k)
                first += len(items)
                if found:
                    costs = [one.cost / self._unit for one in found]
                    yield DataBlock([one.graph for one in found], [one.labels for one in found], loss_weight=costs)

    def examples(self, encoder: Encoder, block: DataBlock) -> Examples:
        """Encode graphs."""
        assert isinstance(encoder, SegmentationEncoder)
        found = Examples.encoded(encoder.graph, block.X, block.y, *block.optional)
        return replace(found, encoder=encoder)


@contextmanager
def _numbered(numbers: list[int]) -> Iterator[None]:
    """Let errors that name an example of a sample name it by its number."""
    try:
        yield
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        text = re.sub(r"^example (\d+)", lambda found: f"example {numbers[int(found[1])]}", str(error))
        raise SourceError(text) from None


def _parts(graphs: list[TrainingGraph], n_classes: int) -> list[TrainingGraph]:
    """The graphs, of more than two classes in pieces."""
    return graphs if n_classes == 2 else [piece for graph in graphs for piece in graph.pieces()]


def train_segmenter_on(
    dataset: ShardedDataset,
    settings: Settings = SETTINGS,
    *,
    dev: tuple[Sequence[Any], Sequence[Any]] | None = None,
    verbose: bool = False,
) -> SegmenterModel:
    """Train the cut of a segmenter on a dataset (:meth:`Segmenter.build_dataset`, ``segment shard``).

    Args:
        dataset: the dataset; features and stages are those that it was built with.
        settings: how to train the cut.
        dev: images or scans and labels, in memory, that choose C and the stopping point.
        verbose: whether to draw progress bars on a terminal.
    """
    encoder = require_kind(dataset, SegmentationEncoder, "images or scans")
    began = time.perf_counter()
    with _threads.threads(settings.n_jobs), Stages(verbose) as bar:
        score = None if dev is None else dev_score_of(encoder, dev, bar)
        bar.begin("cut", 1)
        anchor = anchor_of(len(encoder.classes or ()), encoder.n_weights)
        trained = train_examples(dataset.with_encoder(encoder.graph).anchored(anchor), settings, score=score)
    model = segmenter_of(encoder, trained)
    sizes = {"graphs": len(dataset), "nodes": dataset.n_variables, "stages": len(encoder.auto_context.stages)}
    return replace(model, metadata={**sizes, **model.metadata, "seconds": time.perf_counter() - began})
