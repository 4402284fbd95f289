"""Options that the verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

References = Annotated[
    list[str], typer.Option("--references", help="References, one a line; may be repeated for several files.")
]
MoreReferences = Annotated[
    list[str] | None, typer.Argument(metavar="[REFERENCES]...", help="More files of references.")
]
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of all files, such as latin-1.")]
