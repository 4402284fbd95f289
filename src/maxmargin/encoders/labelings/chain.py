"""Sequences with a label per position: X is a list of ``(length, d)`` matrices, y a list of label sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from maxmargin._messages import shown
from maxmargin.encoders.base import Batch, State
from maxmargin.encoders.data import checks, graphs
from maxmargin.encoders.data.inputs import FeatureSequence
from maxmargin.encoders.data.names import ColumnNames, Name, Namer, WeightTable, joined, table
from maxmargin.encoders.labelings.labeled import LabeledEncoder
from maxmargin.features.tied import ChainFeatures, SecondOrderFeatures
from maxmargin.structures.chains.chain import Chain
from maxmargin.structures.chains.second_order import MOST_LABELS, SecondOrderChain


@dataclass(frozen=True, eq=False)
class ChainEncoder(LabeledEncoder):
    """Encodes sequences; ``n_edge_features`` is 0 where transitions do not see the input.

    Attributes:
        order: how many labels before a label its score sees: 1, or 2 for triples of labels.
    """

    order: int = 1

    kind = "chain"
    edge_words = "sequences", "mm.FeatureSequence(features, edge_features)"
    row_words = "features", "transition"

    def parse(self, X: list[Any]) -> tuple[checks.Rows, checks.Rows | None]:
        """The features of positions, and of edges if there are any."""
        given = [x if isinstance(x, FeatureSequence) else FeatureSequence(x) for x in X]
        edges = [
            None if x.edge_features is None else checks.matrix(x.edge_features, index, "edge features")
            for index, x in enumerate(given)
        ]
        tokens = checks.rows([x.features for x in given], "features", "an empty sequence has nothing to label")
        return tokens, graphs.all_or_none(edges, "sequences")

    def learn(self, parsed: tuple[checks.Rows, checks.Rows | None], y: Sequence[Any]) -> Self:
        """Labels (sorted where they can be) and widths."""
        _check_order(self.order)
        return self._learned(*parsed, y)._checked()

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """See :meth:`LabeledEncoder.learn_blocks`."""
        return super().learn_blocks(blocks)._checked()

    def _checked(self) -> Self:
        """The encoder itself; ValueError if chains of its order do not have so many labels, or edge features."""
        if self.order == 2 and self.n_edge_features:
            raise ValueError("order=2 has no edge features yet; leave them out, or use order=1")
        if self.order == 2 and self.n_labels > MOST_LABELS:
            raise ValueError(f"order=2 needs at most {MOST_LABELS} labels, got {self.n_labels}; use order=1")
        return self

    def batch(self, parsed: tuple[checks.Rows, checks.Rows | None]) -> Batch:
        """The positions (and edges) of all sequences."""
        tokens, edges = parsed
        edge_rows = self._edge_matrix(tokens, edges)
        rows, lengths = self._row_matrix(tokens), np.diff(tokens.offsets)
        if edges is not None:
            wrong = np.flatnonzero(np.diff(edges.offsets) != lengths - 1)
            if wrong.size:
                raise ValueError(
                    f"example {wrong[0]}: {np.diff(edges.offsets)[wrong[0]]} rows of edge features for "
                    f"{lengths[wrong[0]]} positions; give one row per pair of neighboring positions (length - 1)"
                )
        if self.order == 2:
            triples = SecondOrderFeatures(rows, lengths, self.n_labels)
            return Batch(SecondOrderChain(lengths, self.n_labels), triples)
        structure = Chain(lengths, self.n_labels, transitions="shared" if edge_rows is None else "each")
        return Batch(structure, ChainFeatures(rows, lengths, self.n_labels, edge_features=edge_rows))

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Positions with their labels, and transitions."""
        return chain_namers(batch.structure, self.label_text, lambda at: f"position {at}")

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """Of second order, those of three labels in a row come last."""
        names = super().name_weights(columns)
        if self.order == 1:
            return names
        k = self.n_labels
        return [*names, table(1, lambda at: "transition", k**3, joined(self.label_text, k, 3))]

    @property
    def n_weights(self) -> int:
        """Those of positions and pairs, and of second order one table of triple weights."""
        return super().n_weights + (self.n_labels**3 if self.order == 2 else 0)

    @property
    def layout(self) -> tuple[Any, ...]:
        """Both widths, the labels in order, and how many of them a score sees."""
        return *super().layout, self.order

    def state(self) -> State:
        """Labels, widths and the order."""
        return {**super().state(), "order": self.order}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        encoder = replace(super().from_state(state), order=_check_order(state["order"]))
        if encoder.order == 2 and (encoder.n_edge_features or encoder.n_labels > MOST_LABELS):
            raise ValueError(f"a chain of order 2 has no edge features and at most {MOST_LABELS} labels")
        return encoder


def _check_order(order: Any) -> int:
    if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, got {shown(order)}")
    return int(order)


def chain_namers(structure: Any, label: Callable[[int], str], position: Callable[[int], str]) -> list[Namer]:
    """Names of the parts of one chain."""
    k = structure.n_labels
    pair = joined(label, k)
    names: list[Namer] = [lambda at: Name(position(at // k), label(at % k)), lambda at: Name("transition", pair(at))]
    if isinstance(structure, SecondOrderChain):
        triple = joined(label, k, 3)
        return [*names, lambda at: Name("transition", triple(at))]
    if structure.transitions == "each":
        names[1] = lambda at: Name(f"{position(at // k**2)} to {position(at // k**2 + 1)}", pair(at % k**2))
    return names
