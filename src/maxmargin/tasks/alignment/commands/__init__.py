"""The command line of word alignment: ``maxmargin align VERB``, one thin function per verb."""

from __future__ import annotations

import typer

from maxmargin.tasks.alignment.commands import learn, look, measure

app = typer.Typer(help="Word alignment: learn it, predict it, measure it, look at it.", no_args_is_help=True)
for verb in (learn.train, learn.predict, learn.bootstrap, measure.evaluate, look.show, measure.symmetrize):
    app.command()(verb)
