"""Sites: the nodes and edges of one image or scan, with features; the one form between extractors and learning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Sites(ABC):
    """The graph of one image or scan.

    Attributes:
        features: node features, shape ``(n_nodes, d)``.
        edges: pairs of nodes, each pair once with the smaller number first, shape ``(n_edges, 2)``.
        edge_features: shape ``(n_edges, e)``, all >= 0; the first column is the constant 1.
        node_of: the node of every pixel, with the shape of the image, or of every point, shape ``(n_points,)``.
        size: the number of pixels or points that each node stands for, shape ``(n_nodes,)``.
    """

    features: npt.NDArray[np.float32]
    edges: IntArray
    edge_features: FloatArray
    node_of: npt.NDArray[np.int32]
    size: FloatArray

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return len(self.features)

    @abstractmethod
    def context(self, probabilities: FloatArray) -> npt.NDArray[np.float32]:
        """Auto-context features from the previous stage's class probabilities, ``(n_nodes, n_classes)``."""

    def edge_context(self, probabilities: FloatArray) -> FloatArray:
        """Further edge features >= 0 from class probabilities: how alike those of the two ends are."""
        first, second = self.edges.T
        apart = np.abs(probabilities[first] - probabilities[second]).sum(axis=1, keepdims=True)
        return np.asarray(1.0 - 0.5 * apart)
