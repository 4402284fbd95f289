"""Helpers of structures with labeled nodes: checks of labelings and edge lists, and labels of parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _kernels
from maxmargin.structures._arrays import FloatArray, IntArray, Ragged, array_of, counts_of, integers, offsets_of, one_per_example, pairs_of


def joined_labels(labels: Sequence[Any], counts: IntArray, what: str = "labelings", node: str = "node") -> IntArray:
    """One vector of all examples' integer labels; ValueError unless example ``i`` has ``counts[i]`` of them.

    ``what``: the word for an example's labels; ``node``: the item with a label.
    """
    labels = one_per_example(labels, len(counts), what)
    if isinstance(labels, Ragged) and labels.flat.dtype == np.int64 and np.array_equal(np.diff(labels.offsets), counts):
        return labels.flat
    arrays = []
    for example, (label, expected) in enumerate(zip(labels, counts.tolist(), strict=True)):
        array = array_of(label, f"example {example}: labels", "iu", "integers, labels numbered from 0")
        if array.shape != (expected,):
            raise ValueError(
                f"example {example} has {expected} {node}s but its labels have shape {array.shape}; "
                f"give one label per {node}"
            )
        arrays.append(integers(array, f"example {example}: labels"))
    return np.concatenate([np.zeros(0, dtype=np.int64), *arrays])


def check_range(flat: IntArray, n_labels: int, counts: IntArray, name: str) -> None:
    """Refuse labels outside ``0 .. n_labels - 1``; example ``i`` has ``counts[i]`` of them."""
    wrong = np.flatnonzero((flat < 0) | (flat >= n_labels))
    if wrong.size:
        owner = int(np.repeat(np.arange(len(counts)), counts)[wrong[0]])
        raise ValueError(
            f"example {owner} has label {flat[wrong[0]]}; labels must lie in 0..{n_labels - 1}, "
            f"or build the {name} with more labels"
        )


def largest(nodes: FloatArray, n_labels: int, counts: IntArray) -> list[IntArray]:
    """The label of the largest part of every node, the first of equal ones: one int64 array per example."""
    labels = nodes.reshape(-1, n_labels).argmax(axis=1).astype(np.int64)
    return np.split(labels, np.cumsum(counts)[:-1])[: len(counts)]


def edge_lists(
    n_nodes: npt.ArrayLike, edges: npt.ArrayLike, edge_offsets: npt.ArrayLike
) -> tuple[IntArray, IntArray, IntArray]:
    """Numbers of nodes, edges ``(n_edges, 2)`` and offsets of edges as int64 arrays that fit together."""
    counts, offsets, pairs = (
        counts_of(n_nodes, "n_nodes"),
        integers(edge_offsets, "edge_offsets"),
        pairs_of(edges, "edges"),
    )
    if offsets.ndim != 1:
        raise ValueError(f"edge_offsets must have one dimension, got shape {offsets.shape}")
    if len(offsets) != len(counts) + 1:
        raise ValueError(
            f"edge_offsets has {len(offsets)} entries for {len(counts)} examples; give one more than examples"
        )
    if offsets[0] != 0 or offsets[-1] != len(pairs) or np.any(np.diff(offsets) < 0):
        raise ValueError(f"edge_offsets must rise from 0 to the number of edges, {len(pairs)}")
    return counts, pairs, offsets


def check_edges(counts: IntArray, pairs: IntArray, offsets: IntArray, loop: str, twice: str) -> None:
    """Refuse edges that leave their example, join a node to itself or are repeated; ``loop``, ``twice``: remedies."""
    fault, e = _kernels.faulty_edge(offsets_of(counts), offsets, pairs)
    if not fault:
        return
    what, remedy = (
        ("has the edge", "number its nodes from 0 within the example"),
        ("has the self-loop", loop),
        ("has more than once the edge", twice),
    )[fault - 1]
    owner = int(np.searchsorted(offsets, e, side="right")) - 1
    edge = f"({pairs[e, 0]}, {pairs[e, 1]})"
    raise ValueError(f"example {owner}, which has {counts[owner]} nodes, {what} {edge}; {remedy}")
