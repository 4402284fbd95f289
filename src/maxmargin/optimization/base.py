"""What a solver is: a frozen record of settings with a few methods, and nothing else.

``solve`` (in :mod:`maxmargin.optimization.loop`) owns the loop, the clock, the certificate and the best weights so far; a
solver only says how to start, how to step and what to propose for certification.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.certificate import Certificate, Proposal
from maxmargin.problem import MostViolated, Problem
from maxmargin.regions import L1, L2
from maxmargin.structures.base import FloatArray, Points, PointStatus

Frozen = dict[str, Any]
"""Arrays (float64, float32, int64, int32 or uint8) and numbers by name: what a checkpoint stores of a solver's state
or of a callback's."""


@dataclass
class Counters:
    """How much work was done: iterations, argmax passes over all examples (parts of one counted as such), projections
    of single examples."""

    iterations: int = 0
    argmax: float = 0
    projections: int = 0


def saddle_point_only(problem: Problem) -> str | None:
    """Why a method for ``min_w max_z`` with a bilinear coupling cannot solve the problem, or None."""
    if problem.rescaling != "margin" or problem.slack != "linear":
        return (
            f'it needs the margin rescaled and linear slack, not rescaling="{problem.rescaling}" with '
            f'slack="{problem.slack}"; use {instead(problem)}'
        )
    return None


def needs_ridge(problem: Problem) -> str | None:
    """Why a method for the smooth dual of the penalty form cannot solve the problem, or None."""
    if isinstance(problem.region, L2) and np.isfinite(problem.region.C):
        return None
    return f"it needs a ridge penalty, an L2 region with a finite C; use {instead(problem)}"


def instead(problem: Problem) -> str:
    """Solvers that do take a problem which one has refused."""
    plain = problem.rescaling == "margin" and problem.slack == "linear"
    if isinstance(problem.region, L1):
        return "ColumnGeneration" if problem.slack == "linear" else "ProjectedGradient"
    if isinstance(problem.region, L2) and np.isfinite(problem.region.C):
        return "SimplicialDecomposition or CuttingPlane" + (" or BlockFrankWolfe" if problem.slack == "linear" else "")
    return "Extragradient or DualExtragradient" if plain else "ProjectedGradient, or give C, which faster solvers need"


class NonFiniteError(ArithmeticError):
    """A quantity of the run became NaN or infinite."""


def checked_points(points: Points) -> Points:
    """The points; NonFiniteError where some example met NaN or infinite numbers."""
    if (points.status == PointStatus.NONFINITE).any():
        raise NonFiniteError("an argmax or a projection met NaN or infinite numbers")
    return points


@dataclass(eq=False)
class Run:
    """One run of a solver on a problem: the problem's operations, counted.

    Attributes:
        problem: the whole problem.
        random: for solvers that draw random numbers.
        shards: the problem in pieces that are treated one after the other; one piece for solvers that store packed
            vectors.
        tol: the relative gap aimed at.
        counters: the work done so far.
        keeps_most_violated: whether the last worst outputs are kept, so that asking again at the same weights costs nothing:
            for solvers whose step starts from the weights that were just certified. Not with several shards.
        deadline: the value of ``time.perf_counter()`` at which ``max_seconds`` are over, for long steps; None for none.
        warm: for each shard what its next argmax starts from; empty before the first.
    """

    problem: Problem
    random: np.random.Generator
    shards: tuple[Problem, ...]
    tol: float = 1e-3
    counters: Counters = field(default_factory=Counters)
    keeps_most_violated: bool = False
    deadline: float | None = None
    warm: list[Any] = field(default_factory=list)
    _kept: tuple[FloatArray, MostViolated] | None = None

    @classmethod
    def of(cls, problem: Problem, random: np.random.Generator, shard_size: int | None = None, tol: float = 1e-3) -> Run:
        """A run over shards of so many parts, or over the problem as a whole."""
        return cls(problem, random, (problem,) if shard_size is None else tuple(problem.shards(shard_size)), tol)

    def most_violated(self, weights: FloatArray) -> Iterator[tuple[Problem, MostViolated]]:
        """Shard by shard, the outputs that violate the margin most; each call starts from the last one's warm."""
        if self._kept is not None and np.array_equal(self._kept[0], weights):
            yield self.problem, self._kept[1]
            return
        self.counters.argmax += 1
        self.warm = self.warm or [None] * len(self.shards)
        first = 0
        for i, shard in enumerate(self.shards):
            worst = shard.most_violated(weights, warm=self.warm[i], first=first)
            self.warm[i] = worst.warm
            first += shard.structure.n_examples
            if self.keeps_most_violated and len(self.shards) == 1:
                self._kept = (np.array(weights), worst)
            yield shard, worst
            del worst

    def most_violated_of(self, part: Problem, weights: FloatArray, first: int = 0) -> MostViolated:
        """The same for a part of the problem, counted as the fraction of a pass that it is."""
        self.counters.argmax += part.structure.n_examples / max(1, self.problem.structure.n_examples)
        return part.most_violated(weights, first=first)

    def hinge(self, weights: FloatArray) -> float:
        """``H(w)`` of the whole problem."""
        total = 0.0
        for shard, worst in self.most_violated(weights):
            total += shard.total(worst.value)
            del worst  # its packed vector, before the next one is made
        return total

    def project(self, problem: Problem, point: FloatArray, *, tol: float, warm: Any) -> Points:
        """Project every example of ``problem`` (the whole one or a shard of it)."""
        self.counters.projections += problem.structure.n_examples
        return checked_points(problem.structure.project(point, tol=tol, warm=warm))

    def marginals(self, problem: Problem, potentials: FloatArray) -> Points:
        """The Gibbs distributions of every example of ``problem``, the entropic projections: counted as such."""
        self.counters.projections += problem.structure.n_examples
        points = problem.structure.marginals(potentials)
        if (points.status != PointStatus.OK).any():
            raise NonFiniteError("an entropic projection met NaN or infinite numbers")
        return points


