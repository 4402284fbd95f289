"""Layout of the weights of a tagger, and the structure and features of a batch that follow from it.

A weight vector has one weight per pair of the support (an attribute and a label), then ``K x K`` transitions, then one
weight per pair of the edge support (an attribute of two neighbors and a pair of labels) if there is one, or with order
2 ``K x K x K`` weights of three labels in a row. Where segments are scored, transitions are those between the types of
segments, and one weight per pair of the segment support (an attribute of a segment and a type) comes last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin._messages import shown
from maxmargin.features.base import Features
from maxmargin.features.parts import Stacked
from maxmargin.features.supported import Support, SupportedRows
from maxmargin.features.tied import TiedRows
from maxmargin.structures._arrays import offsets_of, pieces
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.chains.chain import Chain
from maxmargin.structures.chains.second_order import SecondOrderChain
from maxmargin.structures.chains.transitions import BoolArray, TransitionConstraints
from maxmargin.structures.deductions.segments import TaggedSegments
from maxmargin.tasks.tagging.encoder.attributes import Attributes
from maxmargin.tasks.tagging.encoder.chunks import ChunkLayout
from maxmargin.tasks.tagging.encoder.extraction import TokenRows
from maxmargin.tasks.tagging.encoder.labels.gold import LabeledRows

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
        chunks: the segments that labels write, if these are scored; None for chains.
        segment_support: which attributes of segments have weights for which types; None for chains.
    """

    n_labels: int
    order: int
    constraints: TransitionConstraints | None
    support: Support
    edge_support: Support | None = None
    chunks: ChunkLayout | None = None
    segment_support: Support | None = None

    def __post_init__(self) -> None:
        if type(self.order) is not int or self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {shown(self.order)}")
        if self.order == 2 and self.edge_support is not None:
            raise ValueError("order=2 cannot be combined with attributes of pairs; leave out one of the two")
        if self.chunks is not None and self.order == 2:
            raise ValueError("order=2 cannot be combined with segments; leave out one of the two")
        if self.chunks is not None and self.edge_support is not None:
            raise ValueError("segments cannot be combined with attributes of pairs; leave out one of the two")

    @property
    def n_pair_labels(self) -> int:
        """How many labels, or types of segments, transitions are between."""
        return self.n_labels if self.chunks is None else len(self.chunks.types)

    @property
    def n_weights(self) -> int:
        """Length of a weight vector."""
        k = self.n_pair_labels
        other = self.edge_support or self.segment_support
        more = k**3 if self.order == 2 else 0 if other is None else other.n_weights
        return self.support.n_weights + k**2 + more

    def split(self, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Split into weights of tokens, of transitions ``(K, K)``, and of edges, segments or triples ``(K, K, K)``."""
        k, n = self.n_pair_labels, self.support.n_weights
        rest = weights[n + k**2 :]
        return weights[:n], weights[n : n + k**2].reshape(k, k), rest.reshape(k, k, k) if self.order == 2 else rest

    @property
    def constraints_text(self) -> str:
        """A short description of the transition constraints."""
        return "none" if self.constraints is None else f"{int((~self.constraints.pairs).sum())} forbidden pairs"

    def with_observed(self, data: LabeledRows, *, full: bool) -> WeightLayout:
        """Extend the support by the pairs that occur in labeled sentences, or if ``full`` by all pairs."""

        def grown(support: Support, attributes: Attributes, columns: IntArray) -> Support:
            d, m = attributes.n_columns, support.m
            found = Support.full(d, m) if full else Support.observed(attributes.entries, columns, m)
            return support.extended(d).union(found)

        codes, rows, edge_support = data.codes.astype(np.int64), data.rows, None
        support = grown(self.support, rows.tokens, codes)
        if self.edge_support is not None and rows.edges is not None:
            edge_support = grown(self.edge_support, rows.edges, pair_codes(data, self.n_labels))
        segment_support = self.segment_support
        if self.chunks is not None and segment_support is not None and rows.segments is not None:
            d, gold = rows.segments.n_columns, self.chunks.candidates(codes, data.lengths)
            if full:
                segment_support = Support.full(d, segment_support.m)
            else:
                segment_support = segment_support.extended(d).with_pairs(rows.segments.entries, *gold)
        return replace(self, support=support, edge_support=edge_support, segment_support=segment_support)

    def carried(self, weights: FloatArray, to: WeightLayout) -> FloatArray:
        """Return weights for a layout with the same weights and perhaps more, which are zero."""
        tokens, pairs, rest = self.split(weights)
        if self.edge_support is not None and to.edge_support is not None:
            rest = self.edge_support.carried(rest, to.edge_support)
        return np.concatenate([self.support.carried(tokens, to.support), pairs.ravel(), rest.ravel()])

    @property
    def allowed_pairs(self) -> BoolArray:
        """Which labels, or types of segments, may follow each other, shape ``(K, K)``."""
        rules, k = self.constraints if self.chunks is None else self.type_constraints, self.n_pair_labels
        return np.ones((k, k), dtype=bool) if rules is None else rules.pairs

    @cached_property
    def type_constraints(self) -> TransitionConstraints | None:
        """The constraints on types of segments; None for none."""
        return None if self.chunks is None or self.constraints is None else self.chunks.rules(self.constraints)

    def structure(self, lengths: IntArray) -> Chain | SecondOrderChain | TaggedSegments:
        """Return the chains, or the segmentations, of sentences of these lengths."""
        if self.chunks is not None:
            return self.chunks.structure(lengths, self.type_constraints)
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

    def segment_features(self, rows: TokenRows) -> SupportedRows:
        """Return the features of types of segments."""
        assert rows.segments is not None
        assert self.segment_support is not None
        return SupportedRows(rows.segments.entries, offsets_of(rows.segments.lengths), self.segment_support)

    def features(self, rows: TokenRows) -> Features:
        """Return the features of all parts of :meth:`structure`."""
        k, n = self.n_pair_labels, len(rows.lengths)
        tokens = self.token_features(rows)
        if self.edge_support is not None:
            return Stacked(tokens, self.edge_features(rows))
        tables = [TiedRows(np.zeros((n, 0)), np.arange(n + 1), k**j, constant=True) for j in range(2, self.order + 2)]
        segments = () if self.chunks is None else (self.segment_features(rows),)
        return Stacked(tokens, *tables, *segments)

    def shards(self, lengths: IntArray, per_token: int | None = None) -> Iterator[IntArray]:
        """Yield the numbers of consecutive sentences that are decoded together."""
        return pieces(lengths * min(per_token or self.n_labels, SHARD), SHARD)


def pair_codes(data: LabeledRows, n_labels: int) -> IntArray:
    """Return the numbers ``a * K + b`` of pairs of labels, one per token but the first of each sentence."""
    codes, later = data.codes.astype(np.int64), np.ones(len(data.codes), dtype=bool)
    later[data.rows.offsets[:-1][data.lengths > 0]] = False
    at = np.flatnonzero(later)
    return np.asarray(codes[at - 1] * n_labels + codes[at])
