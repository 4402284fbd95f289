"""Scores as tables for a terminal, as plain values for JSON, and confusions as a picture."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._terminal import printable
from maxmargin.tasks.tagging.metrics import MEASURES, TagScores, compare_scores, interval_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_TITLES = {"f1": "chunk F1", "accuracy": "token accuracy", "sentence_accuracy": "sentence accuracy"}


def summary(names: Sequence[str], scores: Sequence[TagScores], *, level: float = 0.95, seed: int = 0) -> dict[str, Any]:
    """What there is to say of systems on the same sentences, as plain values; the first one is the yardstick.

    Args:
        names: of the systems.
        scores: of each system.
        level: of the bootstrap intervals.
        seed: of the resampled sentences.
    """
    measures = [one for one in MEASURES if one != "f1" or all(each.chunks is not None for each in scores)]
    systems: list[dict[str, Any]] = []
    for name, one in zip(names, scores, strict=True):
        entry: dict[str, Any] = {"predicted_file": name, **one.summary(), "intervals": {}}
        for measure in measures:
            around = interval_of(one, measure, level=level, seed=seed)
            entry["intervals"][measure] = [around.low, around.high]
        if systems:
            entry["against_first"] = {}
            for measure in measures:
                versus = compare_scores(scores[0], one, measure, level=level, seed=seed)
                entry["against_first"][measure] = {
                    "difference": versus.difference,
                    "interval": [versus.low, versus.high],
                    "p_value": versus.p_value,
                }
        systems.append(entry)
    return {"interval_level": level, "systems": systems}


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


def _grid(*heads: str) -> Table:
    """A table whose first column is text and whose others are numbers."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for at, head in enumerate(heads):
        cell = Text(printable(head), overflow="fold")
        table.add_column(cell, justify="right" if at else "left", overflow="fold")
    return table


def scores_table(names: Sequence[str], metadata: dict[str, Any]) -> RenderableType:
    """What :func:`summary` says, one column per system."""
    from rich.text import Text

    systems = metadata["systems"]
    level = f"{100 * metadata['interval_level']:g}%"
    measures = [one for one in ("f1", "accuracy", "sentence_accuracy") if systems and one in systems[0]["intervals"]]
    table = _grid("", *names)
    for measure in measures:
        values = [system["chunks"]["f1"] if measure == "f1" else system[measure] for system in systems]
        table.add_row(f"{_TITLES[measure]} %", *map(_percent, values))
        ends = [" to ".join(map(_percent, system["intervals"][measure])) for system in systems]
        table.add_row(f"  {level} interval", *ends)
        if measure == "f1":
            for rate in ("precision", "recall"):
                table.add_row(f"chunk {rate} %", *(_percent(system["chunks"][rate]) for system in systems))
    table.add_row("macro F1 of labels %", *(_percent(system["macro_f1"]) for system in systems))
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
        found = [one[measure] for one in rest]
        table.add_row(f"{_TITLES[measure]} against first", "", *(f"{100 * one['difference']:+.2f}" for one in found))
        ends = [" to ".join(f"{100 * end:+.2f}" for end in one["interval"]) for one in found]
        table.add_row(f"  {level} interval", "", *ends)
        table.add_row("  p value", "", *(f"{one['p_value']:.4f}" for one in found))
    return table


def rates_table(rows: Sequence[dict[str, Any]], head: str) -> RenderableType:
    """Precision, recall and F1 by label or by type: ``summary()["labels"]`` or ``summary()["chunks"]["types"]``.

    Args:
        rows: what the scores' summary says of each.
        head: ``"label"`` or ``"type"``, which also names their names.
    """
    from rich.text import Text

    table = _grid(head, "precision %", "recall %", "F1 %", "gold", "predicted", "right")
    for row in rows:
        rates = [_percent(row[rate]) for rate in ("precision", "recall", "f1")]
        counts = [str(row[count]) for count in ("gold", "predicted", "correct")]
        table.add_row(Text(printable(row[head]) or "-"), *rates, *counts)
    return table


def confusions_table(rows: Sequence[dict[str, Any]], errors: int) -> RenderableType:
    """The most frequent confusions, ``summary()["confusions"]``, with their share of all ``errors``."""
    from rich.text import Text

    table = _grid("gold", "predicted", "tokens", "of errors %")
    table.columns[1].justify = "left"
    for row in rows:
        names = [Text(printable(row[side])) for side in ("gold", "predicted")]
        table.add_row(*names, str(row["tokens"]), f"{100 * row['tokens'] / errors:.1f}")
    return table


def most_confused(scores: TagScores, limit: int) -> list[Hashable]:
    """The labels with the most errors, gold or predicted, at most ``limit``, in their usual order."""
    gold, predicted, count = scores.pairs[scores.pairs[:, 0] != scores.pairs[:, 1]].T
    errors = np.bincount(gold, count, len(scores.labels)) + np.bincount(predicted, count, len(scores.labels))
    chosen = np.argsort(-errors, kind="stable")[:limit]
    return [scores.labels[at] for at in sorted(chosen.tolist())]


def draw_confusions(scores: TagScores, path: str | Path, *, limit: int = 25) -> None:
    """Draw the table of confusions, of the labels with the most errors, to a file such as ``confusions.png``.

    Args:
        scores: what was evaluated.
        path: the file; its ending says which format.
        limit: at most so many labels; the others are one row and one column, also of confusions among themselves.
    """
    from maxmargin.report.plots import plot_confusion

    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}; 25 is usual")
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
    plot_confusion(table, names, title=f"{scores.tokens} tokens, {_percent(scores.accuracy)}% right").savefig(
        path, dpi=150
    )
