"""Templates against a slow twin that builds each attribute token by token."""

from __future__ import annotations

import numpy as np
import pytest
from corpora import named_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.tasks.tagging import rows_of_template

from maxmargin.tasks.common.tokens.table import TokenTable
from maxmargin.tasks.tagging.encoder.attributes import AttributeVocabulary
from maxmargin.tasks.tagging.encoder.templates.template import FUNCTIONS, Template

COLUMNS = ("word", "pos")

cells = st.one_of(
    st.sampled_from(["the", "The", "U.S.", "e-mail", "1,234", "a", "ΌΣ", "Straße", "日本", "", "Ǆ", "\0", "²", "x%"]),
    st.text(max_size=6),
)
sentences = st.lists(st.lists(st.tuples(cells, st.sampled_from(["N", "V", "D"])), max_size=6), max_size=4)
functions = st.sampled_from(
    [
        "x",
        "lower",
        "digits",
        "prefix(2)",
        "suffix(3)",
        "shape",
        "short_shape",
        "length",
        "length(3)",
        "is(title)",
        "is(upper)",
        "is(punctuation)",
        "is(first)",
        "is(last)",
        "has(digit)",
        "has(hyphen)",
        "has(upper)",
        "lower.suffix(2)",
        "suffix(2).lower.prefix(1)",
    ]
)
macros = st.builds(
    lambda function, row, column: f"%{function}[{row},{column}]",
    functions,
    st.integers(-3, 3),
    st.sampled_from(["0", "1", "word", "pos"]),
)
lines = st.builds(
    lambda kind, name, parts: kind + name + "/".join(parts),
    st.sampled_from("UB"),
    st.sampled_from(["", "00:", "1:", "100%%:", "é"]),
    st.lists(macros, max_size=3),
)
written = st.builds(
    lambda omit, all_lines: "\n".join([*(["!boundary omit"] if omit else []), "# comment", "", *all_lines]),
    st.booleans(),
    st.lists(lines, min_size=1, max_size=6),
)


def parse(text, columns=COLUMNS):
    return Template.parse(text, columns, "some.template")


@settings(deadline=None, derandomize=True, max_examples=200)
@given(written, sentences, sentences)
def test_attributes_are_those_of_the_twin(text, first, second):
    template = parse(text)
    assert str(template) == text
    learned, seen = (TokenTable.of_lists(data, COLUMNS) for data in (first, second))
    for edges in (False, True):
        apply = template.apply_edges if edges else template.apply
        vocabulary = AttributeVocabulary()
        found = apply(learned, vocabulary, grow=True)
        expected = rows_of_template(template, first, edges=edges)
        assert named_rows(found, vocabulary) == expected
        assert vocabulary.names == list(dict.fromkeys(name for row in expected for name in row))
        assert found.lengths.tolist() == [max(len(sentence) - edges, 0) for sentence in first]
        known, size = set(vocabulary.names), len(vocabulary)
        again = apply(seen, vocabulary)
        assert len(vocabulary) == size
        assert named_rows(again, vocabulary) == [
            {name: value for name, value in row.items() if name in known}
            for row in rows_of_template(template, second, edges=edges)
        ]


def test_many_tokens():
    """Long sentences, enough lines and words that some lines are written out and others remembered."""
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(400)]
    data = [
        [(words[i], "NVDA"[i % 4]) for i in (rng.zipf(1.3, size=size) % 400).tolist()] for size in (1, 0, 1500, 2, 700)
    ]
    template = parse(
        "\n".join(
            [f"U{r + 2}:%x[{r},0]" for r in range(-2, 3)]
            + ["U:%x[-1,0]|%x[0,0]", "U:%x[0,0]|%x[1,0]|%x[2,0]", "U:%x[-1,1]%x[0,1]%x[1,1]", "U:%suffix(2)[0,0]"]
            + ["B:%x[0,0]", "B:%x[-1,1]/%x[0,1]"]
        )
    )
    table = TokenTable.of_lists(data, COLUMNS)
    for edges in (False, True):
        vocabulary = AttributeVocabulary()
        apply = template.apply_edges if edges else template.apply
        found = apply(table, vocabulary, grow=True)
        assert named_rows(found, vocabulary) == rows_of_template(template, data, edges=edges)
        again = apply(table, vocabulary)
        assert np.array_equal(found.columns, again.columns)
        assert np.array_equal(found.starts, again.starts)


def test_as_crfpp_writes_them():
    data = [[("He", "PRP"), ("reckons", "VBZ")]]
    template = parse("# words\nU00:%x[-2,0]\nU01:%x[0,0]/%x[1,1]\n\nU02:%x[1,0]%x[2,0]\nB\n")
    vocabulary = AttributeVocabulary()
    found = template.apply(TokenTable.of_lists(data, COLUMNS), vocabulary, grow=True)
    assert named_rows(found, vocabulary) == [
        {"U00:_B-2": 1, "U01:He/VBZ": 1, "U02:reckons_B+1": 1},
        {"U00:_B-1": 1, "U01:reckons/_B+1": 1, "U02:_B+1_B+2": 1},
    ]
    assert not template.edges


