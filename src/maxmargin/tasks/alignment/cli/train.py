"""The command ``train``."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from maxmargin.tasks.alignment.cli.options import (
    AnnotatedSource,
    BitextTarget,
    Extra,
    Fertility,
    GoldFirst,
    GoldFrom,
    GoldLinks,
    MaxEntries,
    MinProbability,
    Reuse,
    SkipBad,
    StartFrom,
    Target,
    extra_files,
    learned_bitext,
    settings_of,
)
from maxmargin.tasks.alignment.cli.saving import left_with, save
from maxmargin.tasks.alignment.io.links import Reference
from maxmargin.tasks.alignment.io.sentences import SentencePair, read_annotated
from maxmargin.tasks.common.cli.checkpoints import Checkpoints
from maxmargin.tasks.common.cli.commands import errors_as_lines, once, reserve
from maxmargin.tasks.common.cli.options import (
    AsJson,
    Jobs,
    ModelOut,
    RayAddress,
    Resume,
    SaveEvery,
    Seed,
    Shards,
    Tol,
    TrainingWorkers,
    Verbose,
    executor_of,
    numbers,
    numbers_option,
    refuse_with_shards,
)
from maxmargin.tasks.common.progress import print_lines


def train(
    out: ModelOut,
    source: AnnotatedSource = None,
    gold: GoldLinks = None,
    target: Target = None,
    shards: Shards = None,
    bitext_source: Annotated[
        str | None,
        typer.Option(
            "--bitext-source", help="Sentences without links, 'source ||| target', or a folder of align shard."
        ),
    ] = None,
    bitext_target: BitextTarget = None,
    dev_source: Annotated[
        str | None, typer.Option("--dev-source", help="Annotated source sentences to choose settings by.")
    ] = None,
    dev_target: Annotated[str | None, typer.Option("--dev-target", help="Target sentences of --dev-source.")] = None,
    dev_gold: Annotated[str | None, typer.Option("--dev-gold", help="Links of --dev-source.")] = None,
    fertility: Fertility = 2,
    C: Annotated[
        str | None,
        numbers_option("--C", "Larger means less regularization. Of several, the best is chosen.", "0.03,0.1,0.3"),
    ] = None,
    false_negative: Annotated[
        str | None,
        numbers_option("--false-negative", "Cost of a missed link. Of several, the best is chosen.", "1,1.5,2,4,8"),
    ] = None,
    extra: Extra = None,
    dev_extra: Annotated[
        list[str] | None, typer.Option("--dev-extra", metavar="NAME=FILE", help="--extra for the dev pairs.")
    ] = None,
    reuse: Reuse = None,
    start: StartFrom = None,
    gold_form: GoldFrom = None,
    gold_first: GoldFirst = None,
    skip_bad: SkipBad = False,
    max_entries: MaxEntries = None,
    least: MinProbability = 1e-4,
    tol: Tol = 1e-3,
    seed: Seed = 0,
    jobs: Jobs = -1,
    ray: RayAddress = None,
    workers: TrainingWorkers = None,
    resume: Resume = False,
    save_every: SaveEvery = 30.0,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Learn from annotated sentence pairs and a bitext without annotations, the larger the better."""
    from maxmargin.tasks.alignment.training import train_aligner  # the other verbs do not need it

    began = time.perf_counter()
    print_lines(verbose)
    texts = source, target, gold, bitext_source, bitext_target, dev_source, dev_target, dev_gold
    with errors_as_lines():
        given = {"C": numbers("--C", C), "false_negative": numbers("--false-negative", false_negative)}
        extras, dev_extras = extra_files(extra), extra_files(dev_extra, "--dev-extra")
        files = [*texts, *extras.values(), *dev_extras.values()]
        reserve(out, keep=files)
        once(files)
        pairs: list[SentencePair] = []
        references: list[Reference] = []
        if shards is not None:
            refuse_with_shards(
                {
                    "--source": source,
                    "--target": target,
                    "--gold": gold,
                    "--bitext-source": bitext_source,
                    "--reuse": reuse,
                    "--fertility": None if fertility == 2 else fertility,
                    "--extra": extra,
                    "--max-entries": max_entries,
                }
            )
        elif source is None or gold is None:
            raise ValueError("give --source and --gold, or --shards and a folder of align shard")
        else:
            pairs, references = read_annotated(
                source, target, gold, extra=extras, format=gold_form, first=gold_first, skip_bad=skip_bad
            )
        if bitext_source is None and bitext_target is not None:
            raise ValueError("--bitext-target needs --bitext-source; give both, or neither")
        bitext = None if bitext_source is None else learned_bitext(bitext_source, bitext_target)
        if dev_source is None and dev_target is not None:
            raise ValueError("--dev-target needs --dev-source; give both, or neither")
        if (dev_source is None) != (dev_gold is None):
            raise ValueError("--dev-source and --dev-gold belong together; give both, or neither")
        if dev_source is None and dev_extra:
            raise ValueError("--dev-extra needs --dev-source and --dev-gold; give them, or omit it")
        if reuse is not None and bitext is not None:
            raise ValueError(
                "--reuse takes existing translation models, --bitext-source learns new ones; give one, or add the "
                "bitext to the models first: maxmargin align update"
            )
        dev = None
        if dev_source is not None and dev_gold is not None:
            dev = read_annotated(
                dev_source,
                dev_target,
                dev_gold,
                extra=dev_extras,
                format=gold_form,
                first=gold_first,
                skip_bad=skip_bad,
            )
    checkpoints = Checkpoints(out)
    with errors_as_lines(left_with(checkpoints)):
        checkpoints.begin(resume)
        how = settings_of(
            fertility=fertility, tol=tol, seed=seed, jobs=jobs, reuse=reuse, start=start,
            checkpoint=checkpoints.checkpoint(save_every), max_entries=max_entries, **given,
        )  # fmt: skip
        how.executor = executor_of(ray, workers)
        annotated = len(pairs) + (0 if dev is None else len(dev[0]))
        if shards is not None:
            from maxmargin.datasets import ShardedDataset
            from maxmargin.tasks.alignment.sharding import train_aligner_on

            dataset = ShardedDataset(shards)
            model = train_aligner_on(dataset, how, dev=dev)
            annotated += len(dataset)
        else:
            model = train_aligner(pairs, references, how, bitext=bitext or (), dev=dev)
        save(model, checkpoints, began, least=least, annotated=annotated, as_json=as_json)
