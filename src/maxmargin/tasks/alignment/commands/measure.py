"""Verbs over files of links alone: ``evaluate`` and ``symmetrize``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from maxmargin._terminal import fail, printable
from maxmargin.tasks.alignment.commands.options import (
    RECOGNIZED,
    GoldFormat,
    SourceOption,
    TargetOption,
    optional_bitext,
    pairs_of,
    write,
)
from maxmargin.tasks.alignment.files import FileError, Format, LinkFile, open_links
from maxmargin.tasks.alignment.symmetrize import Method
from maxmargin.tasks.common.commands import once
from maxmargin.tasks.common.text import count_of, name_of


def evaluate(
    gold: Annotated[str, typer.Option("--gold", help="Hand-made links: NAACL, Pharaoh or JSON.")],
    predicted: Annotated[list[str], typer.Option("--predicted", help="Links to be measured.")],
    more: Annotated[list[str] | None, typer.Argument(metavar="[PREDICTED]...", help="More of them.")] = None,
    source: SourceOption = None,
    target: TargetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    details: Annotated[bool, typer.Option("--details", help="Also print the scores of each sentence.")] = False,
    form: Annotated[
        Format | None, typer.Option("--format", help="Format of the links to be measured.", show_default=RECOGNIZED)
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
        if bitext is None:
            _check_lines(hand, systems, count)
        references = hand.references(bitext=bitext, sentences=count)
        links = [system.predictions(bitext=bitext, sentences=count) for system in systems]
        if not count:
            raise FileError(f"{name_of(gold)}: no sentence pairs, so there is nothing to measure; give files with some")
    except FileError as error:
        fail(str(error))
    for file, option, chosen in [(hand, "--gold-format", gold_form), *((one, "--format", form) for one in systems)]:
        if chosen is None and file.perhaps_from_one:
            message = f"{name_of(file.path)} has no position 0; if it counts from 1, give {option} talp"
            print(f"warning: {printable(message)}", file=sys.stderr)
    scores = [metrics.evaluate(references, one) for one in links]
    metadata = tables.summary([name_of(name) for name in names], scores, level=level, seed=seed)
    if as_json:
        if details:
            for entry, one in zip(metadata["systems"], scores, strict=True):
                entry["per_sentence"] = [each.as_dict() for each in one.per_sentence]
        print(json.dumps(metadata), flush=True)
        return
    from rich.console import Console

    # A pipe or a file has no width that columns would have to fit in.
    width = None if sys.stdout.isatty() else 10_000
    Console(width=width).print(tables.scores_table([name_of(name) for name in names], metadata))
    if details:
        print()
        print("\n".join(tables.sentence_lines(scores)), flush=True)


def _check_lines(gold: LinkFile, systems: Sequence[LinkFile], count: int) -> None:
    """Refuse predictions with too few lines for a gold in NAACL format, which does not say how many it needs."""
    short = next((system for system in systems if system.counted), None)
    first, last = gold.numbered
    # As many lines as the gold has sentences, but other numbers: then it is the gold that must change.
    if short is None or gold.counted or last <= count or (first > count and last - first < count):
        return
    raise FileError(
        f"{name_of(short.path)} has links of {count_of(count, 'sentence pair')} and {name_of(gold.path)} has "
        f"sentences {first} to {last}; predicted links need one line per sentence pair of the gold, an empty one where "
        "there are none"
    )


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
        Format | None, typer.Option("--format", help="Format of both files.", show_default=RECOGNIZED)
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