def test_equal_attributes_of_several_lines_are_counted():
    table = TokenTable.of_lists([["a", "a", "b"]])
    template = parse("U:%x[-1,0]\nU:%x[0,0]\nU:%x[0,word]", ("word",))
    vocabulary = AttributeVocabulary()
    found = template.apply(table, vocabulary, grow=True)
    assert named_rows(found, vocabulary) == [{"U:_B-1": 1, "U:a": 2}, {"U:a": 3}, {"U:a": 1, "U:b": 2}]


def test_edges_belong_to_the_later_token():
    table = TokenTable.of_lists([["a", "b", "c"], ["d"], [], ["e", "f"]])
    template = parse("B\nB:%x[0,0]\nB:%x[-1,0]", ("word",))
    vocabulary = AttributeVocabulary()
    found = template.apply_edges(table, vocabulary, grow=True)
    assert template.edges
    assert found.lengths.tolist() == [2, 0, 0, 1]
    assert named_rows(found, vocabulary) == [{"B:b": 1, "B:a": 1}, {"B:c": 1, "B:b": 1}, {"B:f": 1, "B:e": 1}]
    nothing = template.apply(table, vocabulary)
    assert nothing.matrix.shape == (6, 5)
    assert nothing.matrix.nnz == 0


def test_columns_are_found_by_name_in_other_tables():
    template = parse("U:%x[0,1]")
    vocabulary = AttributeVocabulary()
    table = TokenTable.of_lists([[("N", "dog")]], ("pos", "word"))
    template.apply(table, vocabulary, grow=True)
    assert vocabulary.names == ["U:N"]
    with pytest.raises(ValueError, match="no column 'pos', which the template needs; there are word"):
        template.apply(TokenTable.of_lists([["dog"]]), vocabulary)


def test_no_tokens():
    template = parse("U:%x[0,0]%is(first)[0,0]\nU\nB:%shape[0,0]")
    for data in ([], [[]], [[], []]):
        table = TokenTable.of_lists(data, COLUMNS)
        for apply in (template.apply, template.apply_edges):
            found = apply(table, AttributeVocabulary(), grow=True)
            assert found.matrix.shape == (0, 0)
            assert found.lengths.tolist() == [0] * len(data)


def test_every_documented_function_can_be_read():
    arguments = {"(n)": "(2)", "(test)": "(upper)"}
    for name in FUNCTIONS:
        for written_as, argument in arguments.items():
            name = name.replace(written_as, argument)
        parse(f"U:%{name}[0,0]")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("X:%x[0,0]", "must begin with U"),
        (" U:%x[0,0]", "must begin with U"),
        ("!boundary", "unknown setting"),
        ("!order 2", "unknown setting '!order 2'"),
        ("U:%x[0]", r"cannot read '%x\[0\]'"),
        ("U:%x", "cannot read"),
        ("U:100%", "cannot read '%'"),
        ("U:%x[a,0]", "row 'a' is not an integer"),
        ("U:%x[101,0]", "row '101'"),
        ("U:%x[99999999999999,0]", "row '99999999999999'"),
        ("U:%x[,0]", "row ''"),
        ("U:%x[0,2]", "column 2 of 2, counted from 0: word, pos"),
        ("U:%x[0,-1]", "no column '-1'; there are word, pos"),
        ("U:%x[0,99999999999999999999]", "column 99999999999999999999 of"),
        ("U:%x[0,lemma]", "no column 'lemma'"),
        ("U:%upper[0,0]", "unknown function 'upper'"),
        ("U:%x(2)[0,0]", "x takes no argument"),
        ("U:%prefix[0,0]", r"prefix takes a number of characters from 1 to 1000, as prefix\(3\)"),
        ("U:%suffix(0)[0,0]", "suffix takes a number"),
        ("U:%suffix(²)[0,0]", "suffix takes a number"),
        ("U:%length(a)[0,0]", "length takes a number"),
        ("U:%is(odd)[0,0]", "is takes one of .*title.*first"),
        ("U:%is[0,0]", "is takes one of"),
        ("U:%has(title)[0,0]", "has takes one of"),
        ("U:%lower.is(first)[0,0]", "cannot be joined"),
    ],
)
def test_errors_name_the_line(line, message):
    with pytest.raises(ValueError, match=f"some.template, line 3: .*{message}"):
        parse(f"# first\nU:%x[0,0]\n{line}\n")


@pytest.mark.parametrize("text", ["", "# nothing\n", "!boundary omit\n"])
def test_a_template_without_lines_is_refused(text):
    with pytest.raises(ValueError, match=r"some\.template: no line that begins with U or B"):
        parse(text)


def test_lines_may_end_as_on_windows():
    assert parse("U:%x[0,0]\r\nB\r\n").unigrams == parse("U:%x[0,0]\nB\n").unigrams
