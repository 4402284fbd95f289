"""For tests of edit alignments: all of them, random problems, and scores of alignments by their definition."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import scipy.sparse as sp

from maxmargin.features.base import Features
from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.structures import Edits
from maxmargin.structures.base import FloatArray, IntArray


def indicator_rows(lists: IntArray, width: int) -> sp.csr_array:
    """The features that lists name for each row, -1 for none: the NumPy twin of the kernel."""
    stacked = np.sort(lists.T, axis=1)
    has = stacked >= 0
    starts = np.concatenate([[0], np.cumsum(has.sum(axis=1))])
    return sp.csr_array((np.ones(int(has.sum())), stacked[has], starts), shape=(lists.shape[1], width))


def alignments(n: int, m: int) -> Iterator[IntArray]:
    """All alignments of sequences of ``n`` and ``m`` symbols."""
    for size in range(min(n, m) + 1):
        for first in combinations(range(n), size):
            for second in combinations(range(m), size):
                yield np.array([first, second], dtype=np.int64).T.reshape(-1, 2)


def outputs(one: Edits) -> Iterator[IntArray | None]:
    """All outputs of a batch of one pair of sequences."""
    if one.nonmatch:
        yield None
    yield from alignments(int(one.first[0]), int(one.second[0]))


def worth(pairs: IntArray, scores: FloatArray, deletions: FloatArray, insertions: FloatArray) -> float:
    """The score of an alignment: ``scores`` ``(n, m)`` of pairs, rows (gap, opening) of the symbols of either side."""
    total = float(scores[pairs[:, 0], pairs[:, 1]].sum())
    for side, gaps in ((0, deletions), (1, insertions)):
        paired = set(pairs[:, side].tolist())
        for at in range(len(gaps)):
            if at not in paired:
                opens = at == 0 or at - 1 in paired
                total += float(gaps[at, 0] + (gaps[at, 1] if opens else 0.0))
    return total


def random_edits(rng: np.random.Generator, n: int) -> Edits:
    """Short sequences, some empty."""
    first, second = rng.integers(0, 5, size=(2, n))
    return Edits(first, second, affine=bool(rng.integers(2)), nonmatch=bool(rng.integers(2)))


def problem(rng: np.random.Generator, n: int) -> tuple[Edits, Features]:
    """Pairs of sequences with random features."""
    structure = Edits(rng.integers(1, 4, size=n), rng.integers(1, 4, size=n))
    widths = {"pairs": 3, "gaps": 2, "openings": 1}
    maps = [
        PartFeatures(rng.normal(size=(int(block.offsets[-1]), widths[block.name])), block.offsets)
        for block in structure.blocks
    ]
    return structure, Stacked(*maps)
