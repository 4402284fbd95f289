"""The built-in English corpus: its file, its three layers of labels, its parts."""

from __future__ import annotations

import gzip
import re
import unicodedata
from collections import Counter
from importlib import resources
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from maxmargin.tasks import alignment
from maxmargin.tasks.tagging.io.corpus import COLUMNS, PATH, TaggedCorpus, load_corpus
from maxmargin.tasks.tagging.io.files import read_tagged
from maxmargin.tasks.tagging.metrics.chunks import count_chunks

UPOS = {"ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ"}
UPOS |= {"SYM", "VERB"}  # and no X
GUIDE = Path(__file__).parents[3] / "docs" / "tasks" / "tagging-corpus.md"
PHRASES = {"NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT"}
KINDS = {"PER", "LOC", "ORG"}
NOMINAL = {"NOUN", "PROPN", "PRON", "NUM"}


@pytest.fixture(scope="module")
def corpus():
    return load_corpus()


def sentences(corpus):
    """Each sentence as a list of rows ``(word, upos, chunk, name)``."""
    columns = (corpus.tokens, corpus.upos, corpus.chunks, corpus.names)
    return [list(zip(*one, strict=True)) for one in zip(*columns, strict=True)]


def phrases(rows, column):
    """The chunks of a sentence in one of its columns: the type and the rows."""
    found = []
    for row in rows:
        if row[column].startswith("B-"):
            found.append((row[column][2:], [row]))
        elif row[column] != "O":
            found[-1][1].append(row)
    return found


def shown(rows):
    return " ".join("/".join(row) for row in rows)


def test_it_holds_enough_sentences_of_varied_length(corpus):
    lengths = [len(tokens) for tokens in corpus.tokens]
    assert len(corpus) == len(lengths) >= 450
    assert sum(lengths) >= 5000
    assert min(lengths) == 1
    assert max(lengths) >= 30
    assert [list(map(len, column)) for column in (corpus.upos, corpus.chunks, corpus.names)] == [lengths] * 3


def test_the_file_comes_with_the_package(corpus):
    shipped = resources.files("maxmargin.tasks.tagging").joinpath("data", "english.tsv")
    assert shipped.read_bytes() == PATH.read_bytes()
    assert corpus.path == PATH


def test_the_text_is_clean():
    text = PATH.read_text(encoding="utf-8")
    assert unicodedata.is_normalized("NFC", text)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert "\n\n\n" not in text
    for line in text.split("\n"):
        cells = line.split("\t")
        assert line == "" or len(cells) == len(COLUMNS)
        assert all(cell == cell.strip() for cell in cells)
        assert all(unicodedata.category(c)[0] not in "CZ" for cell in cells for c in cell)


def test_it_is_recognized_without_being_told():
    text = read_tagged(PATH)
    assert (text.format, text.columns) == ("columns", ("word", "column1", "column2", "label"))
    assert text.labels() == load_corpus().names


def test_no_sentence_comes_twice(corpus):
    assert [words for words, n in Counter(map(tuple, corpus.tokens)).items() if n > 1] == []


def test_it_begins_with_the_english_of_the_alignment_corpus(corpus):
    source = alignment.load_corpus().source
    assert corpus.tokens[: len(source)] == source


def test_labels_are_those_of_the_closed_sets(corpus):
    assert {tag for tags in corpus.upos for tag in tags} == UPOS
    for labels, kinds in ((corpus.chunks, PHRASES), (corpus.names, KINDS)):
        used = {label for one in labels for label in one}
        assert {f"B-{kind}" for kind in kinds} <= used
        assert used <= {"O"} | {f"{letter}-{kind}" for letter in "BI" for kind in kinds}


def test_no_label_is_inside_what_has_not_begun(corpus):
    for labels in (*corpus.chunks, *corpus.names):
        for before, label in zip(["O", *labels], labels, strict=False):
            assert label[0] != "I" or before in (label, f"B{label[1:]}"), labels


