"""Aligners from more annotated pairs than memory: encoded sentence pairs in a folder, and training on them.

Translation models are learned first, from the words of all pairs and of a bitext, as in memory; then pairs are encoded
block by block. Words are kept as numbers meanwhile, a few bytes each, where the features of a pair take some 100 kB.
Training (:func:`train_aligner_on`) differs from that in memory in what needs all pairs at once: settings are chosen,
and confidences calibrated, on dev pairs only, not by folds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from maxmargin import _threads
from maxmargin.datasets import DataBlock, Examples, Recipe, ShardedDataset
from maxmargin.encoders.base import Batch, Encoder
from maxmargin.tasks.alignment.annotated import AnnotatedPairs
from maxmargin.tasks.alignment.encoder.alignment import AlignmentEncoder, Translation
from maxmargin.tasks.alignment.encoder.evidence import indexed
from maxmargin.tasks.alignment.encoder.features import require_columns
from maxmargin.tasks.alignment.io.compact import CompactPairs
from maxmargin.tasks.alignment.io.links import Reference
from maxmargin.tasks.alignment.io.sentences import (
    SentencePair,
    alignable,
    as_pairs,
    as_references,
    extra_names,
    learnable,
    require_extra,
    require_inside,
    warn_of_long,
)
from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.alignment.training import (
    AlignerSettings,
    choose_and_train,
    counted_once,
    held_out_pairs,
    untrained,
)
from maxmargin.tasks.alignment.translation.sharded_bitext import NumberedPairs
from maxmargin.tasks.alignment.translation.words import IndexedBitext
from maxmargin.tasks.common.progress import Stages
from maxmargin.tasks.common.sharding import require_kind

BLOCK_PAIRS = 256
"""Annotated pairs that are read together."""


class AlignmentRecipe(Recipe):
    """How annotated pairs become examples: translation models of all their words, then features of links.

    Args:
        settings: those of translation models and features are used.
        bitext: further pairs without annotations, as :meth:`WordAligner.fit` takes them.
    """

    def __init__(self, settings: AlignerSettings, bitext: Iterable[Any] = ()) -> None:
        settings.check()
        self._how = settings
        self._bitext = bitext if isinstance(bitext, NumberedPairs) else as_pairs(bitext, "bitext pair")
        if settings.models is not None and self._bitext:
            raise ValueError("bitext is not used, as models has translation models already; give one of them")
        self._extra: tuple[str, ...] | None = None
        self._translation: Translation | None = None

    @property
    def settings(self) -> str:
        """Fertility and features."""
        how = self._how
        return (
            f"AlignmentEncoder(fertility={how.fertility}, features={how.groups}, frequent_pairs={how.frequent_pairs})"
        )

    def learn(self, blocks: Iterable[tuple[Any, Any]]) -> AlignmentEncoder:
        """Learn translation models, unless they were given."""
        self._extra = None
        words = CompactPairs.of(self._words(blocks))
        if not len(words):
            raise ValueError("no sentence pairs to learn from; give some, or use bootstrap() on a bitext alone")
        extra = self._extra or ()
        require_columns(self._how.groups, extra, self._how.frequent_pairs)
        with Stages(self._how.verbose) as stages:
            encoder = self._how.encoder(counted_once(self._bitext, words), self._how.groups, extra, stages)
        # Models that were given may not have seen these pairs: then they adapt, as they will in prediction.
        unseen = bool(encoder.unseen(words).any())
        self._translation = encoder.translation(IndexedBitext.of(words.source, words.target) if unseen else None)
        return encoder

    def _words(self, blocks: Iterable[tuple[Any, Any]]) -> Iterator[list[tuple[Sequence[str], Sequence[str]]]]:
        """Yield the words of each block, checked."""
        first = 1
        for X, y in blocks:
            pairs, _ = _checked(X, y)
            if self._extra is None:
                self._extra = extra_names(pairs)
            require_extra(pairs, self._extra)
            warn_of_long(pairs, "is not learned from", first=first)
            first += len(pairs)
            yield [(pair.source, pair.target) for pair in pairs]

    def examples(self, encoder: Encoder, block: DataBlock) -> Examples:
        """Encode pairs; links that are possible, but not sure, are unknown."""
        assert isinstance(encoder, AlignmentEncoder)
        pairs, references = _checked(block.X, block.y)
        translation = self._translation or encoder.translation()
        found = annotated(encoder, pairs, references, translation)
        batch = Batch(found.batch.structure, found.batch.features)
        return Examples(encoder, batch, found.gold, good=found.good)


def _checked(X: Any, y: Any) -> tuple[list[SentencePair], list[Reference]]:
    pairs = as_pairs(X)
    references = as_references(y, len(pairs))
    require_inside(pairs, references)
    return pairs, references


def annotated(
    encoder: AlignmentEncoder, pairs: list[SentencePair], references: list[Reference], translation: Translation
) -> AnnotatedPairs:
    """The examples of checked pairs; those that are too long get no links."""
    some = alignable(pairs)
    batch = encoder.pack(encoder.evidence(some, indexed(some), translation))
    return AnnotatedPairs.annotated(encoder, batch, learnable(pairs, references))


def train_aligner_on(
    dataset: ShardedDataset,
    settings: AlignerSettings | None = None,
    *,
    dev: tuple[Iterable[Any], Sequence[Any]] | None = None,
) -> AlignerModel:
    """Train an aligner on a dataset of annotated pairs (:meth:`WordAligner.build_dataset`, ``align shard --gold``).

    Args:
        dataset: the dataset; fertility, features and translation models are those that it was built with.
        settings: how to train; of several values of ``C`` and ``false_negative`` dev pairs choose, without them the
            middle ones are taken.
        dev: annotated pairs ``(X, y)``, in memory; translation models that have not seen them adapt to them.
    """
    settings = settings or AlignerSettings()
    settings.check()
    encoder = require_kind(dataset, AlignmentEncoder, "annotated sentence pairs")
    pairs, references = held_out_pairs(dev)
    require_extra(pairs, encoder.link_model.links.extra_names)
    with _threads.threads(settings.n_jobs), Stages(settings.verbose) as stages:
        held = None
        if pairs:
            some = alignable(pairs)
            translation = encoder.translation(indexed(some) if encoder.unseen(some).any() else None)
            held = annotated(encoder, pairs, references, translation)
        start = settings.start_weights()
        if start is not None:
            dataset = dataset.anchored(start.carried(encoder.link_model))
        try:
            return choose_and_train(dataset, held, settings, stages)
        except KeyboardInterrupt:  # before the first weights: the translation models can be used again
            return untrained(encoder, settings, "interrupted")
