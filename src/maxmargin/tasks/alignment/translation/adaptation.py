"""Translation models adapted to the text that is to be aligned.

Aligners that learn without annotations learn from the text they align, new words and new uses included. A stored
model can do the same by a few iterations of expectation-maximization on the text, with the bitext's probabilities as
prior counts. With ``n(e)`` the number of pairs of the bitext with word ``e`` and ``c(e, f)`` the links expected in the
text::

    t(f | e) = (n(e) t_bitext(f | e) + c(e, f)) / (n(e) + sum over f' of c(e, f'))

and likewise for the empty word and, with its discount, for the variational model. The adapted models have only the
words of this text, and the alignment of a pair depends on the other pairs. Pairs of the bitext itself must not be
counted twice: :meth:`BitextModels.contains` finds them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import digamma

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.translation.bitext_models import PRIOR, BitextModels
from maxmargin.tasks.alignment.translation.cooccurrences import (
    BitextBatch,
    Cooccurrences,
    PreparedBitext,
    values_at,
)
from maxmargin.tasks.alignment.translation.models import (
    IDENTICAL,
    UNSEEN,
    Float32Array,
    TranslationModel,
    WordProbabilities,
    expect,
)
from maxmargin.tasks.alignment.translation.words import IndexedBitext, WordVocabulary

ITERATIONS = 3


def adapt(models: BitextModels, bitext: IndexedBitext) -> tuple[BitextModels, IntArray]:
    """Adapt the models of a bitext to the sentence pairs of a text.

    Returns:
        the adapted models, and for each entry of their words the entry in ``models``, -1 if there is none.
    """
    words = _Prior(models.words.cooccurrences, PreparedBitext(bitext))
    letters = models.stems.cooccurrences.letters
    stems = _Prior(models.stems.cooccurrences, PreparedBitext(bitext, letters=letters))
    return (
        BitextModels(
            words.adapted(models.words, agree=True),
            stems.adapted(models.stems, agree=True),
            stems.adapted(models.variational, agree=False, prior=PRIOR),
            models.seen,
        ),
        words.entries,
    )


class _Prior:
    """The counts and probabilities of a bitext for the words of a text."""

    def __init__(self, old: Cooccurrences, bitext: PreparedBitext) -> None:
        new = bitext.cooccurrences
        self._bitext = bitext
        self._rows = np.repeat(np.arange(len(new.source)), np.diff(new.row_start))
        self._source, self._target = _numbers(old.source, new.source), _numbers(old.target, new.target)
        self.entries = old.entries(
            BitextBatch(
                np.arange(len(new.source) + 1),
                self._source.astype(np.int32),
                new.row_start,
                self._target[new.column].astype(np.int32),
                (len(old.source), len(old.target)),
            )
        )
        self._n_source = values_at(old.source.counts, self._source).astype(np.float64)
        self._n_target = values_at(old.target.counts, self._target).astype(np.float64)
        self._cooccurrences = replace(
            new,
            source=replace(new.source, counts=new.source.counts + self._n_source.astype(np.int64)),
            target=replace(new.target, counts=new.target.counts + self._n_target.astype(np.int64)),
            n_pairs=new.n_pairs + old.n_pairs,
            counts=new.counts + values_at(old.counts, self.entries),
        )

    def adapted(self, model: TranslationModel, *, agree: bool, prior: float = 0.0) -> TranslationModel:
        model1, _ = self._probabilities(model.model1, None, model.null, None, agree=False, prior=prior)
        hmm, links = self._probabilities(model.hmm, model.jumps, model.null, model1, agree=agree, prior=prior)
        links += values_at(model.links, self.entries)
        return TranslationModel(self._cooccurrences, links, model1, hmm, model.jumps, model.null)

    def _probabilities(
        self,
        old: WordProbabilities,
        jumps: FloatArray | None,
        null: float,
        start: WordProbabilities | None,
        *,
        agree: bool,
        prior: float,
    ) -> tuple[WordProbabilities, Float32Array]:
        """Adapted probabilities; entries that the bitext does not have begin as in ``start``, or all alike.

        Also the links of each entry that are expected in the text.
        """
        known = self.entries >= 0
        word = np.where(known[:, None], old.word[np.maximum(self.entries, 0)], 0.0).astype(np.float64)
        of_null = (old.null_target, self._target), (old.null_source, self._source)
        nulls = [values_at(values, at).astype(np.float64) for values, at in of_null]
        # The empty word generated this share of the tokens of these words.
        n_null = null * self._n_target.sum(), null * self._n_source.sum()
        begin = np.where(known[:, None], word, UNSEEN if start is None else start.word)
        if start is None:
            identical = self._cooccurrences.identical()
            begin[identical] = np.maximum(begin[identical], IDENTICAL * UNSEEN)
        probabilities = WordProbabilities(_floor(begin), _floor(nulls[0]), _floor(nulls[1]))
        columns = self._bitext.cooccurrences.column.astype(np.int64)
        for _ in range(ITERATIONS):
            found = expect(self._bitext, probabilities, jumps, null, agree=agree)
            links = found.word.astype(np.float64)
            forward = _mixed(self._n_source[self._rows], word[:, 0], links[:, 0], self._rows, prior)
            backward = _mixed(self._n_target[columns], word[:, 1], links[:, 1], columns, prior)
            empty = (
                (n * share + counts / found.scale) / max(n + float(counts.sum()) / found.scale, 1e-300)
                for n, share, counts in zip(n_null, nulls, (found.null_target, found.null_source), strict=True)
            )
            probabilities = WordProbabilities(_floor(np.stack([forward, backward], axis=1)), *map(_floor, empty))
        return probabilities, links[:, 0].astype(np.float32)


def _mixed(n: FloatArray, old: FloatArray, links: FloatArray, of: IntArray, prior: float) -> FloatArray:
    """New probabilities of entries, whose generating words ``of`` occur in ``n`` pairs of the bitext."""
    total = np.bincount(of, links)[of] if len(of) else links
    if prior:
        entries = np.bincount(of)[of]
        # Expected links of the text are discounted as in variational Bayes, and so is their sum.
        links, total = np.exp(digamma(links + prior)), np.exp(digamma(total + prior * entries))
    return np.asarray((n * old + links) / np.maximum(n + total, 1e-300))


def _floor(probabilities: FloatArray) -> Float32Array:
    return np.ascontiguousarray(np.clip(probabilities, UNSEEN, 1.0), dtype=np.float32)


def _numbers(old: WordVocabulary, new: WordVocabulary) -> IntArray:
    """The number of each new word in the old vocabulary, -1 if it is not there."""
    return np.array([old.index.get(word, -1) for word in new.words], dtype=np.int64)
