"""Verbs over files of links alone: ``evaluate`` and ``symmetrize``."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from maxmargin._terminal import fail
from maxmargin.tasks.alignment.commands.options import (
    RECOGNISED,
    GoldFormat,
    SourceOption,
    TargetOption,
    once,
    optional_bitext,
    pairs_of,
    write,
)
from maxmargin.tasks.alignment.files import FileError, Format, open_links
from maxmargin.tasks.alignment.symmetrize import Method
from maxmargin.tasks.alignment.text import name_of


def evaluate(
    gold: Annotated[str, typer.Option("--gold", help="Hand-made links: NAACL, Pharaoh or JSON.")],
    predicted: Annotated[list[str], typer.Option("--predicted", help="Links to be measured.")],
    more: Annotated[list[str] | None, typer.Argument(metavar="[PREDICTED]...", help="More of them.")] = None,
    source: SourceOption = None,
    target: TargetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    details: Annotated[bool, typer.Option("--details", help="Also print the scores of each sentence.")] = False,
    form: Annotated[
        Format | None, typer.Option("--format", help="Format of the links to be measured.", show_default=RECOGNISED)
    ] = None,
    gold_form: GoldFormat = None,
    level: Annotated[float, typer.Option("--level", min=0.01, max=0.999, help="Level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the resampling for intervals.")] = 0,
) -> None:
    """Measure links: AER, precision, recall, F1 and balance; several files are compared with the first."""
    from maxmargin.tasks.alignment import metrics, tables

    names = [*predicted, *(more or [])]
    try:
        once([gold, source, target, *names])
        bitext = optional_bitext(source, target)
        hand = open_links(gold, format=gold_form)
        systems = [open_links(name, format=form) for name in names]
        count = pairs_of([hand, *systems], bitext)
        references = hand.references(bitext=bitext, sentences=count)
        links = [system.predictions(bitext=bitext, sentences=count) for system in systems]
    except FileError as error:
        fail(str(error))
    scores = [metrics.evaluate(references, one) for one in links]
    facts = tables.summary([name_of(name) for name in names], scores, level=level, seed=seed)
    if as_json:
        if details:
            for entry, one in zip(facts["systems"], scores, strict=True):
                entry["per_sentence"] = [each.as_dict() for each in one.per_sentence]
        print(json.dumps(facts), flush=True)
        return
    from rich.console import Console

    # A pipe or a file has no width that columns would have to fit in.
    width = None if sys.stdout.isatty() else 10_000
    Console(width=width).print(tables.scores_table([name_of(name) for name in names], facts))
    if details:
        print()
        print("\n".join(tables.sentence_lines(scores)), flush=True)


def symmetrize(
    forward: Annotated[str, typer.Option("--forward", help="Links of one direction, as source-target.")],
    backward: Annotated[str, typer.Option("--backward", help="Links of the other direction, also as source-target.")],
    method: Annotated[Method, typer.Option("--method", help="How.")] = Method.grow_diag_final_and,
    reverse: Annotated[
        bool, typer.Option("--reverse", help="The backward file has target-source; exchange the two.")
    ] = False,
    source: SourceOption = None,
    target: TargetOption = None,
    form: Annotated[
        Format | None, typer.Option("--format", help="Format of both files.", show_default=RECOGNISED)
    ] = None,
    out: Annotated[Format, typer.Option("--to", help="Format to write.")] = Format.pharaoh,
) -> None:
    """Make one alignment of those of two directions, and write it: a line per sentence pair (NAACL: per link)."""
    from maxmargin.tasks.alignment import symmetrize as symmetrization

    try:
        once([forward, backward, source, target])
        bitext = optional_bitext(source, target)
        files = [open_links(path, format=form) for path in (forward, backward)]
        if reverse:
            files[1] = files[1].reversed()
        count = pairs_of(files, bitext)
        one, two = (file.predictions(bitext=bitext, sentences=count) for file in files)
    except FileError as error:
        fail(str(error))
    write(symmetrization.symmetrize(one, two, method.value), out)
