"""The command ``predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maxmargin._terminal import fail
from maxmargin.tasks.common.commands import errors_as_lines, writable
from maxmargin.tasks.common.options import Jobs
from maxmargin.tasks.common.text import STANDARD_INPUT
from maxmargin.tasks.tagging.cli.options import Columns, Format, Join


def predict(
    model: Annotated[Path, typer.Argument(help="A model written by tag train.")],
    input: Annotated[str, typer.Argument(help="A file of tokens; - for standard input.")],
    out: Annotated[str, typer.Option("--out", help="File to write, compressed if it ends in .gz.")] = STANDARD_INPUT,
    k_best: Annotated[
        int | None, typer.Option("--k-best", min=1, help="Write this many labelings of each sentence, best first.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Write the margin of each label over the best labeling with another one.")
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="Write the probability of each label, calibrated if trained with --dev."),
    ] = False,
    known: Annotated[
        str | None,
        typer.Option("--known", metavar="COLUMN", help="Labels that must be taken, unless this column is empty or _."),
    ] = None,
    form: Format = None,
    columns: Columns = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="NAME", help="The column of labels.", show_default="as in training")
    ] = None,
    join: Join = False,
    jobs: Jobs = -1,
) -> None:
    """Label the tokens of a file: write the file with one more column, or the equivalent in other formats."""
    if (k_best is not None) + scores + probabilities > 1:
        fail("--k-best, --scores and --probabilities exclude each other; give one of them")
    if out != STANDARD_INPUT:
        writable(Path(out), keep=[str(model)])
    with errors_as_lines():
        from maxmargin.tasks.tagging.model import load_tagger
        from maxmargin.tasks.tagging.prediction import predict_file
        from maxmargin.tasks.tagging.reading import ReadOptions

        tagger = load_tagger(model, n_jobs=jobs)
        text = ReadOptions(form, columns, label, join).read_for(input, tagger, labeled=None)
        predict_file(tagger, text, out, k_best=k_best, margins=scores, probabilities=probabilities, known=known)
