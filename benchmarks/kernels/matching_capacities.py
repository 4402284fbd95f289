"""Time matchings with capacities against SciPy's linear assignment; prints one JSON object.

Workload: word alignments with fertility. Each of 12 source and 14 target words has capacity 2 and an edge to a private
dummy node on the other side, which it gives up for a second link: 26 x 26 nodes, 168 + 26 edges. Most scores are
negative; the dummy edges are positive, and so are about 15 links (``sparse``) or three times as many, as in
loss-augmented inference (``crowded``). The other cases are complete graphs: one link per word, capacity 2 with mixed
scores, and capacity 2 with mostly positive scores.

The peer is ``scipy.optimize.linear_sum_assignment`` in a Python loop over matrices that repeat each node as often as
its capacity. It may use an edge between two nodes of capacity 2 twice, so it solves a relaxation; ``gain_of_peer`` is
the relative excess of its values (0 for one link per word). ``ten_best`` is ``k_best`` with k = 10. All times are the
best of several repeats, in CPU time of one thread.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.timing import timed
from maxmargin import threads
from maxmargin.structures.matchings.matching import Matching

SOURCE, TARGET = 12, 14


def fertile(n: int, positive: float, seed: int) -> tuple[Matching, np.ndarray]:
    """A batch of words of capacity 2 with private dummy nodes, and scores; about ``positive`` links score above 0."""
    rng = np.random.default_rng(seed)
    nodes = SOURCE + TARGET
    words = np.argwhere(np.ones((SOURCE, TARGET)))
    own_source = [(j, TARGET + j) for j in range(SOURCE)]
    own_target = [(SOURCE + k, k) for k in range(TARGET)]
    edges = np.array(sorted([*map(tuple, words.tolist()), *own_source, *own_target]))
    private = (edges[:, 0] >= SOURCE) | (edges[:, 1] >= TARGET)
    structure = Matching(
        np.full((n, 2), nodes),
        np.tile(edges, (n, 1)),
        np.arange(n + 1) * len(edges),
        left_capacity=np.tile(np.repeat([2, 1], [SOURCE, TARGET]), n),
        right_capacity=np.tile(np.repeat([2, 1], [TARGET, SOURCE]), n),
    )
    scores = -1.0 - np.abs(rng.normal(size=(n, len(edges))))
    gold = np.zeros((n, SOURCE, TARGET), dtype=bool)
    for one in gold:  # close to the diagonal
        links = min(SOURCE, TARGET)
        one[np.arange(links), np.clip(np.arange(links) + rng.integers(-1, 3, links), 0, TARGET - 1)] = True
    likely = np.zeros((n, len(edges)), dtype=bool)
    likely[:, ~private] = gold.reshape(n, -1)
    likely |= (rng.random(likely.shape) < max(positive - SOURCE, 0) / (SOURCE * TARGET)) & ~private
    scores = np.where(likely, np.abs(rng.normal(1.0, 0.7, scores.shape)), scores)
    scores[:, private] = np.abs(rng.normal(0.6, 0.2, (n, int(private.sum()))))
    return structure, scores.ravel()


def full(n: int, capacity: int, mean: float, seed: int) -> tuple[Matching, np.ndarray]:
    """A batch of complete graphs, and scores."""
    structure = Matching.dense(np.full((n, 2), (SOURCE, TARGET)), left_capacity=capacity, right_capacity=capacity)
    return structure, np.random.default_rng(seed).normal(mean, 1.0, structure.n_parts)


def expanded(structure: Matching, scores: np.ndarray) -> list[np.ndarray]:
    """For each example a matrix with a row or column per unit of capacity; negative scores are set to 0."""
    matrices = []
    offsets, left, right = structure.blocks[0].offsets, structure._left_start, structure._right_start
    for i, (rows, columns) in enumerate(structure.shapes):
        matrix = np.zeros((rows, columns))
        part = slice(offsets[i], offsets[i + 1])
        matrix[tuple(structure.edges[part].T)] = np.maximum(scores[part], 0.0)
        matrix = np.repeat(matrix, structure.left_capacity[left[i] : left[i + 1]], axis=0)
        matrices.append(np.repeat(matrix, structure.right_capacity[right[i] : right[i + 1]], axis=1))
    return matrices


def measure(structure: Matching, scores: np.ndarray, repeats: int) -> dict[str, Any]:
    n = structure.n_examples
    matrices = expanded(structure, scores)

    def peer() -> None:
        for matrix in matrices:
            linear_sum_assignment(matrix, maximize=True)

    calls: dict[str, Callable[[], Any]] = {
        "peer": peer,
        "argmax": lambda: structure.argmax(scores),
        "margins": lambda: structure.margins(scores),
        "ten_best": lambda: structure.k_best(scores, 10),
    }
    times = {name: timed(call, repeats)[1] for name, call in calls.items()}
    bound = np.array([matrix[linear_sum_assignment(matrix, maximize=True)].sum() for matrix in matrices])
    values = structure.argmax(scores).value
    return {
        "positive_edges": round(float((scores > 0).sum()) / n, 1),
        "taken": round(float(structure.argmax(scores).z.sum()) / n, 1),
        "gain_of_peer": round(float((bound - values).sum() / values.sum()), 6),
        "microseconds": {name: round(1e6 * value / n, 3) for name, value in times.items()},
        "over_peer": {name: round(value / times["peer"], 3) for name, value in times.items() if name != "peer"},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    settings = parser.parse_args()
    n = settings.examples
    cases = {
        "sparse": fertile(n, 15.0, 0),
        "crowded": fertile(n, 45.0, 1),
        "one to one": full(n, 1, -0.5, 2),
        "capacity 2": full(n, 2, -0.5, 3),
        "capacity 2, positive": full(n, 2, 2.0, 4),
    }
    with threads(1):
        print(json.dumps({name: measure(*case, settings.repeats) for name, case in cases.items()}, indent=1))


if __name__ == "__main__":
    main()
