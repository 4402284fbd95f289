"""The commands ``maxmargin rerank VERB``: each file parses the options of a verb and calls functions of the package."""

from __future__ import annotations

import typer

from maxmargin.tasks.common.cli.commands import ManyValues
from maxmargin.tasks.reranking.cli import evaluate, explain, export, inspect, predict, shard, train

app = typer.Typer(
    help="Reranking of n-best lists and lattices: train, predict, evaluate, explain, inspect, export, shard.",
    no_args_is_help=True,
)
app.command(cls=ManyValues)(train.train)
app.command(cls=ManyValues)(predict.predict)
app.command(cls=ManyValues)(shard.shard)
app.command(cls=ManyValues)(evaluate.evaluate)
app.command(cls=ManyValues)(explain.explain)
app.command()(inspect.inspect)
app.command()(export.export)
