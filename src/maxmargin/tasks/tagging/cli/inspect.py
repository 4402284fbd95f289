"""The command ``inspect``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin._terminal import printable
from maxmargin.tasks.common.commands import errors_as_lines
from maxmargin.tasks.common.options import AsJson


def inspect(
    model: Annotated[Path, typer.Argument(help="A model written by tag train.")],
    top: Annotated[int, typer.Option("--top", min=1, help="Number of the strongest weights of each kind.")] = 10,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="LABEL", help="Only this label; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the strongest attributes of each label, the strongest transitions, and how the model was trained."""
    with errors_as_lines():
        from maxmargin.tasks.tagging.model import TaggerModel

        tagger = TaggerModel.load(model)
        found = {"metadata": tagger.describe(), **tagger.strongest(top, label or ())}
    if as_json:
        print(json.dumps(found), flush=True)
    else:
        _print(found)


def _print(found: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    from maxmargin.tasks.common.tables import console, metadata_table

    terminal = console()
    terminal.print(metadata_table(found["metadata"]))

    def section(title: str, weights: dict[str, Any], describe: Callable[[dict[str, Any]], str]) -> None:
        table = Table(box=None, pad_edge=False, show_header=False)
        for _ in range(2):
            table.add_column(justify="right")
            table.add_column()
        sides = [weights["positive"], weights["negative"]]
        for at in range(max(map(len, sides))):
            cells = [
                cell
                for side in sides
                for cell in ((f"{side[at]['weight']:+.4f}", describe(side[at])) if at < len(side) else ("", ""))
            ]
            table.add_row(*(Text(printable(cell), overflow="fold") for cell in cells))
        terminal.print()
        terminal.print(Text(printable(title)), style="bold")
        terminal.print(table)

    for one in found["labels"]:
        section(one["label"], one, lambda entry: str(entry["attribute"]))
    section("transitions", found["transitions"], lambda entry: f"{entry['from']} {entry['to']}")
    if "triples" in found:
        section("three labels", found["triples"], lambda entry: " ".join(entry["labels"]))
    if "attributes of pairs" in found:
        title = "attributes of pairs"
        section(title, found[title], lambda entry: f"{entry['from']} {entry['to']}  {entry['attribute']}")
