"""Tables of cliques: a part for each joint label of a set of nodes.

Clique ``c`` has nodes ``v_1 .. v_s``, in an order that counts, and one part for each of their joint labels
``(a_1, ..., a_s)``: a table, row-major in that order, so the last node's labels run fastest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from maxmargin.structures._arrays import IntArray, offsets_of
from maxmargin.structures.clique_sets import Cliques

MOST_JOINT = 100_000
"""Joint labels of one clique, or of one cluster of a junction tree."""

MOST_NODES = 32
"""Nodes of one clique; more would have too many joint labels unless some nodes have a single one."""


@dataclass(frozen=True, eq=False)
class CliqueTables(Cliques):
    """The cliques of a batch of junction trees, each with a table of parts.

    Attributes:
        n_labels: labels of each node of the batch.
    """

    n_labels: IntArray

    fewest = 1

    @classmethod
    def none(cls, node_offsets: IntArray, n_labels: IntArray) -> Self:
        """A batch without cliques."""
        none = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(len(node_offsets), dtype=np.int64), offsets_of(none), none, node_offsets, n_labels)

    @cached_property
    def _steps(self) -> IntArray:
        """For each node of a clique, how far apart entries lie whose labels of it differ by one: shape of ``nodes``."""
        steps = np.ones(len(self.nodes), dtype=np.int64)
        labels = self.n_labels[self.ends]
        for place in range(int(self.sizes.max(initial=1)) - 2, -1, -1):
            at = self.begin[:-1][self.sizes > place + 1] + place
            steps[at] = steps[at + 1] * labels[at + 1]
        return steps

    @cached_property
    def tables(self) -> IntArray:
        """Where the table of each clique begins in the block of cliques, and the number of its parts at the end."""
        if not len(self):
            return np.zeros(1, dtype=np.int64)
        first = self.begin[:-1]
        return offsets_of(self._steps[first] * self.n_labels[self.ends[first]])

    def parts(self, places: IntArray) -> IntArray:
        """The part of each clique where nodes of the batch have the labels in these places: shape ``(n_cliques,)``."""
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        return self.tables[:-1] + np.add.reduceat(places[self.ends] * self._steps, self.begin[:-1])

    def joint_labels(self, labels: IntArray, node_begin: IntArray, n_labels: int) -> IntArray:
        """Which labels each part stands for, as the digits of one number of base ``n_labels``, the last node's last.

        ``labels[node_begin[v]:node_begin[v + 1]]`` are those of node ``v`` of the batch.
        """
        clique = np.repeat(np.arange(len(self)), np.diff(self.tables))
        entry = np.arange(len(clique)) - self.tables[clique]
        joint = np.zeros(len(clique), dtype=np.int64)
        for place in range(int(self.sizes.max(initial=0))):
            here = np.flatnonzero(self.sizes[clique] > place)
            at = self.begin[clique[here]] + place
            node = self.ends[at]
            digit = entry[here] // self._steps[at] % self.n_labels[node]
            joint[here] = joint[here] * n_labels + labels[node_begin[node] + digit]
        return joint

    def pairs(self) -> tuple[IntArray, IntArray]:
        """All pairs of nodes of a clique, shape ``(n_pairs, 2)``, numbered within the example; and their examples."""
        found = [np.zeros((0, 2), dtype=np.int64)]
        owner = [np.zeros(0, dtype=np.int64)]
        for size in np.unique(self.sizes).tolist():
            own = np.flatnonzero(self.sizes == size)
            nodes = self.nodes[self.begin[own][:, None] + np.arange(size)]
            first, second = np.triu_indices(size, 1)
            found.append(np.stack([nodes[:, first].ravel(), nodes[:, second].ravel()], axis=1))
            owner.append(np.repeat(self.owner[own], len(first)))
        return np.concatenate(found), np.concatenate(owner)

    def _check(self) -> None:
        self._refuse(self.sizes > MOST_NODES, f"of more than {MOST_NODES} nodes", "split it")
        super()._check()
        logs = np.log(self.n_labels)[self.ends]
        joint = np.exp(np.add.reduceat(logs, self.begin[:-1])) if len(self) else np.zeros(0)
        self._refuse(
            joint > MOST_JOINT * (1.0 + 1e-9), f"of more than {MOST_JOINT} joint labels", "leave out nodes or labels"
        )
