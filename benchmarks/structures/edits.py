"""Edit alignments: time of scores against string-distance libraries, and names matched; prints one JSON object.

    python -m benchmarks.structures.edits [--seeds 5]

Speed: scores of pairs of random strings of 8, 15 and 60 letters, microseconds of CPU time of a pair on one thread, the
best of several repeats. Ours have a score for every pair of symbols and every deleted and inserted symbol, and affine
gaps or not. Peers get the same costs: Biopython's PairwiseAligner (affine gaps) must give the same numbers;
weighted-levenshtein (linear gaps) no smaller ones, as it never leaves equal letters unpaired where it could pair them.
parasail takes whole numbers only, so it gets rounded ones. RapidFuzz counts edits of one cost each in parallel bits,
and cannot take costs of symbols: its time is the price of learned costs.

Names: pairs of made-up names (``examples/learned_edit_distance.py``), of which the hardest do not match, several seeds.
Thresholds are chosen on dev names, F1 is that of other names. Peers are RapidFuzz's similarities.
"""

from __future__ import annotations

import argparse
import json
import string
from collections.abc import Callable
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.timing import significant, timed
from examples import learned_edit_distance as names
from maxmargin.encoders.deductions.edits import EditEncoder

LETTERS = string.ascii_lowercase


def made_model(rng: np.random.Generator, gaps: str) -> tuple[mm.EditModel, dict[str, np.ndarray]]:
    """A model of random costs, and the costs: of pairs ``(26, 26)``, deletions, insertions, openings of each."""
    encoder = EditEncoder(gaps=gaps, context=False, known=tuple(LETTERS))
    costs = {
        "pairs": np.round(rng.uniform(0.5, 2.0, size=(26, 26)), 2),
        "deletions": np.round(rng.uniform(0.5, 1.5, size=26), 2),
        "insertions": np.round(rng.uniform(0.5, 1.5, size=26), 2),
    }
    np.fill_diagonal(costs["pairs"], 0.0)
    if gaps == "affine":  # of one cost for all symbols, as the peers have them
        costs["deletions"][:] = costs["insertions"][:] = 0.5
    features = encoder.features
    _, n_pairs, n_gaps, n_open = encoder.widths
    weights = np.zeros(encoder.n_weights)
    weights[n_pairs - 26 * 26 : n_pairs] = -costs["pairs"].ravel()
    side = features.n_gap_weights // 2
    for at, name in enumerate(("deletions", "insertions")):
        end = n_pairs + (at + 1) * side
        weights[end - 27 : end - 1] = -costs[name]
    weights[n_pairs + n_gaps :: max(n_open // 2, 1)] = -1.0
    return mm.EditModel(weights, encoder), costs


def strings(rng: np.random.Generator, n: int, length: int) -> list[str]:
    """Random strings of about a length."""
    sizes = rng.integers(length - length // 4, length + length // 4 + 1, size=n)
    return ["".join(rng.choice(list(LETTERS), size=size).tolist()) for size in sizes]


def speed(length: int) -> dict[str, Any]:
    """Microseconds of a pair."""
    rng = np.random.default_rng(0)
    n = 600 if length < 40 else 200
    first, second = strings(rng, n, length), strings(rng, n, length)
    pairs = [(first[i], second[j]) for i, j in rng.integers(0, n, size=(20_000 if length < 40 else 3000, 2))]
    few = pairs[: 2000 if length < 40 else 200]
    linear, costs = made_model(rng, "linear")
    affine, affine_costs = made_model(rng, "affine")
    calls: dict[str, tuple[Callable[[], Any], int]] = {
        "maxmargin, list of pairs, linear gaps": (lambda: -linear.score_pairs(pairs), len(pairs)),
        "maxmargin, list of pairs, affine gaps": (lambda: -affine.score_pairs(pairs), len(pairs)),
        "maxmargin, all pairs of two lists": (lambda: affine.distances(first, second), n * n),
        "maxmargin, alignments": (lambda: [len(one) for one in affine.predict(few)], len(few)),
        **rapidfuzz(first, second, pairs),
        **weighted_levenshtein(few, costs),
        **biopython(few, affine_costs),
        **parasail(few, affine_costs),
    }
    with mm.threads(1):
        timings = {name: timed(call, 3) for name, (call, _) in calls.items()}
    results = {name: np.array(found[: len(few)]) for name, (found, _) in timings.items() if "two lists" not in name}
    if (peer := "Biopython, affine gaps") in results:
        np.testing.assert_allclose(results["maxmargin, list of pairs, affine gaps"], results[peer], atol=1e-9)
    if (peer := "weighted-levenshtein") in results:  # it always pairs equal letters where it could, ours may not
        more = results[peer] - results["maxmargin, list of pairs, linear gaps"]
        assert more.min() >= -1e-9
    return {name: significant(1e6 * seconds / calls[name][1]) for name, (_, seconds) in timings.items()}


def rapidfuzz(first: list[str], second: list[str], pairs: list[tuple[str, str]]) -> dict[str, Any]:
    try:
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cdist, cpdist
    except ImportError:
        return {}
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    score, count = Levenshtein.distance, len(first) * len(second)
    return {
        "RapidFuzz, list of pairs": (lambda: cpdist(left, right, scorer=score, workers=1), len(pairs)),
        "RapidFuzz, all pairs of two lists": (lambda: cdist(first, second, scorer=score, workers=1), count),
    }


def weighted_levenshtein(pairs: list[tuple[str, str]], costs: dict[str, np.ndarray]) -> dict[str, Any]:
    try:
        from weighted_levenshtein import lev
    except ImportError:
        return {}
    wide = {name: np.ones(128 if own.ndim == 1 else (128, 128)) for name, own in costs.items()}
    at = np.array([ord(letter) for letter in LETTERS])
    wide["pairs"][np.ix_(at, at)] = costs["pairs"]
    wide["deletions"][at], wide["insertions"][at] = costs["deletions"], costs["insertions"]
    own = {
        "insert_costs": wide["insertions"],
        "delete_costs": wide["deletions"],
        "substitute_costs": wide["pairs"],
    }
    return {"weighted-levenshtein": (lambda: [lev(a, b, **own) for a, b in pairs], len(pairs))}


def biopython(pairs: list[tuple[str, str]], costs: dict[str, np.ndarray]) -> dict[str, Any]:
    try:
        from Bio.Align import PairwiseAligner
        from Bio.Align.substitution_matrices import Array
    except ImportError:
        return {}
    aligner = PairwiseAligner(mode="global", open_gap_score=-1.5, extend_gap_score=-0.5)
    aligner.substitution_matrix = Array(alphabet=LETTERS, dims=2, data=-costs["pairs"])
    return {"Biopython, affine gaps": (lambda: [-aligner.score(a, b) for a, b in pairs], len(pairs))}


def parasail(pairs: list[tuple[str, str]], costs: dict[str, np.ndarray]) -> dict[str, Any]:
    try:
        import parasail as peer
    except ImportError:
        return {}
    matrix = peer.matrix_create(LETTERS, 0, 0)
    for i in range(26):
        for j in range(26):
            matrix[i, j] = round(-100 * costs["pairs"][i, j])
    align = peer.nw_striped_16
    return {"parasail, whole numbers": (lambda: [align(a, b, 150, 50, matrix).score for a, b in pairs], len(pairs))}


def matched(seeds: int) -> dict[str, Any]:
    """Precision, recall and F1 on names that were seen neither in training nor for the threshold; mean of seeds."""
    found: dict[str, list[dict[str, float]]] = {}
    for seed in range(seeds):
        for name, rates in names.compared(np.random.default_rng(seed), (1500, 500, 500), similarities()).items():
            found.setdefault(name, []).append(rates)
    return {
        name: {key: round(float(np.mean([one[key] for one in own])), 4) for key in own[0]}
        | {"f1 of each seed": [round(one["f1"], 3) for one in own]}
        for name, own in found.items()
    }


def similarities() -> dict[str, Callable[[list[tuple[str, str]]], np.ndarray]]:
    """Peers that are larger for more similar strings."""
    try:
        from rapidfuzz import distance, fuzz
    except ImportError:
        return {}
    scores = {
        "Jaro-Winkler": distance.JaroWinkler.similarity,
        "Damerau-Levenshtein / length": distance.DamerauLevenshtein.normalized_similarity,
        "longest common subsequence / length": distance.LCSseq.normalized_similarity,
        "RapidFuzz token sort ratio": fuzz.token_sort_ratio,
    }
    return {
        name: (lambda pairs, score=score: np.array([score(a, b) for a, b in pairs], dtype=float))
        for name, score in scores.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="Sets of names.")
    options = parser.parse_args()
    found = {
        "microseconds of a pair": {f"{length} letters": speed(length) for length in (8, 15, 60)},
        "names": matched(options.seeds),
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
