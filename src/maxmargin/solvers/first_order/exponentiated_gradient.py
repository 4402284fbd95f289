"""Exponentiated gradient on the dual (Bartlett, Collins, Taskar and McAllester 2004; Collins et al. 2008).

The dual of the penalty form, margin rescaled and with linear slack, is

    max_p D(z) = sum_i (c_i'z_i + d_i) + min_{w in W} w'g(z) + 1/(2C) ||w||^2,     z_i = E_{p_i}[y]

over one distribution ``p_i`` per example. Its gradient in ``z_i`` is ``F_i'w + c_i`` at ``w = w(z)``, the weights that
attain the minimum. Distributions are kept as potentials, ``p_i(y) ~ exp(theta_i'y)``, so that a step of relative
entropy geometry is an addition and its marginals one sum-product pass:

    theta_i <- theta_i + eta (F_i'w + c_i)

for the examples of a block, after which ``w`` is brought up to date. One block holds all examples (``online=False``,
the batch form of 2004) or ``block_size`` consecutive ones, visited in random order (``online=True``, 2008, which
updates single examples; blocks keep the work in compiled code). Every block has its own step size: it grows after
a step that improved the dual and is halved until one does, so no worse dual is ever accepted.

Such explicit steps must be small where ``C ||F_i||^2`` is large: with features in the hundreds and ``C = 1`` the gap
stands still. Implicit steps, at the weights of the step's end, have no such limit
(:mod:`maxmargin.solvers.first_order.implicit_steps`). Online steps are faster on easy problems, so a run begins with
them and starts over with implicit ones when its gap falls more slowly than the theory of small steps promises.

Cost per iteration: a pass over all blocks, with one sum-product pass and one pass over the features each way per
attempted step, and ``O(n_weights)`` per block, so blocks are larger where weights are many. Memory: two packed vectors.
Stopping test: the certified gap of
``w(z)`` and ``z``. The dual gap falls like ``1/t`` at least (Collins et al. 2008, theorem 1), for enough small steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from maxmargin import _checks
from maxmargin._vectors import dot
from maxmargin.optimization.certificate import Certificate, Proposal
from maxmargin.optimization.checkpoints.saved import StateDict, array, number, require, vector
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.optimization.solver import Solver, Start
from maxmargin.problem import BaseProblem, Problem
from maxmargin.solvers.first_order import implicit_steps
from maxmargin.solvers.first_order.implicit_steps import ImplicitState
from maxmargin.solvers.first_order.players import GibbsStructures
from maxmargin.solvers.first_order.saddle_point import begin
from maxmargin.structures._arrays import pieces
from maxmargin.structures.base import FloatArray, IntArray

SMALL_BLOCK = 8
"""Examples in a block of the online form where weights are few."""

ROOM = 1 << 26
"""Weights times blocks: each step of a block takes vectors of all weights, and each block keeps a table of the features
that its examples have, by weight."""

HALVINGS = 12
"""Attempts at a block's step before it is left as it is for a pass, with the smallest step tried."""

PATIENCE, FALL, FAR = 16, 0.7, 0.9
"""From this iteration on explicit steps go on only while the gap is at most ``FALL`` of that at half the iterations (a
gap that falls like ``1/t`` halves), and at most ``FAR`` of the objective (with large features the objective falls from
huge numbers, and the gap with it, without any progress of the bound)."""


_AGREEMENT = 1e-6
"""Share by which sums that are kept up to date may differ from those that are computed again."""


@dataclass(frozen=True, eq=False)
class ExponentiatedGradientState:
    """Potentials, marginals and step sizes block by block, and the sums that certificates need.

    Attributes:
        blocks: the problem in pieces of consecutive examples, and ``parts``: the parts of each.
        potentials: of every block, packed as its own batch.
        z: their marginals.
        eta: the next step size of every block.
        g: ``g(z)`` of the whole problem.
        loss: ``sum_i s_i (c_i'z_i + d_i)``.
        gaps: the iterations of the certificates so far with the smallest gap up to there.
    """

    blocks: tuple[Problem, ...]
    parts: tuple[IntArray | slice, ...]
    potentials: tuple[FloatArray, ...]
    z: tuple[FloatArray, ...]
    eta: tuple[float, ...]
    g: FloatArray
    loss: float
    gaps: tuple[tuple[int, float], ...] = ()


EGState = ExponentiatedGradientState | ImplicitState


