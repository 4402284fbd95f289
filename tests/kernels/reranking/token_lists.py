"""Lists of hypotheses and references as kernels of metrics take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Sentences = Sequence[Sequence[int]]


def statistics(
    kernel: Callable[..., None], lists: Sequence[tuple[Sentences, Sentences]], threads: int = 1
) -> list[list[float]]:
    """The two statistics of each hypothesis of lists of hypotheses and references."""
    sides = [[one for some in lists for one in some[side]] for side in (0, 1)]
    arrays: list[Any] = []
    for side in sides:
        arrays.append(np.array([token for one in side for token in one], dtype=np.int32))
        arrays.append(np.concatenate([[0], np.cumsum([len(one) for one in side])]).astype(np.int64))
    sizes = [np.concatenate([[0], np.cumsum([len(some[side]) for some in lists])]).astype(np.int64) for side in (0, 1)]
    out = np.full((len(sides[0]), 2), np.nan)
    kernel(*arrays, *sizes, out, threads)
    return out.tolist()
