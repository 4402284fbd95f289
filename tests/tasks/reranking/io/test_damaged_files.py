"""Files with damaged bytes: they are read, or refused with an error that names the file; nothing else happens."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.tasks.common.files.text import FileError
from maxmargin.tasks.reranking.io.files import read_nbest
from maxmargin.tasks.reranking.io.lattices import read_lattices, write_lattices
from maxmargin.tasks.reranking.io.write import write_nbest
from maxmargin.tasks.reranking.made import made_lattices, made_transcripts

LISTS = made_transcripts(3, size=3)
PIECES = b"= - nan 1e999 x_y= ||| \xe9 ( ) ' , [ ] { } null true \\ud800 \0 0 I=1 J=0 S=9 W= PAR1".split(b" ")
PIECES += [b"", b"\n", b" ", b"\t", b'"', b" x_y= 1 "]
CHANGES = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from([0, 1, 3, 40]), st.sampled_from(PIECES)), min_size=1, max_size=4
)


def damaged(data: bytes, changes) -> bytes:
    """Some bytes replaced by others."""
    for place, length, piece in changes:
        at = int(place * len(data))
        data = data[:at] + piece + data[at + length :]
    return data


def tried(path, read):
    """The result of reading a file, None if it is refused with its name."""
    try:
        return read(path)
    except FileError as error:
        named = str(error).startswith(str(path))
    assert named
    return None


def content(form: str) -> bytes:
    stream = io.BytesIO()
    if form == "plain":
        return b"".join(text.encode() + b"\n" for text in LISTS.texts)
    write_nbest(LISTS, stream, form)
    return stream.getvalue()


LATTICE = made_lattices(1)


def lattice_content(form: str) -> bytes:
    if form == "plf":
        return b"((('the',-0.5,1),('a',-1.2,1),),(('cat',-0.1,1),),)\n" * 3
    if form == "slf":
        nodes = "".join(f"I={at} t=0.1\n" for at in range(4))
        edges = "".join(f"J={at} S={at} E={at + 1} W=w{at} a=-1.5 l=2\n" for at in range(3))
        return f"VERSION=1.0\nN=4 L=3\n{nodes}{edges}".encode()
    stream = io.BytesIO()
    write_lattices(LATTICE, stream)
    return stream.getvalue()


NBEST = {form: content(form) for form in ("moses", "tsv", "jsonl", "plain")}
GRAPHS = {form: lattice_content(form) for form in ("plf", "slf", "json")}


@settings(max_examples=150)
@given(st.sampled_from(sorted(NBEST)), CHANGES, st.booleans(), st.sampled_from(["utf-8", "latin-1"]))
def test_lists(folder, form, changes, known, encoding):
    path = folder / "damaged"
    path.write_bytes(damaged(NBEST[form], changes))
    size, given_form = 3 if form == "plain" else None, form if known else None
    lists = tried(path, lambda path: read_nbest(path, format=given_form, list_size=size, encoding=encoding))
    if lists is not None:
        assert len(lists.texts) == len(lists.values) == lists.offsets[-1]
        assert len(lists.ids) == len(lists)


@settings(max_examples=150)
@given(st.sampled_from(sorted(GRAPHS)), CHANGES, st.booleans())
def test_lattices(folder, form, changes, known):
    path = folder / "damaged"
    path.write_bytes(damaged(GRAPHS[form], changes))
    found = tried(path, lambda path: read_lattices(path, format=form if known else None))
    if found is not None:
        assert all(len(one.edges) == len(one.words) == len(one.features) for one in found.lattices)


@settings(max_examples=60)
@given(CHANGES)
def test_parquet(folder, changes):
    pytest.importorskip("pyarrow")
    path = folder / "damaged.parquet"
    path.write_bytes(damaged(content("parquet"), changes))
    tried(path, read_nbest)


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["hyps", "ref", "id", "lm", "sparse", "total", "segments", "source", "edges", "nodes", "start", "end"]


@settings(max_examples=150)
@given(st.lists(st.dictionaries(st.sampled_from(KEYS), VALUE, max_size=5), min_size=1, max_size=2), st.booleans())
def test_any_json(folder, values, whole):
    path = folder / "any.jsonl"
    first = {"hyps": ["a", "b"], "lm": [1, 2], "edges": [{"from": 0, "to": 1}]}
    path.write_text("\n".join(json.dumps({**first, **value} if whole else value) for value in values))
    tried(path, read_nbest)
    tried(path, read_lattices)
