"""Trees and graphs of small width with a label per node: X is a list of :class:`Graph`, y a list of label sequences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from maxmargin.features.tree import TreeFeatures
from maxmargin.packing import checks
from maxmargin.packing.base import Packed, Packer
from maxmargin.packing.inputs import Graph
from maxmargin.packing.labels import distinct, label_from_json, label_to_json, plain, sequence, vocabulary
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.junction import JunctionTree
from maxmargin.structures.tree import Tree


@dataclass(frozen=True, eq=False)
class TreePacker(Packer):
    """Packs forests and graphs of small width.

    Attributes:
        classes: all labels, in the order of the weights' columns; None: those of the training data.
        width: largest tree width of a graph: 1 for forests only, None for any that can be computed.
        n_features: columns of the node features.
        n_edge_features: columns of the edge features; 0 if pairs of labels do not see the input.
    """

    classes: tuple[Hashable, ...] | None = None
    width: int | None = None
    n_features: int | None = None
    n_edge_features: int | None = None

    kind = "tree"

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {label: k for k, label in enumerate(self.classes or ())}

    def learn(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Labels (sorted where they can be) and widths."""
        if self.width is not None:
            checks.integer(self.width, "width", at_least=1)
        nodes, _, edges = _split(X)
        classes = vocabulary(y) if self.classes is None else distinct(self.classes)
        return replace(
            self,
            classes=classes,
            n_features=checks.width(nodes, None, "node features"),
            n_edge_features=0 if edges is None else checks.width(edges, None, "edge features"),
        )

    def pack(self, X: Sequence[Any]) -> Packed:
        """Stack nodes and edges of all graphs."""
        nodes, edges, features = _split(X)
        checks.width(nodes, self.n_features, "node features")
        if (features is not None) != bool(self.n_edge_features):
            raise ValueError(
                "edge features must be given for all graphs, in training and in prediction, or for none "
                "(mm.Graph(node_features, edges, edge_features))"
            )
        rows, offsets = checks.stack(nodes, "node features")
        edge_rows = None
        if features is not None:
            checks.width(features, self.n_edge_features, "edge features")
            edge_rows, _ = checks.stack(features, "edge features")
        n_labels = len(self.classes or ())
        sizes, labels = self._allowed(X, np.diff(offsets))
        n_all = (
            np.diff(offsets),
            n_labels if sizes is None else sizes,
            np.concatenate(edges),
            offsets_of([len(found) for found in edges]),
        )
        structure = (
            Tree(*n_all, labels=labels) if self.width == 1 else JunctionTree(*n_all, labels=labels, width=self.width)
        )
        return Packed(structure, TreeFeatures(rows, structure, n_labels, edge_features=edge_rows))

    def _allowed(self, X: Sequence[Any], counts: IntArray) -> tuple[IntArray | None, IntArray | None]:
        """Numbers of labels of all nodes, and which; None and None where all nodes have all."""
        if all(graph.labels is None for graph in X):
            return None, None
        everywhere = list(range(len(self.classes or ())))
        found: list[list[int]] = []
        for index, (graph, count) in enumerate(zip(X, counts.tolist(), strict=True)):
            if graph.labels is None:
                found += [everywhere] * count
                continue
            listed = graph.labels
            if isinstance(listed, (str, bytes, dict)) or not hasattr(listed, "__len__") or len(listed) != count:
                raise ValueError(
                    f"example {index}: labels must hold, for each of its {count} nodes, the labels allowed there, or "
                    "None for all"
                )
            found += [everywhere if own is None else self._numbers(own, index, node) for node, own in enumerate(listed)]
        sizes = np.array([len(own) for own in found], dtype=np.int64)
        return sizes, np.concatenate([np.array(own, dtype=np.int64) for own in found])

    def _numbers(self, allowed: Any, index: int, node: int) -> list[int]:
        where = f"example {index}: labels of node {node}"
        if isinstance(allowed, (str, bytes)) or not hasattr(allowed, "__iter__"):
            raise ValueError(f"{where} must be a list of labels, got {allowed!r}")
        listed = [plain(label, where) for label in allowed]
        unknown = [label for label in listed if label not in self._index]
        if unknown:
            raise ValueError(
                f"{where}: {unknown[0]!r} was not seen in training; give all labels with classes=[...] or leave it out"
            )
        if not listed or len(set(listed)) != len(listed):
            raise ValueError(f"{where} must be at least one label, each once; use None for all labels")
        return sorted(self._index[label] for label in listed)

    def encode(self, packed: Packed, y: Sequence[Any]) -> FloatArray:
        """Labels to numbers, then to vertices."""
        structure = packed.structure
        assert isinstance(structure, Tree)
        given = [sequence(labels, index) for index, labels in enumerate(checks.examples(y, "y"))]
        numbers = []
        for index, labels in enumerate(given):
            try:
                numbers.append(np.array([self._index[label] for label in labels], dtype=np.int64))
            except KeyError as error:
                raise ValueError(
                    f"example {index}: label {error.args[0]!r} was not seen in training; "
                    "give all labels with classes=[...] or remove the example"
                ) from None
        if len(numbers) == structure.n_examples:
            self._check_allowed(structure, given, numbers)
        return structure.encode(numbers)

    def _check_allowed(self, structure: Tree, given: list[list[Hashable]], numbers: list[IntArray]) -> None:
        """Refuse labels that their node does not have, in the user's words."""
        if any(len(own) != count for own, count in zip(numbers, structure.n_nodes.tolist(), strict=True)):
            return  # the structure says what is wrong
        wrong = structure.forbidden(np.concatenate(numbers))
        if wrong.size:
            index = int(np.searchsorted(structure.node_offsets, wrong[0], side="right")) - 1
            node = int(wrong[0] - structure.node_offsets[index])
            raise ValueError(
                f"example {index}: label {given[index][node]!r} is not among the labels allowed at node {node}; "
                "correct y, or add it to the graph's labels"
            )

    def decode(self, packed: Packed, z: FloatArray) -> list[list[Hashable]]:
        """Lists of labels."""
        classes = self.classes or ()
        return [[classes[k] for k in numbers.tolist()] for numbers in packed.structure.decode(z)]

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Right labels out of nodes."""
        return float(sum(a == b for a, b in zip(sequence(gold, 0), predicted, strict=True))), float(len(predicted))

    @property
    def n_weights(self) -> int:
        """Node weights, one matrix of pairs, and one matrix per edge feature."""
        k = len(self.classes or ())
        return (self.n_features or 0) * k + (1 + (self.n_edge_features or 0)) * k**2

    @property
    def layout(self) -> tuple[Any, ...]:
        """Both widths, and the labels in order."""
        return self.kind, self.n_features, self.n_edge_features, self.classes

    def header(self) -> dict[str, Any]:
        """Labels, feature counts and the largest tree width."""
        return {
            "classes": [label_to_json(label) for label in self.classes or ()],
            "width": self.width,
            "n_features": self.n_features,
            "n_edge_features": self.n_edge_features,
        }

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """See :meth:`Packer.from_header`."""
        if not isinstance(header["classes"], list):
            raise ValueError("its labels are not a list")
        width = header["width"]
        return cls(
            classes=distinct([label_from_json(label) for label in header["classes"]]),
            width=None if width is None else checks.integer(width, "width", at_least=1),
            n_features=checks.integer(header["n_features"], "n_features"),
            n_edge_features=checks.integer(header["n_edge_features"], "n_edge_features"),
        )


def _split(X: Sequence[Any]) -> tuple[list[Any], list[IntArray], list[Any] | None]:
    nodes, edges, features = [], [], []
    for index, graph in enumerate(checks.examples(X)):
        if not isinstance(graph, Graph):
            raise ValueError(
                f"example {index}: X must be a list of mm.Graph(node_features, edges, edge_features), "
                f"got {type(graph).__name__}"
            )
        nodes.append(checks.matrix(graph.node_features, index, "node features"))
        if nodes[-1].shape[0] == 0:
            raise ValueError(f"example {index}: a graph needs at least one node; remove it")
        found = checks.pairs(graph.edges, index, "edges", "(n_edges, 2)")
        if graph.edge_features is not None:
            features.append(checks.matrix(graph.edge_features, index, "edge features"))
            checks.edges(found, index, features[-1].shape[0], "edge features")
        edges.append(found)
    if features and len(features) != len(nodes):
        without = next(i for i, graph in enumerate(X) if graph.edge_features is None)
        raise ValueError(
            f"example {without}: no edge features, but {len(features)} of {len(nodes)} graphs have them; "
            "give them for all or for none"
        )
    return nodes, edges, features or None
