"""Peak memory of building and training on datasets of the tasks as the data grow tenfold, against training in memory.

    python -m benchmarks.scale.out_of_core_tasks [--tasks tag align rerank segment] [--size 2000]

The package's tagged sentences again and again (ten times as many as --size), so that words and attributes are those of
the smaller run; made-up sentence pairs of 20 words (links known), lists of 100 hypotheses with 15 features, and drawn
pictures of 96 x 128 pixels (a tenth as many of these). Each run is a process of its own; its peak is ``ru_maxrss``,
with the mapped pages of files. Prints one JSON object: for each task and place, of a tenth of the examples and of all,
peak in MB, CPU seconds, seconds and iterations of the solver's run alone, megabytes of files, and the objective.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

Pairs = Iterator[tuple[Any, Any]]


def sentences(n: int) -> Pairs:
    """Words and their mirror images."""
    rng, words = np.random.default_rng(0), [f"w{i}" for i in range(2000)]
    for _ in range(n):
        own = [words[i] for i in rng.zipf(1.3, size=20) % len(words)]
        yield (own, [word[::-1] for word in own]), [(i, i) for i in range(20)]


def tagged(n: int) -> Pairs:
    """Sentences and their parts of speech, from the corpus of the package."""
    from maxmargin.tasks.tagging import load_corpus

    corpus = load_corpus()
    for at in range(10 * n):
        yield corpus.tokens[at % len(corpus.tokens)], corpus.upos[at % len(corpus.tokens)]


def lists(n: int) -> Pairs:
    """Features of hypotheses, and their gains."""
    rng = np.random.default_rng(0)
    for _ in range(n):
        x = rng.normal(size=(100, 15))
        yield x, x[:, 0] + rng.normal(size=100)


def pictures(n: int) -> Pairs:
    """Pictures, and the classes of their pixels."""
    from maxmargin.tasks.segmentation.drawings import drawn_pictures

    for seed in range(max(n // 100, 1)):
        yield from zip(*drawn_pictures(10, size=(96, 128), seed=seed), strict=True)


def task_of(name: str) -> tuple[Any, Callable[[int], Pairs], dict[str, Any]]:
    """An estimator, its data, and options of its dataset: small shards, so that there are many."""
    if name == "tag":
        from maxmargin.tasks.tagging import SequenceTagger

        return SequenceTagger(preset="pos", C=0.1, folds=0, max_iter=3), tagged, {"shard_parts": 500_000}
    if name == "align":
        from maxmargin.tasks.alignment import WordAligner

        aligner = WordAligner(C=0.1, false_negative=2.0, folds=0, tol=0.05, rounds=1)
        return aligner, sentences, {"shard_parts": 50_000}
    if name == "rerank":
        from maxmargin.tasks.reranking import Reranker

        return Reranker(C=1.0, folds=0), lists, {"shard_parts": 20_000, "block_examples": 100}
    from maxmargin.tasks.segmentation import Segmenter

    quick: dict[str, Any] = {"classifier": "linear", "stages": 1, "folds": 2, "refine": False}
    return Segmenter(n_regions=300, tol=0.05, **quick), pictures, {"shard_parts": 20_000, "sample": 20}


def measured(task: str, where: str, n: int) -> dict[str, Any]:
    """Train in this process."""
    estimator, data, options = task_of(task)
    found: dict[str, Any] = {"libraries_mb": _peak()}
    began = time.process_time()
    if where == "memory":
        every = list(data(n))
        estimator.fit([x for x, _ in every], [y for _, y in every])
    else:
        folder = tempfile.mkdtemp()
        try:
            dataset = estimator.build_dataset(f"{folder}/data", partial(data, n), **options)
            found |= {"files_mb": dataset.nbytes / 1e6, "shards": len(dataset.shards), "building_peak_mb": _peak()}
            found["building_seconds"] = time.process_time() - began
            estimator.fit(dataset)
        finally:
            shutil.rmtree(folder)
    seconds, solution = time.process_time() - began, estimator.solution_
    run = {"run_seconds": solution.seconds, "iterations": solution.counters.iterations}
    return {**found, "peak_mb": _peak(), "seconds": seconds, **run, "objective": solution.certificate.primal}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_process(task: str, where: str, size: int) -> dict[str, Any]:
    """One run in a process of its own."""
    own = ["benchmarks.scale.out_of_core_tasks", "--run", task, where, "--size", str(size)]
    done = subprocess.run([sys.executable, "-m", *own], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Run every task, in memory and on disk, in two sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=["tag", "align", "rerank", "segment"])
    parser.add_argument("--size", type=int, default=2000, help="examples of the larger run")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        warnings.simplefilter("ignore")
        print(json.dumps(measured(*given.run, given.size)), flush=True)
        return
    found: dict[str, Any] = {task: {} for task in given.tasks}
    for task, own in found.items():
        for where in ("files", "memory"):
            tenth, whole = (in_process(task, where, size) for size in (given.size // 10, given.size))
            own[where] = {"tenth": tenth, "all": whole, "growth": whole["peak_mb"] / tenth["peak_mb"] - 1.0}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
