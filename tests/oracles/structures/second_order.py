"""Slow twins of the kernels of second-order chains: Viterbi, and the same batch as a chain over pairs."""

from __future__ import annotations

import numpy as np

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.chains.chain import Chain


def viterbi(nodes: FloatArray, pairs: FloatArray, triples: FloatArray) -> tuple[IntArray, float]:
    """Best labels and score of one chain, ties as the kernel.

    Shapes: ``nodes (T, K)``, ``pairs (K, K)``, ``triples (K, K, K)``.
    """
    length = len(nodes)
    if length < 2:
        return nodes.argmax(axis=1), float(nodes.max(axis=1).sum())
    layers = [nodes[0][:, None] + pairs + nodes[1]]
    for t in range(2, length):
        layers.append((layers[-1][:, :, None] + (triples + pairs)).max(axis=0) + nodes[t])
    last = layers[-1].max(axis=0).argmax()
    labels = [int(last), int(layers[-1][:, last].argmax())]
    for layer in layers[-2::-1]:
        b, c = labels[-1], labels[-2]
        labels.append(int((layer[:, b] + (triples + pairs)[:, b, c]).argmax()))
    return np.array(labels[::-1], dtype=np.int64), float(layers[-1].max())


def product_chain(nodes: FloatArray, pairs: FloatArray, triples: FloatArray) -> tuple[Chain, FloatArray]:
    """The same chain, of two positions or more, with pairs of neighboring labels as labels, and its scores.

    Label ``a K + b`` at position ``t`` of the new chain stands for labels ``a``, ``b`` at ``t``, ``t + 1``.
    """
    length, k = nodes.shape
    own = (pairs[None] + nodes[1:, None, :]).copy()
    own[0] += nodes[0][:, None]
    table = np.full((k, k, k, k), -np.inf)
    for b in range(k):
        table[:, b, b, :] = triples[:, b, :]
    return Chain([length - 1], k * k), np.concatenate([own.ravel(), table.ravel()])
