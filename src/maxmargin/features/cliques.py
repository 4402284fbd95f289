"""Features of cliques: weights for all joint labels of a clique of each size, repeated for every clique of that size.

With ``K`` labels the score of labels ``(a_1, ..., a_s)`` at the nodes of a clique ``c`` of ``s`` nodes is
``table_s[a_1, ..., a_s]``, plus ``x_c' weights_s[:, a_1, ..., a_s]`` where cliques have features ``x_c``.

Each size is a :class:`maxmargin.features.TiedRows` with ``m = K^s`` and a constant row, at the cost written there;
where a batch has cliques of several sizes, their parts are put in place afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _memory
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin.features.parts import Joined, spread_rows
from maxmargin.features.rows import Matrix, Rows
from maxmargin.features.tied import TiedRows
from maxmargin.structures._arrays import IntArray, example_numbers, offsets_of, ranges, vector
from maxmargin.structures.base import FloatArray
from maxmargin.structures.trees.cliques import MOST_NODES
from maxmargin.structures.trees.tree import Tree


class CliqueFeatures(Joined):
    """Features of the block of cliques of a batch of junction trees.

    Weights: for each size ``s``, rising, a table ``(K, ..., K)``, then with features ``(d_c, K, ..., K)``, row-major.

    Args:
        tree: the structure; its labels (:attr:`Tree.part_states`) must lie in ``0 .. K - 1``.
        n_labels: ``K``.
        sizes: the sizes that have weights, at least one; all cliques of the batch must be of such a size.
        features: shape ``(n_cliques, d_c)``, one row per clique of all examples, dense float64 or CSR; or None.
    """

    def __init__(self, tree: Tree, n_labels: int, sizes: Sequence[int], *, features: Matrix | None = None) -> None:
        if not isinstance(tree, Tree):
            raise ValueError(f"tree must be a JunctionTree, got {shown(tree)}")
        n_labels, cliques = _checks.integer("n_labels", n_labels, least=1), tree.cliques
        sizes = [
            _checks.integer("sizes", size, least=1, most=MOST_NODES)
            for size in _checks.listed("sizes", sizes, "a list of numbers of nodes")
        ]
        rows = Rows(np.zeros((len(cliques), 0)) if features is None else features, "clique_features")
        if rows.n != len(cliques):
            raise ValueError(f"clique_features has {rows.n} rows, but the trees have {len(cliques)} cliques")
        most = int(tree.part_states.max(initial=0))
        if n_labels <= most:
            raise ValueError(f"the trees have labels up to {most}; n_labels must be larger")
        unknown = set(np.unique(cliques.sizes).tolist()) - set(sizes)
        if unknown:
            raise ValueError(f"there are cliques of {min(unknown)} nodes, but no weights for them; add it to sizes")
        if not sizes:
            raise ValueError("sizes is empty: name at least one size of cliques that has weights")
        _memory.require(
            8.0 * float(n_labels) ** max(sizes), f"weights of {max(sizes)} labels together", "give smaller cliques"
        )
        labels, each = tree.joint_labels(n_labels), np.arange(len(cliques) + 1)
        members, places = [], []
        for size in sorted(set(sizes)):
            own = np.flatnonzero(cliques.sizes == size)
            parts, joint = ranges(cliques.tables[own], cliques.tables[own + 1]), n_labels**size
            kept = np.repeat(np.arange(len(own)) * joint, np.diff(cliques.tables)[own]) + labels[parts]
            offsets = np.searchsorted(own, cliques.offsets)
            whole = len(kept) == len(own) * joint
            members.append(
                TiedRows(rows.select(each, own), offsets, joint, constant=True, kept=None if whole else kept)
            )
            places.append(parts)
        self._join(tuple(members))
        self._put(places, cliques.tables[cliques.offsets])

    def _put(self, places: list[IntArray], offsets: IntArray) -> None:
        """``places``: where the parts of each map lie; ``offsets``: where those of each example begin."""
        self._places, self._offsets, self.n_parts = places, offsets, int(offsets[-1])

    def _parts_of(self, z: FloatArray) -> list[FloatArray]:
        checked = vector(z, self.n_parts, "z")
        return [checked if len(places) == self.n_parts else checked[places] for places in self._places]

    def write_scores(self, weights: FloatArray, out: FloatArray) -> None:
        """Write ``F'w`` into ``out``, a contiguous vector of length ``n_parts``."""
        for member, own, places in zip(self.features, self._weights_of(weights), self._places, strict=True):
            if len(places) == self.n_parts:
                member.write_scores(own, out)
            else:
                out[places] = member.scores(own)

    def part_norms(self, order: float) -> FloatArray:
        """Those of each size."""
        norms = np.zeros(self.n_parts)
        for member, places in zip(self.features, self._places, strict=True):
            norms[places] = member.part_norms(order)
        return norms

    def select(self, indices: npt.ArrayLike) -> Self:
        """The features of the given examples, in that order; consecutive ones share memory."""
        chosen = example_numbers(indices, self.n_examples)
        offsets = offsets_of(np.diff(self._offsets)[chosen])
        moved = offsets[:-1] - self._offsets[chosen]
        places = []
        for own in self._places:
            bounds = np.searchsorted(own, self._offsets)
            first, last = bounds[chosen], bounds[chosen + 1]
            places.append(own[ranges(first, last)] + np.repeat(moved, last - first))
        other = super().select(chosen)
        other._put(places, offsets)
        return other

    def part_rows(self, parts: IntArray) -> sp.csr_array:
        """Those of each size, beside the weights of the others."""
        blocks = []
        for member, places in zip(self.features, self._places, strict=True):
            at = np.minimum(np.searchsorted(places, parts), max(len(places) - 1, 0))
            own = np.flatnonzero(places[at] == parts) if len(places) else np.zeros(0, dtype=np.int64)
            blocks.append(spread_rows(member.part_rows(at[own]), own, len(parts)))
        return sp.csr_array(sp.hstack(blocks, format="csr"))

    def to_sparse(self) -> sp.csr_array:
        """The explicit matrix, shape ``(n_parts, n_weights)``: every row of features once per joint label."""
        blocks = []
        for member, places in zip(self.features, self._places, strict=True):
            entries = np.ones(len(places)), (places, np.arange(len(places)))
            place = sp.csr_array(entries, shape=(self.n_parts, len(places)))
            blocks.append(sp.csr_array(place @ member.to_sparse()))
        return sp.csr_array(sp.hstack(blocks))
