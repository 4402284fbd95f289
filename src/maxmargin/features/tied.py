"""Features of labeled nodes and edges: one row each, its weights repeated for every label or pair of labels.

Row ``x_r`` of an item and weights ``W``, shape ``(d, m)``, give the item's ``m`` parts the scores ``x_r'W``, plus a
constant row of weights if asked for: :class:`TiedRows`. Chains, trees and graphs put two such maps side by side
(:class:`PairwiseFeatures`): nodes with ``m = K``, and edges with ``m = K^2`` and a constant row, the pair weights;
associative networks have ``m = K`` for edges too.

Cost per call: ``2 nnz m`` operations, one pass over the matrix (:mod:`maxmargin.features.rows`); with ``alike``
``2 nnz``. Where some parts are left out, those of whole items are made in between: as much memory again as parts of a
batch in which none are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _memory, _threads
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin._vectors import rises
from maxmargin.features.base import Features
from maxmargin.features.entries import Entries, Given
from maxmargin.features.parts import Stacked
from maxmargin.features.rows import Matrix, Rows, row_offsets
from maxmargin.features.supported import Support, SupportedRows, with_constant
from maxmargin.structures._arrays import example_numbers, integers, lengths_of, offsets_of, ranges, vector
from maxmargin.structures.base import FloatArray, IntArray


class TiedRows(Features):
    """Features of one block of labeled items.

    Weights: with ``constant`` first ``m`` numbers, then ``(d, m)`` row-major; with ``alike`` only ``d``, the same for
    all ``m`` parts of an item. Parts: item-major, ``m`` per row, or those of them that are ``kept``.

    Args:
        matrix: shape ``(n_items, d)``, one row per node or edge of all examples, dense float64 or CSR.
        offsets: shape ``(n_examples + 1,)``: example ``i`` has rows ``offsets[i]:offsets[i + 1]``.
        m: parts per row.
        constant: whether every row has ``m`` more weights that do not depend on it.
        alike: whether all parts of a row have the same weights.
        kept: which of the ``n_items * m`` parts there are, rising, shape ``(n_parts,)``; None for all.
    """

    def __init__(
        self,
        matrix: Matrix | Rows,
        offsets: npt.ArrayLike,
        m: int,
        *,
        constant: bool = False,
        alike: bool = False,
        kept: IntArray | None = None,
    ) -> None:
        rows = matrix if isinstance(matrix, Rows) else Rows(matrix, "the feature matrix")
        self.rows, self.offsets, self.m = rows, row_offsets(offsets, rows.n), _checks.integer("m", m, least=1)
        self.constant, self.alike = _checks.flag("constant", constant), _checks.flag("alike", alike)
        if constant and alike:
            raise ValueError("give constant or alike, not both")
        self.start = self.m if constant else 0
        self.n_weights = self.start + rows.d * (1 if alike else self.m)
        self.n_parts, self.n_examples = rows.n * self.m, len(self.offsets) - 1
        _memory.require(
            8.0 * self.n_weights, f"weights of {rows.d} features and {self.m} labels or pairs", "give fewer"
        )
        self.kept = self._column = None
        if kept is not None:
            kept = integers(kept, "kept")
            inside = kept.ndim == 1 and (not kept.size or (kept[0] >= 0 and kept[-1] < self.n_parts))
            if not inside or not rises(kept, strictly=True):
                raise ValueError(f"kept parts must rise and lie in 0..{self.n_parts - 1}")
            self.n_parts, self.kept = len(kept), kept
            self._column = kept % self.m if constant else None

    def fingerprint_data(self) -> Iterable[Any]:
        """Matrix, offsets and which parts a row has."""
        return self.rows, self.offsets, self.m, self.constant, self.alike, self.kept

    def write_scores(self, weights: FloatArray, out: FloatArray) -> None:
        """Write ``F'w`` into ``out``, a contiguous vector of length ``n_parts``."""
        weights = vector(weights, self.n_weights, "weights")
        if self.kept is None:
            self._write_all(weights, out)
            return
        # Indices are in range; mode="clip" spares numpy a copy of the result.
        if self._column is not None and self.rows.d == 0:
            np.take(weights, self._column, out=out, mode="clip")
            return
        scores = np.empty(self.rows.n * self.m)
        self._write_all(weights, scores)
        np.take(scores, self.kept, out=out, mode="clip")

    def _write_all(self, weights: FloatArray, out: FloatArray) -> None:
        if self.alike:
            column = np.empty(self.rows.n)
            self.rows.times(weights, 1, column)
            out.reshape(-1, self.m)[:] = column[:, None]
        elif self.constant and self.rows.d == 0:
            out.reshape(-1, self.m)[:] = weights  # a copy: nothing to multiply
        else:
            self.rows.times(weights[self.start :], self.m, out, weights[: self.start])

    def write_adjoint(self, z: FloatArray, out: FloatArray) -> None:
        """Write ``F z`` into ``out``, a contiguous vector of length ``n_weights``."""
        z = vector(z, self.n_parts, "z")
        if self.constant:
            self._write_sums(z, out[: self.start])
        if self.alike:
            self.rows.transpose_times(self._spread(z).reshape(-1, self.m).sum(axis=1), 1, out)
        elif self.rows.d:
            self.rows.transpose_times(self._spread(z), self.m, out[self.start :])

    def _write_sums(self, z: FloatArray, out: FloatArray) -> None:
        """The adjoint of the constant row: sums over all items."""
        if self._column is not None:
            out[:] = np.bincount(self._column, z, self.m)
        else:
            ones = np.ones(self.rows.n)
            _kernels.linear_dense_adjoint(z.reshape(-1, self.m), ones, 1, out, _threads.current())

    def _spread(self, z: FloatArray) -> FloatArray:
        """The values of all parts, 0 for those that are not kept."""
        if self.kept is None:
            return z
        full = np.zeros(self.rows.n * self.m)
        full[self.kept] = z
        return full

    def per_example(self, blocks: Sequence[IntArray]) -> Any:
        """The same rows, read by example."""
        return self.rows.per_example(self.offsets, self.m, constant=self.constant, alike=self.alike, kept=self.kept)

    def part_norms(self, order: float) -> FloatArray:
        """The norm of the item's row, with a 1 beside it where there is a constant."""
        norms = self.rows.norms(order)
        if self.constant:
            norms = np.hypot(1.0, norms) if order == 2 else np.maximum(1.0, norms)
        return np.repeat(norms, self.m) if self.kept is None else np.asarray(norms[self.kept // self.m])

    def weight_norms(self, scale: FloatArray | None = None) -> FloatArray:
        """Norms of the columns, each with the scales of the parts that see it."""
        given = np.ones(self.n_parts) if scale is None else vector(scale, self.n_parts, "scale")
        squares = np.square(self._spread(given)).reshape(-1, self.m)
        if self.alike:
            return self.rows.column_norms(np.sqrt(squares.sum(axis=1)))
        varying = self.rows.column_norms(np.sqrt(squares)).ravel()
        return np.concatenate([np.sqrt(squares.sum(axis=0)), varying]) if self.constant else varying

    def select(self, indices: npt.ArrayLike) -> Self:
        """The features of the given examples, in that order; consecutive ones share memory."""
        chosen = example_numbers(indices, self.n_examples)
        offsets, kept = offsets_of(np.diff(self.offsets)[chosen]), None
        if self.kept is not None:
            bounds = np.searchsorted(self.kept, self.offsets * self.m)
            first, last = bounds[chosen], bounds[chosen + 1]
            moved = (offsets[:-1] - self.offsets[chosen]) * self.m
            kept = self.kept[ranges(first, last)] + np.repeat(moved, last - first)
        rows = self.rows.select(self.offsets, chosen)
        return type(self)(rows, offsets, self.m, constant=self.constant, alike=self.alike, kept=kept)

    def part_rows(self, parts: IntArray) -> sp.csr_array:
        """The rows of their items, in the columns of their places."""
        item, place = np.divmod(parts if self.kept is None else self.kept[parts], self.m)
        rows = self.rows.taken(item)
        if self.alike:
            return rows
        columns = rows.indices.astype(np.int64) * self.m + np.repeat(place, np.diff(rows.indptr))
        varying = sp.csr_array((rows.data, columns, rows.indptr), shape=(len(parts), self.rows.d * self.m))
        return with_constant(varying, place, self.m) if self.constant else varying

    def to_sparse(self) -> sp.csr_array:
        """The explicit matrix, shape ``(n_parts, n_weights)``."""
        rows = self.rows.to_sparse()
        if self.alike:
            matrix = sp.csr_array(sp.kron(rows, np.ones((self.m, 1)), format="csr"))
        else:
            parts = sp.eye_array(self.m)
            matrix = sp.csr_array(sp.kron(rows, parts, format="csr"))
            if self.constant:
                repeated = sp.kron(np.ones((rows.shape[0], 1)), parts)
                matrix = sp.csr_array(sp.hstack([repeated, matrix], format="csr"))
        return matrix if self.kept is None else sp.csr_array(matrix[self.kept])


class PairwiseFeatures(Stacked):
    """Features of nodes with ``K`` labels and of the pairs of labels that meet at edges.

    The score of label ``a`` at node ``v`` is ``x_v' node_weights[:, a]``, that of labels ``(a, b)`` at the ends of edge
    ``e`` is ``pair_weights[a, b]``, plus ``x_e' edge_weights[:, a, b]`` where edges have features.

    Weights: node weights ``(d, K)``, then pair weights ``(K, K)``, then with edge features edge weights
    ``(d_e, K, K)``, all row-major.

    Args:
        nodes: shape ``(n_nodes, d)``, one row per node of all examples, dense float64 or CSR.
        node_offsets: shape ``(n_examples + 1,)``: example ``i`` has nodes ``node_offsets[i]:node_offsets[i + 1]``.
        edges: shape ``(n_edges, d_e)``, one row per edge of all examples, or None.
        edge_offsets: shape ``(n_examples + 1,)``, likewise.
        n_labels: ``K``.
        kept: which of the parts there are, of nodes and of edges, as for :class:`TiedRows`; None and None for all.
    """

    def __init__(
        self,
        nodes: Matrix | Rows,
        node_offsets: npt.ArrayLike,
        edges: Matrix | Rows | None,
        edge_offsets: npt.ArrayLike,
        n_labels: int,
        *,
        kept: tuple[IntArray | None, IntArray | None] = (None, None),
    ) -> None:
        n_labels, bounds = _checks.integer("n_labels", n_labels, least=1), integers(edge_offsets, "edge_offsets")
        if edges is None:
            edges = np.zeros((int(bounds[-1]) if bounds.ndim == 1 and bounds.size and bounds[-1] >= 0 else 0, 0))
        super().__init__(
            TiedRows(nodes, node_offsets, n_labels, kept=kept[0]),
            TiedRows(edges, edge_offsets, n_labels**2, constant=True, kept=kept[1]),
        )

    # These maps do not read their matrices once for two vectors, so joining pieces gains nothing.
    scores_pair = Features.scores_pair
    adjoint_pair = Features.adjoint_pair


class ChainFeatures(PairwiseFeatures):
    """Features of a batch of chains; the edges of a chain join neighboring positions.

    Parts: block "nodes", ``n_tokens * K``; then without edge features block "pairs", the ``K * K`` pair counts of each
    example, with edge features block "edges", ``n_edges * K * K``.

    Args:
        tokens: shape ``(n_tokens, d)``, one row per position of all chains, dense float64 or CSR.
        lengths: shape ``(n_examples,)``, positions per chain.
        n_labels: ``K``.
        edge_features: shape ``(n_edges, d_e)``, one row per pair of neighbors of all chains, or None.
        support: which pairs of a token feature and a label have weights, of ``d`` features and ``K`` columns; None for
            all. Then ``tokens`` is CSR or the places of its ones, as for :class:`SupportedRows`.
        edge_support: likewise of an edge feature and a pair of labels, column ``a K + b``.

    With a support the node weights, or the edge weights behind the pair weights, are one per pair of the support.
    """

    def __init__(
        self,
        tokens: Given,
        lengths: npt.ArrayLike,
        n_labels: int,
        *,
        edge_features: Given | None = None,
        support: Support | None = None,
        edge_support: Support | None = None,
    ) -> None:
        counts = lengths_of(lengths)
        n_labels = _checks.integer("n_labels", n_labels, least=1)
        rows = _rows(tokens, "tokens", support, n_labels)
        offsets, edge_offsets = offsets_of(counts), offsets_of(np.maximum(counts - 1, 0))
        if rows.n != offsets[-1]:
            raise ValueError(f"tokens has {rows.n} rows, but the lengths add up to {offsets[-1]}")
        if edge_features is None:
            if edge_support is not None:
                raise ValueError("edge_support needs edge_features; give both")
            # Transitions do not see the input: one item per chain, its pair counts.
            edge_features, edge_offsets = np.zeros((len(counts), 0)), np.arange(len(counts) + 1)
        edges = _rows(edge_features, "edge_features", edge_support, n_labels**2)
        if edges.n != edge_offsets[-1]:
            raise ValueError(f"edge_features has {edges.n} rows, but the chains have {edge_offsets[-1]} edges")
        Stacked.__init__(
            self,
            _items(rows, offsets, support, n_labels),
            _items(edges, edge_offsets, edge_support, n_labels**2, constant=True),
        )


def _rows(matrix: Given, what: str, support: Support | None, m: int) -> Rows | Entries:
    """A matrix as the map of its items takes it, checked against the support."""
    if support is None:
        if isinstance(matrix, (Entries, tuple)):
            raise ValueError(f"{what} given by the places of their ones need a support")
        return matrix if isinstance(matrix, Rows) else Rows(matrix, what)
    if not isinstance(support, Support):
        raise ValueError(f"the support of {what} must be a Support, got {shown(support)}")
    if support.m != m:
        raise ValueError(f"the support of {what} has {support.m} columns, but there must be {m}")
    return Entries.of(matrix, support.n_features)


def _items(
    rows: Rows | Entries, offsets: IntArray, support: Support | None, m: int, *, constant: bool = False
) -> Features:
    if support is not None:
        return SupportedRows(rows, offsets, support, constant=constant)
    assert isinstance(rows, Rows)
    return TiedRows(rows, offsets, m, constant=constant)


class SecondOrderFeatures(Stacked):
    """Features of a batch of second-order chains: those of positions, and weights of pairs and triples of labels.

    The score of labels ``y`` is ``sum_t x_t' node_weights[:, y_t]``, plus ``pair_weights[y_{t-1}, y_t]`` and
    ``triple_weights[y_{t-2}, y_{t-1}, y_t]`` for all neighbors.

    Weights: node weights ``(d, K)``, then pair weights ``(K, K)``, then triple weights ``(K, K, K)``, all row-major.
    Parts: block "nodes", ``n_tokens * K``; block "pairs", the ``K * K`` pair counts of each example; block "triples",
    the ``K * K * K`` triple counts of each example.

    Args:
        tokens: shape ``(n_tokens, d)``, one row per position of all chains, dense float64 or CSR.
        lengths: shape ``(n_examples,)``, positions per chain.
        n_labels: ``K``.
        support: which pairs of a token feature and a label have weights, as for :class:`ChainFeatures`.
    """

    def __init__(self, tokens: Given, lengths: npt.ArrayLike, n_labels: int, *, support: Support | None = None) -> None:
        pairwise = ChainFeatures(tokens, lengths, n_labels, support=support)
        once = np.arange(pairwise.n_examples + 1)
        triples = TiedRows(np.zeros((pairwise.n_examples, 0)), once, n_labels**3, constant=True)
        super().__init__(*pairwise.features, triples)

    scores_pair = Features.scores_pair
    adjoint_pair = Features.adjoint_pair
