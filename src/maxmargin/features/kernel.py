"""Kernel features: weights as dual coefficients over the training parts.

With ``w = sum_p a_p phi(x_p)`` over the training parts, scores are ``K a`` and ``||w||^2 = a'Ka``. So that every solver
runs unchanged, the Gram matrix of the *distinct* training rows is factored once, ``K = L L'`` (pivoted Cholesky to
rounding level, rank ``r``), and training sees the rows of ``L`` as explicit features: coordinates in an orthonormal
basis of the span of all ``phi(x_p)``, in which balls, ridge penalties and certificates are exactly those of the
kernel's own space. A trained model keeps the ``r`` pivot rows and the dual coefficients ``a`` with ``L_pivots' a = w``.

Cost: ``n^2`` kernel values, ``n r^2`` operations to factor them, memory for ``n^2 + n r`` numbers, each once per
``fit``, for ``n`` distinct rows; then ``n r`` per product with ``L``. Prediction: ``r`` kernel values per new part.

Reference: Higham, "Analysis of the Cholesky decomposition of a semi-definite matrix", 1990 (LAPACK's ``dpstrf``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _memory
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin.features.rows import Matrix, Rows, rows_of
from maxmargin.structures._arrays import ranges
from maxmargin.structures.base import FloatArray, IntArray

NAMES = ("rbf", "poly", "linear")

_NOTHING: FloatArray = np.zeros(0)

CHUNK = 1 << 22
"""Kernel values computed at a time in prediction (32 MB)."""

KEPT = 1 << 25
"""Kernel values of one batch that are kept for the next call rather than computed again (256 MB)."""


@dataclass(frozen=True)
class Kernel:
    """A kernel in place of explicit features.

    Attributes:
        function: "rbf" ``exp(-gamma ||x - y||^2)``, "poly" ``(gamma x'y + coef0)^degree``, "linear" ``x'y``, or a
            function of two matrices (dense or CSR, whatever the inputs are) that returns all kernel values between
            their rows, shape ``(n, m)``; it must be symmetric and positive semidefinite.
        gamma: of "rbf" and "poly"; None stands for one over the number of features.
        degree: of "poly", an integer >= 1.
        coef0: of "poly", >= 0.
        max_parts: refuse more distinct training rows than this: the Gram matrix takes ``8 n^2`` bytes, 1.6 GB for the
            default, and its factor up to as much again.
    """

    function: str | Callable[[Any, Any], Any] = "rbf"
    _: KW_ONLY
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1.0
    max_parts: int = 14_000

    def __post_init__(self) -> None:
        if not (callable(self.function) or (isinstance(self.function, str) and self.function in NAMES)):
            known = ", ".join(f'"{name}"' for name in NAMES)
            raise ValueError(
                f"a kernel must be one of {known} or a function of two matrices, got {shown(self.function)}"
            )
        if self.gamma is not None:
            object.__setattr__(self, "gamma", _checks.positive("gamma", self.gamma))
        hint = "otherwise the kernel is not an inner product"
        object.__setattr__(self, "coef0", _checks.number("coef0", self.coef0, least=0, hint=hint))
        _checks.integer("degree", self.degree, least=1)
        _checks.integer("max_parts", self.max_parts, least=1)

    def resolved(self, n_features: int) -> Kernel:
        """The kernel with ``gamma`` in numbers."""
        if n_features == 0:
            raise ValueError("a kernel needs at least one feature; give the inputs a constant column")
        return self if self.gamma is not None else replace(self, gamma=1.0 / n_features)

    def values(self, first: Matrix, second: Matrix) -> FloatArray:
        """Kernel values between all rows of two matrices, shape ``(n, m)``; of a resolved kernel."""
        for rows in (first, second):
            plain = type(rows) is np.ndarray or sp.issparse(rows)
            if not plain or len(rows.shape) != 2 or rows.dtype != np.float64:
                raise ValueError(f"a kernel compares rows of matrices of float64, got {shown(rows)}")
            values: Any = rows.data if sp.issparse(rows) else rows
            if not values.flags.c_contiguous:
                _memory.require(8.0 * values.size, "rows of a kernel", "give an array of its own, not a view")
            if not np.isfinite(values).all():
                raise ValueError("a kernel compares rows of finite numbers, got NaN or infinity")
        if first.shape[1] != second.shape[1]:
            raise ValueError(f"a kernel compares rows of equal length, got {first.shape[1]} and {second.shape[1]}")
        shape = (int(first.shape[0]), int(second.shape[0]))
        _memory.require(8.0 * shape[0] * shape[1], "all kernel values of two sets of rows", "give fewer rows")
        if 0 in shape:
            return np.zeros(shape)
        # Slow to import, and only kernels need it.
        from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

        other = None if second is first else second
        with np.errstate(all="ignore"):
            if callable(self.function):
                found = self.function(first, second)
                found = np.asarray(found.toarray() if sp.issparse(found) else found)
                if found.shape != shape or found.dtype.kind not in "fiub":
                    raise ValueError(
                        f"the kernel must return real numbers of shape {shape} for matrices of so many rows, got "
                        f"shape {found.shape} of {found.dtype}"
                    )
            elif self.function == "rbf":
                found = rbf_kernel(first, other, gamma=self.gamma)
            elif self.function == "poly":
                found = polynomial_kernel(first, other, degree=self.degree, gamma=self.gamma, coef0=self.coef0)
            else:
                found = linear_kernel(first, other)
                found = found.toarray() if sp.issparse(found) else found
        return np.ascontiguousarray(found, dtype=np.float64)

    def header(self) -> dict[str, Any]:
        """Name and settings as plain JSON values; ValueError for a function, whose code no file can hold."""
        if callable(self.function):
            raise ValueError(
                "the model cannot be saved, as its kernel is a function of your own; use a kernel by name, or pickle "
                "the estimator"
            )
        gamma = None if self.gamma is None else float(self.gamma)
        return {"function": self.function, "gamma": gamma, "degree": int(self.degree), "coef0": float(self.coef0)}

    @classmethod
    def from_header(cls, header: Any) -> Self:
        """The inverse of ``header``; ValueError if it makes no sense."""
        if not isinstance(header, dict) or not isinstance(header["function"], str):
            raise ValueError("its kernel is invalid")
        kernel = cls(header["function"], gamma=header["gamma"], degree=header["degree"], coef0=header["coef0"])
        if kernel.gamma is None:
            raise ValueError("its kernel has no gamma")
        return kernel


@dataclass(frozen=True, eq=False)
class KernelMap:
    """A kernel and the rows that it compares others with: while training all distinct rows, then those of the model.

    Attributes:
        kernel: the kernel, resolved.
        rows: shape ``(n, d)``, dense or CSR.
        coordinates: while training, ``L`` with ``K = L L'``, shape ``(n, r)``; None in a trained model.
        pivots: while training, the ``r`` rows whose ``L`` is lower triangular.
        digest: of the set of training rows.
    """

    kernel: Kernel
    rows: Matrix
    coordinates: FloatArray | None = None
    pivots: IntArray | None = None
    digest: str = ""

    @classmethod
    def learn(cls, kernel: Kernel, rows: Matrix) -> Self:
        """Merge identical rows, take all kernel values between them and factor them."""
        kernel = kernel.resolved(int(rows.shape[1]))
        first: dict[bytes, int] = {}
        for number, key in enumerate(_keys(rows)):
            first.setdefault(key, number)
        if len(first) > kernel.max_parts:
            raise ValueError(
                f"{len(first)} distinct rows of features are more than the kernel's max_parts={kernel.max_parts}: all "
                f"products of two of them would take {8e-9 * len(first) ** 2:.1f} GB; train on fewer examples, use "
                "explicit features (for example of sklearn.kernel_approximation.Nystroem), or raise max_parts"
            )
        distinct = rows[np.fromiter(first.values(), dtype=np.int64, count=len(first))]
        coordinates, pivots = _factor(kernel.values(distinct, distinct))
        digest = hashlib.sha256(b"".join(hashlib.sha256(key).digest() for key in sorted(first))).hexdigest()
        return cls(kernel, distinct, coordinates, pivots, digest)

    @property
    def n_weights(self) -> int:
        """The rank while training, then the number of rows."""
        return int(self.rows.shape[0] if self.coordinates is None else self.coordinates.shape[1])

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {key: number for number, key in enumerate(_keys(self.rows))}

    @cached_property
    def _triangle(self) -> FloatArray:
        """``L`` of the pivot rows, shape ``(r, r)``, lower triangular."""
        assert self.coordinates is not None
        return self.coordinates[self.pivots]

    def __getstate__(self) -> dict[str, Any]:
        """Without cached properties: they are made again from the rest."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_numbers", "_triangle")}

    def _known(self, rows: Matrix) -> IntArray | None:
        """The numbers of these rows among the map's own; None if some are not among them."""
        try:
            return np.fromiter((self._numbers[key] for key in _keys(rows)), dtype=np.int64, count=rows.shape[0])
        except KeyError:
            return None

    def features(self, rows: Matrix) -> Rows:
        """The matrix that takes the place of given rows of features, one column per weight.

        Rows of ``L`` where all are training rows, else kernel values with the map's rows.
        """
        if self.coordinates is None:
            return KernelRows(self.kernel, rows, self.rows)
        numbers = self._known(rows)
        if numbers is not None:
            return GatheredRows(self.coordinates, numbers)
        return KernelRows(self.kernel, rows, self.rows[self.pivots], self._triangle)

    def to_model(self, weights: FloatArray) -> tuple[KernelMap, FloatArray]:
        """The trained map of the pivot rows, and the dual coefficients ``a`` of ``w``: ``L_pivots' a = w``.

        ``w`` may have several columns, shape ``(r, k)``; so has ``a`` then.
        """
        if self.coordinates is None:
            return self, weights
        dual = _solve(self._triangle, weights, transposed=True)
        return replace(self, rows=self.rows[self.pivots], coordinates=None, pivots=None), dual

    def to_training(self, trained: KernelMap, dual: FloatArray) -> FloatArray:
        """The coordinates ``w = L'a`` of a model trained on the same rows."""
        numbers = self._known(trained.rows)
        assert self.coordinates is not None
        assert numbers is not None
        return np.asarray(self.coordinates[numbers].T @ dual)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The rows as arrays of a model file."""
        if sp.issparse(self.rows):
            matrix = sp.csr_array(self.rows)
            return {
                "support_values": matrix.data,
                "support_columns": matrix.indices.astype(np.int64),
                "support_starts": matrix.indptr.astype(np.int64),
            }
        return {"support": self.rows}

    @classmethod
    def from_arrays(cls, kernel: Kernel, arrays: dict[str, npt.NDArray[Any]], n_features: int) -> Self:
        """The inverse of ``arrays``; ValueError if they make no matrix."""
        if "support" in arrays:
            rows = arrays["support"]
            if rows.dtype != np.float64 or rows.ndim != 2 or rows.shape[1] != n_features:
                raise ValueError("its support rows do not have its number of features")
            values = rows
        else:
            values, columns, starts = (arrays[f"support_{name}"] for name in ("values", "columns", "starts"))
            try:
                if values.dtype != np.float64 or not columns.dtype == starts.dtype == np.int64:
                    raise ValueError("its arrays have other types")
                rows = sp.csr_array((values, columns, starts), shape=(len(starts) - 1, n_features))
                rows.check_format(full_check=True)
            except (TypeError, ValueError) as error:
                raise ValueError(f"its support rows are not a sparse matrix of {n_features} columns: {error}") from None
        if not np.isfinite(values).all():
            raise ValueError("its support rows are not finite")
        return cls(kernel, rows)


def _keys(rows: Matrix) -> list[bytes]:
    """Bytes that are equal exactly for equal rows of one format."""
    if sp.issparse(rows):
        matrix = sp.csr_array(rows, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        columns, values, starts = matrix.indices.astype(np.int64), matrix.data, matrix.indptr.tolist()
        return [columns[first:last].tobytes() + values[first:last].tobytes() for first, last in pairwise(starts)]
    return [row.tobytes() for row in np.asarray(rows) + 0.0]  # + 0.0 makes one zero of both


def _factor(gram: FloatArray) -> tuple[FloatArray, IntArray]:
    """``L`` with ``L L' = gram``, shape ``(n, r)``, and its pivot rows; ``gram`` is overwritten."""
    n = len(gram)
    if not np.isfinite(gram).all():
        raise ValueError("the kernel of the training parts is not finite; scale the features, or lower the degree")
    if n == 0:
        return np.zeros((0, 0)), np.zeros(0, dtype=np.int64)
    from scipy.linalg.lapack import dpstrf

    # Products with a few vectors tell, at the price of n^2, whether the factor is one of this matrix.
    probe = np.random.default_rng(0).standard_normal((n, 3))
    image, size = gram @ probe, float(np.abs(gram).max()) * n
    if np.abs(gram.T @ probe - image).max() > 1e-8 * size:
        raise ValueError("the kernel is not symmetric: k(x, y) must equal k(y, x)")
    # dpstrf stops where the largest remaining diagonal entry is n eps times the first: rounding level.
    # The upper triangle of the transposed view is the lower one of gram: row i becomes L of the i-th pivot, in place.
    factor, order, rank, _ = dpstrf(gram.T, lower=0, overwrite_a=1)
    pivots = np.asarray(order, dtype=np.int64) - 1
    coordinates = np.zeros((n, rank))
    for i, (pivot, row) in enumerate(zip(pivots, factor.T, strict=True)):
        coordinates[pivot, : i + 1] = row[: min(i + 1, rank)]
    if np.abs(coordinates @ (coordinates.T @ probe) - image).max() > 1e-8 * size:
        raise ValueError(
            "the kernel is not positive semidefinite, so it is not an inner product and training has no "
            "optimum; use another kernel"
        )
    return coordinates, pivots[:rank]


