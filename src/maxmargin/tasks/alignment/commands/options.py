"""Options and checks that the verbs share."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.files import Bitext, FileError, Format, LinkFile, read_bitext, write_links
from maxmargin.tasks.alignment.links import Prediction
from maxmargin.tasks.common.text import name_of

RECOGNIZED = "by its content, never talp"
"""What help says of the format of a file where none is given."""

GoldFormat = Annotated[
    Format | None, typer.Option("--gold-format", help="Format of the gold.", show_default=RECOGNIZED)
]
SourceOption = Annotated[
    str | None,
    typer.Option(
        "--source", help="Source sentences, one per line, or lines 'source ||| target' if there is no --target."
    ),
]
TargetOption = Annotated[str | None, typer.Option("--target", help="Target sentences, one per line.")]


def write(links: Iterable[IntArray | Prediction], form: Format) -> None:
    """Write links to standard output, all of them: a reader that is gone is met here, not at the end of the process."""
    write_links(sys.stdout, links, form.value)
    sys.stdout.flush()


def optional_bitext(source: str | None, target: str | None, option: str = "--") -> Bitext | None:
    """The sentences if they are given; ``option`` begins the names of their options."""
    if source is None and target is not None:
        raise FileError(f"{option}target needs {option}source; give both, or neither")
    return None if source is None else read_bitext(source, target)


def pairs_of(files: Sequence[LinkFile], bitext: Bitext | None) -> int:
    """How many sentence pairs the files speak of: NAACL files do not say it, others do and must agree."""
    if bitext is not None:
        return len(bitext)
    counted = [file for file in files if file.counted]
    for file in counted[1:]:
        if file.sentences != counted[0].sentences:
            raise FileError(
                f"{name_of(counted[0].path)} has {counted[0].sentences} lines and {name_of(file.path)} has "
                f"{file.sentences}; both need one line per sentence pair"
            )
    return counted[0].sentences if counted else max(file.sentences for file in files)
