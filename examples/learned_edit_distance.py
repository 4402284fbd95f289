"""A learned edit distance finds the same person in two lists of names.

One list has names as they should be, the other as people type them: keys are missed, sounds are written in another way,
letters doubled or dropped, given names shortened to initials, words exchanged. Others in the list have nearly the same
name, another by one consonant or ending. Pairs to be judged are, for each typed name, the right one, if it is in the
list, and those that are nearest by Levenshtein's distance.
EditSVM learns from pairs that are known to match or not, without their alignments, what each edit says. Names of the
three parts (training, dev, test) are different ones; each method's threshold is the best one for F1 on dev.

    python examples/learned_edit_distance.py [distance.png]
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

import maxmargin as mm

SYLLABLES = [
    "b br c ch d f fr g gr h j k kl l m n p ph r s sch sh st t th v w z",
    "a a a e e e i i o o u ai ea ei ie ou y",
    "- - - - l ll n nn m r rt s ss t tt ck ld nd ng",
]
"""How syllables begin, their vowels, and how they may end."""

KEYS = ["qwertyuiop", "asdfghjkl", "zxcvbnm"]
SOUNDS = "ph f, ck k, c k, ch k, sch sh, th t, y i, ei ai, ie y, ea e, ou u, v w, s z, ai ei, dt t, j y, e a"
"""Spellings of the same sound."""

VOWELS = "aeiouy"
EQUAL_COSTS = mm.EditModel.levenshtein()
Score = Callable[[list[tuple[str, str]]], np.ndarray]
"""Larger for pairs that are more alike."""


def neighbors() -> dict[str, list[str]]:
    """The letters on the keys around each one."""
    places = {letter: (row, at + 0.4 * row) for row, keys in enumerate(KEYS) for at, letter in enumerate(keys)}
    return {
        one: [two for two, (r, a) in places.items() if two != one and abs(r - row) <= 1 and abs(a - at) < 1.1]
        for one, (row, at) in places.items()
    }


NEIGHBORS = neighbors()


def made_names(rng: np.random.Generator, n: int, syllables: tuple[int, int]) -> list[str]:
    """Different names of so many syllables."""
    onsets, nuclei, codas = (kinds.split() for kinds in SYLLABLES)
    found: dict[str, None] = {}
    while len(found) < n:
        count = int(rng.integers(*syllables))
        word = ""
        for at in range(count):
            closed = at == count - 1 or rng.random() < 0.3
            word += rng.choice(onsets) + rng.choice(nuclei) + (rng.choice(codas) if closed else "")
        found[word.replace("-", "")] = None
    return list(found)


def relative(name: str, rng: np.random.Generator) -> str:
    """The name of someone else that is nearly the same: another consonant, or another ending."""
    words = name.split()
    at = int(rng.integers(2))
    word = words[at]
    consonants = [i for i, letter in enumerate(word) if letter not in VOWELS]
    if rng.random() < 0.75:
        place = consonants[int(rng.integers(len(consonants)))]
        words[at] = word[:place] + str(rng.choice(list("bcdfghjklmnprstvwz"))) + word[place + 1 :]
    else:
        words[at] = word + str(rng.choice(["a", "er", "in", "o", "s"]))
    return " ".join(words)


def typed(name: str, rng: np.random.Generator) -> str:
    """The name as someone may type it: one to three slips."""
    given, surname = name.split()
    if rng.random() < 0.05:
        given = given[0]
    words = [given, surname]
    for _ in range(int(rng.choice([1, 2, 3], p=[0.5, 0.35, 0.15]))):
        at = int(rng.random() < 0.6)
        words[at] = slip(words[at], rng)
    if rng.random() < 0.03:
        words.reverse()
    return " ".join(words)


def slip(word: str, rng: np.random.Generator) -> str:
    """One slip in a word; an initial stays as it is."""
    if len(word) < 2:
        return word
    kind = rng.choice(["key", "sound", "double", "vowel", "drop", "swap"], p=[0.16, 0.4, 0.16, 0.14, 0.06, 0.08])
    at = int(rng.integers(len(word)))
    if kind == "key":
        return word[:at] + str(rng.choice(NEIGHBORS[word[at]])) + word[at + 1 :]
    if kind == "sound":
        pairs = [tuple(pair.split()) for pair in SOUNDS.split(", ")]
        fit = [(one, two) for one, two in pairs + [pair[::-1] for pair in pairs] if one in word]
        if fit:
            one, two = fit[int(rng.integers(len(fit)))]
            return word.replace(one, two, 1)
    if kind == "double":
        twice = [i for i in range(1, len(word)) if word[i] == word[i - 1]]
        if twice and rng.random() < 0.7:
            return word[: twice[0]] + word[twice[0] + 1 :]
        return word[: at + 1] + word[at:]
    if kind == "vowel":
        inner = [i for i in range(1, len(word)) if word[i] in VOWELS]
        if inner:
            at = inner[int(rng.integers(len(inner)))]
            return word[:at] + word[at + 1 :]
    if kind == "swap" and at + 1 < len(word):
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return word[:at] + word[at + 1 :] if at else word


def pairs_to_judge(rng: np.random.Generator, n: int, hard: int = 4) -> tuple[list[tuple[str, str]], np.ndarray]:
    """Pairs (name of the list, typed name), and whether they are the same person."""
    given, surnames = made_names(rng, n // 3, (2, 3)), made_names(rng, n // 2, (2, 4))
    persons = list({f"{rng.choice(given)} {rng.choice(surnames)}": None for _ in range(n // 2)})
    persons = list(dict.fromkeys([*persons, *(relative(name, rng) for name in persons)]))
    X, y = [], []
    for at, name in enumerate(persons):
        other = typed(name, rng)
        edits = -EQUAL_COSTS.score_pairs([(person, other) for person in persons])
        rivals = [i for i in np.argsort(edits, kind="stable")[: hard + 1].tolist() if i != at][:hard]
        if at % 5:  # every fifth name is not in the list
            X.append((name, other))
            y.append(True)
        X += [(persons[i], other) for i in rivals]
        y += [False] * len(rivals)
    return X, np.array(y)


def rates(scores: np.ndarray, y: np.ndarray, threshold: float) -> dict[str, float]:
    """Precision, recall and F1 of taking pairs with at least this score."""
    chosen = scores >= threshold
    right = float((chosen & y).sum())
    precision, recall = right / max(chosen.sum(), 1), right / y.sum()
    return {"precision": precision, "recall": recall, "f1": 2 * precision * recall / max(precision + recall, 1e-12)}


def best_threshold(scores: np.ndarray, y: np.ndarray) -> float:
    """The score whose F1 is the best."""
    order = np.argsort(-scores, kind="stable")
    f1 = 2 * np.cumsum(y[order]) / (np.arange(1, len(y) + 1) + y.sum())
    ends = np.append(np.diff(scores[order]) != 0, True)  # equal scores are taken together
    return float(scores[order][np.argmax(np.where(ends, f1, 0.0))])


def draw(model: mm.EditSVM, curves: dict[str, np.ndarray], y: np.ndarray, path: str) -> None:
    """The learned scores of pairs of letters, and precision against recall."""
    from matplotlib.figure import Figure

    encoder = model.model_.encoder
    table = encoder.tables(model.coef_).pairs
    letters = sorted((s for s in encoder.known if s != " "), key=lambda s: (s not in VOWELS, s))
    at = [encoder.known.index(letter) for letter in letters]
    figure = Figure(figsize=(12, 5.6))
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
    shown = table[np.ix_(at, at)]
    np.fill_diagonal(shown, np.nan)
    image = left.imshow(shown, cmap="viridis")
    left.set_xticks(range(len(at)), letters, fontsize=8)
    left.set_yticks(range(len(at)), letters, fontsize=8)
    left.set_title("score of a pair of different letters", fontsize=11)
    figure.colorbar(image, ax=left, shrink=0.85)
    for name, scores in curves.items():
        order = np.argsort(-scores, kind="stable")
        found = np.cumsum(y[order])
        ends = np.append(np.diff(scores[order]) != 0, True)
        right.plot((found / y.sum())[ends], (found / np.arange(1, len(y) + 1))[ends], label=name)
    right.set_xlabel("recall")
    right.set_ylabel("precision")
    right.set_xlim(0.4, 1.0)
    right.set_ylim(0.4, 1.01)
    right.grid(alpha=0.3)
    right.legend(loc="lower left")
    right.set_title("names of the test part", fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def mean_length(pairs: list[tuple[str, str]]) -> np.ndarray:
    return np.array([0.5 * (len(a) + len(b)) for a, b in pairs])


METHODS: dict[str, Score] = {
    "Levenshtein": EQUAL_COSTS.score_pairs,
    "Levenshtein / length": lambda pairs: EQUAL_COSTS.score_pairs(pairs) / mean_length(pairs),
}


def compared(
    rng: np.random.Generator,
    sizes: tuple[int, int, int] = (600, 400, 400),
    peers: dict[str, Score] | None = None,
    path: str | None = None,
) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each method on new names, with the threshold that was best on dev names."""
    (X, y), dev, test = (pairs_to_judge(rng, size) for size in sizes)
    settings = {"gaps": "linear", "C": 0.05, "tol": 0.01, "rounds": 5, "random_state": 0}
    model = mm.EditSVM(nonmatches=True, symmetric=True, **settings).fit(X, y.tolist())
    print(f"{len(X)} pairs of names, {int(y.sum())} of them match: {model.solution_.certificate}", file=sys.stderr)
    print("objective of each round: " + ", ".join(f"{one:.1f}" for one in model.objectives_), file=sys.stderr)
    methods = {"learned": model.match_scores, **METHODS, **(peers or {})}
    curves = {name: score(test[0]) for name, score in methods.items()}
    chosen = {name: best_threshold(score(dev[0]), dev[1]) for name, score in methods.items()}
    if path is not None:
        draw(model, {name: curves[name] for name in ("learned", *METHODS)}, test[1], path)
    found = {name: rates(scores, test[1], chosen[name]) for name, scores in curves.items()}
    return {**found, "learned, threshold 0": rates(curves["learned"], test[1], 0.0)}


def main(path: str | None = None) -> dict[str, dict[str, float]]:
    found = compared(np.random.default_rng(0), path=path)
    for name, own in found.items():
        print(f"{name:21s} " + ", ".join(f"{what} {value:.3f}" for what, value in own.items()))
    if path is not None:
        print(f"{path}: learned scores of letters, precision and recall")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:2])
