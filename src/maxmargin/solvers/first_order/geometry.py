"""Geometries, a setting of the extragradient methods: which players a problem has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _checks
from maxmargin._vectors import squared
from maxmargin.execution import Piece
from maxmargin.optimization.run import Run
from maxmargin.problem import BaseProblem
from maxmargin.solvers.first_order.players import (
    EuclideanStructures,
    EuclideanWeights,
    GibbsStructures,
    SplitSimplex,
    StructuresPlayer,
    WeightsPlayer,
)
from maxmargin.structures.base import FloatArray


class Geometry(ABC):
    """A setting of the extragradient methods: the geometry of each player."""

    def unsupported(self, problem: BaseProblem) -> str | None:
        """The reason why this geometry does not fit the problem, or None."""
        return None

    @abstractmethod
    def players(self, problem: BaseProblem) -> tuple[WeightsPlayer, StructuresPlayer]:
        """The weights player and the structures player."""

    def lipschitz(self, run: Run) -> float:
        """The norm of ``F`` between the two players' norms, or a bound of it.

        Euclidean on both sides: ``||F||_2``. With entropy on one side or both, whose norms are sums over outputs or
        entries of the simplex, a bound by the norms of single parts' features (mathematics of the 2005 report, section
        4.2, with the range of an example's features over its outputs in place of the largest entry):

        * distributions over outputs: ``sqrt(sum_i M_i^2)`` with ``M_i = max_y sum_{p in y} ||f_p||``, one argmax, where
          ``||.||`` is the Euclidean norm, or in an L1 ball of radius R, R times the largest entry;
        * an L1 ball and Euclidean projections: ``R max_k ||F'e_k||_2``.
        """
        problem = run.problem
        weights, structures = self.players(problem)
        if structures.euclidean and weights.euclidean:
            return problem.norm
        radius = 1.0 if weights.euclidean else problem.region.l1_ball or 1.0
        if structures.euclidean:
            (squares,) = run.sums(_weight_squares)
            return radius * float(np.sqrt(np.max(squares, initial=0.0)))
        order = 2 if weights.euclidean else np.inf
        run.counters.argmax += 1
        return radius * float(np.sqrt(run.sums(_output_squares, order)[0]))


def _weight_squares(piece: Piece, memory: Any) -> tuple[tuple[FloatArray], Any]:
    """``||F'e_k||^2`` of every weight."""
    return (np.square(piece.problem.weight_norms()),), memory


def _output_squares(piece: Piece, memory: Any, order: float) -> tuple[tuple[float], Any]:
    """``sum_i M_i^2``."""
    problem = piece.problem
    return (squared(problem.structure.argmax(problem.part_norms(order)).value),), memory


@dataclass(frozen=True, kw_only=True)
class Euclidean(Geometry):
    """Euclidean distances for both players: works with every structure and region."""

    def players(self, problem: BaseProblem) -> tuple[WeightsPlayer, StructuresPlayer]:
        """Projected steps."""
        return EuclideanWeights(problem.region), EuclideanStructures()


@dataclass(frozen=True, kw_only=True)
class Entropic(Geometry):
    """Relative entropy: sum-product instead of projections, multiplicative weights in an L1 ball.

    Attributes:
        structures: whether the structures player is entropic; False keeps Euclidean projections for it, as
            structures without sum-product need (then the region must be an L1 ball).
        gold_potential: the potential of gold states in the starting distribution; 0 starts from the uniform one.
    """

    structures: bool = True
    gold_potential: float = 0.0

    def __post_init__(self) -> None:
        _checks.flag("structures", self.structures)
        _checks.number("gold_potential", self.gold_potential, least=0)

    def unsupported(self, problem: BaseProblem) -> str | None:
        """Needs a sum-product kernel, or an L1 ball."""
        if self.structures and problem.kind.marginals_unsupported:
            remedy = ", or Entropic(structures=False)" if problem.region.l1_ball is not None else ""
            reason = problem.kind.marginals_unsupported
            return f"{problem.kind.called} has no entropic geometry: {reason}{remedy}"
        if not self.structures and problem.region.l1_ball is None:
            return "with structures=False only the weights in an L1 ball are entropic; use geometry=Euclidean()"
        return None

    def players(self, problem: BaseProblem) -> tuple[WeightsPlayer, StructuresPlayer]:
        """Multiplicative steps in an L1 ball, projected ones elsewhere; and sum-product."""
        region = problem.region
        return (
            EuclideanWeights(region) if region.l1_ball is None else SplitSimplex(region),
            GibbsStructures(float(self.gold_potential)) if self.structures else EuclideanStructures(),
        )
