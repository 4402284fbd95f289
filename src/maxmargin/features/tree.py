"""Features of trees: one row per node and per edge, their weights repeated for every label and pair of labels.

With ``K`` labels and node rows ``x_v``, the score of label ``a`` at node ``v`` is ``x_v' node_weights[:, a]`` and that
of labels ``(a, b)`` at the ends of edge ``e = (u, v)`` is ``pair_weights[a, b]``, plus ``x_e' edge_weights[:, a, b]``
where edges have features: edges have a direction, from the first end to the second as they were given.

Cost per call: ``2 nnz K`` operations for nodes and ``2 nnz_e K^2`` for edges, one pass over each matrix
(:mod:`maxmargin.features.rows`). Where some nodes do not have all labels, scores of all labels are made in between and
those of the others left out: as much memory again as parts of a batch in which all have.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.features.base import Features
from maxmargin.features.rows import Matrix, Rows
from maxmargin.features.tied import _column_sums
from maxmargin.structures._arrays import example_numbers, vector
from maxmargin.structures.base import FloatArray
from maxmargin.structures.tree import Tree


class TreeFeatures(Features):
    """Features of a batch of trees or junction trees.

    Weights: node weights ``(d, K)``, then pair weights ``(K, K)``, then with edge features edge weights
    ``(d_e, K, K)``, all row-major: those of :class:`maxmargin.features.ChainFeatures`.

    Args:
        nodes: shape ``(n_nodes, d)``, one row per node of all examples, dense float64 or CSR.
        tree: the structure; its labels (:attr:`Tree.decision_labels`) must lie in ``0 .. K - 1``.
        n_labels: ``K``.
        edge_features: shape ``(n_edges, d_e)``, one row per edge of all examples, or None.
    """

    def __init__(self, nodes: Matrix, tree: Tree, n_labels: int, *, edge_features: Matrix | None = None) -> None:
        edges = None if edge_features is None else Rows(edge_features, "edge_features")
        self._setup(Rows(nodes, "nodes"), tree, n_labels, edges)

    def _setup(self, nodes: Rows, tree: Tree, n_labels: int, edges: Rows | None) -> None:
        if nodes.n != len(tree.n_labels):
            raise ValueError(f"nodes has {nodes.n} rows, but the trees have {len(tree.n_labels)} nodes")
        if edges is not None and edges.n != len(tree.edges):
            raise ValueError(f"edge_features has {edges.n} rows, but the trees have {len(tree.edges)} edges")
        labels = tree.decision_labels
        if n_labels < 1 or int(labels.max(initial=0)) >= n_labels:
            raise ValueError(f"the trees have labels up to {int(labels.max(initial=0))}; n_labels must be larger")
        self.nodes, self.edges, self.tree, self.n_labels = nodes, edges, tree, int(n_labels)
        pairs = self.n_labels**2
        self.n_examples, self.n_parts, self.n_node_parts = tree.n_examples, tree.n_parts, tree.starts[1]
        self.pair_start = nodes.d * self.n_labels
        self.edge_start = self.pair_start + pairs
        self.n_weights = self.edge_start + (0 if edges is None else edges.d * pairs)
        # Where each part lies among those of all labels, (n_nodes, K) and (n_edges, K, K); None where it is there.
        self._pairs = self._node_at = self._edge_at = None
        if len(labels) != nodes.n * self.n_labels:
            sizes = tree.n_labels[tree.ends[0]] * tree.n_labels[tree.ends[1]]
            self._pairs = tree.pair_labels(self.n_labels)
            self._node_at = np.repeat(np.arange(nodes.n) * self.n_labels, tree.n_labels) + labels
            self._edge_at = np.repeat(np.arange(len(sizes)) * pairs, sizes) + self._pairs

    def write_scores(self, weights: FloatArray, out: FloatArray) -> None:
        """Write ``F'w`` into ``out``, a contiguous vector of length ``n_parts``."""
        weights = vector(weights, self.n_weights, "weights")
        node_out, edge_out = out[: self.n_node_parts], out[self.n_node_parts :]
        pair_weights = weights[self.pair_start : self.edge_start]
        # Indices are in range; numpy copies what it takes once more unless a mode says what else to do.
        if self._node_at is None:
            self.nodes.times(weights[: self.pair_start], self.n_labels, node_out)
        else:
            scores = np.empty(self.nodes.n * self.n_labels)
            self.nodes.times(weights[: self.pair_start], self.n_labels, scores)
            np.take(scores, self._node_at, out=node_out, mode="clip")
        if self.edges is None:
            if self._pairs is None:
                edge_out.reshape(-1, self.n_labels**2)[:] = pair_weights
            else:
                np.take(pair_weights, self._pairs, out=edge_out, mode="clip")
        elif self._edge_at is None:
            self.edges.times(weights[self.edge_start :], self.n_labels**2, edge_out, pair_weights)
        else:
            scores = np.empty(self.edges.n * self.n_labels**2)
            self.edges.times(weights[self.edge_start :], self.n_labels**2, scores, pair_weights)
            np.take(scores, self._edge_at, out=edge_out, mode="clip")

    def write_adjoint(self, z: FloatArray, out: FloatArray) -> None:
        """Write ``F z`` into ``out``, a contiguous vector of length ``n_weights``."""
        z = vector(z, self.n_parts, "z")
        nodes, edges = z[: self.n_node_parts], z[self.n_node_parts :]
        pair_out = out[self.pair_start : self.edge_start]
        if self._node_at is not None and self._edge_at is not None and self._pairs is not None:
            nodes = _spread(nodes, self._node_at, self.nodes.n * self.n_labels)
            pair_out[:] = np.bincount(self._pairs, edges, self.n_labels**2)
            if self.edges is not None:
                edges = _spread(edges, self._edge_at, self.edges.n * self.n_labels**2)
        else:
            _column_sums(edges.reshape(-1, self.n_labels**2), pair_out)
        self.nodes.transpose_times(nodes, self.n_labels, out[: self.pair_start])
        if self.edges is not None:
            self.edges.transpose_times(edges, self.n_labels**2, out[self.edge_start :])

    def select(self, indices: npt.ArrayLike) -> Self:
        """The features of the given examples, in that order; consecutive ones share memory."""
        chosen = example_numbers(indices, self.n_examples)
        edges = None if self.edges is None else self.edges.select(self.tree.edge_offsets, chosen)
        other = type(self).__new__(type(self))
        rows = self.nodes.select(self.tree.node_offsets, chosen)
        other._setup(rows, self.tree.select(chosen), self.n_labels, edges)
        return other

    def to_sparse(self) -> sp.csr_array:
        """The explicit matrix, shape ``(n_parts, n_weights)``: every row of features once per label or pair."""
        pairs = sp.eye_array(self.n_labels**2)
        nodes = sp.csr_array(sp.kron(self.nodes.to_sparse(), sp.eye_array(self.n_labels)))
        edges = sp.csr_array(sp.kron(np.ones((len(self.tree.edges), 1)), pairs))
        if self.edges is not None:
            edges = sp.csr_array(sp.hstack([edges, sp.kron(self.edges.to_sparse(), pairs)]))
        if self._node_at is not None:
            nodes, edges = nodes[self._node_at], edges[self._edge_at]
        return sp.csr_array(sp.block_diag([nodes, edges]))


def _spread(values: FloatArray, at: npt.NDArray[np.int64], size: int) -> FloatArray:
    """A vector of zeros with the values at the given places."""
    full = np.zeros(size)
    full[at] = values
    return full