def _solve(triangle: FloatArray, values: FloatArray, *, transposed: bool) -> FloatArray:
    if len(triangle) == 0:
        return np.zeros_like(values)
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(triangle, values, lower=True, trans=1 if transposed else 0))


class GatheredRows(Rows):
    """Items that share the rows of a matrix: row ``i`` of ``X`` is ``matrix[numbers[i]]``.

    Args:
        matrix: shape ``(n, d)``, C-contiguous.
        numbers: the row of each item, shape ``(n_items,)``.
    """

    def __init__(self, matrix: FloatArray, numbers: IntArray) -> None:
        self.what, self.dense, self.matrix = "the factor of the kernel", None, matrix
        self.base, self.numbers = Rows(matrix, self.what), np.ascontiguousarray(numbers, dtype=np.int64)
        self.n, self.d = len(numbers), self.base.d

    def times(self, weights: FloatArray, k: int, out: FloatArray, initial: FloatArray = _NOTHING) -> None:
        """``out = X W``, shape ``(n_items, k)``, plus ``initial`` (``k`` numbers or none) in every row."""
        products = np.empty((self.base.n, k))
        self.base.times(weights, k, products.reshape(-1), initial)
        np.take(products, self.numbers, axis=0, out=out.reshape(-1, k), mode="clip")

    def transpose_times(self, z: FloatArray, k: int, out: FloatArray) -> None:
        """``out = X' Z``, shape ``(d, k)``."""
        self.base.transpose_times(self._summed(z, k), k, out)

    def _summed(self, z: FloatArray, k: int) -> FloatArray:
        """The sums over the items of each row of the matrix, shape ``(n, k)``, flattened."""
        if k == 1:
            return np.asarray(np.bincount(self.numbers, z.reshape(-1), minlength=self.base.n), dtype=np.float64)
        return np.asarray(self._membership @ z.reshape(-1, k)).reshape(-1)

    @cached_property
    def _membership(self) -> sp.csr_array:
        entries = np.ones(self.n), (self.numbers, np.arange(self.n))
        return sp.csr_array(entries, shape=(self.base.n, self.n))

    def times_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``X w`` for two vectors in one pass over the matrix."""
        one, two = self.base.times_pair(first, second)
        return one[self.numbers], two[self.numbers]

    def transpose_times_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``X' z`` for two vectors in one pass over the matrix."""
        return self.base.transpose_times_pair(self._summed(first, 1), self._summed(second, 1))

    def per_example(self, offsets: IntArray, m: int = 1, **settings: Any) -> Any:
        """The same rows, read by example."""
        return self.base.per_example(offsets, m, numbers=self.numbers, **settings)

    def select(self, offsets: IntArray, chosen: IntArray) -> GatheredRows:
        """The items of the chosen examples, with the rows that they use."""
        used, numbers = np.unique(self.numbers[ranges(offsets[chosen], offsets[chosen + 1])], return_inverse=True)
        return GatheredRows(self.matrix if len(used) == self.base.n else self.matrix[used], numbers)

    def fingerprint_data(self) -> tuple[Any, ...]:
        """The data that identifies the matrix in fingerprints."""
        return self.matrix, self.numbers

    def to_sparse(self) -> sp.csr_array:
        """``X`` as a CSR array."""
        return sp.csr_array(self.matrix[self.numbers])

    def norms(self, order: float) -> FloatArray:
        """Euclidean norm (order 2) or largest absolute entry (order inf) of every row."""
        return np.asarray(self.base.norms(order)[self.numbers])

    def column_norms(self, scale: FloatArray | None = None) -> FloatArray:
        """Euclidean norm of every column of ``diag(scale) X``; for scales ``(n_items, k)``, shape ``(d, k)``."""
        scale = np.ones(self.n) if scale is None else scale
        k = scale.size // max(1, len(scale))
        return self.base.column_norms(np.sqrt(self._summed(np.square(scale), k)).reshape(-1, *scale.shape[1:]))


