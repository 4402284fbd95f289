"""The pieces of a training problem on disk: one per shard, opened as it is used."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from maxmargin._digest import digest
from maxmargin._scratch import Slot
from maxmargin.datasets.build import renumbered
from maxmargin.datasets.dataset import ShardedDataset
from maxmargin.datasets.examples import Examples, ProblemSettings, refuse_loss
from maxmargin.execution import Piece, PieceSource, ShardedProblem
from maxmargin.problem import Problem


class _Costs(NamedTuple):
    """The costs of a shard, in a file of this process; the constant of its problem; whether examples have weights."""

    slot: Slot
    constant: float
    weighted: bool


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
        self._costs: dict[int, _Costs] = {}

    def open(self, number: int) -> Piece:
        """Map the file of a shard; the problem is checked in full the first time."""
        entry = self.dataset.shards[number]
        examples = self.dataset.examples(number)
        if number in self._costs:
            return Piece(self._again(examples, self._costs[number]), entry.first)
        with renumbered(lambda: entry.first):
            problem = self._made(examples, known=number in self._known)
        self._known.add(number)
        if examples.anchor is not None or examples.loss_weight is not None or examples.pairs is not examples.good:
            self._keep(number, problem)
        return Piece(problem, entry.first)

    def _keep(self, number: int, problem: Problem) -> None:
        """Keep costs that take longer to make than to read, unless there is no room on the disk."""
        slot = Slot()
        with contextlib.suppress(OSError):
            slot.write([problem.leading_costs])
            self._costs[number] = _Costs(slot, problem.constant, problem.example_weight is not None)

    def _again(self, examples: Examples, kept: _Costs) -> Problem:
        """The problem of a shard whose costs have been kept."""
        _, region, rescaling, slack = self._problem
        weight = examples.example_weight if kept.weighted else None
        batch, (costs,) = examples.batch, kept.slot.read()
        data = batch.structure, batch.features, examples.gold, costs, kept.constant
        return Problem(*data, region, weight, rescaling, slack, examples.pairs)

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
        return {**vars(self), "_known": set(), "_costs": {}}


def problem_of(dataset: ShardedDataset, settings: ProblemSettings, C: float) -> ShardedProblem:
    """The training problem of a dataset."""
    if dataset.has_costs:
        refuse_loss(settings)
    return ShardedProblem(DatasetPieces(dataset, settings, C))
