"""Slack rescaling by enumeration: the best product over all outputs, and over their hull."""

from __future__ import annotations

import numpy as np

from maxmargin.structures.base import FloatArray


def pairs(
    outputs: FloatArray, scores: FloatArray, margin: float, costs: FloatArray, constant: float
) -> tuple[FloatArray, FloatArray]:
    """Loss and margin plus score of each output (a row) of one example; outputs with a score of -inf are left out."""
    allowed = ~((outputs > 0.0) & (scores == -np.inf)).any(axis=1)
    finite = np.where(scores == -np.inf, 0.0, scores)
    return outputs[allowed] @ costs + constant, outputs[allowed] @ finite + margin


def best_output(loss: FloatArray, score: FloatArray) -> float:
    """``max(0, max_y loss(y) score(y))`` over outputs where both are positive."""
    return float(np.where((loss > 0.0) & (score > 0.0), loss * score, 0.0).max(initial=0.0))


def best_mix(loss: FloatArray, score: FloatArray) -> float:
    """The same over the hull: the maximum lies on a segment between two outputs, so all pairs of them are tried."""
    dl, ds = loss[None, :] - loss[:, None], score[None, :] - score[:, None]
    slope, curve = dl * score[:, None] + ds * loss[:, None], -dl * ds
    share = np.where(curve > 0.0, slope / np.where(curve > 0.0, 2.0 * curve, 1.0), 1.0).clip(0.0, 1.0)
    mixed = (loss[:, None] + share * dl).clip(min=0.0), score[:, None] + share * ds
    return float(np.where(mixed[1] > 0.0, mixed[0] * mixed[1], 0.0).max(initial=0.0))
