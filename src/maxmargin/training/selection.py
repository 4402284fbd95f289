"""The choice of settings on held-out data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from maxmargin.structures.base import IntArray

Candidate = dict[str, float]
"""One value for each setting."""


def folds(n: int, k: int, seed: int) -> list[IntArray]:
    """Split ``n`` examples into ``k`` random parts of nearly equal size."""
    order = np.random.default_rng(seed).permutation(n)
    return [np.sort(order[part::k]) for part in range(min(k, n))]


def best(tried: Sequence[tuple[float, float]]) -> float:
    """The C of the best score among pairs of C and score, whatever their order; of equal ones the smallest C."""
    return min(tried, key=lambda pair: (-pair[1], pair[0]))[0]


def edge(tried: Sequence[tuple[float, float]], name: str = "C") -> str:
    """A sentence if the best of three or more values is the smallest or the largest, and better than its neighbor."""
    if len({C for C, _ in tried}) < 3:
        return ""
    scores = dict(sorted(tried))
    grid, chosen = list(scores), best(tried)
    for end, neighbor, place, further in ((0, 1, "smallest", "smaller"), (-1, -2, "largest", "larger")):
        if chosen == grid[end] and scores[chosen] > scores[grid[neighbor]]:
            return f"{name}={chosen:g} has the best score and is the {place} of those tried; try {further} ones as well"
    return ""


def coordinate_search(
    grid: Mapping[str, Sequence[float]], error: Callable[[Candidate], float]
) -> tuple[Candidate, list[tuple[Candidate, float]]]:
    """Find the settings of smallest error by searching along one setting at a time.

    Every setting starts at the middle of its list. The settings are searched in the order given, then the neighbors
    of the best value of the first one once more. Of equal candidates the earlier one, as listed, wins.

    Returns:
        The best candidate, and all candidates that were tried with their errors.
    """
    tried: dict[tuple[float, ...], float] = {}
    names = list(grid)

    def measured(candidate: Candidate) -> float:
        key = tuple(candidate[name] for name in names)
        if key not in tried:
            tried[key] = error(candidate)
        return tried[key]

    def along(name: str, values: Sequence[float], at: Candidate) -> Candidate:
        return min(({**at, name: value} for value in values), key=measured)

    best: Candidate = {name: values[len(values) // 2] for name, values in grid.items()}
    for name, values in grid.items():
        best = along(name, values, best)
    if names:
        first = list(grid[names[0]])
        place = first.index(best[names[0]])
        best = along(names[0], first[max(place - 1, 0) : place + 2], best)
    return best, [(dict(zip(names, key, strict=True)), value) for key, value in tried.items()]
