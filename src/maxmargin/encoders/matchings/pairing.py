"""Pairings: X is a list of ``(n, n, d)`` arrays or :class:`PairGraph`, y of ``(k, 2)`` pairs of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from maxmargin import _checks
from maxmargin.encoders.base import Batch, State
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.inputs import PairGraph
from maxmargin.encoders.data.names import Name, Namer
from maxmargin.encoders.matchings.links import LinkEncoder
from maxmargin.encoders.rows import kernel_from_state
from maxmargin.features.kernel import Kernel, KernelMap
from maxmargin.structures.base import IntArray
from maxmargin.structures.matchings.pairing import Pairing
from maxmargin.structures.sparse import SparsePoint


@dataclass(frozen=True, eq=False)
class PairingEncoder(LinkEncoder):
    """Encodes graphs whose nodes are paired.

    Attributes:
        perfect: whether every node has a partner.
        n_features: columns of the features of pairs.
        kernel: a kernel in place of explicit features, or None.
        support: with a kernel, the rows that it compares others with.
    """

    perfect: bool = False
    n_features: int | None = None
    kernel: Kernel | None = None
    support: KernelMap | None = None

    kind = "pairing"

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.flag("perfect", self.perfect)

    def parse(self, X: list[Any]) -> tuple[list[tuple[int, IntArray]], checks.Rows]:
        """The number of nodes and the edges of each graph, and the features of all edges."""
        found = [_graph(x, index) for index, x in enumerate(X)]
        rows = checks.rows([features for _, _, features in found], "features")
        for index, ((_, edges, _), count) in enumerate(zip(found, np.diff(rows.offsets).tolist(), strict=True)):
            if len(edges) != count:
                raise ValueError(f"example {index}: {count} rows of features for {len(edges)} edges; give one per edge")
        return [(n, edges) for n, edges, _ in found], rows

    def learn(self, parsed: tuple[list[tuple[int, IntArray]], checks.Rows], y: Sequence[Any]) -> Self:
        """The number of features, and with a kernel the training pairs."""
        return replace(self, n_features=parsed[1].width, support=self._support(parsed[1]))

    def batch(self, parsed: tuple[list[tuple[int, IntArray]], checks.Rows]) -> Batch:
        """The edges of all graphs."""
        graphs, rows = parsed
        rows.require(self.n_features)
        edges = np.concatenate([np.zeros((0, 2), dtype=np.int64), *(own for _, own in graphs)])
        structure = Pairing([n for n, _ in graphs], edges, rows.offsets, perfect=bool(self.perfect))
        return Batch(structure, self._row_features(rows, rows.offsets))

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Pairs to 0/1 vertices."""
        given = enumerate(checks.examples(y, "y"))
        return batch.structure.encode([checks.pairs(pairs, i, "y", "(k, 2) of paired nodes") for i, pairs in given])

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Pairs by their two nodes."""
        _, edges, _ = _graph(x, 0)
        return [lambda at: Name(f"pair {edges[at, 0]}-{edges[at, 1]}")]

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Twice the common pairs out of all pairs on both sides: the score is F1 over all pairs."""
        right, found = (
            {tuple(sorted(pair)) for pair in np.asarray(pairs).reshape(-1, 2).tolist()} for pairs in (gold, predicted)
        )
        return 2.0 * len(right & found), float(len(right) + len(found))

    def state(self) -> State:
        """Whether pairings are perfect, the width and the kernel."""
        return {"perfect": bool(self.perfect), "n_features": self.n_features, **self._kernel_state()}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        n_features = _checks.integer("n_features", state["n_features"], least=0)
        return cls(_checks.flag("perfect", state["perfect"]), n_features, *kernel_from_state(state, n_features))


def _graph(x: Any, index: int) -> tuple[int, IntArray, Any]:
    """The number of nodes, the edges and their features of one example."""
    if isinstance(x, PairGraph):
        edges = checks.pairs(x.edges, index, "edges", "(n_edges, 2)")
        n_nodes = int(edges.max(initial=-1)) + 1
        if x.n_nodes is not None:
            try:
                n_nodes = _checks.integer("n_nodes", x.n_nodes, least=0)
            except ValueError as error:
                raise ValueError(f"example {index}: {error}") from None
        return n_nodes, edges, x.features
    wanted = "real numbers in a (n, n, d) array or mm.PairGraph(features, edges)"
    array = checks.array(x, index, "X", "fiub", wanted)
    if array.ndim != 3 or array.shape[0] != array.shape[1]:
        raise ValueError(f"example {index}: X must be {wanted}, got shape {array.shape}")
    low, high = np.triu_indices(array.shape[0], 1)
    return array.shape[0], np.stack([low, high], axis=1).astype(np.int64), array[low, high]
