"""Non-projective dependency trees: arcs may cross, so the outputs are the spanning arborescences of a graph.

The score of a tree is the sum of the scores of its arcs with labels. ``argmax`` contracts cycles (Chu and Liu 1965;
Edmonds 1967) on dense rows, in ``O(n^2)`` for ``n`` tokens (Tarjan 1977), with one root exactly and at the same cost;
:meth:`NonProjectiveTrees.duals` gives the proof: numbers for sets of tokens that cover the score of every arc and sum
to the score of the tree. ``k_best`` takes two such contractions for each rank (Camerini, Fratta and Maffioli 1980),
``marginals`` ``O(n^3)`` by the matrix-tree theorem (Koo et al. 2007), without a subtraction in the elimination, so that
potentials may be of any size.

No polynomial algorithm is known for slack rescaling over these trees: it is that over their hull, an upper bound.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin import _kernels, _memory, _threads
from maxmargin.structures._arrays import assembled, offsets_of, vector
from maxmargin.structures.base import FloatArray, IntArray, Polytope
from maxmargin.structures.compiled import Compiled
from maxmargin.structures.dependencies.base import DependencyTrees


class TreeDuals(NamedTuple):
    """Why no tree is better: an optimal solution of the dual linear program of every sentence.

    Of a sentence with tokens ``first:last`` of the batch the sets are numbered from 1 to ``2 (last - first)``, at
    entries ``2 first:2 last``. Sets 1 to ``n`` are the tokens; the others are unions of the sets that have them as
    parents. No arc scores more than the sum of ``sets`` over the sets that it enters; ``sets`` of more than one token
    are not positive, and all of a sentence sum to ``value``. With a single root arcs from the root are covered after
    the same number is subtracted from the scores of all of them, and the set that the tree enters from there may have
    any sign.

    Attributes:
        value: the sum of the duals of each sentence, shape ``(n_examples,)``; that of the best tree.
        sets: the dual of each set, 0 where there are fewer sets.
        parents: the smallest set that contains it, 0 if there is none; -1 where there are fewer sets.
    """

    value: FloatArray
    sets: FloatArray
    parents: npt.NDArray[np.int32]


class NonProjectiveTrees(DependencyTrees, Compiled):
    """A packed batch of sentences whose outputs are all trees, also those with arcs that cross.

    Args:
        n_tokens, arcs, arc_offsets, n_labels, single_root: see :class:`DependencyTrees`.

    A score of ``-inf`` forbids an arc with a label; a sentence with every tree forbidden has value ``-inf`` and status
    ABSENT. Ties go to the head and label that come first where a token or a contracted cycle takes its best arc.
    """

    name = "non-projective tree"
    kernel = "Arborescence"
    forbids = True
    projective = False
    marginals_unsupported = ""

    def __init__(
        self,
        n_tokens: npt.ArrayLike,
        arcs: npt.ArrayLike | None,
        arc_offsets: npt.ArrayLike | None,
        *,
        n_labels: int = 1,
        single_root: bool = True,
    ) -> None:
        super().__init__(n_tokens, arcs, arc_offsets, n_labels=n_labels, single_root=single_root)
        n = float(self.n_tokens.max(initial=0))
        _memory.require(16.0 * n**2, "the rows of the longest sentence", "split it")
        self._refuse_treeless()

    @cached_property
    def _batch(self) -> Any:
        return _kernels.ArborescenceBatch(self.n_tokens, self.n_labels, self.single_root, *self._arc_arrays)

    def duals(self, scores: FloatArray) -> TreeDuals:
        """An optimal solution of the dual program: a certificate that the argmax is one."""
        value, status = np.empty(self.n_examples), np.empty(self.n_examples, dtype=np.int8)
        sets, parents = np.empty(2 * self._total), np.empty(2 * self._total, dtype=np.int32)
        self._batch.duals(vector(scores, self.n_parts, "scores"), sets, parents, value, status, _threads.current())
        return TreeDuals(value, sets, parents)

    def polytope(self) -> Polytope:
        """``q`` holds the parts, then for each token a unit flow to it from the root, within the arcs (Wong 1984).

        Each token has one head, and with a single root one token has the root; ``n^3`` flows for ``n`` tokens.
        """
        example = np.repeat(np.arange(self.n_examples), np.diff(self.blocks[0].offsets) // self.n_labels)
        heads, _ = self.heads_of(np.arange(0, self.n_parts, self.n_labels))
        modifiers = np.repeat(np.arange(self._total), self.n_candidates)
        first = self.token_offsets[:-1][example]
        # One flow for each arc and each token of its sentence.
        counts = self.n_tokens[example]
        arc = np.repeat(np.arange(len(heads)), counts)
        goal = first[arc] + np.arange(len(arc)) - np.repeat(offsets_of(counts)[:-1], counts)
        flow = self.n_parts + np.arange(len(arc))
        # A row for each pair of a goal and another node of its sentence: what flows in there flows out.
        pairs = offsets_of(np.repeat(self.n_tokens, self.n_tokens))
        place = pairs[goal] - first[arc]
        inner, own = heads[arc] > 0, np.arange(self._total)
        parts = np.arange(self.n_parts)
        tokens, rows = self._total, int(pairs[-1])
        roots = self.n_examples if self.single_root else 0
        below = parts[np.repeat(heads == 0, self.n_labels)] if roots else parts[:0]
        entries = [
            (np.repeat(modifiers, self.n_labels), parts, 1.0),
            (tokens + place + modifiers[arc], flow, 1.0),
            (tokens + (place + first[arc] + heads[arc] - 1)[inner], flow[inner], -1.0),
            (tokens + rows + np.repeat(example, self.n_labels)[below], below, 1.0),
        ]
        rhs = np.zeros(tokens + rows + roots)
        rhs[:tokens] = 1.0
        rhs[tokens + pairs[:-1] + own - np.repeat(self.token_offsets[:-1], self.n_tokens)] = 1.0
        rhs[tokens + rows :] = 1.0
        size = self.n_parts + len(arc)
        taken: IntArray = (arc[:, None] * self.n_labels + np.arange(self.n_labels)).ravel()
        return Polytope(
            lift=assembled([(parts, parts, 1.0)], (self.n_parts, size)),
            ub=assembled(
                [(np.arange(len(arc)), flow, 1.0), (np.repeat(np.arange(len(arc)), self.n_labels), taken, -1.0)],
                (len(arc), size),
            ),
            ub_rhs=np.zeros(len(arc)),
            eq=assembled(entries, (len(rhs), size)),
            eq_rhs=rhs,
        )
