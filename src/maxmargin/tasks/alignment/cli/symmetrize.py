"""The command ``symmetrize``."""

from __future__ import annotations

from typing import Annotated

import typer

from maxmargin.tasks.alignment.cli.options import First, From, OptionalSource, Target, To, optional_bitext, write
from maxmargin.tasks.alignment.io.link_formats import Format
from maxmargin.tasks.alignment.metrics.files import symmetrize_files
from maxmargin.tasks.alignment.metrics.symmetrization import Method
from maxmargin.tasks.common.cli.commands import PART_WRITTEN, errors_as_lines, once


def symmetrize(
    forward: Annotated[str, typer.Option("--forward", help="Links of one direction, as source-target.")],
    backward: Annotated[str, typer.Option("--backward", help="Links of the other direction, also as source-target.")],
    method: Annotated[Method, typer.Option("--method", help="Symmetrization method.")] = Method.grow_diag_final_and,
    reverse: Annotated[
        bool, typer.Option("--reverse", help="The backward file has target-source; swap the positions.")
    ] = False,
    source: OptionalSource = None,
    target: Target = None,
    form: From = None,
    first: First = None,
    out: To = Format.pharaoh,
) -> None:
    """Combine the links of two directions: one line per sentence pair (NAACL: per link) on standard output."""
    with errors_as_lines():
        once([forward, backward, source, target])
        bitext = optional_bitext(source, target)
        links = symmetrize_files(
            forward, backward, method.value, reverse=reverse, bitext=bitext, format=form, first=first
        )
    with errors_as_lines(PART_WRITTEN):
        write(links, out, bitext)
