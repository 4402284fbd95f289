"""Made lists and lattices: the same for a seed, and weights other than the decoder's do better on held-out ones."""

from __future__ import annotations

import numpy as np
import pytest
from lists import same_lists

from maxmargin.tasks.reranking.made import (
    SPEECH_WEIGHTS,
    TRANSLATION_WEIGHTS,
    made_lattices,
    made_lists,
    made_transcripts,
)
from maxmargin.tasks.reranking.metrics.bleu import Bleu
from maxmargin.tasks.reranking.metrics.error_rates import WordErrorRate


@pytest.mark.parametrize(("make", "weights"), [(made_lists, TRANSLATION_WEIGHTS), (made_transcripts, SPEECH_WEIGHTS)])
def test_lists_of_a_seed_are_the_same(make, weights):
    lists = make(70, 3, size=10)
    same_lists(lists, make(70, 3, size=10))
    assert make(2, 4, size=10).texts != lists.texts[:20]
    assert len(lists) == 70
    assert lists.sizes.max() == 10
    assert np.isfinite(lists.values).all()
    assert np.allclose(lists.values @ weights, lists.totals)
    for begin, end in zip(lists.offsets[:-1], lists.offsets[1:], strict=True):
        assert len(set(lists.texts[begin:end])) == end - begin
        assert (np.diff(lists.totals[begin:end]) <= 0).all()
    assert lists.values[:, -1].tolist() == [len(text.split()) for text in lists.texts]


def quality(lists, metric, statistics, weights) -> float:
    scores = lists.values @ np.array(weights)
    best = [a + int(np.argmax(scores[a:b])) for a, b in zip(lists.offsets[:-1], lists.offsets[1:], strict=True)]
    return float(metric.quality(statistics[best].sum(axis=0)))


@pytest.mark.parametrize(
    ("make", "decoder", "metric", "candidates"),
    [
        (
            made_lists,
            TRANSLATION_WEIGHTS,
            Bleu(),
            [(1, a, b, c) for a in (4, 6, 8) for b in (0, 6) for c in (0, 15, 30)],
        ),
        (made_transcripts, SPEECH_WEIGHTS, WordErrorRate(), [(1, a, b) for a in (1, 3, 7, 12) for b in (0, 15, 30)]),
    ],
)
def test_tuned_weights_beat_the_decoder_on_held_out_lists(make, decoder, metric, candidates):
    train, held_out = make(150, 0), make(150, 1)
    found = [metric.statistics(lists.texts, lists.references, lists.owner) for lists in (train, held_out)]
    best = max(candidates, key=lambda weights: quality(train, metric, found[0], weights))
    gain = quality(held_out, metric, found[1], best) - quality(held_out, metric, found[1], decoder)
    assert gain > 0.015


def test_lattices_have_the_words_that_were_said():
    found = made_lattices(20, 1)
    for lattice, (reference,) in zip(found.lattices, found.references, strict=True):
        edges = np.asarray(lattice.edges)
        assert (edges[:, 0] < edges[:, 1]).all()
        # The states that the words of the reference reach, with or without edges that have no word.
        reached = {(0, 0)}
        words = reference.split()
        for (tail, head), word in zip(edges.tolist(), lattice.words, strict=True):
            for node, place in list(reached):
                if node == tail and word is None:
                    reached.add((head, place))
                elif node == tail and place < len(words) and words[place] == word:
                    reached.add((head, place + 1))
        assert (lattice.end, len(words)) in reached
        assert lattice.features[:, 2].tolist() == [float(word is not None) for word in lattice.words]


@pytest.mark.parametrize("make", [made_lists, made_transcripts, made_lattices])
def test_bad_numbers(make):
    with pytest.raises(ValueError, match="n must be an integer >= 1"):
        make(0)
