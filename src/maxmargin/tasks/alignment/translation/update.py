"""Translation models that learn from more bitext, without the one that they were learned from.

The new pairs are learned as texts are in :mod:`~maxmargin.tasks.alignment.translation.adaptation`: by iterations of
expectation-maximization with the old probabilities as prior counts. What this gives for the words of the new pairs is
merged with the old models: new words and word pairs are added, and the other entries of a word keep what its adapted
ones leave of its probability, in their old proportions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.translation.adaptation import adapt
from maxmargin.tasks.alignment.translation.bitext_models import BitextModels
from maxmargin.tasks.alignment.translation.cooccurrences import Cooccurrences
from maxmargin.tasks.alignment.translation.models import Float32Array, TranslationModel, WordProbabilities
from maxmargin.tasks.alignment.translation.words import IndexedBitext, Sentences, WordVocabulary, fingerprints

Number = TypeVar("Number", np.int64, np.float32)


def updated(models: BitextModels, source: Sentences, target: Sentences) -> tuple[BitextModels, IntArray]:
    """Update models with the sentence pairs that they have not learned from.

    Returns:
        the updated models, and for each entry of ``models.words`` its entry there.
    """
    prints = fingerprints(source, target)
    _, first = np.unique(prints, return_index=True)
    new = np.sort(first[~np.isin(prints[first], models.seen)])
    if not len(new):
        return models, np.arange(models.words.cooccurrences.n_entries)
    adapted, _ = adapt(models, IndexedBitext.of(source, target).select(new))
    words = _Union(models.words.cooccurrences, adapted.words.cooccurrences)
    stems = _Union(models.stems.cooccurrences, adapted.stems.cooccurrences)
    return (
        BitextModels(
            words.merged(models.words, adapted.words),
            stems.merged(models.stems, adapted.stems),
            stems.merged(models.variational, adapted.variational),
            np.union1d(models.seen, prints),
        ),
        words.of_old,
    )


@dataclass(frozen=True, eq=False)
class _Numbers:
    """The words of two vocabularies: the old ones keep their numbers, the others follow."""

    words: list[str]
    of_new: IntArray

    @classmethod
    def of(cls, old: WordVocabulary, new: WordVocabulary) -> _Numbers:
        words, numbers = list(old.words), []
        for word in new.words:
            number = old.index.get(word)
            if number is None:
                number = len(words)
                words.append(word)
            numbers.append(number)
        return cls(words, np.array(numbers, dtype=np.int64))

    def values(self, old: npt.NDArray[Number], new: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """The new values of words that have one, otherwise the old ones."""
        found = np.zeros(len(self.words), dtype=old.dtype)
        found[: len(old)] = old
        found[self.of_new] = new
        return found

    def vocabulary(self, old: WordVocabulary, new: WordVocabulary) -> WordVocabulary:
        """The words with their counts."""
        return WordVocabulary(self.words, self.values(old.counts, new.counts))


class _Union:
    """The entries of old co-occurrences and of those of a text; the latter's counts include the former's."""

    def __init__(self, old: Cooccurrences, new: Cooccurrences) -> None:
        self._source, self._target = _Numbers.of(old.source, new.source), _Numbers.of(old.target, new.target)
        width = max(len(self._target.words), 1)
        old_rows = np.repeat(np.arange(len(old.source)), np.diff(old.row_start))
        new_rows = self._source.of_new[np.repeat(np.arange(len(new.source)), np.diff(new.row_start))]
        old_keys = old_rows * width + old.column
        new_keys = new_rows * width + self._target.of_new[new.column]
        keys = np.union1d(old_keys, new_keys)
        self.of_old, self._of_new = np.searchsorted(keys, old_keys), np.searchsorted(keys, new_keys)
        self._rows, self._columns = keys // width, keys % width
        counts = np.zeros(len(keys), dtype=np.int32)
        counts[self.of_old] = old.counts
        counts[self._of_new] = new.counts
        start = offsets_of(np.bincount(self._rows, minlength=len(self._source.words)))
        self._cooccurrences = Cooccurrences(
            self._source.vocabulary(old.source, new.source),
            self._target.vocabulary(old.target, new.target),
            new.n_pairs,
            old.letters,
            start,
            self._columns.astype(np.int32),
            counts,
        )

    def merged(self, old: TranslationModel, new: TranslationModel) -> TranslationModel:
        """The model of all entries, from the old one and the one that was adapted to the text."""
        links = np.zeros(len(self._rows), dtype=np.float32)
        links[self.of_old] = old.links
        links[self._of_new] = new.links
        return replace(
            old,
            cooccurrences=self._cooccurrences,
            links=links,
            model1=self._probabilities(old.model1, new.model1),
            hmm=self._probabilities(old.hmm, new.hmm),
            history=(),
        )

    def _probabilities(self, old: WordProbabilities, new: WordProbabilities) -> WordProbabilities:
        word = np.zeros((len(self._rows), 2), dtype=np.float32)
        word[self.of_old] = old.word
        adapted = np.zeros(len(self._rows), dtype=bool)
        adapted[self._of_new] = True
        word[self._of_new] = new.word
        for direction, (of, numbers) in enumerate(((self._rows, self._source), (self._columns, self._target))):
            in_text = np.zeros(len(numbers.words), dtype=bool)
            in_text[numbers.of_new] = True
            word[:, direction] = _shared(word[:, direction], of, adapted, in_text)
        null_target, null_source = (
            _empty(numbers, one, two)
            for numbers, one, two in (
                (self._target, old.null_target, new.null_target),
                (self._source, old.null_source, new.null_source),
            )
        )
        return WordProbabilities(word, null_target, null_source)


def _shared(
    p: Float32Array, of: IntArray, adapted: npt.NDArray[np.bool_], in_text: npt.NDArray[np.bool_]
) -> FloatArray:
    """Probabilities of entries, those that were not adapted scaled to what the others of their word ``of`` leave."""
    n = len(in_text)
    taken = np.bincount(of, np.where(adapted, p, 0.0), minlength=n)
    kept = np.bincount(of, np.where(adapted, 0.0, p), minlength=n)
    scale = np.where(in_text, np.clip((1.0 - taken) / np.maximum(kept, 1e-30), 0.0, 1.0), 1.0)
    return np.where(adapted, p, p * scale[of])


def _empty(numbers: _Numbers, old: Float32Array, new: Float32Array) -> Float32Array:
    """The probabilities of the empty word, to sum to one."""
    found = numbers.values(old, new).astype(np.float64)
    return (found / max(float(found.sum()), 1e-30)).astype(np.float32)
