"""What held-out lists say of a reranker, plainly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maxmargin.structures.base import FloatArray
from maxmargin.tasks.common.resampling import Interval
from maxmargin.tasks.common.tables import numbers_table
from maxmargin.tasks.reranking.metrics.base import Metric
from maxmargin.tasks.reranking.metrics.resampling import ScoreComparison, compare_scores, score, score_interval
from maxmargin.tasks.reranking.tuning.base import Method

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class HeldOut:
    """A metric of the choices on lists that the weights did not see, beside the first hypothesis of each list.

    Numbers are as users read them, in percent.

    Attributes:
        metric: its name.
        tuned: whether the weights were tuned to it.
        first: of the first hypothesis of each list, the decoder's choice.
        reranked: of the reranker's choices.
        oracle: of the hypothesis of each list that is best by itself.
        interval: bootstrap interval of ``reranked``.
        comparison: ``reranked - first``, with its interval and significance.
        decimals: digits behind the point in tables.
        baseline: what ``first`` is, for the verdict.
    """

    metric: str
    tuned: bool
    first: float
    reranked: float
    oracle: float
    interval: Interval
    comparison: ScoreComparison
    decimals: int = 2
    baseline: str = "the first hypothesis of each list"

    @classmethod
    def of(
        cls,
        metric: Metric,
        first: FloatArray,
        reranked: FloatArray,
        oracle: FloatArray,
        *,
        tuned: bool,
        level: float = 0.95,
        seed: int = 0,
    ) -> HeldOut:
        """Compare statistics of the chosen hypotheses, each of shape ``(n_lists, metric.n_statistics)``."""
        return cls(
            metric=metric.name,
            tuned=tuned,
            first=score(metric, first),
            reranked=score(metric, reranked),
            oracle=score(metric, oracle),
            interval=score_interval(metric, reranked, level=level, seed=seed),
            comparison=compare_scores(metric, first, reranked, level=level, seed=seed),
            decimals=metric.decimals,
        )

    def shown(self, value: float, *, signed: bool = False) -> str:
        """A score of the metric as text, or with ``signed`` a difference."""
        return f"{value:{'+' if signed else ''}.{self.decimals}f}"

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        difference = self.shown(self.comparison.difference, signed=True)
        size = f"{self.metric} {difference}, p = {self.comparison.p_value:.4f}"
        if not self.comparison.significant:
            return f"no significant gain over {self.baseline} ({size})"
        better = (self.comparison.difference < 0.0) == self.comparison.lower_is_better
        word = "better" if better else "worse"
        return f"significantly {word} than {self.baseline} ({size})"

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "metric": self.metric,
            "tuned": self.tuned,
            "first": self.first,
            "reranked": self.reranked,
            "oracle": self.oracle,
            "interval": [self.interval.low, self.interval.high],
            "difference": self.comparison.difference,
            "difference_interval": [self.comparison.low, self.comparison.high],
            "p_value": self.comparison.p_value,
            "significant": self.comparison.significant,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Report:
    """How the settings of a reranker were chosen, and what it gains.

    Attributes:
        variant: the method with the settings taken.
        tried: settings with their quality on held-out lists, as users read it; one entry if there was no choice.
        folds: number of folds; 0 if dev lists were used.
        held_out: the metric tuned, then others; empty if nothing was held out.
        details: what the method says of its last run.
    """

    variant: Method
    tried: tuple[tuple[dict[str, Any], float], ...]
    folds: int
    held_out: tuple[HeldOut, ...]
    details: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "method": self.variant.name,
            **self.variant.describe(),
            "tried": [{**settings, "score": score} for settings, score in self.tried],
            "folds": self.folds,
            "held_out": [one.as_dict() for one in self.held_out],
            **self.details,
        }


def report_tables(report: Report) -> Iterator[Table]:
    """Yield tables for a terminal: the settings that were tried, and what held-out lists said."""
    if len(report.tried) > 1:
        yield _tried_table(report)
    if report.held_out:
        yield _held_out_table(report)


def conclusions(report: Report) -> Iterator[str]:
    """Yield sentences for a terminal: what the metric tuned says, and what went wrong."""
    if report.held_out:
        yield report.held_out[0].verdict
    else:
        yield "nothing was held out, so that nothing is known of the gain; it takes two lists and two folds"
    if "zero" in report.details:
        yield f"warning: {report.details['zero']}"


def _tried_table(report: Report) -> Table:
    names, tuned = list(report.tried[0][0]), report.held_out[0]
    table = numbers_table(f"{report.variant.name}: held-out {tuned.metric}", *names, "score")
    for settings, value in report.tried:
        mark = "chosen" if settings == report.variant.describe() else ""
        table.add_row(mark, *(f"{settings[name]:g}" for name in names), tuned.shown(value))
    return table


def _held_out_table(report: Report) -> Table:
    level = f"{100 * report.held_out[0].interval.level:g}%"
    columns = "first", "reranked", f"{level} interval", "difference", f"{level} interval", "p value", "oracle"
    table = numbers_table(f"{report.folds} folds" if report.folds else "dev lists", *columns)
    for one in report.held_out:
        table.add_row(
            one.metric if one.tuned else f"{one.metric} (not tuned)",
            one.shown(one.first),
            one.shown(one.reranked),
            f"{one.shown(one.interval.low)} to {one.shown(one.interval.high)}",
            one.shown(one.comparison.difference, signed=True),
            f"{one.shown(one.comparison.low, signed=True)} to {one.shown(one.comparison.high, signed=True)}",
            f"{one.comparison.p_value:.4f}",
            one.shown(one.oracle),
        )
    return table
