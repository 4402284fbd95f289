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
vertex that enters the active set; ``marginals`` ``3 T K^3`` multiplications in scaled probabilities and ``2 T K^2``
numbers of memory, and about ten times the time where potentials spread by hundreds; ``max_marginals`` two Viterbi
passes; ``slack_argmax`` is relaxed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _threads
from maxmargin.structures._arrays import example_numbers, offsets_in_memory, vector
from maxmargin.structures.base import Block, FloatArray, IntArray, Labeling, Points
from maxmargin.structures.chains.sequences import LabelSequences
from maxmargin.structures.chains.transitions import TransitionConstraints
from maxmargin.structures.fallbacks import generic
from maxmargin.structures.sparse import SparsePoint

_Flags = npt.NDArray[np.uint8]
_Batch = tuple[IntArray, int, _Flags, _Flags, _Flags, FloatArray, FloatArray, FloatArray]
MOST_LABELS = 512
"""With more labels the triples of one example would take more than a gigabyte."""


class SecondOrderChain(LabelSequences):
    """A batch of label sequences whose scores see three labels in a row.

    The arguments are those of :class:`~maxmargin.structures.chains.sequences.LabelSequences`, with at most 512 labels.

    A score of ``-inf`` forbids a label, a pair or a triple; an example with every output forbidden has value ``-inf``
    and status ABSENT. Among outputs of equal score the argmax takes the lowest last label, then the lowest label before
    it, and so on.
    """

    name = "second-order chain"
    order = 2
    most_labels = MOST_LABELS

    def __init__(
        self, lengths: npt.ArrayLike, n_labels: int, *, constraints: TransitionConstraints | None = None
    ) -> None:
        super().__init__(lengths, n_labels, constraints)
        k, once = self.n_labels, np.ones_like(self.lengths)
        self.blocks = (
            Block("nodes", offsets_in_memory(self.lengths, k, "labels at all positions")),
            Block("pairs", offsets_in_memory(once, k**2, "pairs of labels")),
            Block("triples", offsets_in_memory(once, k**3, "triples of labels")),
        )

    @cached_property
    def part_bound(self) -> FloatArray:
        """1 for nodes; pairs (a, a) and triples (a, a, a) can come at every place that has them, pairs (a, b) and
        triples (a, b, a) at every second, other triples at every third."""
        self._require_memory()
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
        flat, k = self._flat(labels), self.n_labels
        nodes = np.arange(len(flat)) * k + flat
        owner = np.repeat(np.arange(self.n_examples), self.lengths)
        second = np.flatnonzero(owner[1:] == owner[:-1]) + 1
        pairs = (owner[second] * k + flat[second - 1]) * k + flat[second]
        third = np.flatnonzero(owner[2:] == owner[:-2]) + 2
        triples = ((owner[third] * k + flat[third - 2]) * k + flat[third - 1]) * k + flat[third]
        return SparsePoint.counting(self, np.concatenate([nodes, self.starts[1] + pairs, self.starts[2] + triples]))

    def _packed(self, scores: FloatArray, what: str = "scores") -> _Batch:
        """First arguments of every kernel: offsets, constraints, and the three blocks of a packed vector."""
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

    @cached_property
    def _flags(self) -> tuple[_Flags, _Flags, _Flags]:
        """Allowed pairs, first and last labels as kernels take them."""
        rules = self._rules
        pairs, first, last = (flags.astype(np.uint8).reshape(-1) for flags in (rules.pairs, rules.first, rules.last))
        return pairs, first, last

    @property
    def _head(self) -> tuple[IntArray, int, _Flags, _Flags, _Flags]:
        return self.blocks[0].offsets, self.n_labels, *self._flags

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """The best label sequence of every example (Viterbi); ``warm`` is not needed."""
        return self._from_kernel(_kernels.second_order_argmax, *self._packed(scores))

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
        return self._labeling(_kernels.second_order_labels, *args)

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
        ranks = min(_checks.integer("k", k, least=1), self._most_outputs)
        if ranks * self.n_labels**2 >= 1 << 31:
            raise ValueError(f"k must be below 2^31 over the square of the number of labels, {self.n_labels}; got {k}")
        outputs = self._buffers(ranks)
        _kernels.second_order_k_best(*self._packed(scores), ranks, *outputs, _threads.current())
        return generic.ranked(*outputs)

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection by an active set of label sequences in the kernel; ``warm`` from an earlier call."""
        key = (self.name, self.n_labels, self.lengths.tobytes(), *(flags.tobytes() for flags in self._flags))
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
        return self._from_kernel(_kernels.second_order_marginals, *self._packed(potentials, "potentials"), False)

    def oracle(self, ranks: int = 1) -> Any:
        """Viterbi, or the ``ranks`` best, of one example at a time."""
        most = _checks.integer("ranks", ranks, least=1, most=((1 << 31) - 1) // self.n_labels**2)
        return _kernels.SecondOrderOracle(self.lengths, self.n_labels, *self._flags, most)

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order."""
        chosen = example_numbers(indices, self.n_examples)
        return type(self)(self.lengths[chosen], self.n_labels, constraints=self.constraints)
