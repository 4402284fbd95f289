"""Linear programs given by the user: the outputs of an example are the vertices of its own polytope.

    Z_i = { z : A_i z <= b_i,  E_i z = e_i,  0 <= z <= u_i }

Where all vertices are integral, this is a structure like any other. Where they are not, the program relaxes the choice
of whole numbers (``relaxed=True``): hinge losses and certificates are those of the relaxation, and ``predict`` finds
whole outputs by branch and bound.

``argmax`` is the simplex method of HiGHS: one model per group of examples, made once and solved again with new costs,
from the basis of an earlier call if one is given. Costs are scaled example by example, so that the solver's absolute
tolerance is relative to each example's own scores. About 0.2 ms from scratch and 0.06 ms warm for an example of 64
parts and 12 rows; the cost grows like that of the simplex method. ``project`` is
:mod:`maxmargin.structures.programs.linear_projection`.

Reference: Huangfu and Hall, "Parallelizing the dual revised simplex method", 2018 (HiGHS).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._sparse import sp
from maxmargin.structures._arrays import array_of, example_numbers, offsets_of, one_per_example, pieces, vector
from maxmargin.structures._user_sparse import to_csr
from maxmargin.structures.base import Block, FloatArray, IntArray, Points, PointStatus, Polytope, Structure
from maxmargin.structures.fallbacks import generic
from maxmargin.structures.programs import linear_projection
from maxmargin.structures.sparse import SparsePoint

GROUP = 2048
"""Examples are solved together up to this many parts."""

MOST_NODES = 20_000
"""Branch-and-bound nodes that one prediction may take; then the best output so far is marked INEXACT."""

_WHOLE = 1e-7
"""How far from a whole number a part of a vertex may be to count as one: the solver's own accuracy, and some room."""

_OPTIONS: dict[str, Any] = {
    "output_flag": False,
    "parallel": "off",
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}


class _Program:
    """One example: constraints as CSR matrices, checked."""

    def __init__(self, example: int, A: Any, b: Any, A_eq: Any, b_eq: Any, upper: Any) -> None:
        given = A if A is not None else A_eq
        if given is None:
            raise ValueError(f"example {example}: give A or A_eq; a matrix with no rows stands for no constraints")
        columns = _matrix(given, example, "A" if A is not None else "A_eq").shape[1]
        self.A = _matrix(A if A is not None else np.zeros((0, columns)), example, "A")
        self.n = int(self.A.shape[1])
        self.b = _vector(b if A is not None else np.zeros(0), int(self.A.shape[0]), example, "b", "row of A")
        self.E = _matrix(np.zeros((0, self.n)) if A_eq is None else A_eq, example, "A_eq")
        if self.E.shape[1] != self.n:
            raise ValueError(
                f"example {example}: A has {self.n} columns and A_eq has {self.E.shape[1]}; give one column per part"
            )
        self.e = _vector(np.zeros(0) if A_eq is None else b_eq, int(self.E.shape[0]), example, "b_eq", "row of A_eq")
        if not _many(upper):
            upper = np.full(self.n, _checks.number(f"example {example}: upper", upper, least=0))
        self.u = _vector(upper, self.n, example, "upper", "part")
        if (self.u < 0).any():
            raise ValueError(f"example {example}: upper must be >= 0, got {self.u.min()}; parts are never negative")

    def violation(self, z: FloatArray) -> float:
        """By how much ``z`` breaks a constraint, at most; 0 where that is rounding of the constraint's own size."""
        worst = max(float((-z).max(initial=0.0)), float((z - self.u).max(initial=0.0)))
        for rows, rhs, equal in ((self.A, self.b, False), (self.E, self.e, True)):
            if rows.shape[0]:
                off = np.abs(rows @ z - rhs) if equal else rows @ z - rhs
                size = 1.0 + np.abs(rhs) + abs(rows) @ np.abs(z)
                worst = max(worst, float(np.where(off > 1e-9 * size, off, 0.0).max()))
        return worst


