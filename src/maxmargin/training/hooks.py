"""Additions of tasks to training."""

from __future__ import annotations

from maxmargin.datasets import Examples, ShardedDataset
from maxmargin.execution import ShardedProblem
from maxmargin.models.base import Model
from maxmargin.optimization.solver import Solver, Start
from maxmargin.problem import BaseProblem, Problem


class Hooks:
    """Additions of a task to training; these do nothing."""

    def solver(self, problem: BaseProblem) -> tuple[Solver, str] | None:
        """The solver that "auto" stands for, and why; None leaves the choice to the library."""
        return None

    def begin(
        self, examples: Examples, problem: Problem, previous: Model | None
    ) -> tuple[Examples, Problem, Start | None]:
        """Change the problem of a round before the run of each C, and say where it starts.

        Args:
            examples: the examples of the round.
            problem: their problem with this C.
            previous: the model of the round before; None in the first.
        """
        return examples, problem, None

    def begin_sharded(
        self, dataset: ShardedDataset, problem: ShardedProblem, previous: Model | None
    ) -> tuple[ShardedDataset, ShardedProblem, Start | None]:
        """As :meth:`begin`, for examples on disk."""
        return dataset, problem, None

    def complete(self, model: Model, turn: int) -> Examples | ShardedDataset | None:
        """The examples of the next round, where gold outputs were partly unknown and ``model`` completes them.

        ``turn`` counts the rounds that are done. None ends training.
        """
        return None

    def lowers(self, model: Model) -> bool:
        """Whether the model of a further round takes the place of the one before, where no dev score decides."""
        return True

    def calibrate(self, model: Model) -> dict[str, float]:
        """Numbers that turn scores of the trained model into probabilities, by name.

        ``model.training.interrupted`` says that the user has pressed Ctrl-C and waits for the end.
        """
        return {}
