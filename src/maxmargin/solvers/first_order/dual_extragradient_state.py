"""The state of the dual extragradient method, and its form in checkpoints.

Weights and vectors of their space are in the form of the run's :class:`WeightVectors`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.optimization.certificate import Proposal
from maxmargin.optimization.checkpoints.saved import StateDict, array, count, number, part_of, require
from maxmargin.optimization.run import Run
from maxmargin.solvers.first_order.players import WeightsPoint
from maxmargin.solvers.first_order.saddle_point import Average
from maxmargin.solvers.first_order.saved_points import average_dict, load_average, load_weights, weights_dict
from maxmargin.solvers.first_order.weight_vectors import ImpliedWeights, WeightVectors
from maxmargin.structures.base import FloatArray

_BEFORE = "before."
"""The beginning of names that belong to the state before the last step."""


@dataclass(frozen=True, eq=False)
class Epoch:
    """The time since the last restart: where it began, the gap there, and the balance it uses.

    Attributes:
        weights: where the weights player began.
        proposal: that beginning as a candidate for certification.
        balance: ratio of the players' steps.
        gap: the certified gap of the beginning.
    """

    weights: WeightsPoint
    proposal: Proposal
    balance: float
    gap: float = np.inf


@dataclass(frozen=True, eq=False)
class Last:
    """The results of the last step that later steps need.

    Attributes:
        weights: ``u_w``.
        proposal: ``u`` as a candidate for certification.
        eta: its step.
        turn: ``G_w(u) - G_w(v)`` and ``u_w - v_w``; None unless steps are adaptive.
        log_partition: of ``u_z``, summed.
        divergence: ``d(v, u)``, balanced; for adaptive steps, 0 otherwise.
    """

    weights: WeightsPoint
    proposal: Proposal
    eta: float
    turn: tuple[FloatArray, FloatArray] | None
    log_partition: float
    divergence: float


@dataclass(frozen=True, eq=False)
class DualExtragradientState:
    """The accumulated gradients ``s = sum eta G(u)``, the average of ``u``, the last ``u`` and the step size.

    ``before`` is the state before the last step, in case that turns out too long, and ``credit`` what adaptive steps
    have left over of the proof's allowance. Where duals are stored, the structures player's vectors are with the data,
    by the number of the step that made them: ``now`` is that of this state's.
    """

    vectors: WeightVectors
    epoch: Epoch
    average: Average
    sum_w: FloatArray
    eta: float
    last: Last | None = None
    before: DualExtragradientState | None = None
    credit: float = 0.0
    now: int = 0
    iteration: int = 0

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those of this state's vectors and of the state before."""
        return (self.now,) if self.before is None else (self.now, self.before.now)


def state_dict(state: DualExtragradientState) -> StateDict:
    """A state without what is with the data, as arrays and numbers, with the one before if that is kept."""
    epoch, last, vectors = state.epoch, state.last, state.vectors
    found: StateDict = {name: getattr(state, name) for name in ("sum_w", "eta", "credit", "now", "iteration")}
    found |= average_dict(state.average) | {"epoch.balance": epoch.balance, "epoch.gap": epoch.gap}
    for name, one in (("epoch", epoch), ("last", last)):
        if one is not None:
            found |= {f"{name}.g": one.proposal.g, f"{name}.loss": one.proposal.loss}
            found |= weights_dict(name, one.weights)
    if last is not None:
        found |= {f"last.{name}": getattr(last, name) for name in ("eta", "log_partition", "divergence")}
        found |= {} if last.turn is None else {"last.turn": last.turn[0], "last.moved": last.turn[1]}
    if isinstance(vectors, ImpliedWeights) and vectors.origin is not None:
        found["origin"] = vectors.origin
    before = {} if state.before is None else state_dict(state.before)
    return found | {_BEFORE + name: value for name, value in before.items()}


def load_state_dict(run: Run, vectors: WeightVectors, saved: StateDict) -> DualExtragradientState:
    """The inverse of :func:`state_dict`."""
    shape = vectors.zero().shape

    def vector(name: str) -> FloatArray:
        found: FloatArray = array(saved, name, np.float64, shape)
        return found

    def point(name: str) -> tuple[WeightsPoint, Proposal]:
        at = load_weights(saved, name, vectors.player, shape)
        return at, Proposal(at.weights, vector(f"{name}.g"), number(saved, f"{name}.loss"))

    w, proposal = point("epoch")
    last = None
    if "last.eta" in saved:
        u_w, found = point("last")
        eta, log_partition, divergence = (
            number(saved, f"last.{name}") for name in ("eta", "log_partition", "divergence")
        )
        turn = (vector("last.turn"), vector("last.moved")) if "last.turn" in saved else None
        last = Last(u_w, found, eta, turn, log_partition, divergence)
    before = part_of(saved, _BEFORE)
    require(not any(name.startswith(_BEFORE) for name in before), "it has more than one state before the last step")
    balance, eta = number(saved, "epoch.balance", least=0), number(saved, "eta", least=0)
    require(balance > 0.0 and eta > 0.0, "its steps are not positive")
    gap = number(saved, "epoch.gap", infinite=True)
    require(gap > -np.inf, "its gap is infinite")
    iteration = count(saved, "iteration", most=run.counters.iterations)
    return DualExtragradientState(
        vectors=vectors,
        epoch=Epoch(w, proposal, balance, gap),
        average=load_average(saved, shape),
        sum_w=vector("sum_w"),
        eta=eta,
        last=last,
        before=load_state_dict(run, vectors, before) if before else None,
        credit=number(saved, "credit"),
        now=count(saved, "now", most=iteration),
        iteration=iteration,
    )
