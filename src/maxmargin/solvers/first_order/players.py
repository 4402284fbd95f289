"""The two players of the saddle point: how each measures distance, and so where a step of given gradient takes it.

A step ``s`` of the structures player from the point ``a`` ends at ``argmax_z s'z - d(a, z)``, one of the weights player
at ``argmin_w s'w + d(a, w)`` (the 2005 report, section 5). In *Euclidean* geometry ``d`` is half the squared distance
and a step ends at a projection. In *entropic* geometry

* the structures player chooses a distribution over outputs, ``d(p, q) = sum_i KL(q_i || p_i)``: from the Gibbs
  distribution of potentials ``theta`` the step ``s`` ends at that of ``theta + s``, one sum-product pass, and the
  packed point is its vector of marginals;
* in an L1 ball of radius ``R`` the weights are ``w = R (v+ - v-)`` with ``(v_0, v+, v-)`` in a simplex (no ``v-`` for
  signed coordinates), ``d`` is the relative entropy there, and a step multiplies: ``v ~ v exp(-R s (0, g, -g))``.
  In an L2 region the weights stay Euclidean.

A point has *coordinates* to which a step is simply added: itself in Euclidean geometry, potentials or logarithms in
entropic geometry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._vectors import dot, norm, squared
from maxmargin.optimization.run import marginals, projected
from maxmargin.problem import Problem
from maxmargin.regions import Region
from maxmargin.structures.base import FloatArray, PointStatus


@dataclass(frozen=True, eq=False)
class WeightsPoint:
    """Where the weights player stands.

    Attributes:
        weights: shape ``(n_weights,)``.
        coordinates: the vector that steps are added to: the weights, or logarithms of a point of the split simplex.
    """

    weights: FloatArray
    coordinates: FloatArray


@dataclass(frozen=True, eq=False)
class StructuresPoint:
    """Where the structures player stands.

    Attributes:
        z: packed feasible point, shape ``(n_parts,)``.
        coordinates: the vector that steps are added to: z, or potentials.
        log_partition: summed over examples; 0 in Euclidean geometry.
        warm: where the next projection may start from.
    """

    z: FloatArray
    coordinates: FloatArray
    log_partition: float = 0.0
    warm: Any = None

    @property
    def potentials(self) -> FloatArray | None:
        """Those of a distribution, None in Euclidean geometry."""
        return None if self.coordinates is self.z else self.coordinates


class WeightsPlayer(ABC):
    """The weights player of one region in one geometry."""

    euclidean = True

    def __init__(self, region: Region) -> None:
        self.region = region

    @abstractmethod
    def at(self, weights: FloatArray) -> WeightsPoint:
        """The point of the given weights of the region, or one near it where steps must start inside."""

    @abstractmethod
    def move(self, origin: WeightsPoint, gradient: FloatArray, step: float, *, penalized: bool = False) -> WeightsPoint:
        """``argmin_{w in W} step gradient'w + d(origin, w)``, plus ``step penalty(w)`` if ``penalized``."""

    @abstractmethod
    def divergence(self, origin: WeightsPoint, point: WeightsPoint) -> float:
        """``d(origin, point)``."""

    @abstractmethod
    def reach(self, hinge: float, g: FloatArray) -> float:
        """How far a solution may be from the center, as a length ``sqrt(2 d)``; infinity where unknown.

        ``hinge = H(0)`` and ``g = g(z)`` of the outputs that attain it.
        """


class EuclideanWeights(WeightsPlayer):
    """Projected steps, in any region."""

    def at(self, weights: FloatArray) -> WeightsPoint:
        """Themselves."""
        return WeightsPoint(weights, weights)

    def move(self, origin: WeightsPoint, gradient: FloatArray, step: float, *, penalized: bool = False) -> WeightsPoint:
        """A projection or, with the penalty, a proximal step."""
        moved = origin.weights - step * gradient
        return self.at(self.region.prox(moved, step) if penalized else self.region.project(moved))

    def divergence(self, origin: WeightsPoint, point: WeightsPoint) -> float:
        """``1/2 ||w - origin||^2``."""
        return 0.5 * squared(point.weights - origin.weights)

    def reach(self, hinge: float, g: FloatArray) -> float:
        """The region's bound, or the length of the best response to the first outputs if that is shorter."""
        bound = self.region.norm_bound(hinge)
        response = self.region.best_response(g)
        return bound if response is None else min(bound, norm(response))


