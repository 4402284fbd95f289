"""Time best paths, marginals and projections of lattices against SciPy, networkx and Clarabel; prints one JSON object.

Workload: long narrow lattices as speech recognizers and translation systems make them: every node has edges from the
few nodes before it, as many as its degree, with normal scores. Best paths and marginals are in nanoseconds an edge:

    pass      numpy: gather the scores by heads and take the largest of each node, a lower limit without the recursion
    scipy     scipy.sparse.csgraph.dijkstra, one lattice after the other, on costs >= 0 that the topological order gives
    networkx  dag_longest_path on prepared graphs, of the first lattice

Projections are in microseconds a lattice, of ``point = z + 0.3 * scores`` as in an extragradient-like run: ``cold``,
``warm`` from the potentials of the point before, and ``hull``, the active set of best paths that structures without a
projection of their own have. The peer is Clarabel, an interior-point method, to its default tolerance, on the first
lattices. All times are the best of several repeats, with one thread.
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
from timing import best_of, significant, timed

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
    structure = Lattice([n_nodes] * n, np.concatenate(edges), np.arange(n + 1) * len(head))
    return structure, rng.normal(size=structure.n_parts)


def searches(structure: Lattice, scores: np.ndarray, repeats: int) -> dict[str, Any]:
    n = structure.n_examples
    graphs, nets = [], []
    for first, last in pairwise(structure.blocks[0].offsets.tolist()):
        edges, own = structure.edges[first:last], scores[first:last]
        cost = np.abs(own).max() * (edges[:, 1] - edges[:, 0]) - own
        order = np.lexsort((cost, edges[:, 1], edges[:, 0]))  # of parallel edges the cheapest counts
        kept = order[np.r_[True, (np.diff(edges[order], axis=0) != 0).any(axis=1)]]
        shape = (int(structure.n_nodes[0]),) * 2
        graphs.append(sp.csr_matrix((cost[kept] + 1e-300, (edges[kept, 0], edges[kept, 1])), shape=shape))
        if not nets:
            net = nx.DiGraph()
            net.add_weighted_edges_from(zip(*edges[kept].T.tolist(), own[kept].tolist(), strict=True))
            nets.append(net)
    order = np.argsort(structure._ends[1], kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(structure._ends[1][order]) != 0])
    words = Lattice(structure.n_nodes, structure.edges, structure.blocks[0].offsets, words=np.arange(len(scores)) % 50)
    times = best_of(
        repeats,
        {
            "pass": lambda: np.maximum.reduceat(scores[order], starts),
            "argmax": lambda: structure.argmax(scores),
            "marginals": lambda: structure.marginals(scores),
            "sorting": lambda: structure.select(np.arange(n))._batch,
            "scipy": lambda: [dijkstra(graph, indices=0, return_predecessors=True) for graph in graphs],
        },
        warm_up=True,
    )
    _, times["networkx"] = timed(lambda: nx.dag_longest_path(nets[0]))
    times["networkx"] *= n
    ranks = best_of(
        2, {"k_best": lambda: structure.k_best(scores, 100), "words": lambda: words.k_best_words(scores, 100)}
    )
    return {
        "nanoseconds_an_edge": {name: significant(1e9 * t / structure.n_parts, 3) for name, t in times.items()},
        "argmax_over_pass": significant(times["argmax"] / times["pass"]),
        "milliseconds_of_100_best": {name: significant(1e3 * t / n, 3) for name, t in ranks.items()},
    }


def projections(structure: Lattice, scores: np.ndarray, repeats: int) -> dict[str, Any]:
    n, rng = structure.n_examples, np.random.default_rng(1)
    z, warm, point = structure.argmax(scores).z, None, scores
    for _ in range(12):
        before, point = point, z + 0.3 * (scores + 0.1 * rng.normal(size=len(scores)))
        found = structure.project(point, warm=warm)
        z, warm = found.z, found.warm
    warm = structure.project(before).warm
    times = best_of(
        repeats,
        {"cold": lambda: structure.project(point), "warm": lambda: structure.project(point, warm=warm)},
        warm_up=True,
    )
    few = structure.select(np.arange(min(n, 3)))
    own = point[few.parts_of(np.arange(few.n_examples))]
    slow, seconds = timed(lambda: generic.project(few, own))
    peer, interior = timed(
        lambda: [clarabel_projection(few.select([i]), own[few.parts_of([i])]) for i in range(len(few.sizes))]
    )
    fast = few.project(own).z
    return {
        "microseconds_a_lattice": {name: significant(1e6 * t / n, 3) for name, t in times.items()}
        | {
            "hull": significant(1e6 * seconds / few.n_examples, 3),
            "clarabel": significant(1e6 * interior / few.n_examples, 3),
        },
        "largest_difference": {
            "hull": significant(float(np.abs(slow.z - fast).max())),
            "clarabel": significant(float(np.abs(np.concatenate(peer) - fast).max())),
        },
        "positive_edges": significant(float((fast > 0).mean())),
    }


def clarabel_projection(structure: Lattice, point: np.ndarray) -> np.ndarray:
    polytope = structure.polytope()
    n = polytope.lift.shape[1]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    rows = sp.csc_matrix(sp.vstack([polytope.eq, -sp.eye_array(n)]))
    cones = [clarabel.ZeroConeT(polytope.eq.shape[0]), clarabel.NonnegativeConeT(n)]
    solver = clarabel.DefaultSolver(
        sp.csc_matrix(sp.eye_array(n)),
        -(polytope.lift.T @ point),
        rows,
        np.r_[polytope.eq_rhs, np.zeros(n)],
        cones,
        settings,
    )
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
                    **projections(structure, scores, settings.repeats),
                }
            )
    print(json.dumps({"cases": cases}, indent=1))


if __name__ == "__main__":
    main()
