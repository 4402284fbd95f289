"""The command line of dependency parsing: ``maxmargin parse VERB``, one file per verb.

Commands import what they need when they run, so that predictions start earlier.
"""

from __future__ import annotations

import typer

from maxmargin.tasks.parsing.cli.evaluate import evaluate
from maxmargin.tasks.parsing.cli.explain import explain
from maxmargin.tasks.parsing.cli.predict import predict
from maxmargin.tasks.parsing.cli.train import train

app = typer.Typer(help="Dependency parsing: train, predict, evaluate, explain.", no_args_is_help=True)
for verb in (train, predict, evaluate, explain):
    app.command()(verb)
