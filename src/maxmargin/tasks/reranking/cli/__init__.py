"""The commands ``maxmargin rerank VERB``: each file parses the options of a verb and calls functions of the package."""

from __future__ import annotations

import typer

from maxmargin.tasks.common.commands import ManyValues
from maxmargin.tasks.reranking.cli import evaluate

app = typer.Typer(help="Reranking of n-best lists: evaluate.", no_args_is_help=True)


@app.callback()
def _verbs() -> None:
    """Keep the verb in the command line while there is only one."""


app.command(cls=ManyValues)(evaluate.evaluate)
