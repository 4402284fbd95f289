"""Choices from lists of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.encoders.base import Batch, Encoder
from maxmargin.encoders.candidates import CandidatesEncoder
from maxmargin.estimators.base import StructuredSVM, takes_settings
from maxmargin.problem import GoodOutputs, Problem
from maxmargin.problem.good import FORMULATIONS, Metric
from maxmargin.problem.hinges import unsupported


class CandidatesSVM(StructuredSVM):
    """One of a list of candidates, for example re-ranking of translations.

    Score of a candidate: ``w'x``. X: list of ``(n_candidates, d)`` matrices, dense or CSR; y: for each example the
    number of the good candidate, counted from 0, or several numbers, or a boolean mask. ``score`` counts examples for
    which a good one was chosen.

    Args:
        formulation: what a margin is between, where several candidates are good: "gold" takes one good candidate per
            example; "nearest" compares each bad one with the good one nearest to it, "all" with every good one. These
            two need ``rescaling="none"``.
        metric: for "nearest", a function of two rows of features, the good one's first; None for the Euclidean
            distance.

    The other arguments are those of :class:`StructuredSVM`.
    """

    @takes_settings
    def __init__(self, *, formulation: str = "gold", metric: Metric | None = None, **settings: Any) -> None:
        super().__init__(None, **settings)
        self.formulation = formulation
        self.metric = metric

    def _encoder(self) -> Encoder:
        return CandidatesEncoder()

    def _problem(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: npt.ArrayLike | None,
        loss_weight: Sequence[npt.ArrayLike] | None,
    ) -> tuple[Encoder, Problem]:
        if self.formulation not in FORMULATIONS:
            raise ValueError(
                f"formulation must be one of {', '.join(map(repr, FORMULATIONS))}, got {self.formulation!r}"
            )
        encoder, problem = super()._problem(X, y, sample_weight, loss_weight)
        assert isinstance(encoder, CandidatesEncoder)
        mask = encoder.good(Batch(problem.structure, problem.features), y)
        if self.formulation == "gold":
            several = problem.structure.by_example(mask.astype(np.float64)) > 1.0
            if several.any():
                raise ValueError(
                    f"example {int(np.flatnonzero(several)[0])}: several candidates are good; "
                    'use formulation="nearest" or "all", or give one'
                )
            return encoder, problem
        good = GoodOutputs.build(problem.structure, problem.features, mask, self.formulation, self.metric)
        problem = replace(problem, good=good)
        if reason := unsupported(problem):
            raise ValueError(reason)
        return encoder, problem
