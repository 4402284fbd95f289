"""One run of a solver on a problem: work on its pieces, wherever they are, counted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from maxmargin.execution import Executor, HeldPieces, Piece, Serial, Session, ShardedProblem
from maxmargin.execution.session import Work
from maxmargin.problem import BaseProblem, Hinge, MostViolated, Problem
from maxmargin.structures.base import FloatArray, Points, PointStatus, warm_bytes
from maxmargin.structures.fallbacks import generic


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
    """The projections of every example; NonFiniteError if NaN or infinite numbers came up.

    ``warm`` is of an earlier projection of the same piece, which may have been opened again since.
    """
    structure = problem.structure
    points = checked_points(structure.project(point, tol=tol, warm=generic.bound(warm, structure)))
    return replace(points, warm=generic.bound(points.warm, None))


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

    def forget(self, settled: Callable[[Any], Any]) -> None:
        """Drop what no file holds: the last most violated outputs, and warm starts that are not arrays.

        Args:
            settled: returns what the solver keeps with a piece without such things.
        """
        if self._cached is not None or self.warm_starts is not False:
            self._cached = None
            self.session.sums(_forget, settled, eager=True)

    def uncounted(self) -> Run:
        """The same run for checks of a checkpoint: its work is neither counted nor remembered here."""
        return replace(self, counters=Counters(), remembers=False, _cached=None)

    def sums(self, work: Work, *args: Any) -> tuple[Any, ...]:
        """The sum of ``work(piece, memory, *args)`` over all pieces, see :class:`maxmargin.execution.Session`."""
        return self.session.sums(_own_work, work, *args)

    def each(self, work: Work, *args: Any) -> Iterator[Any]:
        """The results of ``work(piece, memory, *args)`` of all pieces, in order."""
        return self.session.each(_own_work, work, *args)

    def turn(self, number: int, work: Work, *args: Any) -> list[Any]:
        """The results of ``work(piece, memory, *args)`` of the piece with this number in every shard that has one."""
        return list(self.session.each(_own_work, work, *args, turn=number))

    def snapshot(self) -> Callable[[], tuple[list[Any], list[Any]]]:
        """Where each piece's next argmax starts from, and what the solver keeps there, as they are now.

        The result brings them here when it is called. Warm starts are an empty list if none are kept.
        """
        taken = self.session.snapshot()

        def brought() -> tuple[list[Any], list[Any]]:
            found = [memory or (None, None) for memory in taken()]
            warm = [None if oracle is None else oracle[0] for oracle, _ in found]
            return [] if self.warm_starts is False else warm, [own for _, own in found]

        return brought

    def memories(self) -> list[Any]:
        """What the solver keeps with the pieces."""
        return self.snapshot()()[1]

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
        return [] if self.warm_starts is False else self.snapshot()()[0]

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


def _forget(piece: Piece, memory: Any, settled: Callable[[Any], Any]) -> tuple[tuple[()], Any]:
    oracle, own = memory or (None, None)
    fresh = own if own is None else settled(own)
    warm, last = oracle or (None, None)
    plain = isinstance(warm, np.ndarray)
    if fresh is own and (oracle is None or (last is None and plain)):
        return (), memory
    return (), ((warm, None) if plain else None, fresh)


def _nothing(piece: Piece, memory: Any, violated: MostViolated) -> tuple[()]:
    return ()
