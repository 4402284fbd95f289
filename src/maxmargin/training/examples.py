"""Encoded training examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.encoders.base import Batch, Encoder
from maxmargin.encoders.data import checks
from maxmargin.problem import GoodOutputs, Problem
from maxmargin.structures._arrays import ranges
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.sparse import SparsePoint
from maxmargin.training.settings import Settings


@dataclass(frozen=True, eq=False)
class Examples:
    """A batch with its gold outputs and weights.

    Attributes:
        encoder: the fitted encoder.
        batch: structure and features.
        gold: the gold outputs.
        example_weight: how much each example counts, shape ``(n_examples,)``; None for 1.
        loss_weight: how much each variable part counts in the loss, packed; None for 1.
        costs: what each variable part costs, packed, in place of the settings' loss: the loss of an output is what its
            parts cost less what those of the gold one cost; None for the settings' loss.
        good: several good outputs per example (:mod:`maxmargin.problem.good`), or None.
        anchor: weights ``w_0`` that the new ones are to stay close to: the penalty is then ``1/(2C) ||w - w_0||^2``,
            and the certificate is about that objective; None for 0.
    """

    encoder: Encoder
    batch: Batch
    gold: SparsePoint
    example_weight: FloatArray | None = None
    loss_weight: FloatArray | None = None
    costs: FloatArray | None = None
    good: GoodOutputs | None = None
    anchor: FloatArray | None = None

    @classmethod
    def fit(
        cls,
        encoder: Encoder,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: npt.ArrayLike | None = None,
        loss_weight: Sequence[npt.ArrayLike] | None = None,
        costs: Sequence[npt.ArrayLike] | None = None,
    ) -> Examples:
        """Fit an encoder to user data; weights and costs as :meth:`maxmargin.StructuredSVM.fit` takes them."""
        fitted, batch, gold = encoder.fit(X, y)
        structure = batch.structure
        per_part = None
        if loss_weight is not None:
            per_part = np.repeat(checks.per_variable(loss_weight, structure.n_variables), structure.n_states)
        own = None if costs is None else checks.per_part(costs, np.diff(structure.blocks[0].offsets))
        return cls(fitted, batch, gold, checks.weights(sample_weight, structure.n_examples), per_part, own)

    def __len__(self) -> int:
        return self.batch.structure.n_examples

    def select(self, examples: IntArray) -> Self:
        """The given examples."""
        batch, structure = self.batch.select(examples), self.batch.structure
        offsets = structure.blocks[0].offsets
        variables = ranges(offsets[examples], offsets[examples + 1])
        return replace(
            self,
            batch=batch,
            gold=self.gold.select(examples, batch.structure),
            example_weight=None if self.example_weight is None else self.example_weight[examples],
            good=None if self.good is None else self.good.select(structure, examples),
            loss_weight=None if self.loss_weight is None else self.loss_weight[variables],
            costs=None if self.costs is None else self.costs[variables],
        )

    def problem(self, settings: Settings, C: float) -> Problem:
        """The training problem."""
        if self.costs is not None and settings.loss is not None:
            raise ValueError("costs take the place of the loss; give loss or costs, not both")
        problem = Problem.build(
            self.batch.structure,
            self.batch.features,
            self.gold,
            settings.loss_used() if self.costs is None else self.costs,
            settings.region(self.encoder, self.batch.features.n_weights, C),
            example_weight=self.example_weight,
            loss_weight=self.loss_weight,
            rescaling=settings.rescaling,
            slack=settings.slack,
            good=self.good,
        )
        return problem if self.anchor is None else problem.around(self.anchor)

    def weights_of(self, weights: FloatArray) -> FloatArray:
        """Weights of the model from those of :meth:`problem`."""
        return weights if self.anchor is None else weights + self.anchor
