"""Base of chains of first and second order: a label for every position of a sequence, and constraints on labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _threads
from maxmargin.structures._arrays import assembled, lengths_of, vector
from maxmargin.structures._labeled import check_range, joined_labels, largest
from maxmargin.structures.base import FloatArray, IntArray, Labeling, Polytope, Ragged, Structure
from maxmargin.structures.chains.transitions import TransitionConstraints


class LabelSequences(Structure):
    """A batch of label sequences; the first block has a part for every position and label, position-major.

    Args:
        lengths: number of positions of every example, shape ``(n_examples,)``; 0 is allowed.
        n_labels: number of labels ``K``; labels are ``0 .. K - 1``.
        constraints: which labels may follow each other, come first and come last; None for any.
    """

    categorical = True
    marginals_unsupported = ""
    forbids = True
    order: ClassVar[int]
    """How many labels before a label its scores see."""
    most_labels: ClassVar[int]
    """The largest number of labels."""

    def __init__(self, lengths: npt.ArrayLike, n_labels: int, constraints: TransitionConstraints | None) -> None:
        self.lengths = lengths_of(lengths)
        remedy = "" if self.order == 1 else "use Chain for more"
        self.n_labels = _checks.integer("n_labels", n_labels, least=1, most=self.most_labels, hint=remedy)
        if constraints is not None and not isinstance(constraints, TransitionConstraints):
            raise ValueError(f"constraints must be a TransitionConstraints or None, got {type(constraints).__name__}")
        if constraints is not None and constraints.n_labels != n_labels:
            raise ValueError(f"the constraints are for {constraints.n_labels} labels, but the chain has {n_labels}")
        self.constraints = constraints

    def __repr__(self) -> str:
        given = f"n_labels={self.n_labels}, constraints={self.constraints}"
        return f"{type(self).__name__}({self.n_examples} examples, {given})"

    @property
    def states_per_variable(self) -> int:
        """Each position chooses among all labels."""
        return self.n_labels

    @property
    def _rules(self) -> TransitionConstraints:
        return self.constraints or TransitionConstraints.anything(self.n_labels)

    @property
    def _most_outputs(self) -> int:
        """Label sequences of the longest example, ``K^T``; exact below ``2^31`` and a number above it otherwise."""
        return int(self.n_labels ** min(int(self.lengths.max(initial=0)), 31))

    def _flat(self, labels: Sequence[Any]) -> IntArray:
        """Legal label sequences, integers in ``0 .. K - 1``, one after the other."""
        flat = joined_labels(labels, self.lengths, "label sequences", "position")
        check_range(flat, self.n_labels, self.lengths, self.name)
        if self.constraints is not None:
            self.constraints.refuse(flat, self.lengths)
        return flat

    def decode(self, z: FloatArray) -> list[IntArray]:
        """Label sequences, one int64 array per example: the largest node part at every position."""
        return largest(vector(z, self.n_parts, "z")[self.variable_parts], self.n_labels, self.lengths)

    def _labeling(self, kernel: Callable[..., None], *arguments: Any) -> Labeling:
        """The labels that ``kernel(*arguments, labels, value, status, threads)`` finds."""
        found = np.empty(int(self.lengths.sum()), dtype=np.int32)
        value, status = np.empty(self.n_examples), np.empty(self.n_examples, dtype=np.int8)
        kernel(*arguments, found, value, status, _threads.current())
        return Labeling(Ragged(found, self.blocks[0].offsets // self.n_labels), value, status)

    def _shift(self, window: int, position: int) -> int:
        """Where in its block the parts of ``window`` labels in a row begin, the last of which is at ``position``."""
        return position * self.n_labels if window == 1 else 0

    def polytope(self) -> Polytope:
        """Marginals of ``order + 1`` neighboring labels: ``q`` holds one table for each place of so many neighbors, or
        one table of all labels of a shorter example.

        Tables sum to 1, and neighboring tables agree on the labels that they share; parts are sums over tables. Entries
        that no output has are left out. ``T K^(order + 1)`` variables: for reference solvers and small examples.
        """
        k, rules = self.n_labels, self._rules
        ahead, back = rules.reachable(int(self.lengths.max(initial=0)))
        lift: list[tuple[IntArray, IntArray, float]] = []
        eq: list[tuple[IntArray, IntArray, float]] = []
        rhs: list[float] = []
        possible = [np.zeros(0, dtype=bool)]
        size = 0
        for i, length in enumerate(self.lengths.tolist()):
            width = min(length, self.order + 1)
            cells = np.arange(k**width)
            digits = [cells // k ** (width - 1 - j) % k for j in range(width)]
            begin = [start + int(block.offsets[i]) for start, block in zip(self.starts, self.blocks, strict=False)]
            for first in range(length - width + 1 if length else 0):
                table, last = size + cells, first + width - 1
                for window in range(1, width + 1):
                    # The first table has all windows of its labels, a later one those that end with its last label.
                    for j in range(window - 1 if first == 0 else width - 1, width):
                        at = begin[window - 1] + self._shift(window, first + j)
                        part = sum(digit * k ** (j - d) for d, digit in enumerate(digits[: j + 1]) if d > j - window)
                        lift.append((at + part, table, 1.0))
                if first == 0:
                    eq.append((np.full(len(cells), len(rhs)), table, 1.0))
                    rhs.append(1.0)
                else:
                    shared = k ** (width - 1)
                    eq.append((len(rhs) + cells % shared, table - len(cells), 1.0))
                    eq.append((len(rhs) + cells // k, table, -1.0))
                    rhs += [0.0] * shared
                fine = ahead[first, digits[0]] & back[length - 1 - last, digits[-1]]
                for a, b in pairwise(digits):
                    fine = fine & rules.pairs[a, b]
                possible.append(fine)
                size += len(cells)
        kept = np.flatnonzero(np.concatenate(possible))
        equations = assembled(eq, (len(rhs), size))[:, kept]
        rows = np.flatnonzero((np.diff(equations.indptr) > 0) | (np.array(rhs) != 0.0))
        return Polytope(
            lift=assembled(lift, (self.n_parts, size))[:, kept], eq=equations[rows], eq_rhs=np.array(rhs)[rows]
        )
