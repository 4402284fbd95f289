"""General graphs: a label for every node, any score for every pair of labels at the ends of an edge.

Example ``i`` is a graph with ``K`` labels per node. Its parts are its nodes ``z_i(a)`` and a table ``z_e(a, b)`` for
every edge ``e = (i, j)``, row-major in (first end, second end), and its polytope is the local polytope

    Z = { z >= 0,  sum_a z_i(a) = 1,  sum_b z_e(a, b) = z_i(a),  sum_a z_e(a, b) = z_j(b) }

(Wainwright and Jordan, "Graphical models, exponential families, and variational inference", 2008, chapter 8). Its 0/1
vertices are the labelings. On trees, and for two labels where every table has ``w(0, 0) + w(1, 1) >= w(0, 1) + w(1,
0)``, every maximum is attained at one of them; in general others are fractional, and the maximum over ``Z`` bounds the
best labeling from above. Methods and costs: :mod:`maxmargin.structures.networks.network`.

``predict`` starts from the relaxed maximum, from what messages decode and from each node's best label, changes single
nodes while that helps, and tries the best of these again with the labels of some fractional nodes drawn from the
relaxed maximum; the numbers drawn are the same in every call.
"""

from __future__ import annotations

import numpy as np

from maxmargin.structures.base import IntArray
from maxmargin.structures.networks.network import Network


class PairwiseGraph(Network):
    """A packed batch of graphs with labeled nodes; blocks ``nodes`` and ``edges`` (``K * K`` per edge).

    The arguments are those of :class:`~maxmargin.structures.networks.network.Network`; edges have a direction as given.
    """

    name = "graph"
    relaxed = True
    _table = True

    def _pair_parts(self, first: IntArray, second: IntArray) -> IntArray:
        return (np.arange(len(first)) * self.n_labels + first) * self.n_labels + second
