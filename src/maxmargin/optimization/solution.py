"""The result of a run."""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.base import Counters, Solver
from maxmargin.optimization.callbacks import Record
from maxmargin.optimization.certificate import Certificate
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
