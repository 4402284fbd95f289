"""Scores as tables for a terminal and as plain values for JSON; confusion matrices as images."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._files import replacing
from maxmargin._terminal import printable
from maxmargin.tasks.common.tables import add_comparisons, add_intervals, numbers_table, percent
from maxmargin.tasks.tagging.metrics.scores import MEASURES, TagScores, compare_scores, interval_of

if TYPE_CHECKING:
    from rich.console import RenderableType

_TITLES = {"f1": "chunk F1", "accuracy": "token accuracy", "sentence_accuracy": "sentence accuracy"}


def summary(names: Sequence[str], scores: Sequence[TagScores], *, level: float = 0.95, seed: int = 0) -> dict[str, Any]:
    """Return plain values of systems on the same sentences, which are compared with the first one.

    Args:
        names: names of the systems.
        scores: scores of each system.
        level: confidence level of the bootstrap intervals.
        seed: random seed of the bootstrap.
    """
    measures = [one for one in MEASURES if one != "f1" or all(each.chunks is not None for each in scores)]
    systems: list[dict[str, Any]] = []
    for name, one in zip(names, scores, strict=True):
        entry: dict[str, Any] = {"predicted_file": name, **one.summary(), "intervals": {}}
        for measure in measures:
            around = interval_of(one, measure, level=level, seed=seed)
            entry["intervals"][measure] = [around.low, around.high]
        if systems:
            entry["against_first"] = {
                measure: compare_scores(scores[0], one, measure, level=level, seed=seed).as_dict()
                for measure in measures
            }
        systems.append(entry)
    return {"interval_level": level, "systems": systems}


def scores_table(names: Sequence[str], metadata: dict[str, Any]) -> RenderableType:
    """Return the table of a :func:`summary`, one column per system."""
    from rich.text import Text

    systems = metadata["systems"]
    level = metadata["interval_level"]
    measures = [one for one in ("f1", "accuracy", "sentence_accuracy") if systems and one in systems[0]["intervals"]]
    table = numbers_table("", *names)
    for measure in measures:
        values = [system["chunks"]["f1"] if measure == "f1" else system[measure] for system in systems]
        table.add_row(f"{_TITLES[measure]} %", *map(percent, values))
        add_intervals(table, level, (system["intervals"][measure] for system in systems))
        if measure == "f1":
            for rate in ("precision", "recall"):
                table.add_row(f"chunk {rate} %", *(percent(system["chunks"][rate]) for system in systems))
    table.add_row("macro F1 of labels %", *(percent(system["macro_f1"]) for system in systems))
    for title, key in (
        ("sentences", "sentences"),
        ("  of these exact", "exact"),
        ("tokens", "tokens"),
        ("  of these right", "correct"),
    ):
        table.add_row(title, *(str(system[key]) for system in systems))
    if "f1" in measures:
        for title, key in (("gold chunks", "gold"), ("predicted chunks", "predicted"), ("  of these right", "correct")):
            table.add_row(title, *(str(system["chunks"][key]) for system in systems))
    if any(system["unseen_labels"] for system in systems):
        unseen = [Text(", ".join(map(printable, system["unseen_labels"]))) for system in systems]
        table.add_row("labels unknown to it", *unseen)
    rest = [system["against_first"] for system in systems[1:]]
    for measure in measures if rest else ():
        add_comparisons(table, _TITLES[measure], level, [one[measure] for one in rest])
    return table


def rates_table(rows: Sequence[dict[str, Any]], head: str) -> RenderableType:
    """Return the table of precision, recall and F1 by label or by type.

    Args:
        rows: ``summary()["labels"]`` or ``summary()["chunks"]["types"]``.
        head: ``"label"`` or ``"type"``, the title of the names and their key in ``rows``.
    """
    from rich.text import Text

    table = numbers_table(head, "precision %", "recall %", "F1 %", "gold", "predicted", "right")
    for row in rows:
        rates = [percent(row[rate]) for rate in ("precision", "recall", "f1")]
        counts = [str(row[count]) for count in ("gold", "predicted", "correct")]
        table.add_row(Text(printable(row[head]) or "-"), *rates, *counts)
    return table


def confusions_table(rows: Sequence[dict[str, Any]], errors: int) -> RenderableType:
    """Return the table of the most frequent confusions, ``summary()["confusions"]``, with their share of ``errors``."""
    from rich.text import Text

    table = numbers_table("gold", "predicted", "tokens", "of errors %")
    table.columns[1].justify = "left"
    for row in rows:
        names = [Text(printable(row[side])) for side in ("gold", "predicted")]
        table.add_row(*names, str(row["tokens"]), f"{100 * row['tokens'] / errors:.1f}")
    return table


def most_confused(scores: TagScores, limit: int) -> list[Hashable]:
    """Return the ``limit`` labels with the most errors, gold or predicted, in the order of all labels."""
    gold, predicted, count = scores.pairs[scores.pairs[:, 0] != scores.pairs[:, 1]].T
    errors = np.bincount(gold, count, len(scores.labels)) + np.bincount(predicted, count, len(scores.labels))
    chosen = np.argsort(-errors, kind="stable")[:limit]
    return [scores.labels[at] for at in sorted(chosen.tolist())]


def draw_confusions(scores: TagScores, path: str | Path, *, limit: int = 25) -> None:
    """Draw the confusion matrix of the labels with the most errors to a file such as ``confusions.png``.

    Args:
        scores: the scores.
        path: the file; its extension decides the format.
        limit: number of labels; the others share one row and one column.
    """
    from maxmargin.report.plots import plot_confusion

    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    shown = scores.labels if len(scores.labels) <= limit else most_confused(scores, limit)
    names = [str(label) for label in shown]
    place = {label: at for at, label in enumerate(shown)}
    rest = len(shown)
    at = np.array([place.get(label, rest) for label in scores.labels], dtype=np.int64)
    table = np.zeros((rest + 1, rest + 1), dtype=np.int64)
    gold, predicted, count = scores.pairs.T
    np.add.at(table, (at[gold], at[predicted]), count)
    if rest < len(scores.labels):
        names.append(f"{len(scores.labels) - rest} others")
    else:
        table = table[:rest, :rest]
    figure = plot_confusion(table, names, title=f"{scores.tokens} tokens, {percent(scores.accuracy)}% right")
    with replacing(path) as file:
        figure.savefig(file, dpi=150, format=Path(path).suffix[1:] or "png")
