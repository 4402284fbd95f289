"""Lists that are written and read again are the same, in every format; what a format cannot hold is refused."""

from __future__ import annotations

import gzip
import io
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from lists import nbest_lists, same_lists

from maxmargin._sparse import sp
from maxmargin.tasks.reranking import NBestLists
from maxmargin.tasks.reranking.io.files import read_nbest
from maxmargin.tasks.reranking.io.lists import ranked
from maxmargin.tasks.reranking.io.write import write_nbest, write_texts
from maxmargin.tasks.reranking.made import made_transcripts


@given(nbest_lists(sparse=True))
def test_moses(folder, lists):
    write_nbest(lists, folder / "lists.moses")
    same_lists(read_nbest(folder / "lists.moses", format="moses", names=lists.names), lists)


@given(nbest_lists(references=True, sparse=True))
def test_json_lines(folder, lists):
    write_nbest(lists, folder / "lists.jsonl.gz", "jsonl")
    same_lists(read_nbest(folder / "lists.jsonl.gz"), lists)


@given(nbest_lists())
def test_table(folder, lists):
    write_nbest(lists, folder / "lists.tsv", "tsv")
    same_lists(read_nbest(folder / "lists.tsv"), lists, "segments")


@given(nbest_lists(references=True))
def test_parquet(folder, lists):
    pytest.importorskip("pyarrow")
    write_nbest(lists, folder / "lists.parquet", "parquet")
    same_lists(read_nbest(folder / "lists.parquet"), lists)


@given(nbest_lists(unnamed=True))
def test_plain(folder, lists):
    """Lists of plain texts, padded with empty lines; empty hypotheses at the end of a list are lost with them."""
    size = int(lists.sizes.max())
    rows = [list(lists.texts[a:b]) for a, b in zip(lists.offsets[:-1], lists.offsets[1:], strict=True)]
    write_texts((text for row in rows for text in [*row, *[""] * (size - len(row))]), folder / "plain")
    for row in rows:
        while len(row) > 1 and not row[-1]:
            row.pop()
    found = read_nbest(folder / "plain", format="plain", list_size=size)
    assert [list(found.texts[a:b]) for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)] == rows
    assert found.ids == [str(at) for at in range(len(lists))]


@pytest.mark.parametrize("form", ["moses", "tsv", "jsonl", "parquet"])
def test_formats_are_recognized_and_exact(form, tmp_path):
    lists = made_transcripts(5, size=4)
    write_nbest(lists, tmp_path / "lists", form)
    without = ("references",) if form in ("moses", "tsv") else ()
    given_form = form if form == "parquet" else None
    same_lists(read_nbest(tmp_path / "lists", format=given_form), lists, *without)


def test_standard_input_and_gzip(monkeypatch, tmp_path):
    lists = made_transcripts(3, size=4)
    stream = io.BytesIO()
    write_nbest(lists, stream)

    class Stream:
        buffer = io.BytesIO(gzip.compress(stream.getvalue(), mtime=0))

    monkeypatch.setattr(sys, "stdin", Stream())
    same_lists(read_nbest("-"), lists, "references")


def test_ranked_lists_have_the_best_first():
    lists = replace(made_transcripts(3, size=5), segments=None)
    scores = np.tile([1.0, 3.0, 2.0, 3.0, 0.0], 3)[: lists.n_hypotheses]
    best = ranked(lists, scores, 3)
    assert best.sizes.tolist() == [3, 3, 3]
    assert best.totals.tolist() == [3.0, 3.0, 2.0] * 3
    assert best.texts[:3] == [lists.texts[at] for at in (1, 3, 2)]
    assert np.array_equal(best.values[:3], lists.values[[1, 3, 2]])
    everything = ranked(lists, scores)
    assert everything.n_hypotheses == lists.n_hypotheses
    with pytest.raises(ValueError, match=r"shape \(15,\), got \(2,\)"):
        ranked(lists, [1.0, 2.0])
    with pytest.raises(ValueError, match="k must be at least 1"):
        ranked(lists, scores, 0)


def one(text="a", name="x", *, identity="0", sparse=None) -> NBestLists:
    rows = None if sparse is None else sp.csr_array(np.ones((1, 1)))
    return NBestLists([text], np.array([0, 1]), (name,), np.ones((1, 1)), [identity], (sparse,) if sparse else (), rows)


@pytest.mark.parametrize(
    ("lists", "form", "message"),
    [
        (one("a\nb"), "moses", "line feed"),
        (one("a ||| b"), "moses", "mark of Moses"),
        (one("a |0-1|"), "moses", "mark of Moses"),
        (one(name="two words"), "moses", "not one word"),
        (one(identity="two words"), "moses", "not one word"),
        (one(sparse="plain"), "moses", "no underscore"),
        (one("a\tb"), "tsv", "a TAB"),
        (one(name="text"), "tsv", "cannot be called 'text'"),
        (one(sparse="w_a"), "tsv", "no place for sparse"),
        (one(name="hyps"), "jsonl", "cannot be called 'hyps'"),
        (one(sparse="w_a"), "parquet", "no place for sparse"),
        (one(), "xml", "format must be one of moses, tsv, jsonl, parquet"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(lists, form, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write_nbest(lists, tmp_path / "out", form)
    assert not (tmp_path / "out").exists()
