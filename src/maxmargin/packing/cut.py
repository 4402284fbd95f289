"""Binary labellings of graphs whose edges attract: X is a list of :class:`Graph`, y a list of 0/1 arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.packing import checks
from maxmargin.packing.base import Packed, Packer
from maxmargin.packing.inputs import Graph
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.cut import Cut


@dataclass(frozen=True, eq=False)
class CutPacker(Packer):
    """Packs graphs: score of a labelling ``sum_j y_j w_n'x_j - sum_jk [y_j != y_k] w_e'x_jk`` with ``w_e >= 0``.

    Attributes:
        n_node_features: columns of the node features.
        n_edge_features: columns of the edge features.
    """

    n_node_features: int | None = None
    n_edge_features: int | None = None

    kind = "cut"

    def learn(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """The numbers of features."""
        nodes, _, features = _split(X)
        return replace(
            self,
            n_node_features=checks.width(nodes, None, "node features"),
            n_edge_features=checks.width(features, None, "edge features"),
        )

    def pack(self, X: Sequence[Any]) -> Packed:
        """Stack nodes and edges of all graphs."""
        nodes, edges, features = _split(X)
        checks.width(nodes, self.n_node_features, "node features")
        checks.width(features, self.n_edge_features, "edge features")
        node_rows, node_offsets = checks.stack(nodes, "node features")
        edge_rows, edge_offsets = checks.stack(features, "edge features")
        values = edge_rows.data if sp.issparse(edge_rows) else edge_rows
        if values.size and values.min() < 0:
            index = next(i for i, found in enumerate(features) if found.shape[0] and found.min() < 0)
            raise ValueError(
                f"example {index}: edge features must be >= 0 (they say how strongly the ends attract each other); "
                "shift them, or split a signed feature into its positive and negative part"
            )
        structure = Cut(np.diff(node_offsets), np.concatenate(edges), edge_offsets)
        return Packed(
            structure, Stacked(PartFeatures(node_rows, node_offsets), PartFeatures(edge_rows, edge_offsets, sign=-1.0))
        )

    def encode(self, packed: Packed, y: Sequence[Any]) -> FloatArray:
        """0/1 labels to vertices."""
        wanted = "a list or 1-D array of 0 or 1 for each node"
        return packed.structure.encode(
            [checks.array(labels, index, "y", "fiub", wanted) for index, labels in enumerate(checks.examples(y, "y"))]
        )

    def decode(self, packed: Packed, z: FloatArray) -> list[IntArray]:
        """0/1 integer arrays."""
        return packed.structure.decode(z)

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Right labels out of nodes."""
        return float(np.sum(np.asarray(gold) == predicted)), float(len(predicted))

    @property
    def n_weights(self) -> int:
        """Node weights, then edge weights."""
        return (self.n_node_features or 0) + (self.n_edge_features or 0)

    @property
    def layout(self) -> tuple[Any, ...]:
        """Both widths: node and edge weights must not change places."""
        return self.kind, self.n_node_features, self.n_edge_features

    def nonnegative(self) -> npt.NDArray[np.bool_]:
        """The edge weights."""
        return np.arange(self.n_weights) >= (self.n_node_features or 0)

    def header(self) -> dict[str, Any]:
        """Widths."""
        return {"n_node_features": self.n_node_features, "n_edge_features": self.n_edge_features}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """See :meth:`Packer.from_header`."""
        return cls(*(checks.integer(header[key], key) for key in ("n_node_features", "n_edge_features")))


def _split(X: Sequence[Any]) -> tuple[list[Any], list[IntArray], list[Any]]:
    nodes, edges, features = [], [], []
    for index, graph in enumerate(checks.examples(X)):
        if not isinstance(graph, Graph):
            raise ValueError(
                f"example {index}: X must be a list of mm.Graph(node_features, edges, edge_features), "
                f"got {type(graph).__name__}"
            )
        if graph.labels is not None:
            raise ValueError(f"example {index}: labels per node are for TreeSVM; a cut's nodes are all 0 or 1")
        nodes.append(checks.matrix(graph.node_features, index, "node features"))
        if nodes[-1].shape[0] == 0:
            raise ValueError(f"example {index}: a graph needs at least one node; remove it")
        found = checks.pairs(graph.edges, index, "edges", "(n_edges, 2)")
        if graph.edge_features is None:
            features.append(np.ones((len(found), 1)))
        else:
            features.append(checks.matrix(graph.edge_features, index, "edge features"))
        edges.append(checks.edges(found, index, features[-1].shape[0], "edge features"))
    return nodes, edges, features
