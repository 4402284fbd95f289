"""What a solver may know of a problem outside of the work that it sends to the data.

:class:`maxmargin.problem.Problem` holds its data; a :class:`maxmargin.execution.ShardedProblem` knows where they are.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np

from maxmargin.problem.good import GoodOutputs
from maxmargin.problem.hinges import Hinge
from maxmargin.regions import Region
from maxmargin.structures.base import FloatArray, IntArray, Structure

NonZeros: TypeAlias = "tuple[IntArray | slice, FloatArray]"
"""The places of numbers in a vector whose others are zero, and the numbers."""


class BaseProblem(Protocol):
    """A training problem as the driver of a run sees it: sizes, settings, and sums over all examples."""

    @property
    def n_weights(self) -> int:
        """Length of the weight vector."""

    @property
    def n_examples(self) -> int:
        """How many examples there are."""

    @property
    def n_parts(self) -> int:
        """How many parts they have."""

    @property
    def kind(self) -> Structure:
        """The structure, or that of no examples: for its name and capabilities."""

    @property
    def region(self) -> Region:
        """Set and penalty of the weights."""

    @property
    def rescaling(self) -> str:
        """How the loss scales the margin."""

    @property
    def slack(self) -> str:
        """How a violation counts."""

    @property
    def good(self) -> GoodOutputs | None:
        """None if every example has one gold output; else the good ones of all examples or of none."""

    @property
    def bilinear(self) -> bool:
        """Whether hinges are maxima of ``w'g(z) + loss(z)`` over the polytopes."""

    @property
    def relaxed(self) -> bool:
        """Whether hinges are those of a relaxation."""

    @property
    def constant(self) -> float:
        """``sum_i s_i d_i``."""

    @property
    def gold_nonzeros(self) -> NonZeros:
        """Where :attr:`gold_features` are not zero, and what they are there."""

    @property
    def gold_features(self) -> FloatArray:
        """``sum_i s_i F_i y_i``, shape ``(n_weights,)``."""

    @property
    def scale(self) -> FloatArray:
        """``s_i``, shape ``(n_examples,)``."""

    @property
    def norm(self) -> float:
        """``||[s_1 F_1 ... s_m F_m]||_2``."""

    def fingerprint(self) -> dict[str, str]:
        """Hashes of the numbers that the problem is made of, by their names."""

    def evaluate(self, weights: FloatArray) -> Hinge:
        """``H(w)`` and its rounding error: one argmax pass."""

    def with_rescaling(self, rescaling: str) -> BaseProblem:
        """The same problem with another hinge."""


def nonzeros(vector: FloatArray) -> NonZeros:
    """The numbers of a vector that are not zero; all of them where that takes less memory."""
    at = np.flatnonzero(vector)
    return (at, vector[at]) if 2 * len(at) < len(vector) else (slice(None), vector)


def with_zeros(given: NonZeros, n: int) -> FloatArray:
    """The vector of length ``n``: the one that :func:`nonzeros` was given if it kept all numbers."""
    at, values = given
    if isinstance(at, slice):
        return values
    found = np.zeros(n)
    found[at] = values
    return found