def test_the_guide_has_the_counts(corpus):
    train, test = corpus.split()
    text = GUIDE.read_text(encoding="utf-8")
    rows = {cells[0]: [int(cell.replace(",", "")) for cell in cells[1:]] for cells in table(text, 4)}
    found = {}
    for name, count in (("sentences", len), ("tokens", lambda part: sum(map(len, part.tokens)))):
        found[name] = [count(part) for part in (corpus, train, test)]
    for column in ("upos", "chunks", "names"):
        counts = [Counter(label for one in getattr(part, column) for label in one) for part in (corpus, train, test)]
        for label in counts[0]:
            if label != "O" and not label.startswith("I-"):
                found[label.removeprefix("B-")] = [count[label] for count in counts]
    assert rows == found


def table(text, width):
    """Rows of the tables of a page that have numbers in all cells but the first."""
    number = r" *([0-9,]+) *\|"
    return re.findall(rf"^\| *`?([\w.]+)`? *\|{number * (width - 1)}$", text, re.MULTILINE)


def test_conlleval_counts_the_same_chunks(corpus):
    for labels in (corpus.chunks, corpus.names):
        names = sorted({label for one in labels for label in one})
        codes = np.array([names.index(label) for one in labels for label in one])
        bounds = np.cumsum([0, *map(len, labels)])
        counts = count_chunks(codes, codes, bounds, names).of_types.sum(axis=0)
        assert set(counts.tolist()) == {sum(label[0] == "B" for one in labels for label in one)}


def test_phrases_hold_their_heads(corpus):
    heads = {
        "NP": NOMINAL | {"DET", "ADJ", "PART"},  # most of them, all of you, my sister 's
        "VP": {"VERB", "AUX"},
        "PP": {"ADP", "SCONJ", "VERB"},  # according
        "ADVP": {"ADV"},
        "ADJP": {"ADJ"},
        "SBAR": {"SCONJ", "NOUN"},  # in order
        "PRT": {"ADP", "ADV"},
    }
    nominal = total = 0
    for rows in sentences(corpus):
        for kind, inside in phrases(rows, 2):
            tags = {row[1] for row in inside}
            assert tags & heads[kind], shown(inside)
            if kind == "VP":
                assert tags <= {"VERB", "AUX", "PART", "ADV"}, shown(inside)
                assert inside[0][1] != "ADV", shown(inside)
                assert inside[-1][1] != "ADV", shown(inside)
            if kind == "NP":
                assert not tags & {"VERB", "AUX", "SCONJ", "CCONJ", "INTJ"}, shown(inside)
                total += 1
                nominal += bool(tags & NOMINAL)
    assert nominal > 0.99 * total


def test_tags_stand_in_the_phrases_they_belong_to(corpus):
    within = {
        "DET": {"NP"},
        "NOUN": {"NP"},
        "PROPN": {"NP"},
        "PRON": {"NP"},
        "NUM": {"NP"},
        "SYM": {"NP"},
        "VERB": {"VP"},
        "AUX": {"VP"},
        "ADJ": {"NP", "ADJP"},
        "ADP": {"PP", "PRT", "NP"},
        "PART": {"VP", "NP", ""},
        "SCONJ": {"SBAR", "PP"},
        "ADV": {"ADVP", "ADJP", "VP", "NP", "PP", "SBAR", "PRT"},
        "PUNCT": {""},
        "CCONJ": {""},
        "INTJ": {""},
    }
    exceptions = {("according", "PP"), ("order", "SBAR"), ("in", "SBAR"), ("-", "NP")}
    for rows in sentences(corpus):
        for row in rows:
            word, tag, kind = row[0].lower(), row[1], row[2][2:]
            correlative = word == "the" and kind in ("ADJP", "ADVP")  # the older the wine
            assert kind in within[tag] or (word, kind) in exceptions or correlative, shown(rows)


def test_an_infinitive_stays_with_the_verb_before_it(corpus):
    for rows in sentences(corpus):
        for before, row in pairwise(rows):
            if row[:3] == ("to", "PART", "B-VP"):
                assert before[1] == "AUX" or before[2][2:] != "VP", shown(rows)  # is to cook


def test_a_possessive_begins_a_phrase(corpus):
    marks = [row for rows in sentences(corpus) for row in rows if row[0] in ("'s", "'") and row[1] == "PART"]
    assert len(marks) >= 8
    assert {row[2] for row in marks} == {"B-NP"}


def test_names_are_of_proper_nouns(corpus):
    for rows in sentences(corpus):
        for _, inside in phrases(rows, 3):
            assert inside[0][1] == inside[-1][1] == "PROPN", shown(inside)
            assert {row[1] for row in inside} <= {"PROPN", "ADP", "PART"}, shown(inside)
            assert all(row[0][0].isupper() for row in inside if row[1] == "PROPN"), shown(inside)


