"""The command ``predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maxmargin.tasks.alignment.cli.blocks import BLOCK, Aligning, write_blocks
from maxmargin.tasks.alignment.cli.options import Confidence, Extra, Out, Source, Symmetrized, Target, Threshold, To
from maxmargin.tasks.alignment.io.link_formats import Format
from maxmargin.tasks.common.cli.commands import errors_as_lines
from maxmargin.tasks.common.cli.options import Jobs, RayAddress, ResumeOutput, Verbose, WorkerCount
from maxmargin.tasks.common.files.text import STANDARD_INPUT
from maxmargin.tasks.common.progress import print_lines
from maxmargin.tasks.common.workers import Workers


def predict(
    model: Annotated[Path, typer.Argument(help="Model written by align train or align bootstrap.")],
    source: Source,
    target: Target = None,
    form: To = Format.pharaoh,
    confidence: Confidence = False,
    threshold: Threshold = None,
    method: Symmetrized = None,
    adapt: Annotated[
        bool, typer.Option(help="Adapt the translation models to this text before aligning it, or use them unchanged.")
    ] = True,
    block: Annotated[
        int | None,
        typer.Option(
            "--block",
            min=1,
            help="Sentence pairs that are adapted to and aligned at a time.",
            show_default=f"{BLOCK}; 1, 2, 4, ... from a pipe",
        ),
    ] = None,
    extra: Extra = None,
    out: Out = STANDARD_INPUT,
    workers: WorkerCount = 1,
    ray: RayAddress = None,
    resume: ResumeOutput = False,
    jobs: Jobs = -1,
    verbose: Verbose = False,
) -> None:
    """Align sentence pairs: one line of links per pair (NAACL: one line per link).

    Pairs are read, aligned and written block by block, so memory does not grow with the text.
    """
    print_lines(verbose)
    with errors_as_lines():
        aligning = Aligning(form, method, confidence, threshold, adapt)
    write_blocks(
        model,
        aligning,
        source,
        target,
        extra,
        out,
        block=block,
        as_they_come=not adapt,  # pairs then do not depend on each other
        workers=Workers(workers, jobs, ray),
        resume=resume,
    )
