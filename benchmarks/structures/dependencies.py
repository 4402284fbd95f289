"""Projective dependency trees: tokens per second of the best tree, of first and second order; prints one JSON object.

    python -m benchmarks.structures.dependencies [--conllu FILE] [--sentences 400]

Sentences have the lengths of those of a CoNLL-U file (may be gzipped), or drawn ones, 1 to 80 tokens and 15 on average.
Scores are random; one thread, CPU time, batches of a million parts.

- prepared scores: all arcs with 1 or 50 labels, all siblings, all grandparents. Beside it the limit, NumPy's maximum
  over the heads (and labels) of each token, which reads every score once and finds no tree, and a peer, Eisner's
  algorithm with NumPy's maximum over the splits; its values must be ours.
- prepared features: a sparse matrix of indicators, 40 for each arc, and 10 for each triple, times weights, and then the
  best tree; and which share of the time the features take.
- marginals, the 10 best, slack rescaling with Hamming loss, and Euclidean projections of random points.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import maxmargin as mm
from benchmarks.timing import significant, timed
from maxmargin.features import PartFeatures, Stacked
from maxmargin.structures import ProjectiveTrees

SYSTEMS: dict[str, dict[str, Any]] = {
    "arcs": {},
    "arcs, 50 labels": {"n_labels": 50},
    "siblings": {"siblings": True},
    "siblings, 50 labels": {"siblings": True, "n_labels": 50},
    "siblings and grandparents": {"siblings": True, "grandparents": True},
    "siblings and grandparents, 50 labels": {"siblings": True, "grandparents": True, "n_labels": 50},
}


def lengths_of(path: str | None, many: int) -> np.ndarray:
    """Tokens of sentences."""
    rng = np.random.default_rng(0)
    if path is None:
        return np.clip(rng.geometric(1 / 15, size=many), 1, 80)
    found, own = [], 0
    with gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                own += line.split("\t")[0].isdigit()
            elif own:
                found.append(own)
                own = 0
    found += [own] if own else []
    return rng.permutation(found)[:many]


def eisner(n: int, scores: np.ndarray) -> float:
    """The score of the best tree with one root, scores by modifier and head."""
    table = np.full((n + 1, n + 1), -np.inf)
    table[1:][~np.eye(n, n + 1, 1, dtype=bool)] = scores
    arc = table.T  # by head and modifier
    right, left = np.zeros((2, n + 1, n + 1))  # complete spans [s, t] with head s, and with head t
    to_right, to_left = np.full((2, n + 1, n + 1), -np.inf)
    for width in range(1, n):
        for s in range(1, n + 1 - width):
            t = s + width
            split = (right[s, s:t] + left[s + 1 : t + 1, t]).max()
            to_right[s, t], to_left[s, t] = split + arc[s, t], split + arc[t, s]
            left[s, t] = (left[s, s:t] + to_left[s:t, t]).max()
            right[s, t] = (to_right[s, s + 1 : t + 1] + right[s + 1 : t + 1, t]).max()
    return float((left[1, 1:] + right[1:, n] + arc[0, 1:]).max())


def summed(lengths: np.ndarray, settings: dict[str, Any], call: Callable[[ProjectiveTrees], tuple[float, ...]]) -> Any:
    """Sums of the seconds that ``call`` gives for batches of all sentences."""
    whole = ProjectiveTrees.dense(lengths, **settings)
    return np.sum([call(whole.select(examples)) for examples in whole.consecutive()], axis=0)


def from_scores(lengths: np.ndarray) -> dict[str, Any]:
    """Tokens per second from prepared scores."""
    found: dict[str, Any] = {}
    for name, settings in SYSTEMS.items():
        rng = np.random.default_rng(1)

        def call(batch: ProjectiveTrees, rng: np.random.Generator = rng, name: str = name) -> tuple[float, ...]:
            scores = rng.normal(size=batch.n_parts)
            states = np.cumsum(batch.n_states) - batch.n_states
            batch.argmax(scores)  # makes the kernel object
            best, seconds = timed(lambda: batch.argmax(scores), 3)
            limit = timed(lambda: np.maximum.reduceat(scores[: batch.starts[1]], states), 3)[1]
            if name != "arcs":
                return seconds, limit, 0.0
            each = np.split(scores, batch.blocks[0].offsets[1:-1])
            values, peer = timed(lambda: [eisner(n, own) for n, own in zip(batch.n_tokens, each, strict=True)])
            np.testing.assert_allclose(best.value, values, atol=1e-9)
            return seconds, limit, peer

        seconds, limit, peer = summed(lengths, settings, call)
        found[name] = {
            "tokens/s": significant(lengths.sum() / seconds),
            "times the limit": significant(seconds / limit),
        }
        if peer:
            found[name]["NumPy, tokens/s"] = significant(lengths.sum() / peer)
    return found


def indicators(rows: int, each: int, columns: int, rng: np.random.Generator) -> sp.csr_array:
    """A matrix with so many ones in every row."""
    index = rng.integers(columns, size=rows * each, dtype=np.int32)
    return sp.csr_array((np.ones(rows * each), index, np.arange(0, rows * each + 1, each)), shape=(rows, columns))


def from_features(lengths: np.ndarray) -> dict[str, Any]:
    """Tokens per second from prepared features, without labels."""
    found: dict[str, Any] = {}
    for name in ("arcs", "siblings", "siblings and grandparents"):
        rng = np.random.default_rng(2)

        def call(batch: ProjectiveTrees, rng: np.random.Generator = rng) -> tuple[float, ...]:
            maps = [
                PartFeatures(indicators(int(block.offsets[-1]), each, 100_000, rng), block.offsets)
                for block, each in zip(batch.blocks, (40, 10, 10), strict=False)
            ]
            features = maps[0] if len(maps) == 1 else Stacked(*maps)
            weights = rng.normal(size=features.n_weights)
            batch.argmax(features.scores(weights))
            scores, scoring = timed(lambda: features.scores(weights), 3)
            return scoring + timed(lambda: batch.argmax(scores), 3)[1], scoring

        seconds, scoring = summed(lengths, SYSTEMS[name], call)
        found[name] = {
            "tokens/s": significant(lengths.sum() / seconds),
            "share of features": significant(scoring / seconds),
        }
    return found


def others(lengths: np.ndarray) -> dict[str, Any]:
    """Tokens per second of the other searches, without labels."""
    found: dict[str, Any] = {}
    for name in ("arcs", "siblings", "siblings and grandparents"):
        some = lengths[:100] if "grand" in name else lengths
        rng = np.random.default_rng(3)

        def call(batch: ProjectiveTrees, rng: np.random.Generator = rng) -> tuple[float, ...]:
            scores = rng.normal(size=batch.n_parts)
            gold = batch.argmax(rng.normal(size=batch.n_parts)).z
            costs = np.zeros(batch.n_parts)
            costs[batch.variable_parts] = 1.0 - gold[batch.variable_parts]
            margin, none = 1.0 - batch.by_example(scores * gold), np.zeros(batch.n_examples)
            return (
                timed(lambda: batch.marginals(scores))[1],
                timed(lambda: batch.k_best(scores, 10))[1],
                timed(lambda: batch.slack_argmax(scores, margin, costs, none))[1],
            )

        seconds = summed(some, SYSTEMS[name], call)
        names = "marginals", "10 best", "slack rescaling"
        found[name] = {key: significant(some.sum() / value) for key, value in zip(names, seconds, strict=True)}
    short = lengths[lengths <= 20][:50]
    for deviation in (0.3, 1.0, 5.0):
        batch = ProjectiveTrees.dense(short)
        point = deviation * np.random.default_rng(4).normal(size=batch.n_parts)
        seconds = timed(lambda batch=batch, point=point: batch.project(point))[1]
        found[f"projection, arcs, at most 20 tokens, {deviation:g}"] = significant(short.sum() / seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conllu", metavar="FILE", help="take the lengths of its sentences")
    parser.add_argument("--sentences", type=int, default=400, metavar="N", help="how many, at most")
    arguments = parser.parse_args()
    lengths = lengths_of(arguments.conllu, arguments.sentences)
    with mm.threads(1):
        report = {
            "sentences": len(lengths),
            "tokens": int(lengths.sum()),
            "longest": int(lengths.max()),
            "prepared scores": from_scores(lengths),
            "prepared features": from_features(lengths),
            "other searches, tokens/s": others(lengths),
        }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
