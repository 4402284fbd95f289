"""Training of link weights: a max-margin problem over matchings with fertility, in which possible links are free.

The loss of an alignment is ``false_negative`` for each missed sure link and 1 for each link that is not possible;
possible links have no loss either way. Which of them the gold output has is unknown, so it is imputed: after a first
run on sure links alone, ``rounds`` times, the gold output becomes the best output under the current weights that has
all sure links and otherwise only possible ones (the concave-convex procedure; Yu and Joachims 2009). Each run is convex
and ends with a certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from maxmargin._sparse import sp
from maxmargin.features.parts import PartFeatures
from maxmargin.losses import Hamming
from maxmargin.optimization.base import Solver, Start
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.solvers import SimplicialDecomposition, Solution, Status, Stop, solve
from maxmargin.structures._arrays import ranges
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.encoder.features import Evidence, LinkFeatures, WordFeatures
from maxmargin.tasks.alignment.encoder.fertility import FertilityBatch
from maxmargin.tasks.alignment.io.links import Reference, pack, refuse_outside, sentence_of
from maxmargin.tasks.alignment.metrics.scores import Scores

WHY = "alignments, a few hundred weights: simplicial decomposition, two to four times faster here than the others"
"""Measured by benchmarks/alignment_hansards.py."""

BoolArray = npt.NDArray[np.bool_]


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
        return FertilityBatch(np.diff(evidence.source_start), np.diff(evidence.target_start), self.fertility)

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


@dataclass(frozen=True, eq=False)
class GoldBatch:
    """Sentence pairs with features and references; ``sure`` and ``possible`` are 0/1 grids."""

    batch: FertilityBatch
    features: PartFeatures
    sure: BoolArray
    possible: BoolArray
    prior: FloatArray

    @classmethod
    def build(cls, model: LinkModel, evidence: Evidence, references: Sequence[Reference]) -> GoldBatch:
        """Build the batch of all pairs; folds are selected from it."""
        batch = model.batch(evidence)
        sure, possible = (
            _grid(batch, [getattr(reference, kind) for reference in references]) for kind in ("sure", "possible")
        )
        return cls._of(model, evidence, batch, sure, possible | sure)

    @classmethod
    def labeled(cls, model: LinkModel, evidence: Evidence, links: BoolArray) -> GoldBatch:
        """Build a batch with links, a 0/1 grid, that are all sure."""
        return cls._of(model, evidence, model.batch(evidence), links, links)

    @classmethod
    def _of(
        cls, model: LinkModel, evidence: Evidence, batch: FertilityBatch, sure: BoolArray, possible: BoolArray
    ) -> GoldBatch:
        prior = evidence.hmm_forward * evidence.hmm_backward
        return cls(batch, model.features(evidence, batch), sure, possible, prior)

    def select(self, pairs: IntArray) -> GoldBatch:
        """The given pairs."""
        cells = ranges(self.batch.grid_start[pairs], self.batch.grid_start[pairs + 1])
        batch = FertilityBatch(self.batch.n_source[pairs], self.batch.n_target[pairs], self.batch.fertility)
        return GoldBatch(batch, self.features.select(pairs), self.sure[cells], self.possible[cells], self.prior[cells])

    def __len__(self) -> int:
        return len(self.batch.n_source)

    @cached_property
    def kept(self) -> FloatArray:
        """The gold output of sure links; of the most plausible ones if they exceed the fertility of words."""
        return self.batch.within_fertility(np.where(self.sure, 1.0 + self.prior, -1.0))

    def imputed(self, weights: FloatArray) -> FloatArray:
        """The best output under the weights that has all sure links and otherwise only possible ones."""
        scores = self.features.scores(weights)
        must, never = self.kept[self.batch.cells] > 0.5, ~self.possible
        far = 1e3 * (1.0 + np.abs(scores).max(initial=0.0))
        cells = scores[self.batch.cells]
        scores[self.batch.cells] = np.where(must, far, np.where(never, -far, cells))
        return self.batch.structure.argmax(scores).z

    def problem(self, C: float, false_negative: float, gold: FloatArray) -> Problem:
        """The training problem with this gold output."""
        structure = self.batch.structure
        weight = np.zeros(structure.n_parts)
        weight[self.batch.cells] = ~self.possible | (self.sure & (self.kept[self.batch.cells] > 0.5))
        loss = Hamming(false_positive=1.0, false_negative=false_negative)
        return Problem.build(structure, self.features, gold, loss, L2(C=C), loss_weight=weight)

    def outputs(self, weights: FloatArray) -> BoolArray:
        """The predicted links, a 0/1 grid."""
        return np.asarray(self.batch.structure.argmax(self.features.scores(weights)).z[self.batch.cells] > 0.5)

    def margins(self, weights: FloatArray) -> FloatArray:
        """The margin of each cell, a grid: positive in the best output, negative outside."""
        return self.batch.structure.margins(self.features.scores(weights))[self.batch.cells]

    def evaluate(self, predicted: BoolArray) -> Scores:
        """The scores of predicted links, a 0/1 grid."""
        sentence = np.repeat(np.arange(len(self)), np.diff(self.batch.grid_start))
        counts = [
            np.bincount(sentence[grid], minlength=len(self))
            for grid in (predicted, self.sure, self.possible, predicted & self.sure, predicted & self.possible)
        ]
        return Scores.of(np.stack(counts, axis=1).astype(np.int64))


def _grid(batch: FertilityBatch, links: Sequence[IntArray]) -> BoolArray:
    start, flat = pack(links, "sentence pair")
    refuse_outside(start, flat, batch.n_source, batch.n_target)
    pair = sentence_of(start)
    grid = np.zeros(int(batch.grid_start[-1]), dtype=bool)
    grid[batch.grid_start[pair] + flat[:, 0] * batch.n_target[pair] + flat[:, 1]] = True
    return grid


@dataclass(frozen=True)
class Choice:
    """Settings of one training run."""

    C: float
    false_negative: float


def train(
    gold: GoldBatch, choice: Choice, *, rounds: int, solver: Solver | None, stop: Stop, seed: int = 0
) -> Solution:
    """Train once on sure links, then ``rounds`` times on imputed ones, and return the last solution.

    ``solver`` None stands for simplicial decomposition.
    """
    solution: Solution | None = None
    for _ in range(rounds + 1):
        weights = None if solution is None else solution.weights
        output = gold.kept if weights is None else gold.imputed(weights)
        problem = gold.problem(choice.C, choice.false_negative, output)
        solution = solve(
            problem,
            SimplicialDecomposition() if solver is None else solver,
            stop=stop,
            start=Start(weights=weights),
            random_state=seed,
            why=WHY if solver is None else "",
        )
        if solution.status is Status.INTERRUPTED:
            break
    assert solution is not None
    return solution
