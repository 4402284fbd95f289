"""Features of trees: :class:`maxmargin.features.tied.PairwiseFeatures` where a node need not have all labels."""

from __future__ import annotations

import numpy as np

from maxmargin import _checks, _memory
from maxmargin._messages import shown
from maxmargin.features.rows import Matrix, Rows
from maxmargin.features.tied import PairwiseFeatures
from maxmargin.structures.trees.tree import Tree


class TreeFeatures(PairwiseFeatures):
    """Features of a batch of trees or junction trees, with the weights of :class:`maxmargin.features.ChainFeatures`.

    Edges have a direction, from the first end to the second as they were given. Cliques have
    :class:`maxmargin.features.CliqueFeatures`, to be stacked on these.

    Args:
        nodes: shape ``(n_nodes, d)``, one row per node of all examples, dense float64 or CSR.
        tree: the structure; its labels (:attr:`Tree.part_states`) must lie in ``0 .. K - 1``.
        n_labels: ``K``.
        edge_features: shape ``(n_edges, d_e)``, one row per edge of all examples, or None.
    """

    def __init__(self, nodes: Matrix | Rows, tree: Tree, n_labels: int, *, edge_features: Matrix | None = None) -> None:
        rows = nodes if isinstance(nodes, Rows) else Rows(nodes, "nodes")
        edges = None if edge_features is None else Rows(edge_features, "edge_features")
        if not isinstance(tree, Tree):
            raise ValueError(f"tree must be a Tree or JunctionTree, got {shown(tree)}")
        n_labels = _checks.integer("n_labels", n_labels, least=1)
        if rows.n != len(tree.n_labels):
            raise ValueError(f"nodes has {rows.n} rows, but the trees have {len(tree.n_labels)} nodes")
        if edges is not None and edges.n != len(tree.edges):
            raise ValueError(f"edge_features has {edges.n} rows, but the trees have {len(tree.edges)} edges")
        labels = tree.part_states
        if int(labels.max(initial=0)) >= n_labels:
            raise ValueError(f"the trees have labels up to {int(labels.max(initial=0))}; n_labels must be larger")
        node_parts = edge_parts = None
        _memory.require(8.0 * n_labels**2, "weights of all pairs of labels", "give fewer labels")
        if len(labels) != rows.n * n_labels:
            sizes = tree.n_labels[tree.ends[0]] * tree.n_labels[tree.ends[1]]
            node_parts = np.repeat(np.arange(rows.n) * n_labels, tree.n_labels) + labels
            edge_parts = np.repeat(np.arange(len(sizes)) * n_labels**2, sizes) + tree.pair_labels(n_labels)
        super().__init__(rows, tree.node_offsets, edges, tree.edge_offsets, n_labels, kept=(node_parts, edge_parts))
