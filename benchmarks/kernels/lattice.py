"""Time best paths, marginals and projections of lattices against SciPy, networkx and Clarabel; prints one JSON object.

Workload: long narrow lattices as speech recognizers and translation systems make them: every node has edges from the
few nodes before it, as many as its degree, with normal scores. Best paths and marginals are in nanoseconds an edge:

    pass      numpy: gather the scores by heads and take the largest of each node, a lower limit without the recursion
    scipy     scipy.sparse.csgraph.dijkstra, one lattice after the other, on costs >= 0 that the topological order gives
    networkx  dag_longest_path on prepared graphs, of the first lattice

Projections are in microseconds a lattice, of two kinds of points: ``step``, the last of an extragradient-like run,
``z + 0.3 * scores``, whose projection has few paths; and ``spread``, ``0.1 * scores``, whose projection has many.
``warm`` starts from the potentials of a point nearby, ``hull`` is the active set of best paths that structures without
a projection of their own have, and the peer is Clarabel, an interior-point method, to its default tolerance; these two
on the first lattice. All times are CPU times with one thread, the best of several repeats.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from typing import Any

import clarabel
import networkx as nx
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from benchmarks.timing import significant, timed
from maxmargin import threads
from maxmargin.structures.fallbacks import generic
from maxmargin.structures.lattice import Lattice


def workload(n: int, n_nodes: int, degree: int, seed: int = 0) -> tuple[Lattice, np.ndarray]:
    rng = np.random.default_rng(seed)
    head = np.repeat(np.arange(1, n_nodes), degree)
    edges = []
    for _ in range(n):
        tail = np.maximum(head - rng.integers(1, 2 * degree, size=len(head)), 0)
        tail[::degree] = head[::degree] - 1
        edges.append(np.stack([tail, head], axis=1))
    offsets = np.arange(n + 1) * len(head)
    words = rng.integers(-1, 50, size=offsets[-1])
    return Lattice([n_nodes] * n, np.concatenate(edges), offsets, words=words), rng.normal(size=offsets[-1])


def searches(structure: Lattice, scores: np.ndarray, repeats: int) -> dict[str, Any]:
    n = structure.n_examples
    graphs, net = [], nx.DiGraph()
    for first, last in pairwise(structure.blocks[0].offsets.tolist()):
        edges, own = structure.edges[first:last], scores[first:last]
        cost = np.abs(own).max() * (edges[:, 1] - edges[:, 0]) - own
        order = np.lexsort((cost, edges[:, 1], edges[:, 0]))  # of parallel edges the cheapest counts
        kept = order[np.r_[True, (np.diff(edges[order], axis=0) != 0).any(axis=1)]]
        shape = (int(structure.n_nodes[0]),) * 2
        graphs.append(sp.csr_matrix((cost[kept] + 1e-300, (edges[kept, 0], edges[kept, 1])), shape=shape))
        if first == 0:
            net.add_weighted_edges_from(zip(*edges[kept].T.tolist(), own[kept].tolist(), strict=True))
    heads = structure.edges[:, 1] + structure._example * structure.n_nodes[0]
    order = np.argsort(heads, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(heads[order]) != 0])
    calls = {
        "pass": lambda: np.maximum.reduceat(scores[order], starts),
        "argmax": lambda: structure.argmax(scores),
        "marginals": lambda: structure.marginals(scores),
        "sorting": lambda: structure.select(np.arange(n))._batch,
        "scipy": lambda: [dijkstra(graph, indices=0, return_predecessors=True) for graph in graphs],
        "networkx": lambda: nx.dag_longest_path(net),
    }
    times = {name: timed(call, repeats)[1] for name, call in calls.items()}
    times["networkx"] *= n
    hundred = {"paths": lambda: structure.k_best(scores, 100), "words": lambda: structure.k_best_words(scores, 100)}
    return {
        "nanoseconds_an_edge": {name: significant(1e9 * t / structure.n_parts, 3) for name, t in times.items()},
        "argmax_over_pass": significant(times["argmax"] / times["pass"]),
        "milliseconds_of_100_best": {
            name: significant(1e3 * timed(call, 2)[1] / n, 3) for name, call in hundred.items()
        },
    }


def projections(structure: Lattice, scores: np.ndarray, repeats: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    z, warm = structure.argmax(scores).z, None
    for _ in range(12):
        point = z + 0.3 * (scores + 0.02 * rng.normal(size=len(scores)))
        before, found = warm, structure.project(point, warm=warm)
        z, warm = found.z, found.warm
    near = structure.project(0.1 * (scores + 0.02 * rng.normal(size=len(scores)))).warm
    return {
        "step": projection(structure, point, before, repeats),
        "spread": projection(structure, 0.1 * scores, near, repeats),
    }


def projection(structure: Lattice, point: np.ndarray, warm: Any, repeats: int) -> dict[str, Any]:
    n, first = structure.n_examples, structure.select([0])
    own = point[structure.parts_of([0])]
    z = structure.project(point).z
    slow, hull = timed(lambda: generic.project(first, own))
    peer, interior = timed(lambda: clarabel_projection(first, own), 3)
    times = {
        "cold": timed(lambda: structure.project(point), repeats)[1] / n,
        "warm": timed(lambda: structure.project(point, warm=warm), repeats)[1] / n,
        "hull": hull,
        "clarabel": interior,
    }
    return {
        "microseconds_a_lattice": {name: significant(1e6 * seconds, 3) for name, seconds in times.items()},
        "largest_difference": {
            "hull": significant(float(np.abs(slow.z - z[: len(own)]).max())),
            "clarabel": significant(float(np.abs(peer - z[: len(own)]).max())),
        },
        "positive_edges": significant(float((z > 0).mean())),
    }


def clarabel_projection(structure: Lattice, point: np.ndarray) -> np.ndarray:
    polytope = structure.polytope()
    n = polytope.lift.shape[1]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    rows = sp.csc_matrix(sp.vstack([polytope.eq, -sp.eye_array(n)]))
    rhs = np.concatenate([polytope.eq_rhs, np.zeros(n)])
    cones = [clarabel.ZeroConeT(polytope.eq.shape[0]), clarabel.NonnegativeConeT(n)]
    linear = -(polytope.lift.T @ point)
    solver = clarabel.DefaultSolver(sp.csc_matrix(sp.eye_array(n)), linear, rows, rhs, cones, settings)
    return np.asarray(polytope.lift @ np.asarray(solver.solve().x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="a tenth of the lattices")
    settings = parser.parse_args()
    cases = []
    for n, n_nodes, degree in ((2000, 30, 3), (500, 100, 4), (100, 400, 5)):
        structure, scores = workload(n // (10 if settings.quick else 1), n_nodes, degree)
        with threads(1):
            cases.append(
                {
                    "lattices": structure.n_examples,
                    "nodes": n_nodes,
                    "edges": int(structure.sizes[0]),
                    **searches(structure, scores, settings.repeats),
                    "projection": projections(structure, scores, settings.repeats),
                }
            )
    print(json.dumps({"cases": cases}, indent=1))


if __name__ == "__main__":
    main()
