"""Rounds of training in which the best good output of each example is the gold one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maxmargin import _checks
from maxmargin.datasets import Examples, ShardedDataset
from maxmargin.execution import ShardedProblem
from maxmargin.models.base import Model
from maxmargin.optimization.solver import Start
from maxmargin.problem import PartialOutputs, Problem
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.sparse import SparsePoint
from maxmargin.training.hooks import Hooks


class BestGood(Hooks):
    """Trains with ``formulation="best"`` (:mod:`maxmargin.problem.good`, :mod:`maxmargin.problem.partial`).

    A concave-convex procedure: a round takes one good output of each example as gold (or, in the first round of outputs
    that are known in part, a mean of them); the others are neither right nor wrong. The next round takes those of the
    largest score under its weights, which lowers the objective, until none changes. A round in memory that ends above
    the objective at its start, as its run was not exact enough, is dropped, and is the last one.

    Args:
        rounds: how many at most.

    Attributes:
        done: rounds that were trained.
        settled: whether the last one changed no good output, or did not lower the objective.
        objectives: the objective of the convex problem of each round that was kept, at its weights: never rising.
    """

    def __init__(self, rounds: int) -> None:
        self.rounds = _checks.integer("rounds", rounds, least=1)
        self.done, self.settled = 0, False
        self.objectives: list[float] = []
        self._examples: Examples | ShardedDataset | None = None
        self._problem: Problem | None = None
        self._begun = np.inf

    def begin(
        self, examples: Examples, problem: Problem, previous: Model | None
    ) -> tuple[Examples, Problem, Start | None]:
        """Start from the weights of the round before."""
        self._examples, self._problem = examples, problem
        start = self._start(examples, previous)
        self._begun = np.inf if start is None or start.weights is None else problem.objective(start.weights)
        return examples, problem, start

    def begin_sharded(
        self, dataset: ShardedDataset, problem: ShardedProblem, previous: Model | None
    ) -> tuple[ShardedDataset, ShardedProblem, Start | None]:
        """Start from the weights of the round before; refuse lists of good outputs, whose files stay as they are."""
        if problem.good is not None:
            raise ValueError(
                'formulation="best" chooses among the good outputs of all examples in rounds, and a ShardedDataset '
                'stays as it is; use "all" or "nearest", or train in memory'
            )
        self._examples = dataset if previous is None else self._examples
        return dataset, problem, self._start(dataset, previous)

    def _start(self, examples: Examples | ShardedDataset, previous: Model | None) -> Start | None:
        if previous is None:
            return None
        weights = examples.encoder.to_training(previous.encoder, previous.weights)
        return Start(weights if examples.anchor is None else weights - examples.anchor)

    def lowers(self, model: Model) -> bool:
        """Whether the objective at the end of a round is not above that of the weights that it started from."""
        assert model.training is not None
        primal = model.training.solution.certificate.primal
        self.settled = not primal <= self._begun
        return not self.settled

    def complete(self, model: Model, turn: int) -> Examples | ShardedDataset | None:
        """The examples with the good outputs of the largest score; None if they are the same, or at the limit."""
        examples = self._examples
        assert examples is not None
        assert model.training is not None
        self.done = turn + 1
        if self.settled:
            return None
        self.objectives.append(model.training.solution.certificate.primal)
        if isinstance(examples, ShardedDataset):
            weights = examples.encoder.to_training(model.encoder, model.weights)
            return None if self.done >= self.rounds else examples.changed(Completed(weights))
        completed = self._completed(examples, model)
        before, after = examples.gold, completed.gold
        self.settled = np.array_equal(after.index, before.index) and np.array_equal(after.value, before.value)
        return None if self.settled or self.done >= self.rounds else completed

    def _completed(self, examples: Examples, model: Model) -> Examples:
        """The examples with the good outputs that are best under the weights of a model."""
        weights = examples.encoder.to_training(model.encoder, model.weights)
        if isinstance(examples.good, PartialOutputs):
            return examples.completed(weights)
        problem = self._problem
        assert examples.good is not None
        assert problem is not None
        scores = problem.pair_scores(problem.features.scores(weights))
        gold, good = examples.good.best(problem.structure, scores)
        return replace(examples, gold=gold, good=good)


@dataclass(frozen=True, eq=False)
class Completed:
    """The change of a dataset whose outputs are known in part: the best ones under some weights become the gold ones.

    Each process finds those of a shard once.

    Attributes:
        weights: the weights.
    """

    weights: FloatArray
    _found: dict[int, tuple[IntArray, FloatArray]] = field(default_factory=dict)

    def __call__(self, examples: Examples, shard: int) -> Examples:
        """Return the examples with completed gold outputs."""
        if shard not in self._found:
            gold = examples.completed(self.weights).gold
            self._found[shard] = gold.index, gold.value
        return replace(examples, gold=SparsePoint.from_index(examples.batch.structure, *self._found[shard]))

    def __reduce__(self) -> tuple[Any, ...]:
        return Completed, (self.weights,)
