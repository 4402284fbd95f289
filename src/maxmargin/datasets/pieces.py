"""The pieces of a training problem on disk: one per shard, opened as it is used."""

from __future__ import annotations

from typing import Any

from maxmargin._digest import digest
from maxmargin.datasets.build import renumbered
from maxmargin.datasets.dataset import ShardedDataset
from maxmargin.datasets.examples import Examples, ProblemSettings, refuse_loss
from maxmargin.execution import Piece, PieceSource, ShardedProblem
from maxmargin.problem import Problem


class DatasetPieces(PieceSource):
    """The shards of a dataset as problems; small, as it goes where the work is done and opens the files there.

    Args:
        dataset: the dataset.
        settings: loss, rescaling and slack, and with ``C`` the region.
        C: the regularization.
    """

    def __init__(self, dataset: ShardedDataset, settings: ProblemSettings, C: float) -> None:
        self.dataset = dataset
        self.examples = [one.examples for one in dataset.shards]
        self.parts = [one.parts for one in dataset.shards]
        region = settings.region(dataset.encoder, dataset.n_weights, C)
        self._problem = settings.loss_used(), region, settings.rescaling, settings.slack
        self._known: set[int] = set()

    def open(self, number: int) -> Piece:
        """Map the file of a shard; the problem is checked in full the first time."""
        entry = self.dataset.shards[number]
        examples = self.dataset.examples(number)
        with renumbered(lambda: entry.first):
            problem = self._made(examples, known=number in self._known)
        self._known.add(number)
        return Piece(problem, entry.first)

    def none(self) -> Problem:
        """From a file that holds no examples."""
        return self._made(self.dataset.no_examples, known=False)

    def _made(self, examples: Examples, *, known: bool) -> Problem:
        problem = examples.problem_of(*self._problem, known=known)
        return problem if examples.anchor is None else problem.around(examples.anchor)

    def fingerprint(self) -> dict[str, str]:
        """What identifies the problem: the index has checksums of all data."""
        loss, region, rescaling, slack = self._problem
        return {
            "dataset": self.dataset.identity,
            "loss": digest(loss, rescaling, slack),
            "regularization": digest(region),
        }

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": set()}


def problem_of(dataset: ShardedDataset, settings: ProblemSettings, C: float) -> ShardedProblem:
    """The training problem of a dataset."""
    if dataset.has_costs:
        refuse_loss(settings)
    return ShardedProblem(DatasetPieces(dataset, settings, C))
