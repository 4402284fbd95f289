"""The reference solver: the joint convex program of the 2005 report (eq. 15), solved by Clarabel.

With the polytope written as ``z = M q, A q <= b, E q = e, q >= 0``, linear programming duality turns the inner maximum
into a minimum, and the whole problem into one convex program in the weights and the duals ``lambda >= 0, nu``:

    min  penalty(w) - w'Fy + b'lambda + e'nu    s.t.  M'(F'w + c) <= A'lambda + E'nu,   w in W

An interior-point method solves it to about 1e-9; its multipliers are q, hence z. Cost: a sparse factorization per
iteration whose size grows with all parts of all examples, so this is for small problems and for judging other solvers.

Other hinges (slack rescaled or not rescaled, with quadratic slack, or of several good outputs) have no such
description: there the constraints of all outputs are listed, see :mod:`maxmargin.solvers.reference.enumerated`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from maxmargin import _checks
from maxmargin._sparse import sp
from maxmargin.optimization.certificate import Proposal
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.optimization.solver import Solver, Start
from maxmargin.problem import BaseProblem, Problem
from maxmargin.solvers.reference import enumerated
from maxmargin.solvers.reference.conic import minimize
from maxmargin.structures.base import FloatArray, Polytope, Structure


@dataclass(frozen=True, eq=False)
class ExactState:
    """The proposal before and after the one step, and the structures player's point or the listed constraints."""

    proposal: Proposal
    z: FloatArray | None = None
    constraints: enumerated.Constraints | None = None


@dataclass(frozen=True, kw_only=True)
class Exact(Solver):
    """Settings of the reference solver.

    Attributes:
        accuracy: tolerance handed to the interior-point method.
        max_entries: refuse problems whose feature matrix has more entries than this.
        max_constraints: refuse problems with more outputs than this, where they must be listed.
    """

    accuracy: float = 1e-10
    max_entries: int = 20_000_000
    max_constraints: int = 20_000
    max_iter: int = 1
    direct = True
    needs = ("conic",)
    remedy = "the interior-point method got no further; scale the features, or use Extragradient"

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.positive("accuracy", self.accuracy)
        _checks.integer("max_entries", self.max_entries, least=1)
        _checks.integer("max_constraints", self.max_constraints, least=1)

    def unsupported(self, problem: BaseProblem) -> str | None:
        """Needs a linear description of the outputs, a known region, and a small problem."""
        if reason := super().unsupported(problem):
            return reason
        if problem.n_parts * problem.n_weights > self.max_entries:
            return (
                f"{problem.n_parts} parts x {problem.n_weights} weights is more than max_entries = "
                f"{self.max_entries}; use Extragradient or DualExtragradient, or raise max_entries"
            )
        if _lists(problem):
            return enumerated.unsupported(problem)
        if type(problem.kind).polytope is Structure.polytope:
            return f"{problem.kind.called} has no linear description of polynomial size; use Extragradient"
        return None

    @property
    def checkpoint_unsupported(self) -> str:
        """There is nothing to save before its only step is done."""
        return "it takes one step only; leave the checkpoint out, or use SimplicialDecomposition or DualExtragradient"

    def init(self, run: Run, start: Start) -> ExactState:
        """Nothing is known before the step but, where they are needed, the outputs."""
        weights = start.weights_for(run.whole)
        if _lists(run.whole):
            listed = enumerated.constraints(run, int(self.max_constraints))
            return ExactState(Proposal(weights, np.zeros(len(weights)), 0.0), constraints=listed)
        return _state(run.whole, weights, start.z_for(run))

    def step(self, run: Run, state: ExactState) -> ExactState:
        """Build the program, solve it, move the answer into the region and the polytope."""
        problem = run.whole
        if state.constraints is not None:
            return replace(state, proposal=enumerated.solve(problem, state.constraints, self.accuracy))
        polytope = problem.structure.polytope()
        if polytope is None:
            called = problem.structure.called
            raise ValueError(f"{called} has a linear description only where its examples are small; use Extragradient")
        w, q = _solve(problem, polytope, self.accuracy)
        if not (np.isfinite(w).all() and np.isfinite(q).all()):
            raise NonFiniteError("the interior-point method returned numbers that are not finite")
        # The multipliers are feasible to the solver's accuracy only; the projection makes them feasible to rounding.
        points = run.project(problem, np.asarray(polytope.lift @ np.maximum(q, 0.0)), tol=1e-8, warm=None)
        return _state(problem, problem.region.project(w), points.z)

    def propose(self, run: Run, state: ExactState) -> Sequence[Proposal]:
        """The solution."""
        return [state.proposal]

    def duals(self, run: Run, state: ExactState) -> FloatArray | None:
        """The multipliers as packed outputs, where the polytope's program was solved."""
        return state.z


def _state(problem: Problem, weights: FloatArray, z: FloatArray) -> ExactState:
    return ExactState(Proposal(weights, problem.gradient(z), problem.loss(z)), z)


def _lists(problem: BaseProblem) -> bool:
    """Whether the hinges have no description by the polytope, so that outputs are listed."""
    return not problem.bilinear


def _solve(problem: Problem, polytope: Polytope, accuracy: float) -> tuple[FloatArray, FloatArray]:
    m = polytope.lift.shape[1]
    scores = problem.features.to_sparse()
    if problem.example_weight is not None:
        scores = sp.csr_array(sp.diags_array(problem.structure.to_parts(problem.example_weight)) @ scores)
    n_ub, n_eq = polytope.ub.shape[0], polytope.eq.shape[0]
    eq = polytope.eq if n_eq else sp.csr_array((0, m))
    # Variables: weights, lambda, nu.
    rows = sp.vstack(
        [
            sp.hstack([polytope.lift.T @ scores, -polytope.ub.T, -eq.T]),
            sp.hstack([sp.csr_array((n_ub, problem.n_weights)), -sp.eye_array(n_ub), sp.csr_array((n_ub, n_eq))]),
        ]
    )
    w, multipliers = minimize(
        problem.region,
        np.concatenate([-problem.gold_features, polytope.ub_rhs, polytope.eq_rhs]),
        np.zeros(n_ub + n_eq),
        rows,
        np.concatenate([-(polytope.lift.T @ problem.costs), np.zeros(n_ub)]),
        accuracy,
    )
    return w, multipliers[:m]
