"""Linear programs in HiGHS: the constraints of single examples, vertices of many examples at once, branch and bound.

Examples are solved in groups, one model each, made once and solved again with new scores. The solver's multipliers
bound what any output can reach (weak duality); where a vertex is below that bound by more than rounding, as when small
costs decide between outputs of large scores, the program is solved once more over the face that the large multipliers
leave, in the units of what is left of the scores there.

References: Huangfu and Hall, "Parallelizing the dual revised simplex method", 2018 (HiGHS); Gleixner, Steffy and
Wolter, "Iterative refinement for linear programming", 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin import _checks
from maxmargin._sparse import sp
from maxmargin.structures._arrays import array_of
from maxmargin.structures._user_sparse import to_csr
from maxmargin.structures.base import FloatArray, IntArray

MOST_NODES = 20_000
"""Branch-and-bound nodes that one prediction may take; then the best output so far is marked INEXACT."""

_REFINED, ROUNDING = 2e-16, 1e-14
"""How far a vertex may be below its bound, as a share of the terms of both, before it is refined, and how far after
that to count as the best one. Typical are 1e-17."""

_DECIDED = 1e-7
"""From this share of the largest score on multipliers are well above the solver's tolerance: their rows are tight."""

OPTIONS: dict[str, Any] = {
    "output_flag": False,
    "parallel": "off",
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}


class Program:
    """One example: constraints as CSR matrices, checked."""

    def __init__(self, example: int, A: Any, b: Any, A_eq: Any, b_eq: Any, upper: Any) -> None:
        given = A if A is not None else A_eq
        if given is None:
            raise ValueError(f"example {example}: give A or A_eq; a matrix with no rows stands for no constraints")
        columns = _matrix(given, example, "A" if A is not None else "A_eq").shape[1]
        self.A = _matrix(A if A is not None else np.zeros((0, columns)), example, "A")
        self.n = int(self.A.shape[1])
        self.b = finite_vector(b if A is not None else np.zeros(0), int(self.A.shape[0]), example, "b", "row of A")
        self.E = _matrix(np.zeros((0, self.n)) if A_eq is None else A_eq, example, "A_eq")
        if self.E.shape[1] != self.n:
            raise ValueError(
                f"example {example}: A has {self.n} columns and A_eq has {self.E.shape[1]}; give one column per part"
            )
        self.e = finite_vector(
            np.zeros(0) if A_eq is None else b_eq, int(self.E.shape[0]), example, "b_eq", "row of A_eq"
        )
        if not is_many(upper):
            upper = np.full(self.n, _checks.number(f"example {example}: upper", upper, least=0))
        self.u = finite_vector(upper, self.n, example, "upper", "part")
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
        found = to_csr(value)
        found.check_format(full_check=True)  # before scipy copies it
        matrix = sp.csr_array(found, copy=True)
    except ValueError as error:
        raise ValueError(f"{wrong}: {error}") from None
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise ValueError(f"{wrong}; leave out rows that hold NaN or infinity")
    return matrix


def finite_vector(value: Any, length: int, example: int, name: str, per: str) -> FloatArray:
    """A copy of a vector of an example; ValueError unless it has ``length`` finite numbers."""
    found = array_of(value, f"example {example}: {name}", "fiub", f"{length} finite numbers, one per {per}")
    if found.shape != (length,) or not np.isfinite(found).all():
        got = f"shape {found.shape}" if found.shape != (length,) else "NaN or infinity"
        raise ValueError(f"example {example}: {name} must be {length} finite numbers, one per {per}, got {got}")
    return found.astype(np.float64)


class Bases:
    """Where an argmax ended: the simplex basis of each group, of these programs, and their memory."""

    def __init__(self, owner: list[Program], bases: list[Any], nbytes: int) -> None:
        self.owner, self.bases, self.nbytes = owner, bases, nbytes


