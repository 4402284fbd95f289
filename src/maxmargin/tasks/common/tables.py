"""Tables of scores and weights for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from maxmargin._terminal import console, printable

if TYPE_CHECKING:
    from rich.table import Table


def percent(value: float) -> str:
    """Format a rate as a percentage with two digits."""
    return f"{100 * value:.2f}"


def signed_percent(value: float) -> str:
    """Format a difference of rates as a percentage with a sign."""
    return f"{100 * value:+.2f}"


def numbers_table(*heads: str) -> Table:
    """Return an empty table with a first column of text and further columns of numbers."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for at, head in enumerate(heads):
        cell = Text(printable(head), overflow="fold")
        table.add_column(cell, justify="right" if at else "left", overflow="fold")
    return table


def add_intervals(table: Table, level: float, intervals: Iterable[Sequence[float]]) -> None:
    """Add a row with the bootstrap interval of each system, below the row of the rate."""
    table.add_row(f"  {100 * level:g}% interval", *(" to ".join(map(percent, ends)) for ends in intervals))


def add_comparisons(
    table: Table, title: str, level: float, found: Sequence[Mapping[str, Any]], *, difference: str = "difference"
) -> None:
    """Add rows that compare all systems but the first with the first.

    Args:
        table: has a column of titles and one per system.
        title: the rate that is compared.
        level: confidence level of the intervals.
        found: what :meth:`Comparison.as_dict` returned for each system but the first.
        difference: the key of the difference in these.
    """
    table.add_row(f"{title} against first", "", *(signed_percent(one[difference]) for one in found))
    ends = [" to ".join(map(signed_percent, one["interval"])) for one in found]
    table.add_row(f"  {100 * level:g}% interval", "", *ends)
    table.add_row("  p value", "", *(f"{one['p_value']:.4f}" for one in found))


def print_weights(
    title: str, weights: Mapping[str, Sequence[Mapping[str, Any]]], name: Callable[[Mapping[str, Any]], str]
) -> None:
    """Print what :func:`~maxmargin.tasks.common.weights.strongest_weights` returns, below a title."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(2):
        table.add_column(justify="right")
        table.add_column()
    for sides in zip_longest(weights["positive"], weights["negative"]):
        cells = [cell for one in sides for cell in ((f"{one['weight']:+.4f}", name(one)) if one else ("", ""))]
        table.add_row(*(Text(printable(cell), overflow="fold") for cell in cells))
    terminal = console()
    terminal.print()
    terminal.print(Text(printable(title)), style="bold")
    terminal.print(table)
