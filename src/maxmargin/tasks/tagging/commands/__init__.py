"""The command line of sequence tagging: ``maxmargin tag VERB``, one thin function per verb.

What learns, measures or draws is imported when it is needed: a prediction begins a third of a second earlier for it.
"""

from __future__ import annotations

import typer

from maxmargin.tasks.tagging.commands import apply, learn, look, measure

app = typer.Typer(help="Sequence tagging: learn it, predict it, measure it, look at it.", no_args_is_help=True)
for verb in (learn.train, apply.predict, measure.evaluate, look.inspect):
    app.command()(verb)