class SplitSimplex(WeightsPlayer):
    """Multiplicative steps in an L1 ball, ``w = R (v+ - v-)``; coordinates are ``log (v_0, v+, v-)``."""

    euclidean = False
    SMOOTHING = 1e-3
    """How far given weights are moved toward the center, where every entry of v is positive."""

    def __init__(self, region: Region) -> None:
        super().__init__(region)
        assert region.l1_ball is not None
        self.radius = region.l1_ball

    def _entries(self, n_weights: int) -> int:
        signed = 0 if self.region.nonnegative is None else int(self.region.nonnegative.sum())
        return 1 + 2 * n_weights - signed

    def _point(self, coordinates: FloatArray) -> WeightsPoint:
        from scipy.special import logsumexp

        logs = coordinates - logsumexp(coordinates)
        v = np.exp(logs)
        n = (len(v) - 1) // 2
        return WeightsPoint(self.radius * (v[1 : n + 1] - v[n + 1 :]), logs)

    def at(self, weights: FloatArray) -> WeightsPoint:
        """The shortest split of the weights, moved a little toward the center; zero weights are the center."""
        n = len(weights)
        share = np.full(1 + 2 * n, 1.0 / self._entries(n))
        if self.region.nonnegative is not None:
            share[n + 1 :][self.region.nonnegative] = 0.0
        if weights.any():
            split = np.concatenate([[0.0], np.maximum(weights, 0.0), np.maximum(-weights, 0.0)]) / self.radius
            split[0] = max(0.0, 1.0 - split.sum())
            share = (1.0 - self.SMOOTHING) * split / split.sum() + self.SMOOTHING * share
        with np.errstate(divide="ignore"):
            return self._point(np.log(share))

    def move(self, origin: WeightsPoint, gradient: FloatArray, step: float, *, penalized: bool = False) -> WeightsPoint:
        """``log v <- log v - step R (0, g, -g)``, normalized."""
        ascent = step * self.radius * gradient
        return self._point(origin.coordinates - np.concatenate([[0.0], ascent, -ascent]))

    def divergence(self, origin: WeightsPoint, point: WeightsPoint) -> float:
        """``KL(v || origin)``."""
        v = np.exp(point.coordinates)
        held = v > 0.0
        return max(0.0, dot(v[held], point.coordinates[held] - origin.coordinates[held]))

    def reach(self, hinge: float, g: FloatArray) -> float:
        """``D_w = log(number of entries)``, from the center to a corner."""
        return float(np.sqrt(2.0 * np.log(self._entries(len(g)))))


class StructuresPlayer(ABC):
    """The structures player in one geometry."""

    euclidean = True

    @abstractmethod
    def center(self, problem: Problem) -> FloatArray:
        """Coordinates of the point where a run starts if nothing better is known, shape ``(n_parts,)``."""

    def from_center(self, problem: Problem, step: FloatArray) -> FloatArray:
        """Coordinates of a step from the center; ``step`` may be overwritten."""
        step += self.center(problem)
        return step

    @abstractmethod
    def start(self, problem: Problem, given: FloatArray | None = None) -> StructuresPoint:
        """The point of given coordinates, or one near it; the center without any, or where they do not fit."""

    @abstractmethod
    def at(self, problem: Problem, coordinates: FloatArray, *, tol: float, warm: Any) -> StructuresPoint:
        """The point where a step ends: ``coordinates`` are those of its origin plus the step.

        ``problem`` is a piece of the run's; ``tol`` is the accuracy of a Euclidean projection.
        """

    @abstractmethod
    def divergence(self, origin: StructuresPoint, point: StructuresPoint) -> float:
        """``d(origin, point)``."""

    def inward(self, problem: Problem, point: StructuresPoint) -> StructuresPoint:
        """The point to restart from: the same one, unless it is so near a vertex that steps would be short."""
        return point

    def rounding(self, log_partition: float) -> float:
        """The size of rounding errors in divergences between points of that log-partition."""
        return 0.0

    @abstractmethod
    def divergence_to(self, problem: Problem, origin: StructuresPoint | None, outputs: FloatArray) -> float:
        """``d`` from ``origin`` (None: the problem's center) to packed vertices."""


