"""The command ``convert``."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from maxmargin.tasks.alignment.cli.options import (
    First,
    From,
    OptionalSource,
    Target,
    To,
    optional_bitext,
    write,
)
from maxmargin.tasks.alignment.io.link_files import open_links
from maxmargin.tasks.common.cli.commands import PART_WRITTEN, errors_as_lines, once


def convert(
    links: Annotated[str, typer.Argument(metavar="LINKS", help="File of links; - is standard input.")],
    to: To,
    form: From = None,
    first: First = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Swap source and target.")] = False,
    source: OptionalSource = None,
    target: Target = None,
) -> None:
    """Write links in another format, with marks of possible links or with confidences, on standard output."""
    with errors_as_lines():
        once([links, source, target])
        bitext = optional_bitext(source, target)
        file = open_links(links, format=form, first=first)
        if reverse:
            file = file.reversed()
        sure = bool(file.table.sure.all())
        if not sure and file.table.confidence is not None:
            warnings.warn("marks of possible links are kept, confidences are left out", UserWarning, stacklevel=1)
        found = file.predictions(bitext=bitext) if sure else file.references(bitext=bitext)
    with errors_as_lines(PART_WRITTEN):
        write(found, to, bitext)
