"""The only loop: ``solve(problem, solver)`` runs any solver to a certified gap, a budget or an interruption."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin import _checks, _memory, _threads
from maxmargin._callers import callers_level
from maxmargin._messages import shown
from maxmargin._vectors import norm
from maxmargin.execution import Executor, Serial, ShardedProblem
from maxmargin.optimization.callbacks import Callback, Record, asks_to_stop, checked_callbacks
from maxmargin.optimization.carry import Carry, Clock
from maxmargin.optimization.certificate import BestBounds, CertificateError, certify
from maxmargin.optimization.checkpoints.checkpointer import Checkpointer, FileCheckpointer
from maxmargin.optimization.checkpoints.files import Checkpoint
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.optimization.solution import Solution
from maxmargin.optimization.solver import Solver, Start, sharded_alternatives
from maxmargin.optimization.sparsify import sparsify
from maxmargin.optimization.stopping import Status, Stop, StopRules
from maxmargin.problem import BaseProblem, InexactError, Problem
from maxmargin.structures.base import FloatArray

_SILENT = (Status.CONVERGED, Status.STOPPED, Status.FINISHED)
_WHOLE = (Status.CONVERGED, Status.BUDGET, Status.STALLED, Status.STOPPED)


def solve(
    problem: BaseProblem,
    solver: Solver,
    executor: Executor | None = None,
    *,
    stop: Stop | None = None,
    callbacks: Sequence[Callback] = (),
    start: Start | None = None,
    n_jobs: int | None = None,
    random_state: int | None = None,
    why: str = "",
    checkpoint: Checkpoint | None = None,
) -> Solution:
    """Minimize ``penalty(w) + H(w)`` over the region to a certified relative gap.

    Args:
        problem: the packed problem, or one whose data is elsewhere (:class:`maxmargin.execution.ShardedProblem`).
        solver: the algorithm's settings.
        executor: where the work on the examples is done; None for this process, without shards.
        stop: tolerance and budget.
        callbacks: called with a :class:`Record` at every certificate; a true result stops the run.
        start: where to start; by default zeros and the center of the solver's geometry.
        n_jobs: threads, as scikit-learn reads it; does not change the result.
        random_state: seed for solvers that draw random numbers.
        why: why this solver, kept in the solution.
        checkpoint: where the run is saved. If the file exists the run resumes from it, not from ``start``, and ends
            with the same bits as an uninterrupted run. It is written once more at the end.

    Returns:
        A :class:`Solution`. Ctrl-C, time-out and numerical trouble return the best weights so far, with their
        certificate and a status that says what happened. A run that ends on its budget warns.
    """
    _checks.instance("problem", problem, (Problem, ShardedProblem), "a Problem")
    _checks.instance("solver", solver, Solver, "a solver object such as mm.BlockFrankWolfe()")
    if executor is not None:
        _checks.instance("executor", executor, Executor, "an executor such as mm.execution.Serial(shards=2), or None")
    for name, value, kind in (("stop", stop, Stop), ("start", start, Start), ("checkpoint", checkpoint, Checkpoint)):
        if value is not None:
            _checks.instance(name, value, kind, f"a {kind.__name__} or None")
    callbacks = checked_callbacks(callbacks)
    if reason := solver.unsupported(problem) or shards_unsupported(problem, solver, executor):
        raise ValueError(f"{type(solver).__name__} cannot solve this problem: {reason}")
    saved = Checkpointer()
    if checkpoint is not None:
        shards = 1 if executor is None else executor.shards
        saved = FileCheckpointer(checkpoint, solver, random_state, callbacks, shards)
    # Overflow is a status here, not a warning: the loop checks every objective and projection for it.
    with contextlib.closing(saved), _threads.threads(n_jobs), np.errstate(over="ignore", invalid="ignore"):
        loop = _Loop(problem, solver, executor, stop or Stop(), callbacks, random_state, saved)
        try:
            solution = loop.solve(start or Start())
        finally:
            loop.carry.run.session.close()
    expected = solution.status is Status.BUDGET and not problem.region.certifies  # chosen without regularization
    if solution.status not in _SILENT and not expected:
        warnings.warn(solution.message, convergence_warning(), stacklevel=callers_level())
    return replace(solution, why=why)


def whole_and_here(problem: BaseProblem, executor: Executor | None) -> bool:
    """Whether all examples are in this process, in one shard, as some solvers need."""
    alone = executor is None or (isinstance(executor, Serial) and executor.shards == 1)
    return alone and isinstance(problem, Problem)


def shards_unsupported(problem: BaseProblem, solver: Solver, executor: Executor | None) -> str:
    """The reason why a solver cannot work where the data is; empty if it can."""
    if whole_and_here(problem, executor) or not solver.shards_unsupported:
        return ""
    remedy = "give a problem in memory" if isinstance(problem, ShardedProblem) else "leave executor at None"
    return f"{solver.shards_unsupported}; use {sharded_alternatives(problem)}, or {remedy}"


class ConvergenceWarning(UserWarning):
    """A run did not converge; raised where scikit-learn's warning of this name is not loaded."""


