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
TemplateFile = Annotated[
    str | None, typer.Option("--template", metavar="FILE", help="Template of attributes, in CRF++'s syntax.")
]
Preset = Annotated[
    str | None,
    typer.Option("--preset", help="Built-in template: chunking, ner or pos.", show_default="by what the labels mark"),
]
Order = Annotated[int, typer.Option("--order", min=1, max=2, help="Order of the chain.")]
Constraints = Annotated[
    str,
    typer.Option(
        "--constraints", help="Transition constraints: auto (if nearly all data satisfy them), bio, iobes or none"
    ),
]
Repair = Annotated[
    bool, typer.Option("--repair", help="Mend labels that break the BIO or IOBES rules: I-X after O is B-X.")
]
Segments = Annotated[
    bool, typer.Option("--segments", help="Score whole chunks, not only their tokens; for BIO and IOBES labels.")
]
MinCount = Annotated[
    int | None,
    typer.Option("--min-count", min=1, help="Drop attributes of fewer tokens.", show_default="by preset, or 1"),
]
SupportName = Annotated[
    str, typer.Option("--support", help="Attributes and labels with weights: negative, observed or all.")
]
GazetteerFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--gazetteer",
        metavar="[NAME=]FILE",
        help="A list of names, one per line; TAB and a label may follow. Repeatable.",
    ),
]
TextFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--text", metavar="FILE", help="Text without labels, a sentence per line: clusters of words. Repeatable."
    ),
]
Unknown = Annotated[
    str | None, typer.Option("--unknown", metavar="LABEL", help="The label that stands for unknown labels.")
]
