"""Segments against chains: time of the argmax, and F1 and time of chunking; prints one JSON object.

    python -m benchmarks.structures.segments [--data FOLDER] [--sentences 8936]

Argmax: 2,000 random sentences of 5 to 44 tokens with 11 types of chunks, as BIO tags; nanoseconds of CPU time per token
on one thread, the best of several repeats, and the time of a copy of the scores, which is the speed of memory.

Chunking: CoNLL-2000 with the preset ``chunking`` and its default C, block-coordinate Frank-Wolfe to a relative gap of
0.01, one thread: the chain, and segments with the same attributes of tokens and the preset's attributes of chunks. On
``dev`` both are trained on the first 7,500 training sentences and compared on the other 1,436; on ``test`` they are
trained on all and compared on the test part.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.record import DATA
from benchmarks.timing import significant, timed
from maxmargin.structures import Chain, TaggedSegments, TransitionConstraints
from maxmargin.tasks.tagging import SequenceTagger

FIRST = 7500
"""Training sentences of the comparison on dev sentences."""

Sentences = tuple[list[Any], list[Any]]


def argmax_times() -> list[dict[str, Any]]:
    """Time of the argmax of segments and of chains of the same tags."""
    rng = np.random.default_rng(0)
    lengths, k = rng.integers(5, 45, size=2000), 12
    names = ["O", *(f"{tag}-{kind}" for kind in range(1, k) for tag in "BI")]
    states = np.array([[0, 0, 0, 0], *([2 * i - 1, 2 * i, 2 * i, 2 * i - 1] for i in range(1, k))])
    chain = Chain(lengths, len(names), constraints=TransitionConstraints.bio(names))
    of_chain = rng.normal(size=chain.n_parts)
    tokens = int(lengths.sum())

    def per_token(call: Callable[[], Any]) -> float:
        return significant(timed(call, 3)[1] / tokens * 1e9)

    found = []
    for longest in (4, 8, 15):
        segments = TaggedSegments(lengths, k, [1, *[longest] * (k - 1)], states=states)
        scores = rng.normal(size=segments.n_parts)
        found.append(
            {
                "longest": longest,
                "parts_per_token": significant(segments.n_parts / tokens),
                "segments_ns": per_token(lambda segments=segments, scores=scores: segments.labels(scores)),
                "chain_ns": per_token(lambda: chain.labels(of_chain)),
                "copy_of_scores_ns": per_token(lambda scores=scores: scores.copy()),
                "segments_marginals_ns": per_token(lambda segments=segments, scores=scores: segments.marginals(scores)),
                "chain_marginals_ns": per_token(lambda: chain.marginals(of_chain)),
            }
        )
    return found


def read(path: Path) -> Sentences:
    """Words with parts of speech, and labels."""
    X: list[Any] = [[]]
    y: list[Any] = [[]]
    with gzip.open(path, "rt") as lines:
        for line in lines:
            fields = line.split()
            if fields:
                X[-1].append((fields[0], fields[1]))
                y[-1].append(fields[2])
            elif X[-1]:
                X.append([])
                y.append([])
    return (X, y) if X[-1] else (X[:-1], y[:-1])


def cpu(call: Callable[[], Any]) -> tuple[Any, float]:
    """A result and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    found = call()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return found, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compared(train: Sentences, test: Sentences) -> dict[str, Any]:
    """F1 and time of a chain and of segments."""
    tokens = sum(map(len, test[1]))
    found = {}
    for name, segments in (("chain", False), ("segments", True)):
        tagger = SequenceTagger(preset="chunking", segments=segments, folds=0, n_jobs=1)
        _, training = cpu(lambda tagger=tagger: tagger.fit(*train))
        predicted, predicting = cpu(lambda tagger=tagger: tagger.predict(test[0]))
        scores = mm.tasks.tagging.evaluate(test[1], predicted)
        found[name] = {
            "f1": round(100 * scores.f1, 2),
            "accuracy": round(100 * scores.accuracy, 2),
            "train_cpu_seconds": round(training, 1),
            "predict_tokens_per_cpu_second": int(tokens / predicting),
            "weights": len(tagger.coef_),
            "relative_gap": float(f"{tagger.solution_.certificate.relative_gap:.2g}"),
        }
    return {"train_sentences": len(train[0]), "test_sentences": len(test[0]), **found}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sentences", type=int, default=8936, help="training sentences")
    given = parser.parse_args()
    with mm.threads(1):
        result: dict[str, Any] = {"argmax": argmax_times()}
        folder = given.data / "tagging" / "conll2000"
        if folder.exists():
            train, test = (read(folder / f"{name}.txt.gz") for name in ("train", "test"))
            X, y = train[0][: given.sentences], train[1][: given.sentences]
            if len(X) > FIRST:
                result["dev"] = compared((X[:FIRST], y[:FIRST]), (X[FIRST:], y[FIRST:]))
            result["test"] = compared((X, y), test)
        else:
            result["chunking"] = f"no data at {folder}"
    print(json.dumps(result))


if __name__ == "__main__":
    main()