def _matrix(value: Any, example: int, name: str) -> sp.csr_array:
    wrong = f"example {example}: {name} must be a 2-D array or sparse matrix of finite numbers (rows x parts)"
    wanted = "a 2-D array or sparse matrix of finite numbers (rows x parts)"
    if not sp.issparse(value):
        found = array_of(value, f"example {example}: {name}", "fiub", wanted)
        if found.ndim != 2:
            raise ValueError(f"{wrong}, got shape {found.shape}")
        value = sp.csr_array(np.asarray(found, dtype=np.float64))
    if value.dtype.kind not in "fiub" or len(value.shape) != 2:
        raise ValueError(f"{wrong}, got shape {value.shape} of {value.dtype}")
    try:
        matrix = sp.csr_array(to_csr(value), copy=True)
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{wrong}: {error}") from None
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise ValueError(f"{wrong}; leave out rows that hold NaN or infinity")
    return matrix


def _vector(value: Any, length: int, example: int, name: str, per: str) -> FloatArray:
    found = array_of(value, f"example {example}: {name}", "fiub", f"{length} finite numbers, one per {per}")
    if found.shape != (length,) or not np.isfinite(found).all():
        got = f"shape {found.shape}" if found.shape != (length,) else "NaN or infinity"
        raise ValueError(f"example {example}: {name} must be {length} finite numbers, one per {per}, got {got}")
    return found.astype(np.float64)


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
        uppers = upper if _many(upper) else [upper] * n
        given = {"A": A, "b": b, "A_eq": A_eq, "b_eq": b_eq, "upper": uppers}
        lists = []
        for name, value in given.items():
            lists.append([None] * n if value is None else _checks.listed(name, value, wanted))
            if len(lists[-1]) != n:
                raise ValueError(f"{name} has {len(lists[-1])} entries for {n} examples; give one per example")
        programs = [_Program(i, *own) for i, own in enumerate(zip(*lists, strict=True))]
        self._setup(programs, bool(relaxed))
        self._check_feasible()

    def _setup(self, programs: list[_Program], relaxed: bool) -> None:
        self.programs, self.relaxed = programs, relaxed
        self.blocks = (Block("parts", offsets_of([program.n for program in programs])),)

    def _check_feasible(self) -> None:
        for group in self._groups:
            if group.feasible is None:
                for i in group.examples:
                    if _Group(self.programs, np.array([i]), self.blocks[0].offsets).feasible is None:
                        raise ValueError(
                            f"example {i}: no z satisfies A z <= b, A_eq z = b_eq, 0 <= z <= upper; give constraints "
                            "that leave at least one output"
                        )

    @cached_property
    def part_bound(self) -> FloatArray:
        """``upper``."""
        return np.concatenate([np.zeros(0), *(program.u for program in self.programs)])

    @cached_property
    def _groups(self) -> list[_Group]:
        """Consecutive examples of at most GROUP parts, each group with a solver of its own."""
        return [_Group(self.programs, group, self.blocks[0].offsets) for group in pieces(self.sizes, GROUP)]

    @cached_property
    def _newton(self) -> linear_projection.NewtonProjection:
        return linear_projection.NewtonProjection([(p.A, p.b, p.E, p.e, p.u) for p in self.programs])

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """Batch points of the given vectors, each checked against its constraints."""
        found = []
        given = one_per_example(labels, self.n_examples, "outputs")
        for i, (label, program) in enumerate(zip(given, self.programs, strict=True)):
            z = _vector(label, program.n, i, "the output", "part")
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

        ``warm``: the bases of an earlier call on the same batch.
        """
        packed = vector(scores, self.n_parts, "scores")
        status, scaled = self._scaled(packed)
        z, bases = np.zeros(self.n_parts), []
        fits = isinstance(warm, _Bases) and warm.owner is self.programs
        for number, group in enumerate(self._groups):
            z[group.parts], basis = group.solve(scaled[group.parts], warm.bases[number] if fits else None)
            bases.append(basis)
            if basis is None:
                status[group.examples] = np.maximum(status[group.examples], PointStatus.INEXACT)
        bad = status == PointStatus.NONFINITE
        if bad.any():
            z[self.to_parts(bad.astype(np.float64)) > 0] = 0.0
            packed = np.where(np.isfinite(packed), packed, 0.0)
        size = sum(group.basis_bytes for group in self._groups)
        return Points(z, self.by_example(packed * z), status, _Bases(self.programs, bases, size))

    def _scaled(self, scores: FloatArray) -> tuple[npt.NDArray[np.int8], FloatArray]:
        """The scores of each example divided by the largest of them, and NONFINITE where they are not finite."""
        bad = self.by_example((~np.isfinite(scores)).astype(np.float64)) > 0
        status = np.where(bad, PointStatus.NONFINITE, PointStatus.OK).astype(np.int8)
        offsets, size = self.blocks[0].offsets, np.append(np.abs(scores), 0.0)
        largest = np.maximum.reduceat(size, offsets[:-1]) if self.n_examples else np.zeros(0)
        usable = ~bad & (np.diff(offsets) > 0) & (largest > 0)
        scale = self.to_parts(np.where(usable, largest, 1.0))
        dead = self.to_parts(bad.astype(np.float64)) > 0
        return status, np.where(dead, 0.0, scores) / scale

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
                found, exact = _whole(self.programs[i], scores[piece], [])
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
        no_status, _ = self._scaled(packed)
        taken: list[list[FloatArray]] = [[] for _ in self.programs]
        listed: list[Points] = []
        for rank in range(ranks):
            z, value = np.zeros(self.n_parts), np.full(self.n_examples, -np.inf)
            status = np.where(no_status == PointStatus.NONFINITE, no_status, PointStatus.ABSENT).astype(np.int8)
            for i, program in enumerate(self.programs):
                if status[i] == PointStatus.NONFINITE or len(taken[i]) < rank:
                    continue
                piece = slice(*self.blocks[0].offsets[i : i + 2])
                found, exact = _whole(program, packed[piece], taken[i])
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
        ub = sp.csr_array(sp.vstack([_diagonal([p.A for p in self.programs], n), identity], format="csr"))
        rhs = np.concatenate([*(p.b for p in self.programs), self.part_bound])
        eq_rhs = np.concatenate([np.zeros(0), *(p.e for p in self.programs)])
        return Polytope(identity, ub, rhs, _diagonal([p.E for p in self.programs], n), eq_rhs)


class _Bases:
    """Where an argmax ended: the simplex basis of each group, of these programs, and their memory."""

    def __init__(self, owner: list[_Program], bases: list[Any], nbytes: int) -> None:
        self.owner, self.bases, self.nbytes = owner, bases, nbytes


class _Group:
    """Some examples of a batch as one linear program, kept in its solver."""

    def __init__(self, programs: list[_Program], examples: IntArray, offsets: IntArray) -> None:
        self.examples = examples
        self.parts = slice(int(offsets[examples[0]]), int(offsets[examples[-1] + 1]))
        self.size = self.parts.stop - self.parts.start
        chosen = [programs[i] for i in examples]
        self.upper = np.concatenate([p.u for p in chosen])
        self.programs = chosen
        self.solver: Any = _solver(chosen) if self.size else None
        self.columns = np.arange(self.size, dtype=np.int32)
        self.basis_bytes = self.size + sum(p.A.shape[0] + p.E.shape[0] for p in chosen)  # a byte per column and row

    @cached_property
    def feasible(self) -> FloatArray | None:
        """Some vertex, or None if there is none."""
        if self.size == 0:
            return np.zeros(0) if all(p.violation(np.zeros(0)) <= 1e-9 for p in self.programs) else None
        self.solver.changeColsCost(self.size, self.columns, np.zeros(self.size))
        self.solver.clearSolver()
        import highspy

        z = self._run()
        status = self.solver.getModelStatus()
        empty = (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible)
        if z is None and status not in empty:
            raise ArithmeticError(
                f"HiGHS found no vertex of a linear program: {self.solver.modelStatusToString(status)}"
            )
        return z

    def _run(self) -> FloatArray | None:
        """The solver's vertex, or None if it found none."""
        import highspy

        self.solver.run()
        if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        z = np.clip(np.asarray(self.solver.getSolution().col_value, dtype=np.float64), 0.0, self.upper)
        whole = np.rint(z)
        return np.where(np.abs(z - whole) <= 1e-9, whole, z)

    def solve(self, scores: FloatArray, basis: Any) -> tuple[FloatArray, Any]:
        """A best vertex, and its basis; None instead of the basis marks a point that is only feasible."""
        if self.size == 0:
            return np.zeros(0), ()
        for start in (basis, None):  # numerical trouble from a basis: once more from the beginning
            self.solver.changeColsCost(self.size, self.columns, scores)
            if start is None:
                self.solver.clearSolver()
            else:
                self.solver.setBasis(start)
            z = self._run()
            if z is not None:
                return z, self.solver.getBasis()
        assert self.feasible is not None
        return self.feasible, None


