"""SLF, the standard lattice format of HTK: a header, lines ``I=`` of nodes and ``J=`` of edges, one lattice a file.

Words stand on edges, or on the node where an edge ends. Every number of an edge besides its nodes is a feature under
its short name, ``a`` (acoustic), ``l`` (language), ``n``, ``r``, ``p``, ``x1``, ...; the scales of the header are not
applied, as weights take their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from maxmargin._messages import quoted
from maxmargin.tasks.common.files.text import AnyPath, count_of, lines_of, problem
from maxmargin.tasks.reranking.io.lattice_formats.arcs import Arcs, feature_table, refuse_cycles, word_of

_FIELD = re.compile(r"""([A-Za-z][A-Za-z0-9_.]*)=("(?:[^"\\]|\\.)*"(?=\s|$)|'(?:[^'\\]|\\.)*'(?=\s|$)|\S*)(?:\s+|$)""")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_INTEGER = re.compile(r"[0-9]{1,9}")
_SHORT = {
    "NODES": "N", "LINKS": "L", "WORD": "W", "START": "S", "END": "E", "var": "v", "div": "d", "acoustic": "a",
    "ngram": "n", "language": "l", "posterior": "p", "time": "t", "SUBLAT": "L", "UTTERANCE": "U",
}  # fmt: skip
_NOT_FEATURES = frozenset("JSEWvds")
"""Fields of edges that are not scores: number, nodes, word, pronunciation variant, alignments."""

_WORD = "write NAME=value, separated by blanks"


def parse(path: AnyPath, data: bytes) -> Iterator[Arcs]:
    """Yield the lattice of a file; FileError names the line of an error."""
    header: dict[str, tuple[str, int]] = {}
    nodes: dict[int, str | None] = {}
    edges: list[tuple[int, dict[str, str]]] = []
    begun = 0
    for number, line in enumerate(lines_of(data), start=1):
        text = line.decode("utf-8").strip()
        if not text or text.startswith("#"):
            continue
        begun = begun or number
        fields = _fields(path, number, text)
        first = next(iter(fields))
        if first == "I":
            node = _integer(path, number, "I", fields)
            if node in nodes:
                raise problem(path, number, f"node {node} comes twice; give each node one line")
            nodes[node] = fields.get("W")
        elif first == "J":
            edges.append((number, fields))
        elif nodes or edges:
            raise problem(
                path, number, f"{quoted(text)} is neither a node (I=) nor an edge (J=); put it into the header"
            )
        else:
            header.update({name: (value, number) for name, value in fields.items()})
    if not begun:
        raise problem(path, None, "no lattice; give a file in the standard lattice format of HTK")
    yield _arcs(path, begun, header, nodes, edges)


def _fields(path: AnyPath, number: int, text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _FIELD.match(text, at)
        if match is None:
            raise problem(path, number, f"{quoted(text[at:])} is not a field; {_WORD}")
        name, value = _SHORT.get(match[1], match[1]), match[2]
        if name in fields:
            raise problem(path, number, f"the field {quoted(name)} comes twice; give it once")
        if value[:1] in ("'", '"') and len(value) > 1 and value[-1] == value[0]:
            value = value[1:-1]
        fields[name] = _plain(value) if "\\" in value else value
        at = match.end()
    return fields


def _plain(value: str) -> str:
    """The text without escapes, which are a backslash before a character or an octal number."""

    def byte(match: re.Match[bytes]) -> bytes:
        return bytes([int(match[1], 8) & 255]) if len(match[1]) == 3 else match[1]

    return _ESCAPE.sub(byte, value.encode()).decode("utf-8", "replace")


def _integer(path: AnyPath, number: int, name: str, fields: dict[str, str]) -> int:
    value = fields.get(name)
    if value is None or not _INTEGER.fullmatch(value):
        what = f"no {name}=" if value is None else f"{name}={value:.40} is not a number"
        raise problem(path, number, f"{what}; give the number of a node, from 0")
    return int(value)


def _arcs(
    path: AnyPath,
    line: int,
    header: dict[str, tuple[str, int]],
    nodes: dict[int, str | None],
    edges: list[tuple[int, dict[str, str]]],
) -> Arcs:
    for name, found, what in (("N", len(nodes), "node"), ("L", len(edges), "edge")):
        if name in header:
            value, number = header[name]
            if not _INTEGER.fullmatch(value) or int(value) != found:
                message = (
                    f"{name}={value:.40}, and there are {count_of(found, what)}; correct it, if no line is missing"
                )
                raise problem(path, number, message)
    lines = np.array([number for number, _ in edges], dtype=np.int64)
    ends = []
    for number, fields in edges:
        pair = _integer(path, number, "S", fields), _integer(path, number, "E", fields)
        for node in pair:
            if node not in nodes:
                raise problem(path, number, f"an edge of node {node}, which has no line I={node}; add it")
        ends.append(pair)
    # Nodes are numbered as they come; errors that follow name them by their place.
    place = {node: at for at, node in enumerate(sorted(nodes))}
    pairs = np.array([(place[a], place[b]) for a, b in ends], dtype=np.int64).reshape(-1, 2)
    refuse_cycles(path, pairs, lines, len(nodes))
    labels = [fields.get("W", nodes[head]) for (_, fields), (_, head) in zip(edges, ends, strict=True)]
    words = [None if label is None else word_of(label) for label in labels]
    names = list(dict.fromkeys(name for _, fields in edges for name in fields if name not in _NOT_FEATURES))
    columns = [_column(path, name, edges, words) for name in names]
    inside, outside = set(pairs[:, 1].tolist()), set(pairs[:, 0].tolist())
    return Arcs(
        line=line,
        id=header["U"][0] if "U" in header else None,
        edges=pairs,
        lines=lines,
        words=words,
        names=tuple(names),
        values=feature_table(path, names, columns, lines),
        n_nodes=len(nodes),
        start=_terminal(path, line, "start", header, place, [at for at in place.values() if at not in inside]),
        end=_terminal(path, line, "end", header, place, [at for at in place.values() if at not in outside]),
    )


def _column(path: AnyPath, name: str, edges: list[tuple[int, dict[str, str]]], words: list[str | None]) -> list[float]:
    """A feature of all edges; edges without a word may lack it and then count 0."""
    found = []
    for (number, fields), word in zip(edges, words, strict=True):
        value = fields.get(name)
        if value is None:
            if word is not None:
                message = f"an edge without {name}=, which others have; give all edges with words the same scores"
                raise problem(path, number, message)
            value = "0"
        try:
            found.append(float(value))
        except ValueError:
            raise problem(path, number, f"{name}={value:.40} is not a number; give one such as -1.25") from None
    return found


def _terminal(
    path: AnyPath,
    line: int,
    what: str,
    header: dict[str, tuple[str, int]],
    place: dict[int, int],
    candidates: list[int],
) -> int:
    """The node that the header names, otherwise the only one that no edge enters or leaves."""
    if what in header:
        value, number = header[what]
        if not _INTEGER.fullmatch(value) or int(value) not in place:
            raise problem(path, number, f"{what}={value:.40} is not the number of a node; correct it")
        return place[int(value)]
    if len(candidates) == 1:
        return candidates[0]
    verb = "enters" if what == "start" else "leaves"
    message = f"{len(candidates) or 'no'} nodes that no edge {verb}; give one, or {what}=NODE in the header"
    raise problem(path, line, message)
