"""Other mentions of names: cells by hand, blocks of any size, models from files."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin.tasks.tagging import SequenceTagger, TokenTable
from maxmargin.tasks.tagging.cli.predict import predict_file
from maxmargin.tasks.tagging.encoder.columns.mentions import WINDOW, in_context, with_mentions
from maxmargin.tasks.tagging.encoder.templates.template import Added
from maxmargin.tasks.tagging.reading import ReadOptions

MENTION = Added("mention", "mention", "word")


def cells(sentences):
    """Return the words and the four new cells of the tokens that have any."""
    table = with_mentions(TokenTable.of_lists(sentences, ("word",)), MENTION)
    assert table.columns == ("word", "mention:first", "mention:last", "mention:before", "mention:after")
    words, *found = [table.cells(at) for at in range(5)]
    return [row for row in zip(words, *found, strict=True) if any(row[1:])]


def test_cells_by_hand():
    text = ["the party of Bill Clinton won", "CLINTON said so", "bill was low , Bill Clinton Inc rose"]
    assert cells([line.split() for line in text]) == [
        ("Bill", "Bill", "Inc", ",", "Clinton"),
        ("Clinton", "Bill", "Inc", "Bill", "Inc"),
        ("CLINTON", "Bill", "Inc", "Bill", "Inc"),  # the longest name, not the nearest
        ("Bill", "Bill", "Clinton", "of", "Clinton"),
        ("Clinton", "Bill", "Clinton", "Bill", "won"),
    ]


def test_names_of_one_word_have_neighbors_alone_and_ends_of_sentences_none():
    assert cells([["Oslo", "won"], ["in", "Oslo"]]) == [("Oslo", "", "", "in", ""), ("Oslo", "", "", "", "won")]
    assert cells([["Duran", "Duran"]]) == []  # in the same name
    assert cells([[], ["a"], []]) == []


@pytest.mark.parametrize(("between", "seen"), [(WINDOW - 1, True), (WINDOW, False)])
def test_only_sentences_nearby_count(between, seen):
    text = [["Ada", "Byron"], *[["x"]] * between, ["Byron", "y"]]
    assert bool(cells(text)) is seen


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 7), max_size=8), st.integers(0, 9))
def test_context_of_blocks(sizes, reach):
    whole = [[str(i)] for i in range(sum(sizes))]
    bounds = np.cumsum([0, *sizes]).tolist()
    blocks = [TokenTable.of_lists(whole[a:b], ("word",)) for a, b in itertools.pairwise(bounds)]
    found = list(in_context(blocks, reach))
    assert len(found) == len(sizes)
    for (before, block, after), a, b in zip(found, bounds, bounds[1:], strict=False):
        assert block.by_sentence(0) == whole[a:b]
        assert [one for table in before for one in table.by_sentence(0)] == whole[max(0, a - reach) : a]
        assert [one for table in after for one in table.by_sentence(0)] == whole[b : b + reach]


@pytest.fixture(scope="module")
def text():
    random = np.random.default_rng(0)
    people, firms = [f"P{c}" for c in "abcdefgh"], [f"F{c}" for c in "abcdefgh"]
    sentences, labels = [], []
    for _ in range(150):
        one, firm = random.choice(people), random.choice(firms)
        kind = random.integers(4)
        sentences.append([["Mr", one, "left"], [firm, "Inc", "rose"], [one, "fell"], [firm, "fell"]][kind])
        labels.append([["O", "B-PER", "O"], ["B-ORG", "I-ORG", "O"], ["B-PER", "O"], ["B-ORG", "O"]][kind])
    return sentences, labels


@pytest.fixture(scope="module")
def tagger(text):
    return SequenceTagger(preset="ner").fit(text[0], text[1])


NEW = [["Mr", "Zork", "left"], ["Zork", "fell"], ["Quux", "fell"], ["Quux", "Inc", "rose"]]


def test_sentences_around_tell_what_a_name_is(tagger):
    found = tagger.predict(NEW)
    assert (found[1], found[2]) == (["B-PER", "O"], ["B-ORG", "O"])
    # Alone they look the same.
    assert tagger.predict_single(NEW[1]) == tagger.predict_single(NEW[2])


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_any_size_of_blocks_gives_the_same_labels(tagger, text, size):
    sentences = [*NEW, *text[0][:60], *NEW]
    assert list(tagger.predict_iter(iter(sentences), size=size)) == tagger.predict(sentences)


def test_blocks_may_have_tokens_of_other_kinds(tagger):
    mixed = [NEW[0], NEW[1], *[[(word, "x") for word in sentence] for sentence in NEW[2:]]]
    template_columns = tagger.model_.extractor.template.columns
    assert template_columns == ("word",)
    assert list(tagger.predict_iter(mixed, size=2)) == tagger.predict(NEW)


def test_files_in_blocks_and_models_from_files(tagger, text, tmp_path):
    sentences = [*NEW, *text[0], *NEW]
    path = tmp_path / "new.txt"
    path.write_text("".join("".join(f"{word}\n" for word in sentence) + "\n" for sentence in sentences))
    tagger.save(tmp_path / "model.mm")
    model = mm.load(tmp_path / "model.mm")
    found = []
    for size in (None, 1, 300):
        out = io.BytesIO()
        predict_file(model, ReadOptions().blocks_for(str(path), model, labeled=None, size=size), out)
        found.append(out.getvalue())
    assert found[0] == found[1] == found[2]
    labels = [line.split()[-1] for line in found[0].decode().splitlines() if line]
    assert labels == [label for one in tagger.predict(sentences) for label in one]
