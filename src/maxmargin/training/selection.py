"""The choice of settings on held-out data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from maxmargin.structures.base import IntArray

Candidate = dict[str, float]
"""One value for each setting."""

LEAST_GAIN = 0.025
"""The share of errors that a larger C must leave out to be taken."""


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


def climb(
    grid: Sequence[float], start: float | None, score: Callable[[float], float]
) -> tuple[float, list[tuple[float, float]]]:
    """Find a C of the best score, from the value of the grid next to ``start`` on while a neighbor is better.

    A larger C takes longer, so it must leave out :data:`LEAST_GAIN` of the errors, as ``1 - score`` counts them.
    Without a start all values are tried, and :func:`best` chooses.

    Returns:
        The C, and those that were tried with their scores, rising.
    """
    values = sorted(set(grid))
    if start is None:
        tried = [(C, score(C)) for C in values]
        return best(tried), tried
    known: dict[int, float] = {}

    def at(place: int) -> float:
        if not 0 <= place < len(values):
            return -np.inf
        if place not in known:
            known[place] = score(values[place])
        return known[place]

    place = min(range(len(values)), key=lambda i: abs(np.log(values[i] / start)))

    def larger(place: int) -> bool:
        return at(place + 1) > at(place) + LEAST_GAIN * max(1.0 - at(place), 0.0)

    if larger(place):
        while larger(place):
            place += 1
    else:
        while at(place - 1) > at(place):
            place -= 1
    return values[place], [(values[i], known[i]) for i in sorted(known)]


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
