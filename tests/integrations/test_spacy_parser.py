"""The parser of spaCy: trees of documents, white space, sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from maxmargin.tasks.parsing import DependencyParser, Treebank

pytest.importorskip("spacy", reason="spaCy is not installed")

import spacy
from spacy.tokens import Doc
from spacy.training import Example

import maxmargin.integrations.spacy.parser  # noqa: F401 (registers the component, as the entry point does)

WORDS = {
    "the": "DET",
    "a": "DET",
    "old": "ADJ",
    "cat": "NOUN",
    "dog": "NOUN",
    "sees": "VERB",
    "likes": "VERB",
    ".": "PUNCT",
}
TREES = {
    "the cat sees a dog .": ([2, 3, 0, 5, 3, 3], ["det", "nsubj", "root", "det", "obj", "punct"]),
    "a dog likes the old cat .": ([2, 3, 0, 6, 6, 3, 3], ["det", "nsubj", "root", "det", "amod", "obj", "punct"]),
    "the old dog sees .": ([3, 3, 4, 0, 4], ["det", "amod", "nsubj", "root", "punct"]),
    "cat likes dog": ([2, 0, 2], ["nsubj", "root", "obj"]),
}


def rows(text):
    return [{"form": word, "upos": WORDS[word]} for word in text.split()]


@pytest.fixture(scope="module")
def parser():
    X = [
        [{**row, "head": h, "deprel": r} for row, h, r in zip(rows(text), *tree, strict=True)]
        for text, tree in TREES.items()
    ]
    return DependencyParser(order=2, bits=12, max_iter=8).fit(Treebank.of(X))


@pytest.fixture(scope="module")
def nlp(parser, tmp_path_factory):
    file = tmp_path_factory.mktemp("models") / "parser"
    parser.save(file)
    nlp = spacy.blank("en")
    nlp.add_pipe("maxmargin_parser", config={"model": str(file)})
    return nlp


def doc_of(nlp, words, starts=None):
    pos = ["SPACE" if word.isspace() else WORDS[word] for word in words]
    return Doc(nlp.vocab, words=words, pos=pos, sent_starts=starts)


def tree_of(tokens):
    """Heads, counted from 1, and relations of tokens that are a sentence."""
    places = {token.i: at for at, token in enumerate(tokens, start=1)}
    heads = [0 if token.head.i == token.i else places[token.head.i] for token in tokens]
    return heads, [token.dep_ for token in tokens]


def test_trees_are_those_of_the_parser(nlp, parser):
    assert nlp.get_pipe("maxmargin_parser").load().columns == ("word", "upos")
    docs = [doc_of(nlp, text.split()) for text in TREES]
    for doc, (text, (heads, relations)) in zip(nlp.pipe(docs, batch_size=3), TREES.items(), strict=True):
        found, _ = parser.predict([rows(text)])[0]
        assert tree_of(list(doc)) == (found.tolist(), ["ROOT" if one == "root" else one for one in relations])
        assert found.tolist() == heads
        assert len(list(doc.sents)) == 1


def test_sentences_are_kept(nlp):
    texts = list(TREES)
    words, starts = [], []
    for text in texts:
        own = text.split()
        words, starts = words + own, [*starts, True, *[False] * (len(own) - 1)]
    doc = nlp(doc_of(nlp, words, starts))
    assert [sentence.text for sentence in doc.sents] == texts
    alone = [tree_of(list(nlp(doc_of(nlp, text.split())))) for text in texts]
    assert [tree_of(list(sentence)) for sentence in doc.sents] == alone
    assert [token.pos_ for token in doc] == [WORDS[word] for word in words]


def test_white_space_hangs_on_its_neighbor(nlp):
    words = ["\n", "the", " ", "cat", "sees", "a", "dog", ".", "\n\n"]
    doc = nlp(doc_of(nlp, words))
    kept = [token for token in doc if not token.is_space]
    assert tree_of(kept) == tree_of(list(nlp(doc_of(nlp, ["the", "cat", "sees", "a", "dog", "."]))))
    assert [(token.head.i, token.dep_) for token in doc if token.is_space] == [(1, "dep"), (1, "dep"), (7, "dep")]
    assert not nlp(doc_of(nlp, ["\n"])).has_annotation("DEP")
    assert len(nlp("")) == 0
    assert tree_of(list(nlp(doc_of(nlp, ["cat"]))))[0] == [0]


def test_saved_pipelines_and_scores(nlp, tmp_path):
    nlp.to_disk(tmp_path / "pipeline")
    config = nlp.get_pipe_config("maxmargin_parser")
    Path(config["model"]).rename(tmp_path / "elsewhere")
    try:
        other = spacy.load(tmp_path / "pipeline")
    finally:
        (tmp_path / "elsewhere").rename(config["model"])
    gold = []
    for text, (heads, relations) in TREES.items():
        words = text.split()
        own = [head - 1 if head else at for at, head in enumerate(heads)]
        deps = ["ROOT" if one == "root" else one for one in relations]
        gold.append(Doc(other.vocab, words=words, heads=own, deps=deps))
    examples = [Example(doc_of(other, text.split()), one) for text, one in zip(TREES, gold, strict=True)]
    scores = other.evaluate(examples)
    assert scores["dep_uas"] == scores["dep_las"] == 1.0
    assert "ROOT" in other.pipe_labels["maxmargin_parser"]


def test_errors(nlp):
    with pytest.raises(ValueError, match=r"the model uses the column 'upos', read from token.pos_, which no token of"):
        nlp("the cat sees")
    with pytest.raises(
        ValueError, match=r"the model must be a fitted estimator, its ParserModel, or the name of its file"
    ):
        nlp.get_pipe("maxmargin_parser").model = 3
