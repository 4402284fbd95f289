"""Sentence pairs as bipartite matchings in which a word may have several links.

With ``fertility`` D a word has capacity D. It also has D - 1 *slots*, edges to nodes of their own that take one unit of
that capacity each: a word with one link can fill all its slots, and every further link costs it one. The score of a
slot is thus the cost of a second (third, ...) link, and is learned like the scores of links. The result is an ordinary
matching with capacities, whose polytope has no vertices other than such alignments: inference is exact, as in the
one-to-one case. (Lacoste-Julien, Taskar, Klein and Jordan 2006 write the same with slack variables.)

Parts of a pair with J source and K target words: for each source word its K cells, then its slots; then the slots of
the target words. With D = 1 the parts are the cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from maxmargin.structures._arrays import offsets_of, ranges
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.matchings.matching import Matching
from maxmargin.tasks.alignment.io.links import pack, refuse_outside, sentence_of


@dataclass(frozen=True, eq=False)
class FertilityBatch:
    """The matchings of a batch of sentence pairs, with the part numbers of cells and fertility slots.

    Attributes:
        n_source: source words of each pair.
        n_target: target words of each pair.
        fertility: maximum number of links of a word, at least 1.
    """

    n_source: IntArray
    n_target: IntArray
    fertility: int = 2

    @property
    def n_slots(self) -> int:
        """Number of slots of a word."""
        return self.fertility - 1

    @cached_property
    def grid_start(self) -> IntArray:
        """Offsets of the cells of each pair in a grid."""
        return offsets_of(self.n_source * self.n_target)

    @cached_property
    def _part_start(self) -> IntArray:
        return offsets_of(self.n_source * (self.n_target + self.n_slots) + self.n_target * self.n_slots)

    @property
    def n_parts(self) -> int:
        """Number of parts of the batch."""
        return int(self._part_start[-1])

    @cached_property
    def _source_words(self) -> tuple[IntArray, IntArray]:
        """Pair and position of every source word."""
        return _words(self.n_source)

    @cached_property
    def _target_words(self) -> tuple[IntArray, IntArray]:
        return _words(self.n_target)

    @cached_property
    def _cell_words(self) -> tuple[IntArray, IntArray, IntArray]:
        """Pair, source and target position of every cell."""
        pair = np.repeat(np.arange(len(self.n_source)), np.diff(self.grid_start))
        local = np.arange(len(pair)) - self.grid_start[pair]
        width = self.n_target[pair]
        return pair, local // np.maximum(width, 1), local % np.maximum(width, 1)

    @cached_property
    def cells(self) -> IntArray:
        """The part of every cell of the grid."""
        if not self.n_slots:
            return np.arange(self.n_parts)
        pair, j, k = self._cell_words
        return np.asarray(self._part_start[pair] + j * (self.n_target[pair] + self.n_slots) + k)

    @cached_property
    def source_slots(self) -> IntArray:
        """The parts of the slots of the source words, shape ``(source words, n_slots)``."""
        pair, j = self._source_words
        width = self.n_target[pair] + self.n_slots
        first = self._part_start[pair] + j * width + self.n_target[pair]
        return np.asarray(first[:, None] + np.arange(self.n_slots))

    @cached_property
    def target_slots(self) -> IntArray:
        """The parts of the slots of the target words, shape ``(target words, n_slots)``."""
        pair, k = self._target_words
        first = self._part_start[pair] + self.n_source[pair] * (self.n_target[pair] + self.n_slots) + k
        return np.asarray(first[:, None] + np.arange(self.n_slots) * self.n_target[pair][:, None])

    @cached_property
    def structure(self) -> Matching:
        """The matchings."""
        shapes = np.stack([self.n_source, self.n_target], axis=1)
        if not self.n_slots:
            return Matching.dense(shapes)
        D = self.n_slots
        edges = np.empty((self.n_parts, 2), dtype=np.int64)
        pair, j, k = self._cell_words
        edges[self.cells] = np.stack([j, k], axis=1)
        pair, j = self._source_words
        edges[self.source_slots, 0] = j[:, None]
        edges[self.source_slots, 1] = (self.n_target[pair] + j)[:, None] + np.arange(D) * self.n_source[pair][:, None]
        pair, k = self._target_words
        edges[self.target_slots, 0] = (self.n_source[pair] + k)[:, None] + np.arange(D) * self.n_target[pair][:, None]
        edges[self.target_slots, 1] = k[:, None]
        return Matching(
            np.stack([self.n_source + D * self.n_target, self.n_target + D * self.n_source], axis=1),
            edges,
            self._part_start,
            left_capacity=self._capacities(self.n_source, D * self.n_target),
            right_capacity=self._capacities(self.n_target, D * self.n_source),
        )

    def _capacities(self, words: IntArray, others: IntArray) -> IntArray:
        """Capacities: ``fertility`` for words, 1 for the slots of the other side."""
        sizes = np.stack([words, others], axis=1).ravel()
        return np.repeat(np.tile([self.fertility, 1], len(words)), sizes)

    def select(self, pairs: IntArray) -> FertilityBatch:
        """The given pairs."""
        return FertilityBatch(self.n_source[pairs], self.n_target[pairs], self.fertility)

    def grid_of(self, pairs: IntArray) -> IntArray:
        """The positions in a grid of the cells of the given pairs."""
        return ranges(self.grid_start[pairs], self.grid_start[pairs + 1])

    def grid(self, links: Sequence[IntArray]) -> npt.NDArray[np.bool_]:
        """The links of each pair as a 0/1 grid; ValueError if one is outside its pair."""
        start, flat = pack(links, "sentence pair")
        refuse_outside(start, flat, self.n_source, self.n_target)
        pair = sentence_of(start)
        grid = np.zeros(int(self.grid_start[-1]), dtype=bool)
        grid[self.grid_start[pair] + flat[:, 0] * self.n_target[pair] + flat[:, 1]] = True
        return grid

    def packed(self, cells: FloatArray, source: FloatArray, target: FloatArray) -> FloatArray:
        """Values of cells (a grid) and of slots (one row per word) as one vector of parts."""
        parts = np.empty(self.n_parts)
        parts[self.cells] = cells
        parts[self.source_slots] = source
        parts[self.target_slots] = target
        return parts

    def complete(self, cells: FloatArray) -> FloatArray:
        """The output with these cells (a 0/1 grid), in which words fill all the slots they can.

        The cells must respect the fertility.
        """
        pair, j, k = self._cell_words
        chosen = np.flatnonzero(cells > 0.5)
        at_source = offsets_of(self.n_source)[pair[chosen]] + j[chosen]
        at_target = offsets_of(self.n_target)[pair[chosen]] + k[chosen]
        filled = []
        for at, words in ((at_source, self.n_source), (at_target, self.n_target)):
            links = np.bincount(at, minlength=int(words.sum()))
            room = np.minimum(self.fertility - links, self.n_slots)
            filled.append((np.arange(self.n_slots) < room[:, None]).astype(np.float64))
        return self.packed(cells, *filled)

    def within_fertility(self, wanted: FloatArray) -> FloatArray:
        """The output with the wanted cells of largest total value that respect the fertility.

        ``wanted`` is a grid: positive for wanted cells, 0 or less for the others.
        """
        slots = np.full((int(self.n_source.sum()), self.n_slots), -1.0)
        others = np.full((int(self.n_target.sum()), self.n_slots), -1.0)
        best = self.structure.argmax(self.packed(wanted, slots, others))
        return self.complete(best.z[self.cells])


def _words(sizes: IntArray) -> tuple[IntArray, IntArray]:
    pair = np.repeat(np.arange(len(sizes)), sizes)
    return pair, np.arange(len(pair)) - offsets_of(sizes)[pair]
