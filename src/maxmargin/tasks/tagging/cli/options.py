"""Options that the commands of tagging share."""

from __future__ import annotations

from typing import Annotated

import typer

Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="NAMES", help="Names of the columns, such as word,pos,label; _ to ignore one."),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="columns, conllu, slash, crfsuite or json.", show_default="by name and content"),
]
Join = Annotated[
    bool | None,
    typer.Option(
        "--join/--no-join",
        help="In word/TAG lines, join a word without a tag to the next one.",
        show_default="as in training",
    ),
]
Label = Annotated[
    str | None,
    typer.Option("--label", metavar="NAME", help="The column of labels.", show_default="label, or the last; upos"),
]
