"""Cuts: 0/1 labels on the nodes of a graph whose edges favor equal labels.

Example ``i`` is an undirected graph. Its parts are its nodes ``z_j`` and its edges ``z_jk``, and its polytope is

    Z = { 0 <= z_j <= 1,  |z_j - z_k| <= z_jk <= 1 },

whose vertices with ``z_jk = |z_j - z_k|`` are the labelings. It is larger than their hull, and has the same maxima
for edge scores <= 0.

``argmax`` is one minimum cut per example: flow between neighbors first, then two search trees that grow from the
terminals (Boykov and Kolmogorov, "An experimental comparison of min-cut/max-flow algorithms", 2004), real capacities,
started from the flow of the last call; blocking flows (Dinic 1970) take over if the trees need too long, so the cost is
bounded by ``O(nodes^2 edges)`` and is near linear on meshes. Of several best labelings it gives the one with the fewest
ones.

``project`` eliminates the edges, ``z_jk = clip(a_jk, |z_j - z_k|, 1)``, and solves

    min_{0 <= x <= 1}  1/2 |x - a|^2 + sum_jk 1/2 ((|x_j - x_k| - a_jk)_+)^2

by an augmented Lagrangian over net edge flows with semismooth Newton steps inside (Rockafellar 1976; Li, Sun and Toh,
"A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso problems", 2018). It stops when the
duality gap between ``x`` and the flow is at most ``tol^2 / 2``. A Newton step costs one sparse factorization, or a few
conjugate gradient steps, on the nodes that are neither 0 nor 1, and a pass over their edges; about twenty are needed
after a warm start, forty without. Accelerated gradient steps on the flow (Beck and Teboulle 2009) finish where Newton
steps should fail, and come first on graphs of more than 30,000 nodes, where a Newton step costs as much as a dozen of
them; there ``x`` gets one value on each set of nodes that the flow joins, which brings the gap down long before ``x``
itself has settled.

``k_best`` is the fallback of :mod:`maxmargin.structures.fallbacks.generic`: up to ``k`` times the number of nodes
minimum cuts per example, so it is meant for small graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _threads
from maxmargin._sparse import sp
from maxmargin.structures._arrays import array_of, example_numbers, offsets_of, one_per_example, ranges, started, vector
from maxmargin.structures._labeled import check_edges, edge_lists
from maxmargin.structures.base import Block, FloatArray, IntArray, Points, Polytope, Structure
from maxmargin.structures.sparse import SparsePoint

_AUGMENTATIONS_PER_ARC = 20
_STEP_LIMIT = 200_000


class Cut(Structure):
    """A packed batch of graphs with 0/1 node labels; blocks ``nodes`` and ``edges``.

    Args:
        n_nodes: number of nodes of each example, shape ``(n_examples,)``.
        edges: pairs of node numbers, counted from 0 within the example, shape ``(n_edges, 2)``; no pair twice.
        edge_offsets: ``edges[edge_offsets[i]:edge_offsets[i + 1]]`` are those of example ``i``, shape
            ``(n_examples + 1,)``.
    """

    name = "cut"
    categorical = False
    loss_on_variables_only = True
    edge_sign: int | tuple[int, ...] = -1
    marginals_unsupported = (
        "marginals over all labelings of a graph are #P-hard; use geometry=Euclidean(), or TreeSVM where the graphs "
        "are trees or have small tree width"
    )

    def __init__(self, n_nodes: npt.ArrayLike, edges: npt.ArrayLike, edge_offsets: npt.ArrayLike) -> None:
        counts, pairs, offsets = edge_lists(n_nodes, edges, edge_offsets)
        if counts.size and max(int(counts.max()), int(np.diff(offsets).max())) >= 1 << 29:
            raise ValueError("an example has more than 2^29 nodes or edges; split it")
        self.edges = pairs
        self.blocks = (Block("nodes", offsets_of(counts)), Block("edges", offsets))
        twice = "keep one edge for each pair of nodes, with the features of both"
        check_edges(counts, pairs, offsets, "leave it out: an edge joins two nodes", twice)

    @property
    def n_nodes(self) -> IntArray:
        """Number of nodes of each example, shape ``(n_examples,)``."""
        return np.diff(self.blocks[0].offsets)

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """Batch vertex of 0/1 arrays, one per example: the labels on nodes, ``|z_j - z_k|`` on edges."""
        wanted, arrays = "0 or 1 for each node", []
        for example, label in enumerate(one_per_example(labels, self.n_examples, "labelings")):
            array, expected = array_of(label, f"example {example}: labels", "fiub", wanted), self.n_nodes[example]
            if array.shape != (expected,):
                raise ValueError(
                    f"the labels of example {example} have shape {array.shape}; give one 0 or 1 for each of its "
                    f"{expected} nodes"
                )
            wrong = (array != 0) & (array != 1)
            if wrong.any():
                node = int(np.argmax(wrong))
                raise ValueError(f"example {example}, node {node} has the label {array[node]}; give 0 or 1")
            arrays.append(array)
        return SparsePoint.of(self, self._vertex(np.concatenate([np.zeros(0), *arrays]).astype(np.float64)))

    def _vertex(self, nodes: FloatArray) -> FloatArray:
        """The packed vertex of the labels of all nodes."""
        tails = self._ends()
        return np.concatenate([nodes, np.abs(nodes[tails[:, 0]] - nodes[tails[:, 1]])])

    def decode(self, z: FloatArray) -> list[npt.NDArray[np.int64]]:
        """0/1 node labels of each example: 1 where the node part is over one half."""
        packed = vector(z, self.n_parts, "z")
        labels = (packed[self.variable_parts] > 0.5).astype(np.int64)
        return np.split(labels, self.blocks[0].offsets[1:-1]) if self.n_examples else []

    def flips(self, scores: FloatArray, z: FloatArray) -> FloatArray:
        """What the score of a labeling gains if one node takes the other label, cliques aside, shape ``(n_nodes,)``."""
        nodes, edges = (slice(*self.starts[b : b + 2]) for b in (0, 1))
        gain = (1.0 - 2.0 * z[nodes]) * scores[nodes]
        change = (1.0 - 2.0 * z[edges]) * scores[edges]
        for side in (0, 1):
            np.add.at(gain, self._ends()[:, side], change)
        return gain

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """``argmax_{z in Z} scores'z``: positive edges at 1, a minimum cut over the others.

        ``warm``: the flow of an earlier call on the same graphs, shape ``(n_edges,)``; any flow is a valid start, and
        the value does not depend on it.
        """
        packed = vector(scores, self.n_parts, "scores")
        flow = started(warm, (self._n_flows,))
        z, value, status = self._buffers()
        _kernels.cut_argmax(self._batch, packed, _AUGMENTATIONS_PER_ARC, flow, z, value, status, _threads.current())
        return Points(z, value, status, flow)

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection onto ``Z``, exactly feasible.

        Stops at a duality gap of ``tol^2 / 2``, or at rounding; INEXACT if neither was reached. ``warm``: the net flow
        of an earlier projection on the same graphs, shape ``(n_edges,)``.
        """
        packed = vector(point, self.n_parts, "point")
        tol = _checks.number("tol", tol, least=0)
        flow = started(warm, (self._n_flows,))
        z, value, status = self._buffers()
        gap = np.empty(self.n_examples)
        _kernels.cut_project(
            self._plan, packed, tol, True, _STEP_LIMIT, flow, z, value, gap, status, _threads.current()
        )
        return Points(z, value, status, flow)

    def oracle(self, ranks: int = 1) -> Any:
        """The minimum cut of one example at a time."""
        if _checks.integer("ranks", ranks, least=1) > 1:
            return super().oracle(ranks)
        return _kernels.CutOracle(self._batch, _AUGMENTATIONS_PER_ARC)

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples; an example may come several times."""
        return type(self)(*self._graphs_of(example_numbers(indices, self.n_examples)))

    def _graphs_of(self, chosen: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Numbers of nodes, edges and their offsets of the given examples."""
        first, last = self.blocks[1].offsets[chosen], self.blocks[1].offsets[chosen + 1]
        return self.n_nodes[chosen], self.edges[ranges(first, last)], offsets_of(last - first)

    def log_outputs(self) -> FloatArray:
        """Every labeling is an output: ``ln 2`` for each node."""
        return np.asarray(np.log(2.0) * self.n_nodes)

    def polytope(self) -> Polytope:
        """``Z`` by its inequalities, with ``q = z``."""
        nodes, parts = self.starts[1], self.starts[2]
        tails = self._ends()
        edge = nodes + np.arange(len(tails))
        ones = np.ones(len(tails))
        row = np.arange(len(tails))
        columns = np.concatenate([tails[:, 0], tails[:, 1], edge])
        shape = (len(tails), parts)
        rows = np.tile(row, 3)
        forward = sp.csr_array((np.concatenate([ones, -ones, -ones]), (rows, columns)), shape=shape)
        backward = sp.csr_array((np.concatenate([-ones, ones, -ones]), (rows, columns)), shape=shape)
        ub = sp.csr_array(sp.vstack([forward, backward, sp.eye_array(parts)], format="csr"))
        rhs = np.concatenate([np.zeros(2 * len(tails)), np.ones(parts)])
        identity = sp.csr_array(sp.eye_array(parts, format="csr"))
        return Polytope(lift=identity, ub=ub, ub_rhs=rhs)

    @property
    def _n_flows(self) -> int:
        """Edges of the graphs that the kernels see: the length of a warm start."""
        return len(self.edges)

    @cached_property
    def _batch(self) -> Any:
        """The graphs as the argmax takes them: a kernel object, made and checked once, when first asked for."""
        return _kernels.CutBatch(*self._arrays())

    def _arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The graphs as the kernels take them."""
        return self.blocks[0].offsets, self.blocks[1].offsets, self.edges.astype(np.int32)

    @cached_property
    def _plan(self) -> Any:
        """The graphs as the projection takes them: a kernel object, made and checked once, when first asked for."""
        return _kernels.CutBatch(*self._ordered())

    def _ordered(self) -> tuple[npt.NDArray[Any], ...]:
        """The graphs with nodes in elimination order and edges in the order of their nodes, and those two orders."""
        node_offsets, edge_offsets = self.blocks[0].offsets, self.blocks[1].offsets
        node_order = np.empty(self.starts[1], dtype=np.int32)
        _kernels.cut_order(self._batch, node_order)
        first = np.repeat(node_offsets[:-1], self.n_nodes)
        rank = np.empty(self.starts[1], dtype=np.int64)
        rank[node_order + first] = np.arange(self.starts[1]) - first
        edges = rank[self._ends()]
        owner = np.repeat(np.arange(self.n_examples), np.diff(edge_offsets))
        order = np.lexsort((edges.max(axis=1, initial=0), edges.min(axis=1, initial=1 << 40), owner))
        edge_order = (order - edge_offsets[owner]).astype(np.int32)
        return node_offsets, edge_offsets, edges[order].astype(np.int32), node_order, edge_order

    def _ends(self) -> IntArray:
        """Ends of every edge as positions in the packed vector, shape ``(n_edges, 2)``."""
        first = np.repeat(self.blocks[0].offsets[:-1], np.diff(self.blocks[1].offsets))
        return np.asarray(self.edges + first[:, None], dtype=np.int64)
