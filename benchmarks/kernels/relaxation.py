"""Relaxed maxima and projections on grids of growing size, against general solvers. Prints JSON.

Every grid is solved twice in the same run: by the library's own solver alone (message passing, then proximal steps) and
by HiGHS on the same linear program; and one point is projected by ``project`` and by Clarabel. Node scores are normal,
pair scores normal with the given strength (for associative networks their absolute values): at 0.5 most relaxations of
general graphs are nearly integral, at 1.0 many nodes are fractional. Times are CPU time of one thread.

``--training N`` instead runs ``N`` iterations of extragradient on 15 grids of the first of ``--sides`` and reports the
time of the projections and maxima: warm starts, slowly moving points and the tolerances of training.

    python -m benchmarks.kernels.relaxation [--sides 10 20 30] [--labels 3] [--strength 0.5] [--seed 0] ...
    python -m benchmarks.kernels.relaxation --training 100 --sides 12
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.timing import timed
from benchmarks.workloads import grid_edges
from maxmargin import threads
from maxmargin.features import Stacked, TiedRows
from maxmargin.losses import Hamming
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.solvers import Extragradient, Stop
from maxmargin.solvers import solve as solve_problem
from maxmargin.structures import Associative, PairwiseGraph
from maxmargin.structures.networks import network
from tests.oracles import reference


def solve(structure: network.Network, scores: np.ndarray, *, highs: bool) -> tuple[Any, float]:
    """The maximum and the seconds it took, by HiGHS alone or by the library's own solver alone."""
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
    edges = grid_edges(side, side)
    structure = kind([side * side], edges, [0, len(edges)], args.labels)
    scores = rng.normal(size=structure.n_parts)
    scores[structure.starts[1] :] *= args.strength
    if kind is Associative:
        scores[structure.starts[1] :] = np.abs(scores[structure.starts[1] :])
    structure.argmax(np.zeros(structure.n_parts))  # builds the kernel's graph
    points, own = solve(structure, scores, highs=False)
    (z, _), highs = solve(structure, scores, highs=True)
    nodes = points.z[structure.variable_parts].reshape(-1, args.labels)
    labeling = structure.predict(scores)
    gold = labeling.z
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
        "bound_minus_score": float(points.value[0] - scores @ points.z),
        "bound_minus_highs": float(points.value[0] - scores @ z),
        "fractional_nodes": float(((nodes > 1e-6) & (nodes < 1 - 1e-6)).any(axis=1).mean()),
        "bound_minus_labeling": float(points.value[0] - labeling.value[0]),
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


def training_problem(side: int, kind: type[network.Network], args: argparse.Namespace) -> Problem:
    """15 grids with random features; gold labels from hidden weights and noise."""
    rng = np.random.default_rng(args.seed)
    edges, n, k = grid_edges(side, side), 15, args.labels
    node_offsets, edge_offsets = np.arange(n + 1) * side**2, np.arange(n + 1) * len(edges)
    structure = kind(np.full(n, side**2), np.tile(edges, (n, 1)), edge_offsets, k)
    nodes = TiedRows(rng.normal(size=(node_offsets[-1], 5)), node_offsets, k)
    rows = rng.normal(size=(edge_offsets[-1], 2))
    if kind is PairwiseGraph:
        features = Stacked(nodes, TiedRows(rows, edge_offsets, k * k, constant=True))
    else:
        features = Stacked(nodes, TiedRows(np.abs(rows), edge_offsets, k))
    hidden = rng.normal(size=features.n_weights)
    hidden[5 * k :] *= args.strength
    mask = None
    if kind is Associative:
        mask = np.arange(features.n_weights) >= 5 * k
        hidden[mask] = np.abs(hidden[mask])
    noisy = features.scores(hidden)
    noisy[structure.variable_parts] += rng.normal(size=structure.starts[1])
    return Problem.build(structure, features, structure.predict(noisy).z, Hamming(), L2(C=0.1, nonnegative=mask))


def train(side: int, kind: type[network.Network], args: argparse.Namespace) -> dict[str, Any]:
    problem = training_problem(side, kind, args)
    spent = {"project": 0.0, "argmax_within": 0.0}
    inexact = 0

    def counted(name: str) -> Callable[..., Any]:
        method = getattr(problem.structure, name)

        def call(*positional: Any, **named: Any) -> Any:
            nonlocal inexact
            answer, seconds = timed(lambda: method(*positional, **named))
            spent[name] += seconds
            inexact += int((answer.status != 0).sum())
            return answer

        return call

    for name in spent:
        setattr(problem.structure, name, counted(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stop = Stop(tol=1e-8, max_iter=args.training)
        solution, total = timed(lambda: solve_problem(problem, Extragradient(), stop=stop))
    return {
        "structure": problem.structure.name,
        "side": side,
        "labels": args.labels,
        "examples": problem.structure.n_examples,
        "iterations": args.training,
        "seconds": round(total, 3),
        "projection_seconds": round(spent["project"], 3),
        "argmax_seconds": round(spent["argmax_within"], 3),
        "inexact": inexact,
        "relative_gap": float(solution.certificate.relative_gap),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", type=int, nargs="+", default=[10, 20, 30])
    parser.add_argument("--labels", type=int, default=3)
    parser.add_argument("--strength", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--clarabel-parts", type=int, default=30_000)
    parser.add_argument("--training", type=int, default=0)
    args = parser.parse_args()
    with threads(1):
        if args.training:
            rows = [train(args.sides[0], kind, args) for kind in (PairwiseGraph, Associative)]
            print(json.dumps({"strength": args.strength, "seed": args.seed, "training": rows}, indent=2))
            return
        rows = [run(side, kind, args) for side in args.sides for kind in (PairwiseGraph, Associative)]
    print(json.dumps({"strength": args.strength, "seed": args.seed, "grids": rows}, indent=2))


if __name__ == "__main__":
    main()
