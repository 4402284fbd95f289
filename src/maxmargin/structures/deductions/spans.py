"""Trees of labeled spans: nested spans of a sentence with labels, as in constituency parsing, by CKY.

Example ``i`` is a sentence of ``n`` tokens. Its parts are all spans with all labels, ``z_{b,e,l} = 1`` if the tree has
a node of label ``l`` over the tokens ``b .. e - 1``; a span has at most one label, and no two spans cross. Nodes may
have any number of children: spans that only bring children together in pairs have no part and no score. Each tree is
derived once, its children from left to right, so k-best lists and marginals count trees, not ways to binarize them.

With ``splits`` there is a second block: for a node with children that meet at ``c_0 < c_1 < ... < c_m`` the parts
``(c_t, c_{t+1}, c_m)``, ``t = 0 .. m - 2``: what is left of the node is split into its first child and the rest.

Cost of the argmax: ``n^3 / 6`` additions for splits and ``n^2 / 2`` times the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels
from maxmargin.structures._arrays import example_numbers, offsets_of
from maxmargin.structures.base import Block, IntArray
from maxmargin.structures.deductions.charts import Chart
from maxmargin.structures.sparse import SparsePoint


class Spans(Chart):
    """A packed batch of sentences with the block ``spans`` and, if asked for, ``splits``.

    Args:
        lengths: numbers of tokens, at least 1, shape ``(n_examples,)``.
        n_labels: how many labels a span can have.
        rooted: whether the whole sentence must be a node; else any nested spans are an output, also none.
        splits: whether splits are parts too.

    An output is an int64 array ``(n_nodes, 3)``: begin, end and label of each node, outer ones first; the order does
    not matter to :meth:`encode`. Part ``(b, e, l)`` stands at ``row K + l`` of the example's spans, which are ordered
    by begin, then by end (:func:`maxmargin.spans_of`); splits by begin, end and split (:func:`maxmargin.splits_of`).
    """

    name = "tree of spans"
    kernel = "Spans"

    def __init__(self, lengths: npt.ArrayLike, n_labels: int, *, rooted: bool = True, splits: bool = False) -> None:
        self._set_lengths(lengths)
        self.n_labels = _checks.integer("n_labels", n_labels, least=1)
        self.rooted, self.splits = _checks.flag("rooted", rooted), _checks.flag("splits", splits)
        n = self.lengths
        own = (Block("splits", offsets_of((n + 1) * n * (n - 1) // 6)),) if splits else ()
        self._set_blocks("spans", *own)

    def __repr__(self) -> str:
        return f"Spans({self.n_examples} sentences, {int(self.lengths.sum())} tokens, {self.n_labels} labels)"

    @cached_property
    def _batch(self) -> Any:
        return _kernels.SpansBatch(self.lengths, self.n_labels, self.rooted, self.splits)

    @cached_property
    def _part_offsets(self) -> IntArray:
        return np.arange(int(self._row_offsets[-1]) + 1, dtype=np.int64) * self.n_labels

    @cached_property
    def _first_number(self) -> IntArray:
        return np.zeros(int(self._row_offsets[-1]), dtype=np.int64)

    def _check(self, rows: IntArray, index: int) -> None:
        """Labels in range, no span twice, none that cross, and the whole sentence if that must be a node."""
        if (outside := (rows[:, 2] < 0) | (rows[:, 2] >= self.n_labels)).any():
            raise ValueError(
                f"example {index}: label {int(rows[int(np.argmax(outside)), 2])} is out of range for "
                f"{self.n_labels} labels"
            )
        ordered = rows[np.lexsort((-rows[:, 1], rows[:, 0]))]
        if (same := (np.diff(ordered[:, :2], axis=0) == 0).all(axis=1)).any():
            begin, end = ordered[int(np.argmax(same)), :2].tolist()
            raise ValueError(f"example {index}: span ({begin}, {end}) has two labels; join them into one, such as S+VP")
        if self.rooted and (not len(ordered) or ordered[0, 1] - ordered[0, 0] != self.lengths[index]):
            raise ValueError(
                f"example {index}: no node covers all {int(self.lengths[index])} tokens; add one, or use rooted=False"
            )
        children_of(ordered[:, :2], index)

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """The packed 0/1 vector of one tree per example: rows ``(begin, end, label)`` in any order."""
        rows = self._rows(labels, "a tree")
        places = [self._places(rows)]
        if self.splits:
            places += [self._splits(own, i) for i, own in enumerate(rows)]
        return SparsePoint.from_index(self, np.sort(np.concatenate(places)))

    def _splits(self, rows: IntArray, index: int) -> IntArray:
        """Where the splits of a tree stand in a packed vector."""
        n = int(self.lengths[index])
        spans = rows[np.lexsort((-rows[:, 1], rows[:, 0])), :2]
        found = []
        for node, children in children_of(spans, index).items():
            begin, end = (0, n) if node < 0 else spans[node].tolist()
            ends = _ends(begin, end, [spans[child].tolist() for child in children])
            found += [(b, k, end) for b, k in pairwise(ends[:-1])]
        if not found:
            return np.zeros(0, dtype=np.int64)
        begin, split, end = np.array(found, dtype=np.int64).T
        left, size = n - begin, end - begin
        place = ((n + 1) * n * (n - 1) - (left + 1) * left * (left - 1)) // 6
        place += (size - 1) * (size - 2) // 2 + split - begin - 1
        return np.asarray(self.starts[1] + self.blocks[1].offsets[index] + place, dtype=np.int64)

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order; an example may come several times."""
        chosen = example_numbers(indices, self.n_examples)
        return type(self)(self.lengths[chosen], self.n_labels, rooted=self.rooted, splits=self.splits)


def children_of(spans: IntArray, index: int) -> dict[int, list[int]]:
    """The children of each node of nested spans, ordered by begin and falling end; those of -1 are the outermost ones.

    ValueError naming the example if two spans cross.
    """
    children: dict[int, list[int]] = {-1: []}
    open_nodes: list[tuple[int, int]] = []  # number and end of the spans around the current one
    for node, (begin, end) in enumerate(spans.tolist()):
        while open_nodes and open_nodes[-1][1] <= begin:
            open_nodes.pop()
        if open_nodes and end > open_nodes[-1][1]:
            around = tuple(spans[open_nodes[-1][0]].tolist())
            raise ValueError(f"example {index}: spans {around} and {(begin, end)} cross; spans of a tree are nested")
        children[open_nodes[-1][0] if open_nodes else -1].append(node)
        children[node] = []
        open_nodes.append((node, end))
    return children


def _ends(begin: int, end: int, children: list[list[int]]) -> list[int]:
    """Where the children of a node meet, tokens without a node of their own included: from its start to its end."""
    found, at = [begin], begin
    for first, last in children:
        found += [*range(at + 1, first + 1), last]
        at = last
    return [*found, *range(at + 1, end + 1)]
