"""A solver: a frozen record of settings with a few methods; and the run that counts its work.

``solve`` (in :mod:`maxmargin.optimization.loop`) owns the loop, the clock, the certificate and the best weights so far;
a solver only says what it needs of a problem, how to start, how to step and what to propose for certification.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast

import numpy as np

from maxmargin import _checks
from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.certificate import Certificate, Proposal
from maxmargin.problem import RESCALINGS, SLACKS, Hinge, MostViolated, Problem
from maxmargin.regions import CAPABILITIES
from maxmargin.structures._arrays import array_of
from maxmargin.structures.base import FloatArray, Points, PointStatus, warm_bytes

StateDict = dict[str, Any]
"""Arrays (float64, float32, int64, int32 or uint8) and numbers by name: the state of a solver or of a callback, as a
checkpoint stores it."""


@dataclass
class Counters:
    """The work done: iterations, argmax passes over all examples (parts of one counted as such), projections of single
    examples."""

    iterations: int = 0
    argmax: float = 0
    projections: int = 0


class NonFiniteError(ArithmeticError):
    """A quantity of the run became NaN or infinite."""


def checked_points(points: Points) -> Points:
    """The points; NonFiniteError if NaN or infinite numbers came up in some example."""
    if (points.status == PointStatus.NONFINITE).any():
        raise NonFiniteError("an argmax or a projection met NaN or infinite numbers")
    return points


@dataclass(eq=False)
class Run:
    """One run of a solver on a problem: the problem's operations, counted.

    Attributes:
        problem: the whole problem.
        random: for solvers that draw random numbers.
        shards: the problem in consecutive pieces that are processed one by one; one piece for solvers that store
            packed vectors.
        tol: the relative gap aimed at.
        counters: the work done so far.
        caches_oracle: whether the last most violated outputs are kept, so that another call at the same weights costs
            nothing: for solvers whose step starts from the weights that were just certified. Not with several shards.
        deadline: the value of ``time.perf_counter()`` at which ``max_seconds`` are over, for long steps; None for none.
        warm: for each shard where its next argmax starts from; empty before the first.
        warm_starts: whether those are kept, see :attr:`Solver.keeps_warm_starts`.
        hinge_tol: how far ``H(w)`` may be overestimated by :meth:`most_violated`, and so by certificates: a solver that
            sets it keeps it well below the gap.
        found: ``H(w)`` of the last call of :meth:`most_violated` that came to its end.
    """

    problem: Problem
    random: np.random.Generator
    shards: tuple[Problem, ...]
    tol: float = 1e-3
    counters: Counters = field(default_factory=Counters)
    caches_oracle: bool = False
    deadline: float | None = None
    warm: list[Any] = field(default_factory=list)
    warm_starts: bool | Literal["auto"] = True
    hinge_tol: float = 0.0
    found: Hinge = field(default_factory=lambda: Hinge(np.inf, 0.0))
    _cached: tuple[FloatArray, float, MostViolated, Hinge] | None = None

    @classmethod
    def of(cls, problem: Problem, random: np.random.Generator, shard_size: int | None = None, tol: float = 1e-3) -> Run:
        """A run over shards of at most ``shard_size`` parts, or over the problem as a whole."""
        return cls(problem, random, (problem,) if shard_size is None else tuple(problem.shards(shard_size)), tol)

    def most_violated(self, weights: FloatArray) -> Iterator[tuple[Problem, MostViolated]]:
        """Shard by shard, loss-augmented inference; each call is warm-started by the last one."""
        if self._cached is not None and self._cached[1] <= self.hinge_tol and np.array_equal(self._cached[0], weights):
            yield self.problem, self._cached[2]
            self.found = self._cached[3]
            return
        self.counters.argmax += 1
        self.warm = self.warm or [None] * len(self.shards)
        first, value, rounding = 0, 0.0, 0.0
        for i, shard in enumerate(self.shards):
            tol = self.hinge_tol * (shard.structure.n_parts / max(1, self.problem.structure.n_parts))
            violated = shard.most_violated(weights, warm=self.warm[i], first=first, tol=tol)
            (self.warm[i],) = self.kept(shard, violated.warm)
            first += shard.structure.n_examples
            value, rounding = value + shard.total(violated.value), rounding + shard.rounding(violated)
            if self.caches_oracle and len(self.shards) == 1:
                self._cached = (np.array(weights), self.hinge_tol, violated, Hinge(value, rounding))
            yield shard, violated
            del violated  # its packed vector, before the next one is made
        self.found = Hinge(value, rounding)

    def forget(self) -> None:
        """Drop what no file holds: the last most violated outputs, and warm starts that are not arrays."""
        self._cached = None
        self.warm = [one if isinstance(one, np.ndarray) else None for one in self.warm]

    def uncounted(self) -> Run:
        """The same run for checks of a checkpoint: its work is neither counted nor remembered here."""
        return replace(self, counters=Counters(), warm=list(self.warm), _cached=None)

    def kept(self, problem: Problem, *warm: Any) -> tuple[Any, ...]:
        """The warm starts of the next calls on ``problem`` (the whole one or a shard) if they are kept, else Nones."""
        keep = self.warm_starts
        if keep == "auto":
            keep = warm_bytes(*warm) <= 8 * problem.structure.n_parts
        return warm if keep else (None,) * len(warm)

    def most_violated_of(self, part: Problem, weights: FloatArray, first: int = 0) -> MostViolated:
        """Loss-augmented inference on a part of the problem, counted as a fraction of a pass."""
        self.counters.argmax += part.structure.n_examples / max(1, self.problem.structure.n_examples)
        return part.most_violated(weights, first=first)

    def hinge(self, weights: FloatArray) -> Hinge:
        """``H(w)`` of the whole problem, and its rounding error."""
        for shard in self.most_violated(weights):
            del shard  # its packed vector, before the next one is made
        return self.found

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


@dataclass(frozen=True)
class Start:
    """Where a run starts.

    Attributes:
        weights: the weights; None for zeros.
        z: a packed feasible point of the structures player, for Euclidean geometry; None for the gold outputs.
        potentials: those of its distributions, for entropic geometry; None for the geometry's center.
        active_set: outputs and their weights, for solvers over outputs; None for the gold outputs.
        spent: whether the run may drop all of these once it has started, as nobody else needs them.
    """

    weights: FloatArray | None = None
    z: FloatArray | None = None
    potentials: FloatArray | None = None
    active_set: ActiveSet | None = None
    spent: bool = False

    def __post_init__(self) -> None:
        if self.active_set is not None:
            _checks.instance("active_set", self.active_set, ActiveSet, "an ActiveSet or None")
        if self.potentials is not None:
            given = array_of(self.potentials, "potentials", "fiub", "a packed vector of numbers")
            object.__setattr__(self, "potentials", given)

    def spend(self) -> None:
        """Drop what is not needed any more, if that is allowed."""
        if self.spent:
            for name in ("weights", "z", "potentials", "active_set"):
                object.__setattr__(self, name, None)

    def weights_for(self, problem: Problem) -> FloatArray:
        """The start weights, moved into the region; zeros by default."""
        if self.weights is None:
            return np.zeros(problem.n_weights)
        given = array_of(self.weights, "start weights", "fiub", f"{problem.n_weights} finite numbers")
        if given.shape != (problem.n_weights,):
            raise ValueError(
                f"start weights have shape {given.shape}, the problem needs ({problem.n_weights},); "
                "fit without warm_start when the features or the labels change"
            )
        return problem.region.project(np.array(given, dtype=np.float64))

    def z_for(self, run: Run) -> FloatArray:
        """The start point of the structures player if it fits, else the gold outputs.

        It may come from other data with as many parts; a point that is not feasible for these would spoil the
        certificate, so it is projected.
        """
        problem = run.problem
        if self.z is None:
            return problem.gold
        given = array_of(self.z, "the start point z", "fiub", "a packed vector of numbers")
        if given.shape != (problem.structure.n_parts,):
            return problem.gold
        run.counters.projections += problem.structure.n_examples
        points = problem.structure.project(np.asarray(given, dtype=np.float64))
        return points.z if (points.status == PointStatus.OK).all() else problem.gold


class Solver(ABC):
    """An algorithm's settings. Subclasses are frozen dataclasses with keyword-only fields."""

    max_iter = 1000
    """Iteration limit when the caller gives none."""

    direct = False
    """Whether the first step is also the last, whatever the limit."""

    minimizes = True
    """Whether the method minimizes the objective; one that does not keeps its last weights and ends when it is done."""

    takes_rescaling: tuple[str, ...] = RESCALINGS
    takes_slack: tuple[str, ...] = SLACKS
    takes_good = True
    """The hinges that the method can handle; whether several outputs of an example may be good."""

    needs: tuple[str, ...] = ()
    """The capabilities that the method needs of the region: names in :data:`maxmargin.regions.CAPABILITIES`."""

    def __post_init__(self) -> None:
        """Make numbers plain, check ``max_iter`` and all flags; a subclass with more settings extends it."""
        for one in fields(cast(Any, self)):
            object.__setattr__(self, one.name, _checks.plain(getattr(self, one.name)))
        _checks.integer("max_iter", self.max_iter, least=1)
        for one in fields(cast(Any, self)):
            if one.type in ("bool", bool):
                _checks.flag(one.name, getattr(self, one.name))

    remedy = "raise max_iter or max_seconds, raise tol, or regularize more (smaller C or radius)"
    """The advice when the gap did not close."""

    def stalled_remedy(self, problem: Problem) -> str:
        """The advice when the gap stopped shrinking."""
        return "raise tol, scale the features, or try another solver"

    def unsupported(self, problem: Problem) -> str | None:
        """The reason why this solver cannot solve the problem, or None."""
        return self.unsupported_hinge(problem) or self.missing(problem, *self.needs)

    def unsupported_hinge(self, problem: Problem) -> str | None:
        """The reason why this solver cannot handle the problem's rescaling and slack, or None."""
        wanted = []
        if problem.rescaling not in self.takes_rescaling:
            wanted.append(f'rescaling="{self.takes_rescaling[0]}", not "{problem.rescaling}"')
        if problem.slack not in self.takes_slack:
            wanted.append(f'slack="{self.takes_slack[0]}", not "{problem.slack}"')
        if problem.good is not None and not self.takes_good:
            wanted.append("one gold output per example, not several good ones")
        return f"it needs {' and '.join(wanted)}; use {alternatives(problem)}" if wanted else None

    def missing(self, problem: Problem, *needs: str) -> str | None:
        """The first of some capabilities that the problem's region lacks, as a sentence, or None."""
        region = problem.region
        for name in needs:
            if getattr(region, name) in (None, False):
                return (
                    f"it needs {CAPABILITIES[name]}, which {type(region).__name__} does not offer with these settings; "
                    f"use {alternatives(problem)}"
                )
        return None

    @property
    def checkpoint_unsupported(self) -> str:
        """The reason why a run cannot be saved in a checkpoint, and what to use instead.

        Empty for solvers with :meth:`state_dict` and :meth:`load_state_dict`.
        """
        return (
            "it keeps more than checkpoints hold; use BlockFrankWolfe, Subgradient, Mira or "
            "AveragedPerceptron, in a ball DualExtragradient(store_duals=False, warm_starts=False)"
        )

    def state_dict(self, state: Any) -> StateDict:
        """The state as arrays and numbers, valid until the next step: they are written before it."""
        raise TypeError(f"a run of {type(self).__name__} cannot be saved: {self.checkpoint_unsupported}")

    def load_state_dict(self, run: Run, saved: StateDict) -> Any:
        """The state again, in place of :meth:`init`; the run continues with the same bits as an uninterrupted one.

        Arrays are read-only, and nothing about them is known: the file may be damaged, or made to deceive. ValueError
        with a reason if they do not fit the problem (:mod:`maxmargin.optimization.saved` has the checks).
        """
        raise TypeError(f"a run of {type(self).__name__} cannot be saved: {self.checkpoint_unsupported}")

    @property
    def shard_size(self) -> int | None:
        """Parts of a shard; None for solvers that store packed vectors of all examples."""
        return None

    @property
    def keeps_warm_starts(self) -> bool | Literal["auto"]:
        """Whether the next argmax or projection starts from the last one; "auto" if that takes no more than a packed z.

        What they start from is kept between iterations for every example.
        """
        return True

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

    def claims(self, run: Run, state: Any) -> bool:
        """Whether the method knows weights within the run's tolerance: then a certificate of these is due at once."""
        return False

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
        """The outputs with their weights, if the state holds them: for a later warm start."""
        return None


def alternatives(problem: Problem) -> str:
    """Solvers that take a problem which another one has refused."""
    region, linear = problem.region, problem.slack == "linear"
    if region.lasso is not None:
        return "ColumnGeneration or SimplicialDecomposition" if linear else "SimplicialDecomposition"
    if region.ridge is not None:
        return "SimplicialDecomposition or CuttingPlane" + (" or BlockFrankWolfe" if linear else "")
    saddle = "Extragradient" + (" or DualExtragradient" if region.smooth else "") if problem.bilinear else ""
    if region.norms is not None:
        return "SimplicialDecomposition" + (f" or {saddle}" if saddle else "")
    return saddle or "ProjectedSubgradient, or give C or a radius, which faster solvers need"
