"""Sentence pairs as numbers: the same pairs, and the same models, as lists of words."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.tasks.alignment import SentencePair, load_corpus, read_bitext
from maxmargin.tasks.alignment.bootstrap import bootstrap_aligner
from maxmargin.tasks.alignment.io import bitext
from maxmargin.tasks.alignment.io.compact import CompactPairs, read_compact
from maxmargin.tasks.alignment.training import AlignerSettings, train_aligner
from maxmargin.tasks.alignment.translation.words import fingerprints

CORPUS = load_corpus()


def words_of(pairs):
    return [(list(pair.source), list(pair.target)) for pair in pairs]


@pytest.fixture
def both(tmp_path, monkeypatch):
    """A file of the corpus, which is read in small blocks."""
    monkeypatch.setattr(bitext, "BLOCK", 1000)
    lines = (f"{' '.join(e)} ||| {' '.join(f)}\n" for e, f in CORPUS)
    (tmp_path / "both").write_text("".join(lines) + "\n ||| x\n", encoding="utf-8")
    return tmp_path / "both"


def test_the_same_pairs(both):
    whole, compact = list(read_bitext(both)), read_compact(both)
    assert len(compact) == len(whole) == len(CORPUS) + 2
    assert words_of(compact) == whole
    assert words_of(compact[3:9:2]) == whole[3:9:2]
    assert words_of([compact[-1], compact[7]]) == [whole[-1], whole[7]]
    assert compact.sizes.tolist() == [[len(e), len(f)] for e, f in whole]
    more = compact.extended([SentencePair(["new", "the"], ["le"])])
    assert words_of(more) == [*whole, (["new", "the"], ["le"])]
    assert len(compact) == len(whole)
    np.testing.assert_array_equal(
        fingerprints(compact.source, compact.target), fingerprints([e for e, _ in whole], [f for _, f in whole])
    )
    with pytest.raises(IndexError):
        compact[len(whole)]


def test_no_pairs():
    for none in (CompactPairs.of([]), CompactPairs.of([[]]), CompactPairs.of([]).extended([])):
        assert (len(none), list(none), none.sizes.shape) == (0, [], (0, 2))
    assert words_of(CompactPairs.of([]).extended([SentencePair(["a"], [])])) == [(["a"], [])]


def same(one, two):
    first, second = (model.encoder.models.state() for model in (one, two))
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name])
    np.testing.assert_array_equal(one.weights, two.weights)


def test_the_same_models(both):
    whole, compact = list(read_bitext(both)), read_compact(both)
    how = AlignerSettings(C=0.01, false_negative=1.0, tol=0.05, folds=0, rounds=0)
    same(*(bootstrap_aligner(bitext, how, n_pairs=30) for bitext in (whole, compact)))
    gold = whole[:20], CORPUS.references[:20]
    same(*(train_aligner(*gold, how, bitext=bitext) for bitext in (whole[20:80], CompactPairs.of([whole[20:80]]))))
