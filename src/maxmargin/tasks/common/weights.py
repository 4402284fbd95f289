"""Weights for inspection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.structures.base import FloatArray


def strongest_weights(
    weights: FloatArray, top: int, named: Callable[[int], dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Return the largest positive and the smallest negative weights, strongest first."""
    found = {}
    for name, signed in (("positive", -weights), ("negative", weights)):
        few = np.arange(len(signed)) if len(signed) <= top else np.argpartition(signed, top - 1)[:top]
        few = few[signed[few] < 0]
        few = few[np.lexsort((few, signed[few]))]
        found[name] = [{**named(int(at)), "weight": float(weights[at])} for at in few]
    return found
