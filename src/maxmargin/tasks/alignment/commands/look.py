"""The verb ``show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maxmargin._terminal import fail, printable
from maxmargin.tasks.alignment.commands.options import RECOGNIZED, GoldFormat, TargetOption
from maxmargin.tasks.alignment.files import FileError, Format, open_links, read_bitext
from maxmargin.tasks.common.commands import once
from maxmargin.tasks.common.text import name_of


def show(
    source: Annotated[str, typer.Option("--source", help="Source sentences, or lines 'source ||| target'.")],
    links: Annotated[str, typer.Option("--links", help="Links to look at: NAACL, Pharaoh or JSON.")],
    target: TargetOption = None,
    gold: Annotated[str | None, typer.Option("--gold", help="Hand-made links to compare them with.")] = None,
    html: Annotated[str | None, typer.Option("--html", help="Write one page for a browser to this file.")] = None,
    sentence: Annotated[
        list[int] | None, typer.Option("--sentence", min=1, help="Only this sentence pair, from 1; may be repeated.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="At most so many pairs.", show_default="20, a page has all")
    ] = None,
    worst: Annotated[bool, typer.Option("--worst", help="Begin with the pairs of highest AER; needs --gold.")] = False,
    form: Annotated[
        Format | None, typer.Option("--format", help="Format of the links.", show_default=RECOGNIZED)
    ] = None,
    gold_form: GoldFormat = None,
) -> None:
    """Look at links: a grid for each sentence pair on the terminal, or one page that opens in any browser."""
    from maxmargin.tasks.alignment import show as showing

    try:
        once([source, target, links, gold])
        bitext = read_bitext(source, target)
        predictions = open_links(links, format=form).predictions(bitext=bitext)
        references = None if gold is None else open_links(gold, format=gold_form).references(bitext=bitext)
    except FileError as error:
        fail(str(error))
    try:
        pairs = showing.shown_pairs(bitext, predictions, references)
    except ValueError as error:
        fail(f"{name_of(links)}: {error}")
    if worst and references is None:
        fail("--worst needs --gold; give the hand-made links")
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
    left_out = f"{found - len(pairs)} more left out; --limit {found} shows all" if len(pairs) < found else ""
    if html is not None:
        try:
            Path(html).write_text(showing.page(pairs, title=f"Word alignments: {name_of(links)}"), encoding="utf-8")
        except (OSError, ValueError) as error:
            fail(f"{html}: {getattr(error, 'strerror', None) or error}; give --html a file that can be written")
        counted = "1 sentence pair" if len(pairs) == 1 else f"{len(pairs)} sentence pairs"
        print(f"wrote {printable(html)}: {counted}{f' ({left_out})' if left_out else ''}")
        return
    from rich.console import Console

    console = Console(highlight=False)
    try:
        for pair in pairs:
            console.print(showing.grid(pair, width=console.width, legend=False), soft_wrap=True)
        console.print(showing.explain(pairs, width=console.width), soft_wrap=True, end="")
        if left_out:
            console.print(left_out, soft_wrap=True)
    except UnicodeEncodeError:
        fail(f"output as {console.encoding} cannot hold these letters; set PYTHONIOENCODING=utf-8 or use --html")
