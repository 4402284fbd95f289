"""The command ``score``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maxmargin.tasks.alignment.cli.blocks import BLOCK, Scoring, write_blocks
from maxmargin.tasks.alignment.cli.options import Extra, Out, Source, Target
from maxmargin.tasks.common.cli.options import Jobs, RayAddress, ResumeOutput, Verbose, WorkerCount
from maxmargin.tasks.common.files.text import STANDARD_INPUT
from maxmargin.tasks.common.progress import print_lines
from maxmargin.tasks.common.workers import Workers


def score(
    model: Annotated[Path, typer.Argument(help="Model written by align train or align bootstrap.")],
    source: Source,
    target: Target = None,
    adapt: Annotated[
        bool, typer.Option(help="Adapt the translation models to this text first; wrong pairs then look better.")
    ] = False,
    extra: Extra = None,
    out: Out = STANDARD_INPUT,
    workers: WorkerCount = 1,
    ray: RayAddress = None,
    resume: ResumeOutput = False,
    jobs: Jobs = -1,
    verbose: Verbose = False,
) -> None:
    """Score how well each pair translates, from 0 to 1, to filter a corpus: one line per pair.

    Pairs are read, scored and written block by block, so memory does not grow with the text.
    """
    print_lines(verbose)
    write_blocks(
        model,
        Scoring(adapt),
        source,
        target,
        extra,
        out,
        block=BLOCK if adapt else None,
        as_they_come=True,
        workers=Workers(workers, jobs, ray),
        resume=resume,
    )
