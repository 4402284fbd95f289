"""Gold outputs of which only some parts are known: every output that agrees with these is good.

``G_i`` are the outputs of example ``i`` that have the given parts and lack the excluded ones; which of the free parts
they have is hidden. The loss ``l_i(y) = c_i'y + d_i`` sees only what is known, so it is 0 throughout ``G_i``. There are
two hinges:

    formulation="best"   max_y [l_i(y) + w'F_i y] - max_{g in G_i} w'F_i g
    formulation="mean"   max_y [l_i(y) + w'F_i y] - w'F_i m_i,   m_i a point amid G_i

The first asks one good output to win, whichever is the easiest (the latent structural SVM of Yu and Joachims 2009): it
is a difference of convex functions. Rounds replace its second maximum by the good output ``g_i`` that is the best under
the last weights. That gives an ordinary convex problem, which is nowhere below the objective, as ``g_i`` is one of
``G_i``, and equal to it at the last weights: so no round raises the objective (the concave-convex procedure; Yuille and
Rangarajan 2003). Each round is certified; that the last one is the best of all local minima is not.

The second, the *relaxed hinge*, takes the mean of the good outputs (:func:`~maxmargin.structures.fallbacks.given.
mean_given`), a point of their hull, in place of the best one (for labels that do not depend on each other: Cour, Sapp
and Taskar 2011). It is convex and nowhere below the first, so its certificate bounds the best value of the first too.

Both are ordinary problems with one gold point, for all solvers, and with rescaled slack as well: violations are weighed
by a loss that is 0 on all of ``G_i``. Where all parts are given both are the hinge of the one gold output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin.features.base import Features
from maxmargin.losses import Hamming, LabelCost, Loss
from maxmargin.problem.good import GoodSets
from maxmargin.structures._arrays import array_of, ranges
from maxmargin.structures.base import FloatArray, IntArray, PointStatus, Structure
from maxmargin.structures.fallbacks.given import Given, argmax_given, mean_given
from maxmargin.structures.sparse import SparsePoint

FORMULATIONS = ("best", "mean")


@dataclass(frozen=True, eq=False)
class PartialOutputs(GoodSets):
    """The parts that are known of the gold outputs of a batch. Build them with :meth:`PartialOutputs.build`.

    Attributes:
        given: for each variable part 1 if the gold output has it, -1 if it lacks it, 0 if that is unknown; int8, shape
            ``(starts[1],)``. The other states of a categorical variable whose state is known are -1.
        formulation: "best" or "mean".
    """

    given: Given
    formulation: str = "best"

    @classmethod
    def build(cls, structure: Structure, given: npt.ArrayLike, formulation: str = "best") -> PartialOutputs:
        """Check the known parts; ValueError naming the example if no output agrees with them."""
        _checks.one_of("formulation", formulation, FORMULATIONS)
        parts = np.asarray(array_of(given, "given", "iu", "1, -1 or 0 for each variable part"))
        if parts.shape != (structure.starts[1],) or not np.isin(parts, (-1, 0, 1)).all():
            raise ValueError(f"given must be {structure.starts[1]} numbers 1, -1 or 0, one for each variable part")
        if (structure.part_bound[structure.variable_parts] > 1.0).any():
            raise ValueError(f"parts of this {structure.name} are counts, which are not in or out; give whole outputs")
        found = cls(_with_rivals(structure, parts.astype(np.int8)), formulation)
        for examples in structure.consecutive():
            own = structure.select(examples)
            first = int(examples[0]) if len(examples) else 0
            found.select(structure, examples)._best(own, np.zeros(own.n_parts), first)
        return found

    def unsupported(self, structure: Structure) -> str | None:
        """A batch of as many variable parts."""
        if self.given.shape != (structure.starts[1],):
            return "the known parts belong to another batch; build them from this one's structure"
        return None

    def select(self, structure: Structure, examples: IntArray) -> Self:
        """See :meth:`GoodSets.select`."""
        offsets = structure.blocks[0].offsets
        return replace(self, given=self.given[ranges(offsets[examples], offsets[examples + 1])])

    def best(self, structure: Structure, augmented: FloatArray) -> tuple[SparsePoint, Self]:
        """See :meth:`GoodSets.best`."""
        return self._best(structure, augmented, 0), self

    def _best(self, structure: Structure, scores: FloatArray, first: int) -> SparsePoint:
        """``first``: the number of the first example, for errors."""
        found = argmax_given(structure, scores, self.given)
        bad = found.status > PointStatus.INEXACT
        if bad.any():
            index = int(np.argmax(bad))
            where = f"example {first + index}"
            if found.status[index] == PointStatus.NONFINITE:
                raise ValueError(f"{where}: its scores are not finite; check the features and start weights")
            raise ValueError(f"{where}: no output agrees with what is given; correct it, or give less")
        return SparsePoint.of(structure, found.z)

    def completed(self, structure: Structure, features: Features, weights: FloatArray) -> SparsePoint:
        """The best good outputs under some weights, found piece by piece."""
        pieces = []
        for examples in structure.consecutive():
            own, first = structure.select(examples), int(examples[0]) if len(examples) else 0
            scores = features.select(examples).scores(weights)
            pieces.append((examples, self.select(structure, examples)._best(own, scores, first)))
        return SparsePoint.joined(structure, pieces)

    def mean(self, structure: Structure) -> SparsePoint:
        """A point amid the good outputs of each example: the gold point of the relaxed hinge."""
        return SparsePoint.of(structure, mean_given(structure, self.given))

    def first(
        self, structure: Structure, features: Features, nonnegative: npt.NDArray[np.bool_] | None = None
    ) -> SparsePoint:
        """The gold points of the first round: means for "mean"; for "best" the outputs that are best under
        ``sum_i F_i (m_i - u_i)``, with ``u_i`` a mean of all outputs, good or not.

        These weights are the gradient, at 0, of the log-likelihood that outputs are good, a first guess that needs no
        luck; their size does not matter. ``nonnegative``: weights that must be >= 0, as a mask.
        """
        mean = self.mean(structure)
        if self.formulation == "mean" or not (self.given == 0).any():
            return mean
        anything = mean_given(structure, np.zeros_like(self.given))
        weights = features.adjoint(mean.dense() - anything)
        if nonnegative is not None:
            weights[nonnegative] = np.maximum(weights[nonnegative], 0.0)
        return self.completed(structure, features, weights)

    def costs(self, structure: Structure, loss: Loss) -> FloatArray:
        """What each variable part costs by the known parts alone, packed, shape ``(starts[1],)``.

        Parts that good outputs may have cost nothing. Where one of several states is right, a wrong one costs as much
        as against the nearest of them.
        """
        n = structure.starts[1]
        gold = np.zeros(structure.n_parts)
        gold[:n] = _first_of_each(structure, self.given) if structure.categorical else self.given > 0
        if structure.categorical and not isinstance(loss, Hamming | LabelCost) and self._has_sets(structure):
            raise ValueError(
                f"{type(loss).__name__} compares with one gold state, and of some variables several are right; use "
                "losses.Hamming or losses.LabelCost"
            )
        costs = np.asarray(loss.costs(structure, gold)[0], dtype=np.float64)
        if costs[n:].any():
            raise ValueError(
                f"{type(loss).__name__} has costs outside of the variable parts, which depend on what is hidden; use a "
                "loss of the variables alone"
            )
        if isinstance(loss, LabelCost):
            costs = self._nearest(structure, np.asarray(loss.matrix, dtype=np.float64))
        return np.where(self.given != 0, costs[:n], 0.0)

    def _has_sets(self, structure: Structure) -> bool:
        """Whether a variable has several right states, but not all."""
        open_parts, _ = _counts(structure, self.given)
        return bool(((open_parts > 1) & (open_parts < structure.n_states)).any())

    def _nearest(self, structure: Structure, matrix: FloatArray) -> FloatArray:
        """The cost of each label by the nearest of the right ones."""
        owner, states = _owners(structure), structure.part_states
        costs = np.full(len(owner), np.inf)
        for label in range(len(matrix)):
            right = np.zeros(len(structure.n_states), dtype=bool)
            right[owner[(states == label) & (self.given >= 0)]] = True
            costs = np.where(right[owner], np.minimum(costs, matrix[label, states]), costs)
        return costs


def _owners(structure: Structure) -> IntArray:
    """The variable of each variable part."""
    return np.repeat(np.arange(len(structure.n_states)), structure.n_states)


def _counts(structure: Structure, given: Given) -> tuple[IntArray, IntArray]:
    """How many states of each categorical variable are not excluded, and how many are given."""
    owner, n = _owners(structure), len(structure.n_states)
    return np.bincount(owner[given >= 0], minlength=n), np.bincount(owner[given > 0], minlength=n)


def _with_rivals(structure: Structure, given: Given) -> Given:
    """The other states of a categorical variable whose state is given are excluded; a single one left is given."""
    if not structure.categorical or not len(given):
        return given
    owner, (left, known) = _owners(structure), _counts(structure, given)
    if (known > 1).any():
        variable = int(np.argmax(known > 1))
        part = int((np.cumsum(structure.n_states) - structure.n_states)[variable])
        example = int(np.searchsorted(structure.blocks[0].offsets, part, side="right")) - 1
        count = int(known[variable])
        raise ValueError(f"example {example}: a variable is given {count} states; give one, or exclude others")
    excluded = np.where((known[owner] > 0) & (given == 0), -1, given)
    return np.where((left[owner] == 1) & (given == 0), 1, excluded).astype(np.int8)


def _first_of_each(structure: Structure, given: Given) -> FloatArray:
    """For each categorical variable its first state that is not excluded, as 0/1 parts."""
    owner, at = _owners(structure), np.flatnonzero(given >= 0)
    first = np.zeros(len(given))
    first[at[np.unique(owner[at], return_index=True)[1]]] = 1.0
    return first