class KernelRows(Rows):
    """Kernel values between the rows of a batch and the support rows, as a matrix.

    Values are computed in pieces whenever they are needed, and kept where they are few.

    Args:
        kernel: the kernel.
        rows: shape ``(n, d)``, dense or CSR.
        support: the support rows, dense or CSR, one column of values each.
        triangle: None where weights are dual coefficients ``a``; else ``L`` of the support rows, and weights are
            ``w = L'a``.
    """

    def __init__(self, kernel: Kernel, rows: Matrix, support: Matrix, triangle: FloatArray | None = None) -> None:
        self.what, self.dense = "the kernel values", None
        self.kernel, self.rows, self.support, self.triangle = kernel, rows, support, triangle
        self.n, self.d = int(rows.shape[0]), int(support.shape[0])
        self._kept: FloatArray | None = None

    def _pieces(self) -> list[tuple[int, int]]:
        step = max(1, CHUNK // max(1, self.d))
        return [(first, min(first + step, self.n)) for first in range(0, self.n, step)]

    def _values(self, first: int, last: int) -> Rows:
        if self._kept is None and self.n * self.d <= KEPT:
            found = [self.kernel.values(self.rows[a:b], self.support) for a, b in self._pieces()]
            self._kept = np.concatenate([np.zeros((0, self.d)), *found])
        kept = self._kept
        values = self.kernel.values(self.rows[first:last], self.support) if kept is None else kept[first:last]
        return Rows(values, self.what)

    def times(self, weights: FloatArray, k: int, out: FloatArray, initial: FloatArray = _NOTHING) -> None:
        """``out = X W``, shape ``(n, k)``, plus ``initial`` (``k`` numbers or none) in every row."""
        a = weights
        if self.triangle is not None:
            a = _solve(self.triangle, weights.reshape(-1, k), transposed=True).reshape(-1)
        for first, last in self._pieces():
            self._values(first, last).times(a, k, out[k * first : k * last], initial)

    def transpose_times(self, z: FloatArray, k: int, out: FloatArray) -> None:
        """``out = X' Z``, shape ``(d, k)``."""
        z = z.reshape(-1)
        out[:] = 0.0
        piece = np.empty(self.d * k)
        for first, last in self._pieces():
            self._values(first, last).transpose_times(z[k * first : k * last], k, piece)
            out += piece
        if self.triangle is not None:
            out[:] = _solve(self.triangle, out.reshape(-1, k), transposed=False).reshape(-1)

    def times_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``X w`` for two vectors."""
        outs = np.empty(self.n), np.empty(self.n)
        for weights, out in zip((first, second), outs, strict=True):
            self.times(weights, 1, out)
        return outs

    def transpose_times_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``X' z`` for two vectors."""
        outs = np.empty(self.d), np.empty(self.d)
        for z, out in zip((first, second), outs, strict=True):
            self.transpose_times(z, 1, out)
        return outs

    def select(self, offsets: IntArray, chosen: IntArray) -> KernelRows:
        """The rows of the chosen examples."""
        return KernelRows(self.kernel, self.rows[rows_of(offsets, chosen)], self.support, self.triangle)

    def _explicit(self) -> Rows:
        """All values at once."""
        values = self.kernel.values(self.rows, self.support)
        if self.triangle is not None and values.size:
            values = np.ascontiguousarray(_solve(self.triangle, values.T, transposed=False).T)
        return Rows(values, self.what)

    def per_example(self, offsets: IntArray, m: int = 1, **settings: Any) -> Any:
        """All values at once, read by example."""
        return self._explicit().per_example(offsets, m, **settings)

    def fingerprint_data(self) -> tuple[Any, ...]:
        """The data that identifies the matrix in fingerprints: all values."""
        return self._explicit().fingerprint_data()

    def to_sparse(self) -> sp.csr_array:
        """``X`` as a CSR array."""
        return self._explicit().to_sparse()

    def norms(self, order: float) -> FloatArray:
        """Euclidean norm (order 2) or largest absolute entry (order inf) of every row."""
        return self._explicit().norms(order)

    def column_norms(self, scale: FloatArray | None = None) -> FloatArray:
        """Euclidean norm of every column of ``diag(scale) X``."""
        return self._explicit().column_norms(scale)
