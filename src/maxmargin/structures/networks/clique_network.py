"""Associative networks with cliques: sets of nodes that are rewarded for having all the same label.

A clique ``c`` has ``K`` parts, "all its members have label k". Together with those of an associative network
(:mod:`maxmargin.structures.networks.associative`) the polytope is

    Z = { z >= 0,  sum_k z_j(k) = 1,  z_e(k) <= z_i(k),  z_e(k) <= z_j(k),  p_c(k) <= z_j(k)  for members j of c }

(Taskar, Chatalbashev and Koller, "Learning associative Markov networks", 2004). For scores >= 0 of edges and cliques
its maximum bounds the best labeling from above; with two labels the two are equal, with more the maximum may be
fractional.

``argmax`` is that of an associative network with one more label and one more node per clique. The label, "no", is worse
than all others at the nodes of the graph; the node of a clique of ``s`` members prefers it, at score 0, to a label
``k``, at score ``(1 - s) t(k)``, unless edges of reward ``t(k)`` to all members make up for that:

    max_x  (1 - s) t x + sum_j t min(x, z_j(k))  =  t min_j z_j(k).

``predict`` improves the rounded maximum, and each node's best label, by expansion moves (Boykov, Veksler and Zabih
2001), every one an exact minimum cut with cliques (Kohli, Kumar and Torr 2007), in one batch over all examples.
``project`` takes semismooth Newton steps (Qi and Sun 1993) on the multipliers of ``z_e(k) <= z_j(k)`` and
``p_c(k) <= z_j(k)``, each by conjugate gradients; a product costs ``K`` for every member of an edge or clique.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _threads
from maxmargin._sparse import sp
from maxmargin.structures._arrays import assembled, example_numbers, offsets_of, ranges, started, vector
from maxmargin.structures.base import Block, FloatArray, IntArray, Points, PointStatus, Polytope, Ragged
from maxmargin.structures.clique_sets import Cliques
from maxmargin.structures.cuts.clique_cut import CliqueCut
from maxmargin.structures.fallbacks import generic
from maxmargin.structures.networks.associative import Associative
from maxmargin.structures.sparse import SparsePoint

MOST_ROUNDS = 20
"""Expansion moves of every label that one prediction may take."""

_NEWTON_LIMIT = 300


class CliqueNetwork(Associative):
    """A packed batch of graphs with ``K`` labels; blocks ``nodes``, ``edges`` and ``cliques`` (``K`` per clique).

    Args:
        n_nodes, edges, edge_offsets, n_labels: as for :class:`~maxmargin.structures.Associative`.
        cliques: for each example a list of tuples of two or more node numbers, counted from 0 within the example; no
            set of nodes twice.
    """

    name = "associative network with cliques"

    def __init__(
        self,
        n_nodes: npt.ArrayLike,
        edges: npt.ArrayLike,
        edge_offsets: npt.ArrayLike,
        n_labels: int,
        cliques: Sequence[Any] | Cliques,
    ) -> None:
        super().__init__(n_nodes, edges, edge_offsets, n_labels)
        node_offsets = self._graphs.blocks[0].offsets
        self.cliques = cliques if isinstance(cliques, Cliques) else Cliques.of(cliques, node_offsets)
        self.blocks = (*self.blocks, Block("cliques", self.n_labels * self.cliques.offsets))

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """The packed vertex of one labeling per example (integers in ``0 .. K - 1``, one per node)."""
        pairwise = super().encode(labels)
        flat = pairwise.index[: self.starts[1] // self.n_labels] % self.n_labels
        same = self._common(flat)
        alike = np.flatnonzero(same >= 0)
        parts = self.starts[2] + alike * self.n_labels + same[alike]
        return SparsePoint.from_index(self, np.concatenate([pairwise.index, parts]))

    def _common(self, labels: IntArray) -> IntArray:
        """The label that all members of each clique have, or -1: shape ``(n_cliques,)``."""
        own, begin = labels[self.cliques.ends], self.cliques.begin[:-1]
        if not len(begin):
            return np.zeros(0, dtype=np.int64)
        least = np.minimum.reduceat(own, begin)
        return np.where(least == np.maximum.reduceat(own, begin), least, -1)

    def k_best(self, scores: FloatArray, k: int) -> list[Points]:
        """As :meth:`Associative.k_best`, one argmax after the other; negative clique scores count as 0, too."""
        return super().k_best(scores, k) if self.relaxed else generic.k_best(self, scores, k)

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """A maximum of ``scores'z`` over the polytope, and as ``value`` a bound of it from above.

        ``warm``: that of an earlier call on the same graphs; any is a start.
        """
        return self.argmax_within(scores, 0.0, warm=warm)

    def argmax_within(self, scores: FloatArray, tol: float, *, warm: Any = None) -> Points:
        """As :meth:`argmax`, where bounds may exceed the scores of the points by ``tol`` in all."""
        packed = vector(scores, self.n_parts, "scores")
        found = self._wide.argmax_within(self._widened(packed), tol, warm=warm)
        return Points(self._narrowed(found.z, packed, found.status), found.value, found.status, found.warm)

    def _widened(self, scores: FloatArray) -> FloatArray:
        """The scores of the network with a label "no" and nodes of cliques."""
        k, own = self.n_labels, self.cliques
        nodes, edges, cliques = (part.reshape(-1, k) for part in np.split(scores, self.starts[1:3]))
        rewards = np.where(np.isfinite(cliques), np.maximum(cliques, 0.0), np.nan)
        all_nodes = np.empty((len(nodes) + len(own), k + 1))
        all_nodes[self._own_nodes, :k] = nodes
        # Every other label is better than "no", whatever edges and cliques, which only reward, add to it.
        with np.errstate(all="ignore"):
            spread = nodes.max(axis=1) - nodes.min(axis=1) + 1e-3 * np.abs(nodes).max(axis=1) + 1e-300
            all_nodes[self._own_nodes, k] = nodes.min(axis=1) - spread
        all_nodes[self._clique_nodes, :k] = (1.0 - own.sizes[:, None]) * rewards
        all_nodes[self._clique_nodes, k] = 0.0
        all_edges = np.zeros((len(edges) + len(own.nodes), k + 1))
        all_edges[self._own_edges, :k] = edges
        all_edges[self._member_edges, :k] = np.repeat(rewards, own.sizes, axis=0)
        return np.concatenate([all_nodes.ravel(), all_edges.ravel()])

    def _narrowed(self, wide: FloatArray, scores: FloatArray, status: npt.NDArray[np.int8]) -> FloatArray:
        """The point of this network at a point of the other: parts of cliques are as large as they may be."""
        k, own = self.n_labels, self.cliques
        all_nodes, all_edges = (part.reshape(-1, k + 1) for part in np.split(wide, [self._wide.starts[1]]))
        nodes = all_nodes[self._own_nodes].copy()
        best = nodes[:, :k].argmax(axis=1) if len(nodes) else np.zeros(0, dtype=np.int64)
        nodes[np.arange(len(nodes)), best] += nodes[:, k]  # rounding may leave a trace of "no"
        cliques = np.zeros((len(own), k))
        if len(own):
            cliques = np.minimum.reduceat(nodes[own.ends, :k], own.begin[:-1], axis=0)
            cliques[scores[self.starts[2] :].reshape(-1, k) < 0] = 0.0
        z = np.concatenate([part[:, :k].ravel() for part in (nodes, all_edges[self._own_edges], cliques)])
        if (status == PointStatus.NONFINITE).any():
            z[self.to_parts((status == PointStatus.NONFINITE).astype(np.float64)) > 0] = 0.0
        return z

    @cached_property
    def _wide(self) -> Associative:
        """The network with one more label, and in each example a node per clique after the others."""
        own = self.cliques
        counts = np.diff(own.offsets)
        added = np.repeat(self.n_nodes[own.owner] + np.arange(len(own)) - own.offsets[own.owner], own.sizes)
        edges = np.empty((len(self.edges) + len(own.nodes), 2), dtype=np.int64)
        edges[self._own_edges] = self.edges
        edges[self._member_edges] = np.stack([added, own.nodes], axis=1)
        members = own.begin[own.offsets]
        return Associative(self.n_nodes + counts, edges, self.edge_offsets + members, self.n_labels + 1)

    @cached_property
    def _own_nodes(self) -> IntArray:
        """Where the nodes of this network are among those of the other."""
        return np.arange(self.starts[1] // self.n_labels) + np.repeat(self.cliques.offsets[:-1], self.n_nodes)

    @cached_property
    def _clique_nodes(self) -> IntArray:
        """Where the nodes of cliques are."""
        return np.arange(len(self.cliques)) + self.cliques.node_offsets[1:][self.cliques.owner]

    @cached_property
    def _own_edges(self) -> IntArray:
        """Where the edges of this network are among those of the other: before those of cliques in each example."""
        before = self.cliques.begin[self.cliques.offsets[:-1]]
        return np.arange(len(self.edges)) + np.repeat(before, np.diff(self.edge_offsets))

    @cached_property
    def _member_edges(self) -> IntArray:
        """Where the edges from cliques to their members are."""
        after = self.edge_offsets[1:][self.cliques.owner]
        return np.arange(len(self.cliques.nodes)) + np.repeat(after, self.cliques.sizes)

    def predict(self, scores: FloatArray) -> Points:
        """The labeling of :meth:`relax`, for examples of any size."""
        return self.relax(scores)[1]

    def relax(self, scores: FloatArray) -> tuple[Points, Points]:
        """The maximum over the polytope, and a labeling near it: :meth:`argmax` and :meth:`predict` in one."""
        packed = vector(scores, self.n_parts, "scores")
        points = self.argmax(packed)
        finite = points.status != PointStatus.NONFINITE
        usable = np.where(self.to_parts(finite.astype(np.float64)) > 0, packed, 0.0)
        z = np.zeros(self.n_parts)
        value = np.full(self.n_examples, -np.inf)
        for nodes in (points.z, usable):  # the rounded maximum, and the best label of each node alone
            labels = nodes[self.variable_parts].reshape(-1, self.n_labels).argmax(axis=1)
            found, worth = self._expand(usable, labels)
            better = worth > value
            kept = self.to_parts(better.astype(np.float64)) > 0
            z[kept], value[better] = found[kept], worth[better]
        certain = points.value - value <= self._certain(usable)
        status = np.where(certain, PointStatus.OK, PointStatus.INEXACT).astype(np.int8)
        status[~finite], value[~finite] = PointStatus.NONFINITE, 0.0
        z[self.to_parts((~finite).astype(np.float64)) > 0] = 0.0
        return points, Points(z, value, status)

    def _expand(self, scores: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
        """The labelings that expansion moves lead to, and their scores."""
        z, value = self._valued(scores, labels)
        unchanged = np.zeros(self.n_examples, dtype=np.int64)
        for move in range(MOST_ROUNDS * self.n_labels):
            if (unchanged >= self.n_labels).all():
                break
            wanted = move % self.n_labels
            moved = np.where(self._takes(scores, labels, wanted), wanted, labels)
            found, worth = self._valued(scores, moved)
            better = (worth > value) & (unchanged < self.n_labels)
            unchanged = np.where(better, 1, unchanged + 1)
            labels = np.where(np.repeat(better, self.n_nodes), moved, labels)
            kept = self.to_parts(better.astype(np.float64)) > 0
            z[kept], value[better] = found[kept], worth[better]
        return z, value

    def _valued(self, scores: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
        """The packed vertex of a labeling of all nodes, and its scores."""
        z = self.encode(Ragged(labels, self.cliques.node_offsets)).dense()
        return z, self.by_example(scores * z)

    def _takes(self, scores: FloatArray, labels: IntArray, wanted: int) -> npt.NDArray[np.bool_]:
        """Which nodes take the label in the best labeling where every node keeps its own or takes it."""
        nodes, edges, cliques = (part.reshape(-1, self.n_labels) for part in np.split(scores, self.starts[1:3]))
        gain = nodes[:, wanted] - nodes[np.arange(len(nodes)), labels]
        ends = self._graphs._ends()
        first, second = labels[ends[:, 0]], labels[ends[:, 1]]
        rewards = np.maximum(edges, 0.0)
        rows = np.arange(len(edges))
        keep = np.where(first == second, rewards[rows, first], 0.0)
        both = rewards[:, wanted]
        # If one end has the label already, the other one is enough.
        only_first, only_second = np.where(second == wanted, both, 0.0), np.where(first == wanted, both, 0.0)
        np.add.at(gain, ends[:, 0], 0.5 * (both + only_first - keep - only_second))
        np.add.at(gain, ends[:, 1], 0.5 * (both + only_second - keep - only_first))
        price = np.maximum(0.0, 0.5 * (keep + both - only_first - only_second))
        gain[labels == wanted] = 1.0  # a node that has the label takes it: nothing rewards the other choice
        same = self._common(labels)
        of_cliques = np.zeros((len(cliques), 2))
        kept = np.flatnonzero((same >= 0) & (same != wanted))
        of_cliques[kept, 0] = cliques[kept, same[kept]]
        of_cliques[:, 1] = cliques[:, wanted]
        asked = np.concatenate([gain, -price, np.maximum(of_cliques, 0.0).ravel()])
        return self._moves.argmax(asked).z[: len(gain)] > 0.5

    @cached_property
    def _moves(self) -> CliqueCut:
        """The cuts of expansion moves."""
        return CliqueCut(self.n_nodes, self.edges, self.edge_offsets, self.cliques)

    def _range(self, scores: FloatArray) -> FloatArray:
        """How far scores of outputs can differ, at most, shape ``(n_examples,)``."""
        pairwise = self._pairwise._range(scores[: self.starts[2]])
        tables = scores[self.starts[2] :].reshape(-1, self.n_labels)
        spread = tables.max(axis=1, initial=0.0) - tables.min(axis=1, initial=0.0)  # 0: members that differ
        return pairwise + np.bincount(self.cliques.owner, spread, self.n_examples)

    @cached_property
    def _pairwise(self) -> Associative:
        """The network without its cliques."""
        return Associative(self.n_nodes, self.edges, self.edge_offsets, self.n_labels)

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection onto the polytope, feasible to rounding.

        Stops at a duality gap of ``tol^2 / 2``, or at rounding; INEXACT if neither was reached. ``warm``: the
        multipliers of an earlier projection on the same graphs, one for each member of an edge or clique and label.
        """
        packed, tol = vector(point, self.n_parts, "point"), _checks.number("tol", tol, least=0)
        multipliers = started(warm, (2 * len(self.edges) + len(self.cliques.nodes), self.n_labels))
        z, value, status = self._buffers()
        _kernels.clique_project(
            self._groups, self.n_labels, packed, tol, _NEWTON_LIMIT, multipliers, z, value, np.empty_like(value),
            status, _threads.current(),
        )  # fmt: skip
        return Points(z, value, status, multipliers)

    @cached_property
    def _groups(self) -> Any:
        """The graphs as the projection takes them: in each example the ends of its edges, then its cliques."""
        own = self.cliques
        of_edge = np.repeat(np.arange(self.n_examples), np.diff(self.edge_offsets))
        order = np.argsort(np.concatenate([of_edge, own.owner]), kind="stable")
        begin = offsets_of(np.concatenate([np.full(len(self.edges), 2), own.sizes]))
        nodes = np.concatenate([self.edges.ravel(), own.nodes]).astype(np.int32)
        return _kernels.CliqueBatch(
            own.node_offsets,
            self.edge_offsets,
            own.offsets,
            offsets_of(np.diff(begin)[order]),
            nodes[ranges(begin[order], begin[order + 1])],
        )

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples; an example may come several times."""
        chosen = example_numbers(indices, self.n_examples)
        n_nodes, edges, edge_offsets = self._graphs._graphs_of(chosen)
        return type(self)(n_nodes, edges, edge_offsets, self.n_labels, self.cliques.select(chosen, offsets_of(n_nodes)))

    def polytope(self) -> Polytope:
        """``Z`` by its constraints, with ``q = z``."""
        pairwise, own, k = self._pairwise.polytope(), self.cliques, self.n_labels
        n, more = self.n_parts, self.n_parts - self.starts[2]
        row = np.arange(len(own.nodes) * k)
        part = np.repeat(np.arange(len(own)), own.sizes)[:, None] * k + np.arange(k)
        member = own.ends[:, None] * k + np.arange(k)
        rows = assembled([(row, self.starts[2] + part.ravel(), 1.0), (row, member.ravel(), -1.0)], (len(row), n))
        ub, eq = (
            sp.csr_array(sp.hstack([given, sp.csr_array((given.shape[0], more))], format="csr"))
            for given in (pairwise.ub, pairwise.eq)
        )
        lift = sp.csr_array(sp.eye_array(n, format="csr"))
        both = sp.csr_array(sp.vstack([ub, rows], format="csr"))
        rhs = np.concatenate([pairwise.ub_rhs, np.zeros(len(row))])
        return Polytope(lift, both, rhs, eq, pairwise.eq_rhs)
