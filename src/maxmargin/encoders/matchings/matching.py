"""Bipartite matchings: X is a list of ``(n_left, n_right, d)`` arrays or :class:`Bipartite`, y of ``(k, 2)`` links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin.encoders.base import Batch, State
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.inputs import Bipartite
from maxmargin.encoders.data.names import Name, Namer
from maxmargin.encoders.matchings.links import LinkEncoder
from maxmargin.encoders.rows import kernel_from_state
from maxmargin.features.kernel import Kernel, KernelMap
from maxmargin.structures.base import IntArray
from maxmargin.structures.matchings.matching import Matching
from maxmargin.structures.sparse import SparsePoint


@dataclass(frozen=True, eq=False)
class MatchingEncoder(LinkEncoder):
    """Encodes bipartite graphs.

    Attributes:
        left_capacity: how many links a left node may have unless its example says otherwise.
        right_capacity: likewise for right nodes.
        n_features: columns of the link features.
        kernel: a kernel in place of explicit link features, or None.
        support: with a kernel, the rows that it compares others with.
    """

    left_capacity: int = 1
    right_capacity: int = 1
    n_features: int | None = None
    kernel: Kernel | None = None
    support: KernelMap | None = None

    kind = "matching"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("left_capacity", self.left_capacity), ("right_capacity", self.right_capacity)):
            _checks.integer(name, value, least=1)

    def parse(self, X: list[Any]) -> tuple[list[Any], checks.Rows]:
        """The graphs, and the features of all their links."""
        return X, checks.rows([_links(x, index) for index, x in enumerate(X)], "features")

    def learn(self, parsed: tuple[list[Any], checks.Rows], y: Sequence[Any]) -> Self:
        """The number of features, and with a kernel the training links."""
        return replace(self, n_features=parsed[1].width, support=self._support(parsed[1]))

    def batch(self, parsed: tuple[list[Any], checks.Rows]) -> Batch:
        """The links of all graphs; full graphs and pruned ones may be mixed."""
        X, rows = parsed
        rows.require(self.n_features)
        sizes, offsets = np.diff(rows.offsets).tolist(), rows.offsets
        shapes = np.array([_shape(x, index) for index, x in enumerate(X)], dtype=np.int64)
        left = [_capacity(x, index, 0, self.left_capacity) for index, x in enumerate(X)]
        right = [_capacity(x, index, 1, self.right_capacity) for index, x in enumerate(X)]
        capacities = {"left_capacity": np.concatenate(left), "right_capacity": np.concatenate(right)}
        if all((capacity == 1).all() for capacity in capacities.values()):
            capacities = {}
        if any(isinstance(x, Bipartite) for x in X):
            edges = np.concatenate(
                [_edges(x, index, size) for index, (x, size) in enumerate(zip(X, sizes, strict=True))]
            )
            structure = Matching(shapes, edges, offsets, **capacities)
        else:
            structure = Matching.dense(shapes, **capacities)
        return Batch(structure, self._row_features(rows, offsets))

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Links to 0/1 vertices."""
        links = []
        for index, pairs in enumerate(checks.examples(y, "y")):
            links.append(checks.pairs(pairs, index, "y", "(k, 2) of matched (left, right) pairs"))
        return batch.structure.encode(links)

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Links by their two nodes."""
        edges = _edges(x, 0, int(batch.structure.sizes[0]))
        return [lambda at: Name(f"link {edges[at, 0]}-{edges[at, 1]}")]

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Twice the common links out of all links on both sides: the score is F1 over all links."""
        right = {tuple(pair) for pair in np.asarray(gold).reshape(-1, 2).tolist()}
        found = {tuple(pair) for pair in np.asarray(predicted).reshape(-1, 2).tolist()}
        return 2.0 * len(right & found), float(len(right) + len(found))

    def state(self) -> State:
        """Capacities, width and the kernel."""
        return {
            "left_capacity": int(self.left_capacity),
            "right_capacity": int(self.right_capacity),
            "n_features": self.n_features,
            **self._kernel_state(),
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        left, right = (_checks.integer(key, state[key], least=1) for key in ("left_capacity", "right_capacity"))
        n_features = _checks.integer("n_features", state["n_features"], least=0)
        return cls(left, right, n_features, *kernel_from_state(state, n_features))


def _links(x: Any, index: int) -> Any:
    """The link features of one example, one row per link (row-major for a full graph)."""
    if isinstance(x, Bipartite):
        return x.features
    wanted = "real numbers in a (n_left, n_right, d) array or mm.Bipartite(features, edges, shape)"
    array = checks.array(x, index, "X", "fiub", wanted)
    if array.ndim != 3:
        raise ValueError(f"example {index}: X must be {wanted}, got shape {array.shape}")
    return array.reshape(array.shape[0] * array.shape[1], array.shape[2])


def _shape(x: Any, index: int) -> tuple[int, int]:
    shape = checks.array(x.shape, index, "shape", "iu", "two integers") if isinstance(x, Bipartite) else np.shape(x)[:2]
    sides = tuple(np.asarray(shape).ravel().tolist())
    if len(sides) != 2 or min(sides) < 1 or max(sides) >= 1 << 31:
        raise ValueError(
            f"example {index}: shape must be (n_left, n_right) with at least one node on each side, got {sides}; "
            "remove examples without nodes"
        )
    return sides


def _edges(x: Any, index: int, n_rows: int) -> IntArray:
    n_left, n_right = _shape(x, index)
    if isinstance(x, Bipartite):
        found = checks.pairs(x.edges, index, "edges", "(n_edges, 2)")
        checks.one_per_edge(found, index, n_rows, "features")
        outside = ((found < 0) | (found >= (n_left, n_right))).any(axis=1)
        if outside.any():
            raise ValueError(
                f"example {index}: edge {tuple(found[int(np.argmax(outside))].tolist())} is outside its graph of "
                f"{n_left} left and {n_right} right nodes; number the nodes of each side from 0, or give a larger shape"
            )
        return found
    return np.stack(np.divmod(np.arange(n_left * n_right), n_right), axis=1).astype(np.int64)


def _capacity(x: Any, index: int, side: int, default: int) -> IntArray:
    nodes = _shape(x, index)[side]
    given: npt.ArrayLike | None = None
    if isinstance(x, Bipartite):
        given = (x.left_capacity, x.right_capacity)[side]
    if given is None:
        return np.full(nodes, default, dtype=np.int64)
    name, wanted = ("left", "right")[side] + "_capacity", f"integers >= 0, one or {nodes} of them"
    array = checks.array(given, index, name, "iu", wanted)
    if array.shape not in ((), (nodes,)) or (array < 0).any():
        raise ValueError(f"example {index}: {name} must be {wanted}")
    return np.broadcast_to(array, (nodes,)).astype(np.int64)
