"""Which solver fits a problem: the choice behind ``solver="auto"``, with the reason.

The rules follow what ``benchmarks/solvers/comparison.py`` and, for a ridge penalty, ``benchmarks/solvers/auto.py``
measured, see docs/how-to/choosing-a-solver.md.
"""

from __future__ import annotations

import numpy as np

from maxmargin import _memory
from maxmargin.optimization.solver import Solver
from maxmargin.problem import BaseProblem
from maxmargin.solvers.column_generation.column_generation import ColumnGeneration
from maxmargin.solvers.decomposition.simplicial_decomposition import SimplicialDecomposition
from maxmargin.solvers.first_order.dual_extragradient import DualExtragradient
from maxmargin.solvers.first_order.extragradient import Extragradient
from maxmargin.solvers.first_order.projected_subgradient import ProjectedSubgradient
from maxmargin.solvers.online.block_frank_wolfe import BlockFrankWolfe
from maxmargin.structures.base import Structure

FEW_WEIGHTS, FEW_EXAMPLES, FEW_PRODUCTS = 300, 30_000, 3_000_000
"""Up to this many weights, examples, and examples times weights, a few masters solve a problem with a ridge, whatever
C; beyond, passes over single examples are as fast or much faster."""

POINT_BYTES = 72
"""Memory of simplicial decomposition per example and weight: six points, dense, of 12 bytes a weight."""

MASTER_BYTES = 1_000_000_000
"""Masters that would need more than this are not kept."""

STORED_PARTS = 50_000_000
"""Above this many parts the structures player's vectors (8 bytes a part, about ten of them) are not stored."""

STORED_POTENTIALS = 5_000_000
"""The same for structures with a sum-product kernel, where not storing them costs few iterations."""

MANY_POTENTIALS = 100_000
"""From this many parts on dual extragradient is faster in entropic geometry: it needs fewer passes for hard problems,
extragradient fewer for easy ones."""


def fits_in_memory(problem: BaseProblem) -> bool:
    """Whether the structures player's vectors should be stored."""
    return problem.n_parts <= (STORED_PARTS if problem.kind.marginals_unsupported else STORED_POTENTIALS)


def choose(problem: BaseProblem, *, in_shards: bool = False) -> tuple[Solver, str]:
    """A solver for the problem, and the sentence that says why; ``in_shards``: one that works on several shards."""
    solver, why = _with_l1_norm(problem) if problem.region.lasso is not None else _with_l2_norm(problem)
    if in_shards and solver.shards_unsupported:
        solver, why = _in_shards(problem)
    return solver, f"{problem.kind.called} of {problem.n_parts} parts, {why}"


def _in_shards(problem: BaseProblem) -> tuple[Solver, str]:
    """With a ridge penalty, where passes over single examples are out of reach."""
    memory, size = master_bytes(problem), f"a ridge penalty, {problem.n_examples} examples in shards"
    if memory <= MASTER_BYTES:
        return SimplicialDecomposition(), f"{size}: simplicial decomposition, which needs the fewest passes"
    return (
        SimplicialDecomposition(master="one"),
        f"{size}: simplicial decomposition with sums over all examples, as the points of single ones would take about "
        f"{_memory.shown(memory)}",
    )


def _with_l2_norm(problem: BaseProblem) -> tuple[Solver, str]:
    return _without_penalty(problem) if problem.region.ridge is None else _with_ridge(problem)


def master_bytes(problem: BaseProblem) -> int:
    """About how much memory the points of simplicial decomposition take if their features are dense."""
    return POINT_BYTES * problem.n_examples * problem.n_weights


def _visits_are_compiled(problem: BaseProblem) -> bool:
    """Whether the most violated output of one example is found without a call of Python."""
    if type(problem.kind).oracle is Structure.oracle:
        return False
    return problem.rescaling == "margin" or not problem.kind.marginals_unsupported


