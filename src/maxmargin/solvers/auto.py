"""Which solver fits a problem: the choice behind ``solver="auto"``, with the reason.

The rules follow what ``benchmarks/solvers.py`` measured, see docs/choosing-a-solver.md.
"""

from __future__ import annotations

from maxmargin.optimization.base import Solver
from maxmargin.problem import Problem
from maxmargin.solvers.decomposition.column_generation import ColumnGeneration
from maxmargin.solvers.decomposition.simplicial_decomposition import SimplicialDecomposition
from maxmargin.solvers.first_order.dual_extragradient import DualExtragradient
from maxmargin.solvers.first_order.extragradient import Extragradient
from maxmargin.solvers.first_order.projected_subgradient import ProjectedSubgradient
from maxmargin.solvers.online.block_frank_wolfe import BlockFrankWolfe

FEW_WEIGHTS = 300
"""Up to this many weights a few Newton masters solve a problem with a ridge; beyond, online passes are faster."""

FIRM = 0.8
"""On relaxed networks points are looked for nearer to the best weights so far: examples are few and large, so that
masters know little far from these. On grids of four labels that took 0.55 to 0.9 times the passes."""

STORED_PARTS = 50_000_000
"""Above this many parts the structures player's vectors (8 bytes a part, about ten of them) are not stored."""

STORED_POTENTIALS = 5_000_000
"""The same for structures with a sum-product kernel, where not storing them costs few iterations."""

MANY_POTENTIALS = 100_000
"""From this many parts on dual extragradient is faster in entropic geometry: it needs fewer passes for hard problems,
extragradient fewer for easy ones."""


def fits_in_memory(problem: Problem) -> bool:
    """Whether the structures player's vectors should be stored."""
    return problem.structure.n_parts <= (STORED_PARTS if problem.structure.marginals_unsupported else STORED_POTENTIALS)


def choose(problem: Problem) -> tuple[Solver, str]:
    """A solver for the problem, and the sentence that says why."""
    solver, why = _with_l1_norm(problem) if problem.region.lasso is not None else _with_l2_norm(problem)
    return solver, f"{problem.structure.called} of {problem.structure.n_parts} parts, {why}"


def _with_l2_norm(problem: Problem) -> tuple[Solver, str]:
    n = problem.n_weights
    if problem.region.ridge is None:
        return _without_penalty(problem)
    if problem.slack == "quadratic":
        return SimplicialDecomposition(), "a ridge penalty and quadratic slack: simplicial decomposition"
    if n <= FEW_WEIGHTS:
        return (
            SimplicialDecomposition(stabilize=FIRM) if problem.structure.relaxed else SimplicialDecomposition(),
            f"a ridge penalty and only {n} weights: simplicial decomposition, which needs the fewest passes",
        )
    return (
        BlockFrankWolfe(),
        f"a ridge penalty and {n} weights: block-coordinate Frank-Wolfe, the fastest here on so many",
    )


def _with_l1_norm(problem: Problem) -> tuple[Solver, str]:
    if problem.region.l1_ball is not None and problem.bilinear:
        return _saddle_point(problem, ", multiplicative weights in the L1 ball")
    if problem.slack == "linear":
        return ColumnGeneration(), "an L1 norm: column generation, whose linear programs find vertices"
    return ProjectedSubgradient(), "an L1 norm and quadratic slack: projected subgradient, which takes both at any size"


def _without_penalty(problem: Problem) -> tuple[Solver, str]:
    if problem.bilinear:
        return _saddle_point(problem, "")
    several = "" if problem.good is None else ", several good outputs"
    return (
        ProjectedSubgradient(),
        f'no ridge penalty, rescaling="{problem.rescaling}" and slack="{problem.slack}"{several}: projected '
        "subgradient, which takes all of it at any size; a finite C would allow faster methods",
    )


def _saddle_point(problem: Problem, weights: str) -> tuple[Solver, str]:
    """An extragradient method; ``weights``: what its geometry is for the weights."""
    entropic = not problem.structure.marginals_unsupported
    geometry = ("entropic geometry, as it has sum-product" if entropic else "Euclidean projections") + weights
    if not fits_in_memory(problem):
        return (
            DualExtragradient(store_duals=False),
            "too many to store the structures player's vectors, and no ridge penalty: memory-efficient dual "
            f"extragradient, {geometry}",
        )
    if entropic and problem.region.l1_ball is None and problem.structure.n_parts >= MANY_POTENTIALS:
        return (
            DualExtragradient(),
            "which fit in memory, and no ridge penalty: dual extragradient, the fastest here on so many parts, "
            f"{geometry}",
        )
    return (
        Extragradient(),
        f"which fit in memory, and no ridge penalty: extragradient, the fastest here at closing a gap, {geometry}",
    )
