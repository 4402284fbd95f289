"""Pairings: matchings of any graph, bipartite or not, perfect or not.

Example ``i`` is a graph; its parts are its edges, and ``z_e = 1`` says that edge ``e`` is matched::

    Z_i = {z >= 0,  sum of z over the edges at a node <= 1,  sum of z inside an odd set B of nodes <= (|B| - 1) / 2}

whose vertices are exactly the matchings (Edmonds 1965); with ``perfect`` the sums at the nodes are 1.

``argmax`` is a maximum-weight matching by Edmonds' blossom method, one free node after the other, ``O(n^3)`` for ``n``
nodes (Gabow 1976). It counts in whole numbers: scores are rounded to a multiple of some ``2^-50`` of the largest, so
that every comparison is exact. ``duals`` gives the proof: numbers for nodes and odd sets that cover the score of every
edge and whose sum is the score of the matching.

``k_best`` partitions the outputs (Lawler 1972), up to ``n / 2`` argmax calls per rank. ``project`` is an active set
over vertices that the argmax finds (Wolfe 1976): exact, a few argmax calls for points far outside the polytope, as many
as edges with ``z_e > 0`` or more for points near its middle. Marginals over all matchings are #P-hard. Slack rescaling
is relaxed to the polytope: to find a matching of a given loss and a given score is exact matching, for which no
deterministic polynomial method is known (Papadimitriou and Yannakakis 1982).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _threads
from maxmargin._sparse import sp
from maxmargin.structures._arrays import (
    assembled,
    example_numbers,
    integers,
    offsets_in_memory,
    offsets_of,
    one_per_example,
    pairs_of,
    sums_of,
    vector,
)
from maxmargin.structures._labeled import check_edges, edge_lists
from maxmargin.structures.base import Block, FloatArray, IntArray, Points, Polytope
from maxmargin.structures.compiled import MOST_RANKS, Compiled
from maxmargin.structures.fallbacks import generic
from maxmargin.structures.sparse import SparsePoint

LISTED = 12
"""Nodes of examples whose odd sets are listed in :meth:`Pairing.polytope`."""

MOST_NODES = 1 << 15
"""Of one example, whose scores become a matrix."""


class PairingDuals(NamedTuple):
    """Why no pairing is better: an optimal solution of the dual linear program of every example.

    Attributes:
        nodes: one number per node of the batch; >= 0 unless pairings are perfect.
        set_offsets: example ``i`` has the odd sets ``set_offsets[i]:set_offsets[i + 1]``.
        sets: one number > 0 per odd set.
        member_offsets: odd set ``s`` has the nodes ``members[member_offsets[s]:member_offsets[s + 1]]``.
        members: nodes, counted from 0 in their example.
        value: ``sum of nodes + sum of (|B| - 1) / 2 times the number of odd set B``, shape ``(n_examples,)``: the score
            of the best pairing to rounding; NaN where there is none.
    """

    nodes: FloatArray
    set_offsets: IntArray
    sets: FloatArray
    member_offsets: IntArray
    members: IntArray
    value: FloatArray


class Pairing(Compiled):
    """A packed batch of graphs with one block, ``edges``.

    Args:
        n_nodes: number of nodes of each example, shape ``(n_examples,)``.
        edges: ``(n_parts, 2)``, the two nodes of every edge, counted from 0 inside its example; any order.
        edge_offsets: ``(n_examples + 1,)``, where the edges of each example begin.
        perfect: whether every node must be matched.

    An output is an array ``(k, 2)`` of the matched pairs. A score of ``-inf`` forbids an edge; a perfect pairing that
    does not exist has value ``-inf`` and status ABSENT.

    Attributes:
        n_nodes, perfect: as given.
        edges: the nodes of every edge, the lower number first.
    """

    name = "pairing"
    kernel = "Pairing"
    forbids = True
    categorical = False
    marginals_unsupported = "marginals over all matchings are #P-hard (a Hafnian); use geometry=Euclidean()"

    def __init__(
        self, n_nodes: npt.ArrayLike, edges: npt.ArrayLike, edge_offsets: npt.ArrayLike, *, perfect: bool = False
    ) -> None:
        self.n_nodes, pairs, offsets = edge_lists(n_nodes, edges, edge_offsets)
        self.perfect = _checks.flag("perfect", perfect)
        large = np.flatnonzero(self.n_nodes > MOST_NODES)
        if large.size:
            raise ValueError(
                f"example {int(large[0])} has {int(self.n_nodes[large[0]])} nodes; its scores become a matrix, so "
                f"give at most {MOST_NODES}"
            )
        self.edges: IntArray = np.sort(pairs, axis=1)
        self.blocks = (Block("edges", offsets),)
        check_edges(self.n_nodes, self.edges, offsets, "a node cannot be paired with itself", "list every edge once")

    @classmethod
    def dense(cls, n_nodes: npt.ArrayLike, *, perfect: bool = False) -> Self:
        """Graphs with all ``n (n - 1) / 2`` edges, by the lower node and then the higher one."""
        counts = integers(n_nodes, "n_nodes").reshape(-1)
        if (counts < 0).any() or (counts > MOST_NODES).any():
            raise ValueError(f"n_nodes must lie between 0 and {MOST_NODES}")
        offsets = offsets_in_memory(counts * np.maximum(counts - 1, 0) // 2, 1, "edges")
        pairs = [np.stack(np.triu_indices(n, 1), axis=1) for n in counts.tolist()]
        return cls(counts, np.concatenate([np.zeros((0, 2), dtype=np.int64), *pairs]), offsets, perfect=perfect)

    def __repr__(self) -> str:
        kind = "perfect, " if self.perfect else ""
        return f"Pairing({kind}{self.n_examples} examples, {int(self.n_nodes.sum())} nodes, {self.n_parts} edges)"

    @cached_property
    def _example(self) -> IntArray:
        """The example of every part."""
        offsets = self.blocks[0].offsets
        return np.repeat(np.arange(self.n_examples), np.diff(offsets)).astype(np.int64)

    @cached_property
    def _batch(self) -> Any:
        """The graphs as the kernels take them: a kernel object, made and checked once, when first asked for."""
        ends = np.ascontiguousarray(self.edges, dtype=np.int32)
        return _kernels.PairingBatch(offsets_of(self.n_nodes), self.blocks[0].offsets, ends, self.perfect)

    @cached_property
    def _keys(self) -> tuple[IntArray, IntArray, IntArray]:
        """Where the pairs of nodes of each example begin, the number of each edge's pair in rising order, its part."""
        starts = offsets_of(self.n_nodes * self.n_nodes)
        keys = self._key(starts, self._example, self.edges)
        order = np.argsort(keys, kind="stable")
        return starts, keys[order], order

    def _key(self, starts: IntArray, example: IntArray, pairs: IntArray) -> IntArray:
        return starts[example] + pairs[:, 0] * self.n_nodes[example] + pairs[:, 1]

    def places(self, labels: Sequence[npt.ArrayLike]) -> tuple[IntArray, IntArray, IntArray]:
        """The parts of pairs of nodes, given as ``(k, 2)`` arrays, one per example, which need not be pairings.

        Returns:
            All pairs, the lower node first, the example of each, and its place in a packed vector.
        """
        given = enumerate(one_per_example(labels, self.n_examples, "pairings"))
        pieces = [
            pairs_of(np.reshape(label, (-1, 2)) if np.size(label) == 0 else label, f"example {i}: pairs")
            for i, label in given
        ]
        pairs = np.sort(np.concatenate([np.zeros((0, 2), dtype=np.int64), *pieces]), axis=1)
        example = np.repeat(np.arange(self.n_examples), [len(piece) for piece in pieces]).astype(np.int64)
        starts, keys, order = self._keys
        inside = ((pairs >= 0) & (pairs < self.n_nodes[example][:, None])).all(axis=1)
        wanted = np.where(inside, self._key(starts, example, pairs), -1)
        place = np.searchsorted(keys, wanted)
        known = inside & (np.append(keys, -1)[place] == wanted)
        if not known.all():
            at = int(np.argmin(known))
            i = int(example[at])
            raise ValueError(
                f"example {i}: pair {tuple(pairs[at].tolist())} is not an edge of its graph of "
                f"{int(self.n_nodes[i])} nodes; drop it or add the edge to the graph"
            )
        return pairs, example, order[place]

    def encode(self, labels: Sequence[npt.ArrayLike]) -> SparsePoint:
        """The packed 0/1 vector of pairings given as ``(k, 2)`` arrays of nodes, one per example."""
        pairs, example, place = self.places(labels)
        self._check_nodes(example, pairs)
        return SparsePoint.from_index(self, np.sort(place))

    def _check_nodes(self, example: IntArray, pairs: IntArray) -> None:
        """ValueError naming the first node that has two partners, or none where all must have one."""
        first = offsets_of(self.n_nodes)
        partners = np.bincount((first[example][:, None] + pairs).reshape(-1), minlength=int(first[-1]))
        wrong = np.flatnonzero(partners != 1 if self.perfect else partners > 1)
        if wrong.size:
            node = int(wrong[0])
            i = int(np.searchsorted(first, node, side="right")) - 1
            count = int(partners[node])
            what = f"has {count} partners; a node has at most one" if count else "has no partner"
            remedy = "drop pairs" if count else "add a pair, or use perfect=False"
            raise ValueError(f"example {i}: node {node - int(first[i])} {what}; {remedy}")

    def decode(self, z: FloatArray) -> list[IntArray]:
        """The matched pairs of a packed vertex: per example an int64 array ``(k, 2)``, sorted, the lower node first."""
        taken = np.flatnonzero(vector(z, self.n_parts, "z") > 0.5)
        owner, pairs = self._example[taken], self.edges[taken]
        order = np.lexsort((pairs[:, 1], pairs[:, 0], owner))
        cuts = np.searchsorted(owner, np.arange(1, self.n_examples))
        return list(np.split(pairs[order], cuts)) if self.n_examples else []

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """The pairing of largest total score; unless it must be perfect, edges of score 0 or less are never taken."""
        return self._from_kernel(self._batch.argmax, vector(scores, self.n_parts, "scores"))

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection by an active set of pairings in the kernel; ``warm`` from an earlier call."""
        point = vector(point, self.n_parts, "point")
        arrays = (self.n_nodes, self.edges, self.blocks[0].offsets)
        key = (self.name, self.perfect, *(array.tobytes() for array in arrays))
        return generic.project_in_kernel(
            self, tol, warm, key, lambda hull, *outputs: self._batch.project(hull, point, *outputs)
        )

    @cached_property
    def _most_outputs(self) -> int:
        """A bound of the pairings of the example that has most: those of the complete graph, and at most MOST_RANKS."""
        n = int(self.n_nodes.max(initial=0))
        before, count = 1, 1  # of n - 1 and n nodes: a node is free, or paired with one of the others
        for nodes in range(2, n + 1):
            before, count = count, count + (nodes - 1) * before
            if count >= MOST_RANKS:
                return MOST_RANKS
        return count

    def duals(self, scores: FloatArray) -> PairingDuals:
        """An optimal solution of the dual program: a certificate that the argmax is one."""
        nodes, status = np.empty(int(self.n_nodes.sum())), np.empty(self.n_examples, dtype=np.int8)
        starts, sets, offsets, members = self._batch.duals(
            vector(scores, self.n_parts, "scores"), nodes, status, _threads.current()
        )
        value = sums_of(nodes, offsets_of(self.n_nodes)) + sums_of(sets * (np.diff(offsets) - 1) / 2, starts)
        value[status != 0] = math.nan
        return PairingDuals(nodes, starts, sets, offsets, members, value)

    def polytope(self) -> Polytope | None:
        """``q = z``; rows: nodes, then odd sets of three nodes or more; None if some example exceeds LISTED nodes."""
        if int(self.n_nodes.max(initial=0)) > LISTED:
            return None
        first, offsets = offsets_of(self.n_nodes), self.blocks[0].offsets
        at_node = assembled(
            [(first[self._example] + end, np.arange(self.n_parts), 1.0) for end in self.edges.T],
            (int(first[-1]), self.n_parts),
        )
        rows, rhs = [], []
        for i, n in enumerate(self.n_nodes.tolist()):
            edges = self.edges[offsets[i] : offsets[i + 1]]
            odd = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
            odd = odd[(odd.sum(axis=1) % 2 == 1) & (odd.sum(axis=1) >= 3)]
            inside = np.zeros((len(odd), self.n_parts))
            inside[:, offsets[i] : offsets[i + 1]] = odd[:, edges[:, 0]] * odd[:, edges[:, 1]]
            rows.append(sp.csr_array(inside))
            rhs.append((odd.sum(axis=1) - 1.0) / 2.0)
        sets, most = (
            (sp.csr_array(sp.vstack(rows)), np.concatenate(rhs)) if rows else (sp.csr_array((0, 0)), np.zeros(0))
        )
        lift, ones = sp.csr_array(sp.eye_array(self.n_parts)), np.ones(int(first[-1]))
        if self.perfect:
            return Polytope(lift, ub=sets, ub_rhs=most, eq=at_node, eq_rhs=ones)
        return Polytope(lift, ub=sp.csr_array(sp.vstack([at_node, sets])), ub_rhs=np.concatenate([ones, most]))

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order; an example may come several times."""
        chosen = example_numbers(indices, self.n_examples)
        other = type(self).__new__(type(self))
        other.n_nodes, other.perfect = self.n_nodes[chosen], self.perfect
        other.edges = np.ascontiguousarray(self.edges[self.parts_of(chosen)])
        other.blocks = (Block("edges", offsets_of(self.sizes[chosen])),)
        return other
