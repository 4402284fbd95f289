"""Rounds of training in which the best good output of each example is the gold one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxmargin import _checks
from maxmargin.datasets import Examples, ShardedDataset
from maxmargin.execution import ShardedProblem
from maxmargin.model import Model
from maxmargin.optimization.solver import Start
from maxmargin.problem import Problem
from maxmargin.training.hooks import Hooks


class BestGood(Hooks):
    """Trains with ``formulation="best"`` (:mod:`maxmargin.problem.good`), a concave-convex procedure.

    A round takes one good output of each example as gold; the others are neither right nor wrong. The next round takes
    those of the largest score under its weights, which lowers the objective, until none changes.

    Args:
        rounds: how many at most.

    Attributes:
        done: rounds that were trained.
        settled: whether the last one changed no good output.
    """

    def __init__(self, rounds: int) -> None:
        self.rounds = _checks.integer("rounds", rounds, least=1)
        self.done, self.settled = 0, False
        self._examples: Examples | None = None
        self._problem: Problem | None = None

    def begin(
        self, examples: Examples, problem: Problem, previous: Model | None
    ) -> tuple[Examples, Problem, Start | None]:
        """Start from the weights of the round before."""
        self._examples, self._problem = examples, problem
        if previous is None:
            return examples, problem, None
        return examples, problem, Start(examples.encoder.to_training(previous.encoder, previous.weights))

    def begin_sharded(
        self, dataset: ShardedDataset, problem: ShardedProblem, previous: Model | None
    ) -> tuple[ShardedDataset, ShardedProblem, Start | None]:
        """Refuse: the good outputs of each example change between rounds."""
        raise ValueError(
            'formulation="best" chooses among the good outputs of all examples in rounds, and a ShardedDataset stays '
            'as it is; use "all" or "nearest", or train in memory'
        )

    def complete(self, model: Model, turn: int) -> Examples | None:
        """The examples with the good outputs of the largest score; None if they are the same, or at the limit."""
        examples, problem = self._examples, self._problem
        assert examples is not None
        assert examples.good is not None
        assert problem is not None
        self.done = turn + 1
        weights = examples.encoder.to_training(model.encoder, model.weights)
        scores = problem.pair_scores(problem.features.scores(weights))
        gold, good = examples.good.best(problem.structure, scores)
        self.settled = np.array_equal(gold.index, examples.gold.index)
        if self.settled or self.done >= self.rounds:
            return None
        return replace(examples, gold=gold, good=good)
