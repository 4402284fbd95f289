"""Trees and forests: a label for every node, scored at nodes and at the pairs of labels of joined nodes.

Output ``y`` of an example with nodes ``v`` of ``K_v`` labels has the parts

* ``nodes[v, k] = [y_v = k]``, block ``"nodes"``, node after node;
* ``edges[e, a, b] = [y_u = a, y_v = b]`` for edge ``e = (u, v)``, block ``"edges"``: one ``K_u x K_v`` table per edge,
  row-major, with the ends as they were given.

Nodes are eliminated leaf by leaf, in an order worked out once. Cost per example, with ``N`` entries in its edge tables:
argmax ``N`` additions and maxima (max-product, Pearl 1982); ``marginals`` ``N`` exponentials (sum-product); ``k_best``
one argmax and then at most one new list entry per node and rank, found on demand (Huang and Chiang, "Better k-best
parsing", 2005); ``project`` one argmax per vertex that enters the active set
(:mod:`maxmargin.structures.fallbacks.generic`); ``slack_argmax`` max-product over fronts of (loss, score), with Hamming
loss up to ``n N`` steps for ``n`` nodes.

A tree is a :class:`maxmargin.structures.trees.junction.JunctionTree` of width one; both share everything here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _threads
from maxmargin.structures._arrays import (
    assembled,
    example_numbers,
    integers,
    offsets_in_memory,
    offsets_of,
    ranges,
    vector,
)
from maxmargin.structures._labeled import check_edges, edge_lists, joined_labels
from maxmargin.structures.base import Block, FloatArray, IntArray, Labeling, Points, Polytope, Ragged, Structure
from maxmargin.structures.fallbacks import generic
from maxmargin.structures.sparse import SparsePoint
from maxmargin.structures.trees.cliques import MOST_JOINT, CliqueTables

MOST_LABELS = 1 << 15
"""Labels of one node."""

MOST_RANKS = (1 << 31) - 1


class Tree(Structure):
    """A batch of forests.

    Args:
        n_nodes, edges, edge_offsets: as for :class:`~maxmargin.structures.Cut`; an example may have no nodes.
        n_labels: number of labels of each node, one number or shape ``(n_nodes.sum(),)``; labels are ``0 .. K - 1``.
        labels: which labels the parts of each node stand for, rising within a node, shape ``(n_labels.sum(),)``, where
            nodes have different ones of a common vocabulary; None: ``0 .. K - 1`` everywhere.

    A score of ``-inf`` forbids a label or a pair; an example with every output forbidden has value ``-inf`` and status
    ABSENT. Graphs with cycles are refused; see :class:`maxmargin.structures.JunctionTree`.

    Attributes:
        n_labels: labels of each node, shape ``(n_nodes.sum(),)``.
        edges, edge_offsets: as given.
        node_offsets: where the nodes of each example begin, shape ``(n_examples + 1,)``.
        ends: first and second end of every edge, nodes counted over the batch.
        cliques: sets of nodes scored together, of which only a junction tree has any.
    """

    name = "tree"
    categorical = True
    marginals_unsupported = ""
    slack_relaxed = False
    forbids = True
    value_bounds = True

    def __init__(
        self,
        n_nodes: npt.ArrayLike,
        n_labels: npt.ArrayLike,
        edges: npt.ArrayLike,
        edge_offsets: npt.ArrayLike,
        *,
        labels: npt.ArrayLike | None = None,
    ) -> None:
        self._read(n_nodes, n_labels, edges, edge_offsets, labels)
        self._order, width, _ = self._eliminate(fill=False)
        if (width < 0).any():
            raise ValueError(
                f"example {int(np.argmax(width < 0))}: its edges form a cycle, so it is not a forest; use JunctionTree "
                "(TreeSVM with a larger width) for graphs of small tree width, or GraphSVM for others"
            )

    def _read(
        self,
        n_nodes: npt.ArrayLike,
        n_labels: npt.ArrayLike,
        edges: npt.ArrayLike,
        edge_offsets: npt.ArrayLike,
        labels: npt.ArrayLike | None,
    ) -> None:
        """Check the arguments and lay out the parts."""
        counts, pairs, offsets = edge_lists(n_nodes, edges, edge_offsets)
        self.node_offsets = offsets_of(counts)
        sizes = integers(n_labels, "n_labels")
        if sizes.ndim and sizes.shape != (self.node_offsets[-1],):
            raise ValueError(f"n_labels must be one number or one for each of the {self.node_offsets[-1]} nodes")
        self.n_labels = np.ascontiguousarray(np.broadcast_to(sizes, (int(self.node_offsets[-1]),)))
        wrong = np.flatnonzero((self.n_labels < 1) | (self.n_labels > MOST_LABELS))
        if wrong.size:
            example = int(np.searchsorted(self.node_offsets, wrong[0], side="right")) - 1
            raise ValueError(
                f"example {example}: a node has {self.n_labels[wrong[0]]} labels; give between 1 and {MOST_LABELS}"
            )
        self.edges, self.edge_offsets = pairs, offsets
        twice = "keep one edge for each pair of nodes and add up its scores"
        check_edges(counts, pairs, offsets, "leave it out: put its scores on the node", twice)
        first = np.repeat(self.node_offsets[:-1], np.diff(offsets))
        self.ends = first + pairs[:, 0], first + pairs[:, 1]
        self._node_begin = offsets_of(self.n_labels)
        self._tables = offsets_of(self.n_labels[self.ends[0]] * self.n_labels[self.ends[1]])
        self.blocks = (
            Block("nodes", self._node_begin[self.node_offsets]),
            Block("edges", self._tables[offsets]),
        )
        self._check_sizes()
        self._labels = None if labels is None else self._vocabulary(labels)
        self.cliques = CliqueTables.none(self.node_offsets, self.n_labels)

    def _add(self, cliques: CliqueTables) -> None:
        """A third block of parts."""
        self.cliques = cliques
        self.blocks = (*self.blocks[:2], Block("cliques", cliques.tables[cliques.offsets]))
        for name in ("starts", "sizes"):
            self.__dict__.pop(name, None)
        self._check_sizes()

    def _check_sizes(self) -> None:
        if (self.sizes >= 1 << 31).any():
            raise ValueError(f"example {int(np.argmax(self.sizes >= 1 << 31))} has 2^31 parts or more; split it")
        offsets_in_memory(self.sizes, 1, "labels at all nodes and edges")

    def _vocabulary(self, labels: npt.ArrayLike) -> IntArray:
        numbers = integers(labels, "labels")
        if numbers.shape != (self.starts[1],):
            raise ValueError(f"labels must have one entry for each of the {self.starts[1]} node parts")
        falls = np.diff(numbers, prepend=-1) <= 0
        falls[self._node_begin[:-1]] = numbers[self._node_begin[:-1]] < 0
        if falls.any():
            example = int(np.searchsorted(self.blocks[0].offsets, np.argmax(falls), side="right")) - 1
            raise ValueError(f"example {example}: the labels of a node must be >= 0 and rise; sort them")
        return numbers

    @cached_property
    def _graphs(self) -> tuple[IntArray, npt.NDArray[np.int32], npt.NDArray[np.int32], IntArray]:
        """First arguments of kernels: node offsets, labels, edges and edge offsets."""
        labels, edges = (np.ascontiguousarray(array, dtype=np.int32) for array in (self.n_labels, self.edges))
        return self.node_offsets, labels, edges, self.edge_offsets

    def _eliminate(
        self, *, fill: bool, widest: int | None = None
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], FloatArray]:
        """An elimination order; per example the width (-1 where there is none) and the largest cluster."""
        order = np.empty(int(self.node_offsets[-1]), dtype=np.int32)
        nodes, labels, _, _ = self._graphs
        graphs = (nodes, labels, *self._skeleton())
        width, entries = np.empty(self.n_examples, dtype=np.int64), np.empty(self.n_examples)
        limit = np.iinfo(np.int64).max if widest is None else widest
        _kernels.tree_order(*graphs, fill, float(MOST_JOINT), limit, order, width, entries, _threads.current())
        return order, width, entries

    def _skeleton(self) -> tuple[npt.NDArray[np.int32], IntArray]:
        """Edges and edge offsets of the graph in which the nodes of each clique are joined as well."""
        pairs, owner = self.cliques.pairs()
        pairs = np.concatenate([self.edges, pairs])
        owner = np.concatenate([np.repeat(np.arange(self.n_examples), np.diff(self.edge_offsets)), owner])
        if len(self.cliques):
            rows = np.stack([owner, pairs.min(axis=1), pairs.max(axis=1)], axis=1)
            owner, pairs = np.split(np.unique(rows, axis=0), [1], axis=1)
        counts = np.bincount(owner.ravel(), minlength=self.n_examples)
        return np.ascontiguousarray(pairs, dtype=np.int32), offsets_of(counts)

    @cached_property
    def _batch(self) -> Any:
        own = self.cliques
        cliques = own.offsets, own.begin, own.nodes.astype(np.int32)
        return _kernels.TreeBatch(*self._graphs, *cliques, self._order, float(MOST_JOINT))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_examples} examples, {len(self.n_labels)} nodes, {len(self.edges)} edges)"

    @property
    def n_nodes(self) -> IntArray:
        """Number of nodes of each example, shape ``(n_examples,)``."""
        return np.diff(self.node_offsets)

    @property
    def states_per_variable(self) -> int | IntArray:
        """The number of labels: one number where all nodes have the same ones, else one per node."""
        if self._labels is None and self.n_labels.size and (self.n_labels == self.n_labels[0]).all():
            return int(self.n_labels[0])
        return self.n_labels

    @cached_property
    def part_states(self) -> IntArray:
        """Which label each node part stands for."""
        if self._labels is not None:
            return self._labels
        return np.arange(self.starts[1]) - np.repeat(self._node_begin[:-1], self.n_labels)

    def pair_labels(self, n_labels: int) -> IntArray:
        """Which labels each edge part stands for: that of the first end times ``n_labels``, plus that of the second."""
        u, v = self.ends
        sizes = np.diff(self._tables)
        edge = np.repeat(np.arange(len(sizes)), sizes)
        first, second = np.divmod(np.arange(len(edge)) - self._tables[edge], self.n_labels[v][edge])
        labels, begin = self.part_states, self._node_begin
        return np.asarray(labels[begin[u][edge] + first] * n_labels + labels[begin[v][edge] + second])

    def joint_labels(self, n_labels: int) -> IntArray:
        """Which labels each clique part stands for: the digits of one number of base ``n_labels``, first node first."""
        return self.cliques.joint_labels(self.part_states, self._node_begin, n_labels)

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """The packed vertex of one labeling per example: an integer label per node."""
        flat = joined_labels(labels, self.n_nodes)
        at = self._places(flat)
        u, v = self.ends
        edges = self.starts[1] + self._tables[:-1] + at[u] * self.n_labels[v] + at[v]
        cliques = self.starts[2] + self.cliques.parts(at)
        return SparsePoint.from_index(self, np.concatenate([self._node_begin[:-1] + at, edges, cliques]))

    def _find(self, flat: IntArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Of one label per node of the batch: its place among those of its node, and whether it is one of them."""
        if self._labels is None:
            return flat, (flat >= 0) & (flat < self.n_labels)
        flat = np.clip(flat, -1, 1 << 31)  # larger numbers are no labels, and would overflow
        # Labels rise within a node, so node * (all labels) + label rises over the batch.
        n_all = max(int(self._labels.max(initial=0)), int(flat.max(initial=0))) + 1
        known = np.repeat(np.arange(len(self.n_labels)), self.n_labels) * n_all + self._labels
        wanted = np.arange(len(flat)) * n_all + flat
        found = np.searchsorted(known, wanted)
        constraints = (flat >= 0) & (np.append(known, -1)[found] == wanted)
        return found - self._node_begin[:-1], constraints

    def forbidden(self, flat: IntArray) -> IntArray:
        """Nodes of the batch whose label in ``flat``, shape ``(n_nodes.sum(),)``, is not one of theirs."""
        return np.flatnonzero(~self._find(flat)[1])

    def _places(self, flat: IntArray) -> IntArray:
        place, constraints = self._find(flat)
        if not constraints.all():
            node = int(np.argmax(~constraints))
            example = int(np.searchsorted(self.node_offsets, node, side="right")) - 1
            own = self.part_states[self._node_begin[node] : self._node_begin[node + 1]]
            shown = ", ".join(map(str, own[:8].tolist())) + (", ..." if len(own) > 8 else "")
            raise ValueError(
                f"example {example} has label {flat[node]} at node {node - int(self.node_offsets[example])}, where "
                f"only {shown} are allowed; correct it, or build the {self.name} with that label"
            )
        return place

    def decode(self, z: FloatArray) -> list[IntArray]:
        """Labelings, one int64 array per example: the label of the largest part of every node."""
        nodes = vector(z, self.n_parts, "z")[self.variable_parts]
        begin = self._node_begin[:-1]
        if not len(begin):
            return [np.zeros(0, dtype=np.int64) for _ in range(self.n_examples)]
        hits = np.flatnonzero(nodes == np.repeat(np.maximum.reduceat(nodes, begin), self.n_labels))
        # The first of the largest parts; a node of NaN has none and takes its first label.
        first = np.minimum(np.searchsorted(hits, begin), max(len(hits) - 1, 0))
        part = hits[first] if len(hits) else begin
        part = np.where((part >= begin) & (part < self._node_begin[1:]), part, begin)
        labels = self.part_states[part]
        return [labels[a:b] for a, b in pairwise(self.node_offsets.tolist())]

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """The best labeling of every example (max-product); ``warm`` is not needed.

        Among outputs of equal score the lowest label of the node that was eliminated last, then of the one before.
        """
        return self._from_kernel(self._batch.argmax, vector(scores, self.n_parts, "scores"))

    def labels(self, scores: FloatArray) -> Labeling:
        """The best labeling of every example by its labels, without the packed vector."""
        found = np.full(len(self.n_labels), -1, dtype=np.int32)
        value, status = np.empty(self.n_examples), np.empty(self.n_examples, dtype=np.int8)
        self._batch.labels(vector(scores, self.n_parts, "scores"), found, value, status, _threads.current())
        if self._labels is not None:
            found = np.where(found < 0, -1, self.part_states[self._node_begin[:-1] + np.maximum(found, 0)])
        return Labeling(Ragged(found, self.node_offsets), value, status)

    def k_best(self, scores: FloatArray, k: int) -> list[Points]:
        """The ``k`` best labelings of every example, exactly."""
        ranks = min(_checks.integer("k", k, least=1), self._most_outputs)
        if ranks >= MOST_RANKS:
            raise ValueError(f"k must be below {MOST_RANKS}, got {k}")
        scores = vector(scores, self.n_parts, "scores")
        outputs = self._buffers(ranks)
        self._batch.k_best(ranks, scores, *outputs, _threads.current())
        return generic.ranked(*outputs)

    @property
    def _most_outputs(self) -> int:
        """Labelings of the example that has most, but no more than MOST_RANKS."""
        first = self.node_offsets[:-1][self.n_nodes > 0]
        if len(first) == 0:
            return 1
        if np.add.reduceat(np.log2(self.n_labels), first).max() >= 31:
            return MOST_RANKS
        return min(MOST_RANKS, int(np.multiply.reduceat(self.n_labels, first).max()))

    def marginals(self, potentials: FloatArray) -> Points:
        """Marginals of nodes and edges, and the log-partition function (sum-product)."""
        return self._from_kernel(self._batch.marginals, vector(potentials, self.n_parts, "potentials"))

    def slack_argmax(
        self, scores: FloatArray, margin: FloatArray, costs: FloatArray, constants: FloatArray, *, warm: Any = None
    ) -> Points:
        """``argmax_y (costs'y + constants) (margin + scores'y)`` over labelings, exactly; ``warm`` is not needed.

        Per label and subtree, all pairs of loss and score of which none beats another in both are kept. INEXACT, with
        an upper bound as value, where there would be more than 64 to 4096 of them, by the size of the example.
        """
        scores, costs = vector(scores, self.n_parts, "scores"), vector(costs, self.n_parts, "costs")
        margin, constants = vector(margin, self.n_examples, "margin"), vector(constants, self.n_examples, "constants")
        return self._from_kernel(self._batch.slack_argmax, scores, margin, costs, constants)

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection by an active set of labelings in the kernel; ``warm`` from an earlier call."""
        point = vector(point, self.n_parts, "point")
        own = self.cliques
        arrays = (
            *(self.node_offsets, self.n_labels, self.edges, self.edge_offsets),
            *(own.offsets, own.begin, own.nodes),
        )
        key = (self.name, *(array.tobytes() for array in arrays))
        return generic.project_in_kernel(
            self, tol, warm, key, lambda hull, *outputs: self._batch.project(hull, point, *outputs)
        )

    def oracle(self, ranks: int = 1) -> Any:
        """Max-product, or the ``ranks`` best, and slack rescaling on one example at a time."""
        return _kernels.TreeOracle(self._batch, _checks.integer("ranks", ranks, least=1, most=MOST_RANKS))

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order; their elimination orders are not worked out again."""
        chosen = example_numbers(indices, self.n_examples)
        nodes = ranges(self.node_offsets[chosen], self.node_offsets[chosen + 1])
        edges = ranges(self.edge_offsets[chosen], self.edge_offsets[chosen + 1])
        other = type(self).__new__(type(self))
        labels = None if self._labels is None else self._labels[ranges(*(b[chosen] for b in self._part_ranges))]
        edge_offsets = offsets_of(np.diff(self.edge_offsets)[chosen])
        other._read(self.n_nodes[chosen], self.n_labels[nodes], self.edges[edges], edge_offsets, labels)
        other._order = self._order[nodes]
        if len(self.blocks) > 2:
            other._add(self.cliques.select(chosen, other.node_offsets, n_labels=other.n_labels))
        return other

    @property
    def _part_ranges(self) -> tuple[IntArray, IntArray]:
        offsets = self.blocks[0].offsets
        return offsets[:-1], offsets[1:]

    def polytope(self) -> Polytope:
        """The marginal polytope: ``q`` holds one joint table per node, over its separator and itself.

        Tables sum to 1, and agree with the table of the node's parent on the separator; node, edge and clique parts
        are sums over a table.
        """
        return _Clusters(self).polytope()


