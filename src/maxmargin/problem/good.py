"""Several good outputs per example (Wang and Shawe-Taylor 2009, LPs (7) and (8); Yu and Joachims 2009).

With the score ``v = w'f`` of an output and the margin of a pair of a bad and a good one, which is 1
(``rescaling="none"``) or ``cost(bad) - cost(good)`` (``"margin"``, with costs given), an example has the hinge

    formulation="nearest"   max(0, max_bad margin + v(bad) - v(the good one nearest to bad))        LP (7)
    formulation="all"       max(0, max_bad max_good margin + v(bad) - v(good))                      LP (8)
    formulation="best"      max(0, max_bad min_good margin + v(bad) - v(good))

"all" wants every good output above every bad one, "nearest" only those that resemble bad ones, "best" one good output
of each example, whichever is the easiest: it is not convex, so rounds fix the best good output under the last weights
and solve the convex problem of that one, in which the other good outputs are not wrong, and each round lowers the
objective (:class:`maxmargin.training.BestGood`).

The most violated constraint is a pair, which enters a problem as the point ``gold + bad - good``.
:class:`CandidateSets` are good sets of explicit lists, :class:`maxmargin.problem.PathSets` those of lattices. Good sets
of any structure, the outputs that agree with given parts, are :class:`maxmargin.problem.PartialOutputs`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _kernels
from maxmargin._messages import shown
from maxmargin.features.base import Features
from maxmargin.problem.nearest import Distance, nearest_good
from maxmargin.structures._arrays import integers
from maxmargin.structures.base import FloatArray, IntArray, Structure
from maxmargin.structures.candidates import Candidates
from maxmargin.structures.sparse import SparsePoint

FORMULATIONS = ("gold", "nearest", "all", "best")


class GoodSets(ABC):
    """Which outputs of a batch are good, where an example may have several."""

    formulation: str
    """What wrong outputs are compared with."""

    @abstractmethod
    def unsupported(self, structure: Structure) -> str | None:
        """The reason why these good sets do not belong to a batch, or None."""

    @abstractmethod
    def select(self, structure: Structure, examples: IntArray) -> Self:
        """Those of some examples of the batch."""

    @abstractmethod
    def best(self, structure: Structure, augmented: FloatArray) -> tuple[SparsePoint, Self]:
        """The good output of the largest score of each example, and the sets of a round in which it is the gold one.

        ``augmented``: packed scores, shape ``(n_parts,)``.
        """


class GoodOutputs(GoodSets):
    """Good sets whose bad outputs are compared with good ones in pairs.

    *Augmented* scores are those of the parts with the example weights, ``s_i F_i'w``, and where the margin is rescaled
    also with the costs: the violation of a pair is then ``margin + augmented'(bad - good)`` with a margin of 0 or
    ``s_i``. The formulation is one of :data:`FORMULATIONS` but the first.
    """

    @abstractmethod
    def most_violated(
        self, structure: Structure, augmented: FloatArray, margin: FloatArray, first: int
    ) -> tuple[FloatArray, FloatArray]:
        """The most violated pair of each example.

        Args:
            structure: the batch.
            augmented: augmented scores, finite, shape ``(n_parts,)``.
            margin: shape ``(n_examples,)``.
            first: the number of the first example, for errors.

        Returns:
            ``bad - good`` packed, shape ``(n_parts,)``, and the violations, shape ``(n_examples,)``; ``-inf`` where no
            output is bad.
        """

    @abstractmethod
    def pairs(self, structure: Structure, example: int) -> FloatArray:
        """All pairs ``bad - good`` of one example, one per row of its parts; for tiny examples."""

    def online_hinge(self, structure: Structure, gold: SparsePoint, costs: FloatArray | None, scale: FloatArray) -> Any:
        """A compiled view of :meth:`most_violated` for one example at a time; None leaves it to calls of Python.

        Args:
            structure: the batch.
            gold: its gold outputs.
            costs: packed ``s_i c_i``; None for a margin of 1.
            scale: ``s_i``, shape ``(n_examples,)``.
        """
        return None


@dataclass(frozen=True, eq=False)
class CandidateSets(GoodOutputs):
    """Which candidates of explicit lists are good. All maxima are exact, as every pair is tried.

    In "nearest", too: the bad candidate with the largest score need not violate its margin most.

    Attributes:
        mask: packed, True for good ones, shape ``(n_parts,)``.
        formulation: "nearest", "all" or "best".
        nearest: the good candidate that each one is compared with, counted from 0 in its list, shape ``(n_parts,)``;
            None for "all".
    """

    mask: npt.NDArray[np.bool_]
    formulation: str
    nearest: IntArray | None

    @classmethod
    def build(
        cls,
        structure: Structure,
        features: Features,
        mask: npt.ArrayLike,
        formulation: str,
        distance: Distance | None = None,
        nearest: npt.ArrayLike | None = None,
    ) -> CandidateSets:
        """Check the good sets; for "nearest", find the nearest good candidates.

        Args:
            structure: a batch of :class:`Candidates`.
            features: of its candidates.
            mask: packed, True for good candidates; at least one per example.
            formulation: "nearest", "all" or "best", which starts with the first good one of each example.
            distance: a function of two rows of features, the good one's first: vectors, or CSR matrices of shape
                ``(1, n_features)`` where the features are sparse; None for the Euclidean distance.
            nearest: in place of a distance, the good candidate that each one is compared with, counted from 0 in its
                list; packed, shape ``(n_parts,)``. Entries of good ones are not read.
        """
        if formulation not in FORMULATIONS[1:]:
            raise ValueError(f'formulation with good sets must be "nearest", "all" or "best", got {shown(formulation)}')
        if not isinstance(structure, Candidates):
            raise ValueError(
                f'formulation="{formulation}" compares all outputs one by one, and the outputs of {structure.called} '
                'are not listed; use formulation="gold", or list the best ones as Candidates'
            )
        good = np.asarray(mask)
        if good.dtype != np.bool_ or good.shape != (structure.n_parts,):
            raise ValueError(f"the mask of good candidates must be boolean, of shape ({structure.n_parts},)")
        none = structure.by_example(good.astype(np.float64)) == 0.0
        if none.any():
            raise ValueError(f"example {int(np.flatnonzero(none)[0])}: no candidate is good; mark one or remove it")
        if distance is not None and not callable(distance):
            raise ValueError(f"distance must be a function of two rows of features, got {shown(distance)}")
        if formulation != "nearest" and (distance is not None or nearest is not None):
            raise ValueError(f'a distance and nearest candidates are for formulation="nearest", not "{formulation}"')
        if nearest is not None and distance is not None:
            raise ValueError("give a distance or the nearest candidates, not both")
        if formulation == "all":
            return cls(good, formulation, None)
        if formulation == "best":
            at = structure.first_largest(good.astype(np.float64))[0]
            return cls(good, formulation, _repeated(structure, at))
        if nearest is None:
            return cls(good, formulation, nearest_good(structure, features, good, distance))
        return cls(good, formulation, _checked_nearest(structure, good, nearest))

    def unsupported(self, structure: Structure) -> str | None:
        """Lists of the same lengths."""
        if not isinstance(structure, Candidates) or self.mask.shape != (structure.n_parts,):
            return "the good sets belong to another batch; build them from this one's structure"
        return None

    def select(self, structure: Structure, examples: IntArray) -> Self:
        """See :meth:`GoodSets.select`."""
        parts = structure.parts_of(examples)
        return replace(self, mask=self.mask[parts], nearest=None if self.nearest is None else self.nearest[parts])

    def most_violated(
        self, structure: Structure, augmented: FloatArray, margin: FloatArray, first: int
    ) -> tuple[FloatArray, FloatArray]:
        """See :meth:`GoodOutputs.most_violated`."""
        assert isinstance(structure, Candidates)
        if self.nearest is None:
            good, least = structure.first_largest(np.where(self.mask, -augmented, -np.inf))
            bad, most = structure.first_largest(np.where(self.mask, -np.inf, augmented))
            value = most + least
        else:
            reference = np.repeat(structure.blocks[0].offsets[:-1], structure.sizes) + self.nearest
            bad, value = structure.first_largest(np.where(self.mask, -np.inf, augmented - augmented[reference]))
            good = reference[bad]
        pairs = np.zeros(structure.n_parts)
        pairs[bad] = 1.0
        pairs[good] -= 1.0
        return pairs, margin + value

    def pairs(self, structure: Structure, example: int) -> FloatArray:
        """See :meth:`GoodOutputs.pairs`."""
        first, last = structure.blocks[0].offsets[example : example + 2]
        mask = self.mask[first:last]
        good, bad = np.flatnonzero(mask), np.flatnonzero(~mask)
        if self.nearest is None:
            bad, good = np.repeat(bad, len(good)), np.tile(good, len(bad))
        else:
            good = self.nearest[first:last][bad]
        rows = np.zeros((len(bad), len(mask)))
        rows[np.arange(len(bad)), bad] = 1.0
        rows[np.arange(len(bad)), good] -= 1.0
        return rows

    def best(self, structure: Structure, augmented: FloatArray) -> tuple[SparsePoint, Self]:
        """See :meth:`GoodSets.best`; of equal ones the first."""
        assert isinstance(structure, Candidates)
        at = structure.first_largest(np.where(self.mask, augmented, -np.inf))[0]
        return SparsePoint.from_index(structure, at), replace(self, nearest=_repeated(structure, at))

    def online_hinge(self, structure: Structure, gold: SparsePoint, costs: FloatArray | None, scale: FloatArray) -> Any:
        """See :meth:`GoodOutputs.online_hinge`."""
        offsets = structure.blocks[0].offsets
        return _kernels.PairsHinge(
            offsets,
            self.mask.view(np.uint8),
            np.zeros(0, dtype=np.int64) if self.nearest is None else self.nearest,
            gold.index - offsets[:-1],
            np.zeros(0) if costs is None else costs,
            scale,
        )


def _repeated(structure: Candidates, at: IntArray) -> IntArray:
    """For every candidate the number, in its list, of the one at a position of each list."""
    return np.repeat(at - structure.blocks[0].offsets[:-1], structure.sizes)


def _checked_nearest(structure: Candidates, good: npt.NDArray[np.bool_], given: npt.ArrayLike) -> IntArray:
    """The nearest good candidates as given; those of good ones are themselves."""
    nearest = integers(given, "nearest")
    if nearest.shape != (structure.n_parts,):
        raise ValueError(f"nearest must have shape ({structure.n_parts},), one per candidate, got {nearest.shape}")
    begin = np.repeat(structure.blocks[0].offsets[:-1], structure.sizes)
    nearest = np.where(good, np.arange(structure.n_parts) - begin, nearest)
    outside = (nearest < 0) | (nearest >= np.repeat(structure.sizes, structure.sizes))
    wrong = outside | ~good[np.where(outside, 0, begin + nearest)]
    if wrong.any():
        part = int(np.flatnonzero(wrong)[0])
        example = int(np.searchsorted(structure.blocks[0].offsets, part, side="right")) - 1
        raise ValueError(
            f"example {example}: the nearest candidate of number {part - int(begin[part])} is {int(nearest[part])}, "
            "which is not the number of a good candidate of the list"
        )
    return nearest
