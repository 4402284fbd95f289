"""The structures player's half of the dual extragradient method: work on pieces, what it keeps there, and its form in
checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from maxmargin.execution import Piece
from maxmargin.optimization.checkpoints.saved import StateDict, count, vector
from maxmargin.optimization.run import kept
from maxmargin.problem import Problem
from maxmargin.solvers.first_order.players import StructuresPlayer, StructuresPoint
from maxmargin.solvers.first_order.saddle_point import at, mixed
from maxmargin.solvers.first_order.saved_points import (
    check_feasible,
    load_structures,
    load_warm,
    projections,
    savable,
    warm_dict,
)
from maxmargin.solvers.first_order.weight_vectors import WeightForm
from maxmargin.structures.base import FloatArray


@dataclass(frozen=True, eq=False)
class Steps:
    """What both steps of one iteration need at every piece.

    Attributes:
        structures: the structures player; ``form``: that of the weight vectors.
        weights: ``v_w``; ``average``: the average of ``u_w``, and ``total`` the sum of its steps over the balance.
        step: the structures player's step size.
        tol: the accuracy of projections.
        warm_starts: whether the next pass starts from this one's projections.
        measures: whether the divergence of ``u_z`` from the center is asked for.
    """

    structures: StructuresPlayer
    form: WeightForm
    weights: FloatArray
    average: FloatArray
    total: float
    step: float
    tol: float
    warm_starts: bool | Literal["auto"]
    measures: bool

    def taken(
        self, problem: Problem, target: FloatArray, gradient: FloatArray, warm: tuple[Any, Any]
    ) -> tuple[StructuresPoint, list[Any], tuple[Any, Any]]:
        """``u_z``, the sums of a pass but the last, and where the next projections start from; overwrites gradient."""
        structures = self.structures
        v_z = structures.at(problem, target, tol=self.tol, warm=warm[0])
        gradient *= self.step
        gradient += v_z.coordinates
        u_z = structures.at(problem, gradient, tol=self.tol, warm=warm[1])
        sums = [*self.form.features(problem, v_z.z, u_z.z), problem.loss(u_z.z), v_z.log_partition, u_z.log_partition]
        warm_v, warm_u = kept(self.warm_starts, problem, v_z.warm, u_z.warm)
        return u_z, sums, (warm_v, warm_u)


@dataclass(frozen=True, eq=False)
class Stored:
    """What a pass over stored vectors needs besides.

    Attributes:
        now: the number of the vectors to start from; ``kept``: those that stay; ``new``: that of the new ones.
        last: ``u_w`` of the step that made them, and its step size.
        balance: ratio of the players' steps.
        share: the share of ``u_z`` in the average.
        averages: whether a restart is from the average, not from ``u_z``, which is then not kept.
    """

    now: int
    kept: tuple[int, ...]
    new: int
    last: tuple[FloatArray, float] | None
    balance: float
    share: float
    averages: bool


class Vectors(NamedTuple):
    """The stored vectors of one step.

    Attributes:
        center: where the epoch began.
        total: ``s_z``, without the last step's until the next pass, which is made at its weights; None for zero.
        whole: whether ``total`` has the last step's.
        average: the average of ``u_z``; None before the first.
        point: the coordinates of the last ``u_z``; None before the first, or where they are not needed.
    """

    center: StructuresPoint
    total: FloatArray | None = None
    whole: bool = True
    average: FloatArray | None = None
    point: FloatArray | None = None


_COLD = (None, None)


def first(piece: Piece, memory: Any) -> tuple[tuple[()], Any]:
    """The vectors before the first step: the center alone."""
    return (), {"steps": {0: Vectors(memory["now"])}, "warm": _COLD}


def center_features(piece: Piece, memory: Any, form: WeightForm) -> tuple[tuple[FloatArray, ...], Any]:
    """The features of the center."""
    center = memory["now"]
    return form.features(piece.problem, center.z), memory


def light_pass(piece: Piece, memory: Any, steps: Steps) -> tuple[tuple[Any, ...], Any]:
    """The memory-efficient form: nothing is kept but warm starts."""
    problem, structures = piece.problem, steps.structures
    # s_z = (sum of steps) (F' wbar + c); before the first step it is zero whatever wbar is.
    gradient, total = steps.form.augmented(problem, steps.weights, steps.average)
    total *= steps.total
    u_z, sums, warm = steps.taken(problem, structures.from_center(problem, total), gradient, memory or _COLD)
    traveled = 0.0
    if steps.measures:
        begin = structures.at(problem, structures.center(problem), tol=steps.tol, warm=None)
        traveled = structures.divergence(begin, u_z)
    return (*sums, traveled), None if warm[0] is None and warm[1] is None else warm


def stored_pass(piece: Piece, memory: Any, steps: Steps, stored: Stored) -> tuple[tuple[Any, ...], Any]:
    """The stored form: ``s_z`` first takes in the last step, at weights that were not known in its pass."""
    problem, vectors = piece.problem, memory["steps"][stored.now]
    if vectors.whole or stored.last is None:
        (gradient,) = steps.form.augmented(problem, steps.weights)
    else:
        weights, eta = stored.last
        gradient, total = steps.form.augmented(problem, steps.weights, weights)
        total *= eta
        if vectors.total is not None:
            total += vectors.total
        vectors = vectors._replace(total=total, whole=True)
    target = vectors.center.coordinates
    if vectors.total is not None:
        target = target + vectors.total / stored.balance
    u_z, sums, warm = steps.taken(problem, target, gradient, memory["warm"])
    average = mixed(vectors.average, u_z.z, stored.share)
    new = vectors._replace(whole=False, average=average, point=None if stored.averages else u_z.coordinates)
    left = {number: one for number, one in {**memory["steps"], stored.now: vectors}.items() if number in stored.kept}
    return (*sums, 0.0), {"steps": {**left, stored.new: new}, "warm": warm}


def restarted(
    piece: Piece, memory: Any, structures: StructuresPlayer, now: int, averages: bool, tol: float
) -> tuple[tuple[float], Any]:
    """A new center: the average, or a point near the last one; returns how far it is from the old one."""
    vectors = memory["steps"][now]
    if structures.euclidean:
        z = StructuresPoint(*[vectors.average if averages else vectors.point] * 2)
    else:
        z = structures.at(piece.problem, vectors.point, tol=tol, warm=None)
    center = structures.inward(piece.problem, z)
    far = structures.divergence(vectors.center, z)
    return (far,), {"steps": {now: Vectors(center)}, "warm": memory["warm"]}


def z_of(piece: Piece, memory: Any, now: int) -> tuple[FloatArray | None, Any]:
    """The average z, or the center."""
    vectors = at(memory["steps"], now)
    return vectors.center.z if vectors.average is None else vectors.average, memory


def potentials_of(piece: Piece, memory: Any, now: int) -> tuple[FloatArray | None, Any]:
    """The potentials of the last point, or of the center; None in Euclidean geometry."""
    vectors = at(memory["steps"], now)
    last = vectors.center.coordinates if vectors.point is None else vectors.point
    return None if vectors.center.potentials is None else last, memory


def settled(memory: Any) -> Any:
    """The memory with warm starts that can be saved; itself if it has no others."""
    warm = memory["warm"] if isinstance(memory, dict) else memory
    fresh = tuple(map(savable, warm))
    if all(one is other for one, other in zip(fresh, warm, strict=True)):
        return memory
    return {**memory, "warm": fresh} if isinstance(memory, dict) else fresh


def memory_dict(numbers: tuple[int, ...], memory: Any) -> StateDict:
    """What is kept with a piece for the states of some numbers, all of one epoch, as arrays and numbers."""
    warm_v, warm_u = memory["warm"] if isinstance(memory, dict) else memory
    found = warm_dict("warm_v", warm_v) | warm_dict("warm_u", warm_u)
    for i, number in enumerate(numbers if isinstance(memory, dict) else ()):
        vectors = memory["steps"][number]
        found |= {"center": vectors.center.coordinates, f"{i}.whole": int(vectors.whole)}
        named = {f"{i}.{name}": getattr(vectors, name) for name in ("total", "average", "point")}
        found |= {name: one for name, one in named.items() if one is not None}
    return found


def loaded(
    piece: Piece, memory: Any, structures: StructuresPlayer, form: WeightForm, numbers: tuple[int, ...], store: bool
) -> tuple[tuple[Any, ...], Any]:
    """What a file holds: the inverse of :func:`memory_dict`.

    If duals are stored, returns the features and the loss of the first state's average, or of its center, and how many
    averages and last points there are.
    """
    problem, saved = piece.problem, memory or {}
    like = projections(problem, structures)
    found = [None if like is None else load_warm(saved, name, problem, like.warm) for name in ("warm_v", "warm_u")]
    warm = found[0], found[1]
    if not store:
        return (), None if warm[0] is None and warm[1] is None else warm
    center = load_structures(saved, "center", problem, structures, None)
    steps = {number: _vectors(saved, i, center, problem, structures) for i, number in enumerate(numbers)}
    now = steps[numbers[0]]
    z = center.z if now.average is None else now.average
    counts = [sum(getattr(one, name) is not None for one in steps.values()) for name in ("average", "point")]
    return (*form.features(problem, z), problem.loss(z), *counts), {"steps": steps, "warm": warm}


def _vectors(
    saved: StateDict, number: int, center: StructuresPoint, problem: Problem, structures: StructuresPlayer
) -> Vectors:
    """The vectors of one step that a file holds."""
    names = [name for name in ("total", "average", "point") if f"{number}.{name}" in saved]
    found = {name: vector(saved, f"{number}.{name}", problem.n_parts) for name in names}
    for name in ("average", "point"):
        if structures.euclidean and name in found:
            check_feasible(problem, found[name], name)
    return Vectors(center, whole=bool(count(saved, f"{number}.whole", most=1)), **found)
