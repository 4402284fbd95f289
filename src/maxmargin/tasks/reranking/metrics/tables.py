"""Scores as tables for the terminal and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from maxmargin.tasks.common.tables import numbers_table
from maxmargin.tasks.reranking.metrics.files import Evaluated
from maxmargin.tasks.reranking.metrics.resampling import compare_scores, score, score_interval

if TYPE_CHECKING:
    from rich.table import Table


def summary(names: Sequence[str], found: Evaluated, *, level: float = 0.95, seed: int = 0) -> dict[str, Any]:
    """The scores of systems on the same sentences, and how the first compares with the second, as plain values.

    Args:
        names: of the systems, one or two.
        found: their statistics.
        level: confidence level of intervals and tests.
        seed: random seed of the resamples.
    """
    metrics: list[dict[str, Any]] = []
    for at, metric in enumerate(found.metrics):
        of_systems = [one[at] for one in found.systems]
        entry: dict[str, Any] = {
            "metric": metric.name,
            "better": "lower" if metric.lower_is_better else "higher",
            "signature": metric.signature and f"nrefs:{found.n_references}|{metric.signature}",
            "systems": [],
        }
        for name, statistics in zip(names, of_systems, strict=True):
            around = score_interval(metric, statistics, level=level, seed=seed)
            ends = [around.low, around.high]
            entry["systems"].append({"hypotheses": name, "score": score(metric, statistics), "interval": ends})
        if len(of_systems) > 1:
            entry["against"] = compare_scores(metric, of_systems[1], of_systems[0], level=level, seed=seed).as_dict()
        metrics.append(entry)
    sizes = {"sentences": found.sentences, "references": found.n_references}
    return {**sizes, "interval_level": level, "metrics": metrics}


def scores_table(names: Sequence[str], found: dict[str, Any]) -> Table:
    """A table of what :func:`summary` returned, one column per system."""
    interval = f"  {100 * found['interval_level']:g}% interval"
    table = numbers_table("", *names)
    for one in found["metrics"]:
        systems = one["systems"]
        table.add_row(f"{one['metric']} ({one['better']} is better)", *(f"{system['score']:.2f}" for system in systems))
        table.add_row(interval, *(" to ".join(f"{end:.2f}" for end in system["interval"]) for system in systems))
        if "against" in one:
            table.add_row("  difference", f"{one['against']['difference']:+.2f}")
            table.add_row(interval, " to ".join(f"{end:+.2f}" for end in one["against"]["interval"]))
    table.add_row("sentences", *(str(found["sentences"]) for _ in names))
    return table


def verdict_lines(names: Sequence[str], found: dict[str, Any]) -> list[str]:
    """A line per metric that says whether the first system differs significantly from the second; none without one."""
    lines = [f"{one['metric']}: {one['against']['verdict']}" for one in found["metrics"] if "against" in one]
    return [f"{names[0]} against {names[1]}:", *lines] if lines else []


def signature_lines(found: dict[str, Any]) -> list[str]:
    """A line per metric that has a signature."""
    return [f"{one['metric']} {one['signature']}" for one in found["metrics"] if one["signature"]]
