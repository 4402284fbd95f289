"""Cuts with cliques: 0/1 labels on the nodes of a graph, and sets of nodes that favor being all alike.

A clique ``c`` has two parts, ``p_c0`` "all its members have label 0" and ``p_c1`` "all have label 1". Together with
those of a cut (:mod:`maxmargin.structures.cuts.cut`) the polytope is

    Z = { 0 <= z_j <= 1,  |z_j - z_k| <= z_jk <= 1,  0 <= p_c0 <= 1 - z_j,  0 <= p_c1 <= z_j  for members j of c }.

For edge scores <= 0 and clique scores >= 0 its maxima are labelings. Equal scores of the two parts are the P^n Potts
model (Kohli, Kumar and Torr, "P3 & beyond: solving energies with higher order cliques", 2007). Every regular function
of three labels is a sum of functions of one, of regular functions of two, and of one part of their clique times a
number >= 0 (Kolmogorov and Zabih, "What energy functions can be minimized via graph cuts?", 2004).

``argmax`` is one minimum cut on a graph with two more nodes per clique and two more edges per member; for scores of any
sign it is the maximum over ``Z``. ``project`` has the same additional nodes: ``p_c1`` is one whose edges to the members
may only rise, so their flow has one direction. Methods and costs are those of cuts on the larger graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _kernels
from maxmargin._sparse import sp
from maxmargin.structures._arrays import assembled, example_numbers, offsets_of
from maxmargin.structures.base import Block, FloatArray, Polytope
from maxmargin.structures.clique_sets import Cliques
from maxmargin.structures.cuts.cut import Cut


class CliqueCut(Cut):
    """A packed batch of graphs with 0/1 node labels; blocks ``nodes``, ``edges`` and ``cliques`` (two per clique).

    Args:
        n_nodes, edges, edge_offsets: as for :class:`~maxmargin.structures.Cut`.
        cliques: for each example a list of tuples of two or more node numbers, counted from 0 within the example; no
            set of nodes twice.
    """

    name = "cut with cliques"
    edge_sign = (-1, 1)

    def __init__(
        self,
        n_nodes: npt.ArrayLike,
        edges: npt.ArrayLike,
        edge_offsets: npt.ArrayLike,
        cliques: Sequence[Any] | Cliques,
    ) -> None:
        super().__init__(n_nodes, edges, edge_offsets)
        node_offsets = self.blocks[0].offsets
        self.cliques = cliques if isinstance(cliques, Cliques) else Cliques.of(cliques, node_offsets)
        self.blocks = (*self.blocks, Block("cliques", 2 * self.cliques.offsets))

    def _vertex(self, nodes: FloatArray) -> FloatArray:
        own = self.cliques
        labels = nodes[own.ends]
        both = np.zeros((len(own), 2))
        if len(own):
            both[:, 0] = 1.0 - np.maximum.reduceat(labels, own.begin[:-1])
            both[:, 1] = np.minimum.reduceat(labels, own.begin[:-1])
        return np.concatenate([super()._vertex(nodes), both.ravel()])

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples; an example may come several times."""
        chosen = example_numbers(indices, self.n_examples)
        n_nodes, edges, edge_offsets = self._graphs_of(chosen)
        return type(self)(n_nodes, edges, edge_offsets, self.cliques.select(chosen, offsets_of(n_nodes)))

    def polytope(self) -> Polytope:
        """``Z`` by its inequalities, with ``q = z``."""
        pairs, own, n = super().polytope(), self.cliques, self.n_parts
        member = np.arange(len(own.nodes))
        part = self.starts[2] + 2 * np.repeat(np.arange(len(own)), own.sizes)
        rows = assembled(
            [
                (member, part, 1.0),
                (member, own.ends, 1.0),
                (len(member) + member, part + 1, 1.0),
                (len(member) + member, own.ends, -1.0),
            ],
            (2 * len(member), n),
        )
        wide = sp.csr_array(sp.hstack([pairs.ub, sp.csr_array((pairs.ub.shape[0], 2 * len(own)))], format="csr"))
        rhs = np.concatenate([pairs.ub_rhs, np.repeat([1.0, 0.0], len(member))])
        lift = sp.csr_array(sp.eye_array(n, format="csr"))
        return Polytope(lift=lift, ub=sp.csr_array(sp.vstack([wide, rows], format="csr")), ub_rhs=rhs)

    @property
    def _n_flows(self) -> int:
        return len(self.edges) + 2 * len(self.cliques.nodes)

    @cached_property
    def _batch(self) -> Any:
        none = np.zeros(0, dtype=np.int32)
        return _kernels.CutBatch(*(*self._wide._arrays(), none, none, *self._own()))

    @cached_property
    def _plan(self) -> Any:
        return _kernels.CutBatch(*(*self._wide._ordered(), *self._own()))

    def _own(self) -> tuple[npt.NDArray[np.int64], ...]:
        """Where the nodes, edges and cliques of each example begin."""
        return self.blocks[0].offsets, self.blocks[1].offsets, self.cliques.offsets

    @cached_property
    def _wide(self) -> Cut:
        """The graphs with the nodes and edges that cliques add, in the order that the kernels expect.

        Clique ``c`` of an example of ``n`` nodes adds node ``n + 2 c``, with edges from all members, and node
        ``n + 2 c + 1``, with edges to them; in this direction labels must not fall.
        """
        own, counts = self.cliques, np.diff(self.cliques.offsets)
        added = np.repeat(self.n_nodes[own.owner] + 2 * (np.arange(len(own)) - own.offsets[own.owner]), own.sizes)
        below, above = np.stack([own.nodes, added], axis=1), np.stack([added + 1, own.nodes], axis=1)
        of_member = np.repeat(own.owner, own.sizes)
        of_edge = np.repeat(np.arange(self.n_examples), np.diff(self.blocks[1].offsets))
        owner = np.concatenate([of_edge, of_member, of_member])
        order = np.argsort(owner, kind="stable")
        offsets = np.searchsorted(owner[order], np.arange(self.n_examples + 1))
        return Cut(self.n_nodes + 2 * counts, np.concatenate([self.edges, below, above])[order], offsets)
