"""Options that several commands of reranking share."""

from __future__ import annotations

from typing import Annotated

import typer

Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of text files, for example latin-1.", show_default="utf-8")
]
Features = Annotated[
    list[str] | None,
    typer.Option("--features", metavar="FILE...", help="More features: files with a line per hypothesis."),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="moses, plain, tsv, jsonl or parquet.", show_default="recognized"),
]
ListSize = Annotated[int | None, typer.Option("--list-size", min=1, help="Lines of each list, in the plain format.")]
NBest = Annotated[str, typer.Option("--nbest", metavar="FILE", help="Lists of hypotheses; - for standard input.")]
References = Annotated[
    list[str] | None,
    typer.Option("--references", metavar="FILE...", help="References: files with a line per list."),
]
Segments = Annotated[
    str | None,
    typer.Option("--segments", metavar="FILE", help="Phrases of hypotheses, as 1:0-1:0-2, a line per hypothesis."),
]
Sources = Annotated[
    str | None, typer.Option("--sources", metavar="FILE", help="The inputs of the lists, a line per list.")
]
