"""Tokens by the names of their columns in Python, and models of files that have more columns than they need."""

from __future__ import annotations

import json

import numpy as np
import pytest
from commands import failed, run

import maxmargin as mm
from maxmargin.tasks.tagging import SequenceTagger, read_tagged

WORDS = [["The", "dog", "barks"], ["A", "cat", "sleeps"], ["The", "cat", "barks"]]
TAGS = [["DET", "NOUN", "VERB"]] * 3


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    """A model that was trained on a CoNLL-U file."""
    folder = tmp_path_factory.mktemp("treebank")
    lines = []
    for words, tags in zip(WORDS, TAGS, strict=True):
        pairs = enumerate(zip(words, tags, strict=True), 1)
        lines += ["# a comment", *(f"{i}\t{word}\t{word}\t{tag}" + "\t_" * 6 for i, (word, tag) in pairs), ""]
    (folder / "train.conllu").write_text("\n".join(lines) + "\n")
    run("tag", "train", str(folder / "train.conllu"), "--out", str(folder / "model"))
    return mm.load(folder / "model")


@pytest.mark.parametrize(
    "token",
    [
        lambda word: word,
        lambda word: (word,),
        lambda word: {"word": word},
        lambda word: {"form": word, "lemma": "not needed"},
        lambda word: ("1", word, *"_" * 8),
    ],
    ids=["words", "tuples", "word", "form", "lines"],
)
def test_a_model_of_conllu_labels_python_tokens(treebank, token):
    assert treebank.predict([[token(word) for word in words] for words in WORDS]) == TAGS


def test_lines_of_the_file_are_tokens(treebank):
    words = ["dog", "The", "sleeps", "cat"]  # in an order that transitions alone would not label so
    lines = [(str(i), word, "_", "_", *"_" * 6) for i, word in enumerate(words, 1)]
    assert treebank.predict([lines]) == treebank.predict([words]) != [["DET", "NOUN", "VERB", "DET"]]
    assert treebank.margins([lines])[0].tolist() == treebank.margins([words])[0].tolist()
    with pytest.raises(ValueError, match="tokens have 11 columns, and this model has 10: id, word"):
        treebank.predict([[(*line, "more") for line in lines]])


def test_what_is_missing_is_named(treebank):
    with pytest.raises(ValueError, match=r"sentence 0, token 1: no column 'word', .* there are lemma"):
        treebank.predict([[{"word": "The"}, {"lemma": "dog"}]])
    with pytest.raises(ValueError, match="sentence 1, token 0: expected a dictionary"):
        treebank.predict([[{"word": "The"}], ["dog"]])


def test_dictionaries_are_columns_where_there_is_a_preset():
    X = [[{"form": word, "pos": word[-1]} for word in words] for words in WORDS]
    tagger = SequenceTagger(preset="chunking").fit(X, TAGS)
    assert tagger.model_.extractor.template.columns == ("word", "pos")
    assert tagger.predict(X) == TAGS
    plain = SequenceTagger(preset="chunking").fit([[(t["form"], t["pos"]) for t in x] for x in X], TAGS)
    assert np.array_equal(tagger.coef_, plain.coef_)


def test_form_is_a_name_of_word(tmp_path):
    (tmp_path / "tokens").write_text("The DET\ndog NOUN\n")
    text = read_tagged(tmp_path / "tokens", columns="form,label")
    assert text.column("form") == text.column("word") == 0
    (tmp_path / "template").write_text("U00:%x[0,form]\n")
    more = ("--columns", "form,label", "--template", str(tmp_path / "template"))
    run("tag", "train", str(tmp_path / "tokens"), *more, "--out", str(tmp_path / "model"))
    assert mm.load(tmp_path / "model").predict([["The", "dog"]]) == [["DET", "NOUN"]]


# --- data frames ----------------------------------------------------------------------------------------------------


class Frame:
    """A data frame, as far as pandas and polars agree."""

    def __init__(self, columns: dict[str, list]) -> None:
        self._columns = columns

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    @property
    def shape(self) -> tuple[int, int]:
        return len(next(iter(self._columns.values()))), len(self._columns)

    def __getitem__(self, name: str) -> list:
        return self._columns[name]

    def __iter__(self):
        return iter(self._columns)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.array(list(zip(*self._columns.values(), strict=True)))


def frames(kind: str) -> type:
    return Frame if kind == "minimal" else pytest.importorskip(kind, reason=f"{kind} is not installed").DataFrame


