"""Max-margin tuning: the pseudo-reference must beat other hypotheses by a margin, to a certified optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._quiet import quiet
from maxmargin._sparse import sp
from maxmargin.datasets import ShardedDataset
from maxmargin.encoders.base import Batch
from maxmargin.encoders.candidates import CandidatesEncoder
from maxmargin.execution import Executor
from maxmargin.features.parts import PartFeatures
from maxmargin.optimization.checkpoints.files import Checkpoint
from maxmargin.optimization.solver import Solver
from maxmargin.problem import CandidateSets
from maxmargin.problem.good import FORMULATIONS
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.reranking.tuning.base import Method, Tuned, TuningLists
from maxmargin.tasks.reranking.tuning.references import (
    corpus_quality,
    costs_of,
    good_by_margin,
    good_by_rank,
    nearest_by_texts,
)
from maxmargin.training import BestGood, Examples, Settings, train_examples

QUALITIES = ("sentence", "corpus")
MARGINS = ("cost", "one")
STRENGTHS = {"l2": (0.01, 0.1, 1.0, 10.0, 100.0), "l1": (3.0, 10.0, 30.0, 100.0, 300.0)}
"""Values of C that held-out lists choose from, by norm."""


@dataclass(frozen=True, kw_only=True)
class MaxMargin(Method):
    """Max-margin training with costs that the metric gives.

    With the score ``v = w'f`` of a hypothesis and the hinge ``h_i`` of list ``i`` (:mod:`maxmargin.problem.good`), the
    weights minimize, to a certified duality gap::

        1/(2C) ||w||^2 + 1/n sum_i h_i(w),      or 1/C ||w||_1 in place of the ridge

    Attributes:
        C: strength of the hinges beside the penalty; of several values held-out lists choose, and :meth:`tune` takes
            the middle one; None for :data:`STRENGTHS`. The 2009 paper's C is this one divided by the number of lists.
        norm: "l2", or "l1" for few weights that differ from zero.
        formulation: "gold" compares the best hypothesis with all others; with several good ones "nearest" (LP (7))
            compares each bad hypothesis with the good one that shares most n-grams with it, or, without texts, the
            nearest in features; "all" (LP (8)) with every good one; "best" with the good one that scores highest.
        margin: "cost", a margin as large as a hypothesis is worse, or "one", a margin of 1.
        quality: what costs and good hypotheses go by: "sentence", or "corpus", the change of the corpus in which a
            hypothesis takes the place of the first of its list (or of the best under the start).
        levels: the good hypotheses are those with one of so many highest qualities of their list (split by rank).
        within: in place of ``levels``, those at most so much worse than the best (split by margin).
        cost_scale: factor of the costs; None makes the mean over lists of the largest cost 1.
        nonnegative: whether all weights must be >= 0, as in the paper, or <= 0 where signs say so.
        rounds: most rounds of "best".
        solver: a solver of the library, or "auto".
        tol: relative duality gap.
        max_seconds: time limit of a run.
        checkpoint: where the run is saved; None for nowhere.
        executor: where the run works on the lists, in shards; None for this process.
    """

    C: float | Sequence[float] | None = None
    norm: str = "l2"
    formulation: str = "gold"
    margin: str = "cost"
    quality: str = "sentence"
    levels: int = 1
    within: float | None = None
    cost_scale: float | None = None
    nonnegative: bool = False
    rounds: int = 10
    solver: Solver | str = "auto"
    tol: float = 1e-3
    max_seconds: float | None = None
    checkpoint: Checkpoint | None = None
    executor: Executor | None = None

    name = "max-margin"

    def __post_init__(self) -> None:
        _checks.one_of("norm", self.norm, tuple(STRENGTHS))
        if not self.grid:
            raise ValueError("C is empty; give at least one number")
        for C in self.grid:
            _checks.positive("C", C, hint="a larger C means less regularization")
        _checks.one_of("formulation", self.formulation, FORMULATIONS)
        _checks.one_of("margin", self.margin, MARGINS)
        _checks.one_of("quality", self.quality, QUALITIES)
        _checks.integer("levels", self.levels, least=1)
        if self.within is not None:
            _checks.number("within", self.within, least=0)
            if self.levels != 1:
                raise ValueError("levels and within both say which hypotheses are good; give one of them")
        if self.formulation == "gold" and self.margin == "cost" and (self.levels > 1 or self.within is not None):
            raise ValueError(
                "levels and within choose several good hypotheses, and max-margin compares with one; leave them out, "
                'or take lp7, lp8 or formulation="best"'
            )
        if self.cost_scale is not None:
            _checks.positive("cost_scale", self.cost_scale)
        _checks.flag("nonnegative", self.nonnegative)
        _checks.integer("rounds", self.rounds, least=1)
        _ = self._settings(1.0, 0)

    @property
    def grid(self) -> tuple[float, ...]:
        """The values of C."""
        given: Any = STRENGTHS[self.norm] if self.C is None else self.C
        return tuple(given) if isinstance(given, (list, tuple, np.ndarray)) else (given,)

    def candidates(self) -> Sequence[Method]:
        """One method for each C."""
        return tuple(replace(self, C=C) for C in self.grid)

    def describe(self) -> dict[str, Any]:
        """The C that :meth:`tune` takes."""
        return {"C": self.grid[len(self.grid) // 2]}

    def tune(self, lists: TuningLists, *, start: FloatArray | None = None, seed: int = 0) -> Tuned:
        """Return the weights of the smallest objective.

        ``details`` has "good", the mean number of good hypotheses, "bad_lists", the lists that have a bad one, and with
        "best" the rounds and whether they settled. Where all weights are zero, so that the first hypothesis of each
        list is chosen, "zero" says so.
        """
        examples, details = self.examples(lists, start)
        hooks = BestGood(self.rounds) if self.formulation == "best" else None
        tuned = self._tuned(examples, lists.signs, seed, hooks)
        if hooks is not None:
            details |= {"rounds": hooks.done, "settled": hooks.settled}
        details |= {**tuned.details, "quality": lists.corpus_quality(lists.choose(tuned.weights))}
        return replace(tuned, details=details)

    def tune_dataset(self, dataset: ShardedDataset, signs: npt.NDArray[np.int8], *, seed: int = 0) -> Tuned:
        """Return the weights of the smallest objective for a dataset of :meth:`unscaled` lists."""
        if self.margin == "cost":
            scale = self.cost_scale
            if scale is None:
                pieces = [_largest(one.costs, one.batch.structure.blocks[0].offsets) for one in dataset]
                scale = _scale(np.concatenate(pieces))
            dataset = dataset.changed(ScaledCosts(scale))
        return self._tuned(dataset, signs, seed, None)

    def unscaled(self) -> MaxMargin:
        """The method whose :meth:`examples` make a dataset for :meth:`tune_dataset`; ValueError if none can."""
        if self.formulation == "best":
            raise ValueError(
                'formulation="best" chooses among the good hypotheses of all lists in rounds; use "all" or "nearest", '
                "or train in memory"
            )
        if self.quality == "corpus":
            raise ValueError(
                'quality="corpus" compares each hypothesis with the choices in all other lists; use "sentence", or '
                "train in memory"
            )
        return replace(self, cost_scale=1.0)

    def _tuned(
        self, examples: Examples | ShardedDataset, signs: npt.NDArray[np.int8], seed: int, hooks: BestGood | None
    ) -> Tuned:
        C = self.grid[len(self.grid) // 2] / max(len(examples), 1)
        signed = np.flatnonzero((signs != 0) | self.nonnegative)
        settings = replace(self._settings(C, seed), nonnegative=signed if len(signed) else None)
        with quiet(message="all weights of the model are zero"):  # said in the details
            model = train_examples(examples, settings, hooks=hooks)
        assert model.training is not None
        weights = np.where(signs < 0, -model.weights, model.weights)
        details = {}
        if not weights.any():
            details["zero"] = (
                "all weights are zero, so that the first hypothesis of each list is chosen: no weights have a smaller "
                "objective; raise C, give more features, or take another method"
            )
        return Tuned(weights, model.training.solution, details, model.training.interrupted)

    def examples(self, lists: TuningLists, start: FloatArray | None = None) -> tuple[Examples, dict[str, Any]]:
        """Return the lists as training examples with their pseudo-references, and what there is to say of these.

        Columns of features whose weights must be <= 0 change their sign.
        """
        quality = lists.quality
        if self.quality == "corpus":
            chosen = lists.offsets[:-1] if start is None else lists.choose(start)
            quality = corpus_quality(lists, chosen)
        if self.within is None:
            good = good_by_rank(lists, quality, self.levels)
        else:
            good = good_by_margin(lists, quality, self.within)
        structure, features = lists.structure, PartFeatures(_flipped(lists.rows, lists.signs), lists.offsets)
        gold, sets = CandidateSets.build(structure, features, good, "best").best(structure, quality)
        given: CandidateSets | None = sets
        if self.formulation == "all":
            given = CandidateSets.build(structure, features, good, "all")
        elif self.formulation == "nearest":
            given = CandidateSets.build(structure, features, good, "nearest", nearest=_nearest(lists, good))
        elif self.formulation == "gold" and self.margin == "cost":
            given = None  # hypotheses as good as the gold one have no margin to it
        costs = None
        if self.margin == "cost":
            costs = costs_of(lists, quality)
            if self.formulation == "best":
                costs = np.where(good, 0.0, costs)  # which of the good ones is the best is up to the scores
            costs *= _scale(_largest(costs, lists.offsets)) if self.cost_scale is None else self.cost_scale
        bad_lists = int((np.minimum.reduceat(good, lists.offsets[:-1]) == 0).sum())
        details = {"good": float(good.sum() / max(len(lists), 1)), "bad_lists": bad_lists}
        encoder = CandidatesEncoder(n_features=lists.n_features)
        return Examples(encoder, Batch(structure, features), gold, costs=costs, good=given), details

    def _settings(self, C: float, seed: int) -> Settings:
        return Settings(
            C=C,
            norm=self.norm,
            rescaling="margin" if self.margin == "cost" else "none",
            solver=self.solver,
            tol=self.tol,
            max_seconds=self.max_seconds,
            random_state=seed,
            checkpoint=self.checkpoint,
            executor=self.executor,
        )


@dataclass(frozen=True, eq=False)
class ScaledCosts:
    """The change of a dataset whose costs are multiplied by a factor."""

    factor: float

    def __call__(self, examples: Examples, shard: int) -> Examples:
        """Return the examples with such costs."""
        assert examples.costs is not None
        return replace(examples, costs=examples.costs * self.factor)


@dataclass(frozen=True, kw_only=True)
class LinearProgram7(MaxMargin):
    """LP (7) of Wang and Shawe-Taylor (2009): each bad hypothesis against the good one that it resembles most.

    The paper's own margin is ``margin="one"``, its weights are ``nonnegative=True``.
    """

    norm: str = "l1"
    formulation: str = "nearest"

    name = "lp7"


@dataclass(frozen=True, kw_only=True)
class LinearProgram8(MaxMargin):
    """LP (8) of Wang and Shawe-Taylor (2009): each bad hypothesis against every good one.

    The paper's own margin is ``margin="one"``, its weights are ``nonnegative=True``.
    """

    norm: str = "l1"
    formulation: str = "all"

    name = "lp8"


def _flipped(rows: Any, signs: npt.NDArray[np.int8]) -> Any:
    """The rows with another sign in the columns whose weights must be <= 0."""
    if not (signs < 0).any():
        return rows
    factor = np.where(signs < 0, -1.0, 1.0)
    if isinstance(rows, np.ndarray):
        return rows * factor
    return sp.csr_array((rows.data * factor[rows.indices], rows.indices, rows.indptr), shape=rows.shape)


def _nearest(lists: TuningLists, good: npt.NDArray[np.bool_]) -> IntArray | None:
    """The good hypothesis that each one resembles most; None if the lists have no texts to compare."""
    texts = lists.texts
    if texts is None:
        return None
    return lists.once(("nearest", good.tobytes()), lambda: nearest_by_texts(texts, lists.offsets, good))


def _largest(costs: FloatArray | None, offsets: IntArray) -> FloatArray:
    """The largest cost of each list."""
    assert costs is not None
    return np.asarray(np.maximum.reduceat(costs, offsets[:-1])) if len(offsets) > 1 else np.zeros(0)


def _scale(largest: FloatArray) -> float:
    """What makes the mean over lists of the largest cost 1; 1 if nothing costs anything."""
    mean = float(largest.mean()) if len(largest) else 0.0
    return 1.0 / mean if mean > 0.0 else 1.0
