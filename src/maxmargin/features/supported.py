"""Weights for some pairs of features and labels only, such as those that occur together in the training data.

Row ``x_r`` of an item gives its part ``c`` the score ``sum_f x_rf W[f, c]`` over those features ``f`` that have a weight
for ``c``: :class:`Support` says which do. With hundreds of thousands of features, each of which occurs with one or two
of the labels, all pairs would be mostly weights that nothing speaks for, and ten times the memory.

Cost per call: one addition per non-zero of the matrix and weight of its feature; the adjoint goes over a transposed
copy, made at the first one and kept. Results have the same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin import _kernels, _threads
from maxmargin.features.base import Features
from maxmargin.features.rows import Matrix, Rows
from maxmargin.structures._arrays import example_numbers, offsets_of, vector
from maxmargin.structures.base import FloatArray, IntArray

_NOTHING: FloatArray = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Support:
    """Which columns each feature has weights for.

    Attributes:
        starts: feature ``f`` has the weights ``starts[f]:starts[f + 1]``, shape ``(n_features + 1,)``, int32.
        columns: the column of each weight, rising within a feature, int32.
        m: number of columns.
    """

    starts: npt.NDArray[np.int32]
    columns: npt.NDArray[np.int32]
    m: int

    @property
    def n_features(self) -> int:
        """Rows of the pattern."""
        return len(self.starts) - 1

    @property
    def n_weights(self) -> int:
        """Pairs in the pattern."""
        return len(self.columns)

    @cached_property
    def features(self) -> IntArray:
        """The feature of each weight, shape ``(n_weights,)``."""
        return np.repeat(np.arange(self.n_features), np.diff(self.starts))

    @cached_property
    def compiled(self) -> Any:
        """As kernels take it; ValueError where the arrays are no pattern."""
        return _kernels.Support(self.starts, self.columns, self.m)

    def __getstate__(self) -> dict[str, Any]:
        return {"starts": self.starts, "columns": self.columns, "m": self.m}

    @classmethod
    def of_pairs(cls, pairs: IntArray, n_features: int, m: int) -> Support:
        """Of numbers ``feature * m + column``, rising."""
        if len(pairs) >= 1 << 31:
            raise ValueError(f"{len(pairs):,} weights are too many; give fewer features, or a larger frequency cut-off")
        starts = np.searchsorted(pairs, np.arange(n_features + 1, dtype=np.int64) * m).astype(np.int32)
        return cls(starts, (pairs % m).astype(np.int32), m)

    @classmethod
    def observed(cls, matrix: sp.csr_array, columns: IntArray, m: int) -> Support:
        """The pairs that occur: feature ``f`` and column ``columns[r]`` where row ``r`` has ``f``; -1 for no column."""
        owner = np.repeat(columns, np.diff(matrix.indptr))
        known = owner >= 0
        pairs = matrix.indices[known].astype(np.int64) * m + owner[known]
        return cls.of_pairs(np.unique(pairs), matrix.shape[1], m)

    @classmethod
    def full(cls, n_features: int, m: int) -> Support:
        """All pairs."""
        return cls.of_pairs(np.arange(n_features * m, dtype=np.int64), n_features, m)

    def pairs(self) -> IntArray:
        """Numbers ``feature * m + column`` of the weights, rising."""
        return self.features * self.m + self.columns


class SupportedRows(Features):
    """Features of one block of labelled items, with weights for the pairs of a :class:`Support`.

    Weights: with ``constant`` first ``m`` numbers, then one per pair. Parts: item-major, ``m`` per row.

    Args:
        matrix: shape ``(n_items, d)``, one row per item of all examples, CSR.
        offsets: shape ``(n_examples + 1,)``: example ``i`` has rows ``offsets[i]:offsets[i + 1]``.
        support: which pairs have weights.
        constant: whether every row has ``m`` more weights that do not depend on it.
    """

    def __init__(
        self, matrix: Matrix | Rows, offsets: npt.ArrayLike, support: Support, *, constant: bool = False
    ) -> None:
        rows = matrix if isinstance(matrix, Rows) else Rows(matrix, "the feature matrix")
        bounds = np.asarray(offsets, dtype=np.int64)
        if rows.dense is not None:
            raise ValueError("weights for some pairs only need a CSR matrix; convert with scipy.sparse.csr_array")
        if rows.d != support.n_features:
            raise ValueError(f"the matrix has {rows.d} columns, the support {support.n_features} features")
        if bounds.ndim != 1 or len(bounds) == 0 or bounds[0] != 0 or bounds[-1] != rows.n or np.any(np.diff(bounds) < 0):
            raise ValueError(f"offsets must rise from 0 to the number of rows, {rows.n}")
        self.rows, self.offsets, self.support, self.constant = rows, bounds, support, constant
        self.m, self.start = support.m, support.m if constant else 0
        self.n_weights = self.start + support.n_weights
        self.n_parts, self.n_examples = rows.n * self.m, len(bounds) - 1

    def write_scores(self, weights: FloatArray, out: FloatArray) -> None:
        """Write ``F'w`` into ``out``, a contiguous vector of length ``n_parts``."""
        weights, rows = vector(weights, self.n_weights, "weights"), self.rows
        initial = weights[: self.start] if self.constant else _NOTHING
        _kernels.supported_forward(
            self.support.compiled, rows.starts, rows.columns, rows.values, weights[self.start :], initial, out,
            _threads.current(),
        )  # fmt: skip

    def write_adjoint(self, z: FloatArray, out: FloatArray) -> None:
        """Write ``F z`` into ``out``, a contiguous vector of length ``n_weights``."""
        z, turned = vector(z, self.n_parts, "z"), self.rows.transposed
        threads = _threads.current()
        if self.constant:
            ones = np.ones(self.rows.n)
            _kernels.linear_dense_adjoint(z.reshape(-1, self.m), ones, 1, out[: self.start], threads)
        _kernels.supported_adjoint(
            self.support.compiled, turned.starts, turned.columns, turned.values, z, out[self.start :], threads
        )

    def per_example(self, blocks: Sequence[IntArray]) -> Any:
        """The same rows, read by example."""
        rows = self.rows
        return _kernels.supported_map(
            self.support.compiled, rows.starts, rows.columns, rows.values, self.offsets, self.constant
        )

    def select(self, indices: npt.ArrayLike) -> Self:
        """The features of the given examples, in that order; consecutive ones share memory."""
        chosen = example_numbers(indices, self.n_examples)
        offsets = offsets_of(np.diff(self.offsets)[chosen])
        return type(self)(self.rows.select(self.offsets, chosen), offsets, self.support, constant=self.constant)

    def to_sparse(self) -> sp.csr_array:
        """The explicit matrix, shape ``(n_parts, n_weights)``."""
        rows, support = self.rows.to_sparse(), self.support
        # Pairs of a feature in all m columns, then those that have a weight.
        all_pairs = sp.kron(rows, sp.eye_array(self.m), format="csc")
        matrix = sp.csr_array(all_pairs[:, support.pairs()])
        if not self.constant:
            return matrix
        repeated = sp.kron(np.ones((rows.shape[0], 1)), sp.eye_array(self.m))
        return sp.csr_array(sp.hstack([repeated, matrix], format="csr"))
