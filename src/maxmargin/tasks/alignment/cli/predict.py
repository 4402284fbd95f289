"""The command ``predict``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from maxmargin.tasks.alignment.cli.options import (
    Confidence,
    Extra,
    Source,
    Symmetrized,
    Target,
    Threshold,
    align,
    extra_files,
)
from maxmargin.tasks.alignment.io.link_formats import Format
from maxmargin.tasks.alignment.io.sentences import read_pairs
from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.common.commands import PART_WRITTEN, errors_as_lines, once
from maxmargin.tasks.common.options import Jobs


def predict(
    model: Annotated[Path, typer.Argument(help="Model written by align train or align bootstrap.")],
    source: Source,
    target: Target = None,
    form: Annotated[Format, typer.Option("--format", help="Format of the links.")] = Format.pharaoh,
    confidence: Confidence = False,
    threshold: Threshold = None,
    method: Symmetrized = None,
    adapt: Annotated[
        bool, typer.Option(help="Adapt the translation models to this text before aligning it, or use them unchanged.")
    ] = True,
    extra: Extra = None,
    jobs: Jobs = -1,
) -> None:
    """Align sentence pairs: one line of links per pair (NAACL: one line per link) on standard output."""
    with errors_as_lines():
        extras = extra_files(extra)
        once([source, target, *extras.values()])
        aligner = replace(AlignerModel.load(model, n_jobs=jobs), verbose=True)
        pairs = read_pairs(source, target, extra=extras)
    with errors_as_lines(PART_WRITTEN):
        align(aligner, pairs, form, method=method, confidence=confidence, threshold=threshold, adapt=adapt)
