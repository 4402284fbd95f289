"""The referee: the joint convex program of the 2005 report (eq. 15), solved by Clarabel.

With the polytope written as ``z = M q, A q <= b, E q = e, q >= 0``, linear programming duality turns the inner maximum
into a minimum, and the whole problem into one convex program in the weights and the duals ``lambda >= 0, nu``:

    min  penalty(w) - w'Fy + b'lambda + e'nu    s.t.  M'(F'w + c) <= A'lambda + E'nu,   w in W

An interior-point method solves it to about 1e-9; its multipliers are q, hence z. Cost: a sparse factorisation per
iteration whose size grows with all parts of all examples, so this is for small problems and for judging other solvers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.problem import Problem
from maxmargin.regions import L1, L2, Region
from maxmargin.solvers.base import NonFiniteError, Run, Solver, Start, check_positive, saddle_point_only
from maxmargin.solvers.certificate import Proposal
from maxmargin.structures.base import FloatArray, Polytope, Structure


@dataclass(frozen=True, eq=False)
class ExactState:
    """Weights and the structures player's point, before and after the one step."""

    weights: FloatArray
    z: FloatArray


@dataclass(frozen=True, kw_only=True)
class Exact(Solver):
    """Settings of the reference solver.

    Attributes:
        accuracy: tolerance handed to the interior-point method.
        max_entries: refuse problems whose feature matrix has more entries than this.
    """

    accuracy: float = 1e-10
    max_entries: int = 20_000_000
    max_iter: int = 1
    one_step = True
    remedy = "the interior-point method got no further; scale the features, or use Extragradient"

    def __post_init__(self) -> None:
        check_positive(accuracy=self.accuracy, max_entries=self.max_entries)

    def why_not(self, problem: Problem) -> str | None:
        """Needs a linear description of the outputs, a known region, and a small problem."""
        if not isinstance(problem.region, (L1, L2)):
            return f"it knows L1 and L2 balls and penalties and signs, not {type(problem.region).__name__}"
        if reason := saddle_point_only(problem):
            return reason
        if problem.structure.n_parts * problem.n_weights > self.max_entries:
            return (
                f"{problem.structure.n_parts} parts x {problem.n_weights} weights is more than max_entries = "
                f"{self.max_entries}; use Extragradient or DualExtragradient, or raise max_entries"
            )
        if type(problem.structure).polytope is Structure.polytope:
            return f"a {problem.structure.name} has no linear description of polynomial size; use Extragradient"
        return None

    def init(self, run: Run, start: Start) -> ExactState:
        """Nothing is known before the step."""
        return ExactState(start.weights_for(run.problem), start.z_for(run.problem))

    def step(self, run: Run, state: ExactState) -> ExactState:
        """Build the program, solve it, move the answer into the region and the polytope."""
        problem = run.problem
        polytope = problem.structure.polytope()
        assert polytope is not None
        w, q = _solve(problem, problem.region, polytope, self.accuracy)
        if not (np.isfinite(w).all() and np.isfinite(q).all()):
            raise NonFiniteError("the interior-point method returned numbers that are not finite")
        # The multipliers are feasible to the solver's accuracy only; the projection makes them feasible to rounding.
        points = run.project(problem, np.asarray(polytope.lift @ np.maximum(q, 0.0)), tol=1e-8, warm=None)
        return ExactState(problem.region.project(w), points.z)

    def propose(self, run: Run, state: ExactState) -> Sequence[Proposal]:
        """The solution."""
        return [Proposal(state.weights, run.problem.gradient(state.z), run.problem.loss(state.z))]

    def duals(self, state: ExactState) -> FloatArray:
        """The multipliers as packed outputs."""
        return state.z


def _solve(problem: Problem, region: Region, polytope: Polytope, accuracy: float) -> tuple[FloatArray, FloatArray]:
    import clarabel

    n, m = problem.n_weights, polytope.lift.shape[1]
    scores = problem.features.to_sparse()
    if problem.example_weight is not None:
        scores = sp.csr_array(sp.diags_array(problem.structure.to_parts(problem.example_weight)) @ scores)
    n_ub, n_eq = polytope.ub.shape[0], polytope.eq.shape[0]
    eq = polytope.eq if n_eq else sp.csr_array((0, m))
    # Variables: weights, lambda, nu and, for L1 norms, bounds t >= |w|.
    n_t = n if isinstance(region, L1) else 0
    sizes = (n, n_ub, n_eq, n_t)
    quadratic = sp.diags_array(np.concatenate([np.full(n, region.curvature), np.zeros(n_ub + n_eq + n_t)]))
    price = region.price if isinstance(region, L1) else 0.0
    linear = np.concatenate([-problem.gold_features, polytope.ub_rhs, polytope.eq_rhs, np.full(n_t, price)])

    def rows_of(*blocks: Any) -> Any:
        """One block of constraint rows; None stands for zeros."""
        count = next(block.shape[0] for block in blocks if block is not None)
        filled = [sp.csr_array((count, k)) if b is None else b for b, k in zip(blocks, sizes, strict=True)]
        return sp.hstack(filled)

    rows: list[Any] = [
        rows_of(polytope.lift.T @ scores, -polytope.ub.T, -eq.T, None),
        rows_of(None, -sp.eye_array(n_ub), None, None),
    ]
    rhs = [-(polytope.lift.T @ problem.costs), np.zeros(n_ub)]
    if region.nonnegative is not None and region.nonnegative.any():
        signed = np.flatnonzero(region.nonnegative)
        rows.append(rows_of(-sp.eye_array(n, format="csr")[signed], None, None, None))
        rhs.append(np.zeros(len(signed)))
    if isinstance(region, L1):
        rows += [rows_of(sign * sp.eye_array(n), None, None, -sp.eye_array(n)) for sign in (1.0, -1.0)]
        rhs.append(np.zeros(2 * n))
        if np.isfinite(region.radius):
            rows.append(rows_of(None, None, None, sp.csr_array(np.ones((1, n)))))
            rhs.append(np.array([region.radius]))
    cones: list[Any] = [clarabel.NonnegativeConeT(sum(block.shape[0] for block in rows))]
    if isinstance(region, L2) and np.isfinite(region.radius):
        rows.append(rows_of(sp.vstack([sp.csr_array((1, n)), -sp.eye_array(n)]), None, None, None))
        rhs.append(np.concatenate([[region.radius], np.zeros(n)]))
        cones.append(clarabel.SecondOrderConeT(n + 1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy
    program = clarabel.DefaultSolver(
        sp.csc_matrix(quadratic), linear, sp.csc_matrix(sp.vstack(rows)), np.concatenate(rhs), cones, settings
    )
    answer = program.solve()
    return np.asarray(answer.x)[:n], np.asarray(answer.z)[:m]