class _Clusters:
    """The joint tables of a batch: for each node over its separator (as in ``tree/plan.hpp``) and itself."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.around: list[list[int]] = [[] for _ in tree.n_labels]
        place = np.empty(len(tree.n_labels), dtype=np.int64)
        self.order: list[int] = []
        for begin, end in pairwise(tree.node_offsets.tolist()):
            self.order += (tree._order[begin:end].astype(np.int64) + begin).tolist()
        place[self.order] = np.arange(len(self.order))
        self.of_edge = []
        for u, v in zip(*(end.tolist() for end in tree.ends), strict=True):
            first, last = (u, v) if place[u] < place[v] else (v, u)
            self.around[first].append(last)
            self.of_edge.append(first)
        ends, begin = tree.cliques.ends.tolist(), tree.cliques.begin.tolist()
        self.cliques = [ends[a:b] for a, b in pairwise(begin)]
        self.of_clique = [min(clique, key=lambda u: int(place[u])) for clique in self.cliques]
        for first, clique in zip(self.of_clique, self.cliques, strict=True):
            self.around[first] += [u for u in clique if u != first]
        for v in self.order:
            separator = sorted(set(self.around[v]), key=lambda u: -int(place[u]))
            self.around[v] = separator
            if separator:
                parent = separator[-1]
                self.around[parent] += [u for u in separator if u != parent]
        sizes = [math.prod(int(tree.n_labels[u]) for u in [*self.around[v], v]) for v in range(len(tree.n_labels))]
        self.begin = offsets_of(np.array(sizes, dtype=np.int64))

    def sums(self, v: int, onto: list[int]) -> tuple[IntArray, IntArray]:
        """For each entry of node v's table: its position in q, and its position in the table over ``onto``."""
        over = [*self.around[v], v]
        shape = [int(self.tree.n_labels[u]) for u in over]
        digits = np.unravel_index(np.arange(int(self.begin[v + 1] - self.begin[v])), shape)
        at = np.zeros(len(digits[0]), dtype=np.int64)
        for u in onto:
            at = at * int(self.tree.n_labels[u]) + digits[over.index(u)]
        return int(self.begin[v]) + np.arange(len(at)), at

    def polytope(self) -> Polytope:
        tree, n = self.tree, int(self.begin[-1])
        lift: list[tuple[IntArray, IntArray]] = []
        eq: list[tuple[IntArray, IntArray, float]] = []
        rhs: list[float] = []
        for v in self.order:
            q, at = self.sums(v, [v])
            lift.append((tree._node_begin[v] + at, q))
            separator = self.around[v]
            if not separator:
                eq.append((np.full(len(q), len(rhs)), q, 1.0))
                rhs.append(1.0)
                continue
            for node, sign in ((v, 1.0), (separator[-1], -1.0)):
                q, at = self.sums(node, separator)
                eq.append((len(rhs) + at, q, sign))
            rhs += [0.0] * math.prod(int(tree.n_labels[u]) for u in separator)
        for e, (u, v) in enumerate(zip(*(end.tolist() for end in tree.ends), strict=True)):
            q, at = self.sums(self.of_edge[e], [u, v])
            lift.append((tree.starts[1] + tree._tables[e] + at, q))
        for c, clique in enumerate(self.cliques):
            q, at = self.sums(self.of_clique[c], clique)
            lift.append((tree.starts[2] + tree.cliques.tables[c] + at, q))
        return Polytope(
            lift=assembled([(*entry, 1.0) for entry in lift], (tree.n_parts, n)),
            eq=assembled(eq, (len(rhs), n)),
            eq_rhs=np.asarray(rhs, dtype=np.float64),
        )
