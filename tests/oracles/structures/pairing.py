"""For tests of pairings: random graphs and enumeration."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray
from maxmargin.structures.matchings.pairing import Pairing


def vertices(structure: Pairing) -> list[FloatArray]:
    """For each example all its pairings, shape ``(number of pairings, n_edges)``; for up to about eight nodes."""
    answer = []
    offsets = structure.blocks[0].offsets
    for i, n in enumerate(structure.n_nodes.tolist()):
        edges = structure.edges[offsets[i] : offsets[i + 1]].tolist()
        found = _pairings(edges, n, structure.perfect)
        z = np.zeros((len(found), len(edges)))
        for row, own in zip(z, found, strict=True):
            row[own] = 1.0
        answer.append(z)
    return answer


def _pairings(edges: list[list[int]], n_nodes: int, perfect: bool) -> list[list[int]]:
    """All pairings as lists of edge numbers, by deciding on one edge after the other."""
    partial: list[tuple[list[int], frozenset[int]]] = [([], frozenset())]
    for e, (j, k) in enumerate(edges):
        partial += [([*own, e], covered | {j, k}) for own, covered in partial if j not in covered and k not in covered]
    return [own for own, covered in partial if not perfect or len(covered) == n_nodes]


def random_graphs(
    rng: np.random.Generator, sizes: npt.ArrayLike, *, density: float = 1.0, perfect: bool = False
) -> Pairing:
    """Graphs with each edge at a given rate, in any order and direction."""
    pieces = []
    for n in np.asarray(sizes).tolist():
        pairs = np.stack(np.triu_indices(n, 1), axis=1)
        pairs = rng.permutation(pairs[rng.random(len(pairs)) < density])
        pieces.append(rng.permuted(pairs, axis=1))
    offsets = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])]).astype(np.int64)
    return Pairing(sizes, np.concatenate([np.zeros((0, 2), dtype=np.int64), *pieces]), offsets, perfect=perfect)
