"""How weights and labels of a tagger fit together: the structure and the features of a batch, over what exists below.

Weights: one per pair of the support (an attribute and a label), then ``K x K`` of transitions, then where pairs of
labels see the input one per pair of the edge support (an attribute and a pair of labels), or with order 2 ``K x K x K``
of three labels in a row.
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
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.chain import Chain
from maxmargin.structures.second_order import SecondOrderChain
from maxmargin.structures.transitions import TransitionConstraints
from maxmargin.tasks.tagging.extraction import TokenRows

PIECE = 1 << 16
"""Numbers of the packed vectors in which sentences are treated: they stay in second-level cache."""


@dataclass(frozen=True, eq=False)
class WeightLayout:
    """What a weight vector means.

    Attributes:
        n_labels: number of labels ``K``.
        order: how many labels before a label its score sees, 1 or 2.
        legal: which labels may follow each other; None for all.
        support: which attributes of tokens have weights for which labels.
        edge_support: which attributes of pairs of neighbors have weights for which pairs ``a * K + b``; None where
            pairs of labels do not see the input.
    """

    n_labels: int
    order: int
    constraints: TransitionConstraints | None
    support: Support
    edge_support: Support | None = None

    def __post_init__(self) -> None:
        if self.order == 2 and self.edge_support is not None:
            raise ValueError("with order=2, pairs of labels cannot see the input; leave out one of the two")

    @property
    def n_weights(self) -> int:
        """Length of a weight vector."""
        k = self.n_labels
        more = k**3 if self.order == 2 else 0 if self.edge_support is None else self.edge_support.n_weights
        return self.support.n_weights + k**2 + more

    def split(self, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights of tokens, of transitions ``(K, K)``, and the rest: of edges, or of triples ``(K, K, K)``."""
        k, n = self.n_labels, self.support.n_weights
        rest = weights[n + k**2 :]
        return weights[:n], weights[n : n + k**2].reshape(k, k), rest.reshape(k, k, k) if self.order == 2 else rest

    def structure(self, lengths: IntArray) -> Chain | SecondOrderChain:
        """The label sequences of sentences of these lengths."""
        if self.order == 2:
            return SecondOrderChain(lengths, self.n_labels, constraints=self.constraints)
        transitions: Any = "shared" if self.edge_support is None else "each"
        return Chain(lengths, self.n_labels, transitions=transitions, constraints=self.constraints)

    def token_features(self, rows: TokenRows) -> SupportedRows:
        """The scores of labels at tokens."""
        return SupportedRows(rows.tokens.entries, rows.offsets, self.support)

    def edge_features(self, rows: TokenRows) -> SupportedRows:
        """The scores of pairs of labels at neighbors, where these see the input."""
        assert rows.edges is not None
        assert self.edge_support is not None
        return SupportedRows(rows.edges.entries, rows.edge_offsets, self.edge_support, constant=True)

    def features(self, rows: TokenRows) -> Features:
        """The whole map between weights and the parts of :meth:`structure`."""
        k, n = self.n_labels, len(rows.lengths)
        tokens = self.token_features(rows)
        if self.edge_support is not None:
            return Stacked(tokens, self.edge_features(rows))
        tables = [TiedRows(np.zeros((n, 0)), np.arange(n + 1), k**j, constant=True) for j in range(2, self.order + 2)]
        return Stacked(tokens, *tables)

    def pieces(self, lengths: IntArray, per_token: int | None = None) -> Iterator[IntArray]:
        """Numbers of consecutive sentences, treated together."""
        size = per_token or self.n_labels
        ends = np.cumsum(lengths * size)
        first = 0
        while first < len(lengths):
            before = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + PIECE, side="right")))
            yield np.arange(first, last)
            first = last
