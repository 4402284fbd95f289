"""Options that the verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model written by segment train.")]
Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        help="Names of classes in the order of their values, or with values: 'ground=1200-1206 tree=1300 void=0'.",
        show_default="the values that occur",
    ),
]
ClassFile = Annotated[
    Path | None, typer.Option("--class-file", help="File with a line 'name=values' for each class, instead.")
]
Void = Annotated[
    str | None, typer.Option("--void", help="Value or color (#rrggbb) of pixels or points without a class.")
]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label-column", help="Column of the labels of scans, by name or number from 1."),
]