def _with_ridge(problem: BaseProblem) -> tuple[Solver, str]:
    n, n_examples, memory = problem.n_weights, problem.n_examples, master_bytes(problem)
    size = f"a ridge penalty, {n_examples} examples and {n} weights"
    needed = f"about {_memory.shown(memory)}"
    if problem.slack == "quadratic":
        if memory <= MASTER_BYTES:
            return SimplicialDecomposition(), f"{size}, quadratic slack: simplicial decomposition"
        return (
            SimplicialDecomposition(r=2),
            f"{size}, quadratic slack: simplicial decomposition with two points an example and one iterate, as all "
            f"points would take {needed}",
        )
    if n <= FEW_WEIGHTS and n_examples <= FEW_EXAMPLES and n_examples * n <= FEW_PRODUCTS:
        return (
            SimplicialDecomposition(),
            f"{size}: few enough for simplicial decomposition, which needs few passes",
        )
    if not _visits_are_compiled(problem) and memory <= MASTER_BYTES:
        return (
            SimplicialDecomposition(),
            f"{size}, and no compiled search in single examples: simplicial decomposition, which needs the fewest "
            f"passes, over all examples at once; its points take {needed}",
        )
    return (
        BlockFrankWolfe(),
        f"{size}: block-coordinate Frank-Wolfe, the fastest here on so many; it stores only outputs, where points of "
        f"simplicial decomposition would take {needed}",
    )


def _with_l1_norm(problem: BaseProblem) -> tuple[Solver, str]:
    if problem.region.lasso is not None and np.isfinite(problem.region.lasso.radius):
        return _without_ridge(problem, "a ball of the L1 norm", ", multiplicative weights in the L1 ball")
    if problem.slack == "linear":
        return ColumnGeneration(), "an L1 norm: column generation, whose linear programs find vertices"
    return SimplicialDecomposition(), "an L1 norm and quadratic slack: simplicial decomposition"


def _without_penalty(problem: BaseProblem) -> tuple[Solver, str]:
    if problem.region.norms is not None:
        return _without_ridge(problem, "a ball without a ridge penalty", "")
    if problem.bilinear:
        return _saddle_point(problem, "")
    several = "" if problem.good is None else ", several good outputs"
    return (
        ProjectedSubgradient(),
        f'no ridge penalty, rescaling="{problem.rescaling}" and slack="{problem.slack}"{several}: projected '
        "subgradient, which takes all of it at any size; a finite C or radius would allow faster methods",
    )


def _without_ridge(problem: BaseProblem, region: str, weights: str) -> tuple[Solver, str]:
    """Decomposition; ``weights``: what the geometry of an extragradient method would be for the weights."""
    if problem.bilinear and problem.region.smooth and not fits_in_memory(problem):
        return _saddle_point(problem, weights)
    if (memory := master_bytes(problem)) > MASTER_BYTES:
        return (
            SimplicialDecomposition(master="one"),
            f"{region}: simplicial decomposition with sums over all examples, as the points of single ones would take "
            f"about {_memory.shown(memory)}",
        )
    return SimplicialDecomposition(), f"{region}: simplicial decomposition, the fastest here at closing a gap"


def _saddle_point(problem: BaseProblem, weights: str) -> tuple[Solver, str]:
    """An extragradient method; ``weights``: what its geometry is for the weights."""
    entropic = not problem.kind.marginals_unsupported
    geometry = ("entropic geometry, as it has sum-product" if entropic else "Euclidean projections") + weights
    if not fits_in_memory(problem):
        return (
            DualExtragradient(store_duals=False),
            "too many to store the structures player's vectors, and no ridge penalty: memory-efficient dual "
            f"extragradient, {geometry}",
        )
    if entropic and problem.n_parts >= MANY_POTENTIALS:
        return (
            DualExtragradient(),
            "which fit in memory, and no regularization: dual extragradient, the fastest here on so many parts, "
            f"{geometry}",
        )
    return (
        Extragradient(),
        f"which fit in memory, and no regularization: extragradient, the fastest here on few parts, {geometry}",
    )
