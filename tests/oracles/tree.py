"""Enumeration for trees and junction trees."""

from __future__ import annotations

from itertools import product

import numpy as np

from maxmargin.structures.base import FloatArray
from maxmargin.structures.tree import Tree


def vertices(structure: Tree) -> list[FloatArray]:
    """All labelings of every example as rows of node, then edge, then clique parts; for tiny examples only."""
    found = []
    begin = 0
    labels = np.split(structure.part_states, np.cumsum(structure.n_labels)[:-1])
    for i, nodes in enumerate(structure.n_nodes.tolist()):
        outputs = list(product(*(labels[v].tolist() for v in range(begin, begin + nodes))))
        many = structure.select([i] * len(outputs))
        z = many.encode([np.array(y, dtype=np.int64) for y in outputs])
        sides = np.split(z, many.starts[1:-1])
        found.append(np.hstack([side.reshape(len(outputs), -1) for side in sides]))
        begin += nodes
    return found


def gibbs(vertices: FloatArray, potentials: FloatArray) -> tuple[FloatArray, float]:
    """Expected parts and log-partition function of ``p(y) ~ exp(potentials'y)`` over the listed outputs.

    Potentials of ``-inf`` forbid.
    """
    with np.errstate(invalid="ignore"):
        scores = np.where(vertices > 0, potentials * vertices, 0.0).sum(axis=1)
    top = scores.max()
    weights = np.exp(scores - top)
    return weights @ vertices / weights.sum(), float(top + np.log(weights.sum()))
