"""Choices on held-out lists, by the rule of ``train_reranker``, for anything that chooses; and what they score.

Lists are split into folds. Each setting of a method is tuned on all folds but one and chooses in that one; a fold takes
the choices of the setting that the other folds prefer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads import need
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common.resampling import mean_interval
from maxmargin.tasks.reranking.encoder.reranking import RerankingEncoder
from maxmargin.tasks.reranking.files import Reading, read_judged
from maxmargin.tasks.reranking.metrics.resampling import compare_scores, score, score_interval
from maxmargin.tasks.reranking.training import Judged, decoder_start
from maxmargin.tasks.reranking.tuning.base import Method, TuningLists
from maxmargin.training.selection import folds

SYSTEMS = {"B": "sysB_dev2", "A": "sysA_dev2"}
"""Systems of the Hansards: four features of the decoder, and these with 18 more."""


def read(folder: Path, system: str) -> Judged:
    """Lists of a system with BLEU, which is tuned, and chrF."""
    base = need(folder / "reranking")
    own = base / SYSTEMS[system]
    return read_judged(
        Reading(encoding="latin-1"),
        own / "100best.gz",
        features=[own / "ffvals.gz", *sorted(own.glob("ff.*.gz"))],
        references=[base / "dev2_en.al"],
        sources=base / "dev2_fr.al",
        segments=own / "pal.gz",
    )


@dataclass(frozen=True, eq=False)
class Part:
    """Lists to tune on and lists held out.

    Attributes:
        train: the lists to tune on.
        test: the lists held out.
        numbers: which of all lists these are.
        start: the decoder's own weights.
        seed: of the split, and of random draws.
    """

    train: TuningLists
    test: TuningLists
    numbers: IntArray
    start: FloatArray | None
    seed: int


Chooser = Callable[[Part], IntArray]
"""Tunes on a part and returns the rows chosen in its held-out lists."""


def settings_of(method: Method) -> list[Chooser]:
    """The settings of a tuning method that held-out lists choose from."""

    def chooser(one: Method) -> Chooser:
        return lambda part: part.test.choose(one.tune(part.train, start=part.start, seed=part.seed).weights)

    return [chooser(one) for one in method.candidates()]


def parts(judged: Judged, encoder: RerankingEncoder, n_folds: int, seed: int) -> list[Part]:
    """The folds with their features."""
    found, every = [], np.arange(len(judged))
    for numbers in folds(len(judged), n_folds, seed):
        train, test = judged.select(np.setdiff1d(every, numbers)), judged.select(numbers)
        fitted, rows = encoder.fit_rows(train.lists)
        signs = np.zeros(fitted.n_weights, dtype=np.int8)
        lists = train.tuning_lists(rows, signs)
        start = decoder_start(train, len(fitted.names), lists)
        found.append(Part(lists, test.tuning_lists(fitted.rows(test.lists), signs), numbers, start, seed))
    return found


def choices(judged: Judged, splits: Sequence[Part], settings: Sequence[Chooser]) -> IntArray:
    """The row chosen in each list, shape ``(n_lists,)``."""
    chosen = [[choose(part) for choose in settings] for part in splits]
    pairs = list(zip(splits, chosen, strict=True))
    sums = np.array([[part.test.statistics[rows].sum(axis=0) for rows in own] for part, own in pairs])
    metric = judged.metrics[0]
    taken = np.empty(len(judged), dtype=np.int64)
    for (part, own), without in zip(pairs, sums.sum(axis=0) - sums, strict=True):
        rows = own[int(np.argmax(metric.quality(without)))]
        taken[part.numbers] = judged.lists.offsets[part.numbers] + rows - part.test.offsets[:-1]
    return taken


def account(judged: Judged, chosen: Sequence[IntArray]) -> dict[str, Any]:
    """Scores of the choices of several splits: means, spread, and against the first hypothesis of each list.

    "gain" is the mean over splits, with the bootstrap interval that resampled sentences give this mean;
    "of_first_split" is what a user with one split reads.
    """
    metric, statistics, first = judged.metrics[0], judged.statistics[0], judged.lists.offsets[:-1]
    scores = [score(metric, statistics[rows]) for rows in chosen]
    both = [np.concatenate([statistics[first], statistics[rows]], axis=1) for rows in chosen]

    def gain(sums: FloatArray) -> FloatArray:
        before, after = np.split(sums, 2, axis=-1)
        return 100.0 * (metric.quality(after) - metric.quality(before))

    gains = mean_interval(both, gain)
    compared = [compare_scores(metric, statistics[first], statistics[rows]) for rows in chosen]
    once = compared[0]
    interval = score_interval(metric, statistics[chosen[0]])
    return {
        metric.name: round(float(np.mean(scores)), 2),
        "spread": round(float(np.std(scores, ddof=1)), 2) if len(scores) > 1 else None,
        "gain": round(float(np.mean(scores)) - score(metric, statistics[first]), 2),
        "gain_interval": [round(gains.low, 2), round(gains.high, 2)],
        "significant_splits": sum(one.significant for one in compared),
        "of_first_split": {
            "score": round(scores[0], 2),
            "interval": [round(interval.low, 2), round(interval.high, 2)],
            "gain_interval": [round(once.low, 2), round(once.high, 2)],
            "p_value": round(once.p_value, 3),
        },
        **{
            other.name: round(float(np.mean([score(other, own[rows]) for rows in chosen])), 2)
            for other, own in zip(judged.metrics[1:], judged.statistics[1:], strict=True)
        },
    }
