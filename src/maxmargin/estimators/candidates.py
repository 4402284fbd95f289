"""Choices from lists of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, Unpack

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin.datasets import ShardedDataset
from maxmargin.datasets.recipe import Good
from maxmargin.encoders.base import Batch, Encoder
from maxmargin.encoders.candidates import CandidatesEncoder
from maxmargin.encoders.data import checks
from maxmargin.estimators.base import SettingsArguments, StructuredSVM, given_outputs, takes_settings
from maxmargin.features.kernel import Kernel
from maxmargin.problem import CandidateSets
from maxmargin.problem.good import FORMULATIONS
from maxmargin.problem.nearest import Distance
from maxmargin.training import BestGood, Examples, Hooks


class CandidatesSVM(StructuredSVM):
    """One of a list of candidates, for example re-ranking of translations.

    Score of a candidate: ``w'x``. X: list of ``(n_candidates, d)`` matrices, dense or CSR; y: for each example the
    number of the good candidate, counted from 0, or several numbers, or a boolean mask. ``score`` counts examples for
    which a good one was chosen.

    Args:
        formulation: what a margin is between, where several candidates are good: "gold" takes one good candidate per
            example; "nearest" compares each bad one with the good one nearest to it, "all" with every good one, "best"
            with the one that scores highest, in rounds. These three need ``rescaling="none"``, a margin of 1, or
            ``"margin"`` and ``fit(..., costs=)``: the margin is then the difference of two candidates' costs.
        distance: for "nearest", a function of two rows of features, the good one's first: vectors, or, if X is sparse,
            CSR matrices of one row; None for the Euclidean distance (with a kernel, that of its space), or for the
            ``nearest`` of ``fit``.
        rounds: for "best", at most so many rounds; they end when no example has another best good candidate.
        features: a :class:`maxmargin.features.Kernel` in place of explicit features; ``coef_`` then holds the dual
            coefficients of the support candidates.

    The other arguments are those of :class:`StructuredSVM`.
    """

    @takes_settings
    def __init__(
        self,
        *,
        formulation: str = "gold",
        distance: Distance | None = None,
        rounds: int = 10,
        features: Kernel | None = None,
        **settings: Unpack[SettingsArguments],
    ) -> None:
        self.formulation = formulation
        self.distance = distance
        self.rounds = rounds
        self.features = features

    def _encoder(self) -> Encoder:
        return CandidatesEncoder(kernel=self.features)

    def _hooks(self) -> Hooks | None:
        hooks = BestGood(self.rounds)
        return hooks if _checks.is_one_of(self.formulation, "best") else None

    def fit(
        self,
        X: Sequence[Any] | ShardedDataset,
        y: Sequence[Any] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        loss_weight: Sequence[npt.ArrayLike] | None = None,
        costs: Sequence[npt.ArrayLike] | None = None,
        nearest: Sequence[npt.ArrayLike] | None = None,
        dev: tuple[Sequence[Any], Sequence[Any]] | None = None,
    ) -> Self:
        """Train.

        Args:
            X, y, sample_weight, loss_weight, dev: see :meth:`StructuredSVM.fit`.
            costs: for each example the cost of each candidate, in place of the loss.
            nearest: for ``formulation="nearest"``, for each example the number of the good candidate that each
                candidate is compared with, where it is not to be found by a distance of the features; numbers of good
                candidates are not read.
        """
        if isinstance(X, ShardedDataset):
            given = {"y": y, "sample_weight": sample_weight, "loss_weight": loss_weight, "costs": costs}
            return self._fit_dataset(X, dev, **given, nearest=nearest)
        return self._fit(lambda: self._examples(X, given_outputs(y), sample_weight, loss_weight, costs, nearest), dev)

    def _good_finder(self) -> Good:
        return self._good

    def _examples(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: npt.ArrayLike | None,
        loss_weight: Sequence[npt.ArrayLike] | None,
        costs: Sequence[npt.ArrayLike] | None = None,
        nearest: Sequence[npt.ArrayLike] | None = None,
    ) -> Examples:
        _checks.one_of("formulation", self.formulation, FORMULATIONS)
        if self.features is not None and self.distance is not None:
            raise ValueError("distance compares rows of explicit features; leave it out, or give no kernel")
        examples = super()._examples(X, y, sample_weight, loss_weight, costs)
        return replace(examples, good=self._good(examples.encoder, examples.batch, y, nearest))

    def _good(
        self, encoder: Encoder, batch: Batch, y: Sequence[Any], nearest: Sequence[npt.ArrayLike] | None = None
    ) -> CandidateSets | None:
        """The good candidates of a batch; None where each example must have one."""
        assert isinstance(encoder, CandidatesEncoder)
        mask = encoder.good(batch, y)
        if self.formulation != "gold":
            near = None if nearest is None else checks.numbers(nearest, batch.structure.sizes, "nearest")
            return CandidateSets.build(batch.structure, batch.features, mask, self.formulation, self.distance, near)
        if nearest is not None:
            raise ValueError('nearest is for formulation="nearest"; leave it out')
        several = batch.structure.by_example(mask.astype(np.float64)) > 1.0
        if several.any():
            raise ValueError(
                f"example {int(np.flatnonzero(several)[0])}: several candidates are good; "
                'use formulation="nearest", "all" or "best", or give one'
            )
        return None
