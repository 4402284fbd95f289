"""The weights of the decoder that made the lists, as far as its total scores or the order of the lists tell them.

Decoders write their hypotheses best first, by a score that is linear in their features, so that both tell its weights
up to their size. Tuning starts there.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.reranking.tuning.base import TuningLists

EXPLAINED = 0.95
"""The share of neighbors in the right order, or of the variance of totals, from which on weights are believed."""

_MOST_PAIRS = 100_000


def decoder_weights(dense: FloatArray, offsets: IntArray, totals: FloatArray | None = None) -> FloatArray | None:
    """Return weights that explain the decoder's scores, or None if no weights do.

    Args:
        dense: dense features, shape ``(n_hypotheses, d)``.
        offsets: where each list begins, shape ``(n_lists + 1,)``.
        totals: the decoder's total scores, shape ``(n_hypotheses,)``; None to go by the order of the lists.
    """
    if not dense.shape[1] or len(dense) == len(offsets) - 1:
        return None
    found = _of_order(dense, offsets) if totals is None else _of_totals(dense, offsets, totals)
    return found if found is not None and np.isfinite(found).all() and found.any() else None


def sized(weights: FloatArray, lists: TuningLists) -> FloatArray:
    """Return weights scaled so that differences of scores are comparable with differences of sentence quality.

    The size minimizes the hinge loss ``sum_i max_j q_i - q_ij + s w'(f_ij - f_i)`` with ``q_i`` and ``f_i`` of the best
    hypothesis of a list, a convex function of ``s``.
    """
    structure, scores = lists.structure, lists.scores(weights)
    best, quality = structure.first_largest(lists.quality)
    owner = np.repeat(np.arange(len(lists)), structure.sizes)
    loss, lead = quality[owner] - lists.quality, scores - scores[best][owner]
    unit = float(np.sqrt(np.mean(np.square(lead)))) or 1.0

    def hinge(power: float) -> float:
        return float(structure.first_largest(loss + np.exp(power) / unit * lead)[1].sum())

    power = minimize_scalar(hinge, bounds=(np.log(1e-4), np.log(1e4)), method="bounded").x
    return weights * float(np.exp(power) / unit)


def _of_totals(dense: FloatArray, offsets: IntArray, totals: FloatArray) -> FloatArray | None:
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    first = offsets[:-1][owner]
    with np.errstate(over="ignore"):
        rows, target = dense - dense[first], totals - totals[first]
    if not np.isfinite(target).all() or np.abs(target).max(initial=0.0) > 1e150:
        return None
    weights = np.asarray(np.linalg.lstsq(rows, target, rcond=None)[0], dtype=np.float64)
    rest, whole = np.square(target - rows @ weights).sum(), np.square(target).sum()
    return weights if whole > 0.0 and rest <= (1.0 - EXPLAINED) * whole else None


def _of_order(dense: FloatArray, offsets: IntArray) -> FloatArray | None:
    """By logistic regression on the differences of neighbors, nearly without regularization."""
    inside = np.ones(len(dense) - 1, dtype=bool)
    inside[offsets[1:-1] - 1] = False
    at = np.flatnonzero(inside)
    at = at[:: max(1, len(at) // _MOST_PAIRS)]
    differences = dense[at] - dense[at + 1]
    scale = np.sqrt(np.mean(np.square(differences), axis=0))
    differences = differences[differences.any(axis=1)] / np.where(scale > 0.0, scale, 1.0)
    if not len(differences):
        return None

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        margins = differences @ weights
        value = float(np.logaddexp(0.0, -margins).mean()) + 1e-6 * float(weights @ weights)
        return value, 2e-6 * weights - differences.T @ expit(-margins) / len(differences)

    answer = minimize(loss, np.zeros(dense.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    weights = np.where(scale > 0.0, answer.x / np.where(scale > 0.0, scale, 1.0), 0.0)
    scores = dense @ weights
    # Printed features are rounded: neighbors may seem to stand in the wrong order by that much.
    room = 1e-6 * float(np.abs(scores).max(initial=0.0))
    ordered = float(np.mean(scores[at] >= scores[at + 1] - room))
    first = float(np.mean([scores[a] >= scores[a:b].max() - room for a, b in pairwise(offsets.tolist())]))
    return weights if min(ordered, first) >= EXPLAINED else None
