"""Slow twins of the chain kernels: enumeration of all label sequences, and a Viterbi pass in NumPy."""

from __future__ import annotations

from itertools import product

import numpy as np

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.chain import Chain


def vertices(structure: Chain) -> list[FloatArray]:
    """All outputs of every example, each as a row of node parts followed by pair (or edge) parts.

    Rows are in lexicographic order of the label sequences; only for tiny examples.
    """
    found = []
    for length in structure.lengths.tolist():
        one = Chain([length], structure.n_labels, transitions=structure.transitions)
        sequences = product(range(structure.n_labels), repeat=length)
        found.append(np.array([one.encode([np.array(y, dtype=np.int64)]) for y in sequences]))
    return found


def viterbi(nodes: FloatArray, pairs: FloatArray) -> tuple[IntArray, float]:
    """Best labels and score of one chain, ties as the kernel: ``nodes (T, K)``, ``pairs (K, K)`` or ``(T-1, K, K)``."""
    length, k = nodes.shape
    tables = np.broadcast_to(pairs, (max(length - 1, 0), k, k)) if pairs.ndim == 2 else pairs
    forward = nodes.copy()
    for t in range(1, length):
        forward[t] += (forward[t - 1][:, None] + tables[t - 1]).max(axis=0)
    labels = np.zeros(length, dtype=np.int64)
    if length:
        labels[-1] = forward[-1].argmax()
    for t in range(length - 1, 0, -1):
        labels[t - 1] = (forward[t - 1] + tables[t - 1][:, labels[t]]).argmax()
    return labels, float(forward[-1].max()) if length else 0.0
