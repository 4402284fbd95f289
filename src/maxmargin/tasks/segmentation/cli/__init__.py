"""The commands ``maxmargin segment VERB``: each file parses the options of a verb, then calls functions."""

from __future__ import annotations

import typer

from maxmargin.tasks.segmentation.cli import evaluate, explain, predict, report, shard, train

app = typer.Typer(
    help="Segmentation of images and scans: train, predict, evaluate, explain, report, shard.", no_args_is_help=True
)
app.command()(train.train)
app.command()(predict.predict)
app.command()(evaluate.evaluate)
app.command()(explain.explain)
app.command()(report.report)
app.command()(shard.shard)
