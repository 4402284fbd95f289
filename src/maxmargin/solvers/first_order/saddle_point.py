"""What the saddle-point methods share: settings, the balance of the players' steps, and averages.

In coordinates ``(w / sqrt(b), sqrt(b) z)`` a common step ``eta`` means steps ``eta b`` for the weights and ``eta / b``
for the structures. The right ``b`` is the ratio of the distances the two players have to travel: the bound
``(b^-1 D_w + b D_z) L / t`` is least at ``b = sqrt(D_w / D_z)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.execution import Piece
from maxmargin.optimization.certificate import Proposal, certify
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Solver, Start
from maxmargin.problem import BaseProblem, MostViolated
from maxmargin.solvers.first_order.geometry import Entropic, Euclidean, Geometry
from maxmargin.solvers.first_order.players import GibbsStructures, StructuresPlayer, WeightsPlayer, WeightsPoint
from maxmargin.structures.base import FloatArray


@dataclass(frozen=True, kw_only=True)
class SaddlePointSolver(Solver):
    """Settings that the saddle-point methods share; both players are Euclidean unless a subclass says otherwise.

    Attributes:
        balance: ratio of the two players' steps; "auto" starts from their radii and adapts to the distances traveled.
        inexact: projections of iteration ``t`` are exact to ``inexact / (t + 1)^1.5``, a summable error; 0 means 1e-8.
        max_iter: iteration limit when the caller gives none.
    """

    balance: float | Literal["auto"] = "auto"
    inexact: float = 1e-2
    max_iter: int = 5000
    takes_rescaling = ("margin",)
    takes_good = False
    takes_slack = ("linear",)
    published: ClassVar[dict[str, Any]] = {}
    """The settings that switch off what the published method does not have."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.number("inexact", self.inexact, least=0)
        if not _checks.is_one_of(self.balance, "auto"):
            _checks.positive("balance", self.balance)

    @classmethod
    def plain(cls, **settings: Any) -> Self:
        """The method as it was published: Euclidean, one step size for both players, exact projections."""
        paper: dict[str, Any] = {"balance": 1.0, "inexact": 0.0}
        return cls(**(paper | cls.published | settings))

    @property
    def shards_unsupported(self) -> str:
        """The structures player is where the data is."""
        return ""

    @property
    def checkpoint_unsupported(self) -> str:
        """Empty: all of it can be saved."""
        return ""

    def geometry_for(self, problem: BaseProblem) -> Geometry:
        """The geometry of the two players."""
        return Euclidean()

    def players(self, problem: BaseProblem) -> tuple[WeightsPlayer, StructuresPlayer]:
        """The two players of a problem."""
        return self.geometry_for(problem).players(problem)

    def unsupported(self, problem: BaseProblem) -> str | None:
        """The geometry must fit as well."""
        return super().unsupported(problem) or self.geometry_for(problem).unsupported(problem)

    def start_balance(self, run: Run, w: WeightsPoint, *, stored: bool = True) -> float:
        """The first ratio of step sizes: ``sqrt(D_w / D_z)`` from the radii of the two sets; 1 where one is unknown.

        ``w`` and the points ``now`` of the pieces (if ``stored``, else their centers) are where the players start.
        Where both have come far from zero weights and the center already, as in a warm start, the ratio of those
        distances is the better guess.
        """
        if self.balance != "auto":
            return float(self.balance)
        weights, structures = self.players(run.problem)
        zero = np.zeros(run.problem.n_weights)
        if stored and w.weights.any():
            if not structures.euclidean:
                run.counters.projections += run.problem.n_examples
            far = weights.divergence(weights.at(zero), w), run.sums(_traveled, structures)[0]
            if min(far) > 1e-12:
                return float(np.sqrt(far[0] / far[1]))
        if not stored and not structures.euclidean:  # distributions of the centers
            run.counters.projections += run.problem.n_examples
        return ratio_of(*self.reaches(run))

    def reaches(self, run: Run) -> tuple[float, float]:
        """How far each player may have to go from zero weights and the points ``now`` of the pieces, or their centers.

        One argmax pass; infinity where unknown.
        """
        weights, structures = self.players(run.problem)
        features, divergence = run.violated_sums(_reach, np.zeros(run.problem.n_weights), structures)
        reach = weights.reach(run.found.value, features - run.problem.gold_features)
        return reach, float(np.sqrt(2.0 * divergence))

    def projection_tolerance(self, iteration: int) -> float:
        """``inexact / (t + 1)^1.5``, so that the errors have a finite sum; never below 1e-8, the exact setting."""
        return max(1e-8, self.inexact / float((iteration + 1) ** 1.5))


@dataclass(frozen=True, kw_only=True)
class BregmanSolver(SaddlePointSolver):
    """Settings of the saddle-point methods whose players may move in a geometry of choice.

    Attributes:
        geometry: how distances are measured, :class:`Euclidean` or :class:`Entropic`; "auto" takes entropy
            where the structure has a sum-product kernel and for weights in an L1 ball, Euclidean distances otherwise.
        balance, inexact, max_iter: see :class:`SaddlePointSolver`.
    """

    geometry: Geometry | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.geometry, Geometry) and not _checks.is_one_of(self.geometry, "auto"):
            raise ValueError(f'geometry must be "auto", Euclidean() or Entropic(), got {shown(self.geometry)}')

    def geometry_for(self, problem: BaseProblem) -> Geometry:
        """The geometry that "auto" stands for: entropic for the structures with a sum-product kernel and for L1 balls.

        Sum-product costs one pass over a chain where a projection costs one for every vertex it needs, and runs need no
        more iterations (benchmarks/solvers/extragradient.py).
        """
        if self.geometry != "auto":
            return self.geometry
        if not problem.kind.marginals_unsupported:
            return Entropic()
        return Euclidean() if problem.region.l1_ball is None else Entropic(structures=False)

    def stalled_remedy(self, problem: BaseProblem) -> str:
        """Entropic geometry is slow at small gaps."""
        other = "" if isinstance(self.geometry_for(problem), Euclidean) else "geometry=Euclidean(), "
        return f"raise tol, scale the features, or try {other}another solver"


