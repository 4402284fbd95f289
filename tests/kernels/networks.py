"""Random graphs for the tests of cuts, general graphs and associative networks."""

from __future__ import annotations

import itertools

import numpy as np

from maxmargin.structures.networks.network import Network


def random_graphs(rng: np.random.Generator, examples: int, most: int) -> tuple[list[int], np.ndarray, list[int]]:
    """Numbers of nodes, edges and edge offsets."""
    counts, edges, offsets = [], [], [0]
    for _ in range(examples):
        nodes = int(rng.integers(0, most + 1))
        pairs = np.array(list(itertools.combinations(range(nodes), 2)), dtype=np.int64).reshape(-1, 2)
        chosen = pairs[rng.permutation(len(pairs))[: rng.integers(0, len(pairs) + 1)]]
        chosen = np.where(rng.random((len(chosen), 1)) < 0.5, chosen, chosen[:, ::-1])
        counts.append(nodes)
        edges.append(chosen)
        offsets.append(offsets[-1] + len(chosen))
    return counts, np.concatenate([np.zeros((0, 2), dtype=np.int64), *edges]), offsets


def random_batch(rng: np.random.Generator, kind: type[Network], examples: int, labels: int, most: int = 6) -> Network:
    return kind(*random_graphs(rng, examples, most), labels)


def grid(height: int, width: int) -> np.ndarray:
    at = np.arange(height * width).reshape(height, width)
    across = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1)
    return np.concatenate([across, np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1)])


def one(kind: type[Network], nodes: int, edges: np.ndarray, labels: int) -> Network:
    return kind([nodes], edges, [0, len(edges)], labels)


def certificate(structure: Network, point: np.ndarray, z: np.ndarray) -> np.ndarray:
    """``max_v (a - z)'(v - z)`` of each example, which is at least the squared distance of z to the projection."""
    residual = point - z
    return structure.argmax(residual).value - structure.by_example(residual * z)
