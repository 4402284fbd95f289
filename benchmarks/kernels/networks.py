"""Training on associative networks with several labels, and its maxima against HiGHS. Prints one JSON object.

Images of smooth label maps (the largest of smoothed noise fields), nodes with the mean of their label and normal noise
as features, edges to the four neighbors with a constant and the likeness of the ends as features. One row per side:

- ``train_seconds``: ``AssociativeSVM`` with its defaults to a certified relative gap of ``--tol``;
- ``exact_seconds``: the same solver with exact maxima in every pass, until ``--limit`` seconds are used up;
- one image at the weights found, with loss-augmented scores: its maximum to the accuracy of the last rounds
  (``within_seconds``), exactly (``maximum_seconds``), and by HiGHS, dual simplex or interior point, on the same linear
  program (``highs_seconds``);
- ``predict_seconds`` of all images.

Times are CPU time of one thread. ``--noise`` says how hard it is: with more of it more nodes are fractional.

    python -m benchmarks.kernels.networks [--sides 32 64] [--images 4] [--labels 4] [--noise 2] [--tol 0.01] ...
"""

from __future__ import annotations

import argparse
import json
import warnings
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

import maxmargin as mm
from benchmarks.timing import Budget, timed
from benchmarks.workloads import grid_edges
from maxmargin import threads
from maxmargin.losses import Hamming
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.solvers import SimplicialDecomposition
from maxmargin.structures.networks import network

N_FEATURES = 6


def images(side: int, args: argparse.Namespace) -> tuple[list[mm.Graph], list[np.ndarray]]:
    """Grids and their labels."""
    rng, edges = np.random.default_rng(args.seed), grid_edges(side, side)
    means = rng.normal(size=(args.labels, N_FEATURES))
    X, y = [], []
    for _ in range(args.images):
        fields = rng.normal(size=(args.labels, side, side))
        labels = gaussian_filter(fields, (0, side / 10, side / 10), mode="reflect").argmax(axis=0).ravel()
        nodes = means[labels] + args.noise * rng.normal(size=(side * side, N_FEATURES))
        alike = np.exp(-np.linalg.norm(nodes[edges[:, 0]] - nodes[edges[:, 1]], axis=1))
        with_one = np.column_stack([nodes, np.ones(len(nodes))])
        X.append(mm.Graph(with_one, edges, np.column_stack([np.ones(len(edges)), alike])))
        y.append(labels)
    return X, y


def fit(X: list[Any], y: list[Any], tol: float, **settings: Any) -> tuple[mm.AssociativeSVM, dict[str, Any]]:
    """A trained estimator, and how it got there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, seconds = timed(lambda: mm.AssociativeSVM(tol=tol, n_jobs=1, **settings).fit(X, y))
    solution = model.solution_
    gap = round(solution.certificate.relative_gap, 5)
    return model, {"seconds": round(seconds, 2), "passes": solution.counters.argmax, "relative_gap": gap}


def row(side: int, args: argparse.Namespace) -> dict[str, Any]:
    X, y = images(side, args)
    model, trained = fit(X, y, args.tol)
    exact = fit(X, y, args.tol, solver=SimplicialDecomposition(inexact=0.0), callbacks=[Budget(args.limit)])[1]
    encoder = model.model_.encoder
    batch = encoder.transform(X[:1])
    gold = encoder.encode(batch, y[:1])
    problem = Problem.build(batch.structure, batch.features, gold, Hamming(), L2(C=1.0))
    structure, scores = batch.structure, problem.augmented(model.solution_.weights)
    certificate = model.solution_.certificate
    allowed = 0.5 * args.tol * certificate.primal / len(X)
    within, within_seconds = timed(lambda: structure.argmax_within(scores, allowed))
    best, seconds = timed(lambda: structure.argmax(scores))
    method = "simplex" if structure.n_parts <= network.HIGHS_PARTS else "ipm"
    solved, highs = timed(lambda: network._solve(structure, scores, method))
    assert solved is not None
    nodes = best.z[structure.variable_parts].reshape(-1, args.labels)
    predicted, predict_seconds = timed(lambda: model.predict(X))
    return {
        "side": side,
        "nodes": side * side,
        "train_seconds": trained["seconds"],
        "passes": trained["passes"],
        "relative_gap": trained["relative_gap"],
        "exact_seconds": exact["seconds"],
        "exact_passes": exact["passes"],
        "exact_relative_gap": exact["relative_gap"],
        "within_seconds": round(within_seconds, 4),
        "within_gap": float(within.value.sum() - scores @ within.z),
        "within_allowed": allowed,
        "maximum_seconds": round(seconds, 4),
        "highs_seconds": round(highs, 4),
        "highs_minus_bound": float(scores @ solved[0] - best.value.sum()),
        "fractional_nodes": float((nodes.max(axis=1) < 1 - 1e-6).mean()),
        "predict_seconds": round(predict_seconds, 4),
        "accuracy": float(np.mean([np.mean(np.asarray(a) == b) for a, b in zip(predicted, y, strict=True)])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--labels", type=int, default=4)
    parser.add_argument("--noise", type=float, default=2.0)
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with threads(1):
        fit(*images(4, args), 0.1)  # imports
        rows = [row(side, args) for side in args.sides]
    print(json.dumps({**vars(args), "networks": rows}, indent=2))


if __name__ == "__main__":
    main()
