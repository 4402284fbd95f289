"""Cliques, sets of nodes that are scored together: those of a batch of graphs, packed and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.structures._arrays import IntArray, integers, offsets_of, ranges


@dataclass(frozen=True, eq=False)
class Cliques:
    """The cliques of a batch.

    Attributes:
        offsets: where the cliques of each example begin, shape ``(n_examples + 1,)``.
        begin: where the nodes of each clique begin, shape ``(n_cliques + 1,)``.
        nodes: nodes of all cliques, counted from 0 within the example.
        node_offsets: where the nodes of each example begin, shape ``(n_examples + 1,)``.
    """

    offsets: IntArray
    begin: IntArray
    nodes: IntArray
    node_offsets: IntArray

    fewest: ClassVar[int] = 2
    """The least number of nodes of a clique."""

    remedy: ClassVar[str] = "put what it says of its node into the node's features"
    """What to do about a clique of fewer nodes."""

    @classmethod
    def of(cls, given: Sequence[Any], node_offsets: IntArray, **more: Any) -> Self:
        """From a list per example of sequences of node numbers; ValueError naming the example of an invalid clique."""
        given = _checks.listed("cliques", given, "a list with, for each example, a list of tuples of node numbers")
        if len(given) != len(node_offsets) - 1:
            raise ValueError(
                f"cliques has {len(given)} entries for {len(node_offsets) - 1} examples; give one for each"
            )
        read = [read_cliques(own, i) for i, own in enumerate(given)]
        found = list(chain.from_iterable(read))
        begin = offsets_of([len(clique) for clique in found])
        nodes = np.concatenate([np.zeros(0, dtype=np.int64), *found])
        cliques = cls(offsets_of([len(own) for own in read]), begin, nodes, node_offsets, **more)
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

    def select(self, chosen: IntArray, node_offsets: IntArray, **more: Any) -> Self:
        """The cliques of the given examples, whose nodes begin at ``node_offsets`` in the new batch."""
        own = ranges(self.offsets[chosen], self.offsets[chosen + 1])
        return replace(
            self,
            offsets=offsets_of(np.diff(self.offsets)[chosen]),
            begin=offsets_of(self.sizes[own]),
            nodes=self.nodes[ranges(self.begin[own], self.begin[own + 1])],
            node_offsets=node_offsets,
            **more,
        )

    def _check(self) -> None:
        n_nodes = np.diff(self.node_offsets)[self.owner]
        each = np.repeat(np.arange(len(self)), self.sizes)
        self._refuse(self.sizes == 0, "without nodes", "leave it out")
        outside = np.zeros(len(self), dtype=np.bool_)
        outside[each[(self.nodes < 0) | (self.nodes >= n_nodes[each])]] = True
        self._refuse(outside, "with nodes that it does not have", "number its nodes from 0 within the example")
        order = np.lexsort((self.nodes, each))
        ordered = self.nodes[order]
        twice = np.zeros(len(self), dtype=np.bool_)
        twice[each[1:][(np.diff(ordered) == 0) & (np.diff(each) == 0)]] = True
        self._refuse(twice, "with the same node more than once", "name each node once")
        self._refuse(self.sizes < self.fewest, f"of fewer than {self.fewest} nodes", self.remedy)
        seen: set[tuple[int, bytes]] = set()
        same = np.zeros(len(self), dtype=np.bool_)
        for c, (example, first, last) in enumerate(
            zip(self.owner.tolist(), self.begin[:-1].tolist(), self.begin[1:].tolist(), strict=True)
        ):
            key = (example, ordered[first:last].tobytes())
            same[c] = key in seen
            seen.add(key)
        self._refuse(same, "more than once", "keep one clique for each set of nodes and add up its scores")

    def _refuse(self, wrong: npt.NDArray[np.bool_], what: str, remedy: str) -> None:
        if wrong.any():
            c = int(np.argmax(wrong))
            shown = self.nodes[self.begin[c] : self.begin[c + 1]].tolist()
            clique = f"({', '.join(map(str, shown[:8]))}{', ...' if len(shown) > 8 else ''})"
            raise ValueError(f"example {self.owner[c]} has a clique {what}, {clique}; {remedy}")


def read_cliques(own: Any, example: int) -> list[IntArray]:
    """The cliques of one example as int64 vectors."""
    if own is None:
        return []
    what, wanted = f"example {example}: its cliques", "a list of tuples of node numbers"
    found = []
    for clique in _checks.listed(what, own, wanted):
        odd = isinstance(clique, (str, bytes, dict, set)) or not hasattr(clique, "__len__")
        try:
            array = integers(None if odd else clique, "a clique")
        except ValueError:
            odd = True
        if odd or array.ndim != 1:
            raise ValueError(f"{what} must be {wanted}, but one is {shown(clique)}")
        found.append(array)
    return found
