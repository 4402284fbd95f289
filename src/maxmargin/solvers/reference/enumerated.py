"""The reference for every hinge: the quadratic program over the constraints of all outputs, listed one by one.

With the factors ``m_i`` and losses ``l_i`` of :mod:`maxmargin.problem.hinges`, one row for each output ``y`` of each
example:

    min  penalty(w) + sum_i s_i xi_i  (or s_i xi_i^2 / 2)   s.t.  m_i(y) w'df_i(y) + l_i(y) <= xi_i,  xi_i >= 0,  w in W

The multipliers ``alpha_i(y) >= 0`` of the rows are the outputs' dual variables: they sum to ``s_i`` at most with linear
slack, and to ``s_i zeta_i`` with quadratic slack. Clipped, and scaled to that sum where it is passed, they are feasible
as they are, so that ``g = sum alpha m df``, ``loss = sum alpha l`` and ``squares = sum_i (sum_y alpha_i(y))^2 / s_i``
make a certificate. Outputs are listed by ``k_best`` of zero scores; their number grows exponentially with an example's
size, so this is for tiny examples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._sparse import sp
from maxmargin.optimization.certificate import Proposal
from maxmargin.optimization.run import NonFiniteError, Run
from maxmargin.optimization.solver import alternatives
from maxmargin.problem import BaseProblem, Problem
from maxmargin.solvers.reference.conic import minimize
from maxmargin.structures.base import FloatArray, IntArray, PointStatus, Structure


@dataclass(frozen=True, eq=False)
class Constraints:
    """One row for each output that can violate the margin.

    Attributes:
        rows: ``m_i(y) df_i(y)``, sparse, shape ``(n_constraints, n_weights)``.
        loss: ``l_i(y)``, shape ``(n_constraints,)``.
        owner: the example of each row.
    """

    rows: sp.csr_array
    loss: FloatArray
    owner: IntArray


def unsupported(problem: BaseProblem) -> str | None:
    """The reason why hinges are not maxima over outputs that can be listed, or None."""
    structure = problem.kind
    if structure.relaxed or (problem.rescaling == "slack" and structure.slack_relaxed):
        return (
            f'with rescaling="{problem.rescaling}" and slack="{problem.slack}" it lists all outputs, but the hinges of '
            f"{structure.called} are relaxed to a larger set; use {alternatives(problem)}"
        )
    return None


def constraints(run: Run, limit: int) -> Constraints:
    """List the outputs of all examples; ValueError where there are more than ``limit``."""
    problem = run.whole
    structure, features = problem.structure, problem.features.to_sparse()
    costs, constants, gold = problem.costs, problem.constants, problem.gold
    rows, losses, owners = [], [], []
    room = limit
    for i in np.flatnonzero(problem.scale > 0.0).tolist():
        at = structure.parts_of([i])
        z = (
            _outputs(run, structure.select([i]), room)
            if problem.good is None
            else gold[at] + problem.good.pairs(structure, i)
        )
        if z is None or len(z) > room:
            raise ValueError(
                f"Exact cannot solve this problem: the examples up to number {i} have more outputs than "
                f"max_constraints = {limit}; use {alternatives(problem)}, or raise max_constraints"
            )
        room -= len(z)
        delta = z - gold[at]
        wrong = (delta != 0.0).any(axis=1)
        # The costs hold the example weights, which the objective brings in once more.
        loss = (z @ costs[at] + constants[i]) / problem.scale[i]
        if problem.rescaling == "none":
            loss = np.ones(len(z))
        kept = wrong & ((loss > 0.0) | (problem.rescaling == "margin"))
        factor = loss[kept] if problem.rescaling == "slack" else np.ones(int(kept.sum()))
        rows.append(sp.csr_array(sp.diags_array(factor) @ (sp.csr_array(delta[kept]) @ features[at])))
        losses.append(loss[kept])
        owners.append(np.full(int(kept.sum()), i))
    if not rows:
        return Constraints(sp.csr_array((0, problem.n_weights)), np.zeros(0), np.zeros(0, dtype=np.int64))
    return Constraints(sp.csr_array(sp.vstack(rows)), np.concatenate(losses), np.concatenate(owners))


def _outputs(run: Run, one: Structure, limit: int) -> FloatArray | None:
    """All outputs of a batch of one example, one per row; None where there are more than ``limit``."""
    k = 64
    while True:
        run.counters.argmax += 1 / run.whole.structure.n_examples
        ranks = one.k_best(np.zeros(one.n_parts), min(k, limit + 1))
        found = [points.z for points in ranks if points.status[0] == PointStatus.OK]
        if len(found) > limit:
            return None
        if len(found) < min(k, limit + 1):
            return np.array(found).reshape(len(found), one.n_parts)
        k *= 8


def solve(problem: Problem, listed: Constraints, accuracy: float) -> Proposal:
    """The solution: weights in the region, and the sums that certify them."""
    scale = problem.scale
    n, m, n_rows = problem.n_weights, len(scale), len(listed.loss)
    quadratic = problem.slack == "quadratic"
    own = sp.csr_array((np.ones(n_rows), (np.arange(n_rows), listed.owner)), shape=(n_rows, m))
    rows = sp.vstack([sp.hstack([listed.rows, -own]), sp.hstack([sp.csr_array((m, n)), -sp.eye_array(m)])])
    w, multipliers = minimize(
        problem.region,
        np.concatenate([np.zeros(n), np.zeros(m) if quadratic else scale]),
        scale if quadratic else np.zeros(m),
        rows,
        np.concatenate([-listed.loss, np.zeros(m)]),
        accuracy,
    )
    if not (np.isfinite(w).all() and np.isfinite(multipliers).all()):
        raise NonFiniteError("the interior-point method returned numbers that are not finite")
    alpha = np.maximum(multipliers[:n_rows], 0.0)
    total = np.bincount(listed.owner, alpha, minlength=m)
    squares = 0.0
    if quadratic:
        squares = float((total[scale > 0.0] ** 2 / scale[scale > 0.0]).sum())
    else:
        alpha = alpha * np.divide(scale, total, out=np.ones(m), where=total > scale)[listed.owner]
    g = np.asarray(listed.rows.T @ alpha)
    return Proposal(problem.region.project(w), g, float((alpha * listed.loss).sum()), squares)
