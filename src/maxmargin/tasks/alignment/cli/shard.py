"""The command ``shard``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from maxmargin._terminal import report
from maxmargin.tasks.alignment.cli.options import (
    AnnotatedSource,
    BitextTarget,
    Extra,
    Fertility,
    GoldFirst,
    GoldFrom,
    GoldLinks,
    MaxEntries,
    Reuse,
    SkipBad,
    Target,
    extra_files,
    learned_bitext,
    settings_of,
)
from maxmargin.tasks.common.cli.commands import errors_as_lines, once
from maxmargin.tasks.common.cli.options import AsJson, Jobs, Overwrite, ResumeBuilding, ShardsOut


def shard(
    out: ShardsOut,
    bitext_source: Annotated[
        str | None, typer.Option("--bitext-source", help="Sentences without links, or 'source ||| target'.")
    ] = None,
    bitext_target: BitextTarget = None,
    source: AnnotatedSource = None,
    target: Target = None,
    gold: GoldLinks = None,
    fertility: Fertility = 2,
    extra: Extra = None,
    reuse: Reuse = None,
    gold_form: GoldFrom = None,
    gold_first: GoldFirst = None,
    skip_bad: SkipBad = False,
    max_entries: MaxEntries = None,
    shard_pairs: Annotated[
        int | None,
        typer.Option(
            "--shard-pairs", min=1, help="How many pairs of a bitext a file of its folder has.", show_default="65536"
        ),
    ] = None,
    resume: ResumeBuilding = False,
    overwrite: Overwrite = False,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Write sentence pairs into a folder, from which others learn in little memory.

    With --source and --gold: annotated pairs for train --shards, with translation models of their words and of
    --bitext-source. Otherwise a bitext for --bitext-source of train, bootstrap and update.
    """
    began = time.perf_counter()
    with errors_as_lines():
        extras = extra_files(extra)
        once([source, target, gold, bitext_source, bitext_target, *extras.values()])
        if bitext_source is None and bitext_target is not None:
            raise ValueError("--bitext-target needs --bitext-source; give both, or neither")
        if (source is None) != (gold is None):
            raise ValueError("--source and --gold belong together; give both, or --bitext-source alone")
        if source is not None and gold is not None:
            if shard_pairs is not None:
                raise ValueError("--shard-pairs is for a bitext; leave it out")
            if reuse is not None and bitext_source is not None:
                raise ValueError(
                    "--reuse takes existing translation models, --bitext-source learns new ones; give one of them"
                )
            from maxmargin.tasks.alignment.io.sentences import read_annotated
            from maxmargin.tasks.alignment.sharding import BLOCK_PAIRS, AlignmentRecipe
            from maxmargin.tasks.common.sharding import build

            pairs = read_annotated(
                source, target, gold, extra=extras, format=gold_form, first=gold_first, skip_bad=skip_bad
            )
            how = settings_of(
                fertility=fertility, tol=1e-3, seed=0, jobs=jobs, reuse=reuse, start="none", max_entries=max_entries
            )
            bitext = () if bitext_source is None else learned_bitext(bitext_source, bitext_target)
            build(
                out, AlignmentRecipe(how, bitext), pairs, called="annotated_pairs", began=began, jobs=jobs,
                overwrite=overwrite, resume=resume, as_json=as_json, block_examples=BLOCK_PAIRS,
            )  # fmt: skip
            return
        of_gold = {"--target": target, "--extra": extra, "--reuse": reuse, "--max-entries": max_entries}
        for name, value in of_gold.items():
            if value is not None:
                raise ValueError(f"{name} needs --source and --gold; give them, or leave it out")
        if bitext_source is None:
            raise ValueError("there is nothing to write; give --source and --gold, or --bitext-source")
        if resume:
            raise ValueError("the folder of a bitext is written in one go; give --overwrite in place of --resume")
        _bitext(out, bitext_source, bitext_target, shard_pairs or 1 << 16, overwrite, as_json, began)


def _bitext(
    out: Path, source: str, target: str | None, shard_pairs: int, overwrite: bool, as_json: bool, began: float
) -> None:
    from maxmargin.tasks.alignment.translation.sharded_bitext import ShardedBitext  # here, as others do not need it

    made = ShardedBitext.build(out, source, target, shard_pairs=shard_pairs, overwrite=overwrite)
    found = {"folder": str(out), "bitext_pairs": len(made), "words": len(made.words), "shards": len(made.shards)}
    report({**found, "seconds": time.perf_counter() - began}, as_json=as_json)
