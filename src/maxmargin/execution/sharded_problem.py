"""A problem whose data is elsewhere: what a driver needs of it comes from passes over its pieces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin._digest import digest
from maxmargin.execution.pieces import Piece, PieceSource
from maxmargin.execution.session import Serial, Session
from maxmargin.features.base import operator_norm
from maxmargin.problem import Hinge, Problem
from maxmargin.problem.base import NonZeros, nonzeros, with_zeros
from maxmargin.problem.good import GoodOutputs
from maxmargin.regions import Region
from maxmargin.structures.base import FloatArray, Structure


@dataclass(frozen=True, eq=False)
class ShardedProblem:
    """A problem in pieces, see :class:`maxmargin.problem.BaseProblem`.

    Attributes:
        source: where the pieces come from.
        session: a run's work on them; None passes over them in this process.
        like: the problem of no examples with the settings of all pieces; None takes that of the source.
    """

    source: PieceSource
    session: Session | None = None
    like: Problem | None = None

    def over(self, session: Session) -> ShardedProblem:
        """The same problem, whose passes are made by a session."""
        return replace(self, session=session, like=self._like)

    @cached_property
    def _like(self) -> Problem:
        return self.like or self.source.none()

    @cached_property
    def _session(self) -> Session:
        return self.session or Serial().open(self.source)

    @property
    def n_weights(self) -> int:
        """Length of the weight vector."""
        return self._like.n_weights

    @cached_property
    def n_examples(self) -> int:
        """How many examples there are."""
        return int(np.sum(self.source.examples, dtype=np.int64))

    @cached_property
    def n_parts(self) -> int:
        """How many parts they have."""
        return int(np.sum(self.source.parts, dtype=np.int64))

    @property
    def kind(self) -> Structure:
        """The structure of no examples."""
        return self._like.structure

    @property
    def region(self) -> Region:
        """Set and penalty of the weights."""
        return self._like.region

    @property
    def rescaling(self) -> str:
        """How the loss scales the margin."""
        return self._like.rescaling

    @property
    def slack(self) -> str:
        """How a violation counts."""
        return self._like.slack

    @property
    def good(self) -> GoodOutputs | None:
        """The good outputs of no examples, or None if every example has one gold output."""
        return self._like.good

    @property
    def bilinear(self) -> bool:
        """Whether hinges are maxima of ``w'g(z) + loss(z)`` over the polytopes."""
        return self._like.bilinear

    @property
    def relaxed(self) -> bool:
        """Whether hinges are those of a relaxation."""
        return self._like.relaxed

    @cached_property
    def _sums(self) -> tuple[NonZeros, float, FloatArray]:
        features, constant, scales = self._session.sums(_sums)
        return nonzeros(features), constant, np.concatenate(scales)

    @property
    def gold_nonzeros(self) -> NonZeros:
        """Where :attr:`gold_features` are not zero, and what they are there."""
        return self._sums[0]

    @cached_property
    def gold_features(self) -> FloatArray:
        """``sum_i s_i F_i y_i``, shape ``(n_weights,)``."""
        return with_zeros(self.gold_nonzeros, self.n_weights)

    @property
    def constant(self) -> float:
        """``sum_i s_i d_i``."""
        return self._sums[1]

    @property
    def scale(self) -> FloatArray:
        """``s_i``, shape ``(n_examples,)``."""
        return self._sums[2]

    @cached_property
    def norm(self) -> float:
        """``||[s_1 F_1 ... s_m F_m]||_2``, some passes."""
        return operator_norm(lambda weights: np.array(self._session.sums(_normal, weights)[0]), self.n_weights)

    def fingerprint(self) -> dict[str, str]:
        """Hashes of the numbers in the structures, the gold outputs, the features and so on, by their names."""
        if (known := self.source.fingerprint()) is not None:
            return known
        found = list(self._session.each(_fingerprint))
        return {name: digest([one[name] for one in found]) for name in found[0]} if found else {}

    def evaluate(self, weights: FloatArray) -> Hinge:
        """``H(w)`` and its rounding error: one argmax pass."""
        return Hinge(*self._session.sums(_evaluate, weights))

    def with_rescaling(self, rescaling: str) -> ShardedProblem:
        """The same problem with another hinge; its pieces stay as they are."""
        return replace(self, like=replace(self._like, rescaling=rescaling))


def _sums(piece: Piece, memory: Any) -> tuple[tuple[FloatArray, float, list[FloatArray]], Any]:
    problem = piece.problem
    return (problem.gold_sum(), problem.constant, [problem.scale]), memory


def _normal(piece: Piece, memory: Any, weights: FloatArray) -> tuple[tuple[FloatArray], Any]:
    return (piece.problem.normal(weights),), memory


def _fingerprint(piece: Piece, memory: Any) -> tuple[dict[str, str], Any]:
    return piece.problem.fingerprint(), memory


def _evaluate(piece: Piece, memory: Any, weights: FloatArray) -> tuple[Hinge, Any]:
    return piece.problem.evaluate(weights), memory
