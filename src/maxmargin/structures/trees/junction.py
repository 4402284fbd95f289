"""Graphs of small tree width: the parts of a tree on graphs with cycles, exact through a junction tree.

Nodes are eliminated in the order of least fill-in (Rose 1972). A node and the nodes that are next to it when its turn
comes form a *cluster*; clusters and the parents they send to make a junction tree (Lauritzen and Spiegelhalter 1988).
Messages are tables over separators, the cluster without its node, so no table over two clusters is ever made. The
*width* of an order is the size of its largest cluster less one: 1 for forests, 2 for cycles, ``n`` for an ``n x n``
grid at best. Least fill-in finds good orders, not always the best one.

*Cliques* of any number of nodes can be scored: each has a table of parts over its joint labels, in a third block
``"cliques"``, and lies within a cluster.

Cost per example: argmax and ``marginals`` the entries of all clusters (``K^(width + 1)`` per node) times the tables
that meet there; the rest as :mod:`maxmargin.structures.trees.tree`. The polytope is the hull of the outputs, not
relaxed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin.structures._arrays import example_numbers
from maxmargin.structures.trees.cliques import MOST_JOINT, CliqueTables
from maxmargin.structures.trees.tree import Tree


class JunctionTree(Tree):
    """A batch of graphs of small tree width.

    Args:
        n_nodes, n_labels, edges, edge_offsets, labels: as for :class:`maxmargin.structures.Tree`, but edges may form
            cycles.
        cliques: sets of nodes that are scored together: for each example a list of tuples of node numbers, counted from
            0 within the example. A clique of nodes ``v_1 .. v_s`` has the parts ``[y_{v_1} = a_1, .., y_{v_s} = a_s]``,
            row-major in the order given, in block ``"cliques"``. A set of nodes is named at most once, one or two nodes
            are fine, and an edge between nodes of a clique keeps its own table. None: no such block.
        width: largest width allowed; None: any. In each case a cluster must have at most 100,000 joint labels.
            A clique of ``s`` nodes makes it ``s - 1`` at least.
    """

    name = "junction tree"

    width: npt.NDArray[np.int64]
    """Width of each example's elimination order, shape ``(n_examples,)``: 0 without edges, 1 for forests."""

    def __init__(
        self,
        n_nodes: npt.ArrayLike,
        n_labels: npt.ArrayLike,
        edges: npt.ArrayLike,
        edge_offsets: npt.ArrayLike,
        *,
        labels: npt.ArrayLike | None = None,
        cliques: Sequence[Any] | None = None,
        width: int | None = None,
    ) -> None:
        if width is not None:
            width = min(_checks.integer("width", width, least=1, hint="None for any"), 1 << 30)
        self._read(n_nodes, n_labels, edges, edge_offsets, labels)
        if cliques is not None:
            self._add(CliqueTables.of(cliques, self.node_offsets, n_labels=self.n_labels))
        self._order, found, entries = self._eliminate(fill=True, widest=width)
        if (found < 0).any():
            example = int(np.argmax(found < 0))
            joint = entries[example]
            problem = (
                f"needs a cluster of {joint:.3g} joint labels, more than {MOST_JOINT}"
                if joint > MOST_JOINT
                else f"has a tree width above {width}"
            )
            raise ValueError(
                f"example {example}: its graph {problem}; use GraphSVM for graphs of large tree width, or leave out "
                "edges, cliques or labels"
            )
        self.width = found

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order; their elimination orders are not worked out again."""
        other = super().select(indices)
        other.width = self.width[example_numbers(indices, self.n_examples)]
        return other
