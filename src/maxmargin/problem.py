"""The saddle-point problem: structure + features + loss + gold outputs + region.

    min_{w in W} penalty(w) + H(w),    H(w) = max_{z in Z} w'g(z) + sum_i s_i (c_i'z_i + d_i),
    g(z) = sum_i s_i (F_i z_i - F_i y_i)

with ``s_i`` the example weights. Everything a solver needs of the data is one of: ``augmented`` scores, ``gradient``,
``hinge``, and the structure's argmax and projection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._vectors import dot
from maxmargin.features.base import Features, operator_norm
from maxmargin.losses import Loss
from maxmargin.regions import Region
from maxmargin.structures.base import FloatArray, Points, PointStatus, Structure


@dataclass(frozen=True, eq=False)
class Problem:
    """One packed training problem. Build it with :meth:`Problem.build`.

    Attributes:
        structure: the batch of output polytopes.
        features: the linear map between weights and the batch's parts.
        gold: packed gold outputs, shape ``(n_parts,)``.
        costs: packed ``s_i c_i``, shape ``(n_parts,)``.
        constant: ``sum_i s_i d_i``.
        region: set and penalty of the weights.
        scale: packed example weights ``s_i``, shape ``(n_parts,)``, or None for all 1.
    """

    structure: Structure
    features: Features
    gold: FloatArray
    costs: FloatArray
    constant: float
    region: Region
    scale: FloatArray | None = None

    @classmethod
    def build(
        cls,
        structure: Structure,
        features: Features,
        gold: FloatArray,
        loss: Loss,
        region: Region,
        *,
        example_weight: FloatArray | None = None,
        loss_weight: FloatArray | None = None,
    ) -> Problem:
        """Assemble and check a problem.

        Args:
            structure: the batch of polytopes.
            features: its features.
            gold: packed gold outputs (``structure.encode``).
            loss: the loss.
            region: set and penalty of the weights.
            example_weight: shape ``(n_examples,)``, >= 0; scales an example's whole term.
            loss_weight: packed over the decision parts, >= 0; scales the loss part by part.
        """
        if features.n_parts != structure.n_parts:
            raise ValueError(f"features have {features.n_parts} parts, the structure has {structure.n_parts}")
        if reason := region.why_not(features.n_weights):
            raise ValueError(reason)
        _check_gold(structure, gold)
        if example_weight is not None:
            example_weight = np.asarray(example_weight, dtype=np.float64)
            if example_weight.shape != (structure.n_examples,) or not (example_weight >= 0).all():
                raise ValueError(f"example_weight must be {structure.n_examples} numbers >= 0, one per example")
        costs, offset = (np.asarray(values, dtype=np.float64) for values in loss.costs(structure, gold))
        if costs.shape != (structure.n_parts,) or offset.shape != (structure.n_parts,):
            raise ValueError(
                f"{type(loss).__name__}.costs must return two vectors of shape ({structure.n_parts},), one entry per "
                f"part, got shapes {costs.shape} and {offset.shape}"
            )
        if loss_weight is not None:
            costs, offset = costs.copy(), offset.copy()
            costs[structure.decisions] *= loss_weight
            offset[structure.decisions] *= loss_weight
        if not (np.isfinite(costs).all() and np.isfinite(offset).all()):
            raise ValueError("the loss gives infinite or NaN costs; give finite ones")
        if structure.loss_on_decisions_only:
            outside = costs.copy()
            outside[structure.decisions] = 0.0
            if outside.any():
                raise ValueError(
                    f"on a {structure.name} the loss must be linear in the decision parts alone (its first block): "
                    "a loss on edges would make the argmax intractable; put the cost on the nodes"
                )
        at_gold = structure.by_example(costs * gold + offset)
        wrong = np.abs(at_gold) > 1e-9 * (1.0 + structure.by_example(np.abs(costs * gold) + np.abs(offset)))
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"example {index}: the loss of the gold output must be zero, got {at_gold[index]:g}; "
                "check the loss's offset"
            )
        scale = None
        if example_weight is not None and not np.all(example_weight == 1.0):
            scale = structure.to_parts(example_weight)
            with np.errstate(over="ignore"):
                costs, offset = scale * costs, scale * offset
            if not np.isfinite(costs).all():
                raise ValueError("the example weights times the loss are not finite; give smaller weights")
        return cls(structure, features, gold, costs, float(offset.sum()), region, scale)

    @property
    def n_weights(self) -> int:
        """Length of the weight vector."""
        return self.features.n_weights

    @cached_property
    def gold_features(self) -> FloatArray:
        """``sum_i s_i F_i y_i``, shape ``(n_weights,)``."""
        return self.features.adjoint(self._scaled(self.gold))

    def _scaled(self, z: FloatArray) -> FloatArray:
        return z if self.scale is None else self.scale * z

    def augmented(self, weights: FloatArray) -> FloatArray:
        """``s_i (F_i'w + c_i)``: the structures player's gradient, and the scores of loss-augmented argmax."""
        scores = self._scaled(self.features.scores(weights))
        scores += self.costs
        return scores

    def augmented_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """:meth:`augmented` of two weight vectors in one pass over the features."""
        one, two = (self._scaled(scores) for scores in self.features.scores_pair(first, second))
        one += self.costs
        two += self.costs
        return one, two

    def gradient(self, z: FloatArray) -> FloatArray:
        """``g(z)``, shape ``(n_weights,)``: the weights player's gradient without the penalty's."""
        return self.features.adjoint(self._scaled(z)) - self.gold_features

    def gradient_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """:meth:`gradient` of two packed points in one pass over the features."""
        one, two = self.features.adjoint_pair(self._scaled(first), self._scaled(second))
        return one - self.gold_features, two - self.gold_features

    def loss(self, z: FloatArray) -> float:
        """``sum_i s_i (c_i'z_i + d_i)``."""
        return dot(self.costs, z) + self.constant

    def hinge(self, weights: FloatArray, *, warm: Any = None) -> tuple[float, Points]:
        """``H(w)`` and the loss-augmented outputs that attain it: one argmax pass, from an earlier pass's ``warm``."""
        points = self.structure.argmax(self.augmented(weights), warm=warm)
        if (points.status != PointStatus.OK).any():
            if (points.status == PointStatus.NONFINITE).any():
                return np.nan, points
            index = int(np.flatnonzero(points.status != PointStatus.OK)[0])
            raise ArithmeticError(
                f"example {index}: the {self.structure.name}'s argmax found no exact output "
                f"({PointStatus(int(points.status[index])).name}), so that no certificate would hold"
            )
        value = float(points.value.sum()) + self.constant - dot(weights, self.gold_features)
        return value, points

    def objective(self, weights: FloatArray) -> float:
        """``penalty(w) + H(w)``."""
        return self.region.penalty(weights) + self.hinge(weights)[0]

    @cached_property
    def norm(self) -> float:
        """``||[s_1 F_1 ... s_m F_m]||_2`` by power iteration."""
        return operator_norm(
            lambda w: self._scaled(self.features.scores(w)),
            lambda z: self.features.adjoint(self._scaled(z)),
            self.n_weights,
        )

    def select(self, indices: npt.ArrayLike) -> Problem:
        """The problem of some of the examples, with the same region. Hinges, losses and gradients of shards add up."""
        parts = self.structure.parts_of(indices)
        gold, costs = self.gold[parts], self.costs[parts]
        return Problem(
            self.structure.select(indices),
            self.features.select(indices),
            gold,
            costs,
            -dot(costs, gold),  # the gold output has loss zero
            self.region,
            None if self.scale is None else self.scale[parts],
        )

    def shards(self, max_parts: int) -> Iterator[Problem]:
        """Cut the batch into consecutive shards of at most ``max_parts`` parts (or one example, if that is larger)."""
        sizes = self.structure.by_example(np.ones(self.structure.n_parts))
        if sizes.sum() <= max_parts or self.structure.n_examples <= 1:
            yield self
            return
        first, total = 0, 0.0
        for index, size in enumerate(sizes):
            if index > first and total + size > max_parts:
                yield self.select(np.arange(first, index))
                first, total = index, 0.0
            total += size
        yield self.select(np.arange(first, self.structure.n_examples))


def _check_gold(structure: Structure, gold: FloatArray) -> None:
    """Gold outputs must lie in their polytopes, or every certificate would be wrong: each is its own projection."""
    if gold.shape != (structure.n_parts,):
        raise ValueError(f"gold must be a packed vector of shape ({structure.n_parts},), got {gold.shape}")
    off = structure.by_example(np.abs(structure.project(gold).z - gold))
    if not (off <= 1e-6).all():
        raise ValueError(f"example {int(np.argmax(~(off <= 1e-6)))}: gold is not a legal output; use structure.encode")
