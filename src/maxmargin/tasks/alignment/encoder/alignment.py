"""The encoder of word alignment: sentence pairs as matchings with features, references as gold outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from maxmargin._vectors import rises
from maxmargin.encoders.base import Batch, Encoder, State
from maxmargin.encoders.data.names import ColumnNames, Name, Namer, WeightTable, table
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.sparse import SparsePoint
from maxmargin.tasks.alignment.encoder.evidence import POSTERIOR_NAMES, Evidence, indexed
from maxmargin.tasks.alignment.encoder.features import LinkFeatures
from maxmargin.tasks.alignment.encoder.fertility import FertilityBatch
from maxmargin.tasks.alignment.encoder.link_model import LinkModel, further_link
from maxmargin.tasks.alignment.io.compact import CompactPairs
from maxmargin.tasks.alignment.io.sentences import (
    SentencePair,
    alignable,
    as_pairs,
    as_references,
    extra_column,
    require_extra,
    sizes_of,
    warn_of_long,
)
from maxmargin.tasks.alignment.metrics.scores import evaluate
from maxmargin.tasks.alignment.translation.adaptation import adapt
from maxmargin.tasks.alignment.translation.bitext_models import BitextModels
from maxmargin.tasks.alignment.translation.cooccurrences import values_at
from maxmargin.tasks.alignment.translation.passes import LONGEST_LEARNED
from maxmargin.tasks.alignment.translation.update import updated
from maxmargin.tasks.alignment.translation.words import IndexedBitext, Int32Array

BoolArray = npt.NDArray[np.bool_]


class Translation(NamedTuple):
    """Translation models, and for each entry of their words the number of a frequent word pair, or -1."""

    models: BitextModels
    lexical: Int32Array


@dataclass(frozen=True, eq=False)
class PairBatch(Batch):
    """Encoded sentence pairs.

    Attributes:
        matchings: the part numbers of cells and fertility slots.
        prior: the product of the HMM's posteriors in both directions, a grid.
    """

    matchings: FertilityBatch
    prior: FloatArray

    def select(self, examples: IntArray) -> PairBatch:
        """The given pairs."""
        matchings, cells = self.matchings.select(examples), self.matchings.grid_of(examples)
        return PairBatch(matchings.structure, self.features.select(examples), matchings, self.prior[cells])

    def gold(self, sure: BoolArray) -> SparsePoint:
        """The output of sure links, a 0/1 grid; of the most plausible ones if they exceed the fertility of words."""
        kept = self.matchings.within_fertility(np.where(sure, 1.0 + self.prior, -1.0))
        return SparsePoint.of(self.structure, kept)


@dataclass(frozen=True, eq=False)
class AlignmentEncoder(Encoder):
    """Encodes sentence pairs by the evidence of translation models. Build it with :meth:`of`.

    Attributes:
        link_model: the features of links and fertility slots.
        models: the translation models.
        lexical: the entries, rising, of the frequent word pairs in the co-occurrences of words.
    """

    kind = "word alignment"
    version = 2  # 1 had zeros for the digits of words
    model_class = "maxmargin.tasks.alignment.model:AlignerModel"
    decodes_datasets = False  # which have no sentences

    link_model: LinkModel
    models: BitextModels
    lexical: IntArray

    @classmethod
    def of(
        cls,
        models: BitextModels,
        lexical: IntArray,
        *,
        groups: Sequence[str],
        extra_names: Sequence[str] = (),
        fertility: int = 2,
    ) -> Self:
        """The encoder of translation models, frequent word pairs, groups of features, and extra columns."""
        features = LinkFeatures(
            groups=groups,
            n_lexical=len(lexical),
            posterior_names=POSTERIOR_NAMES,
            extra_names=extra_names,
            lexical_names=models.words.cooccurrences.names(lexical),
        )
        return cls(LinkModel(features, fertility), models, lexical)

    def parse(self, X: Iterable[Any]) -> list[SentencePair]:
        """Checked sentence pairs; those that are too long are emptied, with a warning."""
        pairs = as_pairs(X)
        require_extra(pairs, self.link_model.links.extra_names)
        warn_of_long(pairs)
        return alignable(pairs)

    def learn(self, parsed: Any, y: Sequence[Any]) -> Self:
        """Itself, as the translation models are learned already."""
        return self

    def batch(self, parsed: list[SentencePair]) -> PairBatch:
        """Pack parsed pairs, with translation models that are not adapted to them."""
        return self.pack(self.evidence(parsed, indexed(parsed), self.translation()))

    def pack(self, evidence: Evidence) -> PairBatch:
        """The batch of pairs with their evidence."""
        matchings = self.link_model.batch(evidence)
        features = self.link_model.features(evidence, matchings)
        return PairBatch(matchings.structure, features, matchings, evidence.hmm_forward * evidence.hmm_backward)

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """References, or links, to the outputs of their sure links."""
        assert isinstance(batch, PairBatch)
        references = as_references(y, batch.structure.n_examples)
        return batch.gold(batch.matchings.grid([one.sure for one in references]))

    def decode(self, batch: Batch, outputs: Sequence[Any]) -> list[IntArray]:
        """The links of outputs, without fertility slots."""
        assert isinstance(batch, PairBatch)
        sizes = np.stack([batch.matchings.n_source, batch.matchings.n_target], axis=1)
        return [edges[(edges < size).all(axis=1)] for edges, size in zip(outputs, sizes, strict=True)]

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Functions that name links by their words and positions from 0, and the words that have no further link."""
        assert isinstance(batch, PairBatch)
        (pair,) = as_pairs([x])
        (n, m), slots = sizes_of([pair])[0].tolist(), batch.matchings.n_slots

        def named(at: int) -> Name:
            j, k = divmod(at, m + slots)
            if j < n and k < m:
                return Name(f"link {j}-{k} {pair.source[j]!r} {pair.target[k]!r}")
            if j < n:
                side, words, word, slot = "source", pair.source, j, k - m
            else:
                side, words = "target", pair.target
                slot, word = divmod(at - n * (m + slots), m)
            return Name(f"{side} word {word} {words[word]!r}", f"no {further_link(slot)}")

        return [named]

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """The names of the features of links and words."""
        names = self.link_model.names
        return [table(len(names), names.__getitem__)]

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Common links, with the sure and with the possible ones, out of predicted and sure ones: ``1 - AER``."""
        found = evaluate(as_references([gold], 1), [predicted])
        return float(found.predicted_sure + found.predicted_possible), float(found.predicted + found.sure)

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.link_model.n_weights

    def unseen(self, pairs: Sequence[SentencePair]) -> BoolArray:
        """Which pairs the translation models can learn from, but have not learned from."""
        if isinstance(pairs, CompactPairs):
            sizes, seen = pairs.sizes, self.models.contains(pairs.source, pairs.target)
        else:
            sizes = sizes_of(pairs)
            seen = self.models.contains([pair.source for pair in pairs], [pair.target for pair in pairs])
        usable = (sizes.min(axis=1) > 0) & (sizes.max(axis=1) <= LONGEST_LEARNED)
        return np.asarray(usable & ~seen)

    def translation(self, bitext: IndexedBitext | None = None) -> Translation:
        """The translation models, adapted to sentence pairs if they are given."""
        numbers = self.models.words.numbered(self.lexical)
        if bitext is None:
            return Translation(self.models, numbers)
        models, entries = adapt(self.models, bitext)
        return Translation(models, values_at(numbers, entries, -1))

    def evidence(self, pairs: Sequence[SentencePair], bitext: IndexedBitext, translation: Translation) -> Evidence:
        """The evidence for the links of pairs, whose numbered words are ``bitext``."""
        names = self.link_model.links.extra_names
        extra = np.stack([extra_column(pairs, name) for name in names], axis=1) if names else None
        return Evidence.of(translation.models, bitext, lexical=translation.lexical, extra=extra)

    def updated(self, pairs: Sequence[SentencePair]) -> Self:
        """With translation models that have learned from further pairs, and the same frequent word pairs."""
        if not isinstance(pairs, CompactPairs):
            pairs = CompactPairs.of([[(pair.source, pair.target) for pair in pairs]])
        models, entries = updated(self.models, pairs.source, pairs.target)
        return replace(self, models=models, lexical=entries[self.lexical])

    def pruned(self, min_probability: float) -> Self:
        """Without word pairs of lower probability in all translation models, except frequent ones."""
        models, lexical = self.models.pruned(min_probability, keep=self.lexical)
        return replace(self, models=models, lexical=lexical)

    def describe(self) -> dict[str, Any]:
        """Features and sizes, as plain JSON values."""
        links, counts = self.link_model.links, self.models.words.cooccurrences
        return {
            "fertility": self.link_model.fertility,
            "features": list(links.groups),
            "extra_columns": list(links.extra_names),
            "bitext_pairs": self.models.n_pairs,
            "source_words": len(counts.source),
            "target_words": len(counts.target),
            "word_pairs": counts.n_entries,
        }

    def state(self) -> State:
        """Features, translation models and frequent word pairs."""
        links = self.link_model.links
        return {
            "fertility": self.link_model.fertility,
            "groups": list(links.groups),
            "posterior_names": list(links.posterior_names),
            "extra_names": list(links.extra_names),
            "lexical": self.lexical,
            **self.models.state(),
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        models = BitextModels.from_state(state)
        fertility, lexical = state["fertility"], state["lexical"]
        if isinstance(fertility, bool) or not isinstance(fertility, int) or not 1 <= fertility <= 1000:
            raise ValueError("its fertility is damaged")
        for name in ("groups", "posterior_names", "extra_names"):
            if not isinstance(state[name], list) or not all(isinstance(one, str) for one in state[name]):
                raise ValueError(f"its {name} are not a list of names")
        if tuple(state["posterior_names"]) != POSTERIOR_NAMES:
            raise ValueError("its columns of posteriors are not those of this version")
        rising = lexical.dtype == np.int64 and lexical.ndim == 1 and rises(lexical, strictly=True)
        if not rising or (len(lexical) and not 0 <= lexical[0] <= lexical[-1] < models.words.cooccurrences.n_entries):
            raise ValueError("its frequent word pairs are damaged")
        return cls.of(models, lexical, groups=state["groups"], extra_names=state["extra_names"], fertility=fertility)
