"""What hansards.py measures, one function each; all give plain values."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.timing import Budget
from benchmarks.workloads import hansards_text
from maxmargin.tasks.alignment import (
    BitextModels,
    Prediction,
    Reference,
    Scores,
    SentencePair,
    WordAligner,
    evaluate,
    read_links,
)
from maxmargin.tasks.alignment.annotated import AnnotatedPairs, Imputation
from maxmargin.tasks.alignment.encoder.alignment import AlignmentEncoder
from maxmargin.tasks.alignment.encoder.evidence import Evidence, best_links
from maxmargin.tasks.alignment.metrics.scores import interval_of
from maxmargin.tasks.alignment.metrics.symmetrization import symmetrize
from maxmargin.tasks.alignment.training import AlignerSettings
from maxmargin.tasks.alignment.translation.models import TranslationModel
from maxmargin.tasks.alignment.translation.words import IndexedBitext
from maxmargin.training import train_examples
from maxmargin.training.selection import folds

SEED = 0
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
N_TRAIN = 100
"""The first so many of the annotated pairs are ``train``, the others ``dev``."""

FIXED = {"C": 0.1, "false_negative": 2.0}
"""The middle of what the aligner chooses from."""

STEPS = (
    "association",
    "model1",
    "position",
    "orthography",
    "frequency",
    "hmm",
    "neighbors",
    "null",
    "posteriors",
    "lexical",
)
"""Groups of features in the order in which they are added; the first comes with the bias."""


@dataclass(frozen=True)
class Task:
    """Annotated pairs, ``train`` first, and those without annotations."""

    pairs: list[SentencePair]
    references: list[Reference]
    bitext: list[SentencePair]

    @classmethod
    def read(cls, folder: Path, n_bitext: int | None) -> Task:
        """From the folder of the data, with the first ``n_bitext`` pairs of the bitext."""
        return cls(*hansards_text(folder, n_bitext))

    @property
    def text(self) -> list[SentencePair]:
        """All pairs without their links."""
        return [*self.bitext, *self.pairs]

    def take(self, numbers: Sequence[int] | np.ndarray) -> tuple[list[SentencePair], list[Reference]]:
        """The annotated pairs of these numbers, and their references."""
        return [self.pairs[i] for i in numbers], [self.references[i] for i in numbers]


def percent(value: float) -> float:
    return round(100 * value, 2)


def rates(scores: Scores) -> dict[str, Any]:
    span = interval_of(scores)
    return {
        "AER %": percent(scores.aer),
        "interval %": [percent(span.low), percent(span.high)],
        "precision %": percent(scores.precision),
        "recall %": percent(scores.recall),
    }


def parts(scores: Scores) -> dict[str, Any]:
    """The rates over all annotated pairs, and the AER of both parts."""
    train100, dev37 = Scores.of(scores.counts[:N_TRAIN]), Scores.of(scores.counts[N_TRAIN:])
    return {**rates(scores), "train100 %": percent(train100.aer), "dev37 %": percent(dev37.aer)}


@contextmanager
def clock() -> Iterator[Callable[[], float]]:
    began = time.perf_counter()
    yield lambda: round(time.perf_counter() - began, 2)


# Supervised, cross-validated.


def crossed(task: Task, settings: dict[str, Any], k: int, keep: list[Any] | None = None) -> dict[str, Any]:
    """Every pair predicted by an aligner that was not trained on it; ``keep`` receives the links at each threshold.

    As many folds at a time as there are threads, each with one: training is mostly one after the other.
    """
    n = len(task.pairs)
    predictions: list[Any] = [None] * n
    confident: dict[float, list[Any]] = {threshold: [None] * n for threshold in THRESHOLDS}
    chosen: Counter[str] = Counter()
    one_thread = {**settings, "n_jobs": 1}

    def fold(held: np.ndarray) -> None:
        aligner = WordAligner(**one_thread).fit(*task.take(np.setdiff1d(np.arange(n), held)))
        chosen["C {C:g}, cost {false_negative:g}".format(**aligner.model_.metadata)] += 1
        X, _ = task.take(held)
        for i, links in zip(held, aligner.predict(X), strict=True):
            predictions[i] = links
        if keep is not None:
            for threshold, found in confident.items():
                for i, one in zip(held, aligner.align(X, threshold=threshold), strict=True):
                    found[i] = one

    with ThreadPoolExecutor(settings["n_jobs"]) as pool:
        list(pool.map(fold, folds(n, k, SEED)))
    if keep is not None:
        keep += [predictions, confident]
    return {**parts(evaluate(task.references, predictions)), "chosen": dict(chosen.most_common())}


def one_way(task: Task, settings: dict[str, Any], learned: np.ndarray, tested: np.ndarray) -> dict[str, Any]:
    aligner = WordAligner(**settings).fit(*task.take(learned))
    X, y = task.take(tested)
    return rates(evaluate(y, aligner.predict(X)))


def learning_curve(task: Task, settings: dict[str, Any], size: int, draws: int) -> dict[str, Any]:
    """Trained on ``size`` pairs at random, tested on 37 others, the same for all sizes."""
    found = []
    for draw_ in range(draws):
        order = np.random.default_rng(SEED + draw_).permutation(len(task.pairs))
        aligner = WordAligner(**settings).fit(*task.take(order[:size]))
        X, y = task.take(order[N_TRAIN:])
        found.append(evaluate(y, aligner.predict(X)).aer)
    return {"pairs": size, "mean AER %": percent(np.mean(found)), "AER % of each draw": list(map(percent, found))}


# Solvers, at fixed settings.


def annotated_pairs(task: Task, models: BitextModels) -> AnnotatedPairs:
    """All annotated pairs with the features and the fertility that the aligner has by default."""
    lexical = models.words.frequent(AlignerSettings.frequent_pairs)
    encoder = AlignmentEncoder.of(models, lexical, groups=("bias", *STEPS))
    return AnnotatedPairs.annotated(encoder, encoder.batch(task.pairs), task.references)


def solver_row(pairs: AnnotatedPairs, solver: mm.solvers.Solver | str, limit: float, k: int) -> dict[str, Any]:
    settings = AlignerSettings(**FIXED, solver=solver, random_state=SEED)
    run = replace(settings.of_run(settings.middle, 1e-3), max_iter=10**7)
    if not isinstance(solver, str) and (reason := solver.unsupported(pairs.problem(run, FIXED["C"]))):
        return {"refused": reason}
    online = isinstance(solver, mm.AveragedPerceptron | mm.Mira)
    if online:  # they do not minimize the objective; they end after their own number of passes
        run = replace(run, max_iter=None)
    found = np.zeros(len(pairs.sure), dtype=bool)
    gaps, status, used = [], Counter[str](), set()
    seconds = 0.0
    for held in folds(len(pairs), k, SEED):
        part = pairs.select(np.setdiff1d(np.arange(len(pairs)), held))
        budget = Budget(limit)
        model = train_examples(part, run if online else replace(run, callbacks=(budget,)), hooks=Imputation(rounds=0))
        seconds += budget.used()
        found[pairs.batch.matchings.grid_of(held)] = pairs.select(held).margins(model.weights) > 0
        solution = model.training.solution
        gaps.append(solution.certificate.relative_gap)
        status[str(solution.status)] += 1
        used.add(type(solution.solver).__name__)
    return {
        **parts(pairs.evaluate(found)),
        "training CPU seconds": round(seconds, 1),
        "largest gap": None if online else float(f"{max(gaps):.2g}"),
        "status": dict(status),
        "solver": ", ".join(sorted(used)),
    }


# Without annotations.


def directed(
    task: Task, models: BitextModels, model: TranslationModel, kind: str
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The links of each direction of a model of words."""
    source, target = [pair.source for pair in task.pairs], [pair.target for pair in task.pairs]
    evidence = Evidence.of(models, IndexedBitext.of(source, target))
    batch = model.cooccurrences.batch(IndexedBitext.of(source, target))
    p = model.posteriors(batch, model.cooccurrences.entries(batch), model=kind)
    evidence = replace(
        evidence,
        hmm_forward=p.forward,
        hmm_backward=p.backward,
        null_source=p.null_source,
        null_target=p.null_target,
    )
    start = evidence.bitext.grid_start
    forward, backward = (
        [
            np.argwhere(grid[start[i] : start[i + 1]].reshape(len(source[i]), len(target[i])))
            for i in range(len(task.pairs))
        ]
        for grid in best_links(evidence)
    )
    return forward, backward


