"""Taggers from more text than memory: labeled files as sources of datasets, and training on datasets.

Training is that in memory (:mod:`~maxmargin.tasks.tagging.training`) with labels that are all known: folds are the same
sentences, and so are the C that they choose. The first passes, which find the negative support, go over one shard after
the other and not over all sentences in random order, so that a few of its pairs differ.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from maxmargin import _checks, _threads
from maxmargin.datasets import DataBlock, DataSource, Examples, ShardedDataset
from maxmargin.execution import Piece, ShardedProblem
from maxmargin.features.parts import Stacked
from maxmargin.features.supported import GrowingSupport, Support, SupportedRows
from maxmargin.models.base import Model
from maxmargin.optimization.loop import generator
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.optimization.solver import Solver, Start
from maxmargin.problem import BaseProblem
from maxmargin.solvers import BlockFrankWolfe
from maxmargin.solvers.online.sharded_blocks import PieceBlocks, ShardedState
from maxmargin.structures.base import IntArray
from maxmargin.structures.sparse import SparsePoint
from maxmargin.tasks.common.tokens.table import Codes
from maxmargin.tasks.tagging.dev import DevSentences
from maxmargin.tasks.tagging.encoder.attributes import Attributes
from maxmargin.tasks.tagging.encoder.extraction import TokenRows
from maxmargin.tasks.tagging.encoder.labels.gold import LabeledRows
from maxmargin.tasks.tagging.encoder.layout import WeightLayout
from maxmargin.tasks.tagging.encoder.tagging import TaggingEncoder
from maxmargin.tasks.tagging.folds import FOLDS, Folds
from maxmargin.tasks.tagging.io.files import TaggedText
from maxmargin.tasks.tagging.model import TaggerModel
from maxmargin.tasks.tagging.reading import ReadOptions, block_labels
from maxmargin.tasks.tagging.support import (
    NEGATIVE_PASSES,
    first_solver,
    forgetful,
    large_pairs,
    without_support,
    wrong_labels,
)
from maxmargin.tasks.tagging.training import (
    SETTINGS,
    TagLoss,
    by_folds,
    calibrated_on,
    calibration,
    named_loss,
    phase,
    with_metadata,
)
from maxmargin.training import Hooks, Settings, train_examples
from maxmargin.training.train import dev_score

BLOCK = 1 << 20
"""Bytes of a block of a file."""


class TaggedSource(DataSource):
    """The sentences of a labeled file, read block by block in every pass.

    Args:
        path: the file; not standard input, which cannot be read twice.
        options: how to read it.
        unknown: the label that stands for unknown ones.
        size: bytes of a block.
    """

    def __init__(
        self, path: str | Path, options: ReadOptions | None = None, unknown: str | None = None, size: int = BLOCK
    ) -> None:
        if str(path) == "-":
            raise ValueError("a dataset is built in several passes, and standard input can be read once; give a file")
        self.path, self.options, self.unknown, self.size = str(path), options or ReadOptions(), unknown, size
        self._texts: Iterator[TaggedText] | None = None

    @property
    def first(self) -> TaggedText:
        """The first block, which has the format and columns of the file."""
        return next(self.options.blocks(self.path, size=self.size))

    def next(self) -> DataBlock | None:
        """See :meth:`DataSource.next`."""
        if self._texts is None:
            self._texts = self.options.blocks(self.path, size=self.size)
        for text in self._texts:
            if text.n_tokens:
                return DataBlock(text.tokens, block_labels(text, self.unknown), size=text.n_sentences)
        return None

    def reset(self) -> None:
        """See :meth:`DataSource.reset`."""
        self._texts = None


class StoredRows:
    """The labeled sentences of a dataset, of which some are read at a time: what folds need of all sentences.

    Attributes:
        lengths: tokens per sentence.
    """

    def __init__(self, dataset: ShardedDataset) -> None:
        self.dataset = dataset
        own = (dataset.examples(number).batch.structure.n_variables for number in range(len(dataset.shards)))
        self.lengths: IntArray = np.concatenate([np.zeros(0, dtype=np.int64), *own])

    @property
    def labeled(self) -> IntArray:
        """The sentences with known labels: all."""
        return np.arange(len(self.lengths))

    def select(self, sentences: IntArray) -> LabeledRows:
        """Return some of the sentences, which rise."""
        found = []
        for number, shard in enumerate(self.dataset.shards):
            first, last = np.searchsorted(sentences, [shard.first, shard.first + shard.examples])
            if first < last:
                found.append(stored_rows(self.dataset.examples(number)).select(sentences[first:last] - shard.first))
        return LabeledRows.joined(found)


def stored_rows(examples: Examples) -> LabeledRows:
    """Return the labeled sentences of a shard."""
    layout, structure = cast(TaggingEncoder, examples.encoder).weight_layout, examples.batch.structure
    lengths = structure.n_variables
    assert isinstance(examples.batch.features, Stacked)
    tokens, *others = examples.batch.features.features
    assert isinstance(tokens, SupportedRows)
    edges = others[0] if layout.edge_support is not None else None
    of_edges = (
        Attributes.of_entries(edges.rows, np.maximum(lengths - 1, 0)) if isinstance(edges, SupportedRows) else None
    )
    weight = examples.loss_weight
    return LabeledRows(
        TokenRows(Attributes.of_entries(tokens.rows, lengths), of_edges),
        gold_codes(examples.gold, layout.n_labels),
        examples.example_weight,
        None if weight is None else weight[:: layout.n_labels],
    )


def gold_codes(gold: SparsePoint, n_labels: int) -> Codes:
    """Return the gold labels of all tokens of a shard."""
    nodes = gold.index[: int(gold.structure.n_variables.sum())]
    return np.asarray(nodes % n_labels).astype(np.int32)


def train_tagger_on(
    dataset: ShardedDataset,
    settings: Settings = SETTINGS,
    *,
    dev: tuple[Any, Any] | None = None,
    loss: TagLoss | None = None,
    folds: int = FOLDS,
    prune: float = 0.0,
) -> TaggerModel:
    """Train a tagger on a dataset that was built with a :class:`~maxmargin.tasks.tagging.TaggingEncoder`.

    Args:
        dataset: the dataset.
        settings: how to train; the solver "auto" is block-coordinate Frank-Wolfe. ``C=None`` is the default of the
            preset, and without a preset chosen by folds, as is ``C="auto"``.
        dev: sentences and labels that choose the stopping point and, of several, C, and calibrate probabilities.
        loss: cost of errors, as SequenceTagger takes it.
        folds: folds of a sample of the sentences, see :func:`~maxmargin.tasks.tagging.train_tagger`.
        prune: drop small weights, and train the others once more, as SequenceTagger takes it.
    """
    encoder = dataset.encoder
    if not isinstance(encoder, TaggingEncoder):
        raise ValueError(
            f"{dataset.folder} holds examples of kind {encoder.kind!r}; give a dataset of tagged sentences"
        )
    prune = _checks.number("prune", prune, least=0)
    began = time.perf_counter()
    with _threads.threads(settings.n_jobs):
        if dev is not None and encoder.repair and len(dev) == 2:
            dev = dev[0], encoder.gold(*dev)[0]
        dev_sentences = cast(DevSentences | None, dev_score(encoder, dev, settings))
        settings = replace(
            settings,
            loss=settings.loss if loss is None else named_loss(loss, encoder.classes or ()),
            patience=None if dev is None else settings.patience,
        )
        try:
            rows = StoredRows(dataset)
            settings, choice, by = by_folds(
                without_support(encoder), rows, settings, dev is not None, None, folds, prune
            )
            hooks = ShardedTaggingHooks(settings, dev_sentences, by)
            model = cast(TaggerModel, train_examples(dataset, settings, score=dev_sentences, hooks=hooks))
            choice |= {name: value for name, value in model.metadata.items() if name in ("tried", "chosen_on")}
            if prune > 0 and model.training is not None and not model.training.interrupted:
                settings = replace(settings, C=float(model.metadata["C"]), checkpoint=None)
                hooks = ShardedTaggingHooks(settings, dev_sentences, by, fixed=True)
                smaller = dataset.with_encoder(_pruned(dataset, model, prune))
                model = cast(TaggerModel, train_examples(smaller, settings, score=dev_sentences, hooks=hooks))
                model = forgetful(model)
        except NonFiniteError:
            raise ValueError("values of attributes are too large; scale them down") from None
    metadata = {
        "sentences": len(dataset),
        "tokens": dataset.n_variables,
        "support": encoder.support,
        "preset": encoder.preset,
        "preset_reason": encoder.preset_reason,
        **model.metadata,
        **choice,
        "calibrated_on": calibrated_on(model, None, dev is not None, by is not None),
        "seconds": time.perf_counter() - began,
    }
    return with_metadata(model, metadata)


class ShardedTaggingHooks(Hooks):
    """The negative support, and calibration.

    Args:
        settings: how to train.
        dev: dev data to calibrate on; None for none.
        folds: folds to calibrate on without dev data; None for none.
        fixed: whether the weights of the encoder's layout are all that there are.
    """

    def __init__(
        self, settings: Settings, dev: DevSentences | None, folds: Folds | None = None, fixed: bool = False
    ) -> None:
        self.settings, self.dev, self.folds, self.fixed = settings, dev, folds, fixed

    def solver(self, problem: BaseProblem) -> tuple[Solver, str]:
        """Block-coordinate Frank-Wolfe."""
        return BlockFrankWolfe(), "the default for sequence tagging"

    def begin_sharded(
        self, dataset: ShardedDataset, problem: ShardedProblem, previous: Model | None
    ) -> tuple[ShardedDataset, ShardedProblem, Start | None]:
        """Find the negative support."""
        encoder = cast(TaggingEncoder, dataset.encoder)
        if encoder.support != "negative" or self.fixed:
            return dataset, problem, None
        with phase("first passes", self.settings):
            layout = with_negatives_of(encoder.weight_layout, problem, self.settings.random_state)
        dataset = dataset.with_encoder(replace(encoder, weight_layout=layout))
        return dataset, dataset.problem(self.settings, float(problem.region.metadata()["C"])), None

    def calibrate(self, model: Model) -> dict[str, float]:
        """Fit the temperature to the dev data; without them by folds, unless the user waits for the end."""
        return calibration(model, self.dev, self.folds, self.settings)


def with_negatives_of(layout: WeightLayout, problem: ShardedProblem, random_state: int | None) -> WeightLayout:
    """Extend the support by wrong labels that the first passes give to tokens, one shard after the other."""
    solver = first_solver(problem)
    run = Run.of(problem, generator(random_state))
    state = cast(ShardedState, solver.init(run, Start()))
    for _ in range(NEGATIVE_PASSES):
        state = cast(ShardedState, solver.step(run, state))
    support = GrowingSupport(layout.support.n_features, layout.n_labels)
    support.add_support(layout.support)
    for entries, tokens, labels in run.each(_negatives, solver, layout.n_labels):
        support.add(entries, labels, tokens)
    return replace(layout, support=support.support())


def _negatives(piece: Piece, memory: PieceBlocks, solver: Solver, k: int) -> Any:
    """Attributes of a piece, and its tokens with their wrong labels."""
    own, gold = piece.problem, piece.problem.gold_point
    assert isinstance(own.features, Stacked)
    tokens = own.features.features[0]
    assert isinstance(tokens, SupportedRows)
    codes = gold_codes(gold, k)
    return (tokens.rows, *wrong_labels(k, own.structure.n_variables, codes, memory.active_set(solver, piece))), memory


def _pruned(dataset: ShardedDataset, model: TaggerModel, least: float) -> TaggingEncoder:
    """Return the encoder without small weights of a model; its attributes stay."""
    layout = model.weight_layout
    counts = np.zeros(layout.support.n_features, dtype=np.int64)
    for examples in dataset:
        counts += stored_rows(examples).rows.tokens.counts()
    support = Support.of_pairs(large_pairs(model, counts, least), len(counts), layout.n_labels)
    return replace(model.encoder, weight_layout=replace(layout, support=support))
