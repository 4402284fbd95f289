"""The command ``score``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Annotated

import typer

from maxmargin.tasks.alignment.cli.options import (
    BLOCK,
    Extra,
    Out,
    Source,
    Target,
    blocks_of,
    extra_files,
    write_blocks,
)
from maxmargin.tasks.alignment.io.sentences import SentencePair
from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.common.blocks import has_come
from maxmargin.tasks.common.commands import PART_WRITTEN, errors_as_lines, once, writable
from maxmargin.tasks.common.options import Jobs, RayAddress, ResumeOutput, Verbose, WorkerCount
from maxmargin.tasks.common.progress import print_lines
from maxmargin.tasks.common.resumable import Run, kept
from maxmargin.tasks.common.text import STANDARD_INPUT
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
    if out != STANDARD_INPUT:
        writable(Path(out), keep=[str(model), source, target], streams=True)
    with errors_as_lines():
        extras = extra_files(extra)
        once([source, target, *extras.values()])
        aligner = replace(AlignerModel.load(model, n_jobs=jobs), verbose=True)
        # Without adaptation pairs are scored as they come.
        blocks = blocks_of(source, target, extras, repeat(BLOCK) if adapt else None)
        some = next(blocks, [])
    with errors_as_lines(PART_WRITTEN if out == STANDARD_INPUT else lambda written, _: kept(out, written)):
        work = Scoring(adapt)
        options = {**vars(work), "extra": list(extras)}
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


@dataclass(frozen=True)
class Scoring:
    """How sentence pairs are scored."""

    adapt: bool = False

    def opened(self, path: Path, n_jobs: int | None) -> Callable[[tuple[int, list[SentencePair]]], bytes]:
        """Return :meth:`of_block` for the model of a file: what each worker does."""
        return partial(self.of_block, AlignerModel.load(path, n_jobs=n_jobs))

    def of_block(self, model: AlignerModel, block: tuple[int, list[SentencePair]]) -> bytes:
        """Return the lines of the scores of pairs."""
        return "".join(f"{value:.4f}\n" for value in model.score_pairs(block[1], adapt=self.adapt).tolist()).encode()
