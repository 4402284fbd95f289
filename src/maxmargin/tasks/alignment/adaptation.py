"""Translation models adapted to the text that is to be aligned.

Aligners that learn without annotations see the very text they align; words that are new, or used in a new way, are
learned from it. A stored model can do the same: a few iterations of expectation-maximization on the text, in which
what the bitext taught counts as much as it did there. With ``n(e)`` the number of pairs of the bitext with word ``e``
and ``c(e, f)`` the links expected in the text::

    t(f | e) = (n(e) t_bitext(f | e) + c(e, f)) / (n(e) + sum over f' of c(e, f'))

(for the empty word alike, and for the cautious model with its discount). The result is a model of the words of this
text alone. It makes the alignment of a pair depend on the other pairs. Pairs that were among the bitext have taught it
already and must not be counted twice: :meth:`BitextModels.knows` tells which.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import digamma

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.opinions import PRIOR, BitextModels, at_places
from maxmargin.tasks.alignment.translation import (
    UNSEEN,
    Float32Array,
    Lexicon,
    PreparedBitext,
    Sentences,
    Tables,
    TranslationModel,
    expect,
)
from maxmargin.tasks.alignment.words import Vocabulary

ITERATIONS = 3


def adapt(models: BitextModels, source: Sentences, target: Sentences) -> tuple[BitextModels, IntArray]:
    """Models of a text, from those of a bitext.

    Returns:
        the adapted models, and for each slot of their lexicon of words the slot of the old one, -1 for none.
    """
    whole = PreparedBitext(source, target)
    cut = PreparedBitext(source, target, letters=models.stems.lexicon.letters)
    words = _Old(models.words.lexicon, whole)
    stems = _Old(models.stems.lexicon, cut)
    return (
        BitextModels(
            words.adapted(models.words, agree=True),
            stems.adapted(models.stems, agree=True),
            stems.adapted(models.cautious, agree=False, prior=PRIOR),
            models.seen,
        ),
        words.slots,
    )


class _Old:
    """What the bitext knows of the words of a text."""

    def __init__(self, old: Lexicon, bitext: PreparedBitext) -> None:
        new = bitext.lexicon
        self._bitext = bitext
        self._rows = np.repeat(np.arange(len(new.source)), np.diff(new.row_start))
        self._source, self._target = _numbers(old.source, new.source), _numbers(old.target, new.target)
        self.slots = _slots(old, self._source[self._rows], self._target[new.column])
        self._n_source = at_places(old.source.counts, self._source)
        self._n_target = at_places(old.target.counts, self._target)
        self._lexicon = replace(
            new,
            source=replace(new.source, counts=new.source.counts + self._n_source.astype(np.int64)),
            target=replace(new.target, counts=new.target.counts + self._n_target.astype(np.int64)),
            n_pairs=new.n_pairs + old.n_pairs,
            together=new.together + at_places(old.together, self.slots).astype(np.int32),
        )

    def adapted(self, model: TranslationModel, *, agree: bool, prior: float = 0.0) -> TranslationModel:
        model1 = self._tables(model.model1, None, model.null, None, agree=False, prior=prior)
        hmm = self._tables(model.hmm, model.jumps, model.null, model1, agree=agree, prior=prior)
        return TranslationModel(
            self._lexicon, at_places(model.links, self.slots).astype(np.float32), model1, hmm, model.jumps, model.null
        )

    def _tables(
        self,
        old: Tables,
        jumps: FloatArray | None,
        null: float,
        start: Tables | None,
        *,
        agree: bool,
        prior: float,
    ) -> Tables:
        """Tables from old ones; what the bitext does not know begins as in ``start``, or all alike."""
        known = self.slots >= 0
        word = np.where(known[:, None], old.word[np.maximum(self.slots, 0)], 0.0).astype(np.float64)
        nulls = at_places(old.null_target, self._target), at_places(old.null_source, self._source)
        # The empty word has had a share of the tokens of these words.
        n_null = null * self._n_target.sum(), null * self._n_source.sum()
        begin = word if start is None else np.where(known[:, None], word, start.word)
        tables = Tables(_floor(begin), _floor(nulls[0]), _floor(nulls[1]))
        columns = self._bitext.lexicon.column.astype(np.int64)
        for _ in range(ITERATIONS):
            found = expect(self._bitext, tables, jumps, null, agree=agree)
            links = found.word / found.scale
            forward = _mixed(self._n_source[self._rows], word[:, 0], links[:, 0], self._rows, prior)
            backward = _mixed(self._n_target[columns], word[:, 1], links[:, 1], columns, prior)
            empty = (
                (n * share + counts / found.scale) / max(n + float(counts.sum()) / found.scale, 1e-300)
                for n, share, counts in zip(n_null, nulls, (found.null_target, found.null_source), strict=True)
            )
            tables = Tables(_floor(np.stack([forward, backward], axis=1)), *map(_floor, empty))
        return tables


def _mixed(n: FloatArray, old: FloatArray, links: FloatArray, of: IntArray, prior: float) -> FloatArray:
    """New probabilities of slots, whose generating words are ``of`` and have ``n`` pairs in the bitext."""
    total = np.bincount(of, links)[of] if len(of) else links
    if prior:
        entries = np.bincount(of)[of]
        # What is new is discounted as in variational Bayes: all of a word's links, and each of them.
        links, total = np.exp(digamma(links + prior)), np.exp(digamma(total + prior * entries))
    return np.asarray((n * old + links) / np.maximum(n + total, 1e-300))


def _floor(probabilities: FloatArray) -> Float32Array:
    return np.ascontiguousarray(np.clip(probabilities, UNSEEN, 1.0), dtype=np.float32)


def _numbers(old: Vocabulary, new: Vocabulary) -> IntArray:
    """For each new word its number in the old vocabulary, -1 for none."""
    return np.array([old.index.get(word, -1) for word in new.words], dtype=np.int64)


def _slots(lexicon: Lexicon, e: IntArray, f: IntArray) -> IntArray:
    """The slots of word pairs, -1 for those that never met."""
    width = max(len(lexicon.target), 1)
    keys = np.repeat(np.arange(len(lexicon.source)), np.diff(lexicon.row_start)) * width + lexicon.column
    wanted = e * width + f
    place = np.searchsorted(keys, wanted)
    same = (e >= 0) & (f >= 0) & (np.append(keys, -1)[place] == wanted)
    return np.where(same, place, -1)
