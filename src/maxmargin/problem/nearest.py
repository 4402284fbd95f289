"""The good candidate that is nearest to each bad one, list by list, by the features."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._sparse import sp
from maxmargin.features.base import Features
from maxmargin.features.parts import PartFeatures
from maxmargin.structures.base import IntArray
from maxmargin.structures.candidates import Candidates

Distance = Callable[[Any, Any], float]
"""Of two rows of features: vectors, or CSR matrices of one row where the features are sparse."""


def nearest_good(
    structure: Candidates, features: Features, good: npt.NDArray[np.bool_], distance: Distance | None
) -> IntArray:
    """For each candidate the number of the nearest good one of its list, shape ``(n_parts,)``.

    ``good``: packed, shape ``(n_parts,)``; ``distance``: None for the Euclidean one.
    """
    rows, dense = features.to_sparse(), isinstance(features, PartFeatures) and features.rows.dense is not None
    pieces = []
    for index, (first, last) in enumerate(pairwise(structure.blocks[0].offsets.tolist())):
        own = sp.csr_array(rows[first:last])
        own.sum_duplicates()  # with sorted columns differences of rows take no memory of their own
        if distance is None:
            pieces.append(_nearest(own, good[first:last]))
        else:
            pieces.append(_nearest_by(distance, own, good[first:last], index, dense=dense))
    return np.concatenate([np.zeros(0, dtype=np.int64), *pieces])


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