def convergence_warning() -> type[Warning]:
    """scikit-learn's warning where that is loaded, so that filters for it apply; loading it takes a second or two."""
    loaded = sys.modules.get("sklearn.exceptions")
    return ConvergenceWarning if loaded is None else loaded.ConvergenceWarning


class _Loop:
    """One run: step, certify when it is due, stop when a rule says so."""

    def __init__(
        self,
        problem: BaseProblem,
        solver: Solver,
        executor: Executor | None,
        stop: Stop,
        callbacks: Sequence[Callback],
        random_state: int | None,
        checkpointer: Checkpointer,
    ) -> None:
        self.solver, self.callbacks, self.checkpointer = solver, callbacks, checkpointer
        self.rules = StopRules(problem, solver, stop)
        clock = Clock()  # cutting the problem into pieces takes time as well
        sharded = not solver.shards_unsupported
        size = None if solver.whole_shards and executor is not None and executor.shards > 1 else solver.shard_size
        run = Run.of(problem, generator(random_state), size, stop.tol, executor, sharded)
        self.problem = run.problem
        self.carry = Carry(run, BestBounds(problem, solver.minimizes), clock)
        self.watched = solver.minimizes or bool(callbacks)  # otherwise the certificate of the end is enough
        run.warm_starts = solver.keeps_warm_starts

    def solve(self, start: Start) -> Solution:
        """Run to the end, whatever ends the run."""
        carry, status = self.carry, None
        try:
            self._begin(start)
            while (status := self.rules.status(carry)) is None:
                with self.checkpointer.step(carry):
                    carry.state = self.solver.step(carry.run, carry.state)
                    carry.run.counters.iterations += 1
                self._check(last=self.rules.last(carry))
            self.checkpointer.finish(carry)
            if carry.best.weights is None:
                self._certify()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
            with contextlib.suppress(KeyboardInterrupt):
                self.checkpointer.finish(carry)
            if carry.best.weights is None and carry.state is not None:
                with contextlib.suppress(KeyboardInterrupt, NonFiniteError, InexactError):
                    self._certify()
        except NonFiniteError:
            status = Status.NONFINITE
        except InexactError:
            if carry.best.weights is None:
                raise
            status = Status.INEXACT
        except CertificateError as error:
            raise self.checkpointer.contradicted(error) from None
        except Exception:  # raised by a callback
            with contextlib.suppress(KeyboardInterrupt):
                self.checkpointer.finish(carry)
            raise
        finally:
            for callback in self.callbacks:
                if close := getattr(callback, "close", None):
                    close()
        return self._solution(status)

    def _begin(self, start: Start) -> None:
        """Resume from the checkpoint, or start."""
        carry, stop = self.carry, self.rules.stop
        resumed = self.checkpointer.resume(carry)
        carry.run.deadline = None if stop.max_seconds is None else carry.clock.began + stop.max_seconds
        if not resumed:
            carry.state = self.solver.init(carry.run, start)
            start.spend()
            self._check(last=False)
        elif carry.schedule.due(carry.iteration) or not carry.certified:  # interrupted before or in a certificate
            self._check(last=self.rules.last(carry))

    def _check(self, *, last: bool) -> None:
        """Take the certificate if it is due or the last one, and save the run if it is time."""
        carry = self.carry
        due = carry.schedule.due(carry.iteration)
        if not due and not last and not self.solver.claims(carry.run, carry.state):
            return
        with self.checkpointer.certificate(carry):
            carry.asked = self._certify() if self.watched or last else ""
            if due:  # a run that ends early may resume with a larger budget: only a due certificate moves the schedule
                carry.schedule.advance(carry.iteration)

    def _certify(self) -> str:
        """Certify the proposals and call the callbacks; the reason if one asks to stop, else an empty string."""
        carry, run = self.carry, self.carry.run
        proposals, certificates = self.solver.propose(run, carry.state), []
        for proposal in proposals:
            hinge = run.hinge(proposal.weights) if proposal.hinge is None else proposal.hinge
            certificate = certify(self.problem, proposal, hinge)
            if not np.isfinite(certificate.primal):
                raise NonFiniteError("the objective became NaN or infinite")
            certificates.append(certificate)
            carry.best.update(proposal, certificate)
        carry.state = self.solver.observe(run, carry.state, certificates)
        leading = min(range(len(proposals)), key=lambda i: certificates[i].primal)
        weights = proposals[leading].weights.view()
        weights.flags.writeable = False
        record = Record(
            iteration=carry.iteration,
            seconds=carry.clock.seconds,
            certificate=carry.best.certificate,
            primal=certificates[leading].primal,
            weights=weights,
            norm=norm(weights),
            argmax=run.counters.argmax,
            projections=run.counters.projections,
            limit=self.rules.limit,
            tol=self.rules.stop.tol,
        )
        carry.history.append(replace(record, weights=np.zeros(0)))  # weights would add up in memory
        asking = [callback for callback in self.callbacks if asks_to_stop(callback, record)]
        return str(getattr(asking[0], "reason", "stopped by a callback")) if asking else ""

    def _solution(self, status: Status) -> Solution:
        carry, solver, region, state = self.carry, self.solver, self.problem.region, self.carry.state
        if carry.best.weights is None:
            if status is Status.INTERRUPTED:
                raise KeyboardInterrupt("interrupted before the first certificate: there is nothing to return")
            raise ValueError(
                "the objective is not finite at the start: check the features, the costs and the start weights "
                "for NaN, infinite or very large numbers"
            )
        weights, certificate = np.array(carry.best.weights), carry.best.certificate
        if status in _WHOLE and solver.minimizes and region.sparse:
            tol = 0.0 if solver.direct else self.rules.stop.tol
            try:
                weights, certificate = sparsify(carry.run, weights, certificate, tol)
            except InexactError:
                pass
            except KeyboardInterrupt:  # the weights are good, but what comes after this run is not wanted
                status = Status.INTERRUPTED
        message = self.rules.message(status, certificate, carry)
        duals, potentials = (None, None) if state is None else self._points(state)
        several = carry.run.session.n_pieces > 1
        carry.run.session.close()
        if several:
            _memory.give_back()  # before the active set takes as much
        return Solution(
            weights=weights,
            certificate=certificate,
            status=status,
            message=message,
            history=tuple(carry.history),
            counters=carry.run.counters,
            seconds=carry.clock.seconds,
            solver=solver,
            duals=duals,
            potentials=potentials,
            active_set=None if state is None else solver.active_set(state),
            responses=carry.best.responses,
        )

    def _points(self, state: Any) -> tuple[FloatArray | None, FloatArray | None]:
        """Where the structures player stands, for a later warm start; none if Ctrl-C comes again."""
        try:
            return self.solver.duals(self.carry.run, state), self.solver.potentials(self.carry.run, state)
        except KeyboardInterrupt:
            return None, None


def generator(random_state: int | None) -> np.random.Generator:
    """The random numbers of a seed; ValueError if it is not one."""
    seed: Any = random_state
    random = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence, np.random.RandomState)
    whole = isinstance(seed, (int, np.integer)) and not isinstance(seed, (bool, np.timedelta64)) and seed >= 0
    if seed is not None and not whole and not isinstance(seed, random):
        raise ValueError(f"random_state must be None or an integer >= 0, got {shown(seed)}")
    return np.random.default_rng(int(seed) if whole else seed)
