"""Pairings: time of the best matching and of projections, and disulfide bonds; prints one JSON object.

    python -m benchmarks.structures.pairings [--data FOLDER] [--most 300]

Graphs are complete, with scores that are uniform, or fall with the distance of points in a square, or have triangles of
large scores, which only odd sets explain. rustworkx takes whole numbers only: it gets the scores times a million, and
all programs must agree to that. Microseconds of CPU time of a call, on one thread, the best of several repeats.

Disulfide bonds (2005, section 1): which of a protein's bonded cysteines are partners. Tested on the chains that stand
for a cluster (``rep``), trained on all chains of other clusters: five folds of clusters, four times. Shares of whole
patterns and of bonds that are right, by the number of bonds, against chance, pairing of the nearest, and independent
logistic links, whose logits are matched. C, ours and of the logistic links, is chosen by folds of the clusters that
are trained on.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.structures.projections import projections
from benchmarks.timing import significant, timed
from maxmargin.structures import Pairing

GRID = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Values of C to choose from."""

REPEATS, FOLDS = 4, 5
Chain = dict[str, Any]


def graphs(n: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Scores of all pairs of n nodes."""
    low, high = np.triu_indices(n, 1)
    scores = rng.random(n * (n - 1) // 2)
    if kind == "triangles":
        return scores + 5.0 * (low // 3 == high // 3)
    if kind == "points":
        points = rng.random((n, 2))
        return 2.0 - np.linalg.norm(points[low] - points[high], axis=1)
    return scores


def speed(most: int) -> dict[str, Any]:
    """Microseconds of one matching, ours and the peers'."""
    found: dict[str, Any] = {}
    rng = np.random.default_rng(0)
    for n, kind in itertools.product((10, 50, 100, 300), ("uniform", "points", "triangles")):
        if n > most:
            continue
        many, pairs = max(1, 20_000 // n**2), n * (n - 1) // 2
        structure = Pairing.dense(np.full(many, n))
        scores = np.concatenate([graphs(n, kind, rng) for _ in range(many)])
        calls: dict[str, Callable[[], Any]] = {"maxmargin": lambda s=structure, x=scores: s.argmax(x).value[0]}
        calls |= peers(n, structure.edges[:pairs].tolist(), scores[:pairs])
        values = [call() for call in calls.values()]
        assert np.ptp(values) <= 1e-6 * n, f"{n} nodes, {kind}: {dict(zip(calls, values, strict=True))}"
        with mm.threads(1):
            seconds = {name: timed(call, 3 if n >= 100 else 7)[1] for name, call in calls.items()}
        seconds["maxmargin"] /= many
        found[f"{n} nodes, {kind}"] = {name: significant(1e6 * value) for name, value in seconds.items()}
    return found


def peers(n: int, edges: list[list[int]], scores: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Calls of the peers that are installed."""
    calls: dict[str, Callable[[], Any]] = {}
    try:
        import networkx

        graph = networkx.Graph()
        graph.add_weighted_edges_from((j, k, s) for (j, k), s in zip(edges, scores.tolist(), strict=True))
        if n <= 100:
            calls["networkx"] = lambda: sum(graph.edges[pair]["weight"] for pair in networkx.max_weight_matching(graph))
    except ImportError:
        pass
    try:
        import rustworkx

        whole = rustworkx.PyGraph()
        whole.add_nodes_from(range(n))
        whole.add_edges_from([(j, k, round(1e6 * s)) for (j, k), s in zip(edges, scores.tolist(), strict=True)])
        calls["rustworkx"] = lambda: (
            1e-6 * sum(whole.get_edge_data(*pair) for pair in rustworkx.max_weight_matching(whole, weight_fn=int))
        )
    except ImportError:
        pass
    return calls


def chains(folder: Path) -> list[Chain]:
    """Bonded cysteines of every chain with two to six bonds: features of their pairs, and the bonds among them."""
    with open(folder / "disulfides" / "train.tsv") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if 2 <= int(row["n_bonds"]) <= 6]
    found = []
    for row in rows:
        bonds = np.array([[int(end) for end in pair.split("-")] for pair in row["bonds_seqidx1"].split(",")]) - 1
        place = np.sort(bonds.ravel())
        found.append(
            {
                "cluster": int(row["cluster"]),
                "stands": row["rep"] == "1",
                "place": place,
                "x": pair_features(len(row["sequence"]), place),
                "bonds": np.sort(np.searchsorted(place, bonds), axis=1),
            }
        )
    return found


def pair_features(length: int, place: np.ndarray) -> np.ndarray:
    """Features of all pairs of the cysteines at some places of a chain: distances along it and among the cysteines.

    Small chains full of cysteines interleave their bonds, long ones pair neighbors: so distances among the cysteines
    count once as they are and once times the logarithm of residues per cysteine.
    """
    n = len(place)
    gap = np.log(np.maximum(np.abs(place[:, None] - place), 1))
    spacing = np.log(length / n)
    steps = np.abs(np.arange(n)[:, None] - np.arange(n))
    order = [steps == step for step in range(1, 6)] + [steps % 2 == 1, np.abs(steps - n / 2) / n * 2, steps == n // 2]
    among = np.stack(order, axis=2).astype(np.float64)
    along = bumps(gap, np.log(2.0) * np.arange(9)), bumps(gap - spacing, np.arange(-3.0, 4.0))
    return np.concatenate([among, (spacing - 3.0) * among, *along], axis=2)


def bumps(values: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Weights of the two nearest knots, which interpolate the values."""
    return np.stack([np.interp(values, knots, own) for own in np.eye(len(knots))], axis=2)


def nearest(place: np.ndarray) -> np.ndarray:
    """Pairs of the nearest that are left."""
    left, pairs = list(range(len(place))), []
    while left:
        gaps = np.diff(place[left])
        at = int(np.argmin(gaps))
        pairs.append((left.pop(at), left.pop(at)))
    return np.array(pairs)


def joint(train: list[Chain], test: list[Chain], C: float) -> list[np.ndarray]:
    """Predictions of PairingSVM."""
    model = mm.PairingSVM(C=C, perfect=True).fit([one["x"] for one in train], [one["bonds"] for one in train])
    return list(model.predict([one["x"] for one in test]))


def logistic(train: list[Chain], test: list[Chain], C: float) -> list[np.ndarray]:
    """Links that are learned one by one; the pairings of the largest sums of logits."""
    from sklearn.linear_model import LogisticRegression

    def rows(some: list[Chain]) -> np.ndarray:
        return np.concatenate([one["x"][np.triu_indices(len(one["place"]), 1)] for one in some])

    bonded = Pairing.dense([len(one["place"]) for one in train]).encode([one["bonds"] for one in train])
    model = LogisticRegression(C=C, max_iter=3000).fit(rows(train), np.asarray(bonded) > 0.5)
    structure = Pairing.dense([len(one["place"]) for one in test], perfect=True)
    return list(structure.labels(model.decision_function(rows(test))).outputs)


def folds(data: list[Chain], seed: int) -> Iterator[tuple[list[Chain], list[Chain]]]:
    """Training and test chains: the clusters in FOLDS parts."""
    clusters = np.random.default_rng(seed).permutation(sorted({one["cluster"] for one in data}))
    for fold in range(FOLDS):
        held = set(clusters[fold::FOLDS].tolist())
        train = [one for one in data if one["cluster"] not in held]
        yield train, [one for one in data if one["cluster"] in held and one["stands"]]


def shares(test: list[Chain], answers: Iterable[np.ndarray]) -> list[tuple[bool, float]]:
    """Whether each pattern is right, and its share of right bonds."""
    found = []
    for one, pairs in zip(test, answers, strict=True):
        gold, mine = ({tuple(sorted(pair)) for pair in some.tolist()} for some in (one["bonds"], pairs))
        found.append((mine == gold, len(mine & gold) / len(gold)))
    return found


def with_chosen_C(learner: Callable[..., list[np.ndarray]], train: list[Chain], test: list[Chain]) -> list[np.ndarray]:
    """Predictions with the C that has most bonds right in folds of the training chains."""
    right = [
        sum(share for one, other in folds(train, 0) for _, share in shares(other, learner(one, other, C))) for C in GRID
    ]
    return learner(train, test, GRID[int(np.argmax(right))])


def disulfides(folder: Path) -> dict[str, Any]:
    """Percent of patterns and of bonds that are right, by the number of bonds."""
    data = chains(folder)
    right: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for repeat in range(REPEATS):
        for train, test in folds(data, repeat):
            bonds = [len(one["bonds"]) for one in test]
            answers = {
                "maxmargin": shares(test, with_chosen_C(joint, train, test)),
                "logistic": shares(test, with_chosen_C(logistic, train, test)),
                "nearest": shares(test, [nearest(one["place"]) for one in test]),
                "chance": [(1.0 / float(np.prod(np.arange(1, 2 * b, 2))), 1.0 / (2 * b - 1)) for b in bonds],
            }
            for name, found in answers.items():
                for b, entry in zip(bonds, found, strict=True):
                    right.setdefault(name, {}).setdefault(b, []).append(entry)
    shown = {
        name: {
            str(b): [significant(100.0 * float(np.mean(column)), 3) for column in zip(*entries, strict=True)]
            for b, entries in [*sorted(own.items()), ("all", [entry for entries in own.values() for entry in entries])]
        }
        for name, own in right.items()
    }
    counts = {str(b): len(entries) // REPEATS for b, entries in sorted(right["chance"].items())}
    return {"chains tested": counts, "percent of patterns and of bonds": shown}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("MAXMARGIN_DATA"), help="Folder with disulfides/.")
    parser.add_argument("--most", type=int, default=300, help="Nodes of the largest graph.")
    options = parser.parse_args()
    found: dict[str, Any] = {
        "microseconds of a matching": speed(options.most),
        "microseconds of a projection, by the deviation of the points": projections(Pairing.dense, "nodes", repeats=5),
    }
    if options.data is not None:
        found["disulfide bonds"] = disulfides(Path(options.data))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
