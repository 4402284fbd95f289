"""The 2005/2006 papers' segmentation workload: 600 iterations on five scans with 37,000 nodes and 88,000 edges.

Synthetic surface scans of the papers' shape: points on a folded surface joined to near neighbors (mean degree 4.8),
45 node features and one constant edge feature, an object that covers a third of the points. The papers needed about
4 hours for 600 iterations on a 2.8 GHz Pentium 4.

For comparison, the same number of loss-augmented argmax passes (max-flow from scratch) is timed in the same run: the
cost of a perceptron with as many iterations.

    python -m benchmarks.segmentation.scaling [--iterations 600] [--jobs 2] [--solver extragradient|dual]
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

import maxmargin as mm
from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.losses import Hamming
from maxmargin.regions import L2
from maxmargin.structures.cuts.cut import Cut

PAPER_SECONDS = 4 * 3600


def scan(rng: np.random.Generator, n_nodes: int, n_edges: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a bumpy surface and the ``n_edges`` shortest of their nearest-neighbor links."""
    flat = rng.random((n_nodes, 2))
    bumps = 0.15 * np.sin(9 * flat[:, 0]) * np.cos(7 * flat[:, 1])
    points = np.column_stack([flat, bumps])
    distance, neighbor = cKDTree(points).query(points, k=7)
    i = np.repeat(np.arange(n_nodes), 6)
    j = neighbor[:, 1:].ravel()
    pairs = np.sort(np.stack([i, j], axis=1), axis=1)
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    shortest = np.argsort(distance[:, 1:].ravel()[first], kind="stable")[:n_edges]
    return points, pairs[np.sort(shortest)]


def workload(n_graphs: int = 5, n_nodes: int = 7400, n_edges: int = 17600, d: int = 45, seed: int = 0) -> mm.Problem:
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=d) / np.sqrt(d)
    rows, edges, labels = [], [], []
    for _ in range(n_graphs):
        points, pairs = scan(rng, n_nodes, n_edges)
        centers = rng.random((6, 2))
        distance = np.linalg.norm(points[:, None, :2] - centers, axis=2).min(axis=1)
        label = (distance < np.quantile(distance, 0.33)).astype(np.int64)
        features = rng.normal(size=(n_nodes, d)) + np.outer(2 * label - 1, hidden)
        features[:, -1] = 1.0
        rows.append(features)
        edges.append(pairs)
        labels.append(label)
    edge_offsets = np.concatenate([[0], np.cumsum([len(pairs) for pairs in edges])])
    structure = Cut(np.full(n_graphs, n_nodes), np.concatenate(edges), edge_offsets)
    features = Stacked(
        PartFeatures(np.concatenate(rows), structure.blocks[0].offsets),
        PartFeatures(np.ones((int(edge_offsets[-1]), 1)), edge_offsets, sign=-1.0),
    )
    region = L2(nonnegative=np.arange(d + 1) >= d)
    return mm.Problem.build(structure, features, structure.encode(labels), Hamming(), region)


def measure(problem: mm.Problem, solver: mm.solvers.Solver, iterations: int, jobs: int) -> dict[str, Any]:
    began, cpu = time.perf_counter(), time.process_time()
    solution = mm.solve(problem, solver, stop=mm.Stop(tol=0.0, max_iter=iterations), n_jobs=jobs)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    with mm.threads(jobs):
        began = time.process_time()
        for _ in range(3):
            problem.hinge(solution.weights)
        argmax = (time.process_time() - began) / 3
    predicted = problem.structure.argmax(problem.features.scores(solution.weights)).z
    nodes = problem.structure.variable_parts
    return {
        "iterations": solution.counters.iterations,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "cpu_milliseconds_per_projection": round(1e3 * cpu / solution.counters.projections, 2),
        "paper_seconds": PAPER_SECONDS,
        "speedup_over_paper": round(PAPER_SECONDS / seconds, 1),
        "argmax_pass_cpu_milliseconds": round(1e3 * argmax, 2),
        "ratio_to_argmax_passes": round(cpu / (argmax * solution.counters.iterations), 2),
        "hinge_per_node_start": round(solution.history[0].primal / problem.structure.starts[1], 4),
        "hinge_per_node_end": round(solution.certificate.hinge / problem.structure.starts[1], 4),
        "training_error": round(float(np.mean(np.abs(predicted[nodes] - problem.gold[nodes]))), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=600)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--solver", choices=["extragradient", "dual", "both"], default="both")
    options = parser.parse_args()
    problem = workload()
    solvers = {"extragradient": mm.Extragradient(), "dual": mm.DualExtragradient()}
    runs = {
        name: measure(problem, solver, options.iterations, options.jobs)
        for name, solver in solvers.items()
        if options.solver in (name, "both")
    }
    size = {"graphs": problem.structure.n_examples, "nodes": problem.structure.starts[1]}
    size["edges"] = problem.structure.n_parts - size["nodes"]
    print(json.dumps({"jobs": options.jobs, **size, "runs": runs}, indent=1))


if __name__ == "__main__":
    main()
