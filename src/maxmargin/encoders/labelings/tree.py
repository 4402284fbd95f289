"""Trees and graphs of small width with a label per node: X is a list of :class:`Graph`, y a list of label sequences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin.encoders.base import Batch, State
from maxmargin.encoders.data import checks, graphs
from maxmargin.encoders.data.labels import plain
from maxmargin.encoders.data.names import ColumnNames, Name, Namer, WeightTable, clique_nodes, joined, table
from maxmargin.encoders.labelings.labeled import LabeledEncoder
from maxmargin.features.cliques import CliqueFeatures
from maxmargin.features.parts import Stacked
from maxmargin.features.tree import TreeFeatures
from maxmargin.structures._arrays import Ragged
from maxmargin.structures.base import IntArray
from maxmargin.structures.sparse import SparsePoint
from maxmargin.structures.trees.cliques import MOST_NODES
from maxmargin.structures.trees.junction import JunctionTree
from maxmargin.structures.trees.tree import Tree

MOST_JOINT_WEIGHTS = 10_000_000
"""Weights of one table of joint labels of a clique."""


@dataclass(frozen=True, eq=False)
class TreeEncoder(LabeledEncoder):
    """Encodes forests and graphs of small width.

    Attributes:
        width: largest tree width of a graph: 1 for forests only, None for any that can be computed.
        clique_sizes: the numbers of nodes of cliques in the training data, rising.
        n_clique_features: columns of the clique features; 0 if scores of cliques do not see the input.
    """

    width: int | None = None
    clique_sizes: tuple[int, ...] = ()
    n_clique_features: int = 0

    kind = "tree"

    def parse(self, X: list[Any]) -> graphs.Graphs:
        """The graphs."""
        return graphs.parse(X)

    def learn(self, parsed: graphs.Graphs, y: Sequence[Any]) -> Self:
        """Labels (sorted where they can be), widths and sizes of cliques."""
        if self.width is not None:
            _checks.integer("width", self.width, least=1)
        learned = self._learned(parsed.nodes, parsed.optional_edge_rows(), y)
        return replace(learned, clique_sizes=(), n_clique_features=0)._with_cliques(parsed)

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """Widths are those of the first block, labels and sizes of cliques those of all."""
        learned = super().learn_blocks(blocks)
        for X, _ in blocks:
            learned = learned._with_cliques(self.parse(checks.examples(X)))
        return learned

    def _with_cliques(self, parsed: graphs.Graphs) -> Self:
        """A copy that knows the cliques of further graphs."""
        cliques, rows = graphs.cliques(parsed.inputs)
        for index, own in enumerate(cliques):
            largest = max(map(len, own), default=0)
            if self.n_labels**largest > MOST_JOINT_WEIGHTS:
                raise ValueError(
                    f"example {index}: a clique of {largest} nodes with {self.n_labels} labels needs more than "
                    f"{MOST_JOINT_WEIGHTS} weights; give smaller cliques or fewer labels"
                )
        sizes = {len(clique) for own in cliques for clique in own}.union(self.clique_sizes)
        width = self.n_clique_features if rows is None else checks.Rows(rows, "clique features").width
        return replace(self, clique_sizes=tuple(sorted(sizes)), n_clique_features=width)

    def batch(self, parsed: graphs.Graphs) -> Batch:
        """The nodes and edges of all graphs."""
        X, offsets = parsed.inputs, parsed.nodes.offsets
        edge_rows = self._edge_matrix(parsed.nodes, parsed.optional_edge_rows())
        sizes, labels = self._allowed(X, np.diff(offsets))
        rows, ends, edge_offsets = self._row_matrix(parsed.nodes), parsed.edges, parsed.edge_offsets
        shape = (np.diff(offsets), self.n_labels if sizes is None else sizes, ends, edge_offsets)
        cliques, clique_rows = self._cliques(X)
        structure = (
            Tree(*shape, labels=labels)
            if cliques is None and (self.width == 1 or _is_forest(offsets, ends, edge_offsets))
            else JunctionTree(*shape, labels=labels, cliques=cliques, width=self.width)
        )
        pairwise = TreeFeatures(rows, structure, self.n_labels, edge_features=edge_rows)
        if cliques is None:
            return Batch(structure, pairwise)
        tables = CliqueFeatures(structure, self.n_labels, self.clique_sizes, features=clique_rows)
        return Batch(structure, Stacked(pairwise, tables))

    def _cliques(self, X: Sequence[Any]) -> tuple[list[list[IntArray]] | None, Any]:
        """Cliques of all graphs (None for a model without), and the rows of their features or None."""
        cliques, rows = graphs.cliques(X, self.n_clique_features)
        for index, own in enumerate(cliques):
            unknown = {len(clique) for clique in own} - set(self.clique_sizes)
            if unknown:
                raise ValueError(
                    f"example {index}: cliques of {min(unknown)} nodes were not seen in training; leave them out, or "
                    "train with some"
                )
        if not self.clique_sizes:
            return None, None
        if any(cliques) and (rows is not None) != bool(self.n_clique_features):
            raise ValueError(
                "clique features must be given for all graphs with cliques, in training and in prediction, or for none "
                "(mm.Graph(node_features, edges, cliques=..., clique_features=...))"
            )
        if not self.n_clique_features:
            return cliques, None
        each = checks.Rows(rows or [np.zeros((0, self.n_clique_features))], "clique features")
        each.require(self.n_clique_features)
        return cliques, each.matrix

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
            wanted = f"a list that holds, for each of its {count} nodes, the labels allowed there, or None for all"
            listed = _checks.listed(f"example {index}: labels", graph.labels, wanted)
            if len(listed) != count:
                raise ValueError(f"example {index}: labels must be {wanted}, got {len(listed)} entries")
            found += [everywhere if own is None else self._numbers(own, index, node) for node, own in enumerate(listed)]
        sizes = np.array([len(own) for own in found], dtype=np.int64)
        return sizes, np.concatenate([np.array(own, dtype=np.int64) for own in found])

    def _numbers(self, allowed: Any, index: int, node: int) -> list[int]:
        where = f"example {index}: labels of node {node}"
        if isinstance(allowed, (str, bytes)) or not hasattr(allowed, "__iter__"):
            raise ValueError(f"{where} must be a list of labels, got {shown(allowed)}")
        listed = [plain(label, where) for label in allowed]
        unknown = [label for label in listed if label not in self._index]
        if unknown:
            raise ValueError(
                f"{where}: {shown(unknown[0])} was not seen in training; give all labels with classes=[...] or leave "
                "it out"
            )
        if not listed or len(set(listed)) != len(listed):
            raise ValueError(f"{where} must be at least one label, each once; use None for all labels")
        return sorted(self._index[label] for label in listed)

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Labels to numbers, then to vertices; labels that their node does not have are refused in the user's words."""
        structure, codes = batch.structure, self.codes(y)
        assert isinstance(structure, Tree)
        if np.array_equal(np.diff(codes.offsets), structure.n_nodes):  # else the structure says what is wrong
            self._check_allowed(structure, codes)
        return structure.encode(codes)

    def _check_allowed(self, structure: Tree, codes: Ragged) -> None:
        wrong = structure.forbidden(codes.flat)
        if wrong.size:
            index = int(np.searchsorted(structure.node_offsets, wrong[0], side="right")) - 1
            node = int(wrong[0] - structure.node_offsets[index])
            label = (self.classes or ())[int(codes[index][node])]
            raise ValueError(
                f"example {index}: label {shown(label)} is not among the labels allowed at node {node}; "
                "correct y, or add it to the graph's labels"
            )

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Nodes with their labels, and edges and cliques with those of their nodes."""
        tree, k = batch.structure, self.n_labels
        assert isinstance(tree, Tree)
        node, edge = (np.repeat(np.arange(len(n)), n) for n in (tree.n_labels, np.diff(tree._tables)))
        pairs = tree.pair_labels(k)
        names: list[Namer] = [
            lambda at: Name(f"node {node[at]}", self.label_text(int(tree.part_states[at]))),
            lambda at: Name("edge {}-{}".format(*tree.edges[edge[at]]), self.pair_text(int(pairs[at]))),
        ]
        if len(tree.blocks) > 2:
            cliques, joint = tree.cliques, tree.joint_labels(k)
            clique = np.repeat(np.arange(len(cliques)), np.diff(cliques.tables))

            def of_clique(at: int) -> Name:
                own = int(clique[at])
                text = joined(self.label_text, k, int(cliques.sizes[own]))
                return Name(clique_nodes(cliques, own), text(int(joint[at])))

            names.append(of_clique)
        return names

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """Those of cliques come last, by size."""
        names, width = super().name_weights(columns), self.n_clique_features
        column = columns.of("clique_features", width) if width else str
        for size in self.clique_sizes:
            joint = self.n_labels**size, joined(self.label_text, self.n_labels, size)
            names += [table(1, lambda at: "joint labels", *joint), table(width, column, *joint)]
        return names

    @property
    def n_weights(self) -> int:
        """Those of nodes and edges, then for each size of cliques a table of joint labels and one per feature."""
        tables: int = sum(self.n_labels**size for size in self.clique_sizes)
        return super().n_weights + (1 + self.n_clique_features) * tables

    @property
    def layout(self) -> tuple[Any, ...]:
        """All widths, sizes of cliques, and the labels in order."""
        return *super().layout, self.clique_sizes, self.n_clique_features

    def state(self) -> State:
        """Labels, feature counts, sizes of cliques and the largest tree width."""
        return {
            **super().state(),
            "width": self.width,
            "clique_sizes": list(self.clique_sizes),
            "n_clique_features": self.n_clique_features,
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        width = state["width"]
        checked = None if width is None else _checks.integer("width", width, least=1)
        sizes = state["clique_sizes"]
        if not isinstance(sizes, list) or any(isinstance(size, bool) or not isinstance(size, int) for size in sizes):
            raise ValueError("its sizes of cliques are not a list of integers")
        if sizes != sorted(set(sizes)) or any(not 1 <= size <= MOST_NODES for size in sizes):
            raise ValueError(f"its sizes of cliques do not rise from 1 to at most {MOST_NODES}")
        return replace(
            super().from_state(state),
            width=checked,
            clique_sizes=tuple(sizes),
            n_clique_features=_checks.integer("n_clique_features", state["n_clique_features"], least=0),
        )


def _is_forest(node_offsets: IntArray, edges: IntArray, edge_offsets: IntArray) -> bool:
    """Whether no graph has a cycle: every edge then joins two trees into one. Edges outside their graph: False."""
    from scipy.sparse.csgraph import connected_components  # here, as it loads scipy.linalg

    first = np.repeat(node_offsets[:-1], np.diff(edge_offsets))
    sizes = np.repeat(np.diff(node_offsets), np.diff(edge_offsets))
    if ((edges < 0) | (edges >= sizes[:, None])).any():
        return False
    n = int(node_offsets[-1])
    tails, heads = (edges + first[:, None]).T
    joined = sp.coo_array((np.ones(len(edges)), (tails, heads)), shape=(n, n))
    return bool(n - connected_components(joined, directed=False)[0] == len(edges))
