"""Word alignment by one-to-one matchings with the aligner's own features: Hansards, or two synthetic languages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import workloads
from benchmarks.papers.runs import Judge, Workload
from maxmargin.losses import Hamming
from maxmargin.tasks.alignment import BitextModels, Reference, SentencePair
from maxmargin.tasks.alignment.annotated import AnnotatedPairs
from maxmargin.tasks.alignment.encoder.alignment import AlignmentEncoder
from maxmargin.tasks.alignment.encoder.evidence import best_links, indexed
from maxmargin.tasks.alignment.encoder.features import GROUPS
from maxmargin.tasks.alignment.training import AlignerSettings
from maxmargin.training import Settings

WITHHELD = ("hmm", "neighbors", "null")
"""Groups of features that restate the hidden Markov models of machine-aligned pairs."""
LOSS = Hamming(false_positive=1.0, false_negative=3.0)
"""The costs of the 2005 report."""

LONGEST = 18
"""Longer sentences are not machine-aligned: 5,000 pairs then have about the 555,000 links of the report's."""

DEV = 37
"""The last so many annotated pairs of the Hansards are their ``dev`` part."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """Annotated pairs, pairs without annotations, and translation models of both."""

    pairs: list[SentencePair]
    references: list[Reference]
    bitext: list[SentencePair]
    models: BitextModels

    @classmethod
    def of(cls, pairs: list[SentencePair], references: list[Reference], bitext: list[SentencePair]) -> Corpus:
        """With the translation models that the aligner learns, from the text of all pairs."""
        text = [*bitext, *pairs]
        models = BitextModels.learn([pair.source for pair in text], [pair.target for pair in text])
        return cls(pairs, references, bitext, models)

    def encoder(self, *, withheld: Sequence[str] = ()) -> AlignmentEncoder:
        """The aligner's features of one-to-one matchings, without those of the groups that are withheld."""
        lexical = self.models.words.frequent(AlignerSettings.frequent_pairs)
        groups = [group for group in GROUPS if group not in ("extra", *withheld)]
        return AlignmentEncoder.of(self.models, lexical, groups=groups, fertility=1)

    def annotated(self, encoder: AlignmentEncoder) -> AnnotatedPairs:
        """The pairs with the links of annotators."""
        return AnnotatedPairs.annotated(encoder, encoder.batch(self.pairs), self.references)

    def machine_aligned(self, encoder: AlignmentEncoder, n: int) -> AnnotatedPairs:
        """The first ``n`` short pairs of the bitext with the links on which the HMMs of both directions agree."""
        short = [pair for pair in self.bitext if pair.source and pair.target and max(map(len, _words(pair))) <= LONGEST]
        evidence = encoder.evidence(short[:n], indexed(short[:n]), encoder.translation())
        forward, backward = best_links(evidence)
        return AnnotatedPairs.of(encoder, encoder.pack(evidence), forward & backward, forward & backward)


def _words(pair: SentencePair) -> tuple[list[str], list[str]]:
    return pair.source, pair.target


def hansards(data: Path) -> Corpus:
    """The 137 annotated pairs, ``train`` first, and the bitext."""
    return Corpus.of(*workloads.hansards_text(data))


def synthetic(n_annotated: int, n_bitext: int) -> Corpus:
    """Two synthetic languages: some words have similar spellings, some two translations.

    Word order is shuffled locally, words are dropped and inserted; word frequencies follow Zipf's law. A word that
    occurs twice is linked to the right copy only; a few links are merely possible.
    """
    words = 400
    dictionary = np.random.default_rng(0)
    syllables = [c + v for c in "bdfgklmnprst" for v in "aeiou"]
    english = ["".join(dictionary.choice(syllables, size=dictionary.integers(1, 4))) + str(k % 7) for k in range(words)]
    french = [
        [word + "e"] if k % 3 == 0 else ["".join(dictionary.choice(syllables, size=3)) for _ in range(1 + k % 2)]
        for k, word in enumerate(english)
    ]
    share = 1.0 / (5.0 + np.arange(words))
    rng = np.random.default_rng(1)
    pairs, references = [], []
    for length in rng.integers(4, 16, size=n_annotated + n_bitext):
        chosen = rng.choice(words, size=length, p=share / share.sum())
        order = np.argsort(np.arange(length) + rng.normal(scale=1.2, size=length))
        order = order[rng.random(length) < 0.9]
        translated, sure, possible = [], [], []
        for source in order:
            if rng.random() < 0.1:
                translated.append(str(rng.choice(french[int(rng.choice(words, p=share / share.sum()))])))
            link = int(source), len(translated)
            possible.append(link)
            if rng.random() < 0.9:
                sure.append(link)
            translated.append(str(rng.choice(french[chosen[source]])))
        pairs.append(SentencePair([english[k] for k in chosen], translated or [french[0][0]]))
        references.append(Reference.of(sure, possible))
    return Corpus.of(pairs[:n_annotated], references[:n_annotated], pairs[n_annotated:])


def workload(train: AnnotatedPairs, dev: AnnotatedPairs, test: AnnotatedPairs) -> Workload:
    """The training problem, judged by alignment error rates."""
    return Workload(train.problem(Settings(C=np.inf, loss=LOSS), np.inf), _judge(dev), _judge(test))


def rotations(pairs: AnnotatedPairs, n_train: int, n: int, seed: int = 0) -> list[Workload]:
    """``n`` divisions of the pairs, which test on each pair once: ``n_train`` to train on, the others to validate."""
    order = np.random.default_rng(seed).permutation(len(pairs))
    found = []
    for test in np.array_split(order, n):
        rest = np.roll(order, -int(np.flatnonzero(order == test[-1])[0]) - 1)[: len(order) - len(test)]
        parts = rest[:n_train], rest[n_train:], test
        found.append(workload(*(pairs.select(np.sort(part)) for part in parts)))
    return found


def _judge(pairs: AnnotatedPairs) -> Judge:
    structure, features, cells = pairs.batch.structure, pairs.batch.features, pairs.batch.matchings.cells

    def judge(weights: np.ndarray) -> np.ndarray:
        found = pairs.evaluate(structure.argmax(features.scores(weights)).z[cells] > 0.5)
        return np.array([found.predicted_sure + found.predicted_possible, found.predicted + found.sure])

    return judge
