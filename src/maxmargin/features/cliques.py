"""Features of cliques: weights for all joint labels of a clique of each size, repeated for every clique of that size.

With ``K`` labels the score of labels ``(a_1, ..., a_s)`` at the nodes of a clique ``c`` of ``s`` nodes is
``table_s[a_1, ..., a_s]``, plus ``x_c' weights_s[:, a_1, ..., a_s]`` where cliques have features ``x_c``.

Cost per call: one pass over the parts, and with features ``2 nnz_s K^s`` operations for each size
(:mod:`maxmargin.features.rows`). Where some nodes do not have all labels, or sizes are mixed, scores of all labels are
made in between: as much memory again as parts of a batch in which all have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.features.base import Features
from maxmargin.features.rows import Matrix, Rows
from maxmargin.structures._arrays import IntArray, example_numbers, ranges, vector
from maxmargin.structures.base import FloatArray
from maxmargin.structures.tree import Tree


@dataclass(frozen=True)
class _OneSize:
    """The cliques of one size: where their weights begin, their parts, and the features of each."""

    joint: int
    """Joint labels, ``K^s``."""
    table: int
    """Where the ``K^s`` weights of the table begin."""
    weights: int
    """Where the ``d_c K^s`` weights of features begin."""
    end: int
    count: int
    """Number of cliques."""
    parts: IntArray
    """Their parts in the block of cliques."""
    labels: IntArray
    """Which of the ``K^s`` joint labels each part stands for."""
    at: IntArray
    """Where each part lies among all joint labels of these cliques, ``(count, K^s)``."""
    rows: Rows | None


class CliqueFeatures(Features):
    """Features of the block of cliques of a batch of junction trees.

    Weights: for each size ``s``, rising, a table ``(K, ..., K)``, then with features ``(d_c, K, ..., K)``, row-major.

    Args:
        tree: the structure; its labels (:attr:`Tree.decision_labels`) must lie in ``0 .. K - 1``.
        n_labels: ``K``.
        sizes: the sizes that have weights; all cliques of the batch must be of such a size.
        features: shape ``(n_cliques, d_c)``, one row per clique of all examples, dense float64 or CSR; or None.
    """

    def __init__(self, tree: Tree, n_labels: int, sizes: Sequence[int], *, features: Matrix | None = None) -> None:
        self._setup(tree, n_labels, tuple(sizes), None if features is None else Rows(features, "clique_features"))

    def _setup(self, tree: Tree, n_labels: int, sizes: tuple[int, ...], rows: Rows | None) -> None:
        cliques = tree.cliques
        if rows is not None and rows.n != len(cliques):
            raise ValueError(f"clique_features has {rows.n} rows, but the trees have {len(cliques)} cliques")
        if n_labels < 1 or int(tree.decision_labels.max(initial=0)) >= n_labels:
            raise ValueError(
                f"the trees have labels up to {int(tree.decision_labels.max(initial=0))}; n_labels must be larger"
            )
        unknown = set(np.unique(cliques.sizes).tolist()) - set(sizes)
        if unknown:
            raise ValueError(f"there are cliques of {min(unknown)} nodes, but no weights for them; add it to sizes")
        self.tree, self.n_labels, self.sizes, self.rows = tree, int(n_labels), tuple(sorted(set(sizes))), rows
        self.n_examples, self.n_parts = tree.n_examples, int(cliques.tables[-1])
        labels = tree.joint_labels(self.n_labels)
        each = np.arange(len(cliques) + 1)
        self._groups: list[_OneSize] = []
        start = 0
        for size in self.sizes:
            joint = self.n_labels**size
            end = start + joint * (1 if rows is None else 1 + rows.d)
            own = np.flatnonzero(cliques.sizes == size)
            parts = ranges(cliques.tables[own], cliques.tables[own + 1])
            counts = np.diff(cliques.tables)[own]
            at = np.repeat(np.arange(len(own)) * joint, counts) + labels[parts]
            chosen = None if rows is None else rows.select(each, own)
            self._groups.append(
                _OneSize(joint, start, start + joint, end, len(own), parts, labels[parts], at, chosen)
            )
            start = end
        self.n_weights = start

    def write_scores(self, weights: FloatArray, out: FloatArray) -> None:
        """Write ``F'w`` into ``out``, a contiguous vector of length ``n_parts``."""
        weights = vector(weights, self.n_weights, "weights")
        for own in self._groups:
            table = weights[own.table : own.weights]
            if own.rows is None:
                out[own.parts] = table[own.labels]
                continue
            # All parts in order: the scores go where they belong at once.
            whole = len(own.parts) == self.n_parts == own.count * own.joint
            scores = out if whole else np.empty(own.count * own.joint)
            own.rows.times(weights[own.weights : own.end], own.joint, scores, table)
            if not whole:
                out[own.parts] = scores[own.at]

    def write_adjoint(self, z: FloatArray, out: FloatArray) -> None:
        """Write ``F z`` into ``out``, a contiguous vector of length ``n_weights``."""
        z = vector(z, self.n_parts, "z")
        for own in self._groups:
            mine = z[own.parts]
            out[own.table : own.weights] = np.bincount(own.labels, mine, own.joint)
            if own.rows is not None:
                full = np.zeros(own.count * own.joint)
                full[own.at] = mine
                own.rows.transpose_times(full, own.joint, out[own.weights : own.end])

    def select(self, indices: npt.ArrayLike) -> Self:
        """The features of the given examples, in that order; consecutive ones share memory."""
        chosen = example_numbers(indices, self.n_examples)
        other = type(self).__new__(type(self))
        rows = None if self.rows is None else self.rows.select(self.tree.cliques.offsets, chosen)
        other._setup(self.tree.select(chosen), self.n_labels, self.sizes, rows)
        return other

    def to_sparse(self) -> sp.csr_array:
        """The explicit matrix, shape ``(n_parts, n_weights)``: every row of features once per joint label."""
        blocks = [sp.csr_array((self.n_parts, 0))]
        for own in self._groups:
            joint = sp.eye_array(own.joint)
            matrix = sp.csr_array(sp.kron(np.ones((own.count, 1)), joint))
            if own.rows is not None:
                matrix = sp.csr_array(sp.hstack([matrix, sp.kron(own.rows.to_sparse(), joint)]))
            entries = np.ones(len(own.parts)), (own.parts, own.at)
            place = sp.csr_array(entries, shape=(self.n_parts, own.count * own.joint))
            blocks.append(sp.csr_array(place @ matrix))
        return sp.csr_array(sp.hstack(blocks))
