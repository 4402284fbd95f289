"""The command ``train``."""

from __future__ import annotations

from typing import Annotated

import typer

from maxmargin._terminal import report
from maxmargin.tasks.common.cli.checkpoints import Checkpoints
from maxmargin.tasks.common.cli.commands import errors_as_lines, once, reserve
from maxmargin.tasks.common.cli.options import AsJson, Jobs, ModelOut, Seed
from maxmargin.tasks.parsing.defaults import AGGRESSIVENESS, BITS, ORDER, PASSES


def train(
    treebank: Annotated[str, typer.Argument(help="A file in CoNLL-U with heads and relations.")],
    out: ModelOut,
    dev: Annotated[
        str | None,
        typer.Option("--dev", help="A held-out treebank: chooses the number of passes, and is scored after training."),
    ] = None,
    order: Annotated[int, typer.Option("--order", min=1, max=2, help="2 for siblings and grandparents, too.")] = ORDER,
    passes: Annotated[int, typer.Option("--passes", min=1, help="Passes over the sentences.")] = PASSES,
    aggressiveness: Annotated[
        float, typer.Option("--aggressiveness", min=1e-6, help="How far the weights move to mend an error.")
    ] = AGGRESSIVENESS,
    bits: Annotated[int, typer.Option("--bits", min=10, max=30, help="Hash features to 2^BITS weights.")] = BITS,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Train a parser on a treebank."""
    reserve(out, keep=[treebank, dev])
    with errors_as_lines():
        once([treebank, dev])
        from maxmargin.tasks.parsing.io.treebank import read_treebank
        from maxmargin.tasks.parsing.training import ParserSettings, train_parser
        from maxmargin.training import Settings

        bank, held = read_treebank(treebank), None if dev is None else read_treebank(dev)
        training = Settings(C=1.0, max_iter=passes, random_state=seed, n_jobs=jobs, verbose=True)
        settings = ParserSettings(order=order, bits=bits, aggressiveness=aggressiveness, training=training)
        model = train_parser(bank, settings, dev=held)
        Checkpoints(out).save(model)
        found = {"sentences": bank.n_sentences, "tokens": bank.n_tokens, "relations": len(model.encoder.classes)}
        if held is not None:
            found |= {f"dev {name}": value for name, value in model.evaluate(held).as_dict().items()}
    report(found, as_json=as_json)
