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

With two labels a network is a cut: nodes have the scores ``node(1) - node(0)`` and half of ``edge(1) - edge(0)`` of
each of their edges, an edge between unequal labels costs half of ``edge(0) + edge(1)``. ``k_best`` lists the best cuts,
each after the first by as many minimum cuts as there are nodes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin.structures._arrays import vector
from maxmargin.structures.base import FloatArray, IntArray, Points, PointStatus
from maxmargin.structures.networks.network import Network

PREDICTED_PARTS = 300_000
"""Larger examples are predicted without proximal steps: on 100,000 nodes with five labels these take 18 s, messages and
expansion moves 1 s, and the labelings are as good to one part in a million."""


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

    def predict(self, scores: FloatArray) -> Points:
        """As in :class:`~maxmargin.structures.networks.network.Network`.

        Examples of more than :data:`PREDICTED_PARTS` parts are decided from the bound that messages find, which
        :meth:`relax` would lower further.
        """
        large = self.sizes > PREDICTED_PARTS
        if not large.any():
            return super().predict(scores)
        packed = vector(scores, self.n_parts, "scores")
        return self._rounded(packed, self._maximum(packed, None, large))

    def k_best(self, scores: FloatArray, k: int) -> list[Points]:
        """The ``k`` best labelings of networks with at most two labels, exactly; refused for more.

        Negative edge scores count as 0, as in :meth:`argmax`.
        """
        if self.relaxed:
            return super().k_best(scores, k)
        packed, split, K = vector(scores, self.n_parts, "scores"), self.starts[1], self.n_labels
        rewards = np.where(packed[split:] > -np.inf, np.maximum(packed[split:], 0.0), np.nan).reshape(-1, K)
        nodes, ends = packed[:split].reshape(-1, K), self._graphs._ends()
        if K == 1:  # one labeling, the empty cut
            once = min(1, _checks.integer("k", k, least=1))
            ranks = self._graphs.k_best(np.where(np.isfinite(packed), -1.0, np.nan), once)
        else:
            node_scores = nodes[:, 1] - nodes[:, 0]
            np.add.at(node_scores, ends, 0.5 * (rewards[:, 1] - rewards[:, 0])[:, None])
            ranks = self._graphs.k_best(np.concatenate([node_scores, -0.5 * rewards.sum(axis=1)]), k)
        return [self._labeled(packed, cut, ends) for cut in ranks]

    def _labeled(self, scores: FloatArray, cut: Points, ends: IntArray) -> Points:
        """The labelings of a cut of the same graphs, with their true scores."""
        labels = (cut.z[: self._graphs.starts[1]] > 0.5).astype(np.int64)
        z = np.zeros(self.n_parts)
        z[np.arange(len(labels)) * self.n_labels + labels] = 1.0
        z[self.starts[1] + self._pair_parts(labels[ends[:, 0]], labels[ends[:, 1]])] = 1.0
        z[self.starts[1] :][~(scores[self.starts[1] :] >= 0.0)] = 0.0
        there = cut.status <= PointStatus.INEXACT
        z[self.to_parts(there.astype(np.float64)) == 0.0] = 0.0
        value = self.by_example(np.where(z > 0.0, scores, 0.0))
        return Points(z, np.where(there, value, cut.value), cut.status)
