"""Annotated sentence pairs as training examples, in memory or on disk, and the rounds that impute possible links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from maxmargin.datasets import ShardedDataset
from maxmargin.optimization.solver import Solver
from maxmargin.problem import BaseProblem, PartialOutputs
from maxmargin.solvers import SimplicialDecomposition
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.encoder.alignment import AlignmentEncoder, BoolArray, PairBatch
from maxmargin.tasks.alignment.io.links import Reference
from maxmargin.tasks.alignment.metrics.scores import Scores
from maxmargin.training import BestGood, Examples

WHY = "alignments, a few hundred weights: simplicial decomposition, two to four times faster here than the others"
"""Measured by benchmarks/alignment/hansards.py."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AnnotatedPairs(Examples):
    """Sentence pairs with references; ``sure`` and ``possible`` are 0/1 grids, the gold output has sure links only."""

    batch: PairBatch
    sure: BoolArray
    possible: BoolArray

    @classmethod
    def of(cls, encoder: AlignmentEncoder, batch: PairBatch, sure: BoolArray, possible: BoolArray) -> Self:
        """Examples in which the links that are possible, but not sure, are unknown."""
        gold, cells = batch.gold(sure), batch.matchings.cells
        given = np.zeros(batch.structure.n_parts, dtype=np.int8)
        given[cells] = np.where(gold.dense()[cells] > 0.5, 1, np.where(possible, 0, -1))
        known = PartialOutputs(given)
        return cls(encoder=encoder, batch=batch, gold=gold, good=known, sure=sure, possible=possible)

    @classmethod
    def annotated(cls, encoder: AlignmentEncoder, batch: PairBatch, references: Sequence[Reference]) -> Self:
        """Examples with the links of annotators."""
        sure = batch.matchings.grid([one.sure for one in references])
        return cls.of(encoder, batch, sure, sure | batch.matchings.grid([one.possible for one in references]))

    def select(self, examples: IntArray) -> Self:
        """The given pairs."""
        cells = self.batch.matchings.grid_of(examples)
        return replace(super().select(examples), sure=self.sure[cells], possible=self.possible[cells])

    def margins(self, weights: FloatArray) -> FloatArray:
        """The margin of each cell, a grid: positive in the best output, negative outside."""
        matchings = self.batch.matchings
        return matchings.structure.margins(self.batch.features.scores(weights))[matchings.cells]

    def evaluate(self, predicted: BoolArray) -> Scores:
        """The scores of predicted links, a 0/1 grid."""
        sentence = np.repeat(np.arange(len(self)), np.diff(self.batch.matchings.grid_start))
        counts = [
            np.bincount(sentence[grid], minlength=len(self))
            for grid in (predicted, self.sure, self.possible, predicted & self.sure, predicted & self.possible)
        ]
        return Scores.of(np.stack(counts, axis=1).astype(np.int64))


Pairs = AnnotatedPairs | ShardedDataset
"""Annotated pairs in memory or on disk."""


class Imputation(BestGood):
    """Rounds after the first, in which possible links are imputed.

    Args:
        rounds: number of further rounds.
    """

    def __init__(self, rounds: int) -> None:
        super().__init__(rounds + 1)

    def solver(self, problem: BaseProblem) -> tuple[Solver, str]:
        """Simplicial decomposition."""
        return SimplicialDecomposition(), WHY
