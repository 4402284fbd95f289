"""The command ``score``."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Annotated

import typer

from maxmargin.tasks.alignment.cli.options import BLOCK, Extra, Source, Target, UnknownWordsOnce, blocks_of, extra_files
from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.common.commands import PART_WRITTEN, errors_as_lines, once
from maxmargin.tasks.common.options import Jobs, Verbose
from maxmargin.tasks.common.progress import print_lines


def score(
    model: Annotated[Path, typer.Argument(help="Model written by align train or align bootstrap.")],
    source: Source,
    target: Target = None,
    adapt: Annotated[
        bool, typer.Option(help="Adapt the translation models to this text first; wrong pairs then look better.")
    ] = False,
    extra: Extra = None,
    jobs: Jobs = -1,
    verbose: Verbose = False,
) -> None:
    """Score how well each pair translates, from 0 to 1, to filter a corpus: one line per pair on standard output.

    Pairs are read, scored and written block by block, so memory does not grow with the text.
    """
    print_lines(verbose)
    with errors_as_lines():
        extras = extra_files(extra)
        once([source, target, *extras.values()])
        aligner = replace(AlignerModel.load(model, n_jobs=jobs), verbose=True)
        # Without adaptation pairs are scored as they come.
        blocks = blocks_of(source, target, extras, repeat(BLOCK) if adapt else None)
        some, once_only = next(blocks, []), UnknownWordsOnce()
    while some:
        with errors_as_lines(PART_WRITTEN), once_only.block():
            sys.stdout.writelines(f"{value:.4f}\n" for value in aligner.score_pairs(some, adapt=adapt).tolist())
            sys.stdout.flush()
            some = next(blocks, [])
