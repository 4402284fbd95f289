"""The result of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from maxmargin import _checks
from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.callbacks import Record
from maxmargin.optimization.certificate import Certificate, Responses
from maxmargin.optimization.run import Counters
from maxmargin.optimization.solver import Solver
from maxmargin.optimization.stopping import Status
from maxmargin.structures.base import FloatArray


@dataclass(frozen=True, eq=False)
class Solution:
    """The weights of a run and their certificate.

    Attributes:
        weights: the weights with the smallest certified objective, shape ``(n_weights,)``.
        certificate: primal of those weights, largest dual seen.
        status: how the run ended, and ``message``: the sentence that says so.
        history: one record per certificate.
        counters: passes and projections done.
        seconds: wall-clock time.
        solver: the settings that ran; ``why``: why they were chosen, if the library chose.
        duals: the structures player's packed point, if the solver stores one; ``potentials``: those of its
            distributions, in entropic geometry; ``active_set``: its outputs with their weights, if the solver keeps
            them.
        responses: without a finite C or radius, what :meth:`restricted_gap` needs of the structures player's points.
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
    responses: Responses = field(default_factory=Responses)

    def restricted_gap(self, radius: float) -> float:
        """A bound on how much lower the hinge loss of weights no longer than ``radius`` can be than that of these.

        For runs without a finite C or radius, whose gap is just the hinge loss: the 2005 report's restricted gap with
        ``D_w = radius^2 / 2`` around zero weights and all outputs, which grows with the radius. Negative if these
        weights are better than all weights so short. ``certificate.restricted_gap`` has it for their own length.
        """
        _checks.number("radius", radius, least=0, hint="the length of the weights to compare with")
        if not len(self.responses):
            raise ValueError(
                "a restricted gap needs a run without a finite C or radius, of a solver with dual points; with a C or "
                "a radius certificate.gap bounds the distance to the optimum"
            )
        return self.certificate.hinge - self.responses.dual(float(radius))
