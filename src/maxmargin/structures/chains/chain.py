"""Chains: a label for every position of a sequence, scored at positions and at neighboring pairs of labels.

Output ``y`` of an example with ``T`` positions and ``K`` labels has the parts

* ``nodes[t, k] = [y_t = k]``, block ``"nodes"``, position-major;
* ``transitions="shared"``: ``pairs[a, b] = #{t : y_{t-1} = a, y_t = b}``, block ``"pairs"``, so that pair
  scores are one transition matrix per example;
* ``transitions="each"``: ``edges[t, a, b] = [y_{t-1} = a, y_t = b]``, block ``"edges"``, one matrix per edge.

Cost per example: argmax and ``labels`` ``T K^2`` additions and maxima (Viterbi 1967, running maxima in registers,
predecessors found again on the way back), ``max_marginals`` ``2 T K^2``; ``k_best`` ``O(T K^2 k)`` at worst, by lists
of the ``k`` best prefixes per label; ``project`` one Viterbi pass per vertex that enters the active set (see
:mod:`maxmargin.structures.fallbacks.generic`); ``marginals`` ``3 T K^2`` multiplications and ``T K + K^2`` exponentials
(Baum and others 1970, in scaled probabilities). Where potentials spread so far (a standard deviation above 120) that
these might underflow: another ``2 T K^2`` maxima, and log-sum-exp over the labels that these leave, about one in ten
for potentials of size 300, one or two for larger ones; ``slack_argmax`` ``T^2 K^2 / 2`` additions and maxima with
Hamming loss (Viterbi with the number of errors as a second state), and as a tree
(:mod:`maxmargin.structures.trees.tree`) where costs are not whole multiples of one unit. Constraints
(:mod:`maxmargin.structures.chains.transitions`) cost one copy of the scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _threads
from maxmargin.structures._arrays import array_of, example_numbers, offsets_in_memory, offsets_of, vector
from maxmargin.structures.base import Block, FloatArray, IntArray, Labeling, Points
from maxmargin.structures.chains.sequences import LabelSequences
from maxmargin.structures.chains.transitions import TransitionConstraints
from maxmargin.structures.fallbacks import generic
from maxmargin.structures.sparse import SparsePoint
from maxmargin.structures.trees.tree import Tree

Transitions = Literal["shared", "each"]

_ELSEWHERE = 4
"""Status of an example that the slack kernel leaves to the one for trees."""


class Chain(LabelSequences):
    """A batch of label sequences.

    Args:
        lengths, n_labels, constraints: as for :class:`~maxmargin.structures.chains.sequences.LabelSequences`.
        transitions: ``"shared"`` for one transition matrix per example, ``"each"`` for one per edge.

    A score of ``-inf`` also forbids a label or a pair; an example without a possible output has value ``-inf`` and
    status ABSENT (a projection has value ``inf``). Among outputs of equal score the argmax takes the lowest last label,
    then the lowest label before it, and so on.
    """

    name = "chain"
    slack_relaxed = False
    value_bounds = True
    order = 1
    most_labels = 1 << 15

    def __init__(
        self,
        lengths: npt.ArrayLike,
        n_labels: int,
        *,
        transitions: Transitions = "shared",
        constraints: TransitionConstraints | None = None,
    ) -> None:
        super().__init__(lengths, n_labels, constraints)
        _checks.one_of("transitions", transitions, ("shared", "each"))
        self.transitions: Transitions = transitions
        self._constrained = constraints is not None and not constraints.allows_all
        square = self.n_labels**2
        if transitions == "shared":
            second = Block("pairs", offsets_in_memory(np.ones_like(self.lengths), square, "pairs of labels"))
        else:
            edges = np.maximum(self.lengths - 1, 0)
            second = Block("edges", offsets_in_memory(edges, square, "pairs of labels at all edges"))
        self.blocks = (
            Block("nodes", offsets_in_memory(self.lengths, self.n_labels, "labels at all positions")),
            second,
        )

    @cached_property
    def part_bound(self) -> FloatArray:
        """1 for nodes and edges; pairs (a, a) come ``length - 1`` times at most, others ``length // 2`` times.

        0 for nodes and edges that no possible output has, and for forbidden pairs.
        """
        self._require_memory()
        bound = np.ones(self.n_parts)
        rules = self._rules
        if self._constrained:
            before, behind = self._places
            ahead, back = rules.reachable(int(self.lengths.max(initial=0)))
            bound[: self.starts[1]] = (ahead[before] & back[behind]).ravel()
            if self.transitions == "each":
                first, _ = self._edges
                possible = ahead[before[first], :, None] & rules.pairs & back[behind[first + 1], None, :]
                bound[self.starts[1] :] = possible.ravel()
        if self.transitions == "shared":
            same = np.maximum(self.lengths - 1, 0)[:, None, None]
            other = (self.lengths // 2)[:, None, None]
            most = np.where(np.eye(self.n_labels, dtype=bool), same, other)
            bound[self.starts[1] :] = (most * rules.pairs).ravel()
        return bound

    @property
    def _places(self) -> tuple[IntArray, IntArray]:
        """Per position of the batch: the numbers of positions before and behind it in its example."""
        ends = np.repeat(np.cumsum(self.lengths), self.lengths)
        at = np.arange(len(ends))
        return at - ends + np.repeat(self.lengths, self.lengths), ends - 1 - at

    def _masked(self, scores: FloatArray) -> FloatArray:
        """Packed scores with -inf where the constraints forbid; the scores themselves if there are none."""
        if not self._constrained:
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
        """Masks for kernels that make scores themselves; empty without constraints."""
        return self._rules.masks if self._constrained else (np.empty(0),) * 3

    @cached_property
    def _layout(self) -> tuple[IntArray, IntArray, int, bool]:
        """First arguments of every kernel: absolute offsets of both blocks, labels, and the kind of transitions."""
        nodes, second = self.blocks
        return nodes.offsets, second.offsets + self.starts[1], self.n_labels, self.transitions == "shared"

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """The packed vertex of one legal label sequence per example (integers in ``0 .. K - 1``, one per position)."""
        flat = self._flat(labels)
        nodes = np.arange(len(flat)) * self.n_labels + flat
        first, owner_of = self._edges
        kind = flat[first] * self.n_labels + flat[first + 1]
        row = owner_of if self.transitions == "shared" else np.arange(len(first))
        return SparsePoint.counting(self, np.concatenate([nodes, self.starts[1] + row * self.n_labels**2 + kind]))

    @property
    def _edges(self) -> tuple[IntArray, IntArray]:
        """Per edge of the batch: the position where it begins (positions counted over the batch), and its example."""
        owner = np.repeat(np.arange(self.n_examples), self.lengths)
        first = np.flatnonzero(owner[1:] == owner[:-1]) if len(owner) else np.zeros(0, dtype=np.int64)
        return first, owner[first]

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """The best label sequence of every example (Viterbi); ``warm`` is not needed."""
        scores = self._masked(vector(scores, self.n_parts, "scores"))
        return self._from_kernel(_kernels.chain_argmax, *self._layout, scores)

    def labels(self, scores: FloatArray, pairs: npt.ArrayLike | None = None) -> Labeling:
        """The best label sequence of every example, as the argmax finds it, without the packed vector.

        Args:
            scores: packed, shape ``(n_parts,)``; with ``pairs`` those of the nodes alone, shape ``(n_positions K,)``.
            pairs: pair scores that all edges of all examples share, shape ``(K, K)``, as in prediction: these are laid
                out once for the whole batch.
        """
        if pairs is not None:
            return self._labeling(_kernels.chain_labels_once, *self._once(scores, pairs))
        packed = self._masked(vector(scores, self.n_parts, "scores"))
        return self._labeling(_kernels.chain_labels, *self._layout, packed)

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
        """Arguments of kernels for one matrix of pair scores that all examples share."""
        nodes = vector(scores, self.starts[1], "scores of the nodes, which go with pairs,")
        matrix = np.ascontiguousarray(array_of(pairs, "pairs", "fiub", "numbers"), dtype=np.float64)
        if matrix.shape != (self.n_labels, self.n_labels):
            raise ValueError(f"pairs must have shape ({self.n_labels}, {self.n_labels}), got {matrix.shape}")
        pairs_mask, first, last = self._masks
        if self._constrained:
            with np.errstate(invalid="ignore"):  # +inf becomes NaN, which is refused like itself
                matrix = matrix + pairs_mask
        return self.blocks[0].offsets, self.n_labels, nodes, matrix, first, last

    def k_best(self, scores: FloatArray, k: int) -> list[Points]:
        """The ``k`` best label sequences of every example, exactly; ties as for the argmax."""
        ranks = min(_checks.integer("k", k, least=1), self._most_outputs)
        if ranks * self.n_labels >= 1 << 31:
            raise ValueError(f"k must be below 2^31 over the number of labels, {self.n_labels}; got {k}")
        scores = self._masked(vector(scores, self.n_parts, "scores"))
        outputs = self._buffers(ranks)
        _kernels.chain_k_best(*self._layout, ranks, scores, *outputs, _threads.current())
        return generic.ranked(*outputs)

    def slack_argmax(
        self, scores: FloatArray, margin: FloatArray, costs: FloatArray, constants: FloatArray, *, warm: Any = None
    ) -> Points:
        """``argmax_y (costs'y + constants) (margin + scores'y)`` over label sequences, exactly; ``warm`` is not needed.

        INEXACT, with an upper bound as value, only where costs have so many different sums (thousands for one label of
        one position) that not all can be kept.
        """
        scores, costs = self._masked(vector(scores, self.n_parts, "scores")), vector(costs, self.n_parts, "costs")
        margin, constants = vector(margin, self.n_examples, "margin"), vector(constants, self.n_examples, "constants")
        points = self._from_kernel(_kernels.chain_slack_argmax, *self._layout, scores, margin, costs, constants)
        left = np.flatnonzero(points.status == _ELSEWHERE)
        if left.size:
            part = self.select(left)
            at = self.parts_of(left)
            found = part._slack_as_tree(scores[at], margin[left], costs[at], constants[left])
            points.z[at], points.value[left], points.status[left] = found.z, found.value, found.status
        return points

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
        constraints = self._rules.key if self._constrained else None
        key = (self.name, self.transitions, self.n_labels, self.lengths.tobytes(), constraints)
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
        most = _checks.integer("ranks", ranks, least=1, most=((1 << 31) - 1) // self.n_labels)
        return _kernels.ChainOracle(self.lengths, self.n_labels, self.transitions == "shared", *self._masks, most)

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order."""
        chosen = example_numbers(indices, self.n_examples)
        return type(self)(
            self.lengths[chosen], self.n_labels, transitions=self.transitions, constraints=self.constraints
        )

    def _shift(self, window: int, position: int) -> int:
        """An edge has a table of its own where transitions are not shared."""
        if window == 2 and self.transitions == "each":
            return (position - 1) * self.n_labels**2
        return super()._shift(window, position)
