"""Pairings: time of the best matching against NetworkX and rustworkx, and disulfide bonds; prints one JSON object.

    python benchmarks/structures/pairings.py [--data FOLDER] [--most 300]

Graphs are complete, with scores that are uniform, or fall with the distance of points in a square. rustworkx takes
whole numbers only: it gets the scores times a million. Microseconds of a call, on one thread, the best of several
repeats.

Disulfide bonds (2005, section 1): which of a protein's bonded cysteines are partners. Five folds of clusters; tested on
the chains that stand for a cluster (``rep``), trained on all chains of other clusters. Shares of whole patterns and of
bonds that are right, by the number of bonds, against chance, pairing of the nearest, and independent logistic links
whose logits are matched.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from maxmargin.structures import Pairing

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from timing import best_of, significant

CLASSES = "AVLIMFW", "GP", "STNQYH", "DE", "KR", "C"
"""Residues that are alike."""

WINDOW = 4


def graphs(n: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Scores of all pairs of n nodes."""
    if kind == "uniform":
        return rng.random(n * (n - 1) // 2)
    points = rng.random((n, 2))
    low, high = np.triu_indices(n, 1)
    return 2.0 - np.linalg.norm(points[low] - points[high], axis=1)


def speed(most: int) -> dict[str, Any]:
    """Microseconds of one matching, ours and the peers'."""
    found: dict[str, Any] = {}
    rng = np.random.default_rng(0)
    for n in (10, 50, 100, 300):
        if n > most:
            continue
        for kind in ("uniform", "points"):
            many = max(1, 20_000 // n**2)
            structure = Pairing.dense(np.full(many, n))
            scores = np.concatenate([graphs(n, kind, rng) for _ in range(many)])
            calls: dict[str, Callable[[], Any]] = {"maxmargin": lambda s=structure, x=scores: s.argmax(x)}
            one = structure.edges[: n * (n - 1) // 2].tolist(), scores[: n * (n - 1) // 2]
            calls |= peers(n, *one)
            with mm.threads(1):
                seconds = best_of(3, calls)
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
            calls["networkx"] = lambda: networkx.max_weight_matching(graph)
    except ImportError:
        pass
    try:
        import rustworkx

        whole = rustworkx.PyGraph()
        whole.add_nodes_from(range(n))
        whole.add_edges_from([(j, k, round(1e6 * s)) for (j, k), s in zip(edges, scores.tolist(), strict=True)])
        calls["rustworkx"] = lambda: rustworkx.max_weight_matching(whole, weight_fn=int)
    except ImportError:
        pass
    return calls


def chains(folder: Path) -> list[dict[str, Any]]:
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
                "x": pair_features(row["sequence"], place),
                "bonds": np.sort(np.searchsorted(place, bonds), axis=1),
            }
        )
    return found


def pair_features(sequence: str, place: np.ndarray) -> np.ndarray:
    """Features of all pairs of cysteines: distance along the chain and among the cysteines, and residues around."""
    n = len(place)
    around = np.zeros((n, 2 * WINDOW, len(CLASSES)))
    for j, at in enumerate(place.tolist()):
        for k, offset in enumerate([*range(-WINDOW, 0), *range(1, WINDOW + 1)]):
            if 0 <= at + offset < len(sequence):
                around[j, k] = [sequence[at + offset] in own for own in CLASSES]
    content = around.sum(axis=1) / WINDOW
    gap = np.abs(place[:, None] - place)
    steps = np.abs(np.arange(n)[:, None] - np.arange(n))
    columns = [np.ones((n, n)), np.log1p(gap), (gap < 4) * 1.0, np.log1p(gap) ** 2 / 10.0]
    columns += [(steps == step) * 1.0 for step in range(1, 7)] + [(steps % 2 == 1) * 1.0]
    columns += [np.abs(steps - n / 2) / n, (steps == n // 2) * 1.0]
    both = content[:, None] + content[None]
    product = content[:, None] * content[None]
    same = np.einsum("jkc,lkc->jl", around, around)[..., None] / WINDOW
    return np.concatenate([np.stack(columns, axis=2), both, product, same], axis=2)


def nearest(place: np.ndarray) -> np.ndarray:
    """Pairs of the nearest that are left."""
    left, pairs = list(range(len(place))), []
    while left:
        gaps = np.diff(place[left])
        at = int(np.argmin(gaps))
        pairs.append((left.pop(at), left.pop(at)))
    return np.array(pairs)


def logistic(train: list[dict[str, Any]], test: dict[str, Any]) -> np.ndarray:
    """Links that are learned one by one; the pairing of the largest sum of logits."""
    from sklearn.linear_model import LogisticRegression

    rows, labels = [], []
    for one in train:
        low, high = np.triu_indices(len(one["place"]), 1)
        bonded = {tuple(pair) for pair in one["bonds"].tolist()}
        rows.append(one["x"][low, high])
        labels += [(j, k) in bonded for j, k in zip(low.tolist(), high.tolist(), strict=True)]
    model = LogisticRegression(C=0.1, max_iter=2000).fit(np.concatenate(rows), labels)
    low, high = np.triu_indices(len(test["place"]), 1)
    structure = Pairing.dense([len(test["place"])], perfect=True)
    return structure.labels(model.decision_function(test["x"][low, high])).outputs[0]


def disulfides(folder: Path, C: float) -> dict[str, Any]:
    """Shares of patterns and bonds that are right."""
    data = chains(folder)
    clusters = sorted({one["cluster"] for one in data})
    right: dict[str, dict[int, list[tuple[bool, float]]]] = {}
    for fold in range(5):
        held = set(clusters[fold::5])
        train = [one for one in data if one["cluster"] not in held]
        model = mm.PairingSVM(C=C, perfect=True).fit([one["x"] for one in train], [one["bonds"] for one in train])
        for one in data:
            if one["cluster"] not in held or not one["stands"]:
                continue
            answers = {
                "maxmargin": model.predict([one["x"]])[0],
                "nearest": nearest(one["place"]),
                "logistic": logistic(train, one),
            }
            gold = {tuple(sorted(pair)) for pair in one["bonds"].tolist()}
            for name, pairs in answers.items():
                found = {tuple(sorted(pair)) for pair in pairs.tolist()}
                share = len(found & gold) / len(gold)
                right.setdefault(name, {}).setdefault(len(gold), []).append((found == gold, share))
    shown: dict[str, Any] = {}
    for name, by_bonds in right.items():
        every = [entry for entries in by_bonds.values() for entry in entries]
        shown[name] = {
            str(bonds): [significant(100.0 * float(np.mean(column))) for column in zip(*entries, strict=True)]
            for bonds, entries in [*sorted(by_bonds.items()), ("all", every)]
        }
    counts = {bonds: len(entries) for bonds, entries in sorted(right["maxmargin"].items())}
    patterns = {bonds: float(np.prod(np.arange(1, 2 * bonds, 2))) for bonds in counts}
    shown["chance"] = {str(b): [significant(100 / patterns[b]), significant(100 / (2 * b - 1))] for b in counts}
    weights = np.array(list(counts.values())) / sum(counts.values())
    overall = [sum(w * shown["chance"][str(b)][i] for w, b in zip(weights, counts, strict=True)) for i in (0, 1)]
    shown["chance"]["all"] = [significant(value) for value in overall]
    return {"chains tested": counts, "percent of patterns and of bonds": shown}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("MAXMARGIN_DATA"), help="Folder with disulfides/.")
    parser.add_argument("--most", type=int, default=300, help="Nodes of the largest graph.")
    parser.add_argument("--C", type=float, default=0.01)
    options = parser.parse_args()
    found: dict[str, Any] = {"microseconds of a matching": speed(options.most)}
    if options.data is not None:
        found["disulfide bonds"] = disulfides(Path(options.data), options.C)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
