"""Sites, the nodes of one image or scan, and the contract of extractors, which make them of inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from maxmargin.encoders.base import State
from maxmargin.structures.base import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Sites(ABC):
    """The graph of one image or scan: pixels, superpixels or thinned points, with features.

    Attributes:
        features: node features, shape ``(n_nodes, d)``.
        edges: pairs of neighbors, each once, first < second, shape ``(n_edges, 2)``.
        edge_features: shape ``(n_edges, e)``, all >= 0; the first column is the constant 1.
        node_of: the node of every pixel (shape of the image) or point (shape ``(n_points,)``).
        size: pixels or points that each node stands for, shape ``(n_nodes,)``.
    """

    features: npt.NDArray[np.float32]
    edges: IntArray
    edge_features: FloatArray
    node_of: npt.NDArray[np.int32]
    size: FloatArray

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.size)

    @property
    def centers(self) -> IntArray | None:
        """The pixel in the middle of each node, shape ``(n_nodes, n_axes)``; None for points, which are no grid."""
        if self.node_of.ndim < 2:
            return None
        nodes = self.node_of.ravel()
        counts = np.maximum(np.bincount(nodes, minlength=self.n_nodes), 1)
        axes = (np.bincount(nodes, axis.ravel(), self.n_nodes) / counts for axis in np.indices(self.node_of.shape))
        return np.rint(np.stack([*axes], axis=1)).astype(np.int64)

    @abstractmethod
    def context(self, probabilities: FloatArray) -> npt.NDArray[np.float32]:
        """Auto-context features, shape ``(n_nodes, c)``, from class probabilities, shape ``(n_nodes, n_classes)``."""

    def edge_context(self, probabilities: FloatArray) -> FloatArray:
        """Further edge features >= 0 from class probabilities: how alike those of the two ends are."""
        first, second = probabilities[self.edges[:, 0]], probabilities[self.edges[:, 1]]
        return np.asarray(1.0 - 0.5 * np.abs(first - second).sum(axis=1, keepdims=True))

    def counts(self, labels: IntArray, n_classes: int) -> FloatArray:
        """How many pixels or points of each class a node has, shape ``(n_nodes, n_classes)``; labels < 0 are void."""
        known = labels >= 0
        cells = self.node_of[known].astype(np.int64) * n_classes + labels[known]
        found = np.bincount(cells, minlength=len(self.size) * n_classes)
        return found.reshape(len(self.size), n_classes).astype(np.float64)


class Extractor(ABC):
    """Turns inputs into sites; a subclass is a frozen dataclass of settings and of what :meth:`fit` learned."""

    inputs: ClassVar[str]
    """What it takes, for messages: "images" or "scans"."""

    @abstractmethod
    def fit(self, inputs: Sequence[Any]) -> Self:
        """A copy that knows the channels or attributes of training inputs, and what else it learns from them."""

    @abstractmethod
    def sites(self, given: Any) -> Sites:
        """The sites of one input; ValueError saying what is wrong with it."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Columns of the node features."""

    @property
    @abstractmethod
    def edge_feature_names(self) -> Sequence[str]:
        """Names of the edge features."""

    @property
    def edge_context_names(self) -> Sequence[str]:
        """Names of the edge features of :meth:`Sites.edge_context`."""
        return ("like probabilities",)

    @abstractmethod
    def labels_shape(self, given: Any) -> tuple[int, ...]:
        """The shape of an input's labels: one per pixel or point."""

    @abstractmethod
    def state(self) -> State:
        """Plain values and arrays for :meth:`from_state`."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """The extractor of a model file; ValueError, KeyError or TypeError if the state makes no sense."""
