"""Trees that are known in part: nodes that are there, and spans that no node crosses."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.encoders.data.labels import plain
from maxmargin.encoders.data.partial import PartialTree, labeled_spans
from maxmargin.encoders.deductions.bracketed import joined
from maxmargin.structures.deductions.spans import children_of

Node = tuple[int, int, Hashable]


def known_nodes(given: PartialTree, index: int, *, with_chains: bool = False) -> list[Node]:
    """The known nodes of an example in preorder, those over one span joined to one unless ``with_chains``."""
    what = f"example {index}: the known nodes of PartialTree"
    found: list[Node] = []
    for begin, end, label in labeled_spans(given.known, what, "nodes (begin, end, label)"):
        if label is None or isinstance(label, (set, frozenset)):
            raise ValueError(
                f"{what}: {shown((begin, end, label))} needs one label; where it is unknown give the span among the "
                "brackets, which no node crosses"
            )
        if begin >= end:
            raise ValueError(f"{what}: {shown((begin, end, label))} is empty; end must be greater than begin")
        found.append((begin, end, plain(label, what)))
    found.sort(key=lambda node: (node[0], -node[1]))
    return found if with_chains else joined(found, what)


def known_spans(given: PartialTree, nodes: list[Node], index: int, n: int) -> list[tuple[int, int]]:
    """The spans of known nodes and brackets; ValueError naming the example of ``n`` tokens if two of them cross."""
    what, wanted = f"example {index}: the brackets of PartialTree", "spans (begin, end)"
    rows = []
    for row in _checks.listed(what, given.brackets, f"a list of {wanted}"):
        own = row.tolist() if isinstance(row, np.ndarray) else row
        if not isinstance(own, (tuple, list)) or len(own) != 2:
            raise ValueError(f"{what} must be a list of {wanted}, got {shown(row)} in it")
        rows.append((*own, None))
    spans = {(begin, end) for begin, end, _ in [*labeled_spans(rows, what, wanted), *nodes]}
    for begin, end in spans:
        if not begin < end <= n:
            raise ValueError(f"example {index}: {(begin, end)} is not a span of {n} tokens; give 0 <= begin < end <= n")
    found = sorted(spans, key=lambda span: (span[0], -span[1]))
    children_of(np.array(found, dtype=np.int64).reshape(-1, 2), index)
    return found
