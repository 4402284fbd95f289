"""What the commands ``explain`` share: options, and how an explanation is written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin._terminal import printable
from maxmargin.tasks.common.cli.commands import writable
from maxmargin.tasks.common.files.text import open_output

if TYPE_CHECKING:
    from maxmargin.explanation import Explanation

Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page for a browser to this file.")]
Rows = Annotated[
    int | None, typer.Option("--top", min=1, help="Rows of each table.", show_default="10; 30 with --html")
]
Sentence = Annotated[int, typer.Option("--sentence", min=1, help="Number of the sentence, from 1.")]

TERMINAL_ROWS, PAGE_ROWS = 10, 30


def check_html(html: Path | None, keep: Sequence[str | None]) -> None:
    """Fail before the work is done if the page cannot be written."""
    if html is not None:
        writable(html, keep, option="--html")


def write_explanation(
    found: Explanation,
    heading: str,
    *,
    top: int | None,
    html: Path | None,
    as_json: bool,
    pictures: Sequence[Any] = (),
    readable: Explanation | None = None,
) -> None:
    """Write an explanation as a page, as one JSON object, or as tables on the terminal.

    Args:
        found: the explanation.
        heading: what is explained, such as "sentence 3 of FILE".
        top: rows of each table; None for 10, or 30 of a page.
        html: the file of the page; None for the terminal.
        as_json: whether to print JSON, besides a page if that is asked for.
        pictures: of the page, see :class:`maxmargin.explanation.page.Picture`.
        readable: the explanation with its two outputs in words, for readers of pages and tables; None for ``found``.
    """
    readable = readable or found
    if html is not None:
        from maxmargin.explanation.page import page

        text = page([("", readable, pictures)], title=f"Explanation of {heading}", top=top or PAGE_ROWS)
        with open_output(html) as file:
            file.write(text.encode())
    if as_json:
        print(json.dumps({"explained": heading, **found.to_dict()}), flush=True)
    elif html is not None:
        print(f"wrote {printable(html)}: {printable(heading)}, margin {found.margin:+.4g}")
    else:
        from maxmargin.explanation.terminal import show

        show(readable, top or TERMINAL_ROWS)
