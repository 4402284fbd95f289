"""The built-in English-French corpus: its file, its links, its parts."""

from __future__ import annotations

import unicodedata
from collections import Counter
from importlib import resources

import numpy as np
import pytest

from maxmargin.tasks.alignment import load_corpus
from maxmargin.tasks.alignment.io.corpus import FILE, parse_corpus

MARKS = {".", ",", ";", ":", "?", "!"}


@pytest.fixture(scope="module")
def lines():
    text = resources.files("maxmargin.tasks.alignment").joinpath("data", FILE).read_text(encoding="utf-8")
    return text.split("\n")


def pairs(corpus):
    return zip(corpus.source, corpus.target, corpus.references, strict=True)


def numbered(links):
    return {(int(i), int(j)) for i, j in links}


def test_it_holds_enough_pairs_of_varied_length(corpus):
    assert len(corpus) == len(corpus.source) == len(corpus.target) == len(corpus.references) >= 160
    lengths = [len(source) for source in corpus.source]
    assert min(lengths) == 1
    assert max(lengths) >= 30
    assert 10 <= np.mean(lengths) <= 15


def test_the_text_is_clean(lines):
    for line in lines:
        assert unicodedata.is_normalized("NFC", line)
        assert all(unicodedata.category(c)[0] != "C" for c in line)
        assert line == line.rstrip()
        assert "  " not in line or line.startswith("#")


def test_the_text_says_what_was_loaded(corpus, lines):
    records = [line for line in lines if line and not line.startswith("#")]
    for record, (source, target, reference) in zip(records, pairs(corpus), strict=True):
        sure = numbered(reference.sure)
        links = " ".join(f"{i}{'-' if (i, j) in sure else 'p'}{j}" for i, j in reference.possible)
        assert record == f"{' '.join(source)} ||| {' '.join(target)} ||| {links}"


def test_no_pair_and_no_sentence_comes_twice(corpus):
    for side in (corpus.source, corpus.target):
        assert [words for words, n in Counter(map(tuple, side)).items() if n > 1] == []


def test_links_stay_inside_their_sentences(corpus):
    for source, target, reference in pairs(corpus):
        for links in (reference.sure, reference.possible):
            assert links.dtype == np.int64
            assert np.all(links >= 0)
            assert np.all(links < [len(source), len(target)])
        assert numbered(reference.sure) <= numbered(reference.possible)


def test_every_pair_has_sure_links_and_few_words_have_none(corpus):
    linked = words = 0
    for source, target, reference in pairs(corpus):
        assert len(reference.sure) > 0
        linked += len(set(reference.possible[:, 0])) + len(set(reference.possible[:, 1]))
        words += len(source) + len(target)
    assert 0.95 < linked / words < 1.0


def test_sure_links_prevail_and_are_mostly_one_to_one(corpus):
    sure = sum(len(reference.sure) for reference in corpus.references)
    assert 0.6 < sure / sum(len(reference.possible) for reference in corpus.references) < 0.9
    single = sum(
        int(np.sum((np.bincount(sure[:, 0])[sure[:, 0]] == 1) & (np.bincount(sure[:, 1])[sure[:, 1]] == 1)))
        for sure in (reference.sure for reference in corpus.references)
    )
    assert 0.85 < single / sure < 1.0


def test_sentences_of_a_pair_end_with_the_same_mark(corpus):
    for source, target, _ in pairs(corpus):
        ends = [words[-1] if words[-1] in MARKS else "" for words in (source, target)]
        assert ends[0] == ends[1], (source, target)


def test_final_marks_are_linked_surely(corpus):
    for source, target, reference in pairs(corpus):
        if source[-1] in MARKS:
            assert (len(source) - 1, len(target) - 1) in numbered(reference.sure), source


def test_sure_punctuation_has_the_same_mark(corpus):
    for source, target, reference in pairs(corpus):
        for i, j in reference.sure:
            if source[i] in MARKS or target[j] in MARKS:
                assert source[i] == target[j], (source, target)


