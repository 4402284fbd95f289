"""The lattice that a file describes, and the checks that all formats share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, connected_components

from maxmargin._messages import quoted
from maxmargin._sparse import sp
from maxmargin.encoders.data.inputs import WordLattice
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common.files.text import AnyPath, problem
from maxmargin.tasks.reranking.io.features import floats

NO_WORD = frozenset(("", "!NULL", "*EPS*", "<eps>", "<s>", "</s>", "!ENTER", "!EXIT", "!SENT_START", "!SENT_END"))
"""Labels of edges that stand for no word."""

MOST_UNUSED = 100_000
"""Nodes without edges that a lattice may have."""


def word_of(label: str) -> str | None:
    """Return the word of a label, None if it stands for no word."""
    return None if label in NO_WORD else label


@dataclass(frozen=True, eq=False)
class Arcs:
    """A lattice as a file describes it.

    Attributes:
        line: where it begins.
        id: its name; None if the file gives none.
        edges: tail and head of each edge, shape ``(n_edges, 2)``.
        lines: the line of each edge, shape ``(n_edges,)``.
        words: the word of each edge, None for none.
        names: names of the features.
        values: the features, shape ``(n_edges, len(names))``, finite.
        n_nodes: number of nodes.
        start: the node where paths begin.
        end: the node where they end.
        references: one or more references; None if the file gives none.
    """

    line: int
    id: str | None
    edges: IntArray
    lines: IntArray
    words: Sequence[str | None]
    names: tuple[str, ...]
    values: FloatArray
    n_nodes: int
    start: int
    end: int
    references: tuple[str, ...] | None = None

    def lattice(self, path: AnyPath) -> WordLattice:
        """Return the lattice; FileError if a node does not exist, there is a cycle, or no path to the end."""
        if not len(self.edges):
            raise problem(path, self.line, "a lattice without edges; give at least one path from start to end")
        if self.n_nodes > MOST_UNUSED + 2 * len(self.edges):  # arrays over nodes would be larger than the file
            message = f"{self.n_nodes} nodes for {len(self.edges)} edges; number the nodes from 0 without gaps"
            raise problem(path, self.line, message)
        outside = ((self.edges < 0) | (self.edges >= self.n_nodes)).any(axis=1)
        if outside.any():
            at = int(np.argmax(outside))
            node = int(next(node for node in self.edges[at] if not 0 <= node < self.n_nodes))
            message = f"an edge of node {node}, and there are {self.n_nodes} nodes, from 0; correct its number"
            raise problem(path, int(self.lines[at]), message)
        for what, node in (("start", self.start), ("end", self.end)):
            if not 0 <= node < self.n_nodes:
                message = f"the {what} is node {node}, and there are {self.n_nodes} nodes, from 0; correct its number"
                raise problem(path, self.line, message)
        refuse_cycles(path, self.edges, self.lines, self.n_nodes)
        graph = _graph(self.edges, self.n_nodes)
        reached = breadth_first_order(graph, self.start, return_predecessors=False)
        if self.end not in reached:
            message = f"no path from node {self.start}, the start, to node {self.end}, the end; correct start or end"
            raise problem(path, self.line, message)
        return WordLattice(self.values, self.edges, list(self.words), self.start, self.end)


def _graph(edges: IntArray, n_nodes: int) -> sp.csr_array:
    return sp.csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n_nodes, n_nodes))


def refuse_cycles(path: AnyPath, edges: IntArray, lines: IntArray, n_nodes: int) -> None:
    """FileError naming the line of the first edge that is on a cycle."""
    tail, head = edges[:, 0], edges[:, 1]
    if (tail < head).all():
        return
    _, part = connected_components(_graph(edges, n_nodes), directed=True, connection="strong")
    turning = part[tail] == part[head]  # also of an edge from a node to itself
    if turning.any():
        at = int(np.argmax(turning))
        message = f"the edge from node {tail[at]} to node {head[at]} is on a cycle; remove it, as paths must end"
        raise problem(path, int(lines[at]), message)


def feature_table(
    path: AnyPath, names: Sequence[str], columns: Sequence[Sequence[float]], lines: IntArray
) -> FloatArray:
    """Return features as an array, shape ``(n_edges, len(names))``; FileError names the line of one not finite."""
    table = np.empty((len(lines), len(names)))
    for at, (name, column) in enumerate(zip(names, columns, strict=True)):
        table[:, at] = floats(column)
        finite = np.isfinite(table[:, at])
        if not finite.all():
            bad = int(np.argmin(finite))
            message = f"feature {quoted(name)} is {column[bad]!s:.40}; give a finite number"
            raise problem(path, int(lines[bad]), message)
    return table
