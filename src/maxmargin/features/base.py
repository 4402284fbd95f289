"""Feature maps: a linear map ``F`` between weights and the packed parts of one batch.

``scores(w) = F'w`` gives every part its score, ``adjoint(z) = F z`` adds up the features of a packed point over all
examples. Parts are laid out as :mod:`maxmargin.structures.base` says. User data is checked by encoders, not here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _memory
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin._vectors import norm
from maxmargin.features.rows import Rows
from maxmargin.structures._arrays import vector
from maxmargin.structures.base import FloatArray, IntArray


class Features(ABC):
    """The map ``F`` of one batch. Subclasses give ``write_scores``, ``write_adjoint``, ``select``, ``to_sparse``.

    Attributes:
        n_weights: length of a weight vector.
        n_parts: length of a packed vector.
        n_examples: number of examples in the batch.
    """

    n_weights: int
    n_parts: int
    n_examples: int

    @property
    def n_blocks(self) -> int:
        """How many blocks of parts the map covers."""
        return 1

    @abstractmethod
    def write_scores(self, weights: FloatArray, out: FloatArray) -> None:
        """Write ``F'w`` into ``out``, a contiguous vector of length ``n_parts``."""

    @abstractmethod
    def write_adjoint(self, z: FloatArray, out: FloatArray) -> None:
        """Write ``F z = sum_i F_i z_i`` into ``out``, a contiguous vector of length ``n_weights``."""

    @abstractmethod
    def select(self, indices: npt.ArrayLike) -> Self:
        """The map of the given examples, in that order; an example may come several times."""

    @abstractmethod
    def to_sparse(self) -> sp.csr_array:
        """``F'`` as an explicit matrix, shape ``(n_parts, n_weights)``: for reference solvers and small problems."""

    def part_rows(self, parts: IntArray) -> sp.csr_array:
        """The rows of ``F'`` of some parts, shape ``(len(parts), n_weights)``; a weight may come twice in a row.

        For explanations, which look at a few parts of many. The fallback makes the explicit matrix.
        """
        return sp.csr_array(self.to_sparse()[parts])

    def per_example(self, blocks: Sequence[IntArray]) -> Any:
        """A compiled view for online methods: scores and features of one example at a time.

        ``blocks``: the offsets, shape ``(n_examples + 1,)`` each, of the blocks of parts that this map covers. The
        fallback makes the explicit matrix.
        """
        matrix = self.to_sparse()
        ends = np.cumsum([0, *(int(offsets[-1]) for offsets in blocks)])
        rows = [
            Rows(matrix[first:last], "the features").per_example(own)
            for first, last, own in zip(ends[:-1], ends[1:], blocks, strict=True)
        ]
        return rows[0] if len(rows) == 1 else _kernels.joined_map(rows, [0] * len(rows), self.n_weights, True)

    def fingerprint_data(self) -> Iterable[Any]:
        """The data that identifies the map in fingerprints. The fallback: scores at fixed random weights."""
        probe = np.random.default_rng(0).standard_normal((2, self.n_weights))
        return self.n_weights, self.n_parts, self.n_examples, *(self.scores(weights) for weights in probe)

    def part_norms(self, order: float) -> FloatArray:
        """``||F e_p||`` of every part ``p``: the Euclidean norm (order 2) or the largest entry (order inf) of its row.

        Shape ``(n_parts,)``. The fallback makes the explicit matrix.
        """
        return Rows(self.to_sparse(), "the features").norms(order)

    def weight_norms(self, scale: FloatArray | None = None) -> FloatArray:
        """``||diag(scale) F'e_k||_2`` of every weight ``k``; ``scale``: one factor per part, or None for 1.

        Shape ``(n_weights,)``. The fallback makes the explicit matrix.
        """
        return Rows(self.to_sparse(), "the features").column_norms(scale)

    def scores(self, weights: FloatArray) -> FloatArray:
        """``F'w``: shape ``(n_weights,)`` to ``(n_parts,)``."""
        _memory.require(8.0 * self.n_parts, "scores of all parts", "give fewer examples at a time")
        out = np.empty(self.n_parts)
        self.write_scores(weights, out)
        return out

    def adjoint(self, z: FloatArray) -> FloatArray:
        """``F z = sum_i F_i z_i``: shape ``(n_parts,)`` to ``(n_weights,)``."""
        out = np.empty(self.n_weights)
        self.write_adjoint(z, out)
        return out

    def scores_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``F'w`` for two weight vectors; where a map is bound by memory, in one pass over the features."""
        return self.scores(first), self.scores(second)

    def adjoint_pair(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``F z`` for two packed vectors; where a map is bound by memory, in one pass over the features."""
        return self.adjoint(first), self.adjoint(second)

    def norm(self) -> float:
        """``||F||_2``, from above in practice, see :func:`operator_norm`."""
        return operator_norm(lambda w: self.adjoint(self.scores(w)), self.n_weights)


def operator_norm(normal: Callable[[FloatArray], FloatArray], n_weights: int, *, tol: float = 1e-3) -> float:
    """``||F||_2`` where ``normal(w) = F F'w``: usually within ``2 tol`` and not below the norm; where the largest
    singular values lie close together, it may be one of the next ones, some ``tol`` below.

    By ARPACK's Lanczos iteration, one map and one adjoint a step, from fixed pseudo-random numbers.
    """
    if not callable(normal):
        raise ValueError(f"normal must be a function of weights, got {shown(normal)}")
    n_weights = _checks.integer("n_weights", n_weights, least=0)
    _memory.require(80.0 * n_weights, f"vectors of {n_weights} weights", "give fewer features")
    _checks.number("tol", tol, above=0)
    start = np.random.default_rng(0).standard_normal(n_weights)

    def image_of(w: FloatArray) -> FloatArray:
        return vector(normal(w.ravel()), n_weights, "normal(w)")

    image = image_of(start) if n_weights else start
    scale = norm(image)
    if not np.isfinite(scale):
        raise ValueError(
            "the norm of the features is not finite: some feature or example weight is NaN, infinite or too large"
        )
    if scale == 0.0 or n_weights == 1:
        return float(np.sqrt(scale / norm(start))) if scale else 0.0
    from scipy.sparse.linalg import LinearOperator, eigsh

    # Scaled, as ARPACK's tolerance is not relative for small numbers; few vectors, as each is as long as the weights.
    operator = LinearOperator((n_weights, n_weights), matvec=lambda w: image_of(w) / scale, dtype=np.float64)
    found = eigsh(operator, k=1, which="LA", v0=start, ncv=min(n_weights, 10), tol=tol, return_eigenvectors=False)
    return float(np.sqrt(found[0] * scale) * (1.0 + tol))
