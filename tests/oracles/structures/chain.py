"""Slow twins of the chain kernels: Viterbi, max-marginals and sum-product passes in NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.chains.chain import Chain
from oracles.enumeration import vertices


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


def max_marginals(nodes: FloatArray, pairs: FloatArray) -> FloatArray:
    """Best score through every label of one chain, ``(T, K)``; shapes as for :func:`viterbi`."""
    length, k = nodes.shape
    tables = np.broadcast_to(pairs, (max(length - 1, 0), k, k)) if pairs.ndim == 2 else pairs
    forward, backward = nodes.copy(), np.zeros_like(nodes)
    for t in range(1, length):
        forward[t] += (forward[t - 1][:, None] + tables[t - 1]).max(axis=0)
        s = length - 1 - t
        backward[s] = (tables[s] + (nodes[s + 1] + backward[s + 1])[None, :]).max(axis=1)
    return np.asarray(forward + backward)


def gibbs(structure: Chain, potentials: FloatArray) -> tuple[list[FloatArray], list[FloatArray], FloatArray]:
    """By enumeration: per example the probabilities of all outputs (as :func:`vertices`), the expected parts of each
    (nodes, then pairs or edges), and the log-partition functions, shape ``(n_examples,)``; only for tiny examples.

    Where every output is forbidden: zeros and ``-inf``.
    """
    probabilities, means, value = [], [], np.zeros(structure.n_examples)
    for i, outputs in enumerate(vertices(structure)):
        own = potentials[structure.parts_of([i])].astype(np.longdouble)
        scores = np.where(outputs > 0, outputs * np.where(outputs > 0, own, 0.0), 0.0).sum(axis=1)
        most = scores.max(initial=-np.inf)
        weights = np.exp(scores - most) if most > -np.inf else np.zeros_like(scores)
        total = weights.sum()
        p = (weights / total if total > 0 else weights).astype(np.float64)
        probabilities.append(p)
        means.append(p @ outputs)
        value[i] = float(most + np.log(total)) if total > 0 else -np.inf
    return probabilities, means, value


def sum_product(nodes: FloatArray, pairs: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Node marginals ``(T, K)``, edge marginals ``(T-1, K, K)`` and log-partition function of one chain.

    Forward-backward by log-sum-exp in the widest floats NumPy has, shapes as for :func:`viterbi`; ``T >= 1``, and some
    output must be allowed.
    """
    length, k = nodes.shape
    here = nodes.astype(np.longdouble)
    tables = (np.broadcast_to(pairs, (length - 1, k, k)) if pairs.ndim == 2 else pairs).astype(np.longdouble)
    forward, backward = here.copy(), np.zeros_like(here)
    for t in range(1, length):
        forward[t] += _log_sum_exp(forward[t - 1][:, None] + tables[t - 1], axis=0)
    for t in range(length - 1, 0, -1):
        backward[t - 1] = _log_sum_exp(tables[t - 1] + (here[t] + backward[t])[None, :], axis=1)
    value = _log_sum_exp(forward[-1], axis=0)
    edges = forward[:-1, :, None] + tables + (here + backward)[1:, None, :] - value
    return np.exp(forward + backward - value).astype(float), np.exp(edges).astype(float), float(value)


def _log_sum_exp(x: npt.NDArray[np.longdouble], axis: int) -> npt.NDArray[np.longdouble]:
    most = x.max(axis=axis, keepdims=True)
    top = np.where(most > -np.inf, most, 0.0)
    sums = np.exp(x - top).sum(axis=axis)
    logs = np.log(np.where(sums > 0, sums, 1.0))
    result: npt.NDArray[np.longdouble] = np.where(sums > 0, logs + np.squeeze(top, axis), -np.inf)
    return result