def bootstrap_row(task: Task, settings: dict[str, Any], n_pairs: int) -> dict[str, Any]:
    with clock() as elapsed:
        aligner = WordAligner(**settings).bootstrap(task.text, n_pairs=n_pairs)
        seconds = elapsed()
    solution = aligner.solution_
    return {
        **parts(evaluate(task.references, aligner.predict(task.pairs))),
        "training seconds": seconds,
        "largest gap": float(f"{solution.certificate.relative_gap:.2g}"),
        "solver": type(solution.solver).__name__,
    }


def bootstrap_samples(task: Task, settings: dict[str, Any], n_pairs: int, seeds: Sequence[int]) -> dict[str, Any]:
    """The AER on all annotated pairs and on both parts, by the sample of pairs that weights are learned from."""
    rows = [bootstrap_row(task, {**settings, "random_state": seed}, n_pairs) for seed in seeds]
    return {f"{key} of each": [row[key] for row in rows] for key in ("AER %", "train100 %", "dev37 %")}


def eflomal(task: Task, folder: Path) -> tuple[dict[str, list[np.ndarray]], dict[str, Any]]:
    """eflomal's links of the annotated pairs: its command, as a separate program, on lower-cased text."""
    text, forward, backward = folder / "text", folder / "forward", folder / "backward"
    text.write_text(
        "".join(f"{' '.join(pair.source)} ||| {' '.join(pair.target)}\n".lower() for pair in task.text),
        encoding="utf-8",
    )
    command = ["eflomal-align", "-i", text, "--model", "3", "--overwrite", "-f", forward, "-r", backward]
    usage = child(list(map(str, command)))
    n = len(task.pairs)
    both = [[one.links for one in read_links(file, format="pharaoh")[-n:]] for file in (forward, backward)]
    return {method: symmetrize(*both, method) for method in ("intersection", "grow-diag-final-and")}, usage


