"""The command ``evaluate``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from maxmargin._terminal import console
from maxmargin.tasks.alignment.cli.options import (
    First,
    From,
    GoldFirst,
    GoldFrom,
    OptionalSource,
    SkipBad,
    Target,
    optional_bitext,
)
from maxmargin.tasks.alignment.metrics import tables
from maxmargin.tasks.alignment.metrics.files import evaluate_files
from maxmargin.tasks.common.cli.commands import errors_as_lines, once
from maxmargin.tasks.common.cli.options import AsJson, Level, ResamplingSeed
from maxmargin.tasks.common.files.text import name_of


def evaluate(
    gold: Annotated[str, typer.Option("--gold", help="Links of annotators: NAACL, Pharaoh or JSON.")],
    predicted: Annotated[list[str], typer.Option("--predicted", help="Links to evaluate.")],
    more: Annotated[list[str] | None, typer.Argument(metavar="[PREDICTED]...", help="More links to evaluate.")] = None,
    source: OptionalSource = None,
    target: Target = None,
    as_json: AsJson = False,
    details: Annotated[bool, typer.Option("--details", help="Also print the scores of each sentence.")] = False,
    form: From = None,
    gold_form: GoldFrom = None,
    first: First = None,
    gold_first: GoldFirst = None,
    skip_bad: SkipBad = False,
    level: Level = 0.95,
    seed: ResamplingSeed = 0,
) -> None:
    """Evaluate links: AER, precision, recall, F1 and balance; further files are compared with the first."""
    paths = [*predicted, *(more or [])]
    with errors_as_lines():
        once([gold, source, target, *paths])
        bitext = optional_bitext(source, target)
        scores = evaluate_files(
            gold,
            paths,
            bitext=bitext,
            format=form,
            gold_format=gold_form,
            first=first,
            gold_first=gold_first,
            skip_bad=skip_bad,
        )
    names = [name_of(path) for path in paths]
    found = tables.summary(names, scores, level=level, seed=seed)
    if as_json:
        if details:
            for entry, one in zip(found["systems"], scores, strict=True):
                entry["per_sentence"] = [each.as_dict() for each in one.per_sentence]
        print(json.dumps(found), flush=True)
        return
    console().print(tables.scores_table(names, found))
    if details:
        print("", *tables.sentence_lines(scores), sep="\n", flush=True)
