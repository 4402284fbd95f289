"""Clusters of words: text files, model files, taggers that use them."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.tasks.tagging import FileError, SequenceTagger, TokenTable
from maxmargin.tasks.tagging.encoder.columns.word_clusters import PlainText, WordClusters


def test_words_with_the_same_neighbors_are_in_the_same_class():
    rng = np.random.default_rng(0)
    kinds = [
        ["the", "a"],
        ["cat", "dog", "cow"],
        ["runs", "sleeps"],
        ["Anna", "Bert", "Carl"],
        ["in"],
        ["Oslo", "Rome"],
    ]
    ways = [(0, 1, 2), (3, 2), (3, 2, 4, 5), (0, 1, 2, 4, 5)]
    text = [[str(rng.choice(kinds[kind])) for kind in ways[rng.integers(4)]] for _ in range(400)]
    found = WordClusters.learn(PlainText.of([], text), len(kinds))
    path = dict(zip(found.words.names, [found.paths[c] for c in found.classes], strict=True))
    assert len(set(found.paths)) == len(kinds)
    for kind in kinds:
        assert len({path[word] for word in kind}) == 1
    assert len({path[kind[0]] for kind in kinds}) == len(kinds)


def test_cells():
    text = PlainText.of([], [["Rome", "in", "1999", "rare"], ["rome", "In", "2004"]] * 3 + [["once"]])
    found = WordClusters.learn(text, 3)
    table = TokenTable.of_lists([["Rome", "ROME", "1870", "ONCE", "once", "IN"], []], ["word"])
    cells = found.columns(table, name="new", source="word").by_sentence(1)
    path = dict(zip(found.words.names, [found.paths[c] for c in found.classes], strict=True))
    assert cells == [[path["Rome"], path["rome"], path["0000"], "", "", path["in"]], []]
    assert repr(found) == "WordClusters(6 words, 3 classes)"
    again = WordClusters.from_state(found.state())
    assert (again.words.names, again.paths) == (found.words.names, found.paths)


@pytest.mark.parametrize("text", [[], [[]], [["a"]], [["a", "a", "a"]]])
def test_little_text(text):
    found = WordClusters.learn(PlainText.of([], text))
    table = TokenTable.of_lists([["a", "b"]], ["word"])
    assert found.columns(table, name="new", source="word").by_sentence(1) == [["", ""]]


def test_files(tmp_path):
    plain, packed, split = tmp_path / "plain", tmp_path / "packed.gz", tmp_path / "split"
    plain.write_text("The cat, the dog.\n\nA cow\n")
    packed.write_bytes(gzip.compress(b"A cow\n"))
    split.write_text("The cat , the U.S. dog .\n")
    found = PlainText.of([], [plain, str(packed), ["one", "more"]])
    assert [found.words.name(number) for number in found.numbers] == [
        *("The", "cat", ",", "the", "dog", ".", "A", "cow", "A", "cow", "one", "more")
    ]
    assert np.diff(found.sentences).tolist() == [6, 0, 2, 0, 2, 0, 2]
    assert "U.S." in PlainText.of([], split).words.names
    assert repr(PlainText.of([], found)) == repr(found) != repr(PlainText.of([], plain))
    plain.write_text("\n")
    with pytest.raises(FileError, match="plain: it has no words; give text with a sentence per line"):
        PlainText.of([], plain)
    with pytest.raises(FileError, match="check the name of the file"):
        PlainText.of([], [tmp_path / "none"])
    with pytest.raises(ValueError, match="text 0: expected the name of a file or a list of words, got 3"):
        PlainText.of([], [3])
    with pytest.raises(ValueError, match="text must be a file, several, or sentences as lists of words, got 3"):
        PlainText.of([], 3)


PEOPLE = ["Ada", "Bo", "Cy", "Di", "Eva", "Flo", "Gus", "Hal"]
TOWNS = ["Oslo", "Rome", "Lima", "Bonn", "Kyiv", "Riga", "Baku", "Doha"]
X = [["we", "saw", word, "there"] for word in (*PEOPLE[:4], *TOWNS[:4])]
Y = [["O", "O", label, "O"] for label in ["B-PER"] * 4 + ["B-LOC"] * 4]
TEXT = [["in", town, "it", "rains"] for town in TOWNS] * 4 + [["then", who, "said", "yes"] for who in PEOPLE] * 4


TEMPLATE = "!cluster cluster word\nU0:%x[0,word]\nU1:%filled[0,cluster]\nU2:%prefix(2)[0,cluster]"


def test_taggers_find_what_only_text_knows(tmp_path):
    tagger = SequenceTagger(template=TEMPLATE, text=TEXT, C=1.0).fit(X, Y)
    new = [["we", "saw", "Riga", "there"], ["we", "saw", "Flo", "there"]]
    assert tagger.predict(new) == [["O", "O", "B-LOC", "O"], ["O", "O", "B-PER", "O"]]
    tagger.save(tmp_path / "model")
    assert mm.load(tmp_path / "model").predict(new) == tagger.predict(new)
    before = tagger.model_.extractor.added.clusters
    assert tagger.partial_fit(X[:2], Y[:2]).model_.extractor.added.clusters is before


@pytest.mark.parametrize("preset", ["ner", "pos", "chunking"])
def test_presets_use_text(preset):
    given = [[(word, "N") for word in words] for words in X]
    settings = {"preset": preset, "columns": ("word", "pos"), "text": TEXT}
    taggers = [SequenceTagger(n_jobs=jobs, **settings).fit(given, Y) for jobs in (1, 2)]
    assert any(name.startswith("UK6:") for name in taggers[0].attributes_)
    np.testing.assert_array_equal(taggers[0].coef_, taggers[1].coef_)


def test_text_that_nothing_uses_is_refused():
    with pytest.raises(ValueError, match="the template does not use it; add the lines '!cluster cluster word'"):
        SequenceTagger(template="U:%x[0,word]", text=TEXT).fit(X, Y)
    with pytest.raises(ValueError, match="attributes of tokens cannot use text; leave text out"):
        SequenceTagger(text=TEXT).fit([[{"w": word} for word in words] for words in X], Y)
    # Without text, lines that use clusters are left out.
    assert all(name.startswith("U0") for name in SequenceTagger(template=TEMPLATE).fit(X, Y).attributes_)


@pytest.mark.parametrize("key", ["cluster_paths", "cluster_classes"])
def test_damaged_model_files_are_refused(key):
    state = WordClusters.learn(PlainText.of([], TEXT), 3).state()
    state[key] = state[key][1:]
    with pytest.raises(ValueError, match="clusters of words are damaged; save the model again"):
        WordClusters.from_state(state)
