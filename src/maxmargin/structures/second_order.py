"""Chains of second order: a label for every position, scored at positions, pairs and triples of neighboring labels.

Output ``y`` of an example with ``T`` positions and ``K`` labels has the parts

* ``nodes[t, k] = [y_t = k]``, block ``"nodes"``, position-major;
* ``pairs[a, b] = #{t : y_{t-1} = a, y_t = b}``, block ``"pairs"``;
* ``triples[a, b, c] = #{t : y_{t-2} = a, y_{t-1} = b, y_t = c}``, block ``"triples"``,

so that pair and triple scores are one table each per example: ``K^3`` numbers, which batches of many examples repeat.
Prediction and the like give tables once for all examples (:meth:`SecondOrderChain.labels`).

Cost per example: argmax ``T K^3`` additions and maxima (Viterbi 1967 over pairs of labels), up to four chains with the
same tables at a time, and twice that for chains of more than a thousand positions, whose layers are not all kept;
``k_best`` ``O(T K^3 k)`` at worst, by lists of the ``k`` best prefixes per pair; ``project`` one Viterbi pass per
vertex that enters the active set; ``entropic`` ``3 T K^3`` multiplications in scaled probabilities and ``2 T K^2``
numbers of memory, and about ten times the time where potentials spread by hundreds; ``max_marginals`` two Viterbi
passes; ``slack_argmax`` is relaxed.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _kernels, _threads
from maxmargin.structures import generic
from maxmargin.structures._arrays import assembled, example_numbers, lengths_of, offsets_of, vector
from maxmargin.structures._labeled import check_range, joined_labels, largest
from maxmargin.structures.base import Block, FloatArray, IntArray, Labeling, Points, Polytope, Ragged, Structure
from maxmargin.structures.sparse import SparsePoint
from maxmargin.structures.transitions import TransitionConstraints, checked_rules

_Flags = npt.NDArray[np.uint8]
_Batch = tuple[IntArray, int, _Flags, _Flags, _Flags, FloatArray, FloatArray, FloatArray]
MOST_LABELS = 512
"""With more labels the triples of one example would take more than a gigabyte."""


class SecondOrderChain(Structure):
    """A batch of label sequences whose scores see three labels in a row.

    Args:
        lengths: number of positions of every example, shape ``(n_examples,)``; 0 is allowed.
        n_labels: number of labels ``K``, at most 512; labels are ``0 .. K - 1``.
        legal: which labels may follow one another, begin and end a sequence; None for all.

    A score of ``-inf`` forbids a label, a pair or a triple; an example with every output forbidden has value ``-inf``
    and status ABSENT. Among outputs of equal score the argmax takes the lowest last label, then the lowest label before
    it, and so on.
    """

    name = "second-order chain"
    categorical = True
    marginals_unsupported = ""

    def __init__(
        self, lengths: npt.ArrayLike, n_labels: int, *, constraints: TransitionConstraints | None = None
    ) -> None:
        self.lengths = lengths_of(lengths)
        self.n_labels = operator.index(n_labels)
        if not 1 <= self.n_labels <= MOST_LABELS:
            raise ValueError(f"n_labels must be between 1 and {MOST_LABELS}, got {n_labels}; use Chain for more")
        self.constraints = checked_rules(constraints, self.n_labels)
        self._rules = _flags(self.constraints, self.n_labels)
        k, n = self.n_labels, len(self.lengths)
        self.blocks = (
            Block("nodes", offsets_of(self.lengths * k)),
            Block("pairs", offsets_of(np.full(n, k**2))),
            Block("triples", offsets_of(np.full(n, k**3))),
        )

    def __repr__(self) -> str:
        return f"SecondOrderChain({len(self.lengths)} examples, n_labels={self.n_labels})"

    @property
    def states_per_variable(self) -> int:
        """Each position chooses among all labels."""
        return self.n_labels

    @cached_property
    def part_bound(self) -> FloatArray:
        """1 for nodes; pairs (a, a) and triples (a, a, a) can come at every place that has them, pairs (a, b) and
        triples (a, b, a) at every second, other triples at every third."""
        k, bound = self.n_labels, np.ones(self.n_parts)
        edges, triples = np.maximum(self.lengths - 1, 0), np.maximum(self.lengths - 2, 0)
        same = np.eye(k, dtype=bool)
        bound[self.starts[1] : self.starts[2]] = (-(-edges[:, None, None] // np.where(same, 1, 2))).ravel()
        a, b, c = np.ogrid[:k, :k, :k]
        period = np.where((a == b) & (b == c), 1, np.where(a == c, 2, 3))
        bound[self.starts[2] :] = (-(-triples[:, None, None, None] // period)).ravel()
        return bound

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """The packed vertex of one label sequence per example (integers in ``0 .. K - 1``, one per position)."""
        wrong_count = f"expected {self.n_examples} label sequences, got {len(labels)}"
        flat = joined_labels(labels, self.lengths, wrong_count, "position")
        check_range(flat, self.n_labels, self.lengths, self.name)
        if self.constraints is not None:
            self.constraints.refuse(flat, self.lengths)
        k = self.n_labels
        nodes = np.arange(len(flat)) * k + flat
        owner = np.repeat(np.arange(self.n_examples), self.lengths)
        second = np.flatnonzero(owner[1:] == owner[:-1]) + 1
        pairs = (owner[second] * k + flat[second - 1]) * k + flat[second]
        third = np.flatnonzero(owner[2:] == owner[:-2]) + 2
        triples = ((owner[third] * k + flat[third - 2]) * k + flat[third - 1]) * k + flat[third]
        return SparsePoint.counting(self, np.concatenate([nodes, self.starts[1] + pairs, self.starts[2] + triples]))

    def decode(self, z: FloatArray) -> list[IntArray]:
        """Label sequences, one int64 array per example: the largest node part at every position."""
        return largest(vector(z, self.n_parts, "z")[self.variable_parts], self.n_labels, self.lengths)

    def _packed(self, scores: FloatArray, what: str = "scores") -> _Batch:
        """What every kernel takes first: offsets, rules, and the three blocks of a packed vector."""
        scores = vector(scores, self.n_parts, what)
        _, pairs, triples, _ = self.starts
        return *self._head, scores[:pairs], scores[pairs:triples], scores[triples:]

    def _tables(self, nodes: npt.ArrayLike, pairs: npt.ArrayLike, triples: npt.ArrayLike | None) -> _Batch:
        """The same from tables for all examples."""
        k = self.n_labels
        given = np.ascontiguousarray(pairs, dtype=np.float64)
        three = np.zeros((k, k, k)) if triples is None else np.ascontiguousarray(triples, dtype=np.float64)
        if given.shape != (k, k) or three.shape != (k, k, k):
            raise ValueError(
                f"pairs and triples must have shapes {(k, k)} and {(k, k, k)}, got {given.shape} and {three.shape}"
            )
        flat = np.asarray(nodes, dtype=np.float64).reshape(-1)
        return *self._head, vector(flat, self.starts[1], "node scores"), given.ravel(), three.ravel()

    @property
    def _head(self) -> tuple[IntArray, int, _Flags, _Flags, _Flags]:
        return self.blocks[0].offsets, self.n_labels, *self._rules

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """The best label sequence of every example (Viterbi); ``warm`` is not needed."""
        outputs = self._buffers()
        _kernels.second_order_argmax(*self._packed(scores), *outputs, _threads.current())
        return Points(*outputs)

    def labels(
        self, scores: npt.ArrayLike, pairs: npt.ArrayLike | None = None, triples: npt.ArrayLike | None = None
    ) -> Labeling:
        """The best label sequence of every example, as the argmax finds it, without the packed vector.

        Args:
            scores: packed, shape ``(n_parts,)``; with ``pairs`` those of the nodes alone, ``n_positions * K`` numbers.
            pairs: pair scores of all examples, shape ``(K, K)``, as in prediction: tables are laid out once.
            triples: triple scores of all examples, shape ``(K, K, K)``; None for zeros.
        """
        args = self._packed(np.asarray(scores)) if pairs is None else self._tables(scores, pairs, triples)
        found = np.empty(int(self.lengths.sum()), dtype=np.int32)
        value, status = np.empty(self.n_examples), np.empty(self.n_examples, dtype=np.int8)
        _kernels.second_order_labels(*args, found, value, status, _threads.current())
        return Labeling(Ragged(found, self.blocks[0].offsets // self.n_labels), value, status)

    def max_marginals(
        self, scores: npt.ArrayLike, pairs: npt.ArrayLike | None = None, triples: npt.ArrayLike | None = None
    ) -> FloatArray:
        """The score of the best output with each label at each position, shape ``(n_positions, K)``.

        Arguments as for :meth:`labels`. ``-inf`` where there is no such output, NaN throughout an example with NaN or
        infinite scores.
        """
        args = self._packed(np.asarray(scores)) if pairs is None else self._tables(scores, pairs, triples)
        most = np.empty((int(self.lengths.sum()), self.n_labels))
        _kernels.second_order_max_marginals(*args, most.reshape(-1), _threads.current())
        return most

    def k_best(self, scores: FloatArray, k: int) -> list[Points]:
        """The ``k`` best label sequences of every example, exactly; ties as for the argmax."""
        longest = int(self.lengths.max(initial=0))
        ranks = min(generic.check_k(k), self.n_labels ** min(longest, 31))
        if ranks * self.n_labels**2 >= 1 << 31:
            raise ValueError(f"k must be below 2^31 over the square of the number of labels, {self.n_labels}; got {k}")
        outputs = self._buffers(ranks)
        _kernels.second_order_k_best(*self._packed(scores), ranks, *outputs, _threads.current())
        return generic.ranked(*outputs)

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection by an active set of label sequences in the kernel; ``warm`` from an earlier call."""
        key = (self.name, self.n_labels, self.lengths.tobytes(), *(rule.tobytes() for rule in self._rules))
        args = self._packed(point, "point")
        return generic.project_in_kernel(
            self, tol, warm, key, lambda hull, *outputs: _kernels.second_order_project(*args, hull, *outputs)
        )

    def marginals(self, potentials: FloatArray) -> Points:
        """Marginals of ``p(y) ~ exp(potentials'y)``, by sum-product: nodes, and expected counts of pairs and triples.

        ``value`` is the log-partition function. Marginals are feasible to rounding: those of a position sum to one, and
        triples agree with pairs and these with nodes; those below 1e-40 may come out as zero. Potentials may be of any
        size (marginals are as exact as sums of such numbers); ``-inf`` forbids.
        """
        outputs = self._buffers()
        _kernels.second_order_marginals(*self._packed(potentials, "potentials"), False, *outputs, _threads.current())
        return Points(*outputs)

    def oracle(self, ranks: int = 1) -> Any:
        """Viterbi, or the ``ranks`` best, of one example at a time."""
        return _kernels.SecondOrderOracle(self.lengths, self.n_labels, *self._rules, ranks)

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order."""
        chosen = example_numbers(indices, self.n_examples)
        return type(self)(self.lengths[chosen], self.n_labels, constraints=self.constraints)

    def polytope(self) -> Polytope:
        """Marginals of three labels in a row: ``q`` holds one ``K x K x K`` table per place that has two labels before
        it, or the table of the only pair, or the node parts where there is one position.

        Tables sum to 1 and neighboring tables agree on the pair they share. Illegal outputs have no entries: their
        ``q`` are zero by an equation. ``T K^3`` variables: for reference solvers and small examples.
        """
        k = self.n_labels
        follow, first, last = (rule.astype(bool) for rule in self._rules)
        follow = follow.reshape(k, k)
        lift: list[tuple[IntArray, IntArray, float]] = []
        eq: list[tuple[IntArray, IntArray, float]] = []
        rhs: list[float] = []
        size = 0
        for i, length in enumerate(self.lengths.tolist()):
            if length == 0:
                continue
            order = min(length, 3)
            node, pair, triple = (start + int(b.offsets[i]) for start, b in zip(self.starts, self.blocks, strict=False))
            cells = np.arange(k**order)
            digits = [cells // k ** (order - 1 - j) % k for j in range(order)]
            for s in range(length - order + 1):
                table = size + cells
                lift += [(node + (s + j) * k + digits[j], table, 1.0) for j in range(order) if j == order - 1 or s == 0]
                joins = [(digits[j], digits[j + 1]) for j in range(order - 1)]
                lift += [(pair + a * k + b, table, 1.0) for j, (a, b) in enumerate(joins) if j == order - 2 or s == 0]
                if order == 3:
                    lift.append((triple + cells, table, 1.0))
                fine = np.ones(len(cells), dtype=bool)
                for a, b in joins:
                    fine &= follow[a, b]
                fine &= first[digits[0]] if s == 0 else True
                fine &= last[digits[-1]] if s == length - order else True
                bad = table[~fine]
                if s == 0:
                    eq.append((np.full(len(cells), len(rhs)), table, 1.0))
                    rhs.append(1.0)
                else:
                    eq.append((len(rhs) + cells % k**2, table - len(cells), 1.0))
                    eq.append((len(rhs) + cells // k, table, -1.0))
                    rhs += [0.0] * k**2
                eq.append((len(rhs) + np.arange(len(bad)), bad, 1.0))
                rhs += [0.0] * len(bad)
                size += len(cells)
        return Polytope(
            lift=assembled(lift, (self.n_parts, size)),
            eq=assembled(eq, (len(rhs), size)),
            eq_rhs=np.asarray(rhs, dtype=np.float64),
        )


def _flags(constraints: TransitionConstraints | None, k: int) -> tuple[_Flags, _Flags, _Flags]:
    """Legal pairs, first and last labels as kernels take them."""
    rules = TransitionConstraints.anything(k) if constraints is None else constraints
    pairs, first, last = (flags.astype(np.uint8).reshape(-1) for flags in (rules.pairs, rules.first, rules.last))
    return pairs, first, last
