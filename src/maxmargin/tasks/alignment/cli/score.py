"""The command ``score``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from maxmargin.tasks.alignment.cli.options import Extra, Source, Target, extra_files
from maxmargin.tasks.alignment.io.sentences import read_pairs
from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.common.commands import PART_WRITTEN, errors_as_lines, once
from maxmargin.tasks.common.options import Jobs


def score(
    model: Annotated[Path, typer.Argument(help="Model written by align train or align bootstrap.")],
    source: Source,
    target: Target = None,
    adapt: Annotated[
        bool, typer.Option(help="Adapt the translation models to this text first; wrong pairs then look better.")
    ] = False,
    extra: Extra = None,
    jobs: Jobs = -1,
) -> None:
    """Score how well each pair translates, from 0 to 1, to filter a corpus: one line per pair on standard output."""
    with errors_as_lines():
        extras = extra_files(extra)
        once([source, target, *extras.values()])
        aligner = replace(AlignerModel.load(model, n_jobs=jobs), verbose=True)
        pairs = read_pairs(source, target, extra=extras)
    with errors_as_lines(PART_WRITTEN):
        sys.stdout.writelines(f"{value:.4f}\n" for value in aligner.score_pairs(pairs, adapt=adapt).tolist())
        sys.stdout.flush()
