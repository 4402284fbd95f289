"""Sequences with a label per position: X is a list of ``(length, d)`` matrices, y a list of label sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from maxmargin.features.tied import ChainFeatures
from maxmargin.packing import checks, graphs, inputs
from maxmargin.packing.base import Packed
from maxmargin.packing.labelled import LabelledPacker
from maxmargin.structures.chain import Chain


@dataclass(frozen=True, eq=False)
class ChainPacker(LabelledPacker):
    """Packs sequences; ``n_edge_features`` is 0 where transitions do not see the input."""

    kind = "chain"
    node_words = "features"
    edge_words = "sequences", "mm.Sequence(features, edge_features)"

    def learn(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Labels (sorted where they can be) and widths."""
        return self._learned(*_split(X), y)

    def pack(self, X: Sequence[Any]) -> Packed:
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
                    "give one row per pair of neighbouring positions (length - 1)"
                )
        structure = Chain(lengths, self.n_labels, transitions="shared" if edge_rows is None else "each")
        return Packed(structure, ChainFeatures(rows, lengths, self.n_labels, edge_features=edge_rows))


def _split(X: Sequence[Any]) -> tuple[list[Any], list[Any] | None]:
    tokens, edges = [], []
    for index, x in enumerate(checks.examples(X)):
        given = x if isinstance(x, inputs.Sequence) else inputs.Sequence(x)
        tokens.append(checks.matrix(given.features, index, "features"))
        more = given.edge_features
        edges.append(None if more is None else checks.matrix(more, index, "edge features"))
    return tokens, graphs.all_or_none(edges, "sequences")
