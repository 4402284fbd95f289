"""The features of links and fertility slots together: the layout of a weight vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maxmargin._sparse import sp
from maxmargin.features.parts import PartFeatures
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.encoder.evidence import Evidence
from maxmargin.tasks.alignment.encoder.features import LinkFeatures, WordFeatures
from maxmargin.tasks.alignment.encoder.fertility import FertilityBatch


@dataclass(frozen=True)
class LinkModel:
    """The features of links and fertility slots: the layout of a weight vector.

    The weights of the link features come first, then for each slot those of the source and of the target words.

    Attributes:
        links: features of links.
        fertility: maximum number of links of a word.
    """

    links: LinkFeatures
    fertility: int = 2

    @property
    def _words(self) -> tuple[WordFeatures, WordFeatures]:
        return WordFeatures("source"), WordFeatures("target")

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.links.n_features + (self.fertility - 1) * sum(side.n_features for side in self._words)

    @property
    def names(self) -> list[str]:
        """A readable name for every weight."""
        slots = [
            f"cost of a {further_link(slot)}, {name}"
            for slot in range(self.fertility - 1)
            for side in self._words
            for name in side.names
        ]
        return [*self.links.names, *slots]

    def batch(self, evidence: Evidence) -> FertilityBatch:
        """The matchings of the pairs."""
        bitext = evidence.bitext
        return FertilityBatch(np.diff(bitext.source_start), np.diff(bitext.target_start), self.fertility)

    def features(self, evidence: Evidence, batch: FertilityBatch) -> PartFeatures:
        """The features of all parts, for training."""
        offsets = batch.structure.blocks[0].offsets
        if self.links.is_sparse:
            return PartFeatures(self._sparse(evidence, batch), offsets)
        matrix = np.zeros((batch.n_parts, self.n_weights))
        matrix[batch.cells, : self.links.n_features] = self.links.matrix(evidence)
        for parts, at, rows in self._slots(evidence, batch):
            matrix[parts, at : at + rows.shape[1]] = rows
        return PartFeatures(matrix, offsets)

    def _slots(self, evidence: Evidence, batch: FertilityBatch) -> Iterator[tuple[IntArray, int, FloatArray]]:
        """For each slot and side its parts, the first of its columns, and its features, one row per part."""
        source, target = (side.matrix(evidence) for side in self._words)
        at = self.links.n_features
        for slot in range(batch.n_slots):
            for parts, rows in ((batch.source_slots, source), (batch.target_slots, target)):
                yield parts[:, slot], at, rows
                at += rows.shape[1]

    def _sparse(self, evidence: Evidence, batch: FertilityBatch) -> sp.csr_matrix:
        """The features of all parts, written in place: copies of them would be the largest arrays of training."""
        counts = np.zeros(batch.n_parts, dtype=np.int64)
        counts[batch.cells] = self.links.counts(evidence)
        slots = list(self._slots(evidence, batch))
        for parts, _, rows in slots:
            counts[parts] = rows.shape[1]
        start = offsets_of(counts)
        columns, values = np.empty(start[-1], dtype=np.int32), np.empty(start[-1])
        if len(batch.cells):
            first = int(start[batch.cells[0]])  # the slots of a pair with an empty side may come before
            of_cells = np.append(start[batch.cells], start[-1]) - first
            self.links.fill(evidence, of_cells, columns[first:], values[first:])
        for parts, at, rows in slots:
            where = start[parts][:, None] + np.arange(rows.shape[1])
            columns[where], values[where] = np.arange(at, at + rows.shape[1]), rows
        narrow = start.astype(np.int32) if start[-1] < 2**31 else start
        return sp.csr_matrix((values, columns, narrow), shape=(batch.n_parts, self.n_weights))

    def scores(self, evidence: Evidence, batch: FertilityBatch, weights: FloatArray) -> FloatArray:
        """The scores of all parts, without a matrix of link features."""
        links, rest = np.split(weights, [self.links.n_features])
        cells = self.links.scores(evidence, links)
        if not batch.n_slots:
            return cells
        sides = [side.matrix(evidence) for side in self._words]
        sizes = np.cumsum([side.shape[1] for side in sides] * batch.n_slots)[:-1]
        pieces = np.split(rest, sizes)
        return batch.packed(
            cells,
            *(sides[side] @ np.stack(pieces[side::2], axis=1) for side in (0, 1)),  # (words, slots)
        )


def further_link(slot: int) -> str:
    """Which link of a word a slot is in place of."""
    return f"{('second', 'third')[slot] if slot < 2 else f'{slot + 2}th'} link"
