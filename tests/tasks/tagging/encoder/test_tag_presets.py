"""The templates that come with the package."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.tasks.common.tokens.table import TokenTable
from maxmargin.tasks.tagging import TaggingEncoder, train_tagger
from maxmargin.tasks.tagging.encoder.attributes import AttributeVocabulary
from maxmargin.tasks.tagging.encoder.columns.mentions import with_mentions
from maxmargin.tasks.tagging.encoder.columns.word_classes import WordClasses
from maxmargin.tasks.tagging.encoder.presets import PRESETS, preset
from maxmargin.tasks.tagging.encoder.templates.template import MENTION, Template

COLUMNS = ("word", "pos")
SENTENCES = [[("The", "DT"), ("U.S.", "NNP"), ("e-mails", "NNS"), ("1,234", "CD"), (".", ".")], [], [("Go", "VB")]]


@pytest.mark.parametrize("name", PRESETS)
def test_presets_give_every_token_attributes(name):
    template = preset(name, COLUMNS)
    table = TokenTable.of_lists(SENTENCES, COLUMNS)
    if template.learned is not None:
        column, source = template.learned
        labels = np.zeros(table.n_tokens, dtype=np.int32), ("X",)
        table = WordClasses.learn(table, labels, source=source).columns(table, name=column)
    if MENTION in template.added:
        table = with_mentions(table, template.added[MENTION])
    vocabulary = AttributeVocabulary()
    attributes = template.apply(table, vocabulary, grow=True)
    assert attributes.n_rows == 6
    assert np.all(np.diff(attributes.starts) > 10)
    begin = [name.split(":", 1)[0] for name in vocabulary.names]
    assert all(text.startswith("U") for text in begin)


@pytest.mark.parametrize("name", PRESETS)
def test_lines_of_presets_have_names_of_their_own(name):
    template = preset(name, COLUMNS)
    names = [str(line[0]).split(":", 1)[0] for line in template.unigrams]
    assert len(set(names)) == len(names)
    assert not template.edges


def test_presets_without_their_columns_are_refused():
    with pytest.raises(ValueError, match=r"the preset chunking needs the column 'pos', and tokens have word; name the"):
        preset("chunking", ("word",))
    with pytest.raises(ValueError, match="preset pos, line 2: the new column cannot be called 'class'"):
        preset("pos", ("word", "class"))
    with pytest.raises(ValueError, match="no preset 'parsing'; choose one of chunking, ner, pos"):
        preset("parsing", COLUMNS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("!learn class", "learn takes the name of the new column"),
        ("!learn word word", "cannot be called 'word'"),
        ("!learn 2 word", "cannot be called '2'"),
        ("!learn class form", "no column 'form'; there are word, pos"),
        ("!learn a word\n!learn b word", "there is a line !learn already"),
        ("!forget class", "unknown setting '!forget class'; use"),
    ],
)
def test_bad_settings_are_refused(line, message):
    with pytest.raises(ValueError, match=message):
        Template.parse(f"{line}\nU:%x[0,0]", COLUMNS)


def test_learned_columns_can_be_named_and_counted():
    template = Template.parse("!learn class word\nU0:%x[0,class]\nU1:%x[-1,2]", COLUMNS)
    assert template.learned == ("class", "word")
    assert template.columns == COLUMNS
    table = TokenTable.of_lists([[("a", "D"), ("b", "N")]], COLUMNS)
    table = WordClasses.learn(table, (np.array([1, 0]), ("X", "Y"))).columns(table)
    vocabulary = AttributeVocabulary()
    template.apply(table, vocabulary, grow=True)
    assert vocabulary.names == ["U0:Y", "U1:_B-1", "U0:X", "U1:Y"]


def test_templates_without_learned_columns_name_none():
    assert Template.parse("U:%x[0,0]", COLUMNS).learned is None


def test_lines_of_optional_columns_are_left_out():
    text = "!optional pos\nU0:%x[0,word]\nU1:%x[0,pos]\nU2:%x[-1,pos]|%x[0,word]"
    without, given = Template.parse(text, ("word",)), Template.parse(text, COLUMNS)
    assert (len(without.unigrams), len(given.unigrams)) == (1, 3)
    assert (without.columns_used, given.columns_used) == (("word",), ("word", "pos"))
    assert without.columns_needed == given.columns_needed == ("word",)
    assert len(preset("ner", ("word",)).unigrams) == 60  # as docs/tasks/tagging-presets.md says
    assert len(preset("ner", COLUMNS).unigrams) > len(preset("ner", ("word",)).unigrams)


TEXT = [["Anna", "sings", "in", "Rome", "today"], ["The", "cat", "sleeps"]]


@pytest.mark.parametrize(
    ("labels", "columns", "found"),
    [
        (["B-PER", "O", "O", "B-LOC", "O", "O", "O", "O"], ("word",), "ner"),
        (["B-PER", "O", "O", "B-LOC", "O", "O", "O", "O"], ("word", "pos"), "ner"),
        (["PER", "O", "O", "LOC", "O", "O", "O", "O"], ("word",), "ner"),
        (["S-person", "O", "O", "U-loc", "O", "O", "O", "O"], ("word",), "ner"),
        (["B-thing", "O", "O", "B-part", "O", "O", "O", "O"], ("word",), "ner"),
        (["B-NP", "B-VP", "B-PP", "B-NP", "B-NP", "B-NP", "I-NP", "B-VP"], ("word", "pos"), "chunking"),
        (["B-NP", "B-VP", "B-PP", "B-NP", "B-NP", "B-NP", "I-NP", "B-VP"], ("word",), "pos"),
        (["B-NP", "O", "O", "B-NP", "O", "B-NP", "I-NP", "O"], ("word", "pos"), "chunking"),
        (["B-x", "B-y", "O", "B-x", "B-x", "B-x", "I-x", "B-y"], ("word", "pos"), "chunking"),
        (["PROPN", "VERB", "ADP", "PROPN", "NOUN", "DET", "NOUN", "VERB"], ("word",), "pos"),
        (["PROPN", "VERB", "ADP", "PROPN", "NOUN", "DET", "NOUN", "VERB"], ("word", "pos"), "pos"),
        ([1, 2, 3, 4, 1, 2, 3, 4], ("word",), "pos"),
    ],
)
def test_the_preset_is_chosen_by_the_labels(labels, columns, found):
    X = [[word if len(columns) == 1 else (word, "N") for word in words] for words in TEXT]
    y = [labels[:5], labels[5:]]
    model = train_tagger(TaggingEncoder(columns=columns), X, y)
    assert model.metadata["preset"] == found
    assert model.metadata["preset_reason"].startswith("labels ")
    assert train_tagger(TaggingEncoder(preset="pos", columns=columns), X, y).metadata["preset_reason"] == ""
    y[0][1] = None
    assert train_tagger(TaggingEncoder(columns=columns), X, y).metadata["preset"] == found
