"""Which solver fits a problem: the choice behind ``solver="auto"``, with the reason."""

from __future__ import annotations

from maxmargin.problem import Problem
from maxmargin.regions import L1
from maxmargin.solvers.base import Solver
from maxmargin.solvers.column_generation import ColumnGeneration
from maxmargin.solvers.dual_extragradient import DualExtragradient
from maxmargin.solvers.extragradient import Extragradient
from maxmargin.solvers.geometry import in_l1_ball

STORED_PARTS = 50_000_000
"""Above this many parts the structures player's vectors (8 bytes a part, about ten of them) are not stored."""

STORED_POTENTIALS = 5_000_000
"""The same for structures with a sum-product kernel, where not storing them costs few iterations."""

MANY_POTENTIALS = 100_000
"""From this many parts on dual extragradient is faster in entropic geometry: it needs fewer passes for hard problems,
extragradient fewer for easy ones."""


def fits_in_memory(problem: Problem) -> bool:
    """Whether the structures player's vectors should be stored."""
    return problem.structure.n_parts <= (STORED_PARTS if problem.structure.no_entropy else STORED_POTENTIALS)


def in_saddle_form(problem: Problem) -> bool:
    """Whether the extragradient methods are made for it: the margin re-scaled, a penalty with a gradient."""
    return problem.rescaling == "margin" and problem.region.smooth


def choose(problem: Problem) -> tuple[Solver, str]:
    """A solver for the problem, and the sentence that says why."""
    parts = problem.structure.n_parts
    geometry = "Euclidean projections" if problem.structure.no_entropy else "entropic geometry, as it has sum-product"
    if in_l1_ball(problem):
        geometry += ", multiplicative weights in the L1 ball"
    if isinstance(problem.region, L1) and problem.slack == "linear" and not in_saddle_form(problem):
        return (
            ColumnGeneration(),
            f"a {problem.structure.name} with an L1 norm: column generation, whose linear programs find vertices",
        )
    if not fits_in_memory(problem):
        return (
            DualExtragradient(store_duals=False),
            f"a {problem.structure.name} of {parts} parts, too many to store the structures player's vectors: "
            f"memory-efficient dual extragradient, {geometry}",
        )
    if not problem.structure.no_entropy and not isinstance(problem.region, L1) and parts >= MANY_POTENTIALS:
        return (
            DualExtragradient(),
            f"a {problem.structure.name} of {parts} parts, which fit in memory: dual extragradient, the fastest here "
            f"on so many, {geometry}",
        )
    return (
        Extragradient(),
        f"a {problem.structure.name} of {parts} parts, which fit in memory: extragradient, the fastest here at closing "
        f"a gap, {geometry}",
    )
