"""`maxmargin.tasks.tagging.CRF` beside `sklearn_crfsuite.CRF`, on the feature dictionaries of its tutorial.

    python -m benchmarks.tagging.dropin [--data ../shared/data] [--only chunks pos names] [--sizes 500 2000] [--all]

Chunks of CoNLL-2000 (train, test; with parts of speech as features), and of EWT (train, dev; words alone) parts of
speech and names, which are runs of PROPN. Both classes train on the same random sentences with the same arguments, in
one process and on one thread: the score (F1 of chunks, accuracy of parts of speech, in percent) on 2,000 held-out
sentences, CPU seconds of `fit`, weights, size of the model file, and the calibration error of probabilities (15 bins,
percent), for maxmargin also at temperature 1. `--all` adds all training sentences, which take CRFsuite minutes. Prints
one JSON object.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import random
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads import DATA, need
from maxmargin.tasks.tagging import CRF
from maxmargin.tasks.tagging.metrics.chunks import look_like_chunks
from maxmargin.tasks.tagging.metrics.scores import evaluate

HELD_OUT, BINS, SEED = 2000, 15, 7
ARGUMENTS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "c1=0.1 c2=0.1": {"c1": 0.1, "c2": 0.1, "max_iterations": 100, "all_possible_transitions": True},
    "c1=0.5 c2=0.05": {"c1": 0.5, "c2": 0.05, "max_iterations": 100, "all_possible_transitions": True},
}
"""CRFsuite's defaults, its tutorial's, and what a draw of the tutorial's random search looks like."""

Sentence = list[tuple[str, ...]]
Data = tuple[list[Any], list[Any]]


def blocks(path: Path) -> list[list[str]]:
    """The lines of each block between empty lines."""
    text = gzip.decompress(need(path).read_bytes()).decode("utf-8")
    return [block.split("\n") for block in text.split("\n\n") if block.strip()]


def chunks(path: Path) -> Data:
    sentences = [[tuple(line.split()) for line in block if line.strip()] for block in blocks(path)]
    return [features([t[0] for t in s], [t[1] for t in s]) for s in sentences], [[t[2] for t in s] for s in sentences]


def words_and_tags(path: Path) -> list[Sentence]:
    rows = [[line.split("\t") for line in block if line and line[0] != "#"] for block in blocks(path)]
    return [[(row[1], row[3]) for row in block if row[0].isdigit()] for block in rows]


def pos(path: Path) -> Data:
    sentences = words_and_tags(path)
    return [features([t[0] for t in s]) for s in sentences], [[t[1] for t in s] for s in sentences]


def names(path: Path) -> Data:
    X, y = pos(path)
    return X, [[_name(*pair) for pair in itertools.pairwise(["", *tags])] for tags in y]


def _name(before: str, tag: str) -> str:
    return "O" if tag != "PROPN" else "I-NAME" if before == "PROPN" else "B-NAME"


TASKS = {
    "chunks": (chunks, "tagging/conll2000/train.txt.gz", "tagging/conll2000/test.txt.gz"),
    "pos": (pos, "tagging/ewt/train.conllu.gz", "tagging/ewt/dev.conllu.gz"),
    "names": (names, "tagging/ewt/train.conllu.gz", "tagging/ewt/dev.conllu.gz"),
}


def features(words: Sequence[str], tags: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The features of the tutorial; without parts of speech if there are none."""

    def token(at: int, prefix: str) -> dict[str, Any]:
        word = words[at]
        own = {"lower": word.lower(), "upper": word.isupper(), "title": word.istitle()}
        if tags is not None:
            own |= {"tag": tags[at], "tag[:2]": tags[at][:2]}
        return {f"{prefix}{name}": value for name, value in own.items()}

    found = []
    for i, word in enumerate(words):
        own = {"bias": 1.0, "word[-3:]": word[-3:], "word[-2:]": word[-2:], "digit": word.isdigit(), **token(i, "")}
        own |= token(i - 1, "-1:") if i else {"BOS": True}
        own |= token(i + 1, "+1:") if i + 1 < len(words) else {"EOS": True}
        found.append(own)
    return found


def calibration_error(marginals: Any, predicted: Any, gold: Any) -> float:
    """Mean distance, in percent, of the probability of predicted labels and the share of right ones, in bins."""
    flat = [
        (token[label], label == wanted)
        for tokens, labels, right in zip(marginals, predicted, gold, strict=True)
        for token, label, wanted in zip(tokens, labels, right, strict=True)
    ]
    sure, right = np.array(flat, dtype=float).T
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    return 100 * sum(abs((sure - right)[place == one].sum()) for one in range(BINS)) / len(sure)


def measured(kind: Any, arguments: dict[str, Any], train: Data, test: Data) -> dict[str, Any]:
    """One class with one set of arguments."""
    began = time.process_time()
    crf = kind(**arguments).fit(*train)
    seconds = time.process_time() - began
    found = list(crf.predict(test[0]))
    scores = evaluate(test[1], found)
    row = {
        "score": round(100 * (scores.f1 if look_like_chunks(crf.classes_) else scores.accuracy), 2),
        "CPU s": round(seconds, 1),
        "weights": len(crf.state_features_),
        "MB": round(crf.size_ / 1e6, 2),
        "calibration error": round(calibration_error(crf.predict_marginals(test[0]), found, test[1]), 2),
    }
    if kind is CRF:
        model = crf.sequence_tagger_.model_
        model.calibration.clear()
        row["at temperature 1"] = round(calibration_error(model.predict_marginals(test[0]), found, test[1]), 2)
        row["C"] = round(model.metadata["C"], 3)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--sizes", nargs="*", type=int, default=[500, 2000])
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    import sklearn_crfsuite  # here, so that --help works without it

    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    for task in options.only:
        read, of_train, of_test = TASKS[task]
        X, y = read(options.data / of_train)
        held_out = tuple(part[:HELD_OUT] for part in read(options.data / of_test))
        for size in [*options.sizes, *([len(X)] if options.all else [])]:
            chosen = random.Random(SEED).sample(range(len(X)), size) if size < len(X) else range(len(X))
            train = [X[i] for i in chosen], [y[i] for i in chosen]
            for name, arguments in ARGUMENTS.items():
                print(task, size, name, file=sys.stderr)
                found[f"{task}, {len(train[0])} sentences, {name}"] = {
                    "sklearn_crfsuite": measured(sklearn_crfsuite.CRF, arguments, train, held_out),
                    "maxmargin": measured(CRF, arguments, train, held_out),
                }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
