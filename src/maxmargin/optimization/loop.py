"""The only loop: ``solve(problem, solver)`` runs any solver to a certified gap, a budget or an interruption.

Certificates are taken on a fixed schedule of iterations (every one at first, then ever farther apart), so that a run
gives the same bits however busy the machine is; only ``max_seconds`` and Ctrl-C depend on the clock.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from maxmargin import _checks as checks
from maxmargin import _threads
from maxmargin._callers import callers_level
from maxmargin._vectors import norm
from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.base import Counters, NonFiniteError, Run, Solver, Start, weight_sized
from maxmargin.optimization.callbacks import Callback, Record
from maxmargin.optimization.certificate import Certificate, CertificateError, Proposal, certify
from maxmargin.optimization.checkpoint import Checkpoint, CheckpointError, Moment, Saver, remembered, remind
from maxmargin.optimization.interrupts import after_this
from maxmargin.optimization.sparsify import sparser
from maxmargin.problem import InexactError, Problem
from maxmargin.structures.base import FloatArray

_ROUNDING = 1e-12
_CONTRADICTION = 1e-5
"""Bounds may contradict each other by this share of the largest objective: projections end at a tolerance."""
_UNREGULARIZED = "without a finite C or radius the gap is the hinge loss, which only separable data bring to 0"


class Status(StrEnum):
    """How a run ended."""

    CONVERGED = "converged"
    BUDGET = "budget"
    STOPPED = "stopped"
    STALLED = "stalled"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    NONFINITE = "nonfinite"
    INEXACT = "inexact"


@dataclass(frozen=True)
class Stop:
    """When to stop: at a relative gap, after so many iterations, after so many seconds.

    Attributes:
        tol: relative gap ``(primal - dual) / |primal|`` aimed at.
        max_iter: iteration limit; None takes the solver's own.
        max_seconds: time limit; None for none.
    """

    tol: float = 1e-3
    max_iter: int | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        checks.number("tol", self.tol, least=0, hint="1e-3 is a good choice")
        if self.max_iter is not None:
            checks.integer("max_iter", self.max_iter, least=1, hint="None takes the solver's own limit")
        if self.max_seconds is not None:
            checks.positive("max_seconds", self.max_seconds, infinite=True, hint="None sets no limit")


@dataclass(frozen=True, eq=False)
class Solution:
    """What a run returns.

    Attributes:
        weights: the weights with the smallest certified objective, shape ``(n_weights,)``.
        certificate: primal of those weights, largest dual seen.
        status: how the run ended, and ``message``: the sentence that says so.
        history: one record per certificate.
        counters: passes and projections done.
        seconds: wall-clock time.
        solver: the settings that ran; ``why``: why they were chosen, if the library chose.
        duals: the structures player's packed point, if the solver stores one; ``potentials``: those of its
            distributions, in entropic geometry; ``masses``: its outputs with their masses, if the solver keeps such.
    """

    weights: FloatArray
    certificate: Certificate
    status: Status
    message: str
    history: tuple[Record, ...]
    counters: Counters
    seconds: float
    solver: Solver
    why: str = ""
    duals: FloatArray | None = None
    potentials: FloatArray | None = None
    active_set: ActiveSet | None = None


def _next_check(iteration: int) -> int:
    """Every iteration up to 8, then spaced by an eighth of the iterations done, at most 50 apart."""
    return iteration + max(1, min(50, iteration // 8))


class _Best:
    """The smallest primal with its weights, and the largest dual, over all proposals."""

    def __init__(self, relaxed: bool, minimizes: bool) -> None:
        self.relaxed, self.minimizes = relaxed, minimizes
        self.weights: FloatArray | None = None
        self.primal, self.dual, self.hinge, self.size = np.inf, -np.inf, np.inf, 0.0

    @property
    def figures(self) -> tuple[float, ...]:
        """All numbers but the weights."""
        return self.primal, self.dual, self.hinge, self.size

    def restore(self, weights: FloatArray | None, figures: tuple[float, ...]) -> None:
        """Go on from a checkpoint."""
        self.weights = weights
        self.primal, self.dual, self.hinge, self.size = figures

    def update(self, proposal: Proposal, certificate: Certificate) -> None:
        if certificate.primal < self.primal or not self.minimizes:
            self.weights, self.primal, self.hinge = proposal.weights, certificate.primal, certificate.hinge
        self.dual = max(self.dual, certificate.dual)
        self.size = max(self.size, abs(certificate.primal))
        if self.dual > self.primal + _CONTRADICTION * self.size and self.minimizes:
            raise CertificateError(
                f"the lower bound {self.dual:g} is above the objective {self.primal:g}, so that one of them is wrong: "
                "some argmax, projection or loss is not what it promises; try maxmargin.testing.check_structure on a "
                "structure of your own, and report it otherwise"
            )

    @property
    def certificate(self) -> Certificate:
        return Certificate(primal=self.primal, dual=self.dual, hinge=self.hinge, relaxed=self.relaxed)


def solve(
    problem: Problem,
    solver: Solver,
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
        problem: the packed problem.
        solver: the algorithm's settings.
        stop: tolerance and budgets.
        callbacks: called with a :class:`Record` at every certificate; a true result stops the run.
        start: where to start; by default zeros and the center of the solver's geometry.
        n_jobs: threads, as scikit-learn reads it; does not change the result.
        random_state: seed for solvers that draw random numbers.
        why: why this solver, kept in the solution.
        checkpoint: where the run is saved as it goes; where the file exists the run goes on from it, not from
            ``start``, and ends with the bits that it would have ended with. It is written once more at the end.

    Returns:
        A :class:`Solution`. Ctrl-C, time-out and numerical trouble return the best weights so far, with their
        certificate and a status that says what happened. A run that ends on its budget warns.
    """
    stop = stop or Stop()
    if reason := solver.unsupported(problem):
        raise ValueError(f"{type(solver).__name__} cannot solve this problem: {reason}")
    saver = None if checkpoint is None else Saver.of(checkpoint, problem, solver, random_state)
    # Overflow is not a warning here but a status: the loop checks every objective and projection for it.
    with _threads.threads(n_jobs), np.errstate(over="ignore", invalid="ignore"):
        solution = _loop(problem, solver, stop, callbacks, start or Start(), random_state, saver)
    expected = solution.status is Status.BUDGET and not problem.region.certifies  # chosen without regularization
    if solution.status not in (Status.CONVERGED, Status.STOPPED, Status.FINISHED) and not expected:
        from sklearn.exceptions import ConvergenceWarning  # here, for scikit-learn takes a second

        warnings.warn(solution.message, ConvergenceWarning, stacklevel=callers_level())
    return replace(solution, why=why)


