"""When a run stops, and the sentence that says how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from maxmargin import _checks
from maxmargin.optimization.callbacks import Record
from maxmargin.optimization.carry import Carry
from maxmargin.optimization.certificate import Certificate
from maxmargin.optimization.solver import Solver
from maxmargin.problem import BaseProblem

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
        object.__setattr__(self, "tol", _checks.number("tol", self.tol, least=0, hint="1e-3 is a good choice"))
        if self.max_iter is not None:
            limit = _checks.integer("max_iter", self.max_iter, least=1, hint="None takes the solver's own limit")
            object.__setattr__(self, "max_iter", limit)
        if self.max_seconds is not None:
            seconds = _checks.positive("max_seconds", self.max_seconds, infinite=True, hint="None sets no limit")
            object.__setattr__(self, "max_seconds", seconds)


@dataclass(frozen=True, eq=False)
class StopRules:
    """The rules that end a run of a solver between two steps."""

    problem: BaseProblem
    solver: Solver
    stop: Stop

    @property
    def limit(self) -> int:
        """The iteration limit."""
        return 1 if self.solver.direct else self.stop.max_iter or self.solver.max_iter

    def out_of_budget(self, carry: Carry) -> bool:
        """Whether iterations or time are used up."""
        late = self.stop.max_seconds is not None and carry.clock.seconds > self.stop.max_seconds
        return carry.iteration >= self.limit or late

    def finished(self, carry: Carry) -> bool:
        """Whether a method that does not minimize the objective has done its passes."""
        return not self.solver.minimizes and (carry.iteration >= self.limit or self.solver.done(carry.state))

    def last(self, carry: Carry) -> bool:
        """Whether no step can follow."""
        return self.finished(carry) or self.out_of_budget(carry)

    def status(self, carry: Carry) -> Status | None:
        """How the run ends here, or None if it continues."""
        best = carry.best.certificate
        if best.relative_gap <= self.stop.tol or best.gap <= best.rounding:
            return Status.CONVERGED
        if carry.asked:
            return Status.STOPPED
        if self.finished(carry):
            return Status.FINISHED
        if self.out_of_budget(carry):
            return Status.BUDGET
        if self.solver.minimizes and self.problem.region.certifies and stalled(carry.history):
            return Status.STALLED
        return None

    def message(self, status: Status, certificate: Certificate, carry: Carry) -> str:
        """The sentence that says how the run ended, and what to do."""
        remedy = self.solver.remedy if self.problem.region.certifies else _UNREGULARIZED
        times = f"{carry.iteration} iteration{'' if carry.iteration == 1 else 's'}"
        done = f"after {times} and {carry.clock.seconds:.1f} s: {certificate}, aim {self.stop.tol:g}"
        kept = "the best weights so far are kept"
        exact = ", as far as rounding errors allow" if certificate.relative_gap > self.stop.tol else ""
        return {
            Status.CONVERGED: f"converged{exact} {done}",
            Status.BUDGET: f"stopped at the budget before the gap closed, {done}; {remedy}",
            Status.STOPPED: f"{carry.asked} {done}",
            Status.FINISHED: f"finished {done}; this method does not minimize the objective",
            Status.STALLED: f"the gap stopped shrinking {done}; {self.solver.stalled_remedy(self.problem)}",
            Status.INTERRUPTED: f"interrupted {done}; {kept}",
            Status.INEXACT: f"an argmax was not exact and certifies nothing {done}; {kept}",
            Status.NONFINITE: f"numbers became NaN or infinite {done}; scale the features down; {kept}",
        }[status] + self.solver.remark(carry.run)


def stalled(history: Sequence[Record]) -> bool:
    """Whether the second half of the run, at least 500 iterations of it, closed less than a thousandth of the gap.

    While the dual bound is still 0 a flat gap says nothing: the bound is cut off there.
    """
    now = history[-1]
    if now.iteration < 1000 or now.certificate.dual <= 0.0:
        return False
    earlier = [record.certificate.gap for record in history if record.iteration <= now.iteration // 2]
    return bool(earlier) and now.certificate.gap > 0.999 * earlier[-1]