def begin(run: Run, structures: StructuresPlayer, start: Start, *, store: bool = True) -> tuple[FloatArray, float]:
    """Put the structures player at the given start, by default the center.

    If ``store``, its point stays with each piece as ``{"now": point}``. Potentials are softened unless they are as good
    as a solution. Returns ``sum_i s_i F_i z_i`` and the loss.
    """
    problem = run.problem
    given = start.packed("z" if structures.euclidean else "potentials") if store else None
    own = None if given is None else run.scatter(given)
    run.remember([None] * run.session.n_pieces if own is None else own)
    if own is not None or not structures.euclidean:
        run.counters.projections += problem.n_examples
    features, loss = run.sums(_begin, structures, store)
    if own is not None and isinstance(structures, GibbsStructures):
        weights = start.weights_for(problem)
        proposal = Proposal(weights, features - problem.gold_features, loss)
        if certify(problem, proposal, run.hinge(weights)).relative_gap > structures.SOLVED * run.tol:
            run.counters.projections += problem.n_examples
            features, loss = run.sums(_soften, structures)
    return features, loss


def _begin(
    piece: Piece, memory: Any, structures: StructuresPlayer, store: bool
) -> tuple[tuple[FloatArray, float], Any]:
    """The point of the coordinates that the memory holds, or the center."""
    problem = piece.problem
    point = structures.start(problem, memory)
    return (problem.feature_sum(point.z), problem.loss(point.z)), {"now": point} if store else None


def _soften(piece: Piece, memory: Any, structures: GibbsStructures) -> tuple[tuple[FloatArray, float], Any]:
    """A point between the given one and the center."""
    problem = piece.problem
    point = structures.softened(problem, memory["now"].coordinates, structures.START)
    return (problem.feature_sum(point.z), problem.loss(point.z)), {"now": point}


def _traveled(piece: Piece, memory: Any, structures: StructuresPlayer) -> tuple[tuple[float], Any]:
    """The divergence of the point where a run starts from the center."""
    return (structures.divergence(structures.start(piece.problem), memory["now"]),), memory


def _reach(piece: Piece, memory: Any, violated: MostViolated, structures: StructuresPlayer) -> tuple[FloatArray, float]:
    """The features of the most violated outputs, and their divergence from where a run starts."""
    problem, origin = piece.problem, None if memory is None else memory["now"]
    return problem.feature_sum(violated.z), structures.divergence_to(problem, origin, violated.z)


def ratio_of(reach_w: float, reach_z: float) -> float:
    """The ratio of two distances as a balance; 1 where one is unknown or zero."""
    if not np.isfinite(reach_w) or reach_w == 0.0 or reach_z == 0.0:
        return 1.0
    return min(max(reach_w / reach_z, 1e-6), 1e6)  # beyond, C or the radius is as good as absent


def adapted_balance(balance: float, divergence_w: float, divergence_z: float) -> float:
    """The balance moved halfway (in logarithms) to the ratio of the distances that the two players have traveled.

    A divergence ``d`` counts as the distance ``sqrt(2 d)``.
    """
    if divergence_w <= 1e-24 or divergence_z <= 1e-24:
        return balance
    return float(np.sqrt(balance) * (divergence_w / divergence_z) ** 0.25)


def at(found: dict[int, Any], number: int) -> Any:
    """What a step of this number has found; where that was replaced before it could be taken, the last one."""
    return found[number if number in found else max(found)]


def mixed(old: FloatArray | None, new: FloatArray, share: float) -> FloatArray:
    """``(1 - share) old + share new``; None is zero."""
    if old is None:
        return new if share == 1.0 else share * new
    return old + share * (new - old)


@dataclass(frozen=True, eq=False)
class Average:
    """Weighted averages since the last restart: ``w``, ``g(z)`` and the loss.

    ``g`` and the loss are affine in z, so their averages are those of the average z, which is feasible and, where it
    is kept, with the data.
    """

    total: float
    weights: FloatArray
    g: FloatArray
    loss: float

    @classmethod
    def empty(cls, zero: FloatArray) -> Average:
        """Before the first point; ``zero``: the zero vector of the weights' space."""
        return cls(0.0, zero, zero, 0.0)

    def share(self, amount: float) -> float:
        """The share of one more point of weight ``amount``."""
        total = self.total + amount
        return amount / total if total > 0.0 else 0.0  # steps may have become too small for numbers

    def add(self, amount: float, weights: FloatArray, g: FloatArray, loss: float) -> Average:
        """The average with one more point of weight ``amount``."""
        share = self.share(amount)
        return Average(
            self.total + amount,
            mixed(self.weights, weights, share),
            mixed(self.g, g, share),
            self.loss + share * (loss - self.loss),
        )

    def proposal(self) -> Proposal:
        """The average as a candidate for certification."""
        return Proposal(self.weights, self.g, self.loss)
