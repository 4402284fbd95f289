"""Trees and graphs of small width with a label per node: X is a list of :class:`Graph`, y a list of label sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from maxmargin.features.tree import TreeFeatures
from maxmargin.packing import checks, graphs
from maxmargin.packing.base import Packed
from maxmargin.packing.labelled import LabelledPacker
from maxmargin.packing.labels import plain
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.junction import JunctionTree
from maxmargin.structures.tree import Tree


@dataclass(frozen=True, eq=False)
class TreePacker(LabelledPacker):
    """Packs forests and graphs of small width.

    Attributes:
        width: largest tree width of a graph: 1 for forests only, None for any that can be computed.
    """

    width: int | None = None

    kind = "tree"

    def learn(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Labels (sorted where they can be) and widths."""
        if self.width is not None:
            checks.integer(self.width, "width", at_least=1)
        nodes, _, features = graphs.split(X)
        return self._learned(nodes, graphs.all_or_none(features, "graphs"), y)

    def pack(self, X: Sequence[Any]) -> Packed:
        """Stack nodes and edges of all graphs."""
        nodes, edges, features = graphs.split(X)
        rows, offsets, edge_rows = self._stacked(nodes, graphs.all_or_none(features, "graphs"))
        sizes, labels = self._allowed(X, np.diff(offsets))
        n_all = (
            np.diff(offsets),
            self.n_labels if sizes is None else sizes,
            np.concatenate(edges),
            offsets_of([len(found) for found in edges]),
        )
        structure = (
            Tree(*n_all, labels=labels) if self.width == 1 else JunctionTree(*n_all, labels=labels, width=self.width)
        )
        return Packed(structure, TreeFeatures(rows, structure, self.n_labels, edge_features=edge_rows))

    def _allowed(self, X: Sequence[Any], counts: IntArray) -> tuple[IntArray | None, IntArray | None]:
        """Numbers of labels of all nodes, and which; None and None where all nodes have all."""
        if all(graph.labels is None for graph in X):
            return None, None
        everywhere = list(range(self.n_labels))
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
        numbers = self.label_numbers(y)
        if len(numbers) == structure.n_examples:
            self._check_allowed(structure, numbers)
        return structure.encode(numbers)

    def _check_allowed(self, structure: Tree, numbers: list[IntArray]) -> None:
        """Refuse labels that their node does not have, in the user's words."""
        if any(len(own) != count for own, count in zip(numbers, structure.n_nodes.tolist(), strict=True)):
            return  # the structure says what is wrong
        wrong = structure.forbidden(np.concatenate(numbers))
        if wrong.size:
            index = int(np.searchsorted(structure.node_offsets, wrong[0], side="right")) - 1
            node = int(wrong[0] - structure.node_offsets[index])
            label = (self.classes or ())[int(numbers[index][node])]
            raise ValueError(
                f"example {index}: label {label!r} is not among the labels allowed at node {node}; "
                "correct y, or add it to the graph's labels"
            )

    def header(self) -> dict[str, Any]:
        """Labels, feature counts and the largest tree width."""
        return {**super().header(), "width": self.width}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """See :meth:`Packer.from_header`."""
        width = header["width"]
        checked = None if width is None else checks.integer(width, "width", at_least=1)
        return replace(super().from_header(header), width=checked)