def _solver(programs: list[_Program], *, whole: bool = False, cuts: Sequence[FloatArray] = ()) -> Any:
    """HiGHS with the constraints of some programs; ``cuts`` are 0/1 points to leave out."""
    import highspy  # not with the module, which all structures are imported with: it takes a tenth of a second

    n = sum(program.n for program in programs)
    inequalities = _diagonal([program.A for program in programs], n)
    equations = _diagonal([program.E for program in programs], n)
    upper = np.concatenate([p.b for p in programs] + [p.e for p in programs])
    lower = np.concatenate([np.full(inequalities.shape[0], -np.inf), *(p.e for p in programs)])
    rows = [inequalities, equations]
    if cuts:  # differ from each point in at least one part: sum_{z = 0} x - sum_{z = 1} x >= 1 - sum z
        rows.append(sp.csr_array(np.array([1.0 - 2.0 * cut for cut in cuts])))
        lower = np.concatenate([lower, [1.0 - cut.sum() for cut in cuts]])
        upper = np.concatenate([upper, np.full(len(cuts), np.inf)])
    matrix = sp.csc_array(sp.vstack(rows, format="csc"))
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = n, matrix.shape[0]
    model.col_cost_, model.col_lower_ = np.zeros(n), np.zeros(n)
    model.col_upper_ = np.concatenate([program.u for program in programs])
    model.row_lower_, model.row_upper_ = lower, upper
    model.a_matrix_.start_, model.a_matrix_.index_ = matrix.indptr, matrix.indices
    model.a_matrix_.value_ = matrix.data
    model.sense_ = highspy.ObjSense.kMaximize
    if whole:
        model.integrality_ = [highspy.HighsVarType.kInteger] * n
    make: Any = highspy.Highs  # it has no types
    solver = make()
    for name, value in _OPTIONS.items():
        solver.setOptionValue(name, value)
    if whole:
        for name, value in {"mip_rel_gap": 0.0, "mip_abs_gap": 1e-9, "mip_max_nodes": MOST_NODES}.items():
            solver.setOptionValue(name, value)
    else:
        solver.setOptionValue("solver", "simplex")
    solver.passModel(model)
    return solver


def _whole(program: _Program, scores: FloatArray, cuts: list[FloatArray]) -> tuple[FloatArray | None, bool]:
    """The best whole point outside ``cuts`` by branch and bound, and whether it is known to be the best."""
    import highspy

    if program.n == 0:
        return (None, True) if cuts else (np.zeros(0), True)
    solver = _solver([program], whole=True, cuts=cuts)
    largest = float(np.abs(scores).max())
    solver.changeColsCost(program.n, np.arange(program.n, dtype=np.int32), scores / largest if largest > 0 else scores)
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return None, True
    values = np.asarray(solver.getSolution().col_value, dtype=np.float64)
    z = np.rint(values)
    if z.shape != (program.n,) or np.abs(z - values).max() > 1e-4 or program.violation(z) > 1e-9:
        return None, False
    return z, bool(status == highspy.HighsModelStatus.kOptimal)


def _diagonal(matrices: list[sp.csr_array], n: int) -> sp.csr_array:
    """Block diagonal, with ``n`` columns in all."""
    return sp.csr_array(sp.block_diag(matrices, format="csr")) if matrices else sp.csr_array((0, n))


def _many(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) > 0


