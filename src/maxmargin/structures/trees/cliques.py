"""Sets of nodes that are scored together: the cliques of a batch of graphs, packed.

Clique ``c`` has nodes ``v_1 .. v_s``, in an order that counts, and one part for each of their joint labels
``(a_1, ..., a_s)``: a table, row-major in that order, so the last node's labels run fastest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.structures._arrays import IntArray, integers, offsets_of, ranges

MOST_JOINT = 100_000
"""Joint labels of one clique, or of one cluster of a junction tree."""

MOST_NODES = 32
"""Nodes of one clique; more would have too many joint labels unless some nodes have a single one."""


@dataclass(frozen=True, eq=False)
class Cliques:
    """The cliques of a batch.

    Attributes:
        offsets: where the cliques of each example begin, shape ``(n_examples + 1,)``.
        begin: where the nodes of each clique begin, shape ``(n_cliques + 1,)``.
        nodes: nodes of all cliques, counted from 0 within the example.
        node_offsets: where the nodes of each example begin, shape ``(n_examples + 1,)``.
        n_labels: labels of each node of the batch.
    """

    offsets: IntArray
    begin: IntArray
    nodes: IntArray
    node_offsets: IntArray
    n_labels: IntArray

    @classmethod
    def none(cls, node_offsets: IntArray, n_labels: IntArray) -> Self:
        """A batch without cliques."""
        none = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(len(node_offsets), dtype=np.int64), offsets_of(none), none, node_offsets, n_labels)

    @classmethod
    def of(cls, given: Sequence[Any], node_offsets: IntArray, n_labels: IntArray) -> Self:
        """From a list per example of sequences of node numbers; ValueError naming the example of an invalid clique."""
        if isinstance(given, (str, bytes, dict)) or not hasattr(given, "__len__"):
            raise ValueError("cliques must be a list with, for each example, a list of tuples of node numbers")
        if len(given) != len(node_offsets) - 1:
            raise ValueError(
                f"cliques has {len(given)} entries for {len(node_offsets) - 1} examples; give one for each"
            )
        read = [read_cliques(own, i) for i, own in enumerate(given)]
        found = list(chain.from_iterable(read))
        begin = offsets_of([len(clique) for clique in found])
        nodes = np.concatenate([np.zeros(0, dtype=np.int64), *found])
        cliques = cls(offsets_of([len(own) for own in read]), begin, nodes, node_offsets, n_labels)
        cliques._check()
        return cliques

    def __len__(self) -> int:
        return len(self.begin) - 1

    @cached_property
    def sizes(self) -> IntArray:
        """Number of nodes of each clique, shape ``(n_cliques,)``."""
        return np.diff(self.begin)

    @cached_property
    def owner(self) -> IntArray:
        """The example of each clique, shape ``(n_cliques,)``."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def ends(self) -> IntArray:
        """Nodes of all cliques, counted over the batch: the shape of ``nodes``."""
        return self.node_offsets[np.repeat(self.owner, self.sizes)] + self.nodes

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

    def select(self, chosen: IntArray, node_offsets: IntArray, n_labels: IntArray) -> Self:
        """The cliques of the given examples, whose nodes begin at ``node_offsets`` in the new batch."""
        own = ranges(self.offsets[chosen], self.offsets[chosen + 1])
        return replace(
            self,
            offsets=offsets_of(np.diff(self.offsets)[chosen]),
            begin=offsets_of(self.sizes[own]),
            nodes=self.nodes[ranges(self.begin[own], self.begin[own + 1])],
            node_offsets=node_offsets,
            n_labels=n_labels,
        )

    def _check(self) -> None:
        n_nodes = np.diff(self.node_offsets)[self.owner]
        each = np.repeat(np.arange(len(self)), self.sizes)
        self._refuse(self.sizes == 0, "without nodes", "leave it out")
        self._refuse(self.sizes > MOST_NODES, f"of more than {MOST_NODES} nodes", "split it")
        outside = np.zeros(len(self), dtype=np.bool_)
        outside[each[(self.nodes < 0) | (self.nodes >= n_nodes[each])]] = True
        self._refuse(outside, "with nodes that it does not have", "number its nodes from 0 within the example")
        order = np.lexsort((self.nodes, each))
        ordered = self.nodes[order]
        twice = np.zeros(len(self), dtype=np.bool_)
        twice[each[1:][(np.diff(ordered) == 0) & (np.diff(each) == 0)]] = True
        self._refuse(twice, "with the same node more than once", "name each node once")
        seen: set[tuple[int, bytes]] = set()
        same = np.zeros(len(self), dtype=np.bool_)
        for c, (example, first, last) in enumerate(
            zip(self.owner.tolist(), self.begin[:-1].tolist(), self.begin[1:].tolist(), strict=True)
        ):
            key = (example, ordered[first:last].tobytes())
            same[c] = key in seen
            seen.add(key)
        self._refuse(same, "more than once", "keep one clique for each set of nodes and add up its scores")
        logs = np.log(self.n_labels)[self.ends]
        joint = np.exp(np.add.reduceat(logs, self.begin[:-1])) if len(self) else np.zeros(0)
        self._refuse(
            joint > MOST_JOINT * (1.0 + 1e-9), f"of more than {MOST_JOINT} joint labels", "leave out nodes or labels"
        )

    def _refuse(self, wrong: npt.NDArray[np.bool_], what: str, remedy: str) -> None:
        if wrong.any():
            c = int(np.argmax(wrong))
            shown = self.nodes[self.begin[c] : self.begin[c + 1]].tolist()
            clique = f"({', '.join(map(str, shown[:8]))}{', ...' if len(shown) > 8 else ''})"
            raise ValueError(f"example {self.owner[c]} has a clique {what}, {clique}; {remedy}")


def read_cliques(own: Any, example: int) -> list[IntArray]:
    """The cliques of one example as int64 vectors."""
    message = f"example {example}: its cliques must be a list of tuples of node numbers"
    if own is None:
        return []
    if isinstance(own, (str, bytes, dict)) or not hasattr(own, "__len__"):
        raise ValueError(f"{message}, got {own!r}")
    found = []
    for clique in own:
        if isinstance(clique, (str, bytes, dict, set)) or not hasattr(clique, "__len__"):
            raise ValueError(f"{message}, but one is {clique!r}")
        try:
            array = np.asarray(clique)
        except ValueError:
            raise ValueError(f"{message}, but one is {clique!r}") from None
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(f"{message}, but one is {clique!r}")
        found.append(integers(array, "cliques"))
    return found
