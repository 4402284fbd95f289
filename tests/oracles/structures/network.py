"""For tests of general graphs and associative networks: feasibility, and a dynamic program on trees."""

from __future__ import annotations

import numpy as np

from maxmargin.structures.base import FloatArray
from maxmargin.structures.networks.graph import PairwiseGraph
from maxmargin.structures.networks.network import Network


def feasibility(structure: Network, z: FloatArray) -> float:
    """The largest violation of any constraint of the polytope."""
    polytope = structure.polytope()
    assert polytope is not None
    equal = np.abs(polytope.eq @ z - polytope.eq_rhs).max(initial=0.0)
    less = np.maximum(polytope.ub @ z - polytope.ub_rhs, 0.0).max(initial=0.0) if polytope.ub.shape[0] else 0.0
    return float(max(equal, less, (-z).max(initial=0.0)))


def best_on_tree(structure: PairwiseGraph, scores: FloatArray) -> float:
    """Score of the best labeling of a batch of one example whose graph is a forest, leaves first."""
    k = structure.n_labels
    best = scores[structure.variable_parts].reshape(-1, k).copy()
    tables = scores[structure.starts[1] :].reshape(-1, k, k)
    left = dict(enumerate(structure.edges.tolist()))
    total = 0.0
    degree = np.bincount(structure.edges.ravel(), minlength=len(best))
    done = np.zeros(len(best), dtype=np.bool_)
    while not done.all():
        leaf = int(np.flatnonzero(~done & (degree <= 1))[0])
        done[leaf] = True
        edge = next((e for e, ends in left.items() if leaf in ends), None)
        if edge is None:
            total += float(best[leaf].max())
            continue
        first, second = left.pop(edge)
        degree[[first, second]] -= 1
        if leaf == first:
            best[second] += (best[leaf][:, None] + tables[edge]).max(axis=0)
        else:
            best[first] += (best[leaf] + tables[edge]).max(axis=1)
    return total
