"""Lattices as minimum error rate training sees them: the best paths along lines of weights, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.features.rows import Rows
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.lattice import Lattice
from maxmargin.tasks.reranking.metrics.base import Metric
from maxmargin.tasks.reranking.tuning.ascent import Runs


@dataclass(frozen=True, eq=False)
class TuningLattices:
    """Lattices with features and words on their edges, and the metric to tune.

    Attributes:
        structure: the graphs, edges packed lattice after lattice.
        rows: features of the edges, a C-contiguous float64 array or CSR, shape ``(n_edges, n_features)``.
        words: what each edge says, several words separated by blanks; None or "" for nothing.
        references: for each lattice its references, at least one.
        metric: the metric to tune.
        signs: as in :class:`~maxmargin.tasks.reranking.tuning.base.TuningLists`, shape ``(n_features,)``.
    """

    structure: Lattice
    rows: Any
    words: Sequence[str | None]
    references: Sequence[Sequence[str]]
    metric: Metric
    signs: npt.NDArray[np.int8]

    def __post_init__(self) -> None:
        n, edges = self.structure.n_examples, self.structure.n_parts
        for name, given, wanted, what in (
            ("rows", self.rows.shape[0], edges, "edge"),
            ("words", len(self.words), edges, "edge"),
            ("references", len(self.references), n, "lattice"),
            ("signs", len(self.signs), self.n_features, "feature"),
        ):
            if given != wanted:
                raise ValueError(f"{name} has {given} entries; give {wanted}, one per {what}")

    def __len__(self) -> int:
        return self.structure.n_examples

    @property
    def n_features(self) -> int:
        """Number of weights."""
        return int(self.rows.shape[1])

    def scores(self, weights: FloatArray) -> FloatArray:
        """The score of each edge, shape ``(n_edges,)``."""
        out = np.empty(self.structure.n_parts)
        Rows(self.rows, "features").times(np.ascontiguousarray(weights, dtype=np.float64), 1, out)
        return out

    def texts(self, weights: FloatArray) -> list[str]:
        """The words of the best path of each lattice."""
        paths = self.structure.decode(self.structure.argmax(self.scores(weights)).z)
        return [self.text(i, path) for i, path in enumerate(paths)]

    def text(self, lattice: int, path: IntArray) -> str:
        """The words of a path, whose edges are counted from 0 in the lattice."""
        first, words = int(self.structure.blocks[0].offsets[lattice]), self.words
        return " ".join(word for edge in path.tolist() if (word := words[first + edge]))


class LatticeLines:
    """Lattices as a source of lines. Statistics of a text are computed once for each lattice that it is met in."""

    def __init__(self, lattices: TuningLattices) -> None:
        self.lattices, self.metric = lattices, lattices.metric
        self._known: list[dict[str, int]] = [{} for _ in range(len(lattices))]
        self._table: FloatArray = np.zeros((0, lattices.metric.n_statistics))

    def runs(self, weights: FloatArray, direction: FloatArray) -> Runs:
        """The best paths of all lattices along a line."""
        lattices = self.lattices
        found = lattices.structure.envelopes(lattices.scores(weights), lattices.scores(direction))
        owner = np.repeat(np.arange(len(lattices)), np.diff(found.offsets))
        bounds = found.path_offsets
        texts = [
            lattices.text(i, found.edges[first:last])
            for i, first, last in zip(owner.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]
        return Runs(found.offsets, found.begin, self._statistics_of(texts, owner))

    def quality(self, weights: FloatArray) -> float:
        """The quality of the corpus of best paths."""
        statistics = self._statistics_of(self.lattices.texts(weights), np.arange(len(self.lattices)))
        return float(self.metric.quality(statistics.sum(axis=0)))

    def _statistics_of(self, texts: Sequence[str], owner: IntArray) -> FloatArray:
        """The statistics of texts, shape ``(len(texts), k)``; ``owner`` does not decrease."""
        rows = np.empty(len(texts), dtype=np.int64)
        new: list[str] = []
        new_owner: list[int] = []
        known = len(self._table)
        for at, (text, lattice) in enumerate(zip(texts, owner.tolist(), strict=True)):
            row = self._known[lattice].setdefault(text, known + len(new))
            if row == known + len(new):
                new.append(text)
                new_owner.append(lattice)
            rows[at] = row
        if new:
            fresh = self.metric.statistics(new, self.lattices.references, np.array(new_owner, dtype=np.int64))
            self._table = np.concatenate([self._table, fresh])
        return self._table[rows]
