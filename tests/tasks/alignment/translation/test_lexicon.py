"""The lexicon of translation models."""

import numpy as np
import pytest

from maxmargin.tasks.alignment.translation.lexicon import Lexicon


def test_entries_are_those_of_the_models(models):
    counts, word = models.words.cooccurrences, models.words.hmm.word
    found = Lexicon.of(models.words, min_probability=0.2).entries()
    assert len(found) == np.count_nonzero(word.max(axis=1) >= 0.2)
    for one in found[:200]:
        row = counts.source.index[one.source]
        begin, end = counts.row_start[row : row + 2]
        entry = begin + int(np.searchsorted(counts.column[begin:end], counts.target.index[one.target]))
        assert (one.forward, one.backward) == tuple(word[entry].tolist())
        assert one.links == models.words.links[entry]
    assert len(Lexicon.of(models.words, min_probability=0.0)) == counts.n_entries


def test_the_best_translations(models):
    """Sorted by probability, at most so many of a word; words are looked up in any case."""
    every = Lexicon.of(models.words, min_probability=0.0).entries()
    for top in (1, 2):
        found = Lexicon.of(models.words, min_probability=0.0, top=top).entries()
        best = {}
        for one in every:
            best.setdefault(one.source, []).append(one)
        assert found == [one for some in best.values() for one in some[:top]]
    (house,) = Lexicon.of(models.words, source="HOUSE", top=1).entries()
    assert house == max((one for one in every if one.source == "house"), key=lambda one: one.forward)
    back = Lexicon.of(models.words, target="maison", top=3).entries()
    assert {one.target for one in back} == {"maison"}
    assert [one.backward for one in back] == sorted((one.backward for one in back), reverse=True)
    assert not Lexicon.of(models.words, source="zorp").entries()
    for wrong in ({"min_probability": 2.0}, {"top": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Lexicon.of(models.words, **wrong)


def test_lines_for_moses(models):
    lexicon = Lexicon.of(models.words, source="house")
    f2e, e2f = lexicon.moses(0.01)
    for one in lexicon.entries():
        assert f"{one.target} house {one.forward:.7f}" in f2e
        assert f"house {one.target} {one.backward:.7f}" in e2f
    assert any(" NULL " in line for line in f2e)
    assert all(len(line.split()) == 3 for line in (*f2e, *e2f))
