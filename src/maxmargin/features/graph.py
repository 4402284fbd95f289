"""Features of the nodes or edges of labelled graphs: one row each, its weights repeated for every label or pair.

Row ``x_r`` of an item and weights ``W``, shape ``(d, m)``, give the item's ``m`` parts the scores ``x_r'W``, plus a
constant row of weights if asked for. A graph's features are two such maps put side by side
(:class:`maxmargin.features.Stacked`): nodes with ``m = K``; edges with ``m = K^2`` and a constant row for a general
graph, with ``m = K`` for an associative network.

Cost per call: ``2 nnz m`` operations, one pass over the matrix (:mod:`maxmargin.features.rows`); with ``alike``
``2 nnz``.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin import _kernels, _threads
from maxmargin.features.base import Features
from maxmargin.features.rows import Matrix, Rows
from maxmargin.structures._arrays import example_numbers, offsets_of, vector
from maxmargin.structures.base import FloatArray


class TiedRows(Features):
    """Features of one block of a labelled graph.

    Weights: with ``constant`` first ``m`` numbers, then ``(d, m)`` row-major; with ``alike`` only ``d``, the same for
    all ``m`` parts of an item. Parts: item-major, ``m`` per row.

    Args:
        matrix: shape ``(n_items, d)``, one row per node or edge of all graphs, dense float64 or CSR.
        offsets: shape ``(n_examples + 1,)``: example ``i`` has rows ``offsets[i]:offsets[i + 1]``.
        m: parts per row.
        constant: whether every row has ``m`` more weights that do not depend on it.
        alike: whether all parts of a row have the same weights.
    """

    def __init__(
        self, matrix: Matrix, offsets: npt.ArrayLike, m: int, *, constant: bool = False, alike: bool = False
    ) -> None:
        self._setup(Rows(matrix, "the feature matrix"), np.asarray(offsets, dtype=np.int64), m, constant, alike)

    def _setup(self, rows: Rows, offsets: npt.NDArray[np.int64], m: int, constant: bool, alike: bool) -> None:
        if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != rows.n:
            raise ValueError(f"offsets must rise from 0 to the number of rows, {rows.n}")
        if np.any(np.diff(offsets) < 0):
            raise ValueError("offsets must not decrease")
        if m < 1 or (constant and alike):
            raise ValueError("give m >= 1, and not both constant and alike")
        self.rows, self.offsets, self.m, self.constant, self.alike = rows, offsets, int(m), constant, alike
        self.start = self.m if constant else 0
        self.n_weights = self.start + rows.d * (1 if alike else self.m)
        self.n_parts, self.n_examples = rows.n * self.m, len(offsets) - 1

    def write_scores(self, weights: FloatArray, out: FloatArray) -> None:
        """Write ``F'w`` into ``out``, a contiguous vector of length ``n_parts``."""
        weights = vector(weights, self.n_weights, "weights")
        if self.alike:
            column = np.empty(self.rows.n)
            self.rows.times(weights, 1, column)
            out.reshape(-1, self.m)[:] = column[:, None]
        else:
            self.rows.times(weights[self.start :], self.m, out, weights[: self.start])

    def write_adjoint(self, z: FloatArray, out: FloatArray) -> None:
        """Write ``F z`` into ``out``, a contiguous vector of length ``n_weights``."""
        z = vector(z, self.n_parts, "z")
        if self.alike:
            self.rows.transpose_times(z.reshape(-1, self.m).sum(axis=1), 1, out)
            return
        if self.constant:
            ones = np.ones(self.rows.n)
            _kernels.linear_dense_adjoint(z.reshape(-1, self.m), ones, 1, out[: self.start], _threads.current())
        self.rows.transpose_times(z, self.m, out[self.start :])

    def select(self, indices: npt.ArrayLike) -> Self:
        """The features of the given examples, in that order; consecutive ones share memory."""
        chosen = example_numbers(indices, self.n_examples)
        other = type(self).__new__(type(self))
        offsets = offsets_of(np.diff(self.offsets)[chosen])
        other._setup(self.rows.select(self.offsets, chosen), offsets, self.m, self.constant, self.alike)
        return other

    def to_sparse(self) -> sp.csr_array:
        """The explicit matrix, shape ``(n_parts, n_weights)``."""
        rows = self.rows.to_sparse()
        if self.alike:
            return sp.csr_array(sp.kron(rows, np.ones((self.m, 1)), format="csr"))
        parts = sp.eye_array(self.m)
        varying = sp.kron(rows, parts, format="csr")
        if not self.constant:
            return sp.csr_array(varying)
        return sp.csr_array(sp.hstack([sp.kron(np.ones((rows.shape[0], 1)), parts), varying], format="csr"))