class Vertices:
    """A vertex of each example of a group, and how far ``below`` the best one it may be as a share of its ``terms``.

    Args:
        group: the group.
        scores: its scores, the largest of each example about 1.
        z: the vertices.
        multipliers: of the rows, of any quality: those of inequalities are taken as 0 where they are negative.
    """

    def __init__(self, group: Group, scores: FloatArray, z: FloatArray, multipliers: FloatArray) -> None:
        self.z = z
        self.multipliers = np.where(group.free, multipliers, np.maximum(multipliers, 0.0))
        self.left = scores - group.rows.T @ self.multipliers
        # c'z = y'Az + (c - A'y)'z <= y'b + sum_j u_j max(0, c_j - A_j'y): the bound less c'z, in terms >= 0
        slack = self.multipliers * (group.rhs - group.rows @ z)
        short = np.where(self.left > 0.0, self.left * (group.upper - z), -self.left * z)
        size = np.abs(self.multipliers * group.rhs), np.abs(scores) * np.maximum(z, 1.0)
        self.terms = group.sums(*size)
        below = group.sums(slack, short)
        self.below = np.divide(below, self.terms, out=np.zeros(len(below)), where=self.terms > 0.0)


class Group:
    """Some examples of a batch as one linear program, kept in its solver."""

    def __init__(self, programs: list[Program], examples: IntArray, offsets: IntArray) -> None:
        self.examples = examples
        self.parts = slice(int(offsets[examples[0]]), int(offsets[examples[-1] + 1]))
        self.size = self.parts.stop - self.parts.start
        chosen = [programs[i] for i in examples]
        self.upper = np.concatenate([p.u for p in chosen])
        self.programs = chosen
        self.solver: Any = _solver(chosen) if self.size else None
        self.columns = np.arange(self.size, dtype=np.int32)
        self.basis_bytes = self.size + sum(p.A.shape[0] + p.E.shape[0] for p in chosen)  # a byte per column and row
        inequalities, equations = ([getattr(p, name).shape[0] for p in chosen] for name in ("A", "E"))
        self.rows, self.rhs = _constraints(chosen)
        self.free = np.arange(len(self.rhs)) >= sum(inequalities)  # rows whose multipliers have no sign: equations
        numbers = np.arange(len(chosen))
        self.row_owner = np.concatenate([np.repeat(numbers, inequalities), np.repeat(numbers, equations)])
        self.owner = np.repeat(numbers, [p.n for p in chosen])

    def sums(self, of_rows: FloatArray, of_parts: FloatArray) -> FloatArray:
        """The sums of each example over its rows and parts, shape ``(n_examples,)``."""
        n = len(self.programs)
        sums = np.bincount(self.row_owner, of_rows, n) + np.bincount(self.owner, of_parts, n)
        return sums.astype(np.float64, copy=False)

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
            raise ValueError(
                f"examples {self.examples[0]} to {self.examples[-1]}: HiGHS found no vertex of a linear program "
                f"({self.solver.modelStatusToString(status)}); scale numbers that are very large or very small"
            )
        return z

    def _run(self) -> FloatArray | None:
        """The solver's vertex, or None if it found none; ``solver.getSolution().row_dual`` then has its multipliers."""
        import highspy

        self.solver.run()
        if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        z = np.clip(np.asarray(self.solver.getSolution().col_value, dtype=np.float64), 0.0, self.upper)
        whole = np.rint(z)
        return np.where(np.abs(z - whole) <= 1e-9, whole, z)

    def solve(self, scores: FloatArray, basis: Any) -> tuple[Vertices, Any]:
        """Best vertices, and their basis; None instead of the basis where the solver failed."""
        if self.size == 0:
            return Vertices(self, scores, np.zeros(0), np.zeros(len(self.rhs))), ()
        for start in (basis, None):  # numerical trouble from a basis: once more from the beginning
            self.solver.changeColsCost(self.size, self.columns, scores)
            if start is None:
                self.solver.clearSolver()
            else:
                self.solver.setBasis(start)
            z = self._run()
            if z is not None:
                found, ended = Vertices(self, scores, z, self._multipliers()), self.solver.getBasis()
                return self._refined(scores, found) if (found.below > _REFINED).any() else found, ended
        assert self.feasible is not None
        return Vertices(self, scores, self.feasible, np.zeros(len(self.rhs))), None

    def _multipliers(self) -> FloatArray:
        return np.asarray(self.solver.getSolution().row_dual, dtype=np.float64)

    def _refined(self, scores: FloatArray, found: Vertices) -> Vertices:
        """The vertices again from the face that the large multipliers leave, where their scores differ by little."""
        tight = self.free | (found.multipliers > _DECIDED)
        kept = np.where(tight, found.multipliers, 0.0)
        left = scores - self.rows.T @ kept
        lower, upper = np.where(left > _DECIDED, self.upper, 0.0), np.where(left < -_DECIDED, 0.0, self.upper)
        left = np.where(np.abs(left) > _DECIDED, 0.0, left)
        unit = np.zeros(len(self.programs))
        np.maximum.at(unit, self.owner, np.abs(left))
        unit[unit == 0.0] = 1.0
        rows, no_limit = np.arange(len(self.rhs), dtype=np.int32), np.full(len(self.rhs), -np.inf)
        try:
            self.solver.changeColsBounds(self.size, self.columns, lower, upper)
            self.solver.changeRowsBounds(len(rows), rows, np.where(tight, self.rhs, no_limit), self.rhs)
            self.solver.changeColsCost(self.size, self.columns, left / unit[self.owner])
            self.solver.clearSolver()
            z = self._run()
            more = None if z is None else self._multipliers()
        finally:
            self.solver.changeColsBounds(self.size, self.columns, np.zeros(self.size), self.upper)
            self.solver.changeRowsBounds(len(rows), rows, np.where(self.free, self.rhs, no_limit), self.rhs)
        if z is None or more is None:
            return found
        again = Vertices(self, scores, z, kept + unit[self.row_owner] * more)
        better = again.below < found.below
        found.z = np.where(better[self.owner], again.z, found.z)
        found.terms = np.where(better, again.terms, found.terms)
        found.below = np.where(better, again.below, found.below)
        return found


