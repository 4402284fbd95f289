"""Chains: a label for every position of a sequence, scored at positions and at neighboring pairs of labels.

Output ``y`` of an example with ``T`` positions and ``K`` labels has the parts

* ``nodes[t, k] = [y_t = k]``, block ``"nodes"``, position-major;
* ``transitions="shared"``: ``pairs[a, b] = #{t : y_{t-1} = a, y_t = b}``, block ``"pairs"``, so that pair
  scores are one transition matrix per example;
* ``transitions="each"``: ``edges[t, a, b] = [y_{t-1} = a, y_t = b]``, block ``"edges"``, one matrix per edge.

Cost per example: argmax and ``labels`` ``T K^2`` additions and maxima (Viterbi 1967, running maxima in registers,
predecessors found again on the way back), ``max_marginals`` ``2 T K^2``; ``k_best`` ``O(T K^2 k)`` at worst, by lists
of the ``k`` best prefixes per label; ``project`` one Viterbi pass per vertex that enters the active set (see
:mod:`maxmargin.structures.generic`); ``entropic`` ``3 T K^2`` multiplications and ``T K + K^2`` exponentials (Baum and
others 1970, in scaled probabilities). Where potentials spread so far (a standard deviation above 120) that these might
underflow: another ``2 T K^2`` maxima, and log-sum-exp over the labels that these leave, about one in ten for potentials
of size 300, one or two for larger ones; ``slack_argmax`` ``T^2 K^2 / 2`` additions and maxima with Hamming loss
(Viterbi with the number of errors as a second state), and as a tree (:mod:`maxmargin.structures.tree`) where costs are
not whole multiples of one unit. Rules (:mod:`maxmargin.structures.transitions`) cost one copy of the scores.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _kernels, _threads
from maxmargin.structures import generic
from maxmargin.structures._arrays import assembled, example_numbers, lengths_of, offsets_of, vector
from maxmargin.structures._labeled import check_range, joined_labels, largest
from maxmargin.structures.base import Block, FloatArray, IntArray, Labeling, Points, Polytope, Ragged, Structure
from maxmargin.structures.sparse import SparsePoint
from maxmargin.structures.transitions import TransitionConstraints, checked_rules
from maxmargin.structures.tree import Tree

Transitions = Literal["shared", "each"]

_ELSEWHERE = 4
"""Status of an example that the slack kernel leaves to the one for trees."""


class Chain(Structure):
    """A batch of label sequences.

    Args:
        lengths: number of positions of every example, shape ``(n_examples,)``; 0 is allowed.
        n_labels: number of labels ``K``; labels are ``0 .. K - 1``.
        transitions: ``"shared"`` for one transition matrix per example, ``"each"`` for one per edge.
        legal: rules which labels may follow each other, come first and come last; outputs that break one do not exist.
            None: there are no rules.

    A score of ``-inf`` forbids a label or a pair, too; an example without an output has value ``-inf`` and status
    ABSENT (a projection has value ``inf``). Among outputs of equal score the argmax takes the lowest last label, then
    the lowest label before it, and so on.
    """

    name = "chain"
    categorical = True
    marginals_unsupported = ""
    slack_relaxed = False
    value_bounds = True

    def __init__(
        self,
        lengths: npt.ArrayLike,
        n_labels: int,
        *,
        transitions: Transitions = "shared",
        constraints: TransitionConstraints | None = None,
    ) -> None:
        if transitions not in ("shared", "each"):
            raise ValueError(f'transitions must be "shared" or "each", got {transitions!r}')
        self.lengths = lengths_of(lengths)
        self.n_labels = operator.index(n_labels)
        self.transitions: Transitions = transitions
        if not 1 <= self.n_labels <= 1 << 15:
            raise ValueError(f"n_labels must be between 1 and 32768, got {n_labels}")
        self.constraints = checked_rules(constraints, self.n_labels)
        self._rules = None if constraints is None or constraints.allows_all else constraints
        square = self.n_labels**2
        if transitions == "shared":
            second = Block("pairs", offsets_of(np.full(len(self.lengths), square)))
        else:
            second = Block("edges", offsets_of(np.maximum(self.lengths - 1, 0) * square))
        self.blocks = (Block("nodes", offsets_of(self.lengths * self.n_labels)), second)

    def __repr__(self) -> str:
        given = f"n_labels={self.n_labels}, transitions={self.transitions!r}, constraints={self.constraints}"
        return f"Chain({len(self.lengths)} examples, {given})"

    @property
    def states_per_variable(self) -> int:
        """Each position chooses among all labels."""
        return self.n_labels

    @cached_property
    def part_bound(self) -> FloatArray:
        """1 for nodes and edges; pairs (a, a) come ``length - 1`` times at most, others ``length // 2`` times.

        0 for nodes and edges that are in no legal output, and for pairs that are forbidden.
        """
        bound = np.ones(self.n_parts)
        if self._rules is not None:
            bound[: self.starts[1]] = self._possible_nodes(self._rules).ravel()
            if self.transitions == "each":
                bound[self.starts[1] :] = self._possible_edges(self._rules).ravel()
        if self.transitions == "shared":
            same = np.maximum(self.lengths - 1, 0)[:, None, None]
            other = (self.lengths // 2)[:, None, None]
            most = np.where(np.eye(self.n_labels, dtype=bool), same, other)
            bound[self.starts[1] :] = (most if self._rules is None else most * self._rules.pairs).ravel()
        return bound

    def _possible_nodes(self, rules: TransitionConstraints) -> npt.NDArray[np.bool_]:
        """Whether some legal output has a label at a position, shape ``(n_positions, K)``."""
        before, behind = self._places
        ahead, back = rules.reachable(int(self.lengths.max(initial=0)))
        return np.asarray(ahead[before] & back[behind])

    def _possible_edges(self, rules: TransitionConstraints) -> npt.NDArray[np.bool_]:
        """Whether some legal output has a pair at an edge, shape ``(n_edges, K, K)``."""
        before, behind = self._places
        ahead, back = rules.reachable(int(self.lengths.max(initial=0)))
        first, _ = self._edges
        return np.asarray(ahead[before[first], :, None] & rules.pairs & back[behind[first + 1], None, :])

    @property
    def _places(self) -> tuple[IntArray, IntArray]:
        """Per position of the batch: the numbers of positions before and behind it in its example."""
        ends = np.repeat(np.cumsum(self.lengths), self.lengths)
        at = np.arange(len(ends))
        return at - ends + np.repeat(self.lengths, self.lengths), ends - 1 - at

    def _masked(self, scores: FloatArray) -> FloatArray:
        """Batch scores with -inf added to what the rules forbid; themselves where there are none."""
        if self._rules is None:
            return scores
        pairs, first, last = self._rules.masks
        k, some = self.n_labels, self.lengths > 0
        ends = np.cumsum(self.lengths)
        masked = scores.copy()
        nodes, tables = masked[: self.starts[1]].reshape(-1, k), masked[self.starts[1] :].reshape(-1, k, k)
        with np.errstate(invalid="ignore"):  # +inf becomes NaN, which is refused like itself
            nodes[(ends - self.lengths)[some]] += first
            nodes[ends[some] - 1] += last
            tables += pairs
        return masked

    @property
    def _masks(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What kernels add to scores that they make themselves; empty where there are no rules."""
        return (np.empty(0),) * 3 if self._rules is None else self._rules.masks

    @cached_property
    def _layout(self) -> tuple[IntArray, IntArray, int, bool]:
        """What every kernel takes first: absolute offsets of both blocks, labels, and the kind of transitions."""
        nodes, second = self.blocks
        return nodes.offsets, second.offsets + self.starts[1], self.n_labels, self.transitions == "shared"

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """The packed vertex of one legal label sequence per example (integers in ``0 .. K - 1``, one per position)."""
        wrong_count = f"expected {self.n_examples} label sequences, got {len(labels)}"
        flat = joined_labels(labels, self.lengths, wrong_count, "position")
        check_range(flat, self.n_labels, self.lengths, self.name)
        if self._rules is not None:
            self._rules.refuse(flat, self.lengths)
        nodes = np.arange(len(flat)) * self.n_labels + flat
        first, owner_of = self._edges
        kind = flat[first] * self.n_labels + flat[first + 1]
        row = owner_of if self.transitions == "shared" else np.arange(len(first))
        return SparsePoint.counting(self, np.concatenate([nodes, self.starts[1] + row * self.n_labels**2 + kind]))

    @cached_property
    def _edges(self) -> tuple[IntArray, IntArray]:
        """Per edge of the batch: the position where it begins (positions counted over the batch), and its example."""
        owner = np.repeat(np.arange(self.n_examples), self.lengths)
        first = np.flatnonzero(owner[1:] == owner[:-1]) if len(owner) else np.zeros(0, dtype=np.int64)
        return first, owner[first]

    def decode(self, z: FloatArray) -> list[IntArray]:
        """Label sequences, one int64 array per example: the largest node part at every position."""
        return largest(vector(z, self.n_parts, "z")[self.variable_parts], self.n_labels, self.lengths)

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """The best label sequence of every example (Viterbi); ``warm`` is not needed."""
        outputs = self._buffers()
        scores = self._masked(vector(scores, self.n_parts, "scores"))
        _kernels.chain_argmax(*self._layout, scores, *outputs, _threads.current())
        return Points(*outputs)

    def labels(self, scores: FloatArray, pairs: npt.ArrayLike | None = None) -> Labeling:
        """The best label sequence of every example, as the argmax finds it, without the packed vector.

        Args:
            scores: packed, shape ``(n_parts,)``; with ``pairs`` those of the nodes alone, shape ``(n_positions K,)``.
            pairs: pair scores that all edges of all examples share, shape ``(K, K)``, as in prediction: these are laid
                out once for the whole batch.
        """
        n_positions = int(self.lengths.sum())
        labels, value = np.empty(n_positions, dtype=np.int32), np.empty(self.n_examples)
        status = np.empty(self.n_examples, dtype=np.int8)
        outputs = labels, value, status, _threads.current()
        if pairs is None:
            _kernels.chain_labels(*self._layout, self._masked(vector(scores, self.n_parts, "scores")), *outputs)
        else:
            _kernels.chain_labels_once(*self._once(scores, pairs), *outputs)
        return Labeling(Ragged(labels, self.blocks[0].offsets // self.n_labels), value, status)

    def max_marginals(self, scores: FloatArray, pairs: npt.ArrayLike | None = None) -> FloatArray:
        """The score of the best output that has label ``k`` at position ``t``, shape ``(n_positions, K)``.

        Positions are counted over the batch, example after example. The largest of a position is the value of the
        argmax; the next one below tells how much another label there would cost. ``-inf`` where no output has the
        label, NaN throughout an example whose scores are NaN or infinite. Arguments as for :meth:`labels`.
        """
        best = np.empty((int(self.lengths.sum()), self.n_labels))
        if pairs is None:
            packed = self._masked(vector(scores, self.n_parts, "scores"))
            _kernels.chain_max_marginals(*self._layout, packed, best, _threads.current())
        else:
            _kernels.chain_max_marginals_once(*self._once(scores, pairs), best, _threads.current())
        return best

    def _once(
        self, scores: FloatArray, pairs: npt.ArrayLike
    ) -> tuple[IntArray, int, FloatArray, FloatArray, FloatArray, FloatArray]:
        """What kernels take where one matrix of pair scores is given for all examples."""
        nodes = vector(scores, self.starts[1], "scores of the nodes, which go with pairs,")
        matrix = np.ascontiguousarray(pairs, dtype=np.float64)
        if matrix.shape != (self.n_labels, self.n_labels):
            raise ValueError(f"pairs must have shape ({self.n_labels}, {self.n_labels}), got {matrix.shape}")
        pairs_mask, first, last = self._masks
        if self._rules is not None:
            with np.errstate(invalid="ignore"):  # +inf becomes NaN, which is refused like itself
                matrix = matrix + pairs_mask
        return self.blocks[0].offsets, self.n_labels, nodes, matrix, first, last

    def k_best(self, scores: FloatArray, k: int) -> list[Points]:
        """The ``k`` best label sequences of every example, exactly; ties as for the argmax."""
        ranks = min(generic.check_k(k), self._most_outputs)
        if ranks * self.n_labels >= 1 << 31:
            raise ValueError(f"k must be below 2^31 over the number of labels, {self.n_labels}; got {k}")
        scores = self._masked(vector(scores, self.n_parts, "scores"))
        outputs = self._buffers(ranks)
        _kernels.chain_k_best(*self._layout, ranks, scores, *outputs, _threads.current())
        return generic.ranked(*outputs)

    @property
    def _most_outputs(self) -> int:
        """Label sequences of the longest example, ``K^T``; exact below ``2^31`` and a number above it otherwise."""
        longest = int(self.lengths.max(initial=0))
        return int(self.n_labels ** min(longest, 31))

    def slack_argmax(
        self, scores: FloatArray, margin: FloatArray, costs: FloatArray, constants: FloatArray, *, warm: Any = None
    ) -> Points:
        """``argmax_y (costs'y + constants) (margin + scores'y)`` over label sequences, exactly; ``warm`` is not needed.

        INEXACT, with an upper bound as value, only where costs have so many different sums (thousands for one label of
        one position) that not all can be kept.
        """
        scores, costs = self._masked(vector(scores, self.n_parts, "scores")), vector(costs, self.n_parts, "costs")
        margin, constants = vector(margin, self.n_examples, "margin"), vector(constants, self.n_examples, "constants")
        z, value, status = outputs = self._buffers()
        _kernels.chain_slack_argmax(*self._layout, scores, margin, costs, constants, *outputs, _threads.current())
        left = np.flatnonzero(status == _ELSEWHERE)
        if left.size:
            part = self.select(left)
            at = self.parts_of(left)
            found = part._slack_as_tree(scores[at], margin[left], costs[at], constants[left])
            z[at], value[left], status[left] = found.z, found.value, found.status
        return Points(z, value, status)

    def _slack_as_tree(
        self, scores: FloatArray, margin: FloatArray, costs: FloatArray, constants: FloatArray
    ) -> Points:
        """The same by fronts of losses and scores, on paths with a table for every edge."""
        first, owner = self._edges
        square = self.n_labels**2
        begin = offsets_of(self.lengths)[:-1]
        ends = np.stack([first, first + 1], axis=1) - begin[owner][:, None]
        n_edges = np.maximum(self.lengths - 1, 0)
        path = Tree(self.lengths, self.n_labels, ends, offsets_of(n_edges))
        if self.transitions == "each":
            return path.slack_argmax(scores, margin, costs, constants)
        tables = [values[self.starts[1] :].reshape(-1, square)[owner].ravel() for values in (scores, costs)]
        nodes = [values[: self.starts[1]] for values in (scores, costs)]
        found = path.slack_argmax(
            np.concatenate([nodes[0], tables[0]]), margin, np.concatenate([nodes[1], tables[1]]), constants
        )
        pairs = np.zeros((self.n_examples, square))
        np.add.at(pairs, owner, found.z[self.starts[1] :].reshape(-1, square))
        return Points(np.concatenate([found.z[: self.starts[1]], pairs.ravel()]), found.value, found.status)

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection by an active set of label sequences in the kernel; ``warm`` from an earlier call."""
        point = vector(point, self.n_parts, "point")
        rules = None if self._rules is None else self._rules.key
        key = (self.name, self.transitions, self.n_labels, self.lengths.tobytes(), rules)
        return generic.project_in_kernel(
            self,
            tol,
            warm,
            key,
            lambda hull, *outputs: _kernels.chain_project(*self._layout, *self._masks, hull, point, *outputs),
        )

    def marginals(self, potentials: FloatArray) -> Points:
        """Marginals of ``p(y) ~ exp(potentials'y)``, by sum-product: nodes, and pairs summed over the edges (or edges).

        ``value`` is the log-partition function. Marginals are feasible to rounding: those of a position sum to one,
        and pairs agree with nodes; those below 1e-40 may come out as zero. Nothing is kept per edge where transitions
        are shared. Potentials may be of any size (marginals are as exact as sums of such numbers); ``-inf`` forbids.
        """
        return self._sum_product(potentials, np.empty(0))

    def edge_marginals(self, potentials: FloatArray) -> FloatArray:
        """``p(y_{t-1} = a, y_t = b)`` of every edge of the batch, example after example: shape ``(n_edges, K, K)``.

        These are ``n_edges K^2`` numbers, for long chains far more than all other arrays; training needs only their
        sums, which :meth:`marginals` gives. Examples without a distribution (every output forbidden, or potentials that
        are NaN or infinite) have zeros; the status of :meth:`marginals` says so.
        """
        shape = (int(np.maximum(self.lengths - 1, 0).sum()), self.n_labels, self.n_labels)
        if self.transitions == "each":
            return self.marginals(potentials).z[self.starts[1] :].reshape(shape)
        edges = np.empty(shape)
        self._sum_product(potentials, edges)
        return edges

    def _sum_product(self, potentials: FloatArray, edges: FloatArray) -> Points:
        outputs = self._buffers()
        potentials = self._masked(vector(potentials, self.n_parts, "potentials"))
        _kernels.chain_marginals(*self._layout, False, potentials, *outputs, edges, _threads.current())
        return Points(*outputs)

    def oracle(self, ranks: int = 1) -> Any:
        """Viterbi, or the ``ranks`` best, and slack rescaling of one example at a time."""
        return _kernels.ChainOracle(self.lengths, self.n_labels, self.transitions == "shared", *self._masks, ranks)

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order."""
        chosen = example_numbers(indices, self.n_examples)
        return type(self)(
            self.lengths[chosen], self.n_labels, transitions=self.transitions, constraints=self.constraints
        )

    def polytope(self) -> Polytope:
        """The marginal polytope: ``q`` holds one ``K x K`` table per edge, or the node parts where ``T = 1``.

        Tables sum to 1 and neighboring tables agree on the position they share; nodes are sums over a table. Entries
        that are in no legal output are left out.
        """
        k, square = self.n_labels, self.n_labels**2
        sizes = np.where(self.lengths > 1, (self.lengths - 1) * square, np.where(self.lengths == 1, k, 0))
        begin = offsets_of(sizes)
        lift: list[tuple[IntArray, IntArray]] = []
        eq: list[tuple[IntArray, IntArray, FloatArray]] = []
        rhs: list[float] = []
        labels, cells = np.arange(k), np.arange(square)
        for i, length in enumerate(self.lengths.tolist()):
            node, second = int(self.blocks[0].offsets[i]), self.starts[1] + int(self.blocks[1].offsets[i])
            at = int(begin[i])
            if length == 0:
                continue
            rows = k if length == 1 else square
            eq.append((np.full(rows, len(rhs)), at + np.arange(rows), np.ones(rows)))
            rhs.append(1.0)
            if length == 1:
                lift.append((node + labels, at + labels))
                continue
            lift.append((node + cells // k, at + cells))
            for t in range(1, length):
                table = at + (t - 1) * square + cells
                lift.append((node + t * k + cells % k, table))
                lift.append((second + (0 if self.transitions == "shared" else (t - 1) * square) + cells, table))
                if t > 1:
                    eq.append((len(rhs) + cells % k, table - square, np.ones(square)))
                    eq.append((len(rhs) + cells // k, table, -np.ones(square)))
                    rhs.extend([0.0] * k)
        n = int(begin[-1])
        whole = Polytope(
            lift=assembled([(*entry, 1.0) for entry in lift], (self.n_parts, n)),
            eq=assembled(eq, (len(rhs), n)),
            eq_rhs=np.asarray(rhs, dtype=np.float64),
        )
        return whole if self._rules is None else self._only_possible(whole, self._rules)

    def _only_possible(self, whole: Polytope, rules: TransitionConstraints) -> Polytope:
        """The polytope without the entries of tables that are in no legal output, and without conditions on none."""
        edges, nodes = self._possible_edges(rules), self._possible_nodes(rules)
        ends, edge_ends = np.cumsum(self.lengths), np.cumsum(np.maximum(self.lengths - 1, 0))
        kept = [
            (nodes[end - 1] if length == 1 else edges[edge_end - length + 1 : edge_end]).ravel()
            for length, end, edge_end in zip(self.lengths.tolist(), ends.tolist(), edge_ends.tolist(), strict=True)
            if length
        ]
        chosen = np.flatnonzero(np.concatenate([np.zeros(0, dtype=bool), *kept]))
        eq = whole.eq[:, chosen]
        eq.eliminate_zeros()
        rows = np.flatnonzero((np.diff(eq.indptr) > 0) | (whole.eq_rhs != 0.0))
        return Polytope(
            lift=whole.lift[:, chosen],
            eq=eq[rows],
            eq_rhs=whole.eq_rhs[rows],
        )
