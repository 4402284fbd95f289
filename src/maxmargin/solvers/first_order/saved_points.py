"""Points and averages of the saddle-point methods in checkpoints.

A Euclidean point is its vector, and must be feasible; one of relative entropy is its potentials or logarithms, from
which the rest is worked out with the same bits. Warm starts of projections are arrays, or sets of vertices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.checkpoints.saved import StateDict, array, number, require, vector
from maxmargin.problem import Problem
from maxmargin.solvers.first_order.players import (
    StructuresPlayer,
    StructuresPoint,
    WeightsPlayer,
    WeightsPoint,
)
from maxmargin.solvers.first_order.saddle_point import Average
from maxmargin.structures.base import FloatArray, Points, PointStatus
from maxmargin.structures.fallbacks.generic import ActiveSets

_AGREEMENT = 1e-6
"""Share by which sums may differ from those that are computed again."""

_FEASIBLE = 1e-3
"""How far a point may be from its polytope, where projections are inexact."""


def weights_dict(name: str, point: WeightsPoint) -> StateDict:
    """The weights player's point."""
    return {f"{name}.weights": point.weights, f"{name}.coordinates": point.coordinates}


def load_weights(saved: StateDict, name: str, player: WeightsPlayer, shape: tuple[int, ...]) -> WeightsPoint:
    """The inverse of :func:`weights_dict`."""
    weights = array(saved, f"{name}.weights", np.float64, shape)
    expected = player.at(weights).coordinates.shape
    # Infinite where weights are zero in an entropic geometry.
    found = WeightsPoint(weights, array(saved, f"{name}.coordinates", np.float64, expected, infinite=True))
    return player.at(weights) if player.euclidean else found


def average_dict(average: Average) -> StateDict:
    """The averages and their total weight."""
    return {f"average.{name}": getattr(average, name) for name in ("total", "weights", "g", "loss")}


def load_average(saved: StateDict, shape: tuple[int, ...]) -> Average:
    """The inverse of :func:`average_dict`."""
    weights, g = (array(saved, f"average.{name}", np.float64, shape) for name in ("weights", "g"))
    return Average(number(saved, "average.total", least=0), weights, g, number(saved, "average.loss"))


def warm_dict(name: str, warm: Any) -> StateDict:
    """A warm start that can be saved; see :func:`savable`."""
    if isinstance(warm, ActiveSets):
        return {f"{name}.{i}": one for i, one in enumerate(warm.arrays)}
    return {} if warm is None else {name: warm}


def savable(warm: Any) -> Any:
    """A warm start, or None if no file can hold it: one of a structure of the user's own."""
    fits = isinstance(warm, ActiveSets) or (isinstance(warm, np.ndarray) and warm.dtype == np.float64)
    return warm if fits else None


def settled(point: StructuresPoint) -> StructuresPoint:
    """The point without a warm start that no file can hold; itself if it has none."""
    warm = savable(point.warm)
    return point if warm is point.warm else replace(point, warm=warm)


def structures_dict(name: str, point: StructuresPoint) -> StateDict:
    """The structures player's point, settled."""
    return {name: point.coordinates, **warm_dict(f"{name}.warm", point.warm)}


def load_warm(saved: StateDict, name: str, problem: Problem, like: Any) -> Any:
    """The inverse of :func:`warm_dict`; ``like`` is a warm start of the same problem."""
    if isinstance(like, ActiveSets) and f"{name}.0" in saved:
        arrays = tuple(
            array(saved, f"{name}.{i}", one.dtype, (len(one) if i == 0 else None,)) for i, one in enumerate(like.arrays)
        )
        starts, shares, *outputs = arrays
        require((shares >= 0.0).all(), f"{name} has negative weights of outputs")
        if not problem.relaxed:
            held = ActiveSet(starts, np.ones(len(shares)), *outputs)
            legal = held.feasible(problem.structure)
            require(legal is held, f"{name} has outputs that are not legal")
        return replace(like, arrays=arrays)
    if isinstance(like, np.ndarray) and name in saved:
        return array(saved, name, np.float64, like.shape)
    return None


def load_structures(
    saved: StateDict, name: str, problem: Problem, player: StructuresPlayer, like: Points | None
) -> StructuresPoint:
    """The inverse of :func:`structures_dict`; ``like``: some :func:`projections`, None for no warm start."""
    coordinates = vector(saved, name, problem.n_parts)
    if not player.euclidean:
        return player.at(problem, coordinates, tol=0.0, warm=None)
    check_feasible(problem, coordinates, name)
    warm = None if like is None else load_warm(saved, f"{name}.warm", problem, like.warm)
    return StructuresPoint(coordinates, coordinates, warm=warm)


def projections(problem: Problem, player: StructuresPlayer) -> Points | None:
    """Projections of the gold outputs, whose warm starts are those of the structure; None without projections."""
    return problem.structure.project(problem.gold) if player.euclidean else None


def check_feasible(problem: Problem, z: FloatArray, name: str) -> None:
    """ValueError unless a packed point is in the polytopes, up to the accuracy of projections."""
    points = problem.structure.project(z, tol=0.1 * _FEASIBLE)
    known = points.status == PointStatus.OK
    far = np.sqrt(problem.structure.by_example(np.square(points.z - z)))
    require((far[known] <= _FEASIBLE).all(), f"{name} is not a point of the structures")


def check_sums(g: FloatArray, loss: float, own_g: FloatArray, own_loss: float) -> None:
    """ValueError unless ``g`` and a loss are, up to rounding, those of the points with the data."""
    near = _AGREEMENT * (1.0 + np.abs(own_g).max(initial=0.0) + abs(own_loss))
    agrees = np.abs(g - own_g).max(initial=0.0) <= near and abs(loss - own_loss) <= near
    require(agrees, "its sums are not those of its points")
