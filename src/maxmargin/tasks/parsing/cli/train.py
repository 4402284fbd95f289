"""The command ``train``."""

from __future__ import annotations

import hashlib
from typing import Annotated

import typer

from maxmargin._terminal import report
from maxmargin.tasks.common.cli.checkpoints import Checkpoints
from maxmargin.tasks.common.cli.commands import errors_as_lines, once, reserve
from maxmargin.tasks.common.cli.options import AsJson, Jobs, ModelOut, Resume, SaveEvery, Seed
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
    single_root: Annotated[
        bool,
        typer.Option(
            "--single-root/--several-roots", help="Whether one token of each sentence is below the root, or any."
        ),
    ] = True,
    unlabeled: Annotated[bool, typer.Option("--unlabeled", help="Train heads alone; relations become _.")] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Heads and relations that are missing (_) are unknown, not refused.")
    ] = False,
    bits: Annotated[int, typer.Option("--bits", min=10, max=30, help="Hash features to 2^BITS weights.")] = BITS,
    seed: Seed = 0,
    jobs: Jobs = -1,
    resume: Resume = False,
    save_every: SaveEvery = 30.0,
    as_json: AsJson = False,
) -> None:
    """Train a parser on a treebank."""
    reserve(out, keep=[treebank, dev])
    checkpoints = Checkpoints(out)
    with errors_as_lines(checkpoints.summary):
        once([treebank, dev])
        from maxmargin.tasks.parsing.io.checks import check_trees
        from maxmargin.tasks.parsing.io.treebank import read_treebank
        from maxmargin.tasks.parsing.training import ParserSettings, checked, train_parser
        from maxmargin.training import Settings

        bank, held = read_treebank(treebank), None if dev is None else read_treebank(dev)
        banks = {"train": bank} | ({} if held is None else {"dev": held})
        chosen = f"order {order}, passes {passes}, aggressiveness {aggressiveness}, bits {bits}, seed {seed}"
        chosen += f"{'' if single_root else ', several roots'}{', unlabeled' * unlabeled}{', partial' * partial}"
        digests = [f"{name} {hashlib.sha256(one.data or b'').hexdigest()[:12]}" for name, one in banks.items()]
        fingerprint = ", ".join([*digests, chosen])
        training = Settings(
            C=1.0,
            max_iter=passes,
            random_state=seed,
            n_jobs=jobs,
            checkpoint=checkpoints.checkpoint(save_every, fingerprint),
            verbose=True,
        )
        settings = ParserSettings(
            order=order,
            bits=bits,
            aggressiveness=aggressiveness,
            single_root=single_root,
            labeled=not unlabeled,
            partial=partial,
            training=training,
        )
        _ = checked(bank, settings)  # wrong trees are refused before older checkpoints are removed
        if held is not None:
            check_trees(held)
        checkpoints.begin(resume)
        model = train_parser(bank, settings, dev=held)
        checkpoints.save(model)
        found = {"sentences": bank.n_sentences, "tokens": bank.n_tokens, "relations": len(model.encoder.classes)}
        found |= {name: value for name, value in model.metadata.items() if name in ("known heads", "left out")}
        if held is not None:
            found |= {f"dev {name}": value for name, value in model.evaluate(held).as_dict().items()}
    report(found, as_json=as_json)
