"""Probabilities that mean what they say: one temperature, fitted on held-out sentences.

The marginals of ``p(y) ~ exp(score(y) / t)`` give each token's gold label a probability; ``t`` minimizes the mean of
``-log`` of these (Guo and others, *On calibration of modern neural networks*, 2017, for chains). The minimum is found
by golden section over ``log t``: each point costs one sum-product pass.
"""

from __future__ import annotations

import numpy as np

from maxmargin.structures.base import IntArray
from maxmargin.tasks.tagging.extraction import TokenRows
from maxmargin.tasks.tagging.model import TaggerModel

COLDEST, HOTTEST = 1e-2, 1e2
STEPS = 20
_LEAST = 1e-12


def fitted_temperature(model: TaggerModel, rows: TokenRows, codes: IntArray) -> float | None:
    """The temperature for held-out sentences and their labels; those that the model does not know are left out.

    None where no label is known.
    """
    known = np.flatnonzero((codes >= 0) & (codes < len(model.labels)))
    if not known.size:
        return None

    def loss(log_t: float) -> float:
        found = model.marginals(rows, temperature=float(np.exp(log_t)))
        return -float(np.log(np.maximum(found[known, codes[known]], _LEAST)).mean())

    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    low, high = np.log(COLDEST), np.log(HOTTEST)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = loss(left), loss(right)
    for _ in range(STEPS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = loss(right)
    return float(np.exp(0.5 * (low + high)))
