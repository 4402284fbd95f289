"""The command ``shard``."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from maxmargin.tasks.common.cli.commands import errors_as_lines
from maxmargin.tasks.common.cli.options import AsJson, Jobs, Overwrite, ResumeBuilding, ShardsOut
from maxmargin.tasks.reranking.cli.options import (
    Features,
    Length,
    Levels,
    ListSize,
    MetricName,
    MinLists,
    Negative,
    Ngrams,
    Normalize,
    Phrases,
    Positive,
    References,
    Segments,
    Sources,
    Within,
)


def shard(
    nbest: Annotated[
        str, typer.Option("--nbest", metavar="FILE", help="Lists of hypotheses with features, read several times.")
    ],
    out: ShardsOut,
    references: References = None,
    features: Features = None,
    method: Annotated[
        str, typer.Option("--method", help="max-margin, lp7 or lp8: which hypotheses are compared.")
    ] = "max-margin",
    metric: MetricName = "bleu",
    levels: Levels = None,
    within: Within = None,
    ngrams: Ngrams = 0,
    phrases: Phrases = False,
    length: Length = False,
    min_lists: MinLists = 1,
    normalize: Normalize = "spread",
    positive: Positive = None,
    negative: Negative = None,
    form: Annotated[
        str | None, typer.Option("--format", help="moses, jsonl or plain.", show_default="recognized")
    ] = None,
    list_size: ListSize = None,
    segments: Segments = None,
    sources: Sources = None,
    resume: ResumeBuilding = False,
    overwrite: Overwrite = False,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Judge and encode lists for training in little memory: train --shards takes the folder in place of files."""
    began = time.perf_counter()
    with errors_as_lines():
        from maxmargin.tasks.common.sharding import build
        from maxmargin.tasks.reranking.encoder.reranking import RerankingEncoder
        from maxmargin.tasks.reranking.files import Reading, judged_lists
        from maxmargin.tasks.reranking.io.blocks import NBestBlocks
        from maxmargin.tasks.reranking.sharding import RerankingRecipe, described
        from maxmargin.tasks.reranking.training import RerankerSettings
        from maxmargin.tasks.reranking.tuning.methods import method_named

        settings = RerankerSettings(
            method=method_named(method, levels=levels, within=within),
            encoder=RerankingEncoder(normalize, length, ngrams, phrases, min_lists),
            positive=positive or (),
            negative=negative or (),
        )
        files = NBestBlocks(nbest, form, tuple(features or ()), tuple(references or ()), sources, segments, list_size)
        source, judge = judged_lists(metric, files)
        reading = vars(Reading(form, None, None, usual_size=list_size))
        build(
            out, RerankingRecipe(settings, judge, metric), source, called="lists", began=began, jobs=jobs,
            overwrite=overwrite, resume=resume, as_json=as_json,
            metadata={**described(settings), "metric": metric, "reading": reading},
        )  # fmt: skip
