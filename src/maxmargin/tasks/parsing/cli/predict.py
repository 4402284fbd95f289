"""The command ``predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maxmargin.tasks.common.cli.commands import PART_WRITTEN, errors_as_lines, once, writable
from maxmargin.tasks.common.cli.options import Jobs


def predict(
    model: Annotated[Path, typer.Argument(help="A model of parse train.")],
    sentences: Annotated[str, typer.Argument(help="A file in CoNLL-U with tags; - for standard input.")],
    out: Annotated[Path, typer.Option("--out", help="File to write.", show_default="standard output")] = Path("-"),
    jobs: Jobs = -1,
) -> None:
    """Write a file in CoNLL-U with predicted heads and relations; everything else stays as it is."""
    if str(out) != "-":
        writable(out, keep=[str(model), sentences], streams=True)
    with errors_as_lines(PART_WRITTEN if str(out) == "-" else None):
        once([sentences])
        from maxmargin.tasks.parsing.io.treebank import read_treebank, write_treebank
        from maxmargin.tasks.parsing.model import ParserModel

        bank = read_treebank(sentences)
        write_treebank(bank, *ParserModel.load(model, n_jobs=jobs).parse(bank), out=out)
