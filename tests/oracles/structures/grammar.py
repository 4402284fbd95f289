"""For tests of trees of spans and of derivations: all of them, and random problems."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from maxmargin.features.base import Features
from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.features.tied import TiedRows
from maxmargin.structures import Derivations, Spans, spans_of
from maxmargin.structures.base import IntArray

RULES = {
    "n_symbols": 3,
    "binary": [[0, 1, 2], [1, 1, 1], [0, 0, 2], [2, 1, 1]],
    "unary": [[0, 1], [1, 2], [0, 2]],
    "preterminals": [1, 2],
}
"""An ambiguous grammar with chains of unary rules."""


def crosses(a: list[int], b: list[int]) -> bool:
    """Whether two spans overlap and neither is inside the other."""
    return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]


def span_trees(one: Spans) -> Iterator[IntArray]:
    """All trees of a batch of one sentence: every set of spans with labels, but for those that cross."""
    n = int(one.lengths[0])
    spans = spans_of(n).tolist()
    for labels in product(range(-1, one.n_labels), repeat=len(spans)):
        nodes = [(*span, label) for span, label in zip(spans, labels, strict=True) if label >= 0]
        if one.rooted and not any(node[:2] == (0, n) for node in nodes):
            continue
        if not any(crosses(list(a), list(b)) for a, b in combinations(nodes, 2)):
            yield np.array(nodes, dtype=np.int64).reshape(-1, 3)


def derivations(one: Derivations) -> Iterator[IntArray]:
    """All derivations of a batch of one sentence, from the start symbol down."""
    n_binary, n_unary = len(one.binary), len(one.unary)

    def derive(symbol: int, begin: int, end: int) -> Iterator[list[tuple[int, int, int]]]:
        for r, (left, *right) in enumerate([*one.binary.tolist(), *one.unary.tolist()]):
            if left != symbol:
                continue
            if len(right) == 1:
                yield from ([(begin, end, r), *below] for below in derive(right[0], begin, end))
            for split in range(begin + 1, end) if len(right) == 2 else ():
                for first, second in product(derive(right[0], begin, split), derive(right[1], split, end)):
                    yield [(begin, end, r), *first, *second]
        for r, over in enumerate(one.preterminals.tolist()):
            if over == symbol and end == begin + 1:
                yield [(begin, end, n_binary + n_unary + r)]

    for found in derive(one.start, 0, int(one.lengths[0])):
        yield np.array(found, dtype=np.int64)


def spans_problem(rng: np.random.Generator, n: int) -> tuple[Spans, Features]:
    """Sentences of up to three tokens with random features of spans and splits."""
    structure = Spans(rng.integers(1, 4, size=n), 1, splits=True)
    splits = structure.blocks[1].offsets
    spans = TiedRows(rng.normal(size=(int(structure.starts[1]), 4)), structure.blocks[0].offsets, 1)
    return structure, Stacked(spans, PartFeatures(rng.normal(size=(int(splits[-1]), 2)), splits))
