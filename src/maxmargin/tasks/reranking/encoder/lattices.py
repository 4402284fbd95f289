"""Lattices as graphs with rows of features on their edges, and the lists of their best paths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maxmargin import _checks
from maxmargin.encoders.lattice import LatticeEncoder
from maxmargin.structures._arrays import offsets_of, pieces
from maxmargin.structures.base import FloatArray, IntArray, PointStatus
from maxmargin.structures.lattice import Lattice
from maxmargin.tasks.reranking.encoder.reranking import LENGTH, RerankingEncoder
from maxmargin.tasks.reranking.io.lattices import Lattices
from maxmargin.tasks.reranking.io.lists import NBestLists

_NUMBERS_AT_ONCE = 1 << 25
"""Edges times ranks whose paths are in memory at a time: a quarter of a gigabyte."""


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """Lattices whose paths have the dense features of an encoder, or without one their own.

    Attributes:
        lattices: the lattices.
        names: the features.
        values: those of the edges in the units of the lattices, shape ``(n_edges, len(names))``; a path has their sums.
    """

    lattices: Lattices
    names: tuple[str, ...]
    values: FloatArray

    @classmethod
    def of(cls, lattices: Lattices, encoder: RerankingEncoder) -> EdgeRows:
        """Return the features that an encoder asks for: those that it knows, or before it knows any, all there are."""
        if encoder.ngrams or encoder.phrases:
            raise ValueError("n-grams and phrase pairs are features of lists, not of lattices; leave them out")
        if encoder.sparse:
            raise ValueError("the model has sparse features, and lattices only dense ones; train without sparse ones")
        if encoder.normalize == "list":
            raise ValueError('features of lattices cannot be normalized within lists; use normalize="spread"')
        own = np.concatenate([np.asarray(one.features, dtype=np.float64) for one in lattices.lattices])
        columns = dict(zip(lattices.names, own.T, strict=True))
        if encoder.length and LENGTH not in columns:
            columns[LENGTH] = np.array([float(len(word.split())) for word in _words(lattices)])
        names = encoder.names or tuple(columns)
        missing = [name for name in names if name not in columns]
        if missing:
            raise ValueError(
                f"the lattices lack the feature {_checks.shown(missing[0])} that the model was trained with; they have "
                f"{', '.join(columns) or 'none'}"
            )
        if not names:
            raise ValueError("the lattices have no features; give scores on their edges, or length=True")
        return cls(lattices, names, np.stack([columns[name] for name in names], axis=1))

    @cached_property
    def structure(self) -> Lattice:
        """The graphs, with words."""
        batch = LatticeEncoder(n_features=len(self.lattices.names)).transform(self.lattices.lattices)
        assert isinstance(batch.structure, Lattice)
        return batch.structure

    @cached_property
    def words(self) -> list[str]:
        """The words of all edges, empty where there are none."""
        return _words(self.lattices)

    def best_lists(self, weights: FloatArray, k: int) -> NBestLists:
        """Return the ``k`` best different texts of each lattice, best first, with the features of their best paths.

        ``weights`` are in the units of :attr:`values`; totals are the scores. There are fewer texts where a lattice
        spells one in several ways, as one edge with two words and as two edges.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self.values @ weights
        found: list[dict[str, FloatArray]] = []
        for some in pieces(self.structure.sizes, max(1, _NUMBERS_AT_ONCE // k)):
            found += self._best_texts(some, scores, k)
        values = np.array([row for own in found for row in own.values()])
        return NBestLists(
            texts=[text for own in found for text in own],
            offsets=offsets_of([len(own) for own in found]),
            names=self.names,
            values=values,
            ids=self.lattices.ids,
            references=self.lattices.references,
            totals=values @ weights,
        )

    def _best_texts(self, some: IntArray, scores: FloatArray, k: int) -> list[dict[str, FloatArray]]:
        """The best texts of consecutive lattices with the features of their paths."""
        whole = len(some) == self.structure.n_examples
        structure = self.structure if whole else self.structure.select(some)
        bounds = self.structure.blocks[0].offsets
        parts = slice(int(bounds[some[0]]), int(bounds[some[-1] + 1]))
        words, columns, offsets = self.words[parts], self.values[parts].T, structure.blocks[0].offsets
        silent = np.array([not word for word in words], dtype=bool)
        found: list[dict[str, FloatArray]] = [{} for _ in some]
        for points in structure.k_best_words(scores[parts], k):
            if (points.status == PointStatus.NONFINITE).any():
                index = int(some[np.argmax(points.status == PointStatus.NONFINITE)])
                raise ValueError(
                    f"example {index}: its scores are not finite, as its features are too large; scale them"
                )
            sums = np.stack([structure.by_example(points.z * column) for column in columns], axis=1)
            spoken = structure.decode(np.where(silent, 0.0, points.z))
            for i in np.flatnonzero(points.status != PointStatus.ABSENT).tolist():
                text = " ".join(map(words.__getitem__, (offsets[i] + spoken[i]).tolist()))
                found[i].setdefault(text, sums[i])
        return found


def merged(first: NBestLists, second: NBestLists) -> NBestLists:
    """Return lists of the same inputs joined: each list of the first, then the texts of the second that it lacks.

    Totals are dropped, as both may come from other weights.
    """
    rows: list[tuple[str, FloatArray]] = []
    sizes = []
    for i in range(len(first)):
        known: dict[str, FloatArray] = {}
        for lists in (first, second):
            for at in range(int(lists.offsets[i]), int(lists.offsets[i + 1])):
                known.setdefault(lists.texts[at], lists.values[at])
        rows += known.items()
        sizes.append(len(known))
    return NBestLists(
        texts=[text for text, _ in rows],
        offsets=offsets_of(sizes),
        names=first.names,
        values=np.array([row for _, row in rows]),
        ids=first.ids,
        references=first.references,
    )


def _words(lattices: Lattices) -> list[str]:
    """The words of all edges, empty where there are none."""
    found: list[str] = []
    for index, one in enumerate(lattices.lattices):
        if one.words is None:
            raise ValueError(f"lattice {index} has no words; give words to mm.WordLattice, None for edges without one")
        found += ["" if word is None else str(word) for word in one.words]
    return found
