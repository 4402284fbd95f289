"""Alignments of two sequences, and the distances they teach."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack, cast

import numpy as np
import numpy.typing as npt

from maxmargin.datasets import ShardedDataset
from maxmargin.encoders.base import Encoder
from maxmargin.encoders.deductions.edits import EditEncoder
from maxmargin.estimators.base import SettingsArguments, StructuredSVM, takes_settings
from maxmargin.models.base import Model
from maxmargin.models.edits import EditModel
from maxmargin.problem import PartialOutputs
from maxmargin.structures.base import FloatArray
from maxmargin.training import BestGood, Examples, Hooks


class Realigned(BestGood):
    """Rounds that replace hidden alignments by the best ones; one round if there are none, or if they are on disk."""

    def complete(self, model: Model, turn: int) -> Examples | ShardedDataset | None:
        """The examples with other alignments; None if they are the same, at the limit, or not hidden."""
        if isinstance(self._examples, Examples) and self._examples.good is not None:
            return super().complete(model, turn)
        self.settled = True
        return None


class EditSVM(StructuredSVM):
    """Alignments of two sequences by pairs, deletions and insertions, for example a learned edit distance.

    The score of an alignment is the sum of the scores of its pairs of symbols, of the symbols in gaps and of the
    openings of gaps, each linear in features of the symbols they meet (docs/structures/edit-distance.md). X: list of
    pairs of sequences, such as two strings, or :class:`maxmargin.SequencePair` with features of your own; y: for each
    pair an integer array ``(k, 2)`` of aligned positions ``(i, j)``, rising in both columns. Predictions are such
    arrays. ``score`` is F1 over pairs of positions; with ``nonmatches`` the share of right verdicts.

    Args:
        gaps: "affine", where the first symbol of a run of deletions or insertions also pays for opening the gap, or
            "linear".
        nonmatches: whether two sequences may also be no match, which y and predictions call False. The loss then
            counts wrong verdicts, and y may say True for pairs that match, but not how. Such alignments are hidden:
            the first ones have the fewest edits, and rounds replace them by the best ones under the last weights,
            which never raises the objective (:mod:`maxmargin.problem.partial`). Alignments that are given where
            others are hidden are those of the first round. Without nonmatches, True stands for the fewest edits.
        symbols: whether to learn scores of symbols; without, features must come with the inputs.
        symmetric: whether both sequences share the weights, so that their order does not matter.
        context: whether symbols in gaps see the symbols before and after them.
        classes_of: classes of symbols that share weights, such as ``{"a": "vowel", "b": "consonant"}``; symbols that
            were not seen in training are known by them alone. None for none.
        min_count: symbols that occur less often in training are treated as unknown.
        rounds: with hidden alignments, at most so many rounds; they end when no alignment changes.

    Attributes:
        objectives_: for each round the objective of its convex problem; one if no alignment is hidden.
        settled_: whether the rounds ended by themselves.

    The other arguments and attributes are those of :class:`StructuredSVM`.
    """

    @takes_settings
    def __init__(
        self,
        *,
        gaps: str = "affine",
        nonmatches: bool = False,
        symbols: bool = True,
        symmetric: bool = False,
        context: bool = True,
        classes_of: Mapping[Hashable, Hashable] | None = None,
        min_count: int = 1,
        rounds: int = 10,
        **settings: Unpack[SettingsArguments],
    ) -> None:
        self.gaps = gaps
        self.nonmatches = nonmatches
        self.symbols = symbols
        self.symmetric = symmetric
        self.context = context
        self.classes_of = classes_of
        self.min_count = min_count
        self.rounds = rounds

    def _encoder(self) -> Encoder:
        return EditEncoder(
            self.gaps, self.nonmatches, self.symbols, self.symmetric, self.context, self.classes_of, self.min_count
        )

    def _hooks(self) -> Hooks | None:
        return Realigned(self.rounds)

    def _examples(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: npt.ArrayLike | None,
        loss_weight: Sequence[npt.ArrayLike] | None,
        costs: Sequence[npt.ArrayLike] | None = None,
    ) -> Examples:
        examples = super()._examples(X, y, sample_weight, loss_weight, costs)
        encoder, structure = examples.encoder, examples.batch.structure
        assert isinstance(encoder, EditEncoder)
        if not encoder.nonmatches or not encoder.hidden(y).any():
            return examples
        verdicts = np.where(examples.gold.dense()[structure.variable_parts] > 0.5, 1, -1)
        return replace(examples, good=PartialOutputs.build(structure, verdicts))

    def _trained(self, hooks: Hooks | None) -> None:
        assert isinstance(hooks, Realigned)
        self.objectives_: tuple[float, ...] = tuple(hooks.objectives) or (self.solution_.certificate.primal,)
        self.settled_ = hooks.settled

    def _edits(self) -> EditModel:
        return cast(EditModel, self._model())

    def score_pairs(self, X: Sequence[Any]) -> FloatArray:
        """The score of the best alignment of each pair; see :meth:`maxmargin.EditModel.score_pairs`."""
        return self._edits().score_pairs(X)

    def match_scores(self, X: Sequence[Any]) -> FloatArray:
        """How much better an alignment is than no match; see :meth:`maxmargin.EditModel.match_scores`."""
        return self._edits().match_scores(X)

    def match_matrix(self, first: Sequence[Any], second: Sequence[Any]) -> FloatArray:
        """:meth:`match_scores` of all pairs of two lists; see :meth:`maxmargin.EditModel.match_matrix`."""
        return self._edits().match_matrix(first, second)

    def distance(self, X: Sequence[Any]) -> FloatArray:
        """The learned distance of each pair; see :meth:`maxmargin.EditModel.distance`."""
        return self._edits().distance(X)

    def distances(self, first: Sequence[Any], second: Sequence[Any]) -> FloatArray:
        """:meth:`distance` of all pairs of two lists; see :meth:`maxmargin.EditModel.distances`."""
        return self._edits().distances(first, second)
