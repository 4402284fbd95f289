"""Layout of the weights of a tagger, and the structure and features of a batch that follow from it.

A weight vector has one weight per pair of the support (an attribute and a label), then ``K x K`` transitions, then one
weight per pair of the edge support (an attribute of two neighbors and a pair of labels) if there is one, or with order
2 ``K x K x K`` weights of three labels in a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.features.base import Features
from maxmargin.features.parts import Stacked
from maxmargin.features.supported import Support, SupportedRows
from maxmargin.features.tied import TiedRows
from maxmargin.structures._arrays import pieces
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.chain import Chain
from maxmargin.structures.second_order import SecondOrderChain
from maxmargin.structures.transitions import TransitionConstraints
from maxmargin.tasks.tagging.encoder.extraction import TokenRows

SHARD = 1 << 16
"""Scores per shard of sentences: they stay in the second-level cache."""


@dataclass(frozen=True, eq=False)
class WeightLayout:
    """Meaning of a weight vector.

    Attributes:
        n_labels: number of labels ``K``.
        order: order of the chain, 1 or 2.
        constraints: allowed transitions; None for all.
        support: which attributes of tokens have weights for which labels.
        edge_support: which edge attributes have weights for which pairs of labels ``a * K + b``; None without edge
            attributes.
    """

    n_labels: int
    order: int
    constraints: TransitionConstraints | None
    support: Support
    edge_support: Support | None = None

    def __post_init__(self) -> None:
        if self.order == 2 and self.edge_support is not None:
            raise ValueError("order=2 cannot be combined with attributes of pairs; leave out one of the two")

    @property
    def n_weights(self) -> int:
        """Length of a weight vector."""
        k = self.n_labels
        more = k**3 if self.order == 2 else 0 if self.edge_support is None else self.edge_support.n_weights
        return self.support.n_weights + k**2 + more

    def split(self, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Split into weights of tokens, of transitions ``(K, K)``, and of edges or of triples ``(K, K, K)``."""
        k, n = self.n_labels, self.support.n_weights
        rest = weights[n + k**2 :]
        return weights[:n], weights[n : n + k**2].reshape(k, k), rest.reshape(k, k, k) if self.order == 2 else rest

    def structure(self, lengths: IntArray) -> Chain | SecondOrderChain:
        """Return the chains of sentences of these lengths."""
        if self.order == 2:
            return SecondOrderChain(lengths, self.n_labels, constraints=self.constraints)
        transitions: Any = "shared" if self.edge_support is None else "each"
        return Chain(lengths, self.n_labels, transitions=transitions, constraints=self.constraints)

    def token_features(self, rows: TokenRows) -> SupportedRows:
        """Return the features of labels at tokens."""
        return SupportedRows(rows.tokens.entries, rows.offsets, self.support)

    def edge_features(self, rows: TokenRows) -> SupportedRows:
        """Return the features of pairs of labels at neighbors."""
        assert rows.edges is not None
        assert self.edge_support is not None
        return SupportedRows(rows.edges.entries, rows.edge_offsets, self.edge_support, constant=True)

    def features(self, rows: TokenRows) -> Features:
        """Return the features of all parts of :meth:`structure`."""
        k, n = self.n_labels, len(rows.lengths)
        tokens = self.token_features(rows)
        if self.edge_support is not None:
            return Stacked(tokens, self.edge_features(rows))
        tables = [TiedRows(np.zeros((n, 0)), np.arange(n + 1), k**j, constant=True) for j in range(2, self.order + 2)]
        return Stacked(tokens, *tables)

    def shards(self, lengths: IntArray, per_token: int | None = None) -> Iterator[IntArray]:
        """Yield the numbers of consecutive sentences that are decoded together."""
        return pieces(lengths * (per_token or self.n_labels), SHARD)
