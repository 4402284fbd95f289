"""The command ``inspect``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from maxmargin._terminal import report
from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.common.cli.commands import errors_as_lines
from maxmargin.tasks.common.cli.options import AsJson, Top
from maxmargin.tasks.common.tables import print_weights
from maxmargin.tasks.common.weights import strongest_weights


def inspect(
    model: Annotated[Path, typer.Argument(help="Model written by align train or align bootstrap.")],
    top: Top = 10,
    as_json: AsJson = False,
) -> None:
    """Show the strongest weights, and how the model was trained."""
    with errors_as_lines():
        aligner = AlignerModel.load(model)
    names = aligner.feature_names
    found = strongest_weights(aligner.weights, top, lambda at: {"feature": names[at]})
    if as_json:
        print(json.dumps({"metadata": aligner.describe(), "weights": found}), flush=True)
        return
    report(aligner.describe(), as_json=False)
    print_weights("weights", found, lambda entry: str(entry["feature"]))