def _generator(random_state: int | None) -> np.random.Generator:
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(f"random_state must be None or an integer >= 0, got {random_state!r}") from None


def _loop(
    problem: Problem,
    solver: Solver,
    stop: Stop,
    callbacks: Sequence[Callback],
    start: Start,
    random_state: int | None,
    saver: Saver | None,
) -> Solution:
    began = time.perf_counter()
    limit = 1 if solver.one_step else stop.max_iter or solver.max_iter
    run = Run.of(problem, _generator(random_state), solver.shard_size, stop.tol)
    saved = None if saver is None else saver.load()
    if saved is not None:
        began -= saved.seconds
        run.counters = saved.counters
    run.deadline = None if stop.max_seconds is None else began + stop.max_seconds
    counters = run.counters
    best = _Best(problem.relaxed, solver.minimizes)
    history: list[Record] = []
    watched = solver.minimizes or bool(callbacks)  # otherwise the certificate of the end is enough
    next_check = 0
    state = None
    status: Status | None = None
    asked = ""
    whole = False  # whether the state is one between two steps
    begun: dict[str, Any] | None = None  # what the certificate that is being taken found

    def check() -> str:
        """Certify the proposals, tell the callbacks; the reason if one wants to stop, else nothing."""
        nonlocal state
        proposals = solver.propose(run, state)
        certificates = []
        for proposal in proposals:
            certificate = certify(problem, proposal, run.hinge(proposal.weights))
            if not np.isfinite(certificate.primal):
                raise NonFiniteError("the objective became NaN or infinite")
            certificates.append(certificate)
            best.update(proposal, certificate)
        state = solver.observe(run, state, certificates)
        leading = min(range(len(proposals)), key=lambda i: certificates[i].primal)
        weights = proposals[leading].weights.view()
        weights.flags.writeable = False
        record = Record(
            iteration=counters.iterations,
            seconds=time.perf_counter() - began,
            certificate=best.certificate,
            primal=certificates[leading].primal,
            weights=weights,
            norm=norm(weights),
            argmax=counters.argmax,
            projections=counters.projections,
            limit=limit,
            tol=stop.tol,
        )
        # The history keeps figures, not weights: they would add up to iterations x weights in memory.
        history.append(replace(record, weights=np.zeros(0)))
        wants = [callback for callback in callbacks if callback(record)]
        return str(getattr(wants[0], "reason", "stopped by a callback")) if wants else ""

    def out_of_time() -> bool:
        return stop.max_seconds is not None and time.perf_counter() - began > stop.max_seconds

    def ending() -> bool:
        """Whether no step can follow."""
        return counters.iterations >= limit or (not solver.minimizes and solver.done(state)) or out_of_time()

    def found() -> dict[str, Any]:
        """What a certificate changes, as it stands; the state itself changes in steps only."""
        return {
            "state": state,
            "random": dict(run.random.bit_generator.state),
            "counters": replace(counters),
            "best": best.weights,
            "figures": best.figures,
            "history": tuple(history),
            "callbacks": remembered(callbacks),
            "warm": tuple(run.warm),
            "next_check": next_check,
            "asked": asked,
        }

    def moment() -> Moment:
        """The run as it stands; before the certificate that is being taken, which is taken anew from the file."""
        values = found() if begun is None else dict(begun)
        values["state"] = solver.freeze(values["state"])
        return Moment(**values, seconds=time.perf_counter() - began)

    def settle(last: bool) -> None:
        """Take the certificate if it is due or the last one, and save the run if it is time."""
        nonlocal asked, next_check, begun
        due = counters.iterations >= next_check
        if not due and not last:
            return
        begun = None if saver is None else found()
        reason = check() if watched or last else ""
        # A run that ends early may go on with a larger budget: only what was due moves the schedule.
        asked, next_check, begun = reason, _next_check(counters.iterations) if due else next_check, None
        if saver is not None:
            # What is no array cannot be saved; without it the run goes on as one from the file does.
            run.warm = [one if isinstance(one, np.ndarray) else None for one in run.warm]
            saver.keep(moment)

    def finish() -> None:
        """Save the run where it ends, unless that is in the middle of a step."""
        if saver is not None and whole:
            with contextlib.suppress(KeyboardInterrupt):  # the file that is there stands
                saver.finish(moment)

    try:
        if saver is not None and saved is not None:
            try:
                state = solver.thaw(run, saved.state)
                best.restore(None if saved.best is None else weight_sized(run, saved.best), saved.figures)
                run.random.bit_generator.state = saved.random
                run.warm = [None if one is None else np.array(one) for one in saved.warm]
                remind(callbacks, saved.callbacks)
            except CheckpointError:
                raise
            except (KeyError, TypeError, ValueError, OverflowError):
                raise saver.damaged() from None
            history, next_check, asked = list(saved.history), saved.next_check, saved.asked
            saved, whole = None, True
            certified = bool(history) and history[-1].iteration == counters.iterations
            if counters.iterations >= next_check or not certified:  # the run was cut before a certificate, or in one
                settle(ending())
        else:
            state = solver.init(run, start)
            whole = True
            settle(False)
        # Separable data bring the objective to 0, where only rounding of the first objective's size is left to close,
        # or of the losses' constants, which are large where scores of other weights are among the costs.
        rounding = _ROUNDING * max(abs(history[0].primal), abs(problem.constant)) if watched and history else 0.0
        while status is None:
            if best.certificate.relative_gap <= stop.tol or best.certificate.gap <= rounding:
                status = Status.CONVERGED
            elif asked:
                status = Status.STOPPED
            elif not solver.minimizes and (counters.iterations >= limit or solver.done(state)):
                status = Status.FINISHED
            elif counters.iterations >= limit or out_of_time():
                status = Status.BUDGET
            elif solver.minimizes and problem.region.certifies and _stalled(history):
                status = Status.STALLED
            else:
                # A run that is saved is interrupted between two steps, where it can be.
                with contextlib.nullcontext() if saver is None else after_this():
                    whole = False
                    if saver is not None:
                        saver.moved()
                    state = solver.step(run, state)
                    counters.iterations += 1
                    whole = True
                settle(ending())
        finish()
        if best.weights is None:
            check()
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        finish()
        if best.weights is None and state is not None:
            with contextlib.suppress(KeyboardInterrupt, NonFiniteError, InexactError):
                check()
    except NonFiniteError:
        status = Status.NONFINITE
    except InexactError:
        if best.weights is None:
            raise
        status = Status.INEXACT
    except Exception:  # a callback's own
        finish()
        raise
    finally:
        for callback in callbacks:
            if close := getattr(callback, "close", None):
                close()
    if best.weights is None:
        if status is Status.INTERRUPTED:
            raise KeyboardInterrupt("interrupted before the first certificate: there is nothing to return")
        raise ValueError(
            "the objective is not finite at the start: check the features, the costs and the start weights "
            "for NaN, infinite or very large numbers"
        )
    weights, certificate = np.array(best.weights), best.certificate
    whole = status in (Status.CONVERGED, Status.BUDGET, Status.STALLED, Status.STOPPED)
    if whole and solver.minimizes and problem.region.sparse:
        with contextlib.suppress(KeyboardInterrupt, InexactError):  # the run is over, and its weights are good
            weights, certificate = sparser(run, weights, certificate, 0.0 if solver.one_step else stop.tol)
    seconds = time.perf_counter() - began
    remedy = solver.remedy if problem.region.certifies else _UNREGULARIZED
    if status is Status.STALLED:
        remedy = solver.when_stalled(problem)
    return Solution(
        weights=weights,
        certificate=certificate,
        status=status,
        message=_message(status, certificate, stop, counters, seconds, remedy, asked),
        history=tuple(history),
        counters=counters,
        seconds=seconds,
        solver=solver,
        duals=solver.duals(state) if state is not None else None,
        potentials=solver.potentials(state) if state is not None else None,
        active_set=solver.active_set(state) if state is not None else None,
    )


