"""The command ``evaluate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from maxmargin._terminal import console, fail
from maxmargin.tasks.common.cli.commands import errors_as_lines, once, writable
from maxmargin.tasks.common.cli.options import AsJson, Jobs, Level, ResamplingSeed
from maxmargin.tasks.common.files.text import name_of
from maxmargin.tasks.tagging.cli.options import Columns, Format, Join, Label

CONFUSIONS = 10
"""Number of confusions that are printed."""


def evaluate(
    predicted: Annotated[str, typer.Argument(metavar="MODEL|PREDICTED", help="A model, or the output of tag predict.")],
    gold: Annotated[str, typer.Argument(help="A file of labeled tokens.")],
    as_json: AsJson = False,
    labels: Annotated[
        bool, typer.Option("--labels", help="Also print precision, recall and F1 of each label.")
    ] = False,
    confusion: Annotated[
        Path | None, typer.Option("--confusion", metavar="PNG", help="Draw the confusion matrix to this file.")
    ] = None,
    columns: Columns = None,
    label: Label = None,
    form: Format = None,
    join: Join = None,
    predicted_column: Annotated[
        int | None,
        typer.Option(
            "--predicted-column", min=1, help="Column of labels in PREDICTED, from 1.", show_default="the last"
        ),
    ] = None,
    level: Level = 0.95,
    seed: ResamplingSeed = 0,
    jobs: Jobs = -1,
) -> None:
    """Score labels: accuracy of tokens and sentences, chunks as conlleval counts them, confusions."""
    if confusion is not None:
        writable(confusion, keep=[predicted, gold], option="--confusion")
    with errors_as_lines():
        once([predicted, gold])
        from maxmargin.tasks.common.files.text import is_model
        from maxmargin.tasks.tagging.evaluation import score_file, score_model
        from maxmargin.tasks.tagging.metrics import tables
        from maxmargin.tasks.tagging.model import TaggerModel
        from maxmargin.tasks.tagging.reading import ReadOptions

        options = ReadOptions(form, columns, label, join)
        if is_model(predicted):
            if predicted_column is not None:
                fail("--predicted-column applies to files of labels, not to a model; leave it out")
            scores = score_model(TaggerModel.load(predicted, n_jobs=jobs), gold, options)
        else:
            scores = score_file(predicted, gold, options, column=predicted_column)
        metadata = tables.summary([name_of(predicted)], [scores], level=level, seed=seed)
        if confusion is not None:
            try:
                tables.draw_confusions(scores, confusion)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                fail(f"{confusion}: {reason}; give --confusion a file such as confusions.png")
    one = metadata["systems"][0]
    if as_json:
        print(json.dumps({"interval_level": metadata["interval_level"], **one}), flush=True)
        return
    found = [tables.scores_table([name_of(predicted)], metadata)]
    if one["chunks"] is not None:
        found.append(tables.rates_table(one["chunks"]["types"], "type"))
    if labels:
        found.append(tables.rates_table(one["labels"], "label"))
    if errors := scores.tokens - scores.correct:
        found.append(tables.confusions_table(one["confusions"][:CONFUSIONS], errors))
    terminal = console()
    for at, table in enumerate(found):
        if at:
            terminal.print()
        terminal.print(table)
