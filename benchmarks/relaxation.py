"""Relaxed maxima and projections on grids of growing size, against general solvers. Prints JSON.

Every grid is solved twice in the same run: by the library's own solver alone (messages, then proximal steps) and by
HiGHS on the same linear program; and one projection each by ``project`` and by Clarabel. Node scores are normal,
pair scores normal with the given strength (for associative networks their absolute values): at 0.5 most relaxations of
general graphs are nearly integral, at 1.0 many nodes are fractional. Times are processor time of one thread.

    python benchmarks/relaxation.py [--sides 10 20 30] [--labels 3] [--strength 0.5] [--seed 0] [--clarabel-parts 30000]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin import threads
from maxmargin.structures import Associative, Graph, network
from maxmargin.testing import reference


def grid(side: int) -> np.ndarray:
    at = np.arange(side * side).reshape(side, side)
    across = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1)
    return np.concatenate([across, np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1)])


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    answer = call()
    return answer, time.process_time() - start


def solve(structure: network.Network, scores: np.ndarray, *, highs: bool) -> tuple[Any, float]:
    """The maximum by HiGHS alone or by the library's own solver alone."""
    if highs:
        return timed(lambda: network._solve(structure, scores, "simplex"))
    limit = network.HIGHS_PARTS
    try:
        network.HIGHS_PARTS = 0
        return timed(lambda: structure.argmax(scores))
    finally:
        network.HIGHS_PARTS = limit


def run(side: int, kind: type[network.Network], args: argparse.Namespace) -> dict[str, Any]:
    rng = np.random.default_rng(args.seed)
    edges = grid(side)
    structure = kind([side * side], edges, [0, len(edges)], args.labels)
    scores = rng.normal(size=structure.n_parts)
    scores[structure.starts[1] :] *= args.strength
    if kind is Associative:
        scores[structure.starts[1] :] = np.abs(scores[structure.starts[1] :])
    structure.argmax(np.zeros(structure.n_parts))  # builds the kernel's graph
    points, own = solve(structure, scores, highs=False)
    (z, _), highs = solve(structure, scores, highs=True)
    nodes = points.z[structure.decisions].reshape(-1, args.labels)
    labelling = structure.predict(scores)
    gold = labelling.z
    point = gold + 0.3 * rng.normal(size=structure.n_parts)
    near, cold = timed(lambda: structure.project(point, tol=1e-6))
    moved = point + 0.01 * rng.normal(size=structure.n_parts)
    _, warm = timed(lambda: structure.project(moved, tol=1e-6, warm=near.warm))
    row = {
        "structure": structure.name,
        "side": side,
        "labels": args.labels,
        "parts": structure.n_parts,
        "status": int(points.status[0]),
        "own_seconds": round(own, 4),
        "highs_seconds": round(highs, 4),
        "highs_over_own": round(highs / own, 2),
        "bound": float(points.value[0]),
        "bound_less_score": float(points.value[0] - scores @ points.z),
        "bound_less_highs": float(points.value[0] - scores @ z),
        "fractional_nodes": float(((nodes > 1e-6) & (nodes < 1 - 1e-6)).any(axis=1).mean()),
        "bound_less_labelling": float(points.value[0] - labelling.value[0]),
        "projection_cold_seconds": round(cold, 4),
        "projection_warm_seconds": round(warm, 4),
        "projection_status": int(near.status[0]),
    }
    if structure.n_parts <= args.clarabel_parts:
        other, clarabel = timed(lambda: reference.project(structure, point))
        row["clarabel_seconds"] = round(clarabel, 4)
        row["clarabel_over_projection"] = round(clarabel / cold, 2)
        row["largest_difference"] = float(np.abs(other - near.z).max())
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", type=int, nargs="+", default=[10, 20, 30])
    parser.add_argument("--labels", type=int, default=3)
    parser.add_argument("--strength", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--clarabel-parts", type=int, default=30_000)
    args = parser.parse_args()
    with threads(1):
        rows = [run(side, kind, args) for side in args.sides for kind in (Graph, Associative)]
    print(json.dumps({"strength": args.strength, "seed": args.seed, "grids": rows}, indent=2))


if __name__ == "__main__":
    main()
