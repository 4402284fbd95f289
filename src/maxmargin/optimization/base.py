"""A solver: a frozen record of settings with a few methods; and the run that counts its work.

``solve`` (in :mod:`maxmargin.optimization.loop`) owns the loop, the clock, the certificate and the best weights so far;
a solver only says what it needs of a problem, how to start, how to step and what to propose for certification.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast

import numpy as np

from maxmargin import _checks
from maxmargin.execution import Executor, HeldPieces, Piece, Serial, Session, ShardedProblem
from maxmargin.execution.session import Work
from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.certificate import Certificate, Proposal
from maxmargin.problem import RESCALINGS, SLACKS, BaseProblem, Hinge, MostViolated, Problem
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


def projected(problem: Problem, point: FloatArray, *, tol: float, warm: Any) -> Points:
    """The projections of every example; NonFiniteError if NaN or infinite numbers came up."""
    return checked_points(problem.structure.project(point, tol=tol, warm=warm))


def marginals(problem: Problem, potentials: FloatArray) -> Points:
    """The Gibbs distributions of every example; NonFiniteError if NaN or infinite numbers came up."""
    points = problem.structure.marginals(potentials)
    if (points.status != PointStatus.OK).any():
        raise NonFiniteError("an entropic projection met NaN or infinite numbers")
    return points


@dataclass(eq=False)
class Run:
    """One run of a solver on a problem: work on its pieces, counted.

    Attributes:
        problem: what is known of the whole problem.
        random: for solvers that draw random numbers.
        session: the pieces, which are processed one by one where they are, and what the run keeps with them.
        data: the whole problem if it is in this process, else None.
        tol: the relative gap aimed at.
        counters: the work done so far.
        caches_oracle: whether the last most violated outputs are kept, so that another call at the same weights costs
            nothing: for solvers whose step starts from the weights that were just certified. Not if a shard has several
            pieces.
        deadline: the value of ``time.perf_counter()`` at which ``max_seconds`` are over, for long steps; None for none.
        warm_starts: whether every argmax starts from the last one, see :attr:`Solver.keeps_warm_starts`.
        hinge_tol: how far ``H(w)`` may be overestimated by argmax passes, and so by certificates: a solver that sets
            it keeps it well below the gap.
        found: ``H(w)`` of the last argmax pass that came to its end.
        rescaled: a rescaling of the margin in place of the problem's, for a related run.
        remembers: whether argmax passes change the warm starts.
    """

    problem: BaseProblem
    random: np.random.Generator
    session: Session
    data: Problem | None = None
    tol: float = 1e-3
    counters: Counters = field(default_factory=Counters)
    caches_oracle: bool = False
    deadline: float | None = None
    warm_starts: bool | Literal["auto"] = True
    hinge_tol: float = 0.0
    found: Hinge = field(default_factory=lambda: Hinge(np.inf, 0.0))
    rescaled: str | None = None
    remembers: bool = True
    _cached: tuple[FloatArray, float, Hinge] | None = None

    @classmethod
    def of(
        cls,
        problem: BaseProblem,
        random: np.random.Generator,
        shard_size: int | None = None,
        tol: float = 1e-3,
        executor: Executor | None = None,
        sharded: bool = False,
    ) -> Run:
        """A run over pieces of at most ``shard_size`` parts (None: one piece a shard), or those of a sharded problem.

        ``sharded``: know of a problem in several pieces only what passes over them tell, wherever they are.
        """
        executor = executor or Serial()
        if isinstance(problem, ShardedProblem):
            session = executor.open(problem.source)
            return cls(problem.over(session), random, session, None, tol)
        assert isinstance(problem, Problem)
        source = HeldPieces.of(problem, shard_size, executor.shards)
        session = executor.open(source)
        if sharded and len(source) > 1:
            return cls(ShardedProblem(source, like=problem.select([])).over(session), random, session, problem, tol)
        return cls(problem, random, session, problem, tol)

    @property
    def whole(self) -> Problem:
        """The whole problem, for solvers that do not work piece by piece."""
        assert self.data is not None
        return self.data

    def forget(self) -> None:
        """Drop what no file holds: the last most violated outputs, and warm starts that are not arrays."""
        if self._cached is not None or self.warm_starts is not False:
            self._cached = None
            self.session.sums(_forget, eager=True)

    def uncounted(self) -> Run:
        """The same run for checks of a checkpoint: its work is neither counted nor remembered here."""
        return replace(self, counters=Counters(), remembers=False, _cached=None)

    def sums(self, work: Work, *args: Any) -> tuple[Any, ...]:
        """The sum of ``work(piece, memory, *args)`` over all pieces, see :class:`maxmargin.execution.Session`."""
        return self.session.sums(_own_work, work, *args)

    def each(self, work: Work, *args: Any) -> Iterator[Any]:
        """The results of ``work(piece, memory, *args)`` of all pieces, in order."""
        return self.session.each(_own_work, work, *args)

    def memories(self) -> list[Any]:
        """What the solver keeps with the pieces."""
        return [None if memory is None else memory[1] for memory in self.session.memories()]

    def remember(self, memories: Sequence[Any]) -> None:
        """Set what the solver keeps with the pieces."""
        kept = [None if memory is None else memory[0] for memory in self.session.memories()]
        self.session.restore(list(zip(kept, memories, strict=True)))

    def violated_sums(self, work: Callable[..., Any], weights: FloatArray, *args: Any) -> tuple[Any, ...]:
        """One argmax pass: the sum of ``work(piece, memory, violated, *args)`` over all pieces.

        ``violated`` are the most violated outputs of a piece, :class:`MostViolated`; ``work`` returns a tuple only, and
        leaves the memory as it is. Each pass is warm-started by the last one.
        """
        asked = self._ask(weights)
        value, rounding, *result = self.session.sums(_violated_sums, asked, work, *args, eager=True)
        self._answered(asked, Hinge(value, rounding))
        return tuple(result)

    def violated_each(self, work: Callable[..., Any], weights: FloatArray, *args: Any) -> Iterator[Any]:
        """One argmax pass: the results of ``work(piece, memory, violated, *args)`` of all pieces, in order."""
        asked = self._ask(weights)
        value = rounding = 0.0
        for own_value, own_rounding, result in self.session.each(_violated_each, asked, work, *args, eager=True):
            value, rounding = value + own_value, rounding + own_rounding
            yield result
            del result
        self._answered(asked, Hinge(value, rounding))

    def hinge(self, weights: FloatArray) -> Hinge:
        """``H(w)`` of the whole problem, and its rounding error."""
        self.violated_sums(_nothing, weights)
        return self.found

    def _ask(self, weights: FloatArray) -> Asked:
        cached = self._cached
        known = cached is not None and cached[1] <= self.hinge_tol and np.array_equal(cached[0], weights)
        keeps = self.caches_oracle and self.remembers and self.session.n_pieces <= self.session.n_shards
        if not known:
            self.counters.argmax += 1
            self._cached = None
        tol = self.hinge_tol / max(1, self.problem.n_parts)
        return Asked(weights, tol, self.warm_starts, keeps, known, self.remembers, self.rescaled)

    def _answered(self, asked: Asked, hinge: Hinge) -> None:
        if asked.known:
            assert self._cached is not None
            hinge = self._cached[2]
        elif asked.keeps:
            self._cached = np.array(asked.weights), self.hinge_tol, hinge
        self.found = hinge

    @property
    def warm(self) -> list[Any]:
        """For each piece where its next argmax starts from."""
        if self.warm_starts is False:
            return []
        found = [None if memory is None else memory[0] for memory in self.session.memories()]
        return [None if oracle is None else oracle[0] for oracle in found]

    @warm.setter
    def warm(self, warm: Sequence[Any]) -> None:
        given = warm or [None] * self.session.n_pieces
        self.session.restore([((one, None), own) for one, own in zip(given, self.memories(), strict=True)])
        self._cached = None

    def kept(self, problem: Problem, *warm: Any) -> tuple[Any, ...]:
        """The warm starts of the next calls on ``problem`` (the whole one or a piece) if they are kept, else Nones."""
        return kept(self.warm_starts, problem, *warm)

    def gather(self, work: Work, *args: Any) -> FloatArray | None:
        """The packed vector of the whole problem whose pieces ``work`` returns, or None if it is not in this process.

        None too where ``work`` returns None for a piece.
        """
        if self.data is None:
            return None
        found = list(self.each(work, *args))
        if any(one is None for one in found):
            return None
        if len(found) == 1:
            return np.asarray(found[0])
        whole = np.empty(self.data.n_parts)
        edges = self.session.example_edges
        for own, first, last in zip(found, edges[:-1], edges[1:], strict=True):
            whole[self.data.structure.parts_of(np.arange(first, last))] = own
        return whole

    def scatter(self, vector: FloatArray) -> list[FloatArray] | None:
        """A packed vector of the whole problem by pieces; None if it does not fit, or the data is elsewhere."""
        if self.data is None or vector.shape != (self.data.n_parts,):
            return None
        if self.session.n_pieces == 1:
            return [vector]
        edges = self.session.example_edges
        whole = self.data.structure
        return [vector[whole.parts_of(np.arange(first, last))] for first, last in itertools.pairwise(edges)]

    def project(self, problem: Problem, point: FloatArray, *, tol: float, warm: Any) -> Points:
        """Project every example of ``problem`` (the whole one or a part of it)."""
        self.counters.projections += problem.n_examples
        return projected(problem, point, tol=tol, warm=warm)

    def marginals(self, problem: Problem, potentials: FloatArray) -> Points:
        """The Gibbs distributions of every example of ``problem``, the entropic projections: counted as such."""
        self.counters.projections += problem.n_examples
        return marginals(problem, potentials)


@dataclass(frozen=True, eq=False)
class Asked:
    """What an argmax pass asks of every piece.

    Attributes:
        weights: where.
        tol: how far the maxima may be missed, per part.
        warm_starts: whether the next pass starts from this one.
        keeps: whether the outputs stay with the piece for another call; ``known``: whether those of the last one count.
        remembers: whether anything is kept.
        rescaling: a rescaling in place of the problem's, for which nothing is kept.
    """

    weights: FloatArray
    tol: float
    warm_starts: bool | Literal["auto"]
    keeps: bool
    known: bool
    remembers: bool
    rescaling: str | None


def kept(keep: bool | Literal["auto"], problem: Problem, *warm: Any) -> tuple[Any, ...]:
    """The warm starts if they are kept, else Nones; "auto" keeps what is no larger than a packed vector."""
    if keep == "auto":
        keep = warm_bytes(*warm) <= 8 * problem.n_parts
    return warm if keep else (None,) * len(warm)


def _own_work(piece: Piece, memory: Any, work: Work, *args: Any) -> tuple[Any, Any]:
    """A solver's work, which sees the memory of the solver only."""
    oracle, own = memory or (None, None)
    result, fresh = work(piece, own, *args)
    return result, memory if fresh is own else (oracle, fresh)


