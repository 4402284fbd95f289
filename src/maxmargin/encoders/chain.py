"""Sequences with a label per position: X is a list of ``(length, d)`` matrices, y a list of label sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from maxmargin.encoders import checks, graphs, inputs
from maxmargin.encoders.base import Batch
from maxmargin.encoders.labeled import LabeledEncoder
from maxmargin.features.tied import ChainFeatures, SecondOrderFeatures
from maxmargin.structures.chain import Chain
from maxmargin.structures.second_order import MOST_LABELS, SecondOrderChain


@dataclass(frozen=True, eq=False)
class ChainEncoder(LabeledEncoder):
    """Packs sequences; ``n_edge_features`` is 0 where transitions do not see the input.

    Attributes:
        order: how many labels before a label its score sees: 1, or 2 for triples of labels.
    """

    order: int = 1

    kind = "chain"
    node_words = "features"
    edge_words = "sequences", "mm.FeatureSequence(features, edge_features)"

    def learn(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Labels (sorted where they can be) and widths."""
        _check_order(self.order)
        learned = self._learned(*_split(X), y)
        if self.order == 2 and learned.n_edge_features:
            raise ValueError("order=2 has no edge features yet; leave them out, or use order=1")
        if self.order == 2 and learned.n_labels > MOST_LABELS:
            raise ValueError(f"order=2 needs at most {MOST_LABELS} labels, got {learned.n_labels}; use order=1")
        return learned

    def pack(self, X: Sequence[Any]) -> Batch:
        """Stack positions (and edges) of all sequences."""
        tokens, edges = _split(X)
        rows, offsets, edge_rows = self._stacked(tokens, edges)
        lengths = np.diff(offsets)
        if (lengths == 0).any():
            index = int(np.flatnonzero(lengths == 0)[0])
            raise ValueError(f"example {index}: an empty sequence has nothing to label; remove it")
        for index, (found, length) in enumerate(zip(edges or (), lengths, strict=edges is not None)):
            if found.shape[0] != length - 1:
                raise ValueError(
                    f"example {index}: {found.shape[0]} rows of edge features for {length} positions; "
                    "give one row per pair of neighboring positions (length - 1)"
                )
        if self.order == 2:
            triples = SecondOrderFeatures(rows, lengths, self.n_labels)
            return Batch(SecondOrderChain(lengths, self.n_labels), triples)
        structure = Chain(lengths, self.n_labels, transitions="shared" if edge_rows is None else "each")
        return Batch(structure, ChainFeatures(rows, lengths, self.n_labels, edge_features=edge_rows))

    @property
    def n_weights(self) -> int:
        """Those of positions and pairs, and of second order one table of triple weights."""
        return super().n_weights + (self.n_labels**3 if self.order == 2 else 0)

    @property
    def layout(self) -> tuple[Any, ...]:
        """Both widths, the labels in order, and how many of them a score sees."""
        return *super().layout, self.order

    def header(self) -> dict[str, Any]:
        """Labels and widths, and the order where it is not the first."""
        return super().header() if self.order == 1 else {**super().header(), "order": self.order}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """See :meth:`Encoder.from_header`; files without an order are of the first."""
        encoder = replace(super().from_header(header), order=_check_order(header.get("order", 1)))
        if encoder.order == 2 and (encoder.n_edge_features or encoder.n_labels > MOST_LABELS):
            raise ValueError(f"a chain of order 2 has no edge features and at most {MOST_LABELS} labels")
        return encoder


def _check_order(order: Any) -> int:
    if isinstance(order, bool) or order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, got {order!r}")
    return int(order)


def _split(X: Sequence[Any]) -> tuple[list[Any], list[Any] | None]:
    tokens, edges = [], []
    for index, x in enumerate(checks.examples(X)):
        given = x if isinstance(x, inputs.FeatureSequence) else inputs.FeatureSequence(x)
        tokens.append(checks.matrix(given.features, index, "features"))
        more = given.edge_features
        edges.append(None if more is None else checks.matrix(more, index, "edge features"))
    return tokens, graphs.all_or_none(edges, "sequences")