def _stalled(history: list[Record]) -> bool:
    """Whether the second half of the run, at least 500 iterations of it, closed less than a thousandth of the gap.

    While the dual bound is still 0 a flat gap says nothing: the bound is cut off there.
    """
    now = history[-1]
    if now.iteration < 1000 or now.certificate.dual <= 0.0:
        return False
    earlier = [record.certificate.gap for record in history if record.iteration <= now.iteration // 2]
    return bool(earlier) and now.certificate.gap > 0.999 * earlier[-1]


def _message(
    status: Status, certificate: Certificate, stop: Stop, counters: Counters, seconds: float, remedy: str, asked: str
) -> str:
    times = f"{counters.iterations} iteration{'' if counters.iterations == 1 else 's'}"
    done = f"after {times} and {seconds:.1f} s: {certificate}, aim {stop.tol:g}"
    sentences = {
        Status.CONVERGED: f"converged {done}",
        Status.BUDGET: f"stopped at the budget before the gap closed, {done}; {remedy}",
        Status.STOPPED: f"{asked} {done}",
        Status.FINISHED: f"finished {done}; this method does not minimize the objective",
        Status.STALLED: f"the gap stopped shrinking {done}; {remedy}",
        Status.INTERRUPTED: f"interrupted {done}; the best weights so far are kept",
        Status.INEXACT: f"an argmax was not exact and certifies nothing {done}; the best weights so far are kept",
        Status.NONFINITE: f"numbers became NaN or infinite {done}; scale the features down; best weights so far kept",
    }
    return sentences[status]