class EuclideanStructures(StructuresPlayer):
    """Euclidean projections, on every structure."""

    def center(self, problem: Problem) -> FloatArray:
        """The gold outputs."""
        return problem.gold

    def start(self, problem: Problem, given: FloatArray | None = None) -> StructuresPoint:
        """The projection of the given z, which may come from other data, or the gold outputs."""
        points = None if given is None else problem.structure.project(given)
        z = points.z if points is not None and (points.status == PointStatus.OK).all() else problem.gold
        return StructuresPoint(z, z)

    def at(self, problem: Problem, coordinates: FloatArray, *, tol: float, warm: Any) -> StructuresPoint:
        """The projection."""
        points = projected(problem, coordinates, tol=tol, warm=warm)
        return StructuresPoint(points.z, points.z, warm=points.warm)

    def divergence(self, origin: StructuresPoint, point: StructuresPoint) -> float:
        """``1/2 ||z - origin||^2``."""
        return 0.5 * squared(point.z - origin.z)

    def divergence_to(self, problem: Problem, origin: StructuresPoint | None, outputs: FloatArray) -> float:
        """``1/2 ||outputs - origin||^2``."""
        return 0.5 * squared(outputs - (problem.gold if origin is None else origin.z))


class GibbsStructures(StructuresPlayer):
    """Distributions over outputs, on structures with a sum-product kernel; coordinates are potentials."""

    euclidean = False
    SOLVED = 2.0
    """A start whose relative gap is at most this many times the one aimed at is as good as a solution."""

    START, RESTART = 0.1, 0.7
    """How much of given potentials a run starts from, and how much of its own it restarts from. Near a solution
    distributions are nearly vertices, from which entropic steps lead away slowly: along a path of radii whole
    potentials took ten times the iterations of cold starts, a tenth of them half, and restarts from whole potentials
    stalled on separable data."""

    def __init__(self, gold_potential: float) -> None:
        self.gold_potential = gold_potential

    def center(self, problem: Problem) -> FloatArray:
        """The uniform distribution, or one that leans to the gold output."""
        if self.gold_potential == 0.0:
            return np.zeros(problem.structure.n_parts)
        leaning = np.zeros(problem.structure.n_parts)
        variables = problem.structure.variable_parts
        leaning[variables] = self.gold_potential * problem.gold[variables]
        return leaning

    def from_center(self, problem: Problem, step: FloatArray) -> FloatArray:
        """The potentials of the uniform distribution are zero."""
        return step if self.gold_potential == 0.0 else super().from_center(problem, step)

    def start(self, problem: Problem, given: FloatArray | None = None) -> StructuresPoint:
        """The distributions of the given potentials, or of the center."""
        fits = given is not None and np.isfinite(given).all()
        return self.at(problem, given if fits and given is not None else self.center(problem), tol=0.0, warm=None)

    def at(self, problem: Problem, coordinates: FloatArray, *, tol: float, warm: Any) -> StructuresPoint:
        """One sum-product pass."""
        points = marginals(problem, coordinates)
        return StructuresPoint(points.z, coordinates, float(points.value.sum()))

    def divergence(self, origin: StructuresPoint, point: StructuresPoint) -> float:
        """``KL(point || origin) = (theta - theta_origin)'z - A(theta) + A(theta_origin)``."""
        linear = dot(point.coordinates - origin.coordinates, point.z)
        return max(0.0, linear - point.log_partition + origin.log_partition)

    def inward(self, problem: Problem, point: StructuresPoint) -> StructuresPoint:
        """Softened potentials."""
        return self.softened(problem, point.coordinates, self.RESTART)

    def softened(self, problem: Problem, potentials: FloatArray, share: float) -> StructuresPoint:
        """The distributions of a share of the potentials, between the center and theirs."""
        center = self.center(problem)
        return self.at(problem, center + share * (potentials - center), tol=0.0, warm=None)

    def rounding(self, log_partition: float) -> float:
        """Divergences are differences of numbers as large as the log-partition."""
        return 1e-14 * (1.0 + abs(log_partition))

    def divergence_to(self, problem: Problem, origin: StructuresPoint | None, outputs: FloatArray) -> float:
        """``-log p(outputs)``: from the uniform distribution, ``sum_i log(number of outputs)`` whatever they are."""
        start = origin or self.at(problem, self.center(problem), tol=0.0, warm=None)
        return max(0.0, start.log_partition - dot(start.coordinates, outputs))