def weight_sized(run: Run, frozen: Any) -> FloatArray:
    """A copy of a saved vector; ValueError where it does not have one number per weight."""
    array = np.array(frozen, dtype=np.float64)
    if array.shape != (run.problem.n_weights,):
        raise ValueError(f"a vector of shape {array.shape} does not fit {run.problem.n_weights} weights")
    return array


@dataclass(frozen=True)
class Start:
    """Where a run starts.

    Attributes:
        weights: the weights; None for zeros.
        z: a packed feasible point of the structures player, for Euclidean geometry; None for the gold outputs.
        potentials: those of its distributions, for entropic geometry; None for the geometry's center.
        masses: outputs and their masses, for solvers over outputs; None for the gold outputs.
    """

    weights: FloatArray | None = None
    z: FloatArray | None = None
    potentials: FloatArray | None = None
    active_set: ActiveSet | None = None

    def weights_for(self, problem: Problem) -> FloatArray:
        """The start weights, moved into the region; zeros by default."""
        if self.weights is None:
            return np.zeros(problem.n_weights)
        if self.weights.shape != (problem.n_weights,):
            raise ValueError(
                f"start weights have shape {self.weights.shape}, the problem needs ({problem.n_weights},); "
                "fit without warm_start when the features or the labels change"
            )
        return problem.region.project(np.array(self.weights, dtype=np.float64))

    def z_for(self, run: Run) -> FloatArray:
        """The start point of the structures player if it fits, else the gold outputs.

        It may come from other data with as many parts; a point that is not feasible for these would spoil the
        certificate, so it is projected.
        """
        problem = run.problem
        if self.z is None or self.z.shape != problem.gold.shape:
            return problem.gold
        run.counters.projections += problem.structure.n_examples
        points = problem.structure.project(np.asarray(self.z, dtype=np.float64))
        return points.z if (points.status == PointStatus.OK).all() else problem.gold


class Solver(ABC):
    """An algorithm's settings. Subclasses are frozen dataclasses with keyword-only fields."""

    max_iter = 1000
    """Iteration limit when the caller gives none."""

    one_step = False
    """Whether the first step is also the last, whatever the limit."""

    minimizes = True
    """Whether the method minimizes the objective; one that does not keeps its last weights and ends when it is done."""

    remedy = "raise max_iter or max_seconds, raise tol, or regularize more (smaller C or radius)"
    """What to do when the gap did not close."""

    def when_stalled(self, problem: Problem) -> str:
        """What to do when the gap stopped shrinking."""
        return "raise tol, scale the features, or try another solver"

    def unsupported(self, problem: Problem) -> str | None:
        """The plain reason why this solver cannot solve the problem, or None."""
        return None

    checkpoint_unsupported = (
        "it keeps more than checkpoints hold; use BlockFrankWolfe, Subgradient, Mira or AveragedPerceptron"
    )
    """Where a run cannot be saved in a checkpoint: the reason, and what to use. Empty where :meth:`freeze` and
    :meth:`thaw` are given."""

    def freeze(self, state: Any) -> Frozen:
        """The state as arrays and numbers for :meth:`thaw`, good until the next step: they are written before it."""
        raise TypeError(f"a run of {type(self).__name__} cannot be saved: {self.checkpoint_unsupported}")

    def thaw(self, run: Run, frozen: Frozen) -> Any:
        """The state again, in place of :meth:`init`: all that follows has the same bits as without the interruption.

        Arrays are read-only. ValueError (or KeyError) where they do not fit the problem.
        """
        raise TypeError(f"a run of {type(self).__name__} cannot be saved: {self.checkpoint_unsupported}")

    @property
    def shard_size(self) -> int | None:
        """Parts of the pieces in which the data are treated; None for solvers that store packed vectors."""
        return None

    @abstractmethod
    def init(self, run: Run, start: Start) -> Any:
        """The state before the first step."""

    @abstractmethod
    def step(self, run: Run, state: Any) -> Any:
        """One iteration: a new state."""

    @abstractmethod
    def propose(self, run: Run, state: Any) -> Sequence[Proposal]:
        """Candidates for certification, most promising first; each costs one argmax pass."""

    def observe(self, run: Run, state: Any, certificates: Sequence[Certificate]) -> Any:
        """Learn from the certificates of the last proposals (restarts); by default nothing."""
        return state

    def done(self, state: Any) -> bool:
        """Whether a method that does not minimize the objective has nothing left to do."""
        return False

    def duals(self, state: Any) -> FloatArray | None:
        """The packed feasible point of the structures player, if the state holds one: for a later warm start."""
        return None

    def potentials(self, state: Any) -> FloatArray | None:
        """In entropic geometry, the potentials of that point: for a later warm start."""
        return None

    def active_set(self, state: Any) -> ActiveSet | None:
        """The outputs with mass, if the state holds such: for a later warm start."""
        return None
