"""Paths in lattices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy.typing as npt

from maxmargin import _checks
from maxmargin.datasets.recipe import Good
from maxmargin.encoders.base import Batch, Encoder
from maxmargin.encoders.lattice import LatticeEncoder
from maxmargin.estimators.base import SettingsArguments, StructuredSVM, takes_settings
from maxmargin.features.kernel import Kernel
from maxmargin.problem.good_paths import FORMULATIONS, PathSets
from maxmargin.training import BestGood, Examples, Hooks


class LatticeSVM(StructuredSVM):
    """Paths in directed acyclic graphs, for example the best translation or transcription of a word lattice.

    Score of a path: the sum of ``w'x_e`` over its edges. X: list of :class:`maxmargin.WordLattice`; y: for each example
    a path, an array of edge numbers in path order, or a list of several good paths. Predictions are paths;
    :func:`maxmargin.words_of` gives their words. ``score`` is F1 over edges, against the good path that agrees best.

    Args:
        formulation: what a margin is between, where several paths are good: "gold" takes one good path per example;
            "all" compares bad paths with every good one, "best" with the one that scores highest, in rounds. These two
            need ``rescaling="none"``, a margin of 1, or ``"margin"`` and ``fit(..., costs=)``, the costs of edges: the
            margin is then the difference of two paths' costs.
        rounds: for "best", at most so many rounds; they end when no example has another best good path.
        features: a :class:`maxmargin.features.Kernel` in place of explicit edge features; ``coef_`` then holds the dual
            coefficients of the support edges.

    The other arguments are those of :class:`StructuredSVM`.
    """

    @takes_settings
    def __init__(
        self,
        *,
        formulation: str = "gold",
        rounds: int = 10,
        features: Kernel | None = None,
        **settings: Unpack[SettingsArguments],
    ) -> None:
        self.formulation = formulation
        self.rounds = rounds
        self.features = features

    def _encoder(self) -> Encoder:
        return LatticeEncoder(kernel=self.features)

    def _hooks(self) -> Hooks | None:
        hooks = BestGood(self.rounds)
        return hooks if _checks.is_one_of(self.formulation, "best") else None

    def _examples(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: npt.ArrayLike | None,
        loss_weight: Sequence[npt.ArrayLike] | None,
        costs: Sequence[npt.ArrayLike] | None = None,
    ) -> Examples:
        _checks.one_of("formulation", self.formulation, FORMULATIONS)
        examples = super()._examples(X, y, sample_weight, loss_weight, costs)
        return replace(examples, good=self._good(examples.encoder, examples.batch, y))

    def _good_finder(self) -> Good:
        return self._good

    def _good(self, encoder: Encoder, batch: Batch, y: Sequence[Any]) -> PathSets | None:
        """The good paths of a batch; None where each example must have one."""
        assert isinstance(encoder, LatticeEncoder)
        paths = encoder.good(batch, y)
        if self.formulation != "gold":
            return PathSets.build(batch.structure, paths, self.formulation)
        for index, own in enumerate(paths):
            if len(own) > 1:
                raise ValueError(
                    f'example {index}: several paths are good; use formulation="all" or "best", or give one'
                )
        return None

    def k_best(self, X: Sequence[Any], k: int, distinct: str = "paths") -> list[list[tuple[Any, float]]]:
        """The ``k`` best paths of each example with their scores, best first.

        ``distinct="words"``: the best path of each of the ``k`` best sequences of words.
        """
        _checks.one_of("distinct", distinct, ("paths", "words"))
        model = self._model()
        return model.k_best_words(X, k) if distinct == "words" else model.k_best(X, k)
