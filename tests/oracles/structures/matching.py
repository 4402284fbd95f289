"""For tests of matchings: random graphs, enumeration, and the optimality conditions of a projection."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray
from maxmargin.structures.matchings.matching import Matching

CAPACITIES = ("one", "few", "zeros")


def vertices(structure: Matching) -> list[FloatArray]:
    """For each example all its matchings, shape ``(number of matchings, n_edges)``; for up to about 12 edges."""
    polytope = structure.polytope()
    offsets = structure.blocks[0].offsets
    answer = []
    for begin, end in pairwise(offsets.tolist()):
        n = end - begin
        subsets = np.array(list(product((0.0, 1.0), repeat=n))).reshape(2**n, n)
        rows = polytope.ub[:, begin:end].toarray()
        answer.append(subsets[(subsets @ rows.T <= polytope.ub_rhs + 1e-9).all(axis=1)])
    return answer


def random_matching(
    rng: np.random.Generator, shapes: npt.ArrayLike, *, density: float = 1.0, capacities: str = "one"
) -> Matching:
    """Graphs with each edge at a given rate, in any order; capacities ``one``, ``few`` (1 to 3), ``zeros`` (0 to 3)."""
    sizes = np.asarray(shapes, dtype=np.int64).reshape(-1, 2)
    left, right = np.ones(int(sizes[:, 0].sum()), np.int64), np.ones(int(sizes[:, 1].sum()), np.int64)
    if capacities != "one":
        low = 1 if capacities == "few" else 0
        left, right = rng.integers(low, 4, len(left)), rng.integers(low, 4, len(right))
    if density >= 1:
        return Matching.dense(sizes, left_capacity=left, right_capacity=right)
    pieces = [rng.permutation(np.argwhere(rng.random(tuple(size)) < density).reshape(-1, 2)) for size in sizes]
    offsets = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])]).astype(np.int64)
    edges = np.concatenate([np.zeros((0, 2), dtype=np.int64), *pieces])
    return Matching(sizes, edges, offsets, left_capacity=left, right_capacity=right)


def scores_of(rng: np.random.Generator, structure: Matching, kind: str) -> FloatArray:
    """Random scores with ties, of one sign, or all the same."""
    scores = rng.normal(size=structure.n_parts)
    return {
        "normal": scores,
        "rounded": np.round(scores),
        "positive": np.abs(scores),
        "negative": -np.abs(scores),
        "equal": np.full(structure.n_parts, 0.7),
        "zero": np.zeros(structure.n_parts),
    }[kind]


def margins_by_enumeration(structure: Matching, scores: FloatArray) -> FloatArray:
    """The best score with each edge less the best score without it, over all matchings; ``-inf`` if none has it."""
    pieces = [np.zeros(0)]
    for outputs, (begin, end) in zip(vertices(structure), pairwise(structure.blocks[0].offsets.tolist()), strict=True):
        values = outputs @ scores[begin:end]
        for taken in outputs.T > 0.5:
            margin = values[taken].max(initial=-np.inf) - values[~taken].max(initial=-np.inf)
            pieces.append(np.array([margin]))
    return np.concatenate(pieces)


def residual(structure: Matching, point: FloatArray, duals: FloatArray) -> tuple[FloatArray, float]:
    """What node duals say: ``z = clip(point - alpha - beta, 0, 1)`` and how far it is from optimal.

    The second number is the largest ``|min(dual, capacity - sum)|`` over nodes; it is 0 exactly at the projection. It
    judges a projection at any size, as ``z`` is the projection if the duals are optimal.
    """
    capacities = np.concatenate([structure.left_capacity, structure.right_capacity]).astype(np.float64)
    incidence = structure.polytope().ub[: len(capacities)]
    open_edges = incidence.T @ (capacities == 0) == 0
    z = np.clip(point - incidence.T @ duals, 0.0, 1.0) * open_edges
    gap = np.abs(np.minimum(duals, capacities - incidence @ z))
    worst = float(gap[capacities > 0].max(initial=0.0))
    return z, max(worst, float(-duals.min(initial=0.0)))
