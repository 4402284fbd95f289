"""The command ``show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maxmargin._files import replacing
from maxmargin._terminal import fail, printable
from maxmargin.tasks.alignment.cli.options import First, From, GoldFirst, GoldFrom, Source, Target
from maxmargin.tasks.common.cli.commands import errors_as_lines, once, writable
from maxmargin.tasks.common.files.text import count_of, name_of


def show(
    source: Source,
    links: Annotated[str, typer.Option("--links", help="Links to show: NAACL, Pharaoh or JSON.")],
    target: Target = None,
    gold: Annotated[str | None, typer.Option("--gold", help="Links of annotators to compare with.")] = None,
    html: Annotated[str | None, typer.Option("--html", help="Write a page for a browser to this file.")] = None,
    sentence: Annotated[
        list[int] | None, typer.Option("--sentence", min=1, help="Only this sentence pair, from 1; may be repeated.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="Maximum number of sentence pairs.", show_default="20; all with --html"),
    ] = None,
    worst: Annotated[bool, typer.Option("--worst", help="Start with the pairs of highest AER; needs --gold.")] = False,
    form: From = None,
    gold_form: GoldFrom = None,
    first: First = None,
    gold_first: GoldFirst = None,
) -> None:
    """Show links: a grid for each sentence pair on the terminal, or one page that opens in any browser."""
    from maxmargin.tasks.alignment.show import explain, grid, page, read_shown  # rich takes a while

    if html is not None:
        writable(Path(html), keep=[source, target, links, gold], option="--html")
    with errors_as_lines():
        once([source, target, links, gold])
        pairs = read_shown(
            source, target, links, gold, format=form, gold_format=gold_form, first=first, gold_first=gold_first
        )
    if worst and gold is None:
        fail("--worst needs --gold; give the links of annotators")
    if sentence:
        if max(sentence) > len(pairs):
            fail(f"--sentence {max(sentence)}: there are {len(pairs)} sentence pairs; give a smaller number")
        pairs = [pairs[number - 1] for number in dict.fromkeys(sentence)]
    if worst:
        pairs.sort(key=lambda pair: -(pair.error_rate() or 0.0))
    found = len(pairs)
    if limit is None and html is None and not sentence:
        limit = 20
    pairs = pairs[:limit]
    omitted = f"{found - len(pairs)} more omitted; --limit {found} shows all" if len(pairs) < found else ""
    if html is not None:
        try:
            with replacing(html) as file:
                file.write(page(pairs, title=f"Word alignments: {name_of(links)}").encode())
        except (OSError, ValueError) as error:
            fail(f"{html}: {getattr(error, 'strerror', None) or error}; give --html a file that can be written")
        print(
            f"wrote {printable(html)}: {count_of(len(pairs), 'sentence pair')}" + (f" ({omitted})" if omitted else "")
        )
        return
    from rich.console import Console

    console = Console(highlight=False)
    try:
        for pair in pairs:
            console.print(grid(pair, width=console.width, legend=False), soft_wrap=True)
        console.print(explain(pairs, width=console.width), soft_wrap=True, end="")
        if omitted:
            console.print(omitted, soft_wrap=True)
    except UnicodeEncodeError:
        fail(f"{console.encoding} cannot encode these characters; set PYTHONIOENCODING=utf-8 or use --html")
