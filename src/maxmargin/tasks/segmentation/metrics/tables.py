"""Scores as tables for the terminal and as plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from maxmargin.tasks.common.resampling import Interval
from maxmargin.tasks.common.tables import add_comparisons, add_intervals, numbers_table, percent
from maxmargin.tasks.segmentation.metrics.scores import (
    Scores,
    boundary_interval,
    class_iou_intervals,
    compare_scores,
    error_interval,
    iou_interval,
)

if TYPE_CHECKING:
    from rich.table import Table

_RATES = (("error", "error"), ("mean IoU", "mean_iou"), ("boundary F", "boundary_f"))


def summary(names: Sequence[str], scores: Sequence[Scores], *, level: float = 0.95, seed: int = 0) -> dict[str, Any]:
    """The scores of systems on the same images, and how they compare with the first, as plain values."""
    systems: list[dict[str, Any]] = []
    for name, one in zip(names, scores, strict=True):
        entry: dict[str, Any] = {"predicted": name, "unit": one.unit, **one.as_dict()}
        intervals = {"error": error_interval(one, level=level, seed=seed)}
        intervals["mean_iou"] = iou_interval(one, level=level, seed=seed)
        if one.boundary is not None:
            intervals["boundary_f"] = boundary_interval(one, level=level, seed=seed)
        entry |= {f"{rate}_interval": _ends(around) for rate, around in intervals.items()}
        for of_class, around in zip(one.names, class_iou_intervals(one, level=level, seed=seed), strict=True):
            entry["classes"][of_class]["iou_interval"] = _ends(around)
        entry["per_image"] = one.per_image()
        if systems:
            entry["against_first"] = compare_scores(scores[0], one, level=level, seed=seed).as_dict("error_difference")
        systems.append(entry)
    return {"interval_level": level, "systems": systems}


def _ends(around: Interval) -> list[float] | None:
    return None if math.isnan(around.low) else [around.low, around.high]


def _cell(rate: float | None) -> str:
    return "-" if rate is None else percent(rate)


def scores_table(names: Sequence[str], found: dict[str, Any]) -> Table:
    """A table of what :func:`summary` returned, one column per system."""
    systems, level = found["systems"], found["interval_level"]
    unit = systems[0]["unit"]
    table = numbers_table("", *names)
    for title, key in _RATES:
        if key not in systems[0]:
            continue
        table.add_row(f"{unit} {title} %" if key == "error" else f"{title} %", *(_cell(one[key]) for one in systems))
        ends = [one[f"{key}_interval"] for one in systems]
        if all(ends):
            add_intervals(table, level, ends)
    table.add_row("mean error of images %", *(_cell(one["image_error"]) for one in systems))
    table.add_row("images" if unit == "pixel" else "scans", *(str(one["images"]) for one in systems))
    table.add_row(f"{unit}s", *(str(one[f"{unit}s"]) for one in systems))
    if any(one["without_class"] for one in systems):
        table.add_row("  without a predicted class", *(str(one["without_class"]) for one in systems))
    if len(systems) > 1:
        compared = [one["against_first"] for one in systems[1:]]
        add_comparisons(table, f"{unit} error", level, compared, difference="error_difference")
    return table


def class_table(found: dict[str, Any]) -> Table:
    """A table of one system of :func:`summary`, one row per class."""
    rates = [("IoU %", "iou"), ("recall %", "recall"), ("precision %", "precision")]
    if "boundary_f" in found:
        rates.append(("boundary F %", "boundary_f"))
    unit = found["unit"]
    table = numbers_table("class", *(title for title, _ in rates), f"{unit}s", f"predicted {unit}s")
    for name, one in found["classes"].items():
        counts = str(one[f"{unit}s"]), str(one[f"predicted_{unit}s"])
        table.add_row(_text(name), *(_cell(one[key]) for _, key in rates), *counts)
    return table


def confusion_table(found: dict[str, Any]) -> Table:
    """A table of one system of :func:`summary`: rows are gold classes, columns predicted ones."""
    table = numbers_table("gold \\ predicted", *found["classes"])
    for name, row in zip(found["classes"], found["confusion"], strict=True):
        table.add_row(_text(name), *map(str, row))
    return table


def image_table(found: dict[str, Any]) -> Table:
    """A table of one system of :func:`summary`, one row per image or scan, the worst first."""
    unit = found["unit"]
    rates = [(f"{title} %", key) for title, key in _RATES if key in found]
    table = numbers_table("image" if unit == "pixel" else "scan", *(title for title, _ in rates), f"{unit}s")
    for one in found["per_image"]:
        table.add_row(_text(one["image"]), *(_cell(one[key]) for _, key in rates), str(one[f"{unit}s"]))
    return table


def _text(name: str) -> Any:
    """A name without the marks that rich would read in it."""
    from rich.text import Text

    from maxmargin._terminal import printable

    return Text(printable(name), overflow="fold")
