"""Explanations on a terminal."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from maxmargin._terminal import console, printable
from maxmargin.explanation.result import Explanation
from maxmargin.explanation.rows import Table, remarks, summary, tables

if TYPE_CHECKING:
    from rich.console import Console

_NUMBERS = ("weight", "value", "change")


def show(found: Explanation, top: int) -> None:
    """Print an explanation; in pipes and files, lines are not wrapped."""
    _print(console(), found, top)


def text(found: Explanation, top: int, width: int | None) -> str:
    """The tables without colors, in lines of at most ``width`` characters."""
    from rich.console import Console

    stream = StringIO()
    _print(Console(file=stream, width=10_000 if width is None else width, highlight=False, no_color=True), found, top)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _print(terminal: Console, found: Explanation, top: int) -> None:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=None, show_header=False, pad_edge=False)
    for name, value in summary(found):
        grid.add_row(Text(printable(name), style="dim"), Text(value, overflow="fold"))
    terminal.print(grid)
    for remark in remarks(found):
        terminal.print(Text(remark, style="yellow"))
    for table in tables(found, top):
        if table.rows:
            terminal.print()
            terminal.print(Text(table.title, style="bold"))
            terminal.print(_grid(table))


def _grid(table: Table) -> object:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=None, pad_edge=False, header_style="dim")
    grid.add_column(Text("contribution"), justify="right", no_wrap=True)
    grid.add_column(Text(""), no_wrap=True)
    for head in table.heads:
        grid.add_column(Text(printable(head)), justify="right" if head in _NUMBERS else "left", overflow="fold")
    largest = max(abs(row.total) for row in table.rows)
    for row in table.rows:
        style = "blue" if row.total >= 0 else "red"
        bar = _bar(row.total, largest)
        cells = [Text(printable(cell), overflow="fold") for cell in row.cells]
        grid.add_row(Text(f"{row.total:+.4f}", style=style), Text(bar, style=style), *cells)
    if table.rest:
        more = Text(f"and {table.rest} more", style="dim")
        grid.add_row(Text(f"{table.rest_total:+.4f}", style="dim"), Text(""), more)
    return grid


def _bar(total: float, largest: float) -> str:
    """A bar of up to eight cells."""
    eighths = round(64 * (abs(total) / largest)) if largest else 0
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
