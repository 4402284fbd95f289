"""The command ``predict``."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Annotated

import typer

from maxmargin.tasks.alignment.cli.options import (
    BLOCK,
    Aligning,
    Confidence,
    Extra,
    Out,
    Source,
    Symmetrized,
    Target,
    Threshold,
    To,
    blocks_of,
    extra_files,
    tell_of_confidences,
    write_blocks,
)
from maxmargin.tasks.alignment.io.link_formats import Format
from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.common.blocks import has_come
from maxmargin.tasks.common.commands import PART_WRITTEN, errors_as_lines, once, writable
from maxmargin.tasks.common.options import Jobs, RayAddress, ResumeOutput, Verbose, WorkerCount
from maxmargin.tasks.common.progress import print_lines
from maxmargin.tasks.common.resumable import Run, kept
from maxmargin.tasks.common.text import STANDARD_INPUT
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
    if out != STANDARD_INPUT:
        writable(Path(out), keep=[str(model), source, target], streams=True)
    with errors_as_lines():
        extras = extra_files(extra)
        once([source, target, *extras.values()])
        aligner = replace(AlignerModel.load(model, n_jobs=jobs), verbose=True)
        if method is None:
            tell_of_confidences(aligner, confidence, threshold)
        sizes = _sizes(block, piped=not (_is_file(source) and (target is None or _is_file(target))))
        # Without adaptation pairs do not depend on each other, so they are aligned as they come.
        blocks = blocks_of(source, target, extras, None if not adapt and block is None else sizes)
        some = next(blocks, [])
    with errors_as_lines(PART_WRITTEN if out == STANDARD_INPUT else lambda written, _: kept(out, written)):
        work = Aligning(form, method, confidence, threshold, adapt)
        options = {**vars(work), "block": block, "extra": list(extras)}
        write_blocks(
            aligner,
            work,
            chain([some] if some else [], blocks),
            out,
            path=model,
            workers=Workers(workers, jobs, ray),
            ready=partial(has_come, [source, target]),
            run=Run(resume, model, [one for one in (source, target, *extras.values()) if one], options),
        )


def _sizes(block: int | None, *, piped: bool) -> Iterator[int]:
    """The numbers of pairs of the blocks; those of a pipe begin small, so that the first links are written at once."""
    if block is not None:
        return repeat(block)
    return chain((2**n for n in range(BLOCK.bit_length() - 1)), repeat(BLOCK)) if piped else repeat(BLOCK)


def _is_file(path: str) -> bool:
    """Whether this is a regular file, or standard input is one."""
    try:
        found = os.fstat(0) if path == STANDARD_INPUT else os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode)
