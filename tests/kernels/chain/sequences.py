"""Batches of first- and second-order chains for tests of what they share."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from oracles.structures import chain as first_order
from oracles.structures import second_order

from maxmargin.structures import Chain, SecondOrderChain, TransitionConstraints

KINDS = ("shared", "each", "second-order")
"""A chain with one transition matrix per example, with one per edge, and a second-order chain."""
MODES = KINDS[:2]
# A vector length is set for all examples of a test, so it does not matter that the fixture is not set up for each.
at_one_width = partial(
    settings, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def build(kind: str, lengths: Any, n_labels: int, constraints: Any = None) -> Chain | SecondOrderChain:
    if kind == "second-order":
        return SecondOrderChain(lengths, n_labels, constraints=constraints)
    return Chain(lengths, n_labels, transitions=kind, constraints=constraints)


def some_constraints(rng: np.random.Generator, k: int, share: float = 0.6) -> TransitionConstraints:
    """Random constraints under which label 0 may stand everywhere."""
    pairs, first, last = rng.random((k, k)) < share, rng.random(k) < share, rng.random(k) < share
    pairs[0, 0] = first[0] = last[0] = True
    return TransitionConstraints(pairs=pairs, first=first, last=last)


@st.composite
def small_chains(
    draw: Any, longest: int = 4, labels: int = 3, constrained: bool = True, kinds: tuple[str, ...] = KINDS
) -> tuple[Any, np.ndarray]:
    """A tiny batch with scores of the kind that make ties likely."""
    kind, lengths = draw(st.sampled_from(kinds)), draw(st.lists(st.integers(0, longest), min_size=0, max_size=4))
    k, rng = draw(st.integers(1, labels)), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    constraints = some_constraints(rng, k) if constrained and draw(st.booleans()) else None
    chain = build(kind, lengths, k, constraints)
    scale = draw(st.sampled_from([1e-12, 0.3, 1.0, 10.0, 1e8]))
    scores = rng.normal(size=chain.n_parts) if draw(st.booleans()) else rng.integers(-2, 3, size=chain.n_parts)
    if kind != "each" and draw(st.booleans()) and len(lengths) > 1:  # the same tables for all
        for block, start in zip(chain.blocks[1:], chain.starts[1:], strict=False):
            table = scores[start : start + int(block.offsets[1])].copy()
            scores[start : start + int(block.offsets[-1])] = np.tile(table, len(lengths))
    return chain, scale * scores.astype(float)


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


def viterbi(chain: Any, scores: Any, i: int) -> tuple[np.ndarray, float]:
    """Best labels and score of example i by a slow twin of the kernel."""
    twin = second_order if isinstance(chain, SecondOrderChain) else first_order
    return twin.viterbi(*score_tables(chain, scores, i))


def repeated(chain: Any, nodes: np.ndarray, *tables: np.ndarray) -> np.ndarray:
    """The packed vector of tables that all examples share."""
    edges = int(np.maximum(chain.lengths - 1, 0).sum())
    times = edges if chain.blocks[1].name == "edges" else chain.n_examples
    return np.concatenate([nodes.ravel(), *(np.tile(table.ravel(), times) for table in tables)])


def once(chain: Any, rng: np.random.Generator) -> list[np.ndarray]:
    """Random scores of all nodes, and of tables that all examples share."""
    orders = range(2, 4 if isinstance(chain, SecondOrderChain) else 3)
    return [rng.normal(size=size) for size in (chain.starts[1], *((chain.n_labels,) * order for order in orders))]
