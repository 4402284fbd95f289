"""Lattices: a path from the start to the end of a directed acyclic graph, scored on its edges.

Example ``i`` is a directed acyclic graph; its parts are its edges, and ``z_e = 1`` says that the path has edge ``e``::

    Z_i = {z >= 0,  what flows into a node flows out of it, but for one unit from the start to the end}

The constraint matrix is totally unimodular, so the vertices of ``Z_i`` are exactly the paths. Two nodes may have
several edges between them; edges and nodes that lie on no path are allowed and never taken. Word lattices of speech
recognition and translation are lattices, and so are confusion networks (:meth:`Lattice.confusion_network`).

The nodes are sorted once. Cost per example, with ``E`` edges on paths: argmax ``E`` additions and maxima; ``marginals``
``E`` exponentials; ``k_best`` one argmax and then at most one step of a heap for each node of a path and rank, found on
demand (Jiménez and Marzal, "Computing the k shortest paths", 1999); ``k_best_words``, the best paths that differ in
their words, one step for each word of each sequence, over the edges that leave the nodes its beginning reaches (Mohri
and Riley, "An efficient algorithm for the n-best-strings problem", 2002); ``slack_argmax`` fronts of (loss, score) per
node, with Hamming loss at most ``E`` times the edges of a path.

``project``, a quadratic flow, minimizes the dual over node potentials ``x``::

    z_e = max(0, point_e - x_tail + x_head)

by a semismooth Newton method (Qi and Sun 1993), whose systems are Laplacians of the edges with ``z_e > 0``, factorized
in topological order. It stops when no node loses or gains more than ``tol / (1000 nodes)``, or rounding if that is
larger; flows are then divided at each node by their shares, which makes ``z`` feasible to rounding. Typical are four to
ten steps cold and two to six warm, for lattices of 50 to 4,000 edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _threads
from maxmargin.structures._arrays import (
    assembled,
    counts_of,
    example_numbers,
    integers,
    offsets_of,
    one_per_example,
    started,
    vector,
)
from maxmargin.structures._labeled import edge_lists
from maxmargin.structures.base import Block, FloatArray, IntArray, Points, Polytope
from maxmargin.structures.compiled import Compiled
from maxmargin.structures.fallbacks import generic
from maxmargin.structures.sparse import SparsePoint


class PathRuns(NamedTuple):
    """The best paths of a batch along a line of scores, each from some gamma on to the next one of its example.

    Attributes:
        offsets: example ``i`` has the paths ``offsets[i]:offsets[i + 1]``, at least one.
        begin: where each path begins to be best, rising within an example; the first at -inf.
        path_offsets: path ``p`` has the edges ``edges[path_offsets[p]:path_offsets[p + 1]]``.
        edges: numbers counted from 0 in the example, in path order.
    """

    offsets: IntArray
    begin: FloatArray
    path_offsets: IntArray
    edges: IntArray


class Lattice(Compiled):
    """A packed batch of directed acyclic graphs with one block, ``edges``.

    Args:
        n_nodes: number of nodes of each example, at least 1, shape ``(n_examples,)``.
        edges: ``(n_parts, 2)``, for every edge the node it leaves and the node it enters, counted from 0 inside its
            example; any order.
        edge_offsets: ``(n_examples + 1,)``, where the edges of each example begin.
        start: where the paths begin: one node per example, or one number for all.
        end: where they end; None for the last node of each example.
        words: the number of each edge's word, >= 0, or -1 for an edge without one, shape ``(n_parts,)``; equal numbers
            are equal words, and only :meth:`k_best_words` reads them. None if there are no words.

    An output is the path's edges, counted from 0 inside the example, in the order in which the path takes them; if
    start and end are the same node the only path is empty. A score of ``-inf`` forbids an edge; an example with every
    path forbidden has value ``-inf`` and status ABSENT. Among paths of equal score the argmax takes the one with the
    lowest edge into the end, then into the node before it, and so on.

    Attributes:
        n_nodes, edges, words: as given.
        start, end: of each example, shape ``(n_examples,)``.
    """

    name = "lattice"
    kernel = "Lattice"
    categorical = False
    marginals_unsupported = ""
    slack_relaxed = False
    forbids = True
    value_bounds = True

    def __init__(
        self,
        n_nodes: npt.ArrayLike,
        edges: npt.ArrayLike,
        edge_offsets: npt.ArrayLike,
        start: npt.ArrayLike = 0,
        end: npt.ArrayLike | None = None,
        *,
        words: npt.ArrayLike | None = None,
    ) -> None:
        self.n_nodes, self.edges, offsets = edge_lists(n_nodes, edges, edge_offsets)
        if (self.n_nodes < 1).any():
            raise ValueError(f"example {int(np.argmin(self.n_nodes))} has no nodes; give at least one, or remove it")
        self.blocks = (Block("edges", offsets),)
        self._check_edges()
        self.start = self._nodes_of_examples(start, "start")
        self.end = self._nodes_of_examples(self.n_nodes - 1 if end is None else end, "end")
        self.words = None if words is None else integers(words, "words")
        if self.words is not None and (self.words.shape != (self.n_parts,) or (self.words < -1).any()):
            raise ValueError(f"words must be {self.n_parts} numbers, one per edge, each >= 0 or -1 for no word")
        example, fault = self._batch.fault()
        if fault:
            path = f"from node {int(self.start[example])} to node {int(self.end[example])}"
            raise ValueError(
                f"example {example}: "
                + (
                    "its edges form a cycle; a lattice is a directed acyclic graph, so drop or turn an edge of it"
                    if fault == 1
                    else f"there is no path {path}; add edges, give another start or end, or remove the example"
                )
            )

    @classmethod
    def confusion_network(cls, n_alternatives: npt.ArrayLike, slot_offsets: npt.ArrayLike) -> Self:
        """Slots one after the other, of each of which one alternative is chosen.

        Args:
            n_alternatives: of each slot of the batch, at least 1, shape ``(n_slots,)``.
            slot_offsets: where the slots of each example begin, shape ``(n_examples + 1,)``.

        Parts are the alternatives, slot after slot; slot ``s`` of an example leads from node ``s`` to ``s + 1``.
        """
        counts, offsets = counts_of(n_alternatives, "n_alternatives"), integers(slot_offsets, "slot_offsets")
        if (counts < 1).any():
            raise ValueError("n_alternatives must be a vector of numbers >= 1: every slot needs an alternative")
        rises = offsets.ndim == 1 and len(offsets) and offsets[0] == 0 and (np.diff(offsets) >= 0).all()
        if not rises or offsets[-1] != len(counts):
            raise ValueError(f"slot_offsets must rise from 0 to the number of slots, {len(counts)}")
        slots = np.diff(offsets)
        tail = np.repeat(np.arange(len(counts)) - np.repeat(offsets[:-1], slots), counts)
        return cls(slots + 1, np.stack([tail, tail + 1], axis=1), offsets_of(counts)[offsets])

    def _check_edges(self) -> None:
        """Refuse edges that leave their example."""
        outside = ((self.edges < 0) | (self.edges >= self.n_nodes[self._example][:, None])).any(axis=1)
        if outside.any():
            e = int(np.argmax(outside))
            i = int(self._example[e])
            raise ValueError(
                f"example {i}: edge {tuple(self.edges[e].tolist())} is out of range for {int(self.n_nodes[i])} nodes; "
                "number its nodes from 0 within the example"
            )

    def _nodes_of_examples(self, values: npt.ArrayLike, what: str) -> IntArray:
        given = integers(values, what)
        if given.shape not in ((), (len(self.n_nodes),)):
            raise ValueError(f"{what} must be one node or one per example, {len(self.n_nodes)}; got {given.shape}")
        nodes = np.broadcast_to(given, (len(self.n_nodes),)).astype(np.int64)
        outside = (nodes < 0) | (nodes >= self.n_nodes)
        if outside.any():
            i = int(np.argmax(outside))
            raise ValueError(f"example {i}: {what} {int(nodes[i])} is out of range for {int(self.n_nodes[i])} nodes")
        return nodes

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.n_examples} examples, {int(self.n_nodes.sum())} nodes, {self.n_parts} edges)"
        )

    @cached_property
    def _example(self) -> IntArray:
        """The example of every part."""
        offsets = self.blocks[0].offsets
        return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))

    @cached_property
    def _ends(self) -> tuple[IntArray, IntArray]:
        """Tail and head of every edge, nodes counted over the batch."""
        first = offsets_of(self.n_nodes)[self._example]
        return first + self.edges[:, 0], first + self.edges[:, 1]

    @cached_property
    def _batch(self) -> Any:
        """The graphs as the kernels take them: a kernel object, made and checked once, when first asked for."""
        ends, start, end = (np.ascontiguousarray(a, dtype=np.int32) for a in (self.edges, self.start, self.end))
        return _kernels.LatticeBatch(
            offsets_of(self.n_nodes), self.blocks[0].offsets, ends, start, end, _threads.current()
        )

    @cached_property
    def _position(self) -> npt.NDArray[np.int32]:
        """For every node of the batch its place in the topological order of its example, -1 if it is on no path."""
        position = np.empty(int(self.n_nodes.sum()), dtype=np.int32)
        self._batch.positions(position)
        return position

    @cached_property
    def on_path(self) -> npt.NDArray[np.bool_]:
        """Whether each edge lies on a path from start to end, shape ``(n_parts,)``."""
        tail, head = self._ends
        return (self._position[tail] >= 0) & (self._position[head] >= 0)

    @cached_property
    def part_bound(self) -> FloatArray:
        """1 for edges on paths, 0 for others."""
        return self.on_path.astype(np.float64)

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """The packed 0/1 vector of one path per example: its edges, counted from 0 in the example, in path order."""
        given = enumerate(one_per_example(labels, self.n_examples, "paths"))
        paths = [integers(label, f"example {i}: a path") for i, label in given]
        offsets = self.blocks[0].offsets
        for i, path in enumerate(paths):
            if path.ndim != 1:
                raise ValueError(f"example {i}: a path must be a vector of edge numbers, got shape {path.shape}")
        flat = np.concatenate([np.zeros(0, dtype=np.int64), *paths])
        lengths = np.array([len(path) for path in paths], dtype=np.int64)
        example = np.repeat(np.arange(self.n_examples), lengths)
        outside = (flat < 0) | (flat >= self.sizes[example])
        if outside.any():
            at = int(np.argmax(outside))
            i = int(example[at])
            raise ValueError(f"example {i}: edge {int(flat[at])} is out of range for {int(self.sizes[i])} edges")
        place = offsets[example] + flat
        self._check_paths(place, example, lengths)
        return SparsePoint.from_index(self, place)

    def _check_paths(self, place: IntArray, example: IntArray, lengths: IntArray) -> None:
        """ValueError naming the first example whose edges do not lead from its start to its end."""
        # One step more than edges: into the first edge from the start, and from the last edge into the end.
        ends = np.cumsum(lengths + 1)
        into = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.int64)
        out_of = into.copy()
        steps = np.arange(len(place)) + example
        out_of[ends - lengths - 1] = self.start
        into[ends - 1] = self.end
        out_of[steps + 1], into[steps] = self.edges[place, 1], self.edges[place, 0]
        wrong = np.flatnonzero(out_of != into)
        if not wrong.size:
            return
        at = int(wrong[0])
        i = int(np.searchsorted(ends, at, side="right"))
        local = at - int(ends[i] - lengths[i] - 1)
        where = f"before entry {local}" if local < lengths[i] else "after the last entry"
        raise ValueError(
            f"example {i}: the edges are not a path from node {int(self.start[i])} to node {int(self.end[i])}: {where} "
            f"it is at node {int(out_of[at])} and should be at node {int(into[at])}; give the path's edges in order"
        )

    def decode(self, z: FloatArray) -> list[IntArray]:
        """The paths of a packed vertex: per example an int64 array of its edges in path order."""
        taken = np.flatnonzero(vector(z, self.n_parts, "z") > 0.5)
        owner = self._example[taken]
        order = np.lexsort((self._position[self._ends[0][taken]], owner))
        taken, owner = taken[order], owner[order]
        edges = taken - self.blocks[0].offsets[owner]
        return np.split(edges, np.searchsorted(owner, np.arange(1, self.n_examples))) if self.n_examples else []

    def k_best_words(self, scores: FloatArray, k: int) -> list[Points]:
        """The ``k`` best sequences of words of every example, each by its best path, exactly; else as :meth:`k_best`.

        Sequences whose scores differ by rounding alone may come in any order.
        """
        if self.words is None:
            raise ValueError("the lattices have no words; build them with words, or use k_best")
        ranks = self._ranks(k)
        outputs = self._buffers(ranks)
        scores = vector(scores, self.n_parts, "scores")
        self._batch.k_best_words(ranks, scores, self.words, *outputs, _threads.current())
        return generic.ranked(*outputs)

    def envelopes(self, scores: FloatArray, slopes: FloatArray) -> PathRuns:
        """The best paths for scores that move along the line ``scores + gamma slopes``, gamma from -inf to inf.

        The envelope of each node is that of the lines that its incoming edges bring (Macherey et al. 2008).
        """
        first, moved = vector(scores, self.n_parts, "scores"), vector(slopes, self.n_parts, "slopes")
        status = np.empty(self.n_examples, dtype=np.int8)
        found = PathRuns(*self._batch.envelopes(first, moved, status, _threads.current()))
        if status.any():
            raise ValueError(f"example {int(np.argmax(status != 0))}: scores or slopes are NaN or infinite")
        return found

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection; ``warm`` holds potentials of all nodes of the batch."""
        values = vector(point, self.n_parts, "point")
        potentials = started(warm, (int(self.n_nodes.sum()),))
        outputs = self._buffers()
        steps = np.empty(self.n_examples, dtype=np.int32)  # Newton steps, for benchmarks
        tolerance = _checks.number("tol", tol, least=0)
        self._batch.project(values, tolerance, warm is not None, potentials, *outputs, steps, _threads.current())
        return Points(*outputs, potentials)

    def polytope(self) -> Polytope:
        """``q`` holds the edges on paths; one equation for each node on paths but the end: outflow less inflow.

        It is 1 at the start and 0 elsewhere.
        """
        kept = np.flatnonzero(self.on_path)
        tail, head = (end[kept] for end in self._ends)
        first = offsets_of(self.n_nodes)[:-1]
        inner = self._position >= 0
        inner[first + self.end] = False
        row = np.cumsum(inner) - 1
        n, into = len(kept), inner[head]
        rhs = np.zeros(int(inner.sum()))
        rhs[row[(first + self.start)[self.start != self.end]]] = 1.0
        columns = np.arange(n)
        return Polytope(
            lift=assembled([(kept, columns, 1.0)], (self.n_parts, n)),
            eq=assembled([(row[tail], columns, 1.0), (row[head[into]], columns[into], -1.0)], (len(rhs), n)),
            eq_rhs=rhs,
        )

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order; an example may come several times."""
        chosen = example_numbers(indices, self.n_examples)
        other = type(self).__new__(type(self))
        other.n_nodes, other.start, other.end = self.n_nodes[chosen], self.start[chosen], self.end[chosen]
        other.edges = np.ascontiguousarray(self.edges[self.parts_of(chosen)])
        other.words = None if self.words is None else self.words[self.parts_of(chosen)]
        other.blocks = (Block("edges", offsets_of(self.sizes[chosen])),)
        return other
