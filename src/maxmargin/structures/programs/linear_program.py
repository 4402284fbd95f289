"""Linear programs given by the user: the outputs of an example are the vertices of its own polytope.

    Z_i = { z : A_i z <= b_i,  E_i z = e_i,  0 <= z <= u_i }

Where all vertices are integral, this is a structure like any other. Where they are not, the program relaxes the choice
of whole numbers (``relaxed=True``): hinge losses and certificates are those of the relaxation, and ``predict`` finds
whole outputs by branch and bound.

``argmax`` is the simplex method of HiGHS: one model per group of examples, made once and solved again with new costs,
from the basis of an earlier call if one is given. Costs are scaled example by example, so that the solver's absolute
tolerance is relative to each example's own scores, and what is decided within it is refined
(:mod:`maxmargin.structures.programs.simplex`). About 0.2 ms from scratch and 0.06 ms warm for an example of 64
parts and 12 rows; the cost grows like that of the simplex method. ``project`` is
:mod:`maxmargin.structures.programs.linear_projection`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._sparse import sp
from maxmargin.structures._arrays import example_numbers, offsets_of, one_per_example, pieces, vector
from maxmargin.structures.base import Block, FloatArray, Points, PointStatus, Polytope, Structure
from maxmargin.structures.fallbacks import generic
from maxmargin.structures.programs import linear_projection
from maxmargin.structures.programs.simplex import (
    ROUNDING,
    Bases,
    Group,
    Program,
    best_whole,
    diagonal,
    finite_vector,
    is_many,
)
from maxmargin.structures.sparse import SparsePoint

GROUP = 2048
"""Examples are solved together up to this many parts."""

_WHOLE = 1e-7
"""How far from a whole number a part of a vertex may be to count as one: the solver's own accuracy, and some room."""