@dataclass(frozen=True, kw_only=True)
class ExponentiatedGradient(Solver):
    """Settings of exponentiated gradient.

    Attributes:
        online: update the weights after every block of examples, in random order; False updates all at once.
        block_size: examples in a block of the online form; "auto" for 8, or more where there are so many weights that
            the vectors of all blocks would take more than :data:`ROOM` numbers.
        eta: the first step size; "auto" lets the largest potential of each block move by 1.
        growth: factor by which a block's step grows after it improved the dual; 1 never lets it grow.
        implicit: take the weights of a step's end, for all examples at once, so that no step is too long: True, False,
            or "auto" for only where explicit steps turn out too short. Needs a ridge penalty without a ball.
        max_iter: iteration limit when the caller gives none, in passes over all examples.
    """

    online: bool = True
    block_size: int | Literal["auto"] = "auto"
    eta: float | Literal["auto"] = "auto"
    growth: float = 1.2
    implicit: bool | Literal["auto"] = "auto"
    max_iter: int = 1000
    needs = ("strongly_convex",)
    takes_rescaling = ("margin",)
    takes_good = False
    takes_slack = ("linear",)

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.number("growth", self.growth, least=1)
        if not _checks.is_one_of(self.block_size, "auto"):
            _checks.integer("block_size", self.block_size, least=1)
        if not _checks.is_one_of(self.eta, "auto"):
            _checks.positive("eta", self.eta)
        if not _checks.is_one_of(self.implicit, "auto"):
            _checks.flag("implicit", self.implicit)

    def unsupported(self, problem: BaseProblem) -> str | None:
        """Needs a sum-product kernel and a smooth dual."""
        if problem.kind.marginals_unsupported:
            return f"{problem.kind.called} has no distributions to update; use Extragradient or DualExtragradient"
        reason = super().unsupported(problem)
        return implicit_steps.unsupported(problem) if reason is None and self.implicit is True else reason

    def stalled_remedy(self, problem: BaseProblem) -> str:
        """Distributions come near to the vertices of a simplex slowly; methods over outputs reach them."""
        return "scale the features, use SimplicialDecomposition, or raise tol"

    def init(self, run: Run, start: Start) -> EGState:
        """The uniform distributions, or those of the given potentials, softened unless they are nearly a solution."""
        problem = run.whole
        begin(run, GibbsStructures(0.0), start)
        (memory,) = run.memories()
        run.remember([None])
        point = memory["now"]
        if self.implicit is True:
            return self._implicit(run, point.coordinates)
        blocks, parts = self._blocks(problem)
        potentials, z = (tuple(packed[own] for own in parts) for packed in (point.coordinates, point.z))
        g = problem.gradient(point.z)
        eta = tuple(float(self.eta) for _ in blocks) if self.eta != "auto" else _first_steps(blocks, _response(run, g))
        return ExponentiatedGradientState(blocks, parts, potentials, z, eta, g, problem.loss(point.z))

    def _blocks(self, problem: Problem) -> tuple[tuple[Problem, ...], tuple[IntArray | slice, ...]]:
        """The problem in blocks of consecutive examples, and the parts of each."""
        n, size = problem.structure.n_examples, self._block_size(problem)
        if not self.online or n <= size:
            return (problem,), (slice(None),)
        chosen = list(pieces(np.ones(n, dtype=np.int64), size))
        blocks = tuple(problem.select(numbers) for numbers in chosen)
        return blocks, tuple(problem.structure.parts_of(numbers) for numbers in chosen)

    def _block_size(self, problem: Problem) -> int:
        """Examples in a block."""
        if self.block_size != "auto":
            return int(self.block_size)
        return max(SMALL_BLOCK, -(-problem.structure.n_examples * problem.n_weights // ROOM))

    def _implicit(self, run: Run, potentials: FloatArray) -> ImplicitState:
        """The first implicit step."""
        zero = np.zeros(run.whole.n_weights)
        eta = _first_steps((run.whole,), zero)[0] if self.eta == "auto" else float(self.eta)
        return implicit_steps.start(run, potentials, zero, eta)

    def step(self, run: Run, state: EGState) -> EGState:
        """One pass over the blocks, or one trial of an implicit step."""
        if isinstance(state, ImplicitState):
            return implicit_steps.step(run, state)
        potentials, z, eta = list(state.potentials), list(state.z), list(state.eta)
        g, loss = state.g, state.loss
        w = _response(run, g)
        dual = _dual(run, w, g, loss)
        for b in run.random.permutation(len(state.blocks)).tolist():
            block = state.blocks[b]
            ascent = block.augmented(w)
            for attempt in range(HALVINGS):
                moved = potentials[b] + eta[b] * ascent
                points = run.marginals(block, moved)
                new_g = g + block.feature_sum(points.z - z[b])
                new_loss = loss + block.loss(points.z) - block.loss(z[b])
                new_w = _response(run, new_g)
                new_dual = _dual(run, new_w, new_g, new_loss)
                if not np.isfinite(new_dual):
                    raise NonFiniteError("the dual is not finite")
                if new_dual >= dual:
                    potentials[b], z[b] = moved, points.z
                    g, loss, w, dual = new_g, new_loss, new_w, new_dual
                    eta[b] *= self.growth if attempt == 0 else 1.0
                    break
                eta[b] *= 0.5
        return replace(state, potentials=tuple(potentials), z=tuple(z), eta=tuple(eta), g=g, loss=loss)

    def observe(self, run: Run, state: EGState, certificates: Sequence[Certificate]) -> EGState:
        """Start over with implicit steps where explicit ones are too short."""
        if isinstance(state, ImplicitState) or self.implicit != "auto" or implicit_steps.unsupported(run.whole):
            return state
        now, best = run.counters.iterations, min(one.gap for one in certificates)
        gaps = (*state.gaps, (now, min([best, *(gap for _, gap in state.gaps[-1:])])))
        before = [gap for iteration, gap in gaps if iteration <= now // 2]
        far = min(one.relative_gap for one in certificates) > FAR
        if now >= PATIENCE and (far or gaps[-1][1] > FALL * before[-1]):
            return self._implicit(run, np.zeros(run.whole.structure.n_parts))
        return replace(state, gaps=gaps)

    def propose(self, run: Run, state: EGState) -> Sequence[Proposal]:
        """The distributions' marginals and their best-response weights; the sums are recomputed, free of drift.

        In an implicit step its weights, and the marginals with the best bound.
        """
        if isinstance(state, ImplicitState):
            _, g, loss = state.bound
            return [Proposal(state.trial.weights, g, loss)]
        g, loss = -run.whole.gold_features, 0.0
        for block, z in zip(state.blocks, state.z, strict=True):
            g = g + block.feature_sum(z)
            loss += block.loss(z)
        return [Proposal(_response(run, g), g, loss)]

    @property
    def checkpoint_unsupported(self) -> str:
        """Empty: all of it can be saved."""
        return ""

    def state_dict(self, state: EGState) -> StateDict:
        """Potentials, steps and sums; marginals are worked out again."""
        if isinstance(state, ImplicitState):
            return implicit_steps.state_dict(state)
        return {
            "potentials": _join(state, state.potentials),
            "eta": np.array(state.eta),
            "g": state.g,
            "loss": state.loss,
            "gaps": np.array(state.gaps, dtype=np.float64).reshape(len(state.gaps), 2),
        }

    def load_state_dict(self, run: Run, saved: StateDict) -> EGState:
        """The marginals of the saved potentials, once the sums are found to be theirs."""
        if "center" in saved:
            return implicit_steps.load_state_dict(run, saved)
        problem, uncounted = run.whole, run.uncounted()
        blocks, parts = self._blocks(problem)
        packed = vector(saved, "potentials", problem.structure.n_parts)
        potentials = tuple(np.ascontiguousarray(packed[own]) for own in parts)
        z = tuple(uncounted.marginals(block, own).z for block, own in zip(blocks, potentials, strict=True))
        eta, gaps = vector(saved, "eta", len(blocks)), array(saved, "gaps", np.float64, (None, 2))
        require((eta > 0.0).all(), "its steps are not positive")
        at = gaps[:, 0]
        rising = (at == np.floor(at)).all() and (np.diff(at) >= 0.0).all() and (gaps >= 0.0).all()
        require(rising and (at <= run.counters.iterations).all(), "its gaps are not those of its iterations")
        g, loss = vector(saved, "g", problem.n_weights), number(saved, "loss")
        state = ExponentiatedGradientState(
            blocks,
            parts,
            potentials,
            z,
            tuple(eta.tolist()),
            g,
            loss,
            tuple((int(one), gap) for one, gap in gaps.tolist()),
        )
        sums = self.propose(run, state)[0]
        near = _AGREEMENT * (1.0 + np.abs(sums.g).max(initial=0.0) + abs(sums.loss))
        agrees = np.abs(g - sums.g).max(initial=0.0) <= near and abs(loss - sums.loss) <= near
        require(agrees, "its sums are not those of its potentials")
        return state

    def duals(self, run: Run, state: EGState) -> FloatArray:
        """The marginals."""
        return state.trial.z if isinstance(state, ImplicitState) else _join(state, state.z)

    def potentials(self, run: Run, state: EGState) -> FloatArray:
        """The potentials of all examples."""
        return state.trial.potentials if isinstance(state, ImplicitState) else _join(state, state.potentials)


def _response(run: Run, g: FloatArray) -> FloatArray:
    """``argmin_{w in W} w'g + penalty(w)``, unique as the penalty is strongly convex."""
    w = run.whole.region.best_response(g)
    assert w is not None
    return w


def _dual(run: Run, w: FloatArray, g: FloatArray, loss: float) -> float:
    """``D`` at the point of ``g`` and ``loss``, ``w`` its response."""
    return loss + dot(w, g) + run.whole.region.penalty(w)


def _first_steps(blocks: tuple[Problem, ...], weights: FloatArray) -> tuple[float, ...]:
    """Steps that move the largest potential of each block by 1."""
    largest = (float(np.abs(block.augmented(weights)).max(initial=0.0)) for block in blocks)
    return tuple(1.0 / size if size > 0.0 else 1.0 for size in largest)


def _join(state: ExponentiatedGradientState, pieces: tuple[FloatArray, ...]) -> FloatArray:
    """The packed vector of the whole batch from one of every block."""
    whole = np.empty(sum(map(len, pieces)))
    for parts, piece in zip(state.parts, pieces, strict=True):
        whole[parts] = piece
    return whole
