"""Cuts on surface-like meshes: projections inside an extragradient run, and minimum cuts. Prints JSON.

The graph is a Delaunay mesh over random points thinned to mean degree 4.8, with a smooth gold labeling and noisy node
features; the points to project are those of a real extragradient run. Projections by ``Cut.project`` are compared with
plain dual FISTA with restarts (also C++), the argmax with ``scipy.sparse.csgraph.maximum_flow`` on rounded integer
capacities. Times are CPU time of one thread.

    python -m benchmarks.kernels.cut_projection [--nodes 7400] [--iterations 60] [--tol 1e-6] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_flow
from scipy.spatial import Delaunay

from benchmarks.timing import timed
from maxmargin import _kernels
from maxmargin.structures.cuts.cut import Cut


def mesh(rng: np.random.Generator, nodes: int, degree: float = 4.8) -> tuple[np.ndarray, np.ndarray]:
    """Edges and gold labels of a random mesh."""
    place = rng.random((nodes, 2))
    sides = Delaunay(place).simplices[:, [[0, 1], [1, 2], [0, 2]]].reshape(-1, 2)
    edges = np.unique(np.sort(sides, axis=1), axis=0).astype(np.int64)
    length = np.linalg.norm(place[edges[:, 0]] - place[edges[:, 1]], axis=1)
    kept = np.argsort(length * np.exp(0.3 * rng.standard_normal(len(edges))))[: int(nodes * degree / 2)]
    u, v = place.T
    gold = np.sin(7 * u + 1) * np.cos(6 * v) + 0.3 * np.sin(20 * u * v) > 0.1
    return edges[np.sort(kept)], gold.astype(np.float64)


def milliseconds(call: Callable[[], Any], repeats: int = 1) -> tuple[Any, float]:
    result, seconds = timed(call, repeats, time.thread_time)
    return result, 1e3 * seconds


def fista(structure: Cut, point: np.ndarray, tol: float, warm: np.ndarray | None) -> np.ndarray:
    z, value, gap = np.empty(structure.n_parts), np.empty(structure.n_examples), np.empty(structure.n_examples)
    status = np.empty(structure.n_examples, dtype=np.int8)
    flow = np.zeros(len(structure.edges)) if warm is None else warm.copy()
    _kernels.cut_project(structure._plan, point, tol, False, 200_000, flow, z, value, gap, status, 1)
    return z


def scipy_cut(structure: Cut, scores: np.ndarray) -> float:
    """Value of the maximum cut with scores rounded to multiples of the largest over 2^20."""
    nodes = structure.starts[1]
    unit = np.abs(scores).max() / 2**20
    rounded = np.round(scores / unit).astype(np.int64)
    node, edge = rounded[:nodes], -rounded[nodes:]
    j, k = structure.edges.T
    inner = np.arange(nodes)
    source, sink = np.full(nodes, nodes), np.full(nodes, nodes + 1)
    rows = np.concatenate([j, k, source, inner])
    columns = np.concatenate([k, j, inner, sink])
    data = np.concatenate([edge, edge, np.maximum(node, 0), np.maximum(-node, 0)])
    capacity = sp.csr_matrix((data.astype(np.int32), (rows, columns)), shape=(nodes + 2, nodes + 2))
    return float(np.maximum(node, 0).sum() - maximum_flow(capacity, nodes, nodes + 1).flow_value) * unit


def run(nodes: int, iterations: int, tol: float, seed: int, yardstick_every: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    edges, gold_labels = mesh(rng, nodes)
    structure = Cut([nodes], edges, [0, len(edges)])
    x = (2 * gold_labels[:, None] - 1) * np.linspace(0.1, 0.6, 6) + rng.standard_normal((nodes, 6))
    x = np.hstack([x, np.ones((nodes, 1))])
    y = np.hstack([0.2 + 0.3 * np.abs(rng.standard_normal((len(edges), 3))), np.ones((len(edges), 1))])
    radius, split = 2.0, x.shape[1]
    gold = structure.encode([gold_labels]).dense()
    cost = np.concatenate([1 - 2 * gold_labels, np.zeros(len(edges))])

    def scores(w: np.ndarray) -> np.ndarray:
        return np.concatenate([x @ w[:split], -(y @ w[split:])])

    def gather(z: np.ndarray) -> np.ndarray:
        return np.concatenate([x.T @ z[:nodes], -(y.T @ z[nodes:])])

    def onto_ball(w: np.ndarray) -> np.ndarray:
        w = np.concatenate([w[:split], np.maximum(w[split:], 0.0)])
        return w / max(1.0, float(np.linalg.norm(w)) / radius)

    rows: list[dict[str, float]] = []

    def project(point: np.ndarray, warm: np.ndarray | None, iteration: int) -> Any:
        points, spent = milliseconds(lambda: structure.project(point, tol=tol, warm=warm))
        row = {"iteration": iteration, "warm_ms": spent, "status": int(points.status[0])}
        row["fractional_nodes"] = float(((points.z[:nodes] > 0) & (points.z[:nodes] < 1)).mean())
        if iteration % yardstick_every == yardstick_every - 1:
            cold, row["cold_ms"] = milliseconds(lambda: structure.project(point, tol=tol))
            plain, row["fista_warm_ms"] = milliseconds(lambda: fista(structure, point, tol, warm))
            _, row["fista_cold_ms"] = milliseconds(lambda: fista(structure, point, tol, None))
            row["difference"] = float(max(np.abs(plain - points.z).max(), np.abs(cold.z - points.z).max()))
        rows.append(row)
        return points

    _, plan_ms = milliseconds(lambda: structure._plan)
    w, z, beta = np.zeros(split + y.shape[1]), gold.copy(), 0.02
    ahead = after = None
    for iteration in range(iterations):
        while True:
            w_p = onto_ball(w - beta * (gather(z) - gather(gold)))
            p = project(z + beta * (scores(w) + cost), ahead, iteration)
            moved = np.sqrt(((w - w_p) ** 2).sum() + ((z - p.z) ** 2).sum())
            turned = np.sqrt(((gather(z - p.z)) ** 2).sum() + (scores(w - w_p) ** 2).sum())
            ratio = beta * turned / max(moved, 1e-300)
            if ratio <= 0.9:
                break
            beta *= 2 / 3 * min(1.0, 1 / ratio)
        c = project(z + beta * (scores(w_p) + cost), after if after is not None else p.warm, iteration)
        w, z, ahead, after = onto_ball(w - beta * (gather(p.z) - gather(gold))), c.z, p.warm, c.warm
        beta *= 1.3 if ratio < 0.6 else 1.0

    def mean(name: str, chosen: list[dict[str, float]]) -> float:
        values = [row[name] for row in chosen if name in row]
        return round(float(np.mean(values)), 3) if values else float("nan")

    settled = [row for row in rows if row["iteration"] >= iterations // 3]
    cut_scores = scores(w) + cost
    best, cold_cut = milliseconds(lambda: structure.argmax(cut_scores), 5)
    near = cut_scores + 0.01 * np.concatenate([rng.standard_normal(nodes), np.zeros(len(edges))])
    _, warm_cut = milliseconds(lambda: structure.argmax(near, warm=best.warm), 5)
    scipy_value, scipy_ms = milliseconds(lambda: scipy_cut(structure, cut_scores), 3)
    return {
        "nodes": nodes,
        "edges": len(edges),
        "tol": tol,
        "projections": len(rows),
        "inexact": sum(row["status"] != 0 for row in rows),
        "plan_ms": round(plan_ms, 3),
        "all_warm_ms": mean("warm_ms", rows),
        "settled": {
            "iterations": f"{iterations // 3}..{iterations - 1}",
            **{k: mean(k, settled) for k in ("warm_ms", "cold_ms", "fista_warm_ms", "fista_cold_ms")},
            "largest_warm_ms": round(max(row["warm_ms"] for row in settled), 3),
            "fractional_nodes": mean("fractional_nodes", settled),
            "largest_difference": max(row.get("difference", 0.0) for row in settled),
        },
        "argmax": {
            "cold_ms": round(cold_cut, 3),
            "warm_ms": round(warm_cut, 3),
            "scipy_ms": round(scipy_ms, 3),
            "value": float(best.value[0]),
            "scipy_value": scipy_value,
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=7400)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--yardstick-every", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(run(**vars(options)), indent=2))


if __name__ == "__main__":
    main()
