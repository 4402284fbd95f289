"""Time of projections, for the benchmarks of several structures."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.timing import significant, timed
from maxmargin.structures import Structure


def projections(dense: Callable[[np.ndarray], Structure], unit: str, *, repeats: int) -> dict[str, Any]:
    """Microseconds of one projection of normal points of some standard deviation, from nothing and from a near one.

    ``dense`` makes a batch of examples from their sizes, which count ``unit``.
    """
    found: dict[str, Any] = {}
    rng = np.random.default_rng(0)
    for n, deviation in itertools.product((10, 20, 40), (0.3, 1.0, 5.0)):
        many = max(1, 2000 // n**2)
        structure = dense(np.full(many, n))
        point = deviation * rng.normal(size=structure.n_parts)
        near = point + 0.05 * deviation * rng.normal(size=structure.n_parts)
        with mm.threads(1):
            warm = structure.project(near).warm
            calls = {
                "cold": lambda s=structure, p=point: s.project(p),
                "warm": lambda s=structure, p=point, w=warm: s.project(p, warm=w),
            }
            seconds = {name: timed(call, repeats)[1] for name, call in calls.items()}
        found[f"{n} {unit}, {deviation:g}"] = {name: significant(1e6 * t / many) for name, t in seconds.items()}
    return found
