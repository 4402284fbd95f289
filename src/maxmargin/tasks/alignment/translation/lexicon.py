"""The lexicon of translation models: pairs of words with their translation probabilities in both directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maxmargin import _checks
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.translation.models import TranslationModel
from maxmargin.tasks.alignment.translation.words import normalize


class LexiconEntry(NamedTuple):
    """A pair of words.

    Attributes:
        source: the source word, as the models see it: without case and composed.
        target: the target word.
        forward: ``p(target | source)``.
        backward: ``p(source | target)``.
        links: the number of links of the two that the models expect in their bitext.
    """

    source: str
    target: str
    forward: float
    backward: float
    links: float


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Entries of the hidden Markov models of words, sorted by source word and falling ``forward``.

    Attributes:
        source: the source words of the entries, as numbers of the vocabulary.
        target: the target words.
        forward: ``p(target | source)`` of each entry.
        backward: ``p(source | target)``.
        links: expected links in the bitext.
    """

    model: TranslationModel
    source: IntArray
    target: IntArray
    forward: FloatArray
    backward: FloatArray
    links: FloatArray

    @classmethod
    def of(
        cls,
        model: TranslationModel,
        *,
        min_probability: float = 0.01,
        top: int | None = None,
        source: str | None = None,
        target: str | None = None,
    ) -> Lexicon:
        """The entries with at least this probability in a direction.

        Args:
            model: the translation model.
            min_probability: the smallest probability of an entry in its better direction.
            top: the number of target words of a source word, or None for all; with ``target`` alone, of source words.
            source: only entries of this source word.
            target: only entries of this target word.
        """
        least = _checks.number("min_probability", min_probability, least=0, most=1)
        if top is not None:
            _checks.integer("top", top, least=1)
        counts, word = model.cooccurrences, model.hmm.word
        kept = word.max(axis=1, initial=0.0) >= least
        row = np.repeat(np.arange(len(counts.source)), np.diff(counts.row_start))
        for vocabulary, of, wanted in ((counts.source, row, source), (counts.target, counts.column, target)):
            if wanted is not None:
                kept &= of == vocabulary.index.get(normalize(wanted), -1)
        entries = np.flatnonzero(kept)
        back = source is None and target is not None
        first, by = (counts.column, word[:, 1]) if back else (row, word[:, 0])
        entries = entries[np.lexsort((-by[entries], first[entries]))]
        if top is not None and len(entries):
            group = first[entries]
            begins = np.flatnonzero(np.diff(group, prepend=-1))
            rank = np.arange(len(entries)) - np.repeat(begins, np.diff(begins, append=len(entries)))
            entries = entries[rank < top]
        return cls(
            model,
            row[entries],
            counts.column[entries].astype(np.int64),
            word[entries, 0].astype(np.float64),
            word[entries, 1].astype(np.float64),
            model.links[entries].astype(np.float64),
        )

    def __len__(self) -> int:
        return len(self.source)

    def entries(self) -> list[LexiconEntry]:
        """The entries with their words."""
        counts = self.model.cooccurrences
        sides = (
            [words[at] for at in of.tolist()] for words, of in self._sides(counts.source.words, counts.target.words)
        )
        numbers = (self.forward.tolist(), self.backward.tolist(), self.links.tolist())
        return list(map(LexiconEntry, *sides, *numbers))

    def _sides(self, source: list[str], target: list[str]) -> tuple[tuple[list[str], IntArray], ...]:
        return (source, self.source), (target, self.target)

    def moses(self, min_probability: float = 0.0) -> tuple[list[str], list[str]]:
        """The lines of Moses's files ``lex.f2e`` and ``lex.e2f``, where f is the source and e the target.

        They are ``target source p(target | source)`` and ``source target p(source | target)``, the empty word NULL
        among them.
        """
        counts, hmm = self.model.cooccurrences, self.model.hmm
        f2e = [
            f"{word} NULL {p:.7f}"
            for word, p in zip(counts.target.words, hmm.null_target.tolist(), strict=True)
            if p >= min_probability
        ]
        e2f = [
            f"{word} NULL {p:.7f}"
            for word, p in zip(counts.source.words, hmm.null_source.tolist(), strict=True)
            if p >= min_probability
        ]
        for one in self.entries():
            f2e.append(f"{one.target} {one.source} {one.forward:.7f}")
            e2f.append(f"{one.source} {one.target} {one.backward:.7f}")
        return f2e, e2f
