"""Batches of first- and second-order chains for tests of what they share."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.structures import Chain, SecondOrderChain, TransitionConstraints

KINDS = ("shared", "each", "second-order")
"""A chain with one transition matrix per example, with one per edge, and a second-order chain."""


def build(kind: str, lengths: Any, n_labels: int, constraints: Any = None) -> Chain | SecondOrderChain:
    if kind == "second-order":
        return SecondOrderChain(lengths, n_labels, constraints=constraints)
    return Chain(lengths, n_labels, transitions=kind, constraints=constraints)


def some_constraints(rng: np.random.Generator, k: int, share: float = 0.6) -> TransitionConstraints:
    """Random constraints under which label 0 may stand everywhere."""
    pairs, first, last = rng.random((k, k)) < share, rng.random(k) < share, rng.random(k) < share
    pairs[0, 0] = first[0] = last[0] = True
    return TransitionConstraints(pairs=pairs, first=first, last=last)


def own_parts(chain: Any, packed: Any, i: int) -> np.ndarray:
    """The parts of example i, block after block."""
    return np.asarray(packed)[chain.parts_of([i])]


def score_tables(chain: Any, scores: Any, i: int) -> tuple[np.ndarray, ...]:
    """Scores of example i: nodes (T, K), pairs (K, K) or edges (T - 1, K, K), and of second order triples (K, K, K)."""
    k, length = chain.n_labels, int(chain.lengths[i])
    ends = np.cumsum([np.diff(block.offsets)[i] for block in chain.blocks])
    nodes, *tables = np.split(own_parts(chain, scores, i), ends[:-1])
    shapes = [(max(length - 1, 0), k, k)] if chain.blocks[1].name == "edges" else [(k,) * 2, (k,) * 3]
    return nodes.reshape(length, k), *(table.reshape(shape) for table, shape in zip(tables, shapes, strict=False))