def _violated(piece: Piece, memory: Any, asked: Asked) -> tuple[Piece, MostViolated, Any, Any]:
    """The most violated outputs of a piece, the memory of the solver, and the new memory."""
    oracle, own = memory or (None, None)
    warm, last = oracle or (None, None)
    if asked.rescaling is not None:
        piece = replace(piece, problem=piece.problem.with_rescaling(asked.rescaling))
        warm = None
    problem = piece.problem
    if asked.known and last is not None:
        return piece, last, own, memory
    tol = asked.tol * problem.n_parts
    violated = problem.most_violated(asked.weights, warm=warm, first=piece.first, tol=tol)
    if asked.rescaling is not None or not asked.remembers:
        return piece, violated, own, memory
    (warm,) = kept(asked.warm_starts, problem, violated.warm)
    oracle = None if warm is None and not asked.keeps else (warm, violated if asked.keeps else None)
    return piece, violated, own, None if oracle is None and own is None else (oracle, own)


def _violated_sums(piece: Piece, memory: Any, asked: Asked, work: Any, *args: Any) -> tuple[Any, Any]:
    piece, violated, own, fresh = _violated(piece, memory, asked)
    hinge = piece.problem.total(violated.value), piece.problem.rounding(violated)
    return (*hinge, *work(piece, own, violated, *args)), fresh