class LinearProgram(Structure):
    """A packed batch of polytopes given by their constraints; one block, ``parts``.

    Args:
        A: for each example a matrix, shape ``(n_rows, n_parts)``, dense or sparse: ``A z <= b``; None where there are
            equations only.
        b: for each example a vector, shape ``(n_rows,)``.
        A_eq: for each example a matrix (or None), ``A_eq z = b_eq``; None where there are no equations.
        b_eq: for each example a vector (or None).
        upper: the largest value of a part: one number, or for each example a number or a vector.
        relaxed: False is the caller's promise that all vertices are whole numbers (a totally unimodular matrix, for
            example): ``predict`` marks an output that is not whole as INEXACT. True says that the program relaxes the
            choice of whole numbers.
    """

    name = "linear program"
    categorical = False
    value_bounds = True
    marginals_unsupported = (
        "marginals over the vertices of a linear program are #P-hard in general; use geometry=Euclidean()"
    )

    def __init__(
        self,
        A: Sequence[Any],
        b: Sequence[Any],
        *,
        A_eq: Sequence[Any] | None = None,
        b_eq: Sequence[Any] | None = None,
        upper: Any = 1.0,
        relaxed: bool = False,
    ) -> None:
        _checks.flag("relaxed", relaxed)
        wanted = "a list with one entry per example"
        n = len(_checks.listed("A", A, wanted))
        if b is None or (A_eq is None) != (b_eq is None):
            raise ValueError("give b with A, and b_eq with A_eq")
        uppers = upper if is_many(upper) else [upper] * n
        given = {"A": A, "b": b, "A_eq": A_eq, "b_eq": b_eq, "upper": uppers}
        lists = []
        for name, value in given.items():
            lists.append([None] * n if value is None else _checks.listed(name, value, wanted))
            if len(lists[-1]) != n:
                raise ValueError(f"{name} has {len(lists[-1])} entries for {n} examples; give one per example")
        programs = [Program(i, *own) for i, own in enumerate(zip(*lists, strict=True))]
        self._setup(programs, bool(relaxed))
        self._check_feasible()

    def _setup(self, programs: list[Program], relaxed: bool) -> None:
        self.programs, self.relaxed = programs, relaxed
        self.blocks = (Block("parts", offsets_of([program.n for program in programs])),)

    def _check_feasible(self) -> None:
        for group in self._groups:
            if group.feasible is None:
                for i in group.examples:
                    if Group(self.programs, np.array([i]), self.blocks[0].offsets).feasible is None:
                        raise ValueError(
                            f"example {i}: no z satisfies A z <= b, A_eq z = b_eq, 0 <= z <= upper; give constraints "
                            "that leave at least one output"
                        )

    @cached_property
    def part_bound(self) -> FloatArray:
        """``upper``."""
        return np.concatenate([np.zeros(0), *(program.u for program in self.programs)])

    @cached_property
    def _groups(self) -> list[Group]:
        """Consecutive examples of at most GROUP parts, each group with a solver of its own."""
        return [Group(self.programs, group, self.blocks[0].offsets) for group in pieces(self.sizes, GROUP)]

    @cached_property
    def _newton(self) -> linear_projection.NewtonProjection:
        return linear_projection.NewtonProjection([(p.A, p.b, p.E, p.e, p.u) for p in self.programs])

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """Batch points of the given vectors, each checked against its constraints."""
        found = []
        given = one_per_example(labels, self.n_examples, "outputs")
        for i, (label, program) in enumerate(zip(given, self.programs, strict=True)):
            z = finite_vector(label, program.n, i, "the output", "part")
            if program.violation(z) > 1e-9:
                raise ValueError(
                    f"example {i}: the output breaks a constraint of its linear program by {program.violation(z):.2g}; "
                    "give a point with A z <= b, A_eq z = b_eq, 0 <= z <= upper"
                )
            found.append(z)
        return SparsePoint.of(self, np.concatenate([np.zeros(0), *found]))

    def decode(self, z: FloatArray) -> list[FloatArray]:
        """The vector of each example."""
        packed = vector(z, self.n_parts, "z")
        return [piece.copy() for piece in np.split(packed, self.blocks[0].offsets[1:-1])] if self.n_examples else []

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """A vertex that maximizes ``scores'z``, for every example.

        INEXACT marks a vertex that is not known to be the best one; its value is an upper bound. ``warm``: the bases of
        an earlier call on the same batch.
        """
        packed = vector(scores, self.n_parts, "scores")
        status, scaled, scale = self._scaled(packed)
        z, below, bases = np.zeros(self.n_parts), np.zeros(self.n_examples), []
        fits = isinstance(warm, Bases) and warm.owner is self.programs
        for number, group in enumerate(self._groups):
            found, basis = group.solve(scaled[group.parts], warm.bases[number] if fits else None)
            z[group.parts] = found.z
            below[group.examples] = np.where(found.below > ROUNDING, found.below * found.terms, 0.0)
            bases.append(basis)
        status[(status == PointStatus.OK) & (below > 0.0)] = PointStatus.INEXACT
        bad = status == PointStatus.NONFINITE
        if bad.any():
            z[self.to_parts(bad.astype(np.float64)) > 0] = 0.0
            packed = np.where(np.isfinite(packed), packed, 0.0)
        size = sum(group.basis_bytes for group in self._groups)
        value = self.by_example(packed * z) + np.where(bad, 0.0, scale * below)
        return Points(z, value, status, Bases(self.programs, bases, size))

    def _scaled(self, scores: FloatArray) -> tuple[npt.NDArray[np.int8], FloatArray, FloatArray]:
        """Whether scores are finite; the scores, the largest of each example from 1 to 2; their divisors."""
        bad = self.by_example((~np.isfinite(scores)).astype(np.float64)) > 0
        status = np.where(bad, PointStatus.NONFINITE, PointStatus.OK).astype(np.int8)
        offsets, size = self.blocks[0].offsets, np.append(np.abs(scores), 0.0)
        largest = np.maximum.reduceat(size, offsets[:-1]) if self.n_examples else np.zeros(0)
        usable = ~bad & (np.diff(offsets) > 0) & (largest > 0)
        scale = np.ldexp(1.0, np.frexp(np.where(usable, largest, 1.0))[1] - 1)  # powers of 2, which leave scores exact
        dead = self.to_parts(bad.astype(np.float64)) > 0
        return status, np.where(dead, 0.0, scores) / self.to_parts(scale), scale

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection, feasible to rounding.

        ``warm``: the multipliers of an earlier projection of the same batch, one per row of constraints. Examples that
        Newton's method on the multipliers does not finish go to the active set over vertices
        (:func:`maxmargin.structures.fallbacks.generic.project`).
        """
        packed = vector(point, self.n_parts, "point")
        tol = _checks.number("tol", tol, least=0)
        z, status, multipliers = self._newton.project(packed, tol, warm)
        left = np.flatnonzero(status == PointStatus.INEXACT)
        if left.size:
            within = self.parts_of(left)
            rest = generic.project(self.select(left), packed[within], tol=tol)
            z[within], status[left] = rest.z, rest.status
        with np.errstate(all="ignore"):
            value = 0.5 * self.by_example((z - packed) ** 2)
        return Points(z, np.where(status == PointStatus.NONFINITE, 0.0, value), status, multipliers)

    def predict(self, scores: FloatArray) -> Points:
        """The best whole output: the argmax where it is whole, else by branch and bound if the program is relaxed.

        INEXACT marks an output that is not known to be the best one, or not whole.
        """
        best = self.argmax(scores)
        z, status = best.z.copy(), best.status.copy()
        off = self.by_example((np.abs(z - np.rint(z)) > _WHOLE).astype(np.float64)) > 0
        for i in np.flatnonzero(off & (status != PointStatus.NONFINITE)):
            piece = slice(*self.blocks[0].offsets[i : i + 2])
            status[i] = PointStatus.INEXACT
            if self.relaxed:
                found, exact = best_whole(self.programs[i], scores[piece], [])
                if found is not None:
                    z[piece] = found
                    status[i] = PointStatus.OK if exact else PointStatus.INEXACT
        with np.errstate(all="ignore"):
            value = np.where(status == PointStatus.NONFINITE, best.value, self.by_example(scores * z))
        return Points(z, value, status)

    def k_best(self, scores: FloatArray, k: int) -> list[Points]:
        """The ``k`` best outputs; of a relaxed program the ``k`` best 0/1 points, one branch and bound each."""
        if not self.relaxed:
            return generic.k_best(self, scores, k)
        ranks, packed = _checks.integer("k", k, least=1), vector(scores, self.n_parts, "scores")
        if (self.part_bound > 1).any():
            raise ValueError("k_best of a relaxed linear program needs 0/1 parts; give upper <= 1")
        no_status, _, _ = self._scaled(packed)
        taken: list[list[FloatArray]] = [[] for _ in self.programs]
        listed: list[Points] = []
        for rank in range(ranks):
            z, value = np.zeros(self.n_parts), np.full(self.n_examples, -np.inf)
            status = np.where(no_status == PointStatus.NONFINITE, no_status, PointStatus.ABSENT).astype(np.int8)
            for i, program in enumerate(self.programs):
                if status[i] == PointStatus.NONFINITE or len(taken[i]) < rank:
                    continue
                piece = slice(*self.blocks[0].offsets[i : i + 2])
                found, exact = best_whole(program, packed[piece], taken[i])
                if found is not None:
                    taken[i].append(found)
                    z[piece], value[i] = found, float(packed[piece] @ found)
                    status[i] = PointStatus.OK if exact else PointStatus.INEXACT
            if rank and not (status <= PointStatus.INEXACT).any():
                break
            listed.append(Points(z, value, status))
        return listed

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples; an example may come several times."""
        chosen = example_numbers(indices, self.n_examples)
        other = type(self).__new__(type(self))
        other._setup([self.programs[i] for i in chosen], self.relaxed)
        return other

    def polytope(self) -> Polytope:
        """The constraints as given, and the upper bounds."""
        n = self.n_parts
        identity = sp.csr_array(sp.eye_array(n, format="csr"))
        ub = sp.csr_array(sp.vstack([diagonal([p.A for p in self.programs], n), identity], format="csr"))
        rhs = np.concatenate([*(p.b for p in self.programs), self.part_bound])
        eq_rhs = np.concatenate([np.zeros(0), *(p.e for p in self.programs)])
        return Polytope(identity, ub, rhs, diagonal([p.E for p in self.programs], n), eq_rhs)
