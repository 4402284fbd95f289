"""The features of links and fertility slots together: the layout of a weight vector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._sparse import sp
from maxmargin.features.parts import PartFeatures
from maxmargin.structures.base import FloatArray
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
        ordinals = ("second", "third", *(f"{slot + 2}th" for slot in range(2, self.fertility - 1)))
        slots = [
            f"cost of a {ordinals[slot]} link, {name}"
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
        links = self.links.matrix(evidence)
        source, target = (side.matrix(evidence) for side in self._words)
        offsets = batch.structure.blocks[0].offsets
        if not isinstance(links, np.ndarray):
            return PartFeatures(self._sparse(batch, links, source, target), offsets)
        matrix = np.zeros((batch.n_parts, self.n_weights))
        matrix[batch.cells, : links.shape[1]] = links
        at = links.shape[1]
        for slot in range(batch.n_slots):
            for parts, rows in ((batch.source_slots, source), (batch.target_slots, target)):
                matrix[parts[:, slot], at : at + rows.shape[1]] = rows
                at += rows.shape[1]
        return PartFeatures(matrix, offsets)

    def _sparse(
        self, batch: FertilityBatch, links: sp.csr_matrix, source: FloatArray, target: FloatArray
    ) -> sp.csr_matrix:
        blocks, parts, at = [sp.csr_matrix(links)], [batch.cells], links.shape[1]
        blocks[0].resize((links.shape[0], self.n_weights))
        for slot in range(batch.n_slots):
            for where, rows in ((batch.source_slots, source), (batch.target_slots, target)):
                columns = np.tile(np.arange(at, at + rows.shape[1]), len(rows))
                start = np.arange(len(rows) + 1) * rows.shape[1]
                blocks.append(sp.csr_matrix((rows.ravel(), columns, start), shape=(len(rows), self.n_weights)))
                parts.append(where[:, slot])
                at += rows.shape[1]
        order = np.argsort(np.concatenate(parts), kind="stable")
        return sp.csr_matrix(sp.vstack(blocks, format="csr")[order])

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
