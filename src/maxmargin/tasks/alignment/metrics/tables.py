"""Scores as tables for the terminal and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from maxmargin.tasks.alignment.metrics.scores import Scores, compare_scores, interval_of
from maxmargin.tasks.common.tables import add_comparisons, add_intervals, numbers_table, percent, signed_percent

if TYPE_CHECKING:
    from rich.table import Table


def summary(names: Sequence[str], scores: Sequence[Scores], *, level: float = 0.95, seed: int = 0) -> dict[str, Any]:
    """The scores of systems on the same sentences, and how they compare with the first, as plain values."""
    systems: list[dict[str, Any]] = []
    for name, one in zip(names, scores, strict=True):
        around = interval_of(one, level=level, seed=seed)
        entry = {"predicted_file": name, **one.as_dict(), "aer_interval": [around.low, around.high]}
        if systems:
            versus = compare_scores(scores[0], one, level=level, seed=seed)
            entry["against_first"] = versus.as_dict("aer_difference")
        systems.append(entry)
    return {"interval_level": level, "systems": systems}


def scores_table(names: Sequence[str], found: dict[str, Any]) -> Table:
    """A table of what :func:`summary` returned, one column per system."""
    systems, level = found["systems"], found["interval_level"]
    table = numbers_table("", *names)
    for title, key in (("AER %", "aer"), ("precision %", "precision"), ("recall %", "recall"), ("F1 %", "f1")):
        table.add_row(title, *(percent(system[key]) for system in systems))
        if key == "aer":
            add_intervals(table, level, [system["aer_interval"] for system in systems])
    table.add_row("balance", *(signed_percent(system["balance"]) for system in systems))
    for title, key in (
        ("sentences", "sentences"),
        ("exact sentences", "exact"),
        ("links predicted", "predicted"),
        ("  of these sure", "predicted_sure"),
        ("  of these possible", "predicted_possible"),
        ("sure links", "sure"),
        ("possible links", "possible"),
    ):
        table.add_row(title, *(str(system[key]) for system in systems))
    if len(systems) > 1:
        compared = [system["against_first"] for system in systems[1:]]
        add_comparisons(table, "AER", level, compared, difference="aer_difference")
    return table


def sentence_lines(scores: Sequence[Scores]) -> list[str]:
    """Tab-separated lines, one per sentence: its links in the reference, then the scores of each system."""
    head = ["sentence", "sure", "possible"]
    for number in range(1, len(scores) + 1):
        suffix = f"_{number}" if len(scores) > 1 else ""
        names = ("predicted", "predicted_sure", "predicted_possible", "aer", "precision", "recall")
        head += [name + suffix for name in names]
    lines = ["\t".join(head)]
    for number, row in enumerate(zip(*(one.per_sentence for one in scores), strict=True), start=1):
        cells = [str(number), str(row[0].sure), str(row[0].possible)]
        for one in row:
            cells += [str(one.predicted), str(one.predicted_sure), str(one.predicted_possible)]
            cells += [f"{rate:.4f}" for rate in (one.aer, one.precision, one.recall)]
        lines.append("\t".join(cells))
    return lines
