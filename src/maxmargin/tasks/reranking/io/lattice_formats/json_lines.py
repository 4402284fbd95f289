"""Lattices as JSON lines, one object a lattice.

``{"id": "u1", "nodes": 3, "start": 0, "end": 2, "edges": [{"from": 0, "to": 1, "word": "a", "features": {"lm": -1}}]}``
or, shorter, with a list per column: ``"edges": {"from": [0], "to": [1], "word": ["a"], "features": {"lm": [-1]}}``.
Without ``nodes``, ``start`` and ``end`` there are as many nodes as edges name, and paths go from node 0 to the last. An
edge without a word has null or nothing there. ``ref`` may give references.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from maxmargin._messages import quoted
from maxmargin.tasks.common.files.text import AnyPath, FileError, count_of, lines_of, problem
from maxmargin.tasks.reranking.io.lattice_formats.arcs import Arcs, feature_table, word_of
from maxmargin.tasks.reranking.io.list_formats.records import FEATURES, is_number, load_object, references_of, shown

_KEYS = frozenset(("from", "to", "word", FEATURES))


def parse(path: AnyPath, data: bytes) -> Iterator[Arcs]:
    """Yield the lattices of a file; FileError names the line of an error."""
    for number, line in enumerate(lines_of(data), start=1):
        if line.strip():
            yield _Record(path, number, load_object(path, number, line)).arcs()


class _Record:
    """One object of the file."""

    def __init__(self, path: AnyPath, line: int, record: dict[str, Any]) -> None:
        self.path, self.line, self.record = path, line, record

    def wrong(self, message: str) -> FileError:
        return problem(self.path, self.line, message)

    def arcs(self) -> Arcs:
        edges = self.record.get("edges")
        columns = self.columns(edges) if isinstance(edges, dict) else self.rows(edges)
        tails, heads = self.nodes(columns["from"]), self.nodes(columns["to"])
        words = []
        for word in columns["word"]:
            if word is not None and not isinstance(word, str):
                raise self.wrong(f"a word is {shown(word)}; give a string, or null for none")
            words.append(None if word is None else word_of(word))
        features = columns[FEATURES]
        for name, values in features.items():
            for value in values:
                if not is_number(value):
                    raise self.wrong(f"feature {quoted(name)} is {shown(value)}; give a finite number")
        lines = np.full(len(tails), self.line)
        n_nodes = self.integer("nodes", max((*tails, *heads), default=-1) + 1)
        identity = self.record.get("id")
        if identity is not None and (not isinstance(identity, (str, int)) or isinstance(identity, bool)):
            raise self.wrong(f"the id is {shown(identity)}; give a string or an integer")
        return Arcs(
            line=self.line,
            id=None if identity is None else str(identity),
            edges=np.array([tails, heads], dtype=np.int64).T.reshape(-1, 2),
            lines=lines,
            words=words,
            names=tuple(features),
            values=feature_table(self.path, list(features), list(features.values()), lines),
            n_nodes=n_nodes,
            start=self.integer("start", 0),
            end=self.integer("end", n_nodes - 1),
            references=references_of(self.record, self.wrong),
        )

    def integer(self, key: str, default: int) -> int:
        value = self.record.get(key)
        if value is None:
            return default
        if not _is_node(value):
            raise self.wrong(f"'{key}' is {shown(value)}; give an integer, 0 or more")
        return int(value)

    def nodes(self, values: list[Any]) -> list[int]:
        for value in values:
            if not _is_node(value):
                raise self.wrong(f"an edge of node {shown(value)}; give the numbers of nodes, from 0")
        return values

    def rows(self, edges: Any) -> dict[str, Any]:
        """Columns of a list of edges."""
        if not isinstance(edges, list):
            raise self.wrong(f"'edges' is {shown(edges)}; give a list of edges, or an object with a list per column")
        found: dict[str, Any] = {"from": [], "to": [], "word": [], FEATURES: {}}
        for at, edge in enumerate(edges):
            if not isinstance(edge, dict) or not {"from", "to"} <= edge.keys() <= _KEYS:
                message = f'edge {at} is {shown(edge)}; give {{"from": 0, "to": 1, "word": ..., "{FEATURES}": {{...}}}}'
                raise self.wrong(message)
            features = edge.get(FEATURES) or {}
            if not isinstance(features, dict):
                raise self.wrong(f"'{FEATURES}' of edge {at} is {shown(features)}; give an object of numbers")
            if at == 0:
                found[FEATURES] = {name: [] for name in features}
            if odd := features.keys() ^ found[FEATURES].keys():
                name = min(odd)
                what = f"lacks feature {quoted(name)}" if name not in features else f"has feature {quoted(name)}"
                raise self.wrong(f"edge {at} {what}, unlike edge 0; give all edges the same features")
            for name, value in features.items():
                found[FEATURES][name].append(value)
            for key in ("from", "to", "word"):
                found[key].append(edge.get(key))
        return found

    def columns(self, edges: dict[str, Any]) -> dict[str, Any]:
        """The columns of edges, all equally long."""
        if not {"from", "to"} <= edges.keys() <= _KEYS:
            message = (
                f"the columns of edges are {', '.join(map(quoted, edges)):.200}; give from, to, word and {FEATURES}"
            )
            raise self.wrong(message)
        features = edges.get(FEATURES) or {}
        if not isinstance(features, dict):
            raise self.wrong(f"'{FEATURES}' is {shown(features)}; give an object with a list of numbers per feature")
        first = edges["from"]
        count = len(first) if isinstance(first, list) else -1
        found = {"from": first, "to": edges["to"], "word": edges.get("word")}
        if found["word"] is None:
            found["word"] = [None] * max(count, 0)
        for key, column in (*found.items(), *features.items()):
            if not isinstance(column, list):
                raise self.wrong(f"{quoted(key)} is {shown(column)}; give a list with an entry per edge")
            if len(column) != count:
                message = f"{quoted(key)} has {count_of(len(column), 'value')} for {count_of(count, 'edge')}"
                raise self.wrong(f"{message}; give one per edge")
        return {**found, FEATURES: features}


def _is_node(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
