"""The command line of word alignment: ``maxmargin align VERB``, one thin function per verb."""

from __future__ import annotations

import typer

app = typer.Typer(help="Word alignment: learn it, predict it, measure it, look at it.", no_args_is_help=True)
