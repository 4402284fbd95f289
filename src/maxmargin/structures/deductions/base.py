"""Dynamic programs as deduction systems: everything a structure does, from the ways in which its items are made.

A *deduction system* (Shieber, Schabes and Pereira 1995; Goodman 1999) has items in topological order, the last of them
the goal; each item is made in one of several ways, from items before it and with parts of the output. The derivations
of the goal are the outputs, each by one derivation. A structure says in C++ what its items and ways are
(``cpp/include/maxmargin/deduction/system.hpp``), and has then, for an example with ``W`` ways:

- argmax: ``W`` additions and maxima;
- marginals and log-partition function, inside-outside: ``2 W`` exponentials;
- the ``k`` best outputs on demand (Huang and Chiang 2005, algorithm 3): an argmax, and per rank at most one step of a
  heap for each item of an output;
- slack rescaling, exactly, by fronts of (loss, score) for each item;
- Euclidean projection by an active set of outputs with the compiled argmax;
- a linear description of the hull of the outputs, with one variable for each way (Martin, Rardin and Campbell 1990):
  what is made of an item is what is used of it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from maxmargin import _checks, _kernels, _threads
from maxmargin.structures._arrays import assembled, vector
from maxmargin.structures.base import FloatArray, Points, Polytope, Structure
from maxmargin.structures.fallbacks import generic

MOST_RANKS = (1 << 31) - 1
"""``k_best`` counts ranks up to this."""


class Deduction(Structure):
    """A batch whose kernels are those of a deduction system.

    Subclasses give ``blocks``, ``encode``, ``decode``, ``select``, :attr:`kernel` and :attr:`_batch`. A score of
    ``-inf`` forbids a part; an example with every output forbidden has value ``-inf`` and status ABSENT. Among outputs
    of equal score the argmax takes the one whose items, from the goal on, are made in the first of their best ways.
    """

    kernel: ClassVar[str]
    """The name of its kernel objects: ``kernel + "Batch"`` and ``kernel + "Oracle"`` of the compiled module."""

    categorical = False
    marginals_unsupported = ""
    forbids = True
    slack_relaxed = False
    value_bounds = True

    @cached_property
    @abstractmethod
    def _batch(self) -> Any:
        """The kernel object, made and checked once, when first asked for."""

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """The best output of every example; ``warm`` is not needed."""
        return self._from_kernel(self._batch.argmax, vector(scores, self.n_parts, "scores"))

    def k_best(self, scores: FloatArray, k: int) -> list[Points]:
        """The ``k`` best outputs of every example, exactly; the first is the argmax."""
        ranks = min(_checks.integer("k", k, least=1), self._most_outputs)
        if ranks >= MOST_RANKS:
            raise ValueError(f"k must be below {MOST_RANKS}, got {k}")
        outputs = self._buffers(ranks)
        self._batch.k_best(ranks, vector(scores, self.n_parts, "scores"), *outputs, _threads.current())
        return generic.ranked(*outputs)

    @cached_property
    def _most_outputs(self) -> int:
        """The number of outputs of the example that has most, but at least 1 and no more than MOST_RANKS."""
        most = float(self.log_outputs().max(initial=0.0))
        return MOST_RANKS if most >= math.log(MOST_RANKS) else max(math.ceil(math.exp(most) - 1e-6), 1)

    def marginals(self, potentials: FloatArray) -> Points:
        """Expected parts of ``p(y) ~ exp(potentials'y)``, by inside-outside; ``value`` is the log-partition function.

        Potentials may be of any size (marginals are as exact as sums of such numbers); ``-inf`` forbids a part.
        """
        return self._from_kernel(self._batch.marginals, vector(potentials, self.n_parts, "potentials"))

    def slack_argmax(
        self, scores: FloatArray, margin: FloatArray, costs: FloatArray, constants: FloatArray, *, warm: Any = None
    ) -> Points:
        """``argmax_y (costs'y + constants) (margin + scores'y)`` over outputs, exactly; ``warm`` is not needed.

        Per item, all pairs of loss and score of which none beats another in both are kept. INEXACT, with an upper bound
        as value, where these would be thousands (64 to 4096, by the size of the example).
        """
        scores, costs = vector(scores, self.n_parts, "scores"), vector(costs, self.n_parts, "costs")
        margin, constants = vector(margin, self.n_examples, "margin"), vector(constants, self.n_examples, "constants")
        return self._from_kernel(self._batch.slack_argmax, scores, margin, costs, constants)

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection by an active set of outputs in the kernel; ``warm`` from a call of this batch."""
        point = vector(point, self.n_parts, "point")
        return generic.project_in_kernel(
            self, tol, warm, self, lambda hull, *outputs: self._batch.project(hull, point, *outputs)
        )

    def polytope(self) -> Polytope:
        """``q`` holds the ways; one equation per item: the goal is made once, others as often as they are used."""
        starts, flat = self._batch.ways()
        ways = flat.reshape(-1, 5)
        columns = np.arange(len(ways))
        made = (ways[:, 0], columns, 1.0)
        used = [(ways[has, side], columns[has], -1.0) for side in (1, 2) for has in [ways[:, side] >= 0]]
        parts = [(ways[has, side], columns[has], 1.0) for side in (3, 4) for has in [ways[:, side] >= 0]]
        goals = np.zeros(int(starts[-1]))
        goals[starts[1:] - 1] = 1.0
        return Polytope(
            lift=assembled(parts, (self.n_parts, len(ways))),
            eq=assembled([made, *used], (len(goals), len(ways))),
            eq_rhs=goals,
        )

    def oracle(self, ranks: int = 1) -> Any:
        """The best output, or the ``ranks`` best, and slack rescaling of one example at a time."""
        most = _checks.integer("ranks", ranks, least=1, most=MOST_RANKS)
        return getattr(_kernels, self.kernel + "Oracle")(self._batch, most)
