"""Base of general graphs and associative networks: labeled nodes, pairwise edges, relaxed to a local polytope.

Every node lies in a simplex, ``sum_k z_i(k) = 1``; :mod:`~maxmargin.structures.networks.graph` and
:mod:`~maxmargin.structures.networks.associative` say what an edge adds. For both

    max_z scores'z <= sum_i max_k node_i(k) + sum_e max edge_e

after any multipliers ``m`` (``2 K`` per edge) were moved between nodes and edges; the least such bound is the maximum
over the polytope.

``argmax`` passes messages on the bound (Kolmogorov, "Convergent tree-reweighted message passing for energy
minimization", 2006), at ``O(edge parts)`` a pass, until a labeling meets it: then that is the maximum. Where none does
in a few dozen passes, one minimum cut on a graph of twice the size settles tables of two labels, with a point of 0, 1/2
and 1 (roof duality: Hammer, Hansen and Simeone 1984); otherwise proximal steps ``z <- project(z + step * scores)``
(Rockafellar 1976) bring bound and point together to ``1e-11`` of the range of the scores. The rest, graphs with
strong conflicting edges, goes to HiGHS (Huangfu and Hall 2018): to the simplex method up to :data:`HIGHS_PARTS`
parts, and to the interior-point method up to :data:`INTERIOR_POINT_PARTS`. OK means a gap of ``1e-9`` of that range,
for larger graphs ``1e-6``. ``value`` is the bound, so it is never below the true maximum even where the status is
INEXACT, and ``z`` is feasible to rounding; ``scores'z`` may be lower by that tolerance, and where several points are
best, ``z`` need not be a vertex.

``argmax_within`` ends as soon as bounds and points are as near as it was asked for. Where messages stall, associative
networks look for better labelings by expansion moves before they take steps.

``project`` takes semismooth Newton steps on the multipliers (Qi and Sun 1993) and stops at a duality gap of
``tol^2 / 2``, or at rounding. A step costs ``O(edge parts)`` for the gradient, and its linear system is solved over the
nodes with two or more positive labels alone, by a banded factorization; where these are too many for that, by conjugate
gradients over the edge parts that are positive.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _threads
from maxmargin._sparse import sp
from maxmargin.structures._arrays import example_numbers, offsets_of, pieces, ranges, started, vector
from maxmargin.structures._labeled import check_range, joined_labels, largest
from maxmargin.structures.base import Block, FloatArray, IntArray, Points, PointStatus, Polytope, Structure
from maxmargin.structures.cuts.cut import Cut
from maxmargin.structures.sparse import SparsePoint

HIGHS_PARTS = 20_000
"""Largest example, in parts, that goes to the simplex method where messages and proximal steps leave a gap."""

INTERIOR_POINT_PARTS = 1_000_000
"""Largest example, in parts, that goes to the interior-point method; larger ones stay INEXACT."""

GROUP_PARTS = 2_000
"""Small examples are put together into linear programs of this size: fewer calls, but the simplex method is slower than
linear in what it is given."""

_PASS_LIMIT, _STEP_LIMIT, _NEWTON_LIMIT = 1000, 40, 300
_CERTAIN = 1e-9
"""A labeling whose score is this near to the bound, relative to the range of the scores, is the best one."""


class Network(Structure):
    """A packed batch of graphs with ``K`` labels per node; blocks ``nodes`` (``K`` per node) and ``edges``.

    Args:
        n_nodes, edges, edge_offsets: as for :class:`~maxmargin.structures.Cut`.
        n_labels: number of labels ``K``; labels are ``0 .. K - 1``.
    """

    categorical = True
    value_bounds = True
    marginals_unsupported = (
        "marginals over all labelings of a graph are #P-hard; use geometry=Euclidean(), or TreeSVM where the graphs "
        "are trees or have small tree width"
    )
    _table: ClassVar[bool]

    def __init__(
        self, n_nodes: npt.ArrayLike, edges: npt.ArrayLike, edge_offsets: npt.ArrayLike, n_labels: int
    ) -> None:
        self.n_labels = _checks.integer("n_labels", n_labels, least=1, most=4096)
        self._graphs = Cut(n_nodes, edges, edge_offsets)
        nodes, links = self._graphs.blocks
        self.n_nodes, self.edges, self.edge_offsets = self._graphs.n_nodes, self._graphs.edges, links.offsets
        if self._edge_size * int(np.diff(links.offsets).max(initial=0)) >= 1 << 30:
            raise ValueError("an example has more than 2^30 edge parts; split it")
        self.blocks = (
            Block("nodes", nodes.offsets * self.n_labels),
            Block("edges", links.offsets * self._edge_size),
        )

    @property
    def _edge_size(self) -> int:
        """Parts of an edge."""
        return self.n_labels**2 if self._table else self.n_labels

    @property
    def states_per_variable(self) -> int:
        """Each node chooses among all labels."""
        return self.n_labels

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_examples} examples, n_labels={self.n_labels})"

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """The packed vertex of one labeling per example (integers in ``0 .. K - 1``, one per node)."""
        flat = joined_labels(labels, self.n_nodes)
        check_range(flat, self.n_labels, self.n_nodes, self.name)
        ends = flat[self._graphs._ends()]
        pairs = self.starts[1] + self._pair_parts(ends[:, 0], ends[:, 1])
        return SparsePoint.from_index(self, np.concatenate([np.arange(len(flat)) * self.n_labels + flat, pairs]))

    @abstractmethod
    def _pair_parts(self, first: IntArray, second: IntArray) -> IntArray:
        """The edge parts that are 1 where the ends of edge ``e`` have labels ``first[e]`` and ``second[e]``."""

    def decode(self, z: FloatArray) -> list[IntArray]:
        """Labels, one int64 array per example: the largest node part at every node."""
        return largest(vector(z, self.n_parts, "z")[self.variable_parts], self.n_labels, self.n_nodes)

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """A maximum of ``scores'z`` over the polytope, and as ``value`` a bound of it from above.

        ``warm``: the multipliers of an earlier call on the same graphs, shape ``(n_edges, 2, K)``; any are a start.
        """
        return self.argmax_within(scores, 0.0, warm=warm)

    def argmax_within(self, scores: FloatArray, tol: float, *, warm: Any = None) -> Points:
        """As :meth:`argmax`, where bounds may exceed the scores of the points by ``tol`` in all.

        Where labelings alone are not as near, an example gets a share of it by its parts, and OK means that it keeps to
        that.
        """
        packed, tol = vector(scores, self.n_parts, "scores"), _checks.number("tol", tol, least=0)
        return self._maximum(packed, warm, np.zeros(self.n_examples, dtype=np.bool_), tol)

    def _maximum(self, packed: FloatArray, warm: Any, by_messages: npt.NDArray[np.bool_], tol: float = 0.0) -> Points:
        """See :meth:`argmax_within`; examples marked ``by_messages`` get the bound that messages find, and no more."""
        multipliers = started(warm, (len(self.edges), 2, self.n_labels))
        z, value, status = self._buffers()
        large = self.sizes > HIGHS_PARTS
        last = np.where(by_messages, np.int8(2), large.astype(np.int8))
        _kernels.graph_argmax(
            *self._layout, packed, tol, last, _PASS_LIMIT, _STEP_LIMIT, multipliers, z, value, status,
            _threads.current(),
        )  # fmt: skip
        solvable = (self.sizes <= INTERIOR_POINT_PARTS) & ~by_messages
        for method, chosen in (("simplex", ~large & solvable), ("ipm", large & solvable)):
            left = np.flatnonzero(chosen & (status == PointStatus.INEXACT))
            for group in pieces(self.sizes[left], GROUP_PARTS):
                self._by_highs(left[group], method, packed, multipliers, z, value, status)
        return Points(z, value, status, multipliers)

    def _by_highs(
        self,
        chosen: IntArray,
        method: str,
        scores: FloatArray,
        multipliers: FloatArray,
        z: FloatArray,
        value: FloatArray,
        status: npt.NDArray[np.int8],
    ) -> None:
        """Solve one linear program for the chosen examples; those that HiGHS does not improve stay as they are."""
        part, parts, own = self.select(chosen), self.parts_of(chosen), self._multipliers_of(chosen)
        solved = _solve(part, scores[parts], method)
        if solved is None:
            return
        found, duals = solved
        answer = np.empty(len(chosen)), np.empty(len(chosen), dtype=np.int8)
        _kernels.graph_certify(*part._layout, scores[parts], duals, found, *answer, _threads.current())
        better = (answer[1] == PointStatus.OK) | (answer[0] < value[chosen])
        kept = part.to_parts(better.astype(np.float64)) > 0
        z[parts[kept]] = found[kept]
        value[chosen[better]], status[chosen[better]] = answer[0][better], answer[1][better]
        whose = np.repeat(better, np.diff(part.edge_offsets))
        multipliers[own[whose]] = duals[whose]

    def relax(self, scores: FloatArray) -> tuple[Points, Points]:
        """The maximum over the polytope, and a labeling near it: :meth:`argmax` and :meth:`predict` in one."""
        packed = vector(scores, self.n_parts, "scores")
        points = self.argmax(packed)
        return points, self._rounded(packed, points)

    def _rounded(self, packed: FloatArray, points: Points) -> Points:
        """A labeling near each relaxed point, status OK where it meets the bound."""
        z, value, status = points.z.copy(), np.empty(self.n_examples), np.empty(self.n_examples, dtype=np.int8)
        _kernels.graph_round(*self._layout, packed, points.warm, z, value, status, _threads.current())
        status[(status == PointStatus.OK) & (points.value - value > self._certain(packed))] = PointStatus.INEXACT
        return Points(z, value, status)

    def predict(self, scores: FloatArray) -> Points:
        """A labeling of each example: the best one (status OK) where its score meets the bound of the relaxation.

        Elsewhere the relaxed maximum is fractional, or was not found, and the labeling is a good one that no
        change of a single node improves (status INEXACT).
        """
        return self.relax(scores)[1]

    def _certain(self, scores: FloatArray) -> FloatArray:
        """How near the score of a labeling must be to the bound for it to be the best one, for each example."""
        return _CERTAIN * self._range(scores) + 1e-14 * self.by_example(np.abs(scores))

    def _range(self, scores: FloatArray) -> FloatArray:
        """How far scores of outputs can differ, at most, shape ``(n_examples,)``."""
        spread = np.zeros(self.n_parts)
        spread[self.variable_parts.start : self.variable_parts.stop : self.n_labels] = np.ptp(
            scores[self.variable_parts].reshape(-1, self.n_labels), axis=1
        )
        if self._edge_size and len(self.edges):
            tables = scores[self.starts[1] :].reshape(-1, self._edge_size)
            low = tables.min(axis=1) if self._table else np.minimum(tables.min(axis=1), 0.0)  # 0: ends that differ
            spread[self.starts[1] :: self._edge_size] = np.maximum(tables.max(axis=1), low) - low
        return self.by_example(spread)

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection onto the polytope, feasible to rounding.

        Stops at a duality gap of ``tol^2 / 2``, or at rounding; INEXACT if neither was reached. ``warm``: the
        multipliers of an earlier projection on the same graphs, shape ``(n_edges, 2, K)``.
        """
        packed, tol = vector(point, self.n_parts, "point"), _checks.number("tol", tol, least=0)
        multipliers = started(warm, (len(self.edges), 2, self.n_labels))
        z, value, status = self._buffers()
        _kernels.graph_project(
            *self._layout, packed, tol, _NEWTON_LIMIT, warm is not None, multipliers, z, value, np.empty_like(value),
            status, _threads.current(),
        )  # fmt: skip
        return Points(z, value, status, multipliers)

    def k_best(self, scores: FloatArray, k: int) -> list[Points]:
        """Refused: a relaxation does not give the second best labeling of a graph with cycles."""
        raise ValueError(
            f"the k best labelings of {self.called} are not available, as it is relaxed; use predict, "
            "or ChainSVM or TreeSVM where the graphs are chains or trees"
        )

    def flips(self, scores: FloatArray, z: FloatArray) -> FloatArray:
        """What the score of a labeling gains if one node takes another label, cliques aside, shape ``(n_nodes, K)``."""
        k, ends, edges = self.n_labels, self._graphs._ends(), scores[self.starts[1] : self.starts[2]]
        table = scores[: self.starts[1]].reshape(-1, k).copy()
        own = z[: self.starts[1]].reshape(-1, k).argmax(axis=1)
        for label in range(k):
            for side in (0, 1):
                both = own[ends]
                both[:, side] = label
                parts = self._pair_parts(both[:, 0], both[:, 1])
                np.add.at(table[:, label], ends[parts // self._edge_size, side], edges[parts])
        return np.asarray(table - table[np.arange(len(own)), own][:, None])

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples; an example may come several times."""
        chosen = example_numbers(indices, self.n_examples)
        first, last = self.edge_offsets[chosen], self.edge_offsets[chosen + 1]
        return type(self)(
            self.n_nodes[chosen], self.edges[ranges(first, last)], offsets_of(last - first), self.n_labels
        )

    def log_outputs(self) -> FloatArray:
        """Every labeling is an output: ``ln K`` for each node."""
        return np.asarray(np.log(float(self.n_labels)) * self.n_nodes)

    def polytope(self) -> Polytope:
        """``Z`` by its constraints, with ``q = z``: equations on tables, inequalities on parts of equal labels."""
        simplex, linked = self._constraints()
        lift = sp.csr_array(sp.eye_array(self.n_parts, format="csr"))
        ones, zeros = np.ones(simplex.shape[0]), np.zeros(linked.shape[0])
        if not self._table:
            return Polytope(lift, linked, zeros, simplex, ones)
        both = sp.csr_array(sp.vstack([simplex, linked], format="csr"))
        return Polytope(lift, eq=both, eq_rhs=np.concatenate([ones, zeros]))

    def _constraints(self) -> tuple[sp.csr_array, sp.csr_array]:
        """Rows "labels of a node sum to 1", and rows "sum of edge parts less a node part", in multiplier order."""
        k, nodes, n_edges = self.n_labels, self.starts[1], len(self.edges)
        labels = sp.csr_array(sp.kron(sp.eye_array(nodes // k), np.ones((1, k)), format="csr"))
        simplex = sp.hstack([labels, sp.csr_array((nodes // k, self.n_parts - nodes))], format="csr")
        rows = 2 * k * n_edges
        tails = (self._graphs._ends()[:, :, None] * k + np.arange(k)).ravel()
        ends = sp.csr_array((-np.ones(rows), (np.arange(rows), tails)), shape=(rows, nodes))
        if self._table:
            one = np.concatenate([np.kron(np.eye(k), np.ones((1, k))), np.kron(np.ones((1, k)), np.eye(k))])
        else:
            one = np.concatenate([np.eye(k), np.eye(k)])
        sums = sp.kron(sp.eye_array(n_edges), one, format="csr")
        return sp.csr_array(simplex), sp.csr_array(sp.hstack([ends, sums], format="csr"))

    @property
    def _layout(self) -> tuple[Any, int, bool]:
        """First arguments of every kernel."""
        return self._graphs._batch, self.n_labels, self._table

    def _multipliers_of(self, chosen: IntArray) -> IntArray:
        """Edges of the chosen examples: rows of their multipliers."""
        return ranges(self.edge_offsets[chosen], self.edge_offsets[chosen + 1])


def _solve(structure: Network, scores: FloatArray, method: str) -> tuple[FloatArray, FloatArray] | None:
    """A maximum over the polytope and the multipliers of its edge constraints, by HiGHS; None if it fails."""
    import highspy

    simplex, linked = structure._constraints()
    rows = sp.csr_array(sp.vstack([simplex, linked], format="csr"))
    free = -np.zeros(linked.shape[0]) if structure._table else np.full(linked.shape[0], -highspy.kHighsInf)
    ones = np.ones(simplex.shape[0])
    scale = float(np.abs(scores).max(initial=1e-300))
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = structure.n_parts, rows.shape[0]
    program.col_cost_ = -scores / scale
    program.col_lower_, program.col_upper_ = np.zeros(structure.n_parts), np.ones(structure.n_parts)
    program.row_lower_ = np.concatenate([ones, free])
    program.row_upper_ = np.concatenate([ones, np.zeros(linked.shape[0])])
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = rows.indptr
    program.a_matrix_.index_ = rows.indices
    program.a_matrix_.value_ = rows.data
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, setting in (
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", 0),
        ("primal_feasibility_tolerance", 1e-10),
        ("dual_feasibility_tolerance", 1e-10),
        ("ipm_optimality_tolerance", 1e-10),
        ("run_crossover", "off" if method == "ipm" else "on"),
        ("solver", method),
    ):
        solver.setOptionValue(option, setting)
    solver.passModel(program)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    solution = solver.getSolution()
    duals = -scale * np.asarray(solution.row_dual, dtype=np.float64)[simplex.shape[0] :]
    return np.asarray(solution.col_value, dtype=np.float64), duals.reshape(-1, 2, structure.n_labels)
