"""The command ``shard``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from maxmargin._terminal import report
from maxmargin.tasks.alignment.cli.options import BitextTarget
from maxmargin.tasks.common.cli.commands import errors_as_lines, once
from maxmargin.tasks.common.cli.options import AsJson


def shard(
    bitext_source: Annotated[str, typer.Option("--bitext-source", help="Source sentences, or 'source ||| target'.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Folder to write.")],
    bitext_target: BitextTarget = None,
    shard_pairs: Annotated[
        int, typer.Option("--shard-pairs", min=1, help="How many sentence pairs a file of the folder has.")
    ] = 1 << 16,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a bitext that is in the folder.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a bitext into a folder, from which --bitext-source of train and bootstrap learns in little memory."""
    from maxmargin.tasks.alignment.translation.sharded_bitext import ShardedBitext  # here, as others do not need it

    began = time.perf_counter()
    with errors_as_lines():
        once([bitext_source, bitext_target])
        made = ShardedBitext.build(out, bitext_source, bitext_target, shard_pairs=shard_pairs, overwrite=overwrite)
        found = {"folder": str(out), "bitext_pairs": len(made), "words": len(made.words), "shards": len(made.shards)}
        report({**found, "seconds": time.perf_counter() - began}, as_json=as_json)
