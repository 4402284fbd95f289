"""The command ``evaluate``."""

from __future__ import annotations

from typing import Annotated

import typer

from maxmargin._terminal import report
from maxmargin.tasks.common.cli.commands import errors_as_lines, once
from maxmargin.tasks.common.cli.options import AsJson, Jobs, Level


def evaluate(
    predicted: Annotated[str, typer.Argument(metavar="MODEL|PREDICTED", help="A model, or a file in CoNLL-U.")],
    gold: Annotated[str, typer.Argument(help="A file in CoNLL-U with gold trees.")],
    as_json: AsJson = False,
    level: Level = 0.95,
    jobs: Jobs = -1,
) -> None:
    """Score trees: UAS, LAS, CLAS, MLAS and BLEX of CoNLL 2018, for given tokens."""
    with errors_as_lines():
        once([predicted, gold])
        from maxmargin.tasks.common.files.text import is_model
        from maxmargin.tasks.parsing.io.treebank import read_treebank
        from maxmargin.tasks.parsing.metrics.attachment import MEASURES
        from maxmargin.tasks.parsing.metrics.attachment import evaluate as scores_of
        from maxmargin.tasks.parsing.model import ParserModel

        bank = read_treebank(gold)
        if is_model(predicted):
            scores = ParserModel.load(predicted, n_jobs=jobs).evaluate(bank)
        else:
            scores = scores_of(bank, read_treebank(predicted))
        found = scores.as_dict()
        for measure in MEASURES:
            interval = scores.interval(measure, level=level)
            found[f"{measure} interval"] = [interval.low, interval.high]
    report(found, as_json=as_json)
