"""Writers of n-best lists and of texts. What a format cannot express is refused; numbers are written exactly."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from maxmargin._messages import quoted
from maxmargin._sparse import sp
from maxmargin.tasks.common.files.text import AnyPath, open_output
from maxmargin.tasks.common.packages import optional
from maxmargin.tasks.reranking.io.list_formats import moses, records, tables
from maxmargin.tasks.reranking.io.lists import NBestLists

FORMATS = ("moses", "tsv", "jsonl", "parquet")

_COLUMN = re.compile(r"(.+),([1-9][0-9]*)", re.DOTALL)
_PHRASE = re.compile(r"[0-9]+:([0-9]+-[0-9]+):([0-9]+-[0-9]+)")


def write_nbest(lists: NBestLists, out: AnyPath | BinaryIO, format: str = "moses") -> None:
    """Write lists to a file, compressed if its name ends in ``.gz``; ``-`` is standard output.

    Moses and tables have no place for references and sources, tables none for sparse features and segments.
    """
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    if format == "parquet":
        content = _parquet(lists)
        with open_output(out) as stream:
            stream.write(content)
        return
    _write({"moses": _moses, "tsv": _table, "jsonl": _json}[format](lists), out)


def write_texts(texts: Iterable[str], out: AnyPath | BinaryIO) -> None:
    """Write a text per line."""
    _write((_plain(text, "\n") for text in texts), out)


def _write(lines: Iterable[str], out: AnyPath | BinaryIO) -> None:
    # All is made before the file is opened, so that what cannot be written leaves no half of it.
    content = "".join(f"{line}\n" for line in lines).encode()
    with open_output(out) as stream:
        stream.write(content)


def _plain(text: str, forbidden: str) -> str:
    for character in forbidden:
        if character in text:
            name = {"\n": "a line feed", "\t": "a TAB"}[character]
            raise ValueError(f"{quoted(text)} has {name}, which this format cannot hold; write jsonl")
    return text


def _word(text: str, what: str) -> str:
    """A text that is one word of a Moses file."""
    if len(text.split()) != 1 or text != text.strip() or text == "|||":
        raise ValueError(
            f"the {what} {quoted(text)} is not one word, as Moses files need it; rename it, or write jsonl"
        )
    return text


def _moses(lists: NBestLists) -> Iterator[str]:
    for name in lists.sparse_names:
        if "_" not in name:
            message = f"the sparse feature {quoted(name)} has no underscore, as Moses files need it; write jsonl"
            raise ValueError(message)
        _word(f"{name}=", "feature")
    groups = _groups(lists.names)
    form = " ".join(f"{_word(f'{name}=', 'feature')}" + " {!r}" * width for name, width in groups)
    sparse = None if lists.sparse is None else sp.csr_array(lists.sparse)
    names = [_word(name, "id") for name in lists.ids]
    totals = None if lists.totals is None else lists.totals.tolist()
    for at, (owner, row) in enumerate(zip(lists.owner.tolist(), lists.values.tolist(), strict=True)):
        text = _plain(lists.texts[at], "\n")
        if "|" in text and any(word == "|||" or moses.MARK.fullmatch(word) for word in text.split()):
            raise ValueError(f"the text {quoted(text)} has a mark of Moses files as a word; write jsonl")
        features = form.format(*row)
        if sparse is not None:
            here = slice(int(sparse.indptr[at]), int(sparse.indptr[at + 1]))
            pairs = zip(sparse.indices[here].tolist(), sparse.data[here].tolist(), strict=True)
            features = " ".join([features, *(f"{lists.sparse_names[column]}= {value!r}" for column, value in pairs)])
        fields = [names[owner], text, features.strip()]
        if totals is not None:
            fields.append(repr(totals[at]))
        if lists.segments is not None:
            fields += [""] * (totals is None)
            fields.append(" ".join(f"{a}={b}" for a, b in _PHRASE.findall(lists.segments[at])))
        yield " ||| ".join(fields)


def _groups(names: Sequence[str]) -> list[tuple[str, int]]:
    """Names of Moses files with their numbers of values: ``TM0,1``, ``TM0,2`` are two values of ``TM0``."""
    groups: list[tuple[str, int]] = []
    at = 0
    while at < len(names):
        match = _COLUMN.fullmatch(names[at])
        width = 1
        if match is not None and match[2] == "1":
            while at + width < len(names) and names[at + width] == f"{match[1]},{width + 1}":
                width += 1
        groups.append((names[at] if match is None or width == 1 else match[1], width))
        at += width
    seen = [name for name, _ in groups]
    if len(set(seen)) < len(seen):
        name = next(name for place, name in enumerate(seen) if name in seen[:place])
        raise ValueError(f"feature {quoted(name)} would come twice in a Moses file; rename it, or write jsonl")
    return groups


def _table(lists: NBestLists) -> Iterator[str]:
    if lists.sparse is not None:
        raise ValueError("tables have no place for sparse features; write moses or jsonl")
    names = [_plain(name, "\t\n") for name in lists.names]
    for name in names:
        if name in (tables.ID, tables.TEXT, tables.TOTAL) or name != name.strip() or not name or "\r" in name:
            raise ValueError(f"a feature of a table cannot be called {quoted(name)}; rename it, or write jsonl")
    totals = [] if lists.totals is None else [tables.TOTAL]
    yield "\t".join([tables.ID, tables.TEXT, *names, *totals])
    values = lists.values if lists.totals is None else np.column_stack([lists.values, lists.totals])
    ids = [_plain(one, "\t\n") for one in lists.ids]
    for owner, text, row in zip(lists.owner.tolist(), lists.texts, values.tolist(), strict=True):
        yield "\t".join([ids[owner], _plain(text, "\t\n"), *map(repr, row)])


def _json(lists: NBestLists) -> Iterator[str]:
    for record in _records(lists):
        yield json.dumps(record, ensure_ascii=False)


def _records(lists: NBestLists) -> Iterator[dict[str, Any]]:
    """The objects that :mod:`~maxmargin.tasks.reranking.io.list_formats.records` reads."""
    for name in lists.names:
        if name in records.RESERVED:
            raise ValueError(f"a feature cannot be called {name!r}, which is a key of records; rename it")
    sparse = None if lists.sparse is None else sp.csr_array(lists.sparse)
    for at, (begin, end) in enumerate(pairwise(lists.offsets.tolist())):
        record: dict[str, Any] = {"id": lists.ids[at]}
        if lists.sources is not None:
            record["source"] = lists.sources[at]
        if lists.references is not None:
            given = lists.references[at]
            record["ref"] = given[0] if len(given) == 1 else list(given)
        record[records.HYPS] = list(lists.texts[begin:end])
        for column, name in enumerate(lists.names):
            record[name] = lists.values[begin:end, column].tolist()
        if sparse is not None:
            record[records.SPARSE] = [
                {
                    lists.sparse_names[column]: value
                    for column, value in zip(sparse.indices[a:b].tolist(), sparse.data[a:b].tolist(), strict=True)
                }
                for a, b in pairwise(sparse.indptr[begin : end + 1].tolist())
            ]
        if lists.totals is not None:
            record[records.TOTAL] = lists.totals[begin:end].tolist()
        if lists.segments is not None:
            record[records.SEGMENTS] = list(lists.segments[begin:end])
        yield record


def _parquet(lists: NBestLists) -> bytes:
    if lists.sparse is not None:
        raise ValueError("Parquet files have a column per feature and no place for sparse ones; write moses or jsonl")
    pyarrow, parquet = optional("pyarrow", "parquet"), optional("pyarrow.parquet", "parquet")
    rows = list(_records(lists))
    if lists.references is not None:
        for row, given in zip(rows, lists.references, strict=True):
            row["ref"] = list(given)
    stream = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), stream)
    return stream.getvalue()
