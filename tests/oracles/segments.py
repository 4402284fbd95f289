"""For tests of segmentations: all of them, and random problems."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from maxmargin.features.base import Features
from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.structures import Segments
from maxmargin.structures.base import IntArray


def outputs(one: Segments) -> Iterator[IntArray]:
    """All segmentations of a batch of one sequence."""
    length = int(one.lengths[0])
    waiting: list[list[tuple[int, int, int]]] = [[]]
    while waiting:
        begun = waiting.pop()
        at = begun[-1][1] if begun else 0
        if at == length:
            yield np.array(begun, dtype=np.int64).reshape(-1, 3)
            continue
        for end in range(at + 1, min(at + one.longest, length) + 1):
            waiting += [
                [*begun, (at, end, label)]
                for label in range(one.n_labels)
                if not begun or one.legal[begun[-1][2], label]
            ]


def random_segments(rng: np.random.Generator, n: int) -> Segments:
    """Short sequences, some empty; some labels may not follow others, but each may follow itself."""
    n_labels = int(rng.integers(1, 4))
    legal = (rng.random((n_labels, n_labels)) < 0.7) | np.eye(n_labels, dtype=bool)
    return Segments(rng.integers(0, 5, size=n), n_labels, int(rng.integers(1, 5)), legal=legal)


def problem(rng: np.random.Generator, n: int) -> tuple[Segments, Features]:
    """Sequences with random features of their segments."""
    structure = Segments(rng.integers(1, 5, size=n), 2, 3, legal=[[True, True], [True, False]])
    rows, counts = structure.blocks
    transitions = np.tile(np.eye(4), (n, 1))
    segments = PartFeatures(rng.normal(size=(int(rows.offsets[-1]), 3)), rows.offsets)
    return structure, Stacked(segments, PartFeatures(transitions, counts.offsets))
