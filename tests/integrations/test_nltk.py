"""The tagger of NLTK: training, tagging, NLTK's own scores."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.tasks import tagging

pytest.importorskip("nltk", reason="NLTK is not installed")

from maxmargin.integrations.nltk import MaxMarginTagger

CORPUS = tagging.load_corpus().select(range(90))
TAGGED = [list(zip(*one, strict=True)) for one in zip(CORPUS.tokens, CORPUS.upos, strict=True)]
SETTINGS = {"preset": "pos", "C": 0.1, "tol": 0.1, "folds": 0}


@pytest.fixture(scope="module")
def tagger():
    return MaxMarginTagger.train(TAGGED[:60], dev=TAGGED[60:75], **SETTINGS)


def test_it_is_the_sequence_tagger(tagger):
    own = tagging.SequenceTagger(**SETTINGS)
    own.fit(CORPUS.tokens[:60], CORPUS.upos[:60], dev=(CORPUS.tokens[60:75], CORPUS.upos[60:75]))
    assert np.array_equal(tagger.model.weights, own.coef_)
    found = tagger.tag_sents(CORPUS.tokens[75:])
    assert [[tag for _, tag in one] for one in found] == own.predict(CORPUS.tokens[75:])
    assert [[token for token, _ in one] for one in found] == CORPUS.tokens[75:]
    assert tagger.tag(iter(CORPUS.tokens[80])) == found[5]
    assert MaxMarginTagger(own).tag_sents(CORPUS.tokens[75:]) == MaxMarginTagger(own.model_).tag_sents(
        iter(CORPUS.tokens[75:])
    )


def test_scores_of_nltk(tagger):
    """NLTK retags the words of gold sentences, and counts; so does the library."""
    gold = TAGGED[75:]
    scores = tagging.evaluate(CORPUS.upos[75:], tagger.model.predict(CORPUS.tokens[75:]))
    assert tagger.accuracy(gold) == pytest.approx(scores.accuracy)
    found = tagger.tag_sents(CORPUS.tokens[75:])
    pairs = [(own[1], other[1]) for pair in zip(gold, found, strict=True) for own, other in zip(*pair, strict=True)]
    assert tagger.confusion(gold)["NOUN", "NOUN"] == pairs.count(("NOUN", "NOUN"))
    of_verbs = [own == other for own, other in pairs if own == "VERB"]
    assert tagger.recall(gold)["VERB"] == pytest.approx(sum(of_verbs) / len(of_verbs))
    assert "DET" in tagger.evaluate_per_tag(gold)


def test_files_and_pickles(tagger, tmp_path):
    tagger.save(tmp_path / "pos.mm")
    found = tagger.tag_sents(CORPUS.tokens[75:])
    for other in (MaxMarginTagger(tmp_path / "pos.mm", n_jobs=2), pickle.loads(pickle.dumps(tagger))):
        assert other.tag_sents(CORPUS.tokens[75:]) == found
    assert repr(tagger) == f"<MaxMarginTagger: {len(tagger.model.labels)} tags>"


def test_tokens_of_several_columns():
    """As NLTK has chunks: a token is a pair of a word and its part of speech."""
    rows = zip(CORPUS.tokens, CORPUS.upos, CORPUS.chunks, strict=True)
    chunks = [[((word, pos), chunk) for word, pos, chunk in zip(*row, strict=True)] for row in rows]
    tagger = MaxMarginTagger.train(chunks[:60], preset="chunking", columns=("word", "pos"), C=0.1, tol=0.1, folds=0)
    assert tagger.tag([("The", "DET"), ("dog", "NOUN")]) == [(("The", "DET"), "B-NP"), (("dog", "NOUN"), "I-NP")]
    assert tagger.accuracy(chunks[60:]) > 0.8


def test_empty_and_odd_sentences(tagger):
    assert tagger.tag([]) == []
    assert tagger.tag_sents([]) == []
    assert tagger.tag_sents([[], ["The"], []]) == [[], [("The", "DET")], []]
    (word, tag), other = tagger.tag(["\u00fcber", "\U0001f600"])
    assert (word, other[0]) == ("\u00fcber", "\U0001f600")
    assert tag in tagger.model.labels
    again = MaxMarginTagger.train([[], *TAGGED[:30]], **SETTINGS)
    assert again.tag(["The"]) == [("The", "DET")]


def test_unknown_tags_are_completed():
    """Tags that are None, as NLTK's taggers leave them, do not become a tag."""
    given = [[(word, None if j % 3 == 1 else tag) for j, (word, tag) in enumerate(one)] for one in TAGGED[:40]]
    assert None not in MaxMarginTagger.train(given, **SETTINGS).model.labels


def test_errors(tagger, tmp_path):
    with pytest.raises(ValueError, match=r"sentence 0: expected a list of tokens, got 'The dog'; split it"):
        tagger.tag("The dog")
    with pytest.raises(ValueError, match=r"sentence 1: expected a list of tokens, got 3"):
        tagger.tag_sents([["a"], 3])
    with pytest.raises(ValueError, match=r"tagged_sents, sentence 1, token 0: expected a pair \(token, tag\), got 'a'"):
        MaxMarginTagger.train([[("a", "DT")], ["a"]])
    with pytest.raises(ValueError, match=r"dev, sentence 0: expected a list of pairs \(token, tag\), got None"):
        MaxMarginTagger.train(TAGGED[:30], dev=[None])
    with pytest.raises(FileNotFoundError, match=r"there is no model file '.*none.mm'; give the name of one"):
        MaxMarginTagger(tmp_path / "none.mm")
    with pytest.raises(ValueError, match="the model must be a fitted estimator, its TaggerModel, or the name"):
        MaxMarginTagger(tagging.SequenceTagger())
    mm.ChainSVM(C=1.0).fit([np.eye(2)], [["a", "b"]]).save(tmp_path / "chain.mm")
    with pytest.raises(mm.ModelFileError, match="kind 'chain'; give the file of one of kind 'sequence tagging'"):
        MaxMarginTagger(tmp_path / "chain.mm")
    (tmp_path / "text").write_text("not a model")
    with pytest.raises(mm.ModelFileError):
        MaxMarginTagger(tmp_path / "text")
