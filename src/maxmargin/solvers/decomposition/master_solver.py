"""Settings and states of methods that solve master problems over the points found so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from maxmargin import _checks
from maxmargin._vectors import dot
from maxmargin.optimization.certificate import Proposal
from maxmargin.optimization.checkpoints.saved import StateDict, count, vector
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.optimization.solver import Solver, Start
from maxmargin.solvers.decomposition.simplex_masters import Masters
from maxmargin.structures.base import SHARD_PARTS, FloatArray


@dataclass(frozen=True, kw_only=True)
class MasterSolver(Solver):
    """Settings of a method that solves master problems.

    Attributes:
        accuracy: a master is solved to this fraction of the gap that was found, below 1.
        joint: masters of at most this many points are solved at once, others example by example.
        sweeps: at most this many sweeps over the examples for one master.
        age: points that had no weight in this many of their masters are dropped; 0 keeps them.
        max_iter: limit of iterations when the caller gives none.
    """

    accuracy: float = 0.1
    joint: int = 300
    sweeps: int = 60
    age: int = 4
    max_iter: int = 1000
    needs = ("ridge",)
    shard_size = SHARD_PARTS
    shards_unsupported = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.number("accuracy", self.accuracy, above=0, below=1)
        _checks.integer("joint", self.joint, least=1)
        _checks.integer("sweeps", self.sweeps, least=1)
        _checks.integer("age", self.age, least=0)

    def propose(self, run: Run, state: Iterate) -> Sequence[Proposal]:
        """The master's solution; with a proximal term its center instead, where that ends the run."""
        bound, center = state.bound or (state.g, state.loss, state.squares), state.masters.center
        if center is not None and self.claims(run, state):
            return [Proposal(center.weights, *bound, hinge=center.hinge)]
        proposals = [Proposal(state.weights, *bound)]
        if center is not None and center.vanishes and state.dual <= 0.0:
            # In a ball that separates the data the optimum is zero, which longer weights reach at once.
            proposals.append(replace(proposals[0], weights=run.problem.region.project(2.0 * state.weights)))
        return proposals

    @property
    def checkpoint_unsupported(self) -> str:
        """Empty: all of it can be saved."""
        return ""

    def state_dict(self, state: Iterate) -> StateDict:
        """The points and their weights, and the center of the proximal term; all else is worked out from them."""
        return {
            **state.masters.state(),
            "weights": state.weights,
            "position": state.position,
            "added": state.added,
        }

    def load_state_dict(self, run: Run, saved: StateDict) -> Iterate:
        """The points again, once they are found below the most violated outputs."""
        state = self.init(run, Start())
        masters, n = state.masters, run.problem.n_examples
        weights = vector(saved, "weights", run.problem.n_weights)
        try:
            masters.restore(run, saved)
        except (ArithmeticError, TypeError) as error:
            raise ValueError(str(error)) from None
        g, loss, squares = masters.sums()
        masters.evaluate(weights)
        position, added = count(saved, "position", most=max(0, n - 1)), count(saved, "added")
        state = Iterate(masters, weights, g, loss, squares, position, added)
        masters.check(run, state)
        return state if run.counters.iterations == 0 else replace(state, bound=masters.released(state))

    def claims(self, run: Run, state: Iterate) -> bool:
        """Whether the gap of the center of a proximal term is within the tolerance."""
        center = state.masters.center
        return center is not None and center.value - state.dual <= run.tol * abs(center.value) < np.inf


@dataclass(frozen=True, eq=False)
class Iterate:
    """The state of a method: the master's solution. ``masters`` changes in place; the other fields do not.

    Attributes:
        masters: the points.
        weights: the best response to ``g``, or the start weights.
        g: ``sum_j q_j d_j``, shape ``(n_weights,)``.
        loss: ``sum_j q_j l_j``.
        squares: ``sum_i s_i zeta_i^2`` with quadratic slack, else 0.
        position: the next example of a cyclic working set.
        added: how many points the last round added.
        bound: ``g``, loss and squares without the force of a proximal term, where their dual is larger.
    """

    masters: Masters
    weights: FloatArray
    g: FloatArray
    loss: float = 0.0
    squares: float = 0.0
    position: int = 0
    added: int = 1
    bound: tuple[FloatArray, float, float] | None = None

    @classmethod
    def first(
        cls, run: Run, start: Start, group: int = 1, *, unit_rays: bool = False, proximal: bool = False
    ) -> Iterate:
        """The gold outputs with weight 1, at the start weights; settings as of :class:`Masters`."""
        run.caches_oracle = True
        problem = run.problem
        masters = Masters(problem, group, unit_rays=unit_rays, proximal=proximal)
        state = cls(masters, start.weights_for(problem), np.zeros(problem.n_weights))
        state.masters.evaluate(state.weights)
        return state

    @property
    def model(self) -> float:
        """The objective at the weights over the points found so far, or less by the gap of the master."""
        return self.loss - 0.5 * self.squares + dot(self.weights, self.g) + self.masters.region.penalty(self.weights)

    @property
    def dual(self) -> float:
        """The value of the dual problem."""
        return self.masters.region.dual(*(self.bound or (self.g, self.loss, self.squares)))

    def gap(self, hinge: float) -> float:
        """The gap at the weights, where ``H(w)`` is known."""
        return self.masters.region.penalty(self.weights) + hinge - self.dual

    def aim(self, run: Run, gap: float, accuracy: float) -> float:
        """To which gap a master is to be solved, given the gap found: no closer than the run's tolerance asks for."""
        center = self.masters.center
        if center is not None:
            return accuracy * max(min(gap, center.promised), 0.1 * run.tol * abs(center.value))
        return accuracy * max(gap, run.tol * self.dual, 0.0)

    def moved(self, age: int, *, position: int = 0, added: int = 1) -> Iterate:
        """The state after a master was solved; ``age`` as for :meth:`Masters.settle`."""
        masters = self.masters
        g, loss, squares = masters.settle(age)
        weights = masters.response(g)
        if not np.isfinite(weights).all():
            raise NonFiniteError("the weights became NaN or infinite")
        masters.evaluate(weights)
        state = Iterate(masters, weights, g, loss, squares, position, added)
        return replace(state, bound=masters.released(state))