# Throughput.


def child(command: list[str], out: Path | None = None) -> dict[str, Any]:
    """Run a program; seconds and peak memory, of all its own children too."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    began = time.perf_counter()
    with open(out or os.devnull, "wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.PIPE, env=environment)
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {said.decode()[-500:]}")
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "CPU seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak MB": round(usage.ru_maxrss / 1024),
    }


def speed(task: Task, aligner: WordAligner, jobs: int, n: int, confidence: bool) -> dict[str, Any]:
    chosen = np.random.default_rng(SEED).permutation(len(task.bitext))[:n]
    X = [task.bitext[i] for i in chosen]
    aligner.set_params(n_jobs=jobs)
    cpu = time.process_time()
    with clock() as elapsed:
        links = aligner.align(X) if confidence else aligner.predict(X)
        seconds = elapsed()
    cpu = time.process_time() - cpu
    done = len(links)
    return {
        "pairs": done,
        "threads": jobs,
        "pairs/s": round(done / seconds),
        "pairs/CPU s": round(done / cpu),
    }


# Confidence.


def calibration(task: Task, predicted: list[np.ndarray], confident: dict[float, list[Prediction]]) -> dict[str, Any]:
    """How far confidences are from the share of links that annotators call possible, out of fold."""
    size = 1 << 10
    confidence, possible, best = [], [], []
    for reference, links, one in zip(task.references, predicted, confident[THRESHOLDS[0]], strict=True):
        keys = one.links @ [size, 1]
        possible.append(np.isin(keys, reference.possible @ [size, 1]))
        best.append(np.isin(keys, links @ [size, 1]))
        confidence.append(one.confidence)
    p, right, chosen = (np.concatenate(parts_) for parts_ in (confidence, possible, best))
    edges = np.array([0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0])
    bins = []
    for low, high in pairwise(edges.tolist()):
        inside = (p >= low) & ((p < high) | (high == 1.0))
        bins.append(
            {
                "from": low,
                "to": high,
                "links": int(inside.sum()),
                "confidence %": percent(p[inside].mean()) if inside.any() else None,
                "possible %": percent(right[inside].mean()) if inside.any() else None,
            }
        )
    curve = []
    for threshold, found in confident.items():
        scores = evaluate(task.references, found)
        curve.append(
            {
                "threshold": threshold,
                "precision %": percent(scores.precision),
                "recall %": percent(scores.recall),
                "AER %": percent(scores.aer),
            }
        )
    return {
        "error of predicted links %": percent(expected_error(p[chosen], right[chosen])),
        "error of links above 0.05 %": percent(expected_error(p[p > 0.05], right[p > 0.05])),
        "mean confidence of predicted links %": percent(p[chosen].mean()),
        "possible of predicted links %": percent(right[chosen].mean()),
        "bins": bins,
        "curve": curve,
    }


def expected_error(p: np.ndarray, right: np.ndarray, bins: int = 10) -> float:
    """The expected calibration error over bins of equally many links."""
    order = np.array_split(np.argsort(p, kind="stable"), bins)
    return float(sum(len(b) * abs(p[b].mean() - right[b].mean()) for b in order if len(b)) / max(len(p), 1))
