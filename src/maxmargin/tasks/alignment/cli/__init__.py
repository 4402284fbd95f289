"""The commands ``maxmargin align VERB``: each file parses the options of a verb and calls functions of the package."""

from __future__ import annotations

import typer

from maxmargin.tasks.alignment.cli import (
    bootstrap,
    convert,
    evaluate,
    explain,
    inspect,
    lexicon,
    predict,
    score,
    shard,
    show,
    symmetrize,
    train,
    update,
)

app = typer.Typer(
    help="Word alignment: train, predict, evaluate, explain, inspect, look at links.", no_args_is_help=True
)
app.command()(train.train)
app.command()(predict.predict)
app.command()(bootstrap.bootstrap)
app.command()(evaluate.evaluate)
app.command()(explain.explain)
app.command()(inspect.inspect)
app.command()(show.show)
app.command()(symmetrize.symmetrize)
app.command()(convert.convert)
app.command()(score.score)
app.command()(lexicon.lexicon)
app.command()(update.update)
app.command()(shard.shard)
