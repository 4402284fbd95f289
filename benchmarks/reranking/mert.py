"""Minimum error rate training on made lists: seconds with one and two threads, and plain NumPy for the same searches.

``python -m benchmarks.reranking.mert [--small]`` prints one JSON object. Lists have BLEU statistics that follow the
features a little. NumPy walks along the envelope of each list, sorts the changes of all and evaluates BLEU for all
intervals at once; a few searches of the same kind on the large lists. NumPy is compared by CPU time of one thread.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

import maxmargin as mm
from benchmarks.timing import significant
from maxmargin.structures._arrays import offsets_of
from maxmargin.tasks import _kernels
from maxmargin.tasks.reranking.metrics.bleu import Bleu
from maxmargin.tasks.reranking.tuning.base import TuningLists
from maxmargin.tasks.reranking.tuning.mert import Mert


def made_lists(n: int, size: int, d: int) -> TuningLists:
    """``n`` lists of ``size`` hypotheses with ``d`` features."""
    rng, total = np.random.default_rng(0), n * size
    rows = rng.standard_normal((total, d))
    skill = 0.35 + 0.1 * np.tanh(0.3 * rows @ rng.standard_normal(d) / np.sqrt(d) + rng.standard_normal(total))
    reference = rng.integers(8, 40, size=n).repeat(size)
    length = np.maximum(4, reference + rng.integers(-3, 4, size=total))
    grams = length[:, None] - np.arange(4)
    matches = rng.binomial(grams, skill[:, None] ** (1 + 0.8 * np.arange(4)))
    statistics = np.concatenate([matches, grams, length[:, None], reference[:, None]], axis=1).astype(np.float64)
    return TuningLists(offsets_of(np.full(n, size)), rows, statistics, Bleu(), np.zeros(d, dtype=np.int8))


def numpy_bleu(sums: np.ndarray) -> np.ndarray:
    """BLEU of corpora in which n-grams of all orders match."""
    precision = np.log(sums[:, :4] / sums[:, 4:8]).mean(axis=1)
    return np.exp(precision + np.minimum(0.0, 1.0 - sums[:, 9] / sums[:, 8]))


def numpy_search(lists: TuningLists, weights: np.ndarray, direction: np.ndarray) -> tuple[float, float]:
    """The middle of the best interval along a line, and its BLEU."""
    scores, slopes, at, changes, base = lists.rows @ weights, lists.rows @ direction, [], [], 0.0
    for first, last in zip(lists.offsets[:-1], lists.offsets[1:], strict=True):
        a, b, statistics = scores[first:last], slopes[first:last], lists.statistics[first:last]
        now = int(np.lexsort((-a, b))[0])
        base = base + statistics[now]
        while True:
            ahead = np.flatnonzero(b > b[now])
            if not len(ahead):
                break
            crossing = (a[now] - a[ahead]) / (b[ahead] - b[now])
            best = int(np.argmin(crossing))
            at.append(crossing[best])
            changes.append(statistics[ahead[best]] - statistics[now])
            now = int(ahead[best])
    order = np.argsort(at, kind="stable")
    gammas = np.array(at)[order]
    values = numpy_bleu(np.cumsum(np.concatenate([base[None], np.array(changes)[order]]), axis=0))
    best = int(np.argmax(values))
    ends = np.concatenate([[gammas[0] - 1.0], gammas, [gammas[-1] + 1.0]])
    return 0.5 * (ends[best] + ends[best + 1]), float(values[best])


def measured(n: int, size: int, d: int, restarts: int, searches: int) -> dict[str, object]:
    """The figures of one size; NumPy does so many searches."""
    lists, method = made_lists(n, size, d), Mert(restarts=restarts)
    seconds, cpu, tuned = {}, {}, {}
    for threads in (1, 2):
        with mm.threads(threads):
            began, cpu_began = time.perf_counter(), time.process_time()
            tuned[threads] = method.tune(lists)
            seconds[threads], cpu[threads] = time.perf_counter() - began, time.process_time() - cpu_began
    starts = np.random.default_rng(1).uniform(-1, 1, size=(searches, d))
    prepared = _kernels.MertLists.prepare(
        lists.offsets, lists.rows, lists.statistics, int(Bleu.formula), 1.0, np.zeros((0, d)), 1
    )
    in_numpy, alike = 0.0, True
    for at, start in enumerate(starts):
        began = time.process_time()
        _, value = numpy_search(lists, start, np.eye(d)[at % d])
        in_numpy += time.process_time() - began
        alike &= abs(prepared.search(start, lists.signs, at % d)[1] - value) < 1e-9
    line_searches = tuned[1].details["line_searches"]
    per_search = cpu[1] / line_searches
    return {
        "lists": n,
        "hypotheses": size,
        "features": d,
        "restarts": restarts,
        "line_searches": line_searches,
        "one_thread_seconds": significant(seconds[1], 3),
        "two_threads_seconds": significant(seconds[2], 3),
        "one_thread_cpu_seconds": significant(cpu[1], 3),
        "two_threads_cpu_seconds": significant(cpu[2], 3),
        "one_thread_restarts_per_second": significant(restarts / seconds[1], 3),
        "two_threads_restarts_per_second": significant(restarts / seconds[2], 3),
        "same_bits": tuned[1].weights.tobytes() == tuned[2].weights.tobytes(),
        "search_cpu_ms": significant(1e3 * per_search, 3),
        "numpy_search_cpu_ms": significant(1e3 * in_numpy / searches, 3),
        "times_faster_than_numpy": significant(in_numpy / searches / per_search, 3),
        "numpy_agrees": bool(alike),
        "bleu": significant(100 * tuned[1].details["quality"], 4),
        "bleu_at_start": significant(100 * tuned[1].details["start_quality"], 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="only the small lists")
    options = parser.parse_args()
    report: dict[str, object] = {"small": measured(100, 100, 4, restarts=20, searches=200)}
    if not options.small:
        report["large"] = measured(1000, 200, 10, restarts=1000, searches=10)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
