"""Several good outputs per example, on explicit lists (Wang and Shawe-Taylor 2009, LPs (7) and (8)).

With the good candidates ``Y`` and the bad ones of an example, both formulations have a margin of 1 and the hinges

    formulation="nearest"   max(0, max_bad 1 + w'f(bad) - w'f(the good one nearest to bad))        LP (7)
    formulation="all"       max(0, 1 + max_bad w'f(bad) - min_good w'f(good))                      LP (8)

"all" wants every good candidate above every bad one, "nearest" only those that resemble bad ones. As lists are explicit
both maxima are exact; in "nearest" over all bad candidates, of which the one with the largest score need not violate
the margin most. The most violated constraint is a pair, which enters a problem as the point ``gold + bad - good``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._sparse import sp
from maxmargin.features.base import Features
from maxmargin.features.parts import PartFeatures
from maxmargin.structures.base import FloatArray, IntArray, Structure
from maxmargin.structures.candidates import Candidates

FORMULATIONS = ("gold", "nearest", "all")

Distance = Callable[[Any, Any], float]
"""Of two rows of features: vectors, or CSR matrices of one row where the features are sparse."""


@dataclass(frozen=True, eq=False)
class GoodOutputs:
    """Which candidates are good, and how bad ones are compared with them.

    Attributes:
        mask: packed, True for good ones, shape ``(n_parts,)``.
        nearest: for "nearest", the good candidate nearest to each one, counted from 0 in its list, shape
            ``(n_parts,)``; None for "all".
    """

    mask: npt.NDArray[np.bool_]
    nearest: IntArray | None

    @classmethod
    def build(
        cls,
        structure: Structure,
        features: Features,
        mask: npt.ArrayLike,
        formulation: str,
        distance: Distance | None = None,
    ) -> GoodOutputs:
        """Check the good sets; for "nearest", find the nearest good candidates.

        Args:
            structure: a batch of :class:`Candidates`.
            features: of its candidates.
            mask: packed, True for good candidates; at least one per example.
            formulation: "nearest" or "all".
            distance: a function of two rows of features, the good one's first: vectors, or CSR matrices of shape
                ``(1, n_features)`` where the features are sparse; None for the Euclidean distance.
        """
        if formulation not in FORMULATIONS[1:]:
            raise ValueError(f'formulation with good sets must be "nearest" or "all", got {formulation!r}')
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
            raise ValueError(f"distance must be a function of two rows of features, got {distance!r}")
        nearest = None
        if formulation == "nearest":
            rows, dense = features.to_sparse(), isinstance(features, PartFeatures) and features.rows.dense is not None
            pieces = []
            for index, (first, last) in enumerate(pairwise(structure.blocks[0].offsets.tolist())):
                own = sp.csr_array(rows[first:last])
                own.sum_duplicates()  # with sorted columns differences of rows take no memory of their own
                if distance is None:
                    pieces.append(_nearest(own, good[first:last]))
                else:
                    pieces.append(_nearest_by(distance, own, good[first:last], index, dense=dense))
            nearest = np.concatenate([np.zeros(0, dtype=np.int64), *pieces])
        return cls(good, nearest)

    def select(self, parts: IntArray) -> GoodOutputs:
        """Those of some examples, by the positions of their parts."""
        return GoodOutputs(self.mask[parts], None if self.nearest is None else self.nearest[parts])

    def pairs(self, bounds: IntArray) -> FloatArray:
        """All pairs of the candidates ``bounds[0]:bounds[1]`` of one example, ``bad - good`` one per row."""
        mask = self.mask[bounds[0] : bounds[1]]
        good, bad = np.flatnonzero(mask), np.flatnonzero(~mask)
        if self.nearest is None:
            bad, good = np.repeat(bad, len(good)), np.tile(good, len(bad))
        else:
            good = self.nearest[bounds[0] : bounds[1]][bad]
        rows = np.zeros((len(bad), len(mask)))
        rows[np.arange(len(bad)), bad] = 1.0
        rows[np.arange(len(bad)), good] -= 1.0
        return rows

    def most_violated(self, structure: Candidates, scores: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The most violated pair of each example: positions of the bad and the good one, and ``1 + w'(bad - good)``.

        The value is ``-inf`` where no candidate is bad.
        """
        if self.nearest is None:
            good, least = structure.first_largest(np.where(self.mask, -scores, -np.inf))
            bad, most = structure.first_largest(np.where(self.mask, -np.inf, scores))
            return bad, good, 1.0 + most + least
        begin = np.repeat(structure.blocks[0].offsets[:-1], structure.sizes)
        reference = begin + self.nearest
        bad, value = structure.first_largest(np.where(self.mask, -np.inf, 1.0 + scores - scores[reference]))
        return bad, reference[bad], value


def _nearest(rows: sp.csr_array, good: npt.NDArray[np.bool_]) -> IntArray:
    """For each candidate of one example the number of the nearest good one, the first of equally near ones.

    By inner products over the features that the list has: no row is ever as long as there are features.
    """
    at = np.flatnonzero(good)
    columns, within = np.unique(rows.indices, return_inverse=True)
    own = sp.csr_array((rows.data, within.astype(rows.indptr.dtype), rows.indptr), shape=(len(good), len(columns)))
    if 2 * own.nnz >= len(good) * len(columns):
        table = own.toarray()
        squares, products = np.square(table).sum(axis=1), table @ table[at].T
    else:
        squares, products = np.asarray(own.multiply(own).sum(axis=1)).ravel(), (own @ own[at].T).toarray()
    return np.asarray(at[np.argmin(squares[:, None] - 2.0 * products + squares[at], axis=1)], dtype=np.int64)


def _nearest_by(
    distance: Distance, rows: sp.csr_array, good: npt.NDArray[np.bool_], index: int, *, dense: bool
) -> IntArray:
    """The same by a distance of the caller's; of vectors, or of sparse rows."""
    at = np.flatnonzero(good)
    given: Any = rows.toarray() if dense else [rows[[i]] for i in range(len(good))]
    distances = np.array([[distance(given[g], row) for g in at] for row in given], dtype=np.float64)
    if distances.shape != (len(good), len(at)) or np.isnan(distances).any():
        raise ValueError(f"example {index}: the distance must give one number, and no NaN, for two rows of features")
    return np.asarray(at[np.argmin(distances, axis=1)], dtype=np.int64)
