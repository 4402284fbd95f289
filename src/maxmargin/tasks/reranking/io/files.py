"""Files of n-best lists: recognize the format, read lists with their features, references and sources.

Every path may be ``-`` for standard input, and every file may be compressed. Errors are
:class:`FileError`: ``FILE, line N: what is wrong; what to do``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from maxmargin._messages import quoted
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.compression import plain_name
from maxmargin.tasks.common.files.text import AnyPath, count_of, name_of, once, paths_of, problem, read_bytes, text_of
from maxmargin.tasks.common.files.text import FileError as FileError
from maxmargin.tasks.reranking.io.features import Columns, read_columns
from maxmargin.tasks.reranking.io.inputs import check_count, read_lines, read_references
from maxmargin.tasks.reranking.io.list_formats import moses, plain, records, tables
from maxmargin.tasks.reranking.io.lists import NBestLists

_PHRASES = re.compile(r"(?:\d+:\d+-\d+:\d+-\d+(?:\s+|$))*")

FORMATS = ("moses", "plain", "tsv", "jsonl", "parquet")


def read_nbest(
    path: AnyPath,
    *,
    format: str | None = None,
    features: Sequence[AnyPath] | Mapping[str, AnyPath] = (),
    references: AnyPath | Sequence[AnyPath] = (),
    sources: AnyPath | None = None,
    segments: AnyPath | None = None,
    list_size: int | None = None,
    usual_size: int | None = None,
    names: Sequence[str] | None = None,
    encoding: str = "utf-8",
) -> NBestLists:
    """Read n-best lists.

    Args:
        path: the file of hypotheses.
        format: one of :data:`FORMATS`; None to recognize it by name and content.
        features: more features, files with a line per hypothesis; a dictionary gives their names, otherwise they are
            those of the files.
        references: files with a line per input; they replace those of the file of hypotheses.
        sources: the inputs, a line for each; they too replace others.
        segments: phrases of the hypotheses, ``number:first-last:first-last`` for each, a line per hypothesis.
        list_size: lines of each list, if neither the file nor the number of references or sources tells them.
        usual_size: the same for files of the plain layout alone, if nothing else tells, as in training.
        names: the dense features to take, in this order; None for all.
        encoding: of texts, references and sources.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    paths = paths_of(references)
    files = list(features.items()) if isinstance(features, Mapping) else [(None, one) for one in features]
    once([path, *paths, *(one for _, one in files), sources, segments])
    golds = read_references(paths, encoding) if paths else None
    inputs = None if sources is None else read_lines(sources, encoding)
    expected = None if golds is None and inputs is None else len(golds or inputs or ())
    lists, kept, n_lines = _lists(path, format, list_size, expected, usual_size, names, encoding)
    if golds is not None:
        check_count(path, lists.ids, len(golds), "reference", name_of(paths[0]))
        lists = replace(lists, references=golds)
    if sources is not None and inputs is not None:
        check_count(path, lists.ids, len(inputs), "source", name_of(sources))
        lists = replace(lists, sources=inputs)
    if segments is not None:
        lists = replace(lists, segments=phrases_of(segments, read_lines(segments), n_lines, kept, name_of(path)))
    lists = with_columns(path, lists, [read_columns(one, name) for name, one in files], n_lines, kept)
    return lists if names is None else _only(path, lists, names)


def with_columns(
    path: AnyPath, lists: NBestLists, columns: Sequence[Columns], n_lines: int, kept: IntArray | None
) -> NBestLists:
    """Return lists of a file of hypotheses with features of others.

    Args:
        path: the file of hypotheses.
        lists: its lists.
        columns: the features.
        n_lines: lines of the file.
        kept: which of them, from 0, are hypotheses; None for all.
    """
    for found in columns:
        for name in found.names:
            if name in lists.names or name in lists.sparse_names:
                message = f"feature {quoted(name)} is in other files too; give the features of this file another name"
                raise problem(found.path, None, message)
        values = np.column_stack([lists.values, found.rows(n_lines, kept, name_of(path))])
        lists = replace(lists, names=(*lists.names, *found.names), values=values)
    return lists


def _lists(
    path: AnyPath,
    format: str | None,
    list_size: int | None,
    expected: int | None,
    usual_size: int | None,
    names: Sequence[str] | None,
    encoding: str,
) -> tuple[NBestLists, IntArray | None, int]:
    """Lists of a file of hypotheses, which of its lines are hypotheses if not all are, and the number of its lines."""
    raw = read_bytes(path)
    if format is None and (raw[:4] == raw[-4:] == b"PAR1" or str(path).lower().endswith((".parquet", ".pq"))):
        format = "parquet"
    kept = None
    if format == "parquet":
        lists = records.parse_parquet(path, raw, names)
    else:
        data = text_of(path, raw, encoding)
        format = format or recognize(path, data)
        if format == "plain":
            return plain.parse(path, data, usual_size if list_size is expected is None else list_size, expected)
        if format == "moses":
            lists = moses.parse(path, data, names)
        elif format == "jsonl":
            lists = records.parse_json(path, data, names)
        else:
            lists = tables.parse(path, data, list_size, expected)
    return lists, kept, lists.n_hypotheses


def recognize(path: AnyPath, data: bytes) -> str:
    """Return the format of a text file of lists by its name and its first line with something on it."""
    name = plain_name(path).lower()
    if name.endswith((".jsonl", ".json")):
        return "jsonl"
    if name.endswith(".tsv"):
        return "tsv"
    begin = len(data) - len(data.lstrip(b" \r\n"))
    end = data.find(b"\n", begin)  # lines may be long
    first = data[begin:] if end < 0 else data[begin:end]
    if not first.strip():
        raise problem(path, None, "no hypotheses; give a file that has some")
    if first[:1] == b"{" and first.lstrip(b"{ \t")[:1] == b'"':
        return "jsonl"
    if len(first.split(b" ||| ")) > 2 or first.split().count(b"|||") > 1:
        return "moses"
    return "tsv" if b"\t" in first else "plain"


def phrases_of(path: AnyPath, lines: list[str], n_lines: int, kept: IntArray | None, where: str) -> list[str]:
    """Return the phrases of hypotheses from the lines of a file, checked; arguments as for :meth:`Columns.rows`."""
    count = n_lines if kept is None else len(kept)
    if len(lines) not in (n_lines, count):
        message = f"{count_of(len(lines), 'line')}, and {where} has {n_lines}; give one line per hypothesis"
        raise problem(path, None, message)
    for number, line in enumerate(lines, start=1):
        if not _PHRASES.fullmatch(line):
            message = f"{quoted(line)} is not a list of phrases; write 1:0-1:0-2 2:2-2:3-3"
            raise problem(path, number, message)
    return lines if kept is None or len(lines) != n_lines else [lines[at] for at in kept.tolist()]


def _only(path: AnyPath, lists: NBestLists, names: Sequence[str]) -> NBestLists:
    place = {name: column for column, name in enumerate(lists.names)}
    for name in names:
        if name not in place:
            there = ", ".join(lists.names) or "none"
            message = f"no feature {quoted(name)}; there are {there:.300}; give the features that the model knows"
            raise problem(path, None, message)
    values = np.ascontiguousarray(lists.values[:, [place[name] for name in names]])
    return replace(lists, names=tuple(names), values=values)
