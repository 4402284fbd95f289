"""Made transcripts of speech: an acoustic score, a language model and the length, tuned to the word error rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.candidates import Candidates
from maxmargin.tasks.reranking.made import SPEECH_WEIGHTS, made_transcripts
from maxmargin.tasks.reranking.metrics.names import metric_named
from maxmargin.tasks.reranking.metrics.resampling import compare_scores, score, score_interval
from maxmargin.tasks.reranking.training import Judged, RerankerSettings, train_reranker
from maxmargin.tasks.reranking.tuning.methods import METHODS

SIZE = 100
"""Hypotheses of a list."""

SHARES = np.linspace(0.0, 1.0, 21)
"""Weights of the language model that grids try, beside one minus it for the acoustic score."""

BONUSES = np.linspace(0.0, 10.0, 21)
"""Weights of the length that the larger grid tries."""

LINE, SQUARE = "grid, 21 points", "grid, 21 x 21 points"
FIRST, ORACLE = "one-best", "oracle"


def measure(n: int, jobs: int, plots: Path | None) -> dict[str, Any]:
    lists = made_transcripts(n, size=SIZE)
    metric = metric_named("wer")
    assert lists.references is not None
    judged = Judged.of(lists, lists.references, (metric,))
    train, test = judged.select(np.arange(n // 2)), judged.select(np.arange(n // 2, n))
    weights, seconds = {FIRST: np.array(SPEECH_WEIGHTS)}, {FIRST: (0.0, 0.0)}
    weights[LINE], seconds[LINE] = _timed(lambda: _grid(train, [0.0]))
    weights[SQUARE], seconds[SQUARE] = _timed(lambda: _grid(train, BONUSES))
    for name in METHODS:
        weights[name], seconds[name] = _timed(lambda name=name: _tuned(train, name, jobs))
    chosen = {name: _choose(test, own) for name, own in weights.items()}
    statistics = test.statistics[0]
    chosen[ORACLE] = Candidates(test.lists.sizes).first_largest(metric.sentence_quality(statistics))[0]
    found: dict[str, Any] = {}
    for name, rows in chosen.items():
        interval = score_interval(metric, statistics[rows])
        found[name] = {"WER": round(score(metric, statistics[rows]), 2), "interval": _rounded(interval)}
        for grid in (LINE, SQUARE) if name in METHODS else ():
            against = compare_scores(metric, statistics[chosen[grid]], statistics[rows])
            found[name][f"against {grid}"] = {
                "difference": round(against.difference, 2),
                "interval": _rounded(against),
                "p_value": round(against.p_value, 4),
            }
    for name, own in weights.items():
        found[name]["share_and_bonus"] = [round(one, 3) for one in _share(own)]
        found[name]["seconds"], found[name]["cpu_seconds"] = seconds[name]
    curve = [score(metric, statistics[_choose(test, _weights(share, 0.0))]) for share in SHARES]
    best = [
        min(score(metric, statistics[_choose(test, _weights(share, bonus))]) for bonus in BONUSES) for share in SHARES
    ]
    if plots is not None:
        found["plot"] = plot(found, curve, best, plots)
    every = {name: _timed(lambda name=name: _tuned(judged, name, jobs))[1] for name in ("max-margin", "mert")}
    return {
        "lists": [len(train), len(test)],
        "hypotheses": lists.n_hypotheses,
        "rows": found,
        "seconds_and_cpu_seconds_of_all_lists": every,
    }


def _timed(call: Callable[[], FloatArray]) -> tuple[FloatArray, tuple[float, float]]:
    """The result with its seconds by the clock and of CPU time."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return result, (round(time.perf_counter() - wall, 2), round(time.process_time() - cpu, 2))


def _tuned(train: Judged, method: str, jobs: int) -> FloatArray:
    """Weights in units of the features; five folds choose the settings of the method."""
    model = train_reranker(train, RerankerSettings(method=method, n_jobs=jobs))
    return np.array(list(model.dense_weights.values()))


def _weights(share: float, bonus: float) -> FloatArray:
    return np.array([1.0 - share, share, bonus])


def _share(weights: FloatArray) -> tuple[float, float]:
    """The weights of language model and length beside which those of both models add up to one."""
    acoustic, lm, length = weights.tolist()
    return lm / (acoustic + lm), length / (acoustic + lm)


def _choose(judged: Judged, weights: FloatArray) -> IntArray:
    return Candidates(judged.lists.sizes).first_largest(judged.lists.values @ weights)[0]


def _grid(train: Judged, bonuses: Sequence[float] | FloatArray) -> FloatArray:
    """The weights with the fewest errors on the training lists."""
    metric, statistics = train.metrics[0], train.statistics[0]

    def quality(weights: FloatArray) -> float:
        return float(metric.quality(statistics[_choose(train, weights)].sum(axis=0)))

    return max((_weights(share, bonus) for share, bonus in product(SHARES, bonuses)), key=quality)


def _rounded(interval: Any) -> list[float]:
    return [round(interval.low, 2), round(interval.high, 2)]


def plot(found: dict[str, Any], curve: Sequence[float], best: Sequence[float], out: Path) -> str:
    """Plot held-out WER against the share of the language model: grids as curves, tuned weights as points."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (whole, near) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    points = {name: (found[name]["share_and_bonus"][0], found[name]["WER"]) for name in (FIRST, LINE, SQUARE, *METHODS)}
    for panel in (whole, near):
        panel.plot(SHARES, curve, marker=".", color="gray", label="grid, length without weight")
        panel.plot(SHARES, best, marker=".", color="black", label="grid, best weight of the length for these lists")
        for number, (name, point) in enumerate(points.items()):
            marker = "o" if name in METHODS else "s"
            panel.plot(*point, marker, color=f"C{number}", markersize=8, alpha=0.8, label=name)
        panel.set_xlabel("weight of the language model; acoustic: 1 - it")
        panel.grid(alpha=0.3)
    whole.set_xlim(0.6, 1.0)
    whole.set_ylim(min(best) - 0.5, 1.15 * found[FIRST]["WER"])
    whole.set_ylabel("held-out WER, %")
    shares, rates = (np.array(own) for own in zip(*(points[name] for name in METHODS), strict=True))
    near.set_xlim(shares.min() - 0.01, shares.max() + 0.02)
    near.set_ylim(rates.min() - 0.05, rates.max() + 0.15)
    near.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9, frameon=False)
    path = out / "tasks" / "reranking_speech.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path.name
