"""Features of chains: one row per position, its weights repeated for every label; no row per label or edge is made.

With ``K`` labels and token rows ``x_t``, the score of label ``a`` at position ``t`` is ``x_t' node_weights[:, a]`` and
that of the pair ``(a, b)`` is ``pair_weights[a, b]``, plus ``x_e' edge_weights[:, a, b]`` where edges have features.

Cost per call: ``2 nnz K`` operations for nodes and ``2 nnz_e K^2`` for edges, one pass over each matrix
(:mod:`maxmargin.features.rows`); without edge features, ``n_examples K^2`` for pairs.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin import _kernels, _threads
from maxmargin.features.base import Features
from maxmargin.features.rows import Matrix, Rows
from maxmargin.structures._arrays import example_numbers, offsets_of, vector
from maxmargin.structures.base import FloatArray, IntArray


class ChainFeatures(Features):
    """Features of a batch of chains.

    Weights: node weights ``(d, K)``, then pair weights ``(K, K)``, then with edge features edge weights
    ``(d_e, K, K)``, all row-major. Parts: block "nodes", ``n_tokens * K``; then without edge features block "pairs",
    the ``K * K`` pair counts of each example, with edge features block "edges", ``n_edges * K * K``.

    Args:
        tokens: shape ``(n_tokens, d)``, one row per position of all chains, dense float64 or CSR.
        lengths: shape ``(n_examples,)``, positions per chain.
        n_labels: ``K``.
        edge_features: shape ``(n_edges, d_e)``, one row per pair of neighbours of all chains, or None.
    """

    def __init__(
        self, tokens: Matrix, lengths: npt.ArrayLike, n_labels: int, *, edge_features: Matrix | None = None
    ) -> None:
        edges = None if edge_features is None else Rows(edge_features, "edge_features")
        self._setup(Rows(tokens, "tokens"), np.asarray(lengths), n_labels, edges)

    def _setup(self, tokens: Rows, lengths: npt.NDArray[np.int64], n_labels: int, edges: Rows | None) -> None:
        if lengths.ndim != 1 or (lengths.size and not np.issubdtype(lengths.dtype, np.integer)):
            raise ValueError("lengths must be a vector of integers, one per chain")
        if lengths.size and lengths.min() < 0:
            raise ValueError("lengths must not be negative")
        if n_labels < 1:
            raise ValueError(f"n_labels must be at least 1, got {n_labels}")
        self.tokens, self.edges = tokens, edges
        self.lengths = lengths.astype(np.int64)
        self.n_labels = int(n_labels)
        self.token_offsets: IntArray = offsets_of(self.lengths)
        self.edge_offsets: IntArray = offsets_of(np.maximum(self.lengths - 1, 0))
        self.n_examples = len(self.lengths)
        n_tokens, n_edges = int(self.token_offsets[-1]), int(self.edge_offsets[-1])
        if tokens.n != n_tokens:
            raise ValueError(f"tokens has {tokens.n} rows, but the lengths add up to {n_tokens}")
        if edges is not None and edges.n != n_edges:
            raise ValueError(f"edge_features has {edges.n} rows, but the chains have {n_edges} edges")
        pairs = self.n_labels**2
        self.n_nodes = n_tokens * self.n_labels
        self.n_parts = self.n_nodes + pairs * (self.n_examples if edges is None else n_edges)
        self.pair_start = tokens.d * self.n_labels
        self.edge_start = self.pair_start + pairs
        self.n_weights = self.edge_start + (0 if edges is None else edges.d * pairs)

    def write_scores(self, weights: FloatArray, out: FloatArray) -> None:
        """Write ``F'w`` into ``out``, a contiguous vector of length ``n_parts``."""
        weights = vector(weights, self.n_weights, "weights")
        pair_weights = weights[self.pair_start : self.edge_start]
        self.tokens.times(weights[: self.pair_start], self.n_labels, out[: self.n_nodes])
        if self.edges is None:
            out[self.n_nodes :].reshape(self.n_examples, self.n_labels**2)[:] = pair_weights
        else:
            self.edges.times(weights[self.edge_start :], self.n_labels**2, out[self.n_nodes :], pair_weights)

    def write_adjoint(self, z: FloatArray, out: FloatArray) -> None:
        """Write ``F z`` into ``out``, a contiguous vector of length ``n_weights``."""
        z = vector(z, self.n_parts, "z")
        nodes, pairs = z[: self.n_nodes], z[self.n_nodes :]
        self.tokens.transpose_times(nodes, self.n_labels, out[: self.pair_start])
        _column_sums(pairs.reshape(-1, self.n_labels**2), out[self.pair_start : self.edge_start])
        if self.edges is not None:
            self.edges.transpose_times(pairs, self.n_labels**2, out[self.edge_start :])

    def part_norms(self, order: float) -> FloatArray:
        """A row's norm for every label; 1 for a pair, and where edges have features, a 1 beside them."""
        nodes = np.repeat(self.tokens.norms(order), self.n_labels)
        if self.edges is None:
            return np.concatenate([nodes, np.ones(self.n_parts - self.n_nodes)])
        edges = self.edges.norms(order)
        edges = np.hypot(1.0, edges) if order == 2 else np.maximum(1.0, edges)
        return np.concatenate([nodes, np.repeat(edges, self.n_labels**2)])

    def select(self, indices: npt.ArrayLike) -> Self:
        """The features of the given chains, in that order; consecutive ones share memory."""
        chosen = example_numbers(indices, self.n_examples)
        edges = None if self.edges is None else self.edges.select(self.edge_offsets, chosen)
        other = type(self).__new__(type(self))
        other._setup(self.tokens.select(self.token_offsets, chosen), self.lengths[chosen], self.n_labels, edges)
        return other

    def to_sparse(self) -> sp.csr_array:
        """The explicit matrix, shape ``(n_parts, n_weights)``: every row of features once per label or pair."""
        labels = sp.eye_array(self.n_labels)
        pairs = sp.eye_array(self.n_labels**2)
        nodes = sp.kron(self.tokens.to_sparse(), labels)
        repeated = sp.kron(np.ones((self.n_examples if self.edges is None else self.edges.n, 1)), pairs)
        if self.edges is None:
            return sp.csr_array(sp.block_diag([nodes, repeated]))
        return sp.csr_array(sp.block_diag([nodes, sp.hstack([repeated, sp.kron(self.edges.to_sparse(), pairs)])]))


def _column_sums(values: FloatArray, out: FloatArray) -> None:
    _kernels.linear_dense_adjoint(values, np.ones(len(values)), 1, out, _threads.current())
