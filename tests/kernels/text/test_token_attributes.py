"""Attributes from templates and dictionaries: the kernels' own checks, and runs over memory of all kinds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from oracles.tasks.tagging import rows_of_items, rows_of_template

from maxmargin import _threads
from maxmargin.tasks import _kernels
from maxmargin.tasks.common.tokens.table import TokenTable
from maxmargin.tasks.tagging.encoder.attributes import AttributeVocabulary
from maxmargin.tasks.tagging.encoder.templates.template import Template


def arguments():
    """Two sentences of one column with two different cells, `a` and `b`; one line, `U` + the cell before the token."""

    def ints(*values, dtype=np.int64):
        return np.array(values, dtype=dtype)

    return {
        "sentences": ints(0, 2, 3),
        "cells": np.array([[0, 1, 0]], dtype=np.int32),
        "column_size": ints(2),
        "reach": 1,
        "source_column": ints(0, dtype=np.int32),
        "source_first": ints(1),
        "text": np.frombuffer(b"Uab<>", dtype=np.uint8),
        "piece_begin": ints(0, 1, 2, 3, 4),
        "piece_end": ints(1, 2, 3, 4, 5),
        "view_source": ints(0, dtype=np.int32),
        "view_row": ints(-1, dtype=np.int32),
        "line_start": ints(0, 2),
        "items": ints(-1, 0),
        "edges": False,
        "grow": True,
        "least": 1,
        "known": 0,
        "threads": 1,
    }


def test_small():
    table = _kernels.StringTable()
    starts, columns, values, kept = _kernels.attributes_of_tokens(table, **arguments())
    assert starts.tolist() == [0, 1, 2, 3]
    assert [table.text(column) for column in columns.tolist()] == [b"U<", b"Ua", b"U<"]
    assert values is None
    assert kept is None


def test_rare_attributes_are_dropped():
    for known, expected in ((0, [True, False]), (2, None)):
        given = {**arguments(), "least": 2, "known": known}
        starts, columns, _, kept = _kernels.attributes_of_tokens(_kernels.StringTable(), **given)
        assert (None if kept is None else kept.view(bool).tolist()) == expected
        assert starts.tolist() == ([0, 1, 1, 2] if kept is not None else [0, 1, 2, 3])
        assert columns.tolist() == ([0, 0] if kept is not None else [0, 1, 0])


def test_any_number_of_threads_gives_the_same_rows():
    """Chunks of 4096 tokens, in rounds: new attributes in each, repeated ones, and values other than 1."""
    rng = np.random.default_rng(1)
    words = [f"w{i}" for i in rng.zipf(1.3, size=60_000) % 30_000]
    ends = np.cumsum(rng.integers(0, 60, size=1500)).tolist()  # about 44,000
    data = [words[first:last] for first, last in itertools.pairwise([0, *ends])]
    template = Template.parse("U:%x[0,0]\nU:%x[-1,0]\nU2:%x[0,0]/%x[1,0]\nU3:%prefix(2)[0,0]\nB:%x[0,0]", ("word",))
    table = TokenTable.of_lists(data, template.columns)
    for edges in (False, True):
        for least in (1, 2):
            found = []
            for threads in (1, 2, 5):
                with _threads.threads(threads):
                    grown, rows = template.learn(table, AttributeVocabulary(), edges=edges, min_count=least)
                    again = (template.apply_edges if edges else template.apply)(table, grown)
                assert np.array_equal(again.columns, rows.columns)
                assert np.array_equal(again.starts, rows.starts)
                found.append((grown.names, rows))
            for names, rows in found[1:]:
                assert names == found[0][0]
                for one in ("starts", "columns", "values"):
                    assert np.array_equal(getattr(rows, one), getattr(found[0][1], one))
            assert found[0][1].values is not None or edges


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("sentences", [], "rise from 0"),
        ("sentences", [1, 3], "rise from 0"),
        ("sentences", [0, 3, 2, 3], "rise from 0"),
        ("sentences", [0, 4], "one entry per token"),
        ("cells", [[0, 2, 0]], "outside of its column"),
        ("cells", [[0, -1, 0]], "outside of its column"),
        ("column_size", [2, 2], "one row per column"),
        ("column_size", [-1], "impossible size"),
        ("reach", -1, "reach"),
        ("reach", 2, "too few pieces"),
        ("reach", 0, "out of reach"),
        ("source_column", [1], "no column"),
        ("source_first", [2], "too few pieces"),
        ("source_first", [-1], "too few pieces"),
        ("source_first", [1, 1], "a column and a first piece"),
        ("piece_begin", [0, 1], "as many ends"),
        ("piece_begin", [0, 1, 2, 3, -2], "outside of the text"),
        ("piece_end", [1, 2, 3, 4, 6], "outside of the text"),
        ("piece_end", [1, 0, 3, 4, 5], "outside of the text"),
        ("view_source", [1], "no source"),
        ("view_row", [2], "out of reach"),
        ("view_row", [0, 0], "a source and a row"),
        ("line_start", [0, 1], "to the number of items"),
        ("line_start", [0, 3, 2], "rise from 0"),
        ("items", [-1, 1], "neither a view nor a piece"),
        ("items", [-6, 0], "neither a view nor a piece"),
    ],
)
def test_refused_arrays(name, value, message):
    given = arguments()
    given[name] = np.array(value, dtype=given[name].dtype) if isinstance(value, list) else value
    with pytest.raises(ValueError, match=message):
        _kernels.attributes_of_tokens(_kernels.StringTable(), **given)


@pytest.mark.parametrize("columns", [0, 1, 4])
def test_more_tokens_than_cells(columns):
    """4 columns of 2**62 tokens: their product, modulo 2**64, is the number of cells, 0."""
    given = arguments()
    given["sentences"] = np.array([0, 2**62])
    given["cells"] = np.zeros((columns, 0), dtype=given["cells"].dtype)
    given["column_size"] = np.full(columns, 2)
    with pytest.raises(ValueError, match="one entry per token"):
        _kernels.attributes_of_tokens(_kernels.StringTable(), **given)


def test_random_text():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abAB1-é日"), size=size)) for size in rng.integers(0, 9, size=60)]
    data = [[(words[i], words[i % 3]) for i in rng.integers(0, 60, size=size)] for size in (0, 1, 5, 90, 2)]
    template = Template.parse(
        "U:%x[0,0]\nU:%lower[-2,0]/%suffix(2)[1,0]\nU:%x[-1,1]%x[0,1]%x[1,1]\nU:%is(last)[3,0]\nU1\nB:%shape[0,0]",
        ("word", "pos"),
    )
    table = TokenTable.of_lists(data, template.columns)
    for edges in (False, True):
        vocabulary = AttributeVocabulary()
        found = (template.apply_edges if edges else template.apply)(table, vocabulary, grow=True)
        names, matrix = vocabulary.names, found.matrix.toarray()
        twin = rows_of_template(template, data, edges=edges)
        assert [{names[j]: row[j] for j in np.flatnonzero(row)} for row in matrix] == twin


def test_random_dictionaries():
    rng = np.random.default_rng(1)
    names = ["a", "word", "é", "日本", "n" * 300, ""]

    def value(depth):
        kind = rng.integers(0, 6 if depth else 4)
        one = names[rng.integers(len(names))]
        if kind == 4:
            return {name: value(depth - 1) for name in names[: rng.integers(0, 4)]}
        if kind == 5:
            return set(names[: rng.integers(0, 6)])
        return [one, float(rng.integers(-1, 3)), bool(rng.integers(2)), [one, one]][kind]

    data = [[{name: value(3) for name in names} for _ in range(size)] for size in (0, 1, 300, 5)]
    vocabulary = AttributeVocabulary()
    found = vocabulary.of_items(data, grow=True)
    known, matrix = vocabulary.names, found.matrix
    pairs = [
        {known[j]: v for j, v in zip(row.indices, row.data, strict=True)}
        for row in (matrix[[i]] for i in range(found.n_rows))
    ]
    assert pairs == rows_of_items(data)
    with pytest.raises(ValueError, match="sentence 4, token 0"):
        vocabulary.of_items([*data, [{"a": None}]], grow=True)
    assert vocabulary.names == known
