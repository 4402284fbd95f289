"""The command ``predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.tasks.common.cli.commands import PART_WRITTEN, errors_as_lines, once, writable
from maxmargin.tasks.common.cli.options import Jobs
from maxmargin.tasks.common.files.text import STANDARD_INPUT
from maxmargin.tasks.reranking.cli.options import (
    Encoding,
    Features,
    Format,
    LatticeFiles,
    ListSize,
    NBest,
    Segments,
    Sources,
    one_input,
)


def predict(
    model: Annotated[Path, typer.Argument(help="A model written by rerank train.")],
    nbest: NBest = None,
    lattices: LatticeFiles = None,
    features: Features = None,
    out: Annotated[str, typer.Option("--out", help="File to write, compressed if it ends in .gz.")] = STANDARD_INPUT,
    k_best: Annotated[
        int | None,
        typer.Option("--k-best", min=1, help="Write lists of so many different hypotheses, with their scores."),
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Write the score behind each text, after a tab.")] = False,
    form: Format = None,
    list_size: ListSize = None,
    segments: Segments = None,
    sources: Sources = None,
    encoding: Encoding = None,
    jobs: Jobs = -1,
) -> None:
    """Write the best hypothesis of each list or lattice, one a line, or with --k-best lists in the format of Moses."""
    inputs = [nbest, *(lattices or []), *(features or []), segments, sources]
    if out != STANDARD_INPUT:
        writable(Path(out), keep=[str(model), *inputs], streams=True)
    with errors_as_lines(PART_WRITTEN if out == STANDARD_INPUT else None):
        from maxmargin.tasks.reranking.files import Reading, best_hypotheses, write_best
        from maxmargin.tasks.reranking.model import RerankerModel

        once(inputs)
        one_input(nbest, lattices, features=features, segments=segments, sources=sources, list_size=list_size)
        reranker = RerankerModel.load(model, n_jobs=jobs)
        reading = Reading(form, list_size, encoding).or_else(reranker.metadata.get("reading"))
        found: Any
        if nbest is not None:
            found = reading.read(nbest, features=features or [], sources=sources, segments=segments)
        else:
            found = reading.read_lattices(lattices or [])
        best = best_hypotheses(reranker, found, k_best or 1)
        write_best(best, out, as_lists=k_best is not None, scores=scores)