def test_french_contractions_are_undone(corpus):
    for words in corpus.target:
        assert not {"du", "des", "au", "aux"} & {word.lower() for word in words}, words
        assert all("'" not in word or word.lower() == "aujourd'" for word in words), words
        assert all(word == "-" or "-" not in word for word in words), words


def test_both_parts_of_a_negation_are_sure(corpus):
    """Guideline, point 3: where French has ne ... pas, both have the same sure English words, unless idiomatic."""
    checked = 0
    for source, target, reference in pairs(corpus):
        lowered = [word.lower() for word in target]
        if lowered.count("ne") == lowered.count("pas") == 1:
            sure = numbered(reference.sure)
            ne, pas = ({i for i, j in sure if j == lowered.index(word)} for word in ("ne", "pas"))
            assert ne == pas, (source, target)
            checked += bool(ne)
    assert checked >= 20


def test_words_come_back(corpus):
    """Words of more than three letters that are in two or more sentences: co-occurrence can teach something."""
    for side in (corpus.source, corpus.target):
        sentences = Counter(word for words in side for word in {w.lower() for w in words if len(w) > 3})
        assert np.mean([n >= 2 for n in sentences.values()]) > 0.35


def test_names_of_topics_divide_the_file(lines):
    body = lines[lines.index("") :]
    topics = [line for line in body if line.startswith("# ")]
    assert len(topics) >= 12
    assert len(set(topics)) == len(topics)


def test_split_takes_every_fourth_pair_for_testing(corpus):
    train, test = corpus.split()
    assert test.source == corpus.source[3::4]
    assert test.target == corpus.target[3::4]
    assert len(train) + len(test) == len(corpus)
    assert train.source[:4] == [corpus.source[i] for i in (0, 1, 2, 4)]
    for given, words in zip(test.references, corpus.references[3::4], strict=True):
        assert given is words
    halves = corpus.split(every=2)
    assert [len(half) for half in halves] == [(len(corpus) + 1) // 2, len(corpus) // 2]
    with pytest.raises(ValueError, match="every=1 leaves no sentences for training; give 2 or more"):
        corpus.split(every=1)


def test_no_link_is_given_twice():
    text = resources.files("maxmargin.tasks.alignment").joinpath("data", FILE).read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            links = line.split("|||")[2].replace("p", "-").split()
            assert len(set(links)) == len(links), line


def test_iterating_gives_pairs(corpus):
    assert list(corpus) == list(zip(corpus.source, corpus.target, strict=True))


def test_each_loading_is_fresh(corpus):
    other = load_corpus()
    other.source[0][0] = "changed"
    other.references.clear()
    assert load_corpus().source == corpus.source
    assert len(corpus.references) == len(corpus)


def test_comments_empty_lines_and_empty_sides_are_allowed():
    corpus = parse_corpus("# a comment\n\na b ||| c ||| 1p0 0-0\n||| d |||\n")
    assert corpus.source == [["a", "b"], []]
    assert corpus.target == [["c"], ["d"]]
    assert corpus.references[0].sure.tolist() == [[0, 0]]
    assert corpus.references[0].possible.tolist() == [[0, 0], [1, 0]]
    assert corpus.references[1].possible.shape == (0, 2)
    assert len(parse_corpus("")) == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a ||| b", r"mine, line 2: 2 fields; write 'source words \|\|\| target words \|\|\| links'"),
        (
            "a ||| b ||| 0:0",
            "mine, line 2: '0:0' is not a link; write source-target such as 0-0, or 0p0 for a possible",
        ),
        ("a ||| b ||| 0-1", "mine, line 2: link 0-1 lies outside sentence pair 1, which has 1 source and 1 target"),
    ],
)
def test_a_bad_line_is_named(line, message):
    with pytest.raises(ValueError, match=message):
        parse_corpus(f"# first\n{line}\n", "mine")
