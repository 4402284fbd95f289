"""Dynamic programs as deduction systems: everything a structure does, from the ways in which its items are made.

A *deduction system* (Shieber, Schabes and Pereira 1995; Goodman 1999) has items in topological order, the last of them
the goal; each item is made in one of several ways, from items before it and with parts of the output. The derivations
of the goal are the outputs, each by one derivation. A structure says in C++ what its items and ways are
(``cpp/include/maxmargin/deduction/system.hpp``), and has then, for an example with ``W`` ways:

- argmax: ``W`` additions and maxima;
- marginals and log-partition function, inside-outside: ``W`` exponentials;
- the ``k`` best outputs on demand (Huang and Chiang 2005, algorithm 3): an argmax, and per rank at most one step of a
  heap for each item of an output;
- slack rescaling, exactly, by fronts of (loss, score) for each item;
- Euclidean projection by an active set of outputs with the compiled argmax;
- a linear description of the hull of the outputs, with one variable for each way (Martin, Rardin and Campbell 1990):
  what is made of an item is what is used of it.
"""

from __future__ import annotations

import numpy as np

from maxmargin.structures._arrays import assembled
from maxmargin.structures.base import Polytope
from maxmargin.structures.compiled import Compiled


class Deduction(Compiled):
    """A batch whose kernels are those of a deduction system.

    Subclasses give ``blocks``, ``encode``, ``decode``, ``select``, ``kernel`` and ``_batch``. A score of
    ``-inf`` forbids a part; an example with every output forbidden has value ``-inf`` and status ABSENT. Among outputs
    of equal score the argmax takes the one whose items, from the goal on, are made in the first of their best ways.
    """

    marginals_unsupported = ""
    forbids = True
    slack_relaxed = False
    value_bounds = True

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
