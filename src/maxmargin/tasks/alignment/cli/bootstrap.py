"""The command ``bootstrap``."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from maxmargin._terminal import fail
from maxmargin.tasks.alignment.cli.blocks import BLOCK, Aligning
from maxmargin.tasks.alignment.cli.options import (
    BitextTarget,
    Confidence,
    Fertility,
    MaxEntries,
    MinProbability,
    Reuse,
    StartFrom,
    Symmetrized,
    Target,
    Threshold,
    learned_bitext,
    optional_bitext,
    settings_of,
)
from maxmargin.tasks.alignment.cli.saving import left_with, save
from maxmargin.tasks.alignment.io.link_formats import Format
from maxmargin.tasks.alignment.io.sentences import as_pairs
from maxmargin.tasks.common.cli.checkpoints import Checkpoints
from maxmargin.tasks.common.cli.commands import PART_WRITTEN, errors_as_lines, once, reserve
from maxmargin.tasks.common.cli.options import (
    AsJson,
    Jobs,
    RayAddress,
    Resume,
    SaveEvery,
    Seed,
    Tol,
    TrainingWorkers,
    Verbose,
    executor_of,
)
from maxmargin.tasks.common.files.text import STANDARD_INPUT, open_output
from maxmargin.tasks.common.progress import Stages, print_lines

NO_LINKS = "no links were written; with --out what was learned so far is kept"
"""What Ctrl-C leaves behind before the first links."""


def bootstrap(
    bitext_source: Annotated[
        str, typer.Option("--bitext-source", help="Source sentences, 'source ||| target', or a folder of align shard.")
    ],
    bitext_target: BitextTarget = None,
    out: Annotated[Path | None, typer.Option("--out", help="Model file to write.")] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", help="Sentences to align, without --out; those of the bitext if not given."),
    ] = None,
    target: Target = None,
    pairs: Annotated[int, typer.Option("--pairs", min=1, help="Most sentence pairs to learn links from.")] = 1000,
    fertility: Fertility = 2,
    C: Annotated[
        float | None,
        typer.Option(
            "--C", help="How far weights may move from those they start from.", show_default="1 / pairs learned from"
        ),
    ] = None,
    false_negative: Annotated[
        float | None, typer.Option("--false-negative", help="Cost of a missed link: more for recall.", show_default="1")
    ] = None,
    reuse: Reuse = None,
    start: StartFrom = None,
    method: Symmetrized = None,
    form: Annotated[
        Format | None, typer.Option("--to", help="Format of the links that are written.", show_default="pharaoh")
    ] = None,
    confidence: Confidence = False,
    threshold: Threshold = None,
    max_entries: MaxEntries = None,
    least: MinProbability = 1e-4,
    tol: Tol = 1e-3,
    seed: Seed = 0,
    jobs: Jobs = -1,
    resume: Resume = False,
    save_every: SaveEvery = 30.0,
    ray: RayAddress = None,
    workers: TrainingWorkers = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Learn from a bitext alone. Writes a model with --out, without it links, as fast_align does."""
    from maxmargin.tasks.alignment.bootstrap import bootstrap_aligner, translation_aligner
    from maxmargin.tasks.alignment.training import counted_once  # here, as other verbs need no training

    began = time.perf_counter()
    print_lines(verbose)
    if out is not None:
        reserve(out, keep=[bitext_source, bitext_target])
        if source is not None:
            fail("--out writes a model, --source asks for links; give one of them, and use align predict")
        of_links = ("--method", method), ("--to", form), ("--confidence", confidence), ("--threshold", threshold)
        ignored = [option for option, value in of_links if value is not None and value is not False]
        if ignored:
            fail(f"--out writes a model, {ignored[0]} is about links; omit one of them, and use align predict")
    elif resume:
        fail("--resume goes on with training a model, but without --out links are written; give --out, or omit it")
    elif as_json:
        fail("--json reports on a model, but without --out links are written; give --out, or --to json for links")
    if start == "none":
        fail("bootstrap labels the text by the weights it starts from; omit --start, or give it a model")
    with errors_as_lines():
        aligning = Aligning(form or Format.pharaoh, method, confidence, threshold, adapt=False)
        once([bitext_source, bitext_target, source, target])
        learned = learned_bitext(bitext_source, bitext_target)
        asked = optional_bitext(source, target)
    checkpoints = None if out is None else Checkpoints(out)
    with errors_as_lines(NO_LINKS if checkpoints is None else left_with(checkpoints)):
        if checkpoints is not None:
            checkpoints.begin(resume)
        settings = settings_of(
            fertility=fertility, tol=tol, seed=seed, jobs=jobs, reuse=reuse, start=start,
            C=C, false_negative=false_negative, max_entries=max_entries,
            checkpoint=None if checkpoints is None else checkpoints.checkpoint(save_every),
        )  # fmt: skip
        settings.executor = executor_of(ray, workers)
        to_align = learned if asked is None else as_pairs(asked)
        bitext = learned if asked is None else counted_once(learned, to_align)
        if method is not None:
            model = translation_aligner(bitext, settings)
        else:
            model = bootstrap_aligner(bitext, settings, n_pairs=pairs)
        if checkpoints is not None:
            del learned, bitext, to_align  # not needed while the model is written
            save(model, checkpoints, began, least=least, annotated=0, as_json=as_json)
            return
        if model.metadata.get("status") == "interrupted":
            raise KeyboardInterrupt
        aligning.begin(model)
    model = replace(model, verbose=False)
    bar = Stages(not sys.stdout.isatty())  # it would be among the lines
    with errors_as_lines(PART_WRITTEN), open_output(STANDARD_INPUT) as stream, bar as stages:
        stages.begin(aligning.stage, len(to_align))
        for first in range(0, len(to_align), BLOCK):
            some = to_align[first : first + BLOCK]
            stream.write(aligning.of_block(model, (first + 1, some)))
            stream.flush()
            stages.advance(len(some))
