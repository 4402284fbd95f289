"""Annotated sentence pairs as training examples, in memory or on disk, and the rounds that impute possible links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from maxmargin.datasets import ShardedDataset
from maxmargin.execution import ShardedProblem
from maxmargin.model import Model
from maxmargin.optimization.solver import Solver, Start
from maxmargin.problem import BaseProblem, Problem
from maxmargin.solvers import SimplicialDecomposition
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.sparse import SparsePoint
from maxmargin.tasks.alignment.encoder.alignment import AlignmentEncoder, BoolArray, PairBatch
from maxmargin.tasks.alignment.io.links import Reference
from maxmargin.tasks.alignment.metrics.scores import Scores
from maxmargin.training import Examples, Hooks

WHY = "alignments, a few hundred weights: simplicial decomposition, two to four times faster here than the others"
"""Measured by benchmarks/alignment_hansards.py."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AnnotatedPairs(Examples):
    """Sentence pairs with references; ``sure`` and ``possible`` are 0/1 grids, the gold output has sure links only."""

    batch: PairBatch
    sure: BoolArray
    possible: BoolArray

    @classmethod
    def of(cls, encoder: AlignmentEncoder, batch: PairBatch, sure: BoolArray, possible: BoolArray) -> Self:
        """Examples in which the links that are possible, but not sure, have no loss."""
        gold, cells = batch.gold(sure), batch.matchings.cells
        weight = np.zeros(batch.structure.n_parts)
        weight[cells] = ~possible | (gold.dense()[cells] > 0.5)
        return cls(encoder=encoder, batch=batch, gold=gold, loss_weight=weight, sure=sure, possible=possible)

    @classmethod
    def annotated(cls, encoder: AlignmentEncoder, batch: PairBatch, references: Sequence[Reference]) -> Self:
        """Examples with the links of annotators."""
        sure = batch.matchings.grid([one.sure for one in references])
        return cls.of(encoder, batch, sure, sure | batch.matchings.grid([one.possible for one in references]))

    def select(self, examples: IntArray) -> Self:
        """The given pairs."""
        cells = self.batch.matchings.grid_of(examples)
        return replace(super().select(examples), sure=self.sure[cells], possible=self.possible[cells])

    def imputed(self, weights: FloatArray) -> Self:
        """With the gold outputs of :func:`imputed_gold`."""
        return replace(self, gold=imputed_gold(self, weights))

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


def imputed_gold(examples: Examples, weights: FloatArray) -> SparsePoint:
    """The best output under the weights that has all links of the gold output and otherwise possible ones.

    Links that have no loss either way are those that are possible, but not in the gold output.
    """
    assert examples.loss_weight is not None
    scores = examples.batch.features.scores(weights)
    far = 1e3 * (1.0 + np.abs(scores).max(initial=0.0))
    forced = np.where(examples.gold.dense() > 0.5, far, -far)
    scores = np.where(examples.loss_weight > 0.0, forced, scores)
    structure = examples.batch.structure
    return SparsePoint.of(structure, structure.argmax(scores).z)


@dataclass(frozen=True, eq=False)
class ImputedLinks:
    """The change of a dataset whose links are imputed; each process finds those of a shard once.

    Attributes:
        weights: the weights that impute them.
    """

    weights: FloatArray
    _found: dict[int, IntArray] = field(default_factory=dict)

    def __call__(self, examples: Examples, shard: int) -> Examples:
        """Return the examples with imputed gold outputs."""
        if shard not in self._found:
            self._found[shard] = imputed_gold(examples, self.weights).index
        index = self._found[shard]
        return replace(examples, gold=SparsePoint.from_index(examples.batch.structure, index, np.ones(len(index))))

    def __reduce__(self) -> tuple[Any, ...]:
        return ImputedLinks, (self.weights,)


class Imputation(Hooks):
    """Rounds after the first, in which possible links are imputed.

    Args:
        pairs: the examples of the first round.
        rounds: number of further rounds.
    """

    def __init__(self, pairs: Pairs, rounds: int) -> None:
        self._pairs, self._rounds = pairs, rounds

    def solver(self, problem: BaseProblem) -> tuple[Solver, str]:
        """Simplicial decomposition."""
        return SimplicialDecomposition(), WHY

    def begin(
        self, examples: Examples, problem: Problem, previous: Model | None
    ) -> tuple[Examples, Problem, Start | None]:
        """Start from the weights of the round before."""
        return examples, problem, self._start(previous)

    def begin_sharded(
        self, dataset: ShardedDataset, problem: ShardedProblem, previous: Model | None
    ) -> tuple[ShardedDataset, ShardedProblem, Start | None]:
        """Start from the weights of the round before."""
        return dataset, problem, self._start(previous)

    def _start(self, previous: Model | None) -> Start | None:
        if previous is None:
            return None
        anchor = self._pairs.anchor
        return Start(weights=previous.weights if anchor is None else previous.weights - anchor)

    def complete(self, model: Model, turn: int) -> Examples | ShardedDataset | None:
        """The pairs with links that the model imputes."""
        if turn >= self._rounds:
            return None
        if isinstance(self._pairs, ShardedDataset):
            return self._pairs.changed(ImputedLinks(model.weights))
        return self._pairs.imputed(model.weights)