def _violated_each(piece: Piece, memory: Any, asked: Asked, work: Any, *args: Any) -> tuple[Any, Any]:
    piece, violated, own, fresh = _violated(piece, memory, asked)
    hinge = piece.problem.total(violated.value), piece.problem.rounding(violated)
    return (*hinge, work(piece, own, violated, *args)), fresh


def _forget(piece: Piece, memory: Any) -> tuple[tuple[()], Any]:
    oracle, own = memory or (None, None)
    if oracle is None or (oracle[1] is None and isinstance(oracle[0], np.ndarray)):
        return (), memory
    return (), ((oracle[0], None) if isinstance(oracle[0], np.ndarray) else None, own)


def _nothing(piece: Piece, memory: Any, violated: MostViolated) -> tuple[()]:
    return ()


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

    def weights_for(self, problem: BaseProblem) -> FloatArray:
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

    def packed(self, name: str) -> FloatArray | None:
        """The given ``z`` or ``potentials`` as an array of numbers; None if there are none."""
        given = getattr(self, name)
        if given is None:
            return None
        called = "the start point z" if name == "z" else name
        return np.asarray(array_of(given, called, "fiub", "a packed vector of numbers"), dtype=np.float64)

    def z_for(self, run: Run) -> FloatArray:
        """The start point of the structures player if it fits, else the gold outputs; the data in this process.

        It may come from other data with as many parts; a point that is not feasible for these would spoil the
        certificate, so it is projected.
        """
        problem, given = run.whole, self.packed("z")
        if given is None or given.shape != (problem.n_parts,):
            return problem.gold
        run.counters.projections += problem.n_examples
        points = problem.structure.project(given)
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

    def stalled_remedy(self, problem: BaseProblem) -> str:
        """The advice when the gap stopped shrinking."""
        return "raise tol, scale the features, or try another solver"

    def remark(self, run: Run) -> str:
        """What else the message at the end says of the method, after a semicolon; empty for nothing."""
        return ""

    def unsupported(self, problem: BaseProblem) -> str | None:
        """The reason why this solver cannot solve the problem, or None."""
        return self.unsupported_hinge(problem) or self.missing(problem, *self.needs)

    @property
    def shards_unsupported(self) -> str:
        """The reason why it cannot run on several shards, or on data elsewhere; empty if its work is sent there."""
        return "it works on all examples in one place"

    def unsupported_hinge(self, problem: BaseProblem) -> str | None:
        """The reason why this solver cannot handle the problem's rescaling and slack, or None."""
        wanted = []
        if problem.rescaling not in self.takes_rescaling:
            wanted.append(f'rescaling="{self.takes_rescaling[0]}", not "{problem.rescaling}"')
        if problem.slack not in self.takes_slack:
            wanted.append(f'slack="{self.takes_slack[0]}", not "{problem.slack}"')
        if problem.good is not None and not self.takes_good:
            wanted.append("one gold output per example, not several good ones")
        return f"it needs {' and '.join(wanted)}; use {alternatives(problem)}" if wanted else None

    def missing(self, problem: BaseProblem, *needs: str) -> str | None:
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
            "it keeps more than checkpoints hold; use BlockFrankWolfe, SimplicialDecomposition, Subgradient, Mira or "
            "AveragedPerceptron, in a ball DualExtragradient(store_duals=False, warm_starts=False)"
        )

    def settled(self, state: Any) -> Any:
        """The state without what no file holds, such as warm starts that are not arrays: itself if it has none.

        With a checkpoint, a run goes on from this state after each certificate, so that a resumed run matches an
        uninterrupted one; between certificates a state that is not settled cannot be saved.
        """
        return state

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

    whole_shards = False
    """Whether each of several shards of a problem in memory is one piece, whatever its size."""

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

    def duals(self, run: Run, state: Any) -> FloatArray | None:
        """The packed feasible point of the structures player, if the state holds one: for a later warm start."""
        return None

    def potentials(self, run: Run, state: Any) -> FloatArray | None:
        """In entropic geometry, the potentials of that point: for a later warm start."""
        return None

    def active_set(self, state: Any) -> ActiveSet | None:
        """The outputs with their weights, if the state holds them: for a later warm start."""
        return None


def alternatives(problem: BaseProblem) -> str:
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


def sharded_alternatives(problem: BaseProblem) -> str:
    """Solvers that take a problem in several shards which another one has refused."""
    region, linear = problem.region, problem.slack == "linear"
    if region.lasso is not None:
        return "ColumnGeneration or SimplicialDecomposition" if linear else "SimplicialDecomposition"
    if region.norms is not None:
        return "SimplicialDecomposition" + (" or CuttingPlane" if region.ridge is not None else "")
    return "DualExtragradient" if problem.bilinear and region.smooth else "ProjectedSubgradient"
