"""A slow projection onto the polytopes of cuts."""

from __future__ import annotations

import numpy as np

from maxmargin.structures.base import FloatArray
from maxmargin.structures.cuts.cut import Cut


def project(structure: Cut, point: FloatArray, *, steps: int = 20_000, gap: float = 1e-18) -> FloatArray:
    """Euclidean projection by accelerated gradient steps on the net edge flows, all examples together.

    ``max_f -sum_e h_e(f_e) + min_x 1/2 |x - a|^2 + x'D'f`` over ``0 <= x <= 1``, with ``h(f) = a|f| + f^2/2`` for
    ``|f| >= -a`` and ``-a^2/2`` below: the prox of ``h`` has a closed form and ``x = clip(a - D'f, 0, 1)``. Stops when
    the duality gap is at most ``gap``, or after ``steps``.
    """
    nodes = structure.starts[1]
    offsets = structure.blocks[1].offsets
    first = np.repeat(structure.blocks[0].offsets[:-1], np.diff(offsets))
    j, k = structure.edges[:, 0] + first, structure.edges[:, 1] + first
    a, b = point[:nodes], point[nodes:]
    degree = np.bincount(np.concatenate([j, k]), minlength=nodes)
    step = 1.0 / max(1, int((degree[j] + degree[k]).max(initial=1)))

    def best(flow: FloatArray) -> FloatArray:
        outflow = np.bincount(j, flow, nodes) - np.bincount(k, flow, nodes)
        return np.asarray(np.clip(a - outflow, 0.0, 1.0))

    def distance(x: FloatArray, flow: FloatArray) -> float:
        difference, size = np.abs(x[j] - x[k]), np.abs(flow)
        crossed = np.where((x[j] - x[k]) * flow < 0, 2 * size * difference, 0.0)
        square = 0.5 * (difference - b - size) ** 2
        idle = size * (0.5 * size + b - difference)
        fused = difference * (0.5 * difference - b - size)
        inside = np.where(b >= 0, difference >= b, size >= -b)
        return float((np.where(inside, square, np.where(b >= 0, idle, fused)) + crossed).sum())

    flow = np.zeros(len(b))
    ahead, momentum = flow.copy(), 1.0
    for iteration in range(steps):
        if iteration % 20 == 0 and distance(best(flow), flow) <= gap:
            break
        x = best(ahead)
        u = ahead + step * (x[j] - x[k])
        size = np.maximum(0.0, np.minimum(np.abs(u), (np.abs(u) - step * b) / (1.0 + step)))
        following = np.copysign(size, u)
        if np.dot(ahead - following, following - flow) > 0:
            momentum = 1.0
        later = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = following + (momentum - 1.0) / later * (following - flow)
        flow, momentum = following, later
    x = best(flow)
    return np.concatenate([x, np.maximum(np.abs(x[j] - x[k]), np.minimum(b, 1.0))])
