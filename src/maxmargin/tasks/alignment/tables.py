"""Scores as tables for a terminal and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from maxmargin._terminal import printable
from maxmargin.tasks.alignment.metrics import Scores, compare_scores, interval_of

if TYPE_CHECKING:
    from rich.console import RenderableType


def summary(names: Sequence[str], scores: Sequence[Scores], *, level: float = 0.95, seed: int = 0) -> dict[str, Any]:
    """What there is to say of systems on the same sentences, as plain values; the first one is the yardstick."""
    systems: list[dict[str, Any]] = []
    for name, one in zip(names, scores, strict=True):
        around = interval_of(one, level=level, seed=seed)
        entry = {"predicted_file": name, **one.as_dict(), "aer_interval": [around.low, around.high]}
        if systems:
            versus = compare_scores(scores[0], one, level=level, seed=seed)
            entry["against_first"] = {
                "aer_difference": versus.difference,
                "interval": [versus.low, versus.high],
                "p_value": versus.p_value,
            }
        systems.append(entry)
    return {"interval_level": level, "systems": systems}


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


def scores_table(names: Sequence[str], metadata: dict[str, Any]) -> RenderableType:
    """One column per system."""
    from rich.table import Table
    from rich.text import Text

    systems = metadata["systems"]
    level = f"{100 * metadata['interval_level']:g}%"
    table = Table(box=None, pad_edge=False)
    table.add_column()
    for name in names:
        table.add_column(Text(printable(name), overflow="fold"), justify="right", overflow="fold")
    for title, key in (("AER %", "aer"), ("precision %", "precision"), ("recall %", "recall"), ("F1 %", "f1")):
        table.add_row(title, *(_percent(system[key]) for system in systems))
        if key == "aer":
            ends = [" to ".join(_percent(end) for end in system["aer_interval"]) for system in systems]
            table.add_row(f"  {level} interval", *ends)
    table.add_row("balance", *(f"{100 * system['balance']:+.2f}" for system in systems))
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
        rest = [system["against_first"] for system in systems[1:]]
        table.add_row("AER against first", "", *(f"{100 * one['aer_difference']:+.2f}" for one in rest))
        ends = [" to ".join(f"{100 * end:+.2f}" for end in one["interval"]) for one in rest]
        table.add_row(f"  {level} interval", "", *ends)
        table.add_row("  p value", "", *(f"{one['p_value']:.4f}" for one in rest))
    return table


def sentence_lines(scores: Sequence[Scores]) -> list[str]:
    """A line per sentence: its number, sure and possible links, then for each system links, right ones and AER.

    Columns are separated by tabs, so that other programs can read them.
    """
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