@pytest.mark.parametrize("kind", ["minimal", "pandas", "polars"])
def test_a_list_of_data_frames(kind, treebank):
    frame = frames(kind)
    X = [frame({"form": words, "pos": [word[-1] for word in words]}) for words in WORDS]
    tagger = SequenceTagger(preset="chunking").fit(X, TAGS)
    assert SequenceTagger().fit(X, TAGS).model_.extractor.kind == "template"
    assert tagger.model_.extractor.template.columns == ("word", "pos")
    assert tagger.predict(X) == TAGS == treebank.predict(X)
    plain = SequenceTagger(preset="chunking").fit([[(word, word[-1]) for word in words] for words in WORDS], TAGS)
    assert np.array_equal(tagger.coef_, plain.coef_)
    numbers = [frame({"a": [1.0, 0.0, 0.0], "b": [0.0, 1.0, 0.0]})] * 3
    matrix = SequenceTagger().fit(numbers, TAGS)
    assert matrix.model_.extractor.n_attributes == 2
    assert matrix.predict(numbers) == TAGS
    dictionaries = SequenceTagger().fit([[{"form": word} for word in words] for words in WORDS], TAGS)
    assert dictionaries.predict([frame({"form": words}) for words in WORDS]) == TAGS
    for use in (SequenceTagger().fit, lambda X, y: tagger.predict(X)):
        with pytest.raises(ValueError, match="X is one table; give a list of tables, one per sentence"):
            use(X[0], TAGS)


@pytest.mark.parametrize("kind", ["minimal", "pandas", "polars"])
def test_columns_of_numbers_go_by_name(kind, tmp_path):
    """In which order the columns stand does not matter, and others than in training are refused, from files, too."""
    frame = frames(kind)
    parts = {"a": [1.0, 0.0, 0.0], "b": [0.0, 1.0, 0.0], "c": [3.0, 1.0, 2.0]}
    turned, X = frame({name: parts[name] for name in "cab"}), [frame(parts)] * 3
    tagger = SequenceTagger().fit([X[0], turned, X[0]], TAGS)
    assert tagger.feature_names_in_.tolist() == tagger.attributes_ == ["a", "b", "c"]
    assert np.array_equal(tagger.coef_, SequenceTagger().fit([np.asarray(one) for one in X], TAGS).coef_)
    tagger.save(tmp_path / "model")
    for model in (tagger, mm.load(tmp_path / "model")):
        assert np.array_equal(model.margins([turned])[0], model.margins(X)[0])
        assert model.predict([np.asarray(X[0])]) == TAGS[:1]
        with pytest.raises(
            ValueError, match=r"sentence 1: its columns are not those .*: it lacks c; give a frame with"
        ):
            model.predict([X[0], frame({"a": [1.0], "b": [0.0]})])
        with pytest.raises(ValueError, match="it also has d; give a frame with the columns a, b, c"):
            model.predict([frame({**parts, "d": [0.0] * 3})])
    assert tagger.partial_fit([turned], TAGS[:1]).predict(X) == TAGS
    plain = SequenceTagger().fit([np.asarray(one) for one in X], TAGS)
    assert not hasattr(plain, "feature_names_in_")
    assert plain.predict(X) == TAGS
    assert not hasattr(SequenceTagger(), "feature_names_in_")


# --- word/TAG lines -------------------------------------------------------------------------------------------------


def test_joined_words_are_a_setting_of_the_model(tmp_path):
    (tmp_path / "tagged").write_text("G + C/NN is/VB ok/JJ\na/DT dog/NN runs/VB\n")
    (tmp_path / "plain").write_text("the dog\n")
    model = str(tmp_path / "model")
    run("tag", "train", str(tmp_path / "tagged"), "--join", "--out", model)
    for line in run("tag", "predict", model, str(tmp_path / "tagged")).splitlines():
        assert line.split("/")[0] in ("G + C", "a")
    assert json.loads(run("tag", "evaluate", model, str(tmp_path / "tagged"), "--json"))["tokens"] == 6
    assert run("tag", "predict", model, str(tmp_path / "plain")).count("/") == 2


def test_a_model_of_conllu_does_not_take_a_sentence_for_columns(treebank, tmp_path):
    model, text = str(tmp_path / "model"), tmp_path / "text"
    treebank.save(model)
    text.write_text("The dog barks .\n")
    said = failed("tag", "predict", model, str(text))
    assert "line 1: several words: a sentence, or columns of a token, whose names are not known" in said
    assert len(run("tag", "predict", model, str(text), "--format", "slash").split()) == 4
    text.write_text("# a comment of words\nThe\ndog\n")
    assert run("tag", "predict", model, str(text)).count("\n") == 3
