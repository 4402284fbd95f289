"""Calibrated probabilities: one temperature, fitted on held-out sentences.

The temperature ``t`` minimizes the mean negative log-likelihood of the gold labels under the token marginals of
``p(y) ~ exp(score(y) / t)`` (Guo and others, *On calibration of modern neural networks*, 2017, for chains). Each
evaluation costs one sum-product pass.
"""

from __future__ import annotations

import numpy as np

from maxmargin.structures.base import IntArray
from maxmargin.tasks.tagging.encoder.extraction import TokenRows
from maxmargin.tasks.tagging.model import TaggerModel

COLDEST, HOTTEST = 1e-2, 1e2
XTOL = 1e-3
"""Accuracy of the logarithm of the temperature."""
_LEAST = 1e-12


def fitted_temperature(model: TaggerModel, rows: TokenRows, codes: IntArray) -> float | None:
    """Return the temperature fitted to held-out sentences; labels unknown to the model are left out.

    None if the model knows no label.
    """
    from scipy.optimize import minimize_scalar  # slow to import, and only training calibrates

    known = np.flatnonzero((codes >= 0) & (codes < len(model.labels)))
    if not known.size:
        return None

    def loss(log_t: float) -> float:
        found = model.marginals(rows, temperature=float(np.exp(log_t)))
        return -float(np.log(np.maximum(found[known, codes[known]], _LEAST)).mean())

    bounds = float(np.log(COLDEST)), float(np.log(HOTTEST))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": XTOL}).x))