def _solver(programs: list[Program], *, whole: bool = False, cuts: Sequence[FloatArray] = ()) -> Any:
    """HiGHS with the constraints of some programs; ``cuts`` are 0/1 points to leave out."""
    import highspy  # not with the module, which all structures are imported with: it takes a tenth of a second

    n = sum(program.n for program in programs)
    matrix, upper = _constraints(programs)
    lower = np.concatenate([np.full(sum(len(p.b) for p in programs), -np.inf), *(p.e for p in programs)])
    rows = [matrix]
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
    for name, value in OPTIONS.items():
        solver.setOptionValue(name, value)
    if whole:
        for name, value in {"mip_rel_gap": 0.0, "mip_abs_gap": 1e-9, "mip_max_nodes": MOST_NODES}.items():
            solver.setOptionValue(name, value)
    else:
        solver.setOptionValue("solver", "simplex")
    solver.passModel(model)
    return solver


def _constraints(programs: list[Program]) -> tuple[sp.csr_array, FloatArray]:
    """The rows of all inequalities, then of all equations, and their right-hand sides."""
    n = sum(program.n for program in programs)
    rows = [diagonal([program.A for program in programs], n), diagonal([program.E for program in programs], n)]
    rhs = np.concatenate([p.b for p in programs] + [p.e for p in programs])
    return sp.csr_array(sp.vstack(rows, format="csr")), rhs


def best_whole(program: Program, scores: FloatArray, cuts: list[FloatArray]) -> tuple[FloatArray | None, bool]:
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


def diagonal(matrices: list[sp.csr_array], n: int) -> sp.csr_array:
    """Block diagonal, with ``n`` columns in all."""
    return sp.csr_array(sp.block_diag(matrices, format="csr")) if matrices else sp.csr_array((0, n))


def is_many(value: Any) -> bool:
    """Whether a value is a list or an array rather than one number."""
    return isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) > 0
