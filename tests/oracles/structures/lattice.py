"""For tests of lattices: random ones, all their paths, and the best word sequences by enumeration."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.lattice import Lattice


def random_lattice(rng: np.random.Generator, n: int, *, nodes: int = 5, words: int | None = None) -> Lattice:
    """Graphs of up to ``nodes`` nodes, numbered in any order, with edges in any order, parallel ones, and edges and
    nodes that are on no path; with numbers of words, of which -1 is one, on demand."""
    counts, edges, start, end = [], [], [], []
    for _ in range(n):
        size = int(rng.integers(1, nodes + 1))
        path = sorted({0, size - 1, *np.flatnonzero(rng.random(size) < 0.6).tolist()})
        pairs = list(pairwise(path))
        pairs += [tuple(np.sort(rng.permutation(size)[:2]).tolist()) for _ in range(rng.integers(3 * size)) if size > 1]
        # The start and the end may lie between other nodes, so that edges lead to the one and away from the other.
        cut = int(len(path) > 3 and rng.random() < 0.3)
        names = rng.permutation(size)
        counts.append(size)
        edges.append(names[rng.permutation(np.array(pairs, dtype=np.int64).reshape(-1, 2))])
        start.append(int(names[path[cut]]))
        end.append(int(names[path[-1 - cut]]))
    offsets = np.cumsum([0, *map(len, edges)])
    numbers = None if words is None else rng.integers(-1, words, size=int(offsets[-1]))
    return Lattice(counts, np.concatenate(edges).reshape(-1, 2), offsets, start, end, words=numbers)


def paths(structure: Lattice) -> list[list[IntArray]]:
    """All paths of each example, by depth-first search."""
    found = []
    for i, (begin, last) in enumerate(pairwise(structure.blocks[0].offsets.tolist())):
        edges = structure.edges[begin:last].tolist()
        whole: list[IntArray] = []
        waiting: list[tuple[int, list[int]]] = [(int(structure.start[i]), [])]
        while waiting:
            node, path = waiting.pop()
            if node == structure.end[i]:
                whole.append(np.array(path, dtype=np.int64))
            waiting += [(head, [*path, e]) for e, (tail, head) in enumerate(edges) if tail == node]
        found.append(whole)
    return found


def vertices(structure: Lattice) -> list[FloatArray]:
    """The same as rows of parts."""
    rows = []
    for own, size in zip(paths(structure), structure.sizes.tolist(), strict=True):
        z = np.zeros((len(own), size))
        for row, path in zip(z, own, strict=True):
            row[path] = 1.0
        rows.append(z)
    return rows


def best_sequences(structure: Lattice, scores: FloatArray) -> list[dict[tuple[int, ...], float]]:
    """For each example the best score of every sequence of words."""
    assert structure.words is not None
    answer = []
    for own, begin in zip(paths(structure), structure.blocks[0].offsets.tolist(), strict=False):
        best: dict[tuple[int, ...], float] = {}
        for path in own:
            words = tuple(int(word) for word in structure.words[begin + path] if word >= 0)
            best[words] = max(best.get(words, -np.inf), float(scores[begin + path].sum()))
        answer.append(best)
    return answer
