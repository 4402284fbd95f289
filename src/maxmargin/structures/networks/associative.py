"""Associative networks: a label for every node of a graph whose edges reward equal labels.

Example ``i`` is an undirected graph with ``K`` labels per node. Its parts are its nodes ``z_i(k)`` and, for every edge
``e = (i, j)`` and label, "both ends have label k", and its polytope is

    Z = { z >= 0,  sum_k z_i(k) = 1,  z_e(k) <= z_i(k),  z_e(k) <= z_j(k) }

(Taskar, Chatalbashev and Koller, "Learning associative Markov networks", 2004). For edge scores >= 0 its maximum bounds
the best labeling from above; with two labels the two are equal (a minimum cut), with more the maximum may be
fractional. Where an edge score is negative, ``z_e(k)`` is 0 in a maximum even if both ends have label ``k``.

``predict`` starts from the relaxed maximum, from what messages decode and from each node's best label, improves each by
expansion moves (Boykov, Veksler and Zabih 2001), every one an exact minimum cut over the whole graph, and takes the
best: never worse than rounding the relaxation. Negative edge scores count as 0 inside a move and as they are when moves
are judged. Other methods and costs: :mod:`maxmargin.structures.networks.network`, with ``K`` parts per edge.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import IntArray
from maxmargin.structures.networks.network import Network


class Associative(Network):
    """A packed batch of graphs whose edges reward equal labels; blocks ``nodes`` and ``edges`` (``K`` per edge).

    The arguments are those of :class:`~maxmargin.structures.networks.network.Network`; edges have no direction.
    """

    name = "associative network"
    loss_on_variables_only = True
    edge_sign = 1
    _table = False

    def __init__(
        self, n_nodes: npt.ArrayLike, edges: npt.ArrayLike, edge_offsets: npt.ArrayLike, n_labels: int
    ) -> None:
        super().__init__(n_nodes, edges, edge_offsets, n_labels)
        self.relaxed = self.n_labels > 2

    def _pair_parts(self, first: IntArray, second: IntArray) -> IntArray:
        alike = first == second
        return np.asarray(np.flatnonzero(alike) * self.n_labels + first[alike], dtype=np.int64)
