"""Class probabilities of nodes as the features of a cut's nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin.structures.base import FloatArray

_LEAST = np.exp(-6.0)
"""Probabilities below this count as this."""

_KNOTS = (-4.0, -3.0, -2.0, -1.2, -0.6, 0.0, 0.6, 1.2, 2.0, 3.0, 4.0)
"""Where the score of a node, as a function of its log-odds, may change its slope."""


def node_features(probabilities: FloatArray) -> FloatArray:
    """Features of nodes, shape ``(n, f)``, from class probabilities, shape ``(n, n_classes)``.

    Of two classes: 1, the log-odds of the second, and their excess over a few knots, so that their score is a
    piecewise linear function that learning shapes. Of more classes: 1 and all log-probabilities.
    """
    logs = np.log(np.maximum(probabilities, _LEAST))
    ones = np.ones((len(logs), 1))
    if logs.shape[1] != 2:
        return np.hstack([ones, 0.5 * logs])
    odds = logs[:, 1:] - logs[:, :1]
    return np.hstack([ones, 0.5 * odds, *(0.5 * np.maximum(odds - knot, 0.0) for knot in _KNOTS)])


def classifier_weights(n_classes: int) -> FloatArray:
    """Weights of more than two classes whose scores are log-probabilities, shape ``(n_classes + 1, n_classes)``."""
    return np.vstack([np.zeros((1, n_classes)), 2.0 * np.eye(n_classes)])


def node_feature_names(classes: Sequence[str]) -> list[str]:
    """Names of the columns of :func:`node_features`."""
    if len(classes) != 2:
        return ["one", *(f"log-probability of {name}" for name in classes)]
    odds = f"log-odds of {classes[1]}"
    return ["one", odds, *(f"{odds} above {knot:g}" for knot in _KNOTS)]
