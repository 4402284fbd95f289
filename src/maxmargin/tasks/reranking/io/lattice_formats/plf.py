"""PLF, the Python lattice format, one lattice a line: for each node but the last, the edges that leave it.

``((('the',-0.5,1),('a',-1.2,1),),(('cat',-0.1,1),),)``: each edge has a word, scores, and the number of
nodes that it goes forward. The text is taken apart by a parser that knows nothing else; it is never evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from maxmargin._messages import quoted
from maxmargin.tasks.common.files.text import AnyPath, FileError, count_of, lines_of, problem
from maxmargin.tasks.reranking.io.features import column_names
from maxmargin.tasks.reranking.io.lattice_formats.arcs import Arcs, feature_table, word_of

SCORE = "score"
_TOKEN = re.compile(r"""\s*(?:([(),])|('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|([^\s(),'"]+))""")
_ESCAPE = re.compile(r"""\\([\\'"])""")
_INTEGER = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_LAYOUT = "write ((('word', score, distance), ...), ...) on one line"


def parse(path: AnyPath, data: bytes) -> Iterator[Arcs]:
    """Yield the lattices of a file; FileError names the line of an error."""
    for number, line in enumerate(lines_of(data), start=1):
        yield _Parser(path, number, line.decode("utf-8")).lattice()


class _Parser:
    """A line taken apart from left to right."""

    def __init__(self, path: AnyPath, line: int, text: str) -> None:
        self.path, self.line, self.text = path, line, text.rstrip()
        self.at = 0
        self.kind, self.token = 0, ""  # the next token: 1 for ( ) and comma, 2 for a string, 3 for a number
        self.advance()

    def wrong(self, message: str) -> FileError:
        return problem(self.path, self.line, message)

    def advance(self) -> None:
        if self.at == len(self.text):
            self.kind, self.token = 0, ""
            return
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            raise self.wrong(f"a string without its end: {quoted(self.text[self.at :])}; {_LAYOUT}")
        self.kind, self.token, self.at = match.lastindex or 0, match[match.lastindex or 0], match.end()

    def take(self, token: str) -> None:
        if self.kind != 1 or self.token != token:
            found = quoted(self.token) if self.kind else "the line ends"
            raise self.wrong(f"{found} at column {self.at} where {token!r} belongs; {_LAYOUT}")
        self.advance()

    def items(self) -> Iterator[None]:
        """Between parentheses, yields where each item begins; a comma may follow the last."""
        self.take("(")
        while not (self.kind == 1 and self.token == ")"):
            yield
            if not (self.kind == 1 and self.token == ")"):
                self.take(",")
        self.take(")")

    def lattice(self) -> Arcs:
        if not self.text.strip():
            raise self.wrong(f"an empty line; {_LAYOUT}")
        edges: list[tuple[int, int]] = []
        words: list[str | None] = []
        scores: list[list[float]] = []
        nodes = 0
        for _ in self.items():
            for _ in self.items():
                word, numbers, distance = self.edge()
                if scores and len(numbers) != len(scores[0]):
                    message = f"an edge with {count_of(len(numbers), 'score')}, and the first has {len(scores[0])}"
                    raise self.wrong(f"{message}; give all edges equally many")
                edges.append((nodes, nodes + distance))
                words.append(word_of(word))
                scores.append(numbers)
            nodes += 1
        if self.kind:
            raise self.wrong(f"{quoted(self.token)} behind the lattice; {_LAYOUT}")
        width = len(scores[0]) if scores else 0
        names = column_names(SCORE, width) if width else []
        lines = np.full(len(edges), self.line)
        columns = [list(column) for column in zip(*scores, strict=True)] if width else []
        values = feature_table(self.path, names, columns, lines)
        places = np.array(edges, dtype=np.int64).reshape(-1, 2)
        return Arcs(self.line, None, places, lines, words, tuple(names), values, nodes + 1, 0, nodes)

    def edge(self) -> tuple[str, list[float], int]:
        """Word, scores and distance of an edge."""
        cells: list[tuple[int, str]] = []
        for _ in self.items():
            if self.kind not in (2, 3):
                raise self.wrong(f"{quoted(self.token)} at column {self.at} inside an edge; {_LAYOUT}")
            cells.append((self.kind, self.token))
            self.advance()
        if len(cells) < 2 or cells[0][0] != 2:
            raise self.wrong(f"an edge that is not a word, scores and a distance before column {self.at}; {_LAYOUT}")
        *scores, (kind, last) = cells[1:]
        if kind != 3 or not _INTEGER.fullmatch(last) or int(last) < 1:
            raise self.wrong(f"{quoted(last)} is not a distance; give 1 or more, the nodes that the edge goes forward")
        for kind, score in scores:
            if kind != 3 or not _NUMBER.fullmatch(score):
                raise self.wrong(f"{quoted(score)} is not a finite score; give a number such as -1.25")
        word = _ESCAPE.sub(r"\1", cells[0][1][1:-1])
        return word, [float(score) for _, score in scores], int(last)
