"""How the dual extragradient method keeps vectors of the weights' space: as they are, or as sums of features.

Every vector that the method meets, weights, gradients and their sums, is a combination ``k w0 + sum_i s_i F_i x_i`` of
the start weights and of features of parts: gradients are ``g(z) = F(z - y)``, and a ball around zero or a ridge only
scales. So where weights outnumber parts it is enough to keep vectors over the parts (the 2005 report, end of section
5): the coefficients ``(k, x)`` of a vector ``u`` and its products ``(w0'u, s_i F_i'u)`` with what they multiply. Both
are linear in ``u``, scores are among the products, and ``u'v`` is a product of ``u``'s coefficients and ``v``'s
products. Only the features of a new point of the structures player cost something: ``F'F z``, one pass over the
features each way, which is all that a kernel is needed for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Protocol

import numpy as np

from maxmargin._vectors import dot
from maxmargin.optimization.certificate import Proposal
from maxmargin.problem import BaseProblem, Problem
from maxmargin.solvers.first_order.players import EuclideanWeights, WeightsPlayer, WeightsPoint
from maxmargin.structures.base import FloatArray


class WeightForm(Protocol):
    """Vectors of the weights' space as the pieces see them."""

    def features(self, piece: Problem, *points: FloatArray) -> tuple[FloatArray, ...]:
        """``sum_i s_i F_i z_i`` of one or two packed points of a piece."""

    def augmented(self, piece: Problem, *vectors: FloatArray) -> tuple[FloatArray, ...]:
        """The loss-augmented scores of a piece at one or two weight vectors; new arrays."""


class AsTheyAre:
    """Vectors of shape ``(n_weights,)``."""

    def features(self, piece: Problem, *points: FloatArray) -> tuple[FloatArray, ...]:
        """One pass over the features."""
        return (piece.feature_sum(*points),) if len(points) == 1 else piece.feature_sum_pair(*points)

    def augmented(self, piece: Problem, *vectors: FloatArray) -> tuple[FloatArray, ...]:
        """One pass over the features."""
        return (piece.augmented(*vectors),) if len(vectors) == 1 else piece.augmented_pair(*vectors)


class WeightVectors(ABC):
    """Vectors of the weights' space in one form: arrays whose sums and multiples are those of the vectors.

    Attributes:
        problem: the whole problem.
        player: the weights player, whose points are in this form.
    """

    def __init__(self, problem: BaseProblem, player: WeightsPlayer) -> None:
        self.problem, self.player = problem, player

    @property
    @abstractmethod
    def form(self) -> WeightForm:
        """The form, which goes to the pieces."""

    @abstractmethod
    def start(self, weights: FloatArray) -> WeightsPoint:
        """The point of the run's start weights."""

    @abstractmethod
    def zero(self) -> FloatArray:
        """The zero vector."""

    @property
    @abstractmethod
    def gold(self) -> FloatArray:
        """``sum_i s_i F_i y_i``."""

    @abstractmethod
    def dot(self, first: FloatArray, second: FloatArray) -> float:
        """Their inner product."""

    @abstractmethod
    def explicit(self, proposal: Proposal) -> Proposal:
        """A candidate for certification, with weights and ``g`` as they are."""


class StoredWeights(WeightVectors):
    """Vectors as they are, shape ``(n_weights,)``; any player."""

    @property
    def form(self) -> WeightForm:
        """Nothing but methods."""
        return AsTheyAre()

    def start(self, weights: FloatArray) -> WeightsPoint:
        """See :meth:`WeightsPlayer.at`."""
        return self.player.at(weights)

    def zero(self) -> FloatArray:
        """Zeros."""
        return np.zeros(self.problem.n_weights)

    @property
    def gold(self) -> FloatArray:
        """See :attr:`Problem.gold_features`."""
        return self.problem.gold_features

    def dot(self, first: FloatArray, second: FloatArray) -> float:
        """A product of two weight vectors."""
        return dot(first, second)

    def explicit(self, proposal: Proposal) -> Proposal:
        """The same."""
        return proposal


class ImpliedWeights(WeightVectors):
    """Coefficients and products, shape ``(2, 1 + n_parts)``; for a region that depends on the norm alone, unsharded.

    Args:
        problem: the problem.
        origin: the start weights ``w0``; None for zero.
    """

    problem: Problem

    def __init__(self, problem: Problem, origin: FloatArray | None) -> None:
        super().__init__(problem, _ScaledWeights(problem.region))
        self.origin = origin

    @property
    def form(self) -> WeightForm:
        """Itself: the only piece is the problem."""
        return self

    def zero(self) -> FloatArray:
        """Zeros."""
        return np.zeros((2, 1 + self.problem.structure.n_parts))

    def start(self, weights: FloatArray) -> WeightsPoint:
        """``w0``, or zero."""
        vector = self.zero()
        if self.origin is not None:
            vector[0, 0] = 1.0
            self._write_products(self.origin, vector)
        return self.player.at(vector)

    def _write_products(self, weights: FloatArray, vector: FloatArray) -> None:
        vector[1, 0] = 0.0 if self.origin is None else dot(self.origin, weights)
        vector[1, 1:] = self.problem.scores(weights)

    @cached_property
    def gold(self) -> FloatArray:
        """Made once and kept."""
        return self.features(self.problem, self.problem.gold)[0]

    def features(self, piece: Problem, *points: FloatArray) -> tuple[FloatArray, ...]:
        """One pass over the features each way, with a weight vector in between that is not kept."""
        vectors = tuple(self.zero() for _ in points)
        for z, vector in zip(points, vectors, strict=True):
            vector[0, 1:] = z
            self._write_products(piece.feature_sum(z), vector)
        return vectors

    def augmented(self, piece: Problem, *vectors: FloatArray) -> tuple[FloatArray, ...]:
        """The products, and the costs."""
        return tuple(piece.plus_costs(vector[1, 1:].copy()) for vector in vectors)

    def dot(self, first: FloatArray, second: FloatArray) -> float:
        """Coefficients times products."""
        return dot(first[0], second[1])

    def explicit(self, proposal: Proposal) -> Proposal:
        """One pass over the features for the weights, one for ``g``."""
        return Proposal(self._explicit(proposal.weights), self._explicit(proposal.g), proposal.loss)

    def _explicit(self, vector: FloatArray) -> FloatArray:
        weights = self.problem.feature_sum(vector[0, 1:])
        return weights if self.origin is None else weights + vector[0, 0] * self.origin


class _ScaledWeights(EuclideanWeights):
    """Projections that scale, of vectors that are coefficients and products."""

    def move(self, origin: WeightsPoint, gradient: FloatArray, step: float, *, penalized: bool = False) -> WeightsPoint:
        """A projection, found from the length."""
        assert not penalized
        moved = origin.weights - step * gradient
        length = float(np.sqrt(max(0.0, dot(moved[0], moved[1]))))
        # Of a region that depends on the norm alone, the projection of a vector has the projected length.
        nearest = float(self.region.project(np.array([length]))[0])
        return self.at(moved if nearest == length else moved * (nearest / length))

    def divergence(self, origin: WeightsPoint, point: WeightsPoint) -> float:
        """``1/2 ||w - origin||^2``."""
        moved = point.weights - origin.weights
        return 0.5 * max(0.0, dot(moved[0], moved[1]))
