"""Lattices: X is a list of :class:`WordLattice`, y of paths, each an array of edge numbers, or of several good ones."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.encoders.base import Batch
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.inputs import WordLattice
from maxmargin.encoders.data.names import Name, Namer
from maxmargin.encoders.rows import KernelRowsEncoder
from maxmargin.features.kernel import Kernel, KernelMap
from maxmargin.structures.base import IntArray
from maxmargin.structures.lattice import Lattice
from maxmargin.structures.sparse import SparsePoint

_MOST_NODES = 1 << 30


@dataclass(frozen=True, eq=False)
class LatticeEncoder(KernelRowsEncoder):
    """Encodes lattices.

    Attributes:
        n_features: columns of the edges' features.
        kernel: a kernel in place of explicit features, or None.
        support: with a kernel, the rows that it compares others with.
    """

    n_features: int | None = None
    kernel: Kernel | None = None
    support: KernelMap | None = None

    kind = "lattice"

    def parse(self, X: list[Any]) -> tuple[list[WordLattice], checks.Rows]:
        """The lattices, and the features of all their edges."""
        for index, x in enumerate(X):
            if not isinstance(x, WordLattice):
                raise ValueError(f"example {index}: X must be mm.WordLattice(features, edges), got {type(x).__name__}")
        return X, checks.rows([x.features for x in X], "features")

    def learn(self, parsed: tuple[list[WordLattice], checks.Rows], y: Sequence[Any]) -> Self:
        """The number of features, and with a kernel the training edges."""
        return replace(self, n_features=parsed[1].width, support=self._support(parsed[1]))

    def batch(self, parsed: tuple[list[WordLattice], checks.Rows]) -> Batch:
        """The edges of all lattices."""
        X, rows = parsed
        rows.require(self.n_features)
        edges = [_edges(x, index, m.shape[0]) for index, (x, m) in enumerate(zip(X, rows.matrices, strict=True))]
        start = [_node(x.start, index, "start") for index, x in enumerate(X)]
        largest = [int(own.max(initial=first)) for own, first in zip(edges, start, strict=True)]
        end = [
            last if x.end is None else _node(x.end, index, "end")
            for index, (x, last) in enumerate(zip(X, largest, strict=True))
        ]
        n_nodes = np.maximum(largest, end) + 1
        words = _word_numbers(X, rows.offsets) if any(x.words is not None for x in X) else None
        structure = Lattice(n_nodes, np.concatenate(edges), rows.offsets, start, end, words=words)
        return Batch(structure, self._row_features(rows, rows.offsets))

    def good(self, batch: Batch, y: Sequence[Any]) -> list[list[IntArray]]:
        """The good paths of each example, one or several; ValueError naming the example if there is none."""
        return [good_paths(given, index) for index, given in enumerate(checks.examples(y, "y"))]

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """The first good path of each example."""
        return batch.structure.encode([paths[0] for paths in self.good(batch, y)])

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Edges by their words, or else their nodes."""
        edges = np.asarray(x.edges).reshape(-1, 2)

        def edge(at: int) -> Name:
            word = None if x.words is None else x.words[at]
            about = "" if word is None else f" {word}"
            return Name(f"edge {at}{about} ({edges[at, 0]} to {edges[at, 1]})")

        return [edge]

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Twice the common edges out of all edges on both sides: the score is F1 over all edges.

        Of several good paths the one that agrees best counts.
        """
        found = np.asarray(predicted)
        pairs = [
            (2.0 * len(np.intersect1d(path, found)), float(len(path) + len(found))) for path in good_paths(gold, 0)
        ]
        return max(pairs, key=lambda pair: pair[0] / pair[1] if pair[1] else 1.0)


def words_of(lattice: WordLattice, path: npt.ArrayLike) -> list[Hashable]:
    """The words along a path of edge numbers, those of edges without words left out."""
    if not isinstance(lattice, WordLattice):
        raise ValueError(f"lattice must be a mm.WordLattice, got {shown(lattice)}")
    if lattice.words is None:
        raise ValueError("the lattice has no words; give words to mm.WordLattice")
    words = _checks.listed("words", lattice.words, "one word per edge, or None for an edge without a word")
    edges = checks.array(path, None, "path", "iu", "a vector of edge numbers")
    if edges.ndim != 1 or (edges.size and not 0 <= edges.min() <= edges.max() < len(words)):
        raise ValueError(f"path must be numbers of the {len(words)} edges, counted from 0, got {shown(path)}")
    return [words[e] for e in edges.tolist() if words[e] is not None]


def good_paths(given: Any, index: int) -> list[IntArray]:
    """The good paths of one example: from one path, or a list or set of several."""
    several = given.ndim == 2 if isinstance(given, np.ndarray) else _has_rows(given)
    paths = [_path(path, index) for path in (given if several else [given])]
    if not paths:
        raise ValueError(f"example {index}: no path is good; give one or remove the example")
    return paths


def _has_rows(given: Any) -> bool:
    """Whether a list, tuple or set has lists, tuples or arrays in it."""
    rows = (list, tuple, np.ndarray)
    return isinstance(given, (list, tuple, set, frozenset)) and any(isinstance(item, rows) for item in given)


def _path(given: Any, index: int) -> IntArray:
    wanted = "a path, a vector of edge numbers, or a list of several paths"
    found = checks.array(given, index, "y", "iu", wanted)
    if found.ndim != 1:
        raise ValueError(f"example {index}: y must be {wanted}, got shape {found.shape}")
    return found.astype(np.int64)


def _edges(x: WordLattice, index: int, n_rows: int) -> IntArray:
    found = checks.pairs(x.edges, index, "edges", "(n_edges, 2)")
    checks.one_per_edge(found, index, n_rows, "features")
    if (found < 0).any() or (found >= _MOST_NODES).any():
        bad = found[((found < 0) | (found >= _MOST_NODES)).any(axis=1)][0]
        raise ValueError(f"example {index}: edge {tuple(bad.tolist())} has a node out of range; number nodes from 0")
    return found


def _node(given: Any, index: int, what: str) -> int:
    found = checks.array(given, index, what, "iu", "one node number")
    if found.ndim or not 0 <= found < _MOST_NODES:
        raise ValueError(f"example {index}: {what} must be one node number >= 0, got {shown(given)}")
    return int(found)


def _word_numbers(X: list[WordLattice], offsets: IntArray) -> IntArray:
    """A number for each edge's word, the same for equal words; -1 for none."""
    numbers: dict[Hashable, int] = {}
    found = np.full(int(offsets[-1]), -1, dtype=np.int64)
    for index, x in enumerate(X):
        if x.words is None:
            continue
        count = int(offsets[index + 1] - offsets[index])
        wanted = f"{count} words, one per edge, or None for an edge without a word"
        words = _checks.listed(f"example {index}: words", x.words, wanted)
        if len(words) != count:
            raise ValueError(f"example {index}: words must be {wanted}, got {len(words)}")
        try:
            own = [-1 if word is None else numbers.setdefault(word, len(numbers)) for word in words]
        except TypeError:
            raise ValueError(
                f"example {index}: words must be strings or other hashable values, or None for an edge without a word"
            ) from None
        found[offsets[index] : offsets[index + 1]] = own
    return found
