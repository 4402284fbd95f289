"""Taggers from more text than memory: labeled files as sources of datasets, and training on datasets.

Training differs from that in memory (:mod:`~maxmargin.tasks.tagging.training`) in what needs all sentences: C is given
or that of the preset, not chosen by folds; probabilities are calibrated on dev data or not at all; labels are all
known, and weights are not pruned. The negative support is found by the first passes over each shard on its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from maxmargin import _checks, _threads
from maxmargin.datasets import DataBlock, DataSource, ShardedDataset
from maxmargin.execution import ShardedProblem
from maxmargin.features.parts import Stacked
from maxmargin.features.supported import GrowingSupport, SupportedRows
from maxmargin.model import Model
from maxmargin.optimization.run import NonFiniteError
from maxmargin.optimization.solver import Solver, Start
from maxmargin.problem import BaseProblem, Problem
from maxmargin.solvers import BlockFrankWolfe
from maxmargin.tasks.tagging.dev import DevSentences
from maxmargin.tasks.tagging.encoder.layout import WeightLayout
from maxmargin.tasks.tagging.encoder.tagging import TaggingEncoder
from maxmargin.tasks.tagging.io.files import TaggedText
from maxmargin.tasks.tagging.model import TaggerModel
from maxmargin.tasks.tagging.reading import ReadOptions, block_labels
from maxmargin.tasks.tagging.training import (
    DEV,
    SETTINGS,
    TagLoss,
    first_passes,
    named_loss,
    wrong_labels,
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


def train_tagger_on(
    dataset: ShardedDataset,
    settings: Settings = SETTINGS,
    *,
    dev: tuple[Any, Any] | None = None,
    loss: TagLoss | None = None,
) -> TaggerModel:
    """Train a tagger on a dataset that was built with a :class:`~maxmargin.tasks.tagging.TaggingEncoder`.

    Args:
        dataset: the dataset.
        settings: how to train; the solver "auto" is block-coordinate Frank-Wolfe where it takes examples on disk.
            ``C=None`` is the default of the preset.
        dev: sentences and labels that choose the stopping point and, of several, C, and calibrate probabilities.
        loss: cost of errors, as SequenceTagger takes it.
    """
    encoder = dataset.encoder
    if not isinstance(encoder, TaggingEncoder):
        raise ValueError(
            f"{dataset.folder} holds examples of kind {encoder.kind!r}; give a dataset of tagged sentences"
        )
    if _checks.is_one_of(settings.C, "auto"):
        raise ValueError('C="auto" chooses by folds of sentences in memory; give a number, or several and dev data')
    began = time.perf_counter()
    with _threads.threads(settings.n_jobs):
        if dev is not None and encoder.repair and len(dev) == 2:
            dev = dev[0], encoder.gold(*dev)[0]
        dev_sentences = cast(DevSentences | None, dev_score(encoder, dev, settings))
        settings = replace(
            settings,
            C=encoder.default_C if settings.C is None else settings.C,
            loss=settings.loss if loss is None else named_loss(loss, encoder.classes or ()),
            patience=None if dev is None else settings.patience,
        )
        try:
            hooks = ShardedTaggingHooks(settings, dev_sentences)
            model = train_examples(dataset, settings, score=dev_sentences, hooks=hooks)
        except NonFiniteError:
            raise ValueError("values of attributes are too large; scale them down") from None
    metadata = {
        "sentences": len(dataset),
        "tokens": dataset.n_variables,
        "support": encoder.support,
        "preset": encoder.preset,
        "preset_reason": encoder.preset_reason,
        **model.metadata,
        "calibrated_on": DEV if model.calibration else None,
        "seconds": time.perf_counter() - began,
    }
    return cast(TaggerModel, replace(model, metadata=metadata))


class ShardedTaggingHooks(Hooks):
    """The negative support of shards, and calibration.

    Args:
        settings: how to train.
        dev: dev data to calibrate on; None for none.
    """

    def __init__(self, settings: Settings, dev: DevSentences | None) -> None:
        self.settings, self.dev = settings, dev

    def solver(self, problem: BaseProblem) -> tuple[Solver, str] | None:
        """Block-coordinate Frank-Wolfe, where it takes examples on disk."""
        solver = BlockFrankWolfe()
        reason = solver.unsupported(problem) or solver.shards_unsupported
        return None if reason else (solver, "the default for sequence tagging")

    def begin_sharded(
        self, dataset: ShardedDataset, problem: ShardedProblem, previous: Model | None
    ) -> tuple[ShardedDataset, ShardedProblem, Start | None]:
        """Find the negative support."""
        encoder = cast(TaggingEncoder, dataset.encoder)
        if encoder.support != "negative":
            return dataset, problem, None
        layout = with_negatives_of(encoder.weight_layout, problem, self.settings.random_state)
        dataset = dataset.with_encoder(replace(encoder, weight_layout=layout))
        return dataset, dataset.problem(self.settings, float(problem.region.metadata()["C"])), None

    def calibrate(self, model: Model) -> dict[str, float]:
        """Fit the temperature to the dev data."""
        found = None if self.dev is None else self.dev.temperature(model)
        return {} if found is None else {"temperature": found}


def with_negatives_of(layout: WeightLayout, problem: ShardedProblem, random_state: int | None) -> WeightLayout:
    """Extend the support by wrong labels that the first passes over each shard give to tokens."""
    support = GrowingSupport(layout.support.n_features, layout.n_labels)
    support.add_support(layout.support)
    for number in range(len(problem.source)):
        own = problem.source.open(number).problem
        active_set = first_passes(own, random_state)
        tokens, labels = wrong_labels(layout.n_labels, own.structure.n_variables, _codes(own, layout), active_set)
        support.add(_token_features(own).rows, labels, tokens)
    return replace(layout, support=support.support())


def _token_features(problem: Problem) -> SupportedRows:
    assert isinstance(problem.features, Stacked)
    tokens = problem.features.features[0]
    assert isinstance(tokens, SupportedRows)
    return tokens


def _codes(problem: Problem, layout: WeightLayout) -> Any:
    """Return the gold labels of all tokens."""
    nodes = problem.gold_point.index[: int(problem.structure.n_variables.sum())]
    return np.asarray(nodes % layout.n_labels)
