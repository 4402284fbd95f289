"""Encoded training examples in memory, and what both they and those on disk ask of settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from maxmargin.encoders.base import Batch, Encoder
from maxmargin.encoders.data import checks
from maxmargin.losses import Loss
from maxmargin.problem import GoodOutputs, GoodSets, PartialOutputs, Problem
from maxmargin.regions import Region
from maxmargin.structures._arrays import ranges
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.sparse import SparsePoint


class ProblemSettings(Protocol):
    """The settings that a training problem is made with; see :class:`maxmargin.training.Settings`."""

    @property
    def loss(self) -> Loss | None:
        """The loss that was chosen, or None."""

    @property
    def rescaling(self) -> str:
        """How the loss scales the margin."""

    @property
    def slack(self) -> str:
        """How violations count."""

    def loss_used(self) -> Loss:
        """The loss, chosen or not."""

    def region(self, encoder: Encoder, n_weights: int, C: float) -> Region:
        """Set and penalty of the weights."""


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
        good: several good outputs per example (:mod:`maxmargin.problem.good`), or those that agree with given parts
            (:mod:`maxmargin.problem.partial`), of which ``gold`` is one or a mean; or None.
        anchor: weights ``w_0`` that the new ones are to stay close to: the penalty is then ``1/(2C) ||w - w_0||^2``,
            and the certificate is about that objective; None for 0.
    """

    encoder: Encoder
    batch: Batch
    gold: SparsePoint
    example_weight: FloatArray | None = None
    loss_weight: FloatArray | None = None
    costs: FloatArray | None = None
    good: GoodSets | None = None
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
        weight = checks.weights(sample_weight, batch.structure.n_examples)
        return cls(fitted, batch, gold, weight)._weighted(loss_weight, costs)

    @classmethod
    def fit_partial(
        cls,
        encoder: Encoder,
        X: Sequence[Any],
        y: Sequence[Any],
        formulation: str,
        random: np.random.Generator,
        sample_weight: npt.ArrayLike | None = None,
        loss_weight: Sequence[npt.ArrayLike] | None = None,
    ) -> Examples:
        """Fit an encoder to user data whose outputs are known in part (:mod:`maxmargin.problem.partial`)."""
        fitted, batch, given = encoder.fit_partial(X, y)
        good = PartialOutputs.build(batch.structure, given, formulation)
        first = replace(good, given=fitted.first_given(batch, good.given, random))
        gold = first.first(batch.structure, batch.features, fitted.nonnegative())
        weight = checks.weights(sample_weight, batch.structure.n_examples)
        return cls(fitted, batch, gold, weight, good=good)._weighted(loss_weight, None)

    @classmethod
    def encoded(
        cls,
        encoder: Encoder,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: npt.ArrayLike | None = None,
        loss_weight: Sequence[npt.ArrayLike] | None = None,
        costs: Sequence[npt.ArrayLike] | None = None,
        *,
        listed: bool = True,
    ) -> Examples:
        """Encode some of the examples that an encoder has been fitted to.

        ``listed``: whether inputs and outputs are lists of a user, not the encoder's own blocks.
        """
        batch = encoder.transform(X)
        gold = encoder.encode(batch, encoder.parse_outputs(checks.examples(y, "y")) if listed else y)
        weight = checks.weights(sample_weight, batch.structure.n_examples, some=False)
        return cls(encoder, batch, gold, weight)._weighted(loss_weight, costs)

    def _weighted(self, loss_weight: Sequence[npt.ArrayLike] | None, costs: Sequence[npt.ArrayLike] | None) -> Self:
        structure, per_part = self.batch.structure, None
        if loss_weight is not None:
            per_part = np.repeat(checks.per_variable(loss_weight, structure.n_variables), structure.n_states)
        own = None if costs is None else checks.per_part(costs, np.diff(structure.blocks[0].offsets))
        return replace(self, loss_weight=per_part, costs=own)

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

    def problem(self, settings: ProblemSettings, C: float) -> Problem:
        """The training problem."""
        if self.costs is not None:
            refuse_loss(settings)
        region = settings.region(self.encoder, self.batch.features.n_weights, C)
        problem = self.problem_of(settings.loss_used(), region, settings.rescaling, settings.slack)
        return problem if self.anchor is None else problem.around(self.anchor)

    def problem_of(self, loss: Loss, region: Region, rescaling: str, slack: str, *, known: bool = False) -> Problem:
        """The problem with a loss, unless the examples have costs; ``known``: the same was made and checked before."""
        make, structure = Problem.again if known else Problem.build, self.batch.structure
        costs: Loss | FloatArray = loss if self.costs is None else self.costs
        if isinstance(self.good, PartialOutputs):
            if reason := self._partial_unsupported(self.good, rescaling):
                raise ValueError(reason)
            costs = self.good.costs(structure, loss)
        return make(
            structure,
            self.batch.features,
            self.gold,
            costs,
            region,
            example_weight=self.example_weight,
            loss_weight=self.loss_weight,
            rescaling=rescaling,
            slack=slack,
            good=self.pairs,
        )

    def _partial_unsupported(self, good: PartialOutputs, rescaling: str) -> str | None:
        """The reason why there is no problem in which only some parts of outputs are known, or None."""
        if self.costs is not None:
            return "costs of the hidden parts would depend on what is hidden; give a loss in place of costs"
        if rescaling == "none":
            return (
                'rescaling="none" needs the best output that disagrees with what is given, which is not known; use '
                'rescaling="margin" or "slack"'
            )
        return good.unsupported(self.batch.structure)

    @property
    def pairs(self) -> GoodOutputs | None:
        """Good outputs that are compared with bad ones in pairs, or None."""
        return self.good if isinstance(self.good, GoodOutputs) else None

    def completed(self, weights: FloatArray) -> Self:
        """With the best outputs under some weights that agree with the known parts as gold ones."""
        assert isinstance(self.good, PartialOutputs)
        return replace(self, gold=self.good.completed(self.batch.structure, self.batch.features, weights))

    @property
    def has_costs(self) -> bool:
        """Whether costs were given in place of a loss."""
        return self.costs is not None

    def weights_of(self, weights: FloatArray) -> FloatArray:
        """Weights of the model from those of :meth:`problem`."""
        return weights if self.anchor is None else weights + self.anchor


def refuse_loss(settings: ProblemSettings) -> None:
    """ValueError if a loss was chosen for examples with costs."""
    if settings.loss is not None:
        raise ValueError("costs take the place of the loss; give loss or costs, not both")