def test_proper_nouns_that_are_no_names_are_few(corpus):
    calendar = (
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday Mondays Sundays Christmas January March April May "
        "June July August September November"
    )
    titles = "Mr. Mrs. Dr. Speaker Prime Minister House Act"
    rest = {row[0] for rows in sentences(corpus) for row in rows if row[1] == "PROPN" and row[3] == "O"}
    assert rest == set(calendar.split()) | set(titles.split())


def test_capitals_inside_sentences_are_proper_nouns(corpus):
    allowed = {"I", "Sir", "OK", "Roman", "French"}
    for rows in sentences(corpus):
        for before, (word, tag, *_) in pairwise(rows):
            if word[0].isupper() and before[0] not in ('"', "?", "!"):
                assert tag == "PROPN" or word in allowed, shown(rows)


def test_marks_and_numbers_have_their_tags(corpus):
    for rows in sentences(corpus):
        for word, tag, _, _ in rows:
            assert (tag == "PUNCT") == (word in set('.,;:?!-"')), word
            assert (tag == "SYM") == (word in {"$", "%"}), word
            assert tag == "NUM" or not word[0].isdigit(), word


def test_words_of_closed_classes_keep_their_tags(corpus):
    tags: dict[str, set[str]] = {}
    for rows in sentences(corpus):
        for word, tag, _, _ in rows:
            tags.setdefault(word.lower(), set()).add(tag)
    expected = {
        "the": "DET",
        "a": "DET",
        "an": "DET",
        "and": "CCONJ",
        "or": "CCONJ",
        "my": "PRON",
        "their": "PRON",
        "who": "PRON",
        "not": "PART",
        "n't": "PART",
        "will": "AUX",
        "would": "AUX",
        "can": "AUX",
        "cannot": "AUX",
        "if": "SCONJ",
        "when": "ADV",
        "whether": "SCONJ",
        "where": "ADV",
        "why": "ADV",
        "how": "ADV",
        "nobody": "PRON",
        "from": "ADP",
        "into": "ADP",
    }
    assert {word: tags[word] for word in expected} == {word: {tag} for word, tag in expected.items()}
    assert sum(len(of_word) > 1 for of_word in tags.values()) > 80  # and many words have several


def test_split_takes_every_fifth_sentence_for_testing(corpus):
    train, test = corpus.split()
    assert test.tokens == corpus.tokens[4::5]
    assert test.names == corpus.names[4::5]
    assert len(train) + len(test) == len(corpus)
    assert train.upos[:6] == [corpus.upos[i] for i in (0, 1, 2, 3, 5, 6)]
    assert {label for one in test.chunks for label in one} <= {label for one in train.chunks for label in one}
    for kind in KINDS:
        assert sum(labels.count(f"B-{kind}") for labels in test.names) >= 10
    halves = corpus.split(every=2)
    assert [len(half) for half in halves] == [(len(corpus) + 1) // 2, len(corpus) // 2]
    with pytest.raises(ValueError, match="every=1 leaves no sentences for training; give 2 or more"):
        corpus.split(every=1)


def test_what_is_written_is_what_was_read(corpus, tmp_path):
    corpus.write(tmp_path / "all.tsv")
    assert (tmp_path / "all.tsv").read_bytes() == PATH.read_bytes()
    corpus.write(tmp_path / "all.tsv.gz")
    assert gzip.decompress((tmp_path / "all.tsv.gz").read_bytes()) == PATH.read_bytes()
    few = corpus.select([7, 3, 7])
    few.write(tmp_path / "few.tsv")
    text = read_tagged(tmp_path / "few.tsv", columns=COLUMNS, label="chunk")
    assert text.labels() == [corpus.chunks[i] for i in (7, 3, 7)]
    TaggedCorpus([], [], [], []).write(tmp_path / "none.tsv")
    assert (tmp_path / "none.tsv").read_bytes() == b""


def test_each_loading_is_fresh(corpus):
    other = load_corpus()
    other.tokens[0][0] = "changed"
    other.names.clear()
    assert load_corpus().tokens == corpus.tokens
    assert len(corpus.names) == len(corpus)
