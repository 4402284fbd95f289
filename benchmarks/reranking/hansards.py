"""The Hansards: cross-validated corpus BLEU of all methods on 100-best lists of two systems."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.reranking.held_out import SYSTEMS, Chooser, account, choices, parts, read, settings_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks.reranking.encoder.reranking import RerankingEncoder
from maxmargin.tasks.reranking.metrics.resampling import score
from maxmargin.tasks.reranking.training import Judged
from maxmargin.tasks.reranking.tuning.base import Method
from maxmargin.tasks.reranking.tuning.max_margin import LinearProgram7, LinearProgram8
from maxmargin.tasks.reranking.tuning.methods import METHODS

FEATURES = {"dense": RerankingEncoder(), "sparse": RerankingEncoder(ngrams=3, phrases=True)}
"""The given features alone, and with word n-grams up to three and phrase pairs."""

SPARSE_METHODS: dict[str, Callable[[], Method]] = {
    **{name: method for name, method in METHODS.items() if name != "mert"},
    "lp7": lambda: LinearProgram7(C=(3.0, 10.0, 30.0)),
    "lp8": lambda: LinearProgram8(C=(3.0, 10.0, 30.0)),
}
"""Methods that take sparse features; with a larger C the linear programs fit the training lists to the last one."""

GAINS = (0.3, 0.4)
"""True gains in BLEU for which the number of lists is worked out."""

Z_LEVEL, Z_POWER = 1.96, 0.84
"""Normal quantiles of a two-sided level of 5% and of a power of 80%."""


def measure(folder: Path, seeds: int, n_folds: int, jobs: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for system in SYSTEMS:
        judged = read(folder, system)
        found[system] = {"lists": len(judged), "features": len(judged.lists.names), **ends(judged)}
        for kind, encoder in FEATURES.items():
            methods = METHODS if kind == "dense" else SPARSE_METHODS
            settings = {name: settings_of(method()) for name, method in methods.items()}
            found[system][kind] = table(judged, encoder, settings, seeds, n_folds, jobs)
        rows = [*found[system]["dense"].values(), *found[system]["sparse"].values()]
        found[system]["resolution"] = resolution(rows, len(judged))
    return found


def resolution(rows: Sequence[Mapping[str, Any]], n: int) -> dict[str, Any]:
    """How small a gain so many lists can show, by the intervals of the first split.

    Half the width of the interval of a gain is about the least significant gain; intervals shrink with the square root
    of the number of lists. The method of median width tells how many lists find a true gain four times out of five.
    """
    halves = np.array([np.diff(row["of_first_split"]["gain_interval"])[0] / 2 for row in rows])
    median = float(np.median(halves))
    needed = {str(gain): round(n * ((Z_LEVEL + Z_POWER) / Z_LEVEL * median / gain) ** 2) for gain in GAINS}
    return {
        "significant gains": [round(float(one), 2) for one in (halves.min(), median, halves.max())],
        "lists needed for a gain": needed,
    }


def ends(judged: Judged) -> dict[str, Any]:
    """Scores of the first hypotheses, and of the ones that are best by themselves."""
    best = judged.lists.offsets[:-1] + np.array(
        [int(np.argmax(own)) for own in np.split(_sentences(judged), judged.lists.offsets[1:-1])]
    )
    return {"one-best": _scores(judged, judged.lists.offsets[:-1]), "oracle": _scores(judged, best)}


def _sentences(judged: Judged) -> Any:
    return judged.metrics[0].sentence_quality(judged.statistics[0])


def _scores(judged: Judged, rows: IntArray) -> dict[str, float]:
    pairs = zip(judged.metrics, judged.statistics, strict=True)
    return {metric.name: round(score(metric, own[rows]), 2) for metric, own in pairs}


def table(
    judged: Judged,
    encoder: RerankingEncoder,
    methods: Mapping[str, Sequence[Chooser]],
    seeds: int,
    n_folds: int,
    jobs: int,
) -> dict[str, Any]:
    """The account of each method over several splits, and the CPU seconds of a split."""
    chosen: dict[str, list[IntArray]] = {name: [] for name in methods}
    seconds = dict.fromkeys(methods, 0.0)
    with mm.threads(jobs):
        for seed in range(seeds):
            splits = parts(judged, encoder, n_folds, seed)
            for name, settings in methods.items():
                began = time.process_time()
                chosen[name].append(choices(judged, splits, settings))
                seconds[name] += time.process_time() - began
    return {
        name: {**account(judged, rows), "cpu_seconds": round(seconds[name] / seeds, 1)} for name, rows in chosen.items()
    }


def plot(found: dict[str, Any], rivals: dict[str, Any], out: Path) -> str:
    """Plot the gain of each method with its interval; one panel for each system."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SYSTEMS), figsize=(11, 6), layout="constrained", sharey=True)
    for panel, system in zip(axes, SYSTEMS, strict=True):
        own = found[system]
        first, oracle = own["one-best"]["BLEU"], own["oracle"]["BLEU"]
        groups = {
            "dense features": own["dense"],
            "with sparse features": own["sparse"],
            "rivals, dense features": rivals.get(system, {}),
        }
        names: list[str] = []
        for label, rows in groups.items():
            if not rows:
                continue
            at = len(names) + np.arange(len(rows))
            middle = np.array([first + row["gain"] for row in rows.values()])
            limits = np.array([row["gain_interval"] for row in rows.values()]) + first
            panel.errorbar(
                middle, at, xerr=np.abs(limits.T - middle), fmt="o", markersize=5, capsize=2, linewidth=1, label=label
            )
            names += [f"{name} +" if label.startswith("with") else name for name in rows]
        panel.axvline(first, color="black", linewidth=1, label=f"decoder one-best, {first:.2f}")
        panel.axvline(oracle, color="gray", linewidth=1, linestyle="--", label=f"oracle, {oracle:.2f}")
        panel.set_yticks(range(len(names)), names)
        panel.set_title(f"System {system}, {own['features']} features, {own['lists']} sentences", fontsize=11)
        panel.set_xlabel("held-out BLEU, 95% interval of the gain")
        panel.grid(alpha=0.3, axis="x")
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2, fontsize=8, frameon=False)
    axes[0].invert_yaxis()
    path = out / "tasks" / "reranking_hansards.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path.name
